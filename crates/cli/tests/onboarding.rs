//! The way in: `pdpp connect`, `pdpp setup` and `pdpp doctor`, against a server that answers as told and against our own.
#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

mod harness;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use harness::Home;
use harness::server::Server;
use serde_json::{Value, json};

/// A server that knows the device flow and one read. It ends with the test program.
struct Fake {
    url: String,
    polls: Arc<AtomicUsize>,
}

/// How the owner decides.
#[derive(Clone, Copy, PartialEq)]
enum Decides {
    Yes,
    No,
}

impl Fake {
    fn start(decides: Decides) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let polls = Arc::new(AtomicUsize::new(0));
        let (own, count) = (url.clone(), Arc::clone(&polls));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // A client that went away is not this test's.
                let _ = answer(stream.unwrap(), &own, &count, decides);
            }
        });
        Self { url, polls }
    }
}

fn answer(mut stream: TcpStream, url: &str, polls: &AtomicUsize, decides: Decides) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut line, mut head) = (String::new(), String::new());
    reader.read_line(&mut line).ok()?;
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        if header.trim().is_empty() {
            break;
        }
        let lower = header.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        head.push_str(&header);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let (status, extra, body) = reply(&path, &head, url, polls, decides);
    let body = body.to_string();
    let size = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-type: application/json\r\n{extra}content-length: {size}\r\n\r\n{body}"
    )
    .ok()
}

fn reply(
    path: &str,
    head: &str,
    url: &str,
    polls: &AtomicUsize,
    decides: Decides,
) -> (u16, String, Value) {
    let plain = |status, body| (status, String::new(), body);
    match path {
        "/.well-known/oauth-protected-resource" => plain(
            200,
            json!({"resource": url, "authorization_servers": [url]}),
        ),
        "/.well-known/oauth-authorization-server" => plain(
            200,
            json!({"issuer": url, "token_endpoint": format!("{url}/token"), "registration_endpoint": format!("{url}/register"),
                   "device_authorization_endpoint": format!("{url}/device")}),
        ),
        "/register" => plain(201, json!({"client_id": "cli-1"})),
        "/device" => plain(
            200,
            json!({"device_code": "secret-device", "user_code": "BCDF-GHJK", "verification_uri": format!("{url}/go"),
                   "expires_in": 600, "interval": 1}),
        ),
        "/token" => match (polls.fetch_add(1, Ordering::SeqCst), decides) {
            (0, _) => plain(400, json!({"error": "authorization_pending"})),
            (_, Decides::No) => plain(400, json!({"error": "access_denied"})),
            (_, Decides::Yes) => plain(
                200,
                json!({"access_token": "sesame-open", "token_type": "Bearer", "expires_in": 3600, "grant_id": "grt_1"}),
            ),
        },
        _ if !head.contains("sesame-open") => {
            let challenge = format!("www-authenticate: Bearer resource_metadata=\"{url}/x\"\r\n");
            (
                401,
                challenge,
                json!({"error": {"code": "authentication_error", "message": "no"}}),
            )
        }
        _ => plain(
            200,
            json!({"object": "schema", "detail": "compact", "stream_count": 2, "connectors": [
                {"connector_key": "k", "streams": [{"name": "notes"}, {"name": "cards"}]}]}),
        ),
    }
}

#[test]
fn connecting_shows_a_link_waits_stores_and_reads_once() {
    let home = Home::new();
    let fake = Fake::start(Decides::Yes);
    let root = home.path("cache").to_str().unwrap().to_owned();
    let ran = home
        .run(&["connect", &fake.url, "--cache-root", &root])
        .succeeds();
    assert_eq!(ran.stdout, "");
    let (url, host) = (
        &fake.url,
        fake.url.replace("http://127.0.0.1:", "127.0.0.1_"),
    );
    assert_eq!(
        ran.stderr,
        format!(
            "Open this page and approve:
  {url}/go
The code shown there must be: BCDF-GHJK
Waiting for at most 10 minutes.
Connected to {url}. The credential is in ~/cache/clients/{host}.json.
It may read: cards, notes.
Next: give an agent this command as an MCP server, see `pdpp setup`
  pdpp mcp --provider-url {url} --cache-root ~/cache
"
        )
    );
    assert!(fake.polls.load(Ordering::SeqCst) >= 2);
    let file = home.path(&format!("cache/clients/{host}.json"));
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    // The credential reads at once, and all is well.
    let shown = home.run(&["schema", "--provider-url", url, "--cache-root", &root]);
    assert!(shown.succeeds().stdout.contains("notes"));
    let well = home.run(&["doctor", url, "--cache-root", &root]).succeeds();
    assert_eq!(
        well.stdout,
        format!(
            "ok    address    {url}
ok    metadata   the server describes itself
ok    sign-in    {url} gives credentials: `pdpp connect {url} --cache-root ~/cache` shows a link and a code, and the owner chooses what to grant
ok    challenge  strangers are refused and told where to sign in
ok    read       the stored credential may read 2 streams
"
        )
    );
    let json = home
        .run(&["connect", url, "--cache-root", &root, "--json"])
        .succeeds();
    assert_eq!(json.json()["streams"], json!(["cards", "notes"]));
    assert!(!json.stdout.contains("sesame") && !json.stderr.contains("secret-device"));
}

#[test]
fn an_owner_who_refuses_leaves_no_credential() {
    let home = Home::new();
    let fake = Fake::start(Decides::No);
    let root = home.path("cache").to_str().unwrap().to_owned();
    let ran = home.run(&["connect", &fake.url, "--cache-root", &root]);
    assert_eq!(ran.code, Some(78), "{ran:?}");
    assert!(ran.stderr.contains("the owner did not approve"), "{ran:?}");
    assert!(!home.path("cache/clients").exists());
    for (url, code) in [("http://127.0.0.1:9", 69), ("ftp://x", 2)] {
        for command in ["connect", "doctor"] {
            assert_eq!(home.run(&[command, url]).code, Some(code), "{url}");
        }
    }
}

#[test]
fn a_server_without_a_credential_is_told_with_the_remedy() {
    let home = Home::with_mail();
    let server = Server::start(&home);
    let url = format!("http://{}", server.address);
    let root = home.path("cache").to_str().unwrap().to_owned();
    let ran = home.run(&["doctor", &url, "--cache-root", &root, "--json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let told = ran.json();
    let finding = |check: &str| {
        let all = told["findings"].as_array().unwrap();
        all.iter()
            .find(|one| one["check"] == check)
            .unwrap()
            .clone()
    };
    assert_eq!(told["ok"], false);
    for check in ["address", "metadata", "clock", "challenge"] {
        assert_eq!(finding(check)["ok"], true, "{told}");
    }
    assert_eq!(finding("read")["ok"], false);
    assert_eq!(
        finding("read")["remedy"],
        format!("run `pdpp connect {url} --cache-root ~/cache`")
    );
    // Whatever is wrong comes with something to do.
    for one in told["findings"].as_array().unwrap() {
        assert_eq!(
            one["ok"].as_bool().unwrap(),
            one.get("remedy").is_none(),
            "{one}"
        );
    }
    let gone = home.run(&["doctor", "http://127.0.0.1:9", "--cache-root", &root]);
    assert_eq!(gone.code, Some(69));
    assert!(
        gone.stdout.contains("FAIL  metadata")
            && gone.stdout.contains("do: check that the server runs"),
        "{gone:?}"
    );
}

#[test]
fn the_local_data_is_examined_with_and_without_a_server() {
    let home = Home::new();
    let nothing = home.run(&["doctor"]);
    assert_eq!(
        (nothing.code, nothing.stdout.as_str()),
        (
            Some(1),
            "FAIL  data  there is nothing at ~/data yet\n            do: name another folder with --data-dir, or begin: pdpp declare FILE, or pdpp serve --demo\n"
        )
    );
    let home = Home::with_mail();
    let well = home.run(&["doctor"]).succeeds().stdout;
    for line in [
        "ok    data     ~/data, for this user only\n",
        "ok    server   none runs; commands open the data themselves\n",
        "ok    index    can be searched, and holds every record\n",
    ] {
        assert!(well.contains(line), "{well}");
    }
    let server = Server::start(&home);
    let well = home.run(&["doctor"]).succeeds().stdout;
    assert!(
        well.contains("ok    server   runs, and answers on its socket\n"),
        "{well}"
    );
    drop(server);
    let killed = home.run(&["doctor"]);
    assert_eq!(killed.code, Some(1));
    assert!(
        killed
            .stdout
            .contains("FAIL  server   ended without removing its socket"),
        "{killed:?}"
    );
    fs::set_permissions(home.data_dir(), fs::Permissions::from_mode(0o755)).unwrap();
    let open = home.run(&["doctor"]).stdout;
    assert!(
        open.contains("FAIL  data     ~/data can be looked into by other users"),
        "{open}"
    );
    assert!(open.contains("do: chmod 700 '~/data'"), "{open}");
}

#[test]
fn setup_prints_one_recommended_way_first() {
    // SU-01, SU-03
    let home = Home::new();
    assert_eq!(
        home.run(&["setup", "claude-code"]).succeeds().stdout,
        "Claude Code

Recommended
  claude mcp add --transport http pdpp http://127.0.0.1:7420/mcp
  Then say /mcp in Claude Code, choose pdpp and sign in. There you choose what it may read.

Other ways
  Over standard input and output:
  pdpp setup claude-code --connection ID --data-dir ~/data
  That lets it read the connection, all of it, and prints this again with the id of the grant instead of GRANT.
  To let it read less: pdpp grant create --client 'Claude Code' --connection ID --stream NAME --data-dir ~/data
  claude mcp add pdpp -- pdpp mcp --grant GRANT --data-dir ~/data
"
    );
    for name in [
        "Claude Desktop",
        "codex",
        "ChatGPT",
        "cursor",
        "vs-code",
        "VSCode",
        "gemini-cli",
    ] {
        let text = home.run(&["setup", name]).succeeds().stdout;
        assert!(text.contains("\nRecommended\n"), "{text}");
    }
    let far = home
        .run(&["setup", "--provider-url", "https://pdpp.example.org"])
        .succeeds()
        .stdout;
    assert!(far.contains("\n  https://pdpp.example.org/mcp\n"), "{far}");
    assert!(
        far.contains("pdpp mcp --provider-url https://pdpp.example.org"),
        "{far}"
    );
    let elsewhere = home
        .command(&["setup"])
        .env("PDPP_LISTEN", "127.0.0.1:8000")
        .output();
    let elsewhere = String::from_utf8(elsewhere.unwrap().stdout).unwrap();
    assert!(
        elsewhere.contains("\n  http://127.0.0.1:8000/mcp\n"),
        "{elsewhere}"
    );
    home.run(&["setup", "kodex"]).refused(
        "error: there is no setup for 'kodex'\nhint: did you mean 'codex'?\nhint: known: claude-code, claude-desktop, codex, chatgpt, cursor, vs-code, gemini-cli; `pdpp setup` alone suits any other",
    );
}

#[test]
fn the_documents_recommend_one_way_and_name_no_profile() {
    // SU-01, SU-02, SU-04, SU-05
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let commands = fs::read_to_string(format!("{root}/docs/cli.md")).unwrap();
    let (_, section) = commands.split_once("### Recommended\n").unwrap();
    let (recommended, others) = section.split_once("### Other ways\n").unwrap();
    assert_eq!(recommended.matches("/mcp`").count(), 1, "{recommended}");
    assert!(others.contains("`pdpp mcp`"), "{others}");
    let words: Vec<&str> = recommended.split(|c: char| !c.is_alphanumeric()).collect();
    for word in [
        "core", "events", "full", "profile", "toolset", "token", "bearer", "env",
    ] {
        assert!(!words.contains(&word), "{word} in {recommended}");
    }
    let home = Home::new();
    let configuration = fs::read_to_string(format!("{root}/docs/configuration.md")).unwrap();
    let readme = fs::read_to_string(format!("{root}/README.md")).unwrap();
    let mut texts = vec![commands, configuration, readme];
    for command in [
        "mcp", "connect", "setup", "doctor", "schema", "search", "query", "fetch", "read",
    ] {
        let help = home.run(&[command, "--help"]).succeeds();
        texts.push(help.stdout + &help.stderr);
    }
    for text in texts {
        let text = text.to_lowercase();
        for word in ["profile", "toolset"] {
            assert!(!text.contains(word), "{word} in {text}");
        }
    }
}
