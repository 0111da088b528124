//! `pdpp connect`, reads and `pdpp doctor` against a server that gives tokens as the reference does.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use crate::harness::server::{connect, raw_exchange};
use crate::harness::{Home, Ran};
use serde_json::{Value, json};
use testkit::fake::{Decides, FakeServer, Issuer, fixtures};

const SOURCE: &str = "--source https://registry.example.org/connectors/shop --stream orders";

/// A home, the server, and who gives its tokens.
struct Far {
    home: Home,
    server: FakeServer,
    issuer: Issuer,
}

impl Far {
    fn new(issuer: Issuer) -> Self {
        Self {
            server: FakeServer::start(fixtures::multi().issuing(issuer.clone())),
            home: Home::new(),
            issuer,
        }
    }

    fn run(&self, line: &str, options: &str) -> Ran {
        self.home
            .run(format!("{line} --cache-root ~/cache {options}"))
    }

    /// `pdpp connect` with these options.
    fn connect(&self, options: &str) -> Ran {
        self.run(&format!("connect {}", self.server.url()), options)
    }

    fn read(&self) -> Ran {
        let query = format!("query orders --provider-url {}", self.server.url());
        self.run(&query, "--connection-id cin_aaa --json")
    }

    /// `pdpp connect`, waiting for the browser, and the link it printed.
    fn connecting(&self, options: &str) -> (Child, String) {
        let connect = format!(
            "connect {} --cache-root ~/cache {options}",
            self.server.url()
        );
        let mut command = self.home.command(connect);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let mut lines = [String::new(), String::new()];
        for line in &mut lines {
            told.read_line(line).unwrap();
        }
        let [first, link] = lines;
        let expected = "Open this page in a browser on this machine and approve:\n";
        assert_eq!(first, expected);
        child.stderr = Some(told.into_inner());
        (child, link.trim().to_owned())
    }

    fn kept(&self) -> Value {
        let host = self.server.url().replace("http://127.0.0.1:", "127.0.0.1_");
        let file = self.home.path(&format!("cache/clients/{host}.json"));
        serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
    }
}

/// What a browser gets at an address: the head and the body.
fn get(url: &str) -> (String, String) {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    raw_exchange(connect(host), &request)
}

fn location(head: &str) -> String {
    let line = head
        .lines()
        .find_map(|line| line.strip_prefix("location: "));
    line.unwrap().to_owned()
}

fn left(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), told)
}

// TR-22: the server wants to be told what a device asks for.
#[test]
fn a_device_names_what_it_asks_for() {
    let far = Far::new(Issuer::new(Decides::Yes));
    let more = "--connection cin_aaa --fields id,total --since 2026-01-01";
    let ran = far.connect(&format!("{SOURCE} {more}")).succeeds();
    ran.says_all(&["The code shown there must be: 7AB3F0", "It may read: "]);
    let asked = far.server.calls();
    let asked = asked
        .iter()
        .find(|call| call.path == "/oauth/device_authorization");
    let form = testkit::fake::Call::new("GET", &format!("/?{}", asked.unwrap().body), None);
    assert_eq!(
        form.value("resource").unwrap(),
        format!("{}/mcp", far.server.url())
    );
    let details: Value =
        serde_json::from_str(form.value("authorization_details").unwrap()).unwrap();
    assert_eq!(
        details,
        json!([{"type": "https://pdpp.dev/data-access", "source": {"id": "https://registry.example.org/connectors/shop"},
                "purpose_code": "https://pdpp.dev/purpose/agent_context", "access_mode": "continuous",
                "streams": [{"instance_ids": ["cin_aaa"], "fields": ["id", "total"],
                    "time_range": {"since": "2026-01-01"}, "name": "orders"}]}])
    );
    assert_eq!(far.kept()["credential"]["pdpp_token_kind"], "client");
    far.read().succeeds();
    let json = far.connect(&format!("{SOURCE} --json")).succeeds();
    assert_eq!(json.json()["streams"], json!(["orders"]));
    json.hides(far.kept()["credential"]["access_token"].as_str().unwrap());
}

// TR-22, TR-23: a browser brings the code back; what it gave is renewed where the server says so in its own words.
#[test]
fn a_browser_on_this_machine_brings_the_code() {
    let far = Far::new(Issuer::new(Decides::Yes));
    let (child, link) = far.connecting(&format!("{SOURCE} --browser"));
    let back = location(&get(&link).0);
    assert!(back.starts_with("http://127.0.0.1:"), "{back}");
    // Whoever was not sent by us is turned away.
    let (elsewhere, _) = back.split_once('?').unwrap();
    for stranger in ["?code=x", "?code=x&state=y", "?error=access_denied", "/x"] {
        let (head, _) = get(&format!("{elsewhere}{stranger}"));
        assert!(head.starts_with("HTTP/1.1 404"), "{stranger}: {head}");
    }
    let (head, page) = get(&back);
    assert!(
        head.starts_with("HTTP/1.1 200") && page.contains("Go on in the terminal"),
        "{head}"
    );
    let (code, told) = left(child);
    assert_eq!(code, Some(0), "{told}");
    assert!(
        told.contains("Connected to") && !told.contains("oacode_"),
        "{told}"
    );
    let kept = far.kept();
    assert_eq!(kept["credential"]["pdpp_token_kind"], "client");
    assert!(kept["credential"]["expires_at"].is_string());
    far.read().succeeds();
    far.issuer.end_tokens();
    far.read().succeeds();
    assert_ne!(
        far.kept()["credential"]["refresh_token"],
        kept["credential"]["refresh_token"]
    );
    far.issuer.revoke();
    far.read().refused_saying(&["Grant has been revoked"]);
}

// TR-22: without a word of what is asked for, the owner chooses on the server's own page. The package that comes of it is
// refused by that server's reads, and the way that works is named.
#[test]
fn a_servers_own_choice_is_opened_and_a_package_it_refuses_is_told() {
    for issuer in [
        Issuer::new(Decides::Yes),
        Issuer::new(Decides::Yes).undescribed(),
    ] {
        let far = Far::new(issuer);
        let (child, link) = far.connecting("");
        assert!(!link.contains("authorization_details"), "{link}");
        get(&location(&get(&link).0));
        let (code, told) = left(child);
        assert_eq!(code, Some(78), "{told}");
        assert!(
            told.contains("refuses a read with it: status 403"),
            "{told}"
        );
        assert!(told.contains("--source ID --stream NAME`"), "{told}");
        assert_eq!(far.kept()["credential"]["pdpp_token_kind"], "mcp_package");
    }
}

// TR-22
#[test]
fn what_is_wrong_with_the_request_is_told_before_anybody_is_asked() {
    let far = Far::new(Issuer::new(Decides::Yes));
    let broken = r#"[{"type": "https://pdpp.dev/data-access"}]"#;
    far.home.file("broken.json", broken);
    for (options, code, told) in [
        ("--source shop", 2, "is no id of a source"),
        ("--stream orders", 2, "--source"),
        (
            "--source https://a.example/x --source https://a.example/y --stream s",
            2,
            "one source",
        ),
        (
            "--source https://a.example/x --stream s --since yesterday",
            2,
            "since",
        ),
        ("--details ~/broken.json", 1, "source"),
        (
            "--details ~/broken.json --source https://a.example/x",
            2,
            "cannot be used with",
        ),
    ] {
        far.connect(options).exits(code).says(told);
    }
    assert!(far.server.calls().is_empty());
    let refused = Far::new(Issuer::new(Decides::No));
    let ran = refused.connect(SOURCE).exits(78);
    ran.says_all(&[
        "the owner did not approve",
        "--source https://registry.example.org",
    ]);
    assert!(!refused.home.path("cache/clients").exists());
}

// TR-22: which way works is said, by the server's documents or where they are silent by asking.
#[test]
fn doctor_says_which_way_works() {
    for issuer in [
        Issuer::new(Decides::Yes),
        Issuer::new(Decides::Yes).undescribed(),
    ] {
        let far = Far::new(issuer);
        let url = far.server.url();
        let ran = far.run(&format!("doctor {url}"), "--json");
        let told = ran.json();
        let findings = told["findings"].as_array().unwrap();
        let sign_in = findings
            .iter()
            .find(|one| one["check"] == "sign-in")
            .unwrap();
        assert_eq!(sign_in["ok"], true, "{sign_in}");
        let connect = format!("pdpp connect {url} --cache-root ~/cache");
        assert_eq!(
            sign_in["message"],
            format!(
                "{url} gives credentials: `{connect} --source ID --stream NAME` shows a link and a code; `{connect}` shows a link for a browser on this machine, where the owner chooses what to grant"
            )
        );
        let probes = far.server.calls();
        assert!(probes.iter().all(|call| call.path != "/oauth/register"));
    }
}
