//! `pdpp connect`, reads and `pdpp doctor` against a server that gives tokens as the reference does.
#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

mod harness;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use harness::Home;
use serde_json::{Value, json};
use testkit::fake::{Decides, FakeServer, Issuer, fixtures};

const SOURCE: [&str; 4] = [
    "--source",
    "https://registry.example.org/connectors/shop",
    "--stream",
    "orders",
];

/// A home, the server, and who gives its tokens.
struct Far {
    home: Home,
    server: FakeServer,
    issuer: Issuer,
    root: String,
}

impl Far {
    fn new(issuer: Issuer) -> Self {
        let home = Home::new();
        let root = home.path("cache").to_str().unwrap().to_owned();
        Self {
            server: FakeServer::start(fixtures::multi().issuing(issuer.clone())),
            home,
            issuer,
            root,
        }
    }

    fn run(&self, args: &[&str], options: &[&str]) -> harness::Ran {
        let place = ["--cache-root", &self.root];
        self.home.run(&[args, &place, options].concat())
    }

    /// `pdpp connect` with these options.
    fn connect(&self, options: &[&str]) -> harness::Ran {
        self.run(&["connect", self.server.url()], options)
    }

    fn read(&self) -> harness::Ran {
        let query = ["query", "orders", "--provider-url", self.server.url()];
        self.run(&query, &["--connection-id", "cin_aaa", "--json"])
    }

    /// `pdpp connect`, waiting for the browser, and the link it printed.
    fn connecting(&self, options: &[&str]) -> (Child, String) {
        let place = ["connect", self.server.url(), "--cache-root", &self.root];
        let mut command = self.home.command(&[&place, options].concat());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        told.read_line(&mut line).unwrap();
        assert_eq!(
            line,
            "Open this page in a browser on this machine and approve:\n"
        );
        line.clear();
        told.read_line(&mut line).unwrap();
        child.stderr = Some(told.into_inner());
        (child, line.trim().to_owned())
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
    let mut stream = TcpStream::connect(host).unwrap();
    write!(
        stream,
        "GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
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
    let more = [
        "--connection",
        "cin_aaa",
        "--fields",
        "id,total",
        "--since",
        "2026-01-01",
    ];
    let ran = far.connect(&[&SOURCE[..], &more].concat()).succeeds();
    assert!(
        ran.stderr.contains("The code shown there must be: 7AB3F0"),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("It may read: "), "{ran:?}");
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
        json!([{"type": "https://pdpp.dev/data-access", "source": {"id": SOURCE[1]},
                "purpose_code": "https://pdpp.dev/purpose/agent_context", "access_mode": "continuous",
                "streams": [{"instance_ids": ["cin_aaa"], "fields": ["id", "total"],
                    "time_range": {"since": "2026-01-01"}, "name": "orders"}]}])
    );
    assert_eq!(far.kept()["credential"]["pdpp_token_kind"], "client");
    assert_eq!(far.read().code, Some(0));
}

// TR-22, TR-23: a browser brings the code back; what it gave is renewed where the server says so in its own words.
#[test]
fn a_browser_on_this_machine_brings_the_code() {
    let far = Far::new(Issuer::new(Decides::Yes));
    let (child, link) = far.connecting(&[&SOURCE[..], &["--browser"]].concat());
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
    assert_eq!(far.read().code, Some(0));
    far.issuer.end_tokens();
    let read = far.read();
    assert_eq!(read.code, Some(0), "{read:?}");
    assert_ne!(
        far.kept()["credential"]["refresh_token"],
        kept["credential"]["refresh_token"]
    );
    far.issuer.revoke();
    let read = far.read();
    assert_eq!(read.code, Some(1), "{read:?}");
    assert!(read.stderr.contains("Grant has been revoked"), "{read:?}");
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
        let (child, link) = far.connecting(&[]);
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
    let broken = far.home.file(
        "broken.json",
        "[{\"type\": \"https://pdpp.dev/data-access\"}]",
    );
    for (options, code, told) in [
        (&["--source", "shop"][..], 2, "is no id of a source"),
        (&["--stream", "orders"], 2, "--source"),
        (
            &[
                "--source",
                "https://a.example/x",
                "--source",
                "https://a.example/y",
                "--stream",
                "s",
            ],
            2,
            "one source",
        ),
        (
            &[
                "--source",
                "https://a.example/x",
                "--stream",
                "s",
                "--since",
                "yesterday",
            ],
            2,
            "since",
        ),
        (&["--details", &broken], 1, "source"),
        (
            &["--details", &broken, "--source", "https://a.example/x"],
            2,
            "cannot be used with",
        ),
    ] {
        let ran = far.connect(options);
        assert_eq!(ran.code, Some(code), "{options:?} {ran:?}");
        assert!(ran.stderr.contains(told), "{options:?} {ran:?}");
    }
    assert!(far.server.calls().is_empty());
    let refused = Far::new(Issuer::new(Decides::No));
    let ran = refused.connect(&SOURCE);
    assert_eq!(ran.code, Some(78), "{ran:?}");
    assert!(ran.stderr.contains("the owner did not approve"), "{ran:?}");
    assert!(
        ran.stderr.contains("--source https://registry.example.org"),
        "{ran:?}"
    );
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
        let ran = far.run(&["doctor", url], &["--json"]);
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
