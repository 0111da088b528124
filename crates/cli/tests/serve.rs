//! A running server, from its first line to its last: who is let in, what it answers, and how it ends.
#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

// Only there does a machine have many addresses of its own.
#[cfg(target_os = "linux")]
#[path = "serve/crowd.rs"]
mod crowd;
mod harness;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use harness::Home;
use harness::server::{PATIENCE, Server, exchange};
use serde_json::Value;

const LETTER: &str =
    "{\"id\":\"a\",\"subject\":\"Overdraft notice\",\"body\":\"The fee is 42 EUR.\"}\n";
/// A home with one letter, and a token to read all its mail.
fn home_with_token() -> (Home, String) {
    let home = Home::with_mail();
    home.import_messages(LETTER).succeeds();
    let args = ["--client", "agent", "--connection", "mail-work", "--json"];
    let granted = home
        .run(&[&["grant", "create"], &args[..]].concat())
        .succeeds()
        .json();
    let token = granted["access_token"].as_str().unwrap().to_owned();
    (home, token)
}

#[test]
fn the_owner_needs_no_token_on_a_socket_nobody_else_can_open() {
    let (home, _) = home_with_token();
    let path = home.data_dir().join("owner.sock");
    // As a killed server leaves it.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let server = Server::start(&home);
    let metadata = fs::metadata(&path).unwrap();
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    let stream = UnixStream::connect(&path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let (status, found) = exchange(stream, "GET /v1/search?q=overdraft", None, "");
    assert_eq!(status, 200, "{found}");
    assert_eq!(found["data"][0]["record_key"], "a");
    drop(server);
}

#[test]
fn a_signal_ends_it_well_with_everything_disclosed_in_the_log() {
    for signal in ["TERM", "INT"] {
        let (home, token) = home_with_token();
        let server = Server::start(&home);
        server.ask("GET /v1/search?q=overdraft", Some(&token), "");
        server.signal(signal);
        let (code, told) = server.ended();
        assert_eq!(code, Some(0), "{signal} {told}");
        assert!(told.contains("pdpp grant create"), "{told}");
        // TR-09: nobody sits at this log, so no code stands in it.
        assert!(!told.contains("code="), "{told}");
        assert!(told.contains("\nSign in: pdpp sign-in"), "{told}");
        assert!(told.contains("/mcp\n"), "{told}");
        assert_eq!(told.lines().count(), 5, "{told}");
        assert!(!home.data_dir().join("owner.sock").exists());
        let grants = home.run(&["grants", "--json"]).succeeds().stdout;
        let id = grants.split('"').find(|part| part.starts_with("grt_"));
        let shown = home.run(&["grant", "show", id.unwrap()]).succeeds();
        assert!(shown.stdout.contains("search"), "{shown:?}");
    }
}

#[test]
fn a_request_that_does_not_end_is_waited_for_until_a_second_signal() {
    let home = Home::with_mail();
    let owner = home.run(&["owner-token"]).succeeds().stdout;
    let mut server = Server::start(&home);
    let mut slow = TcpStream::connect(&server.address).unwrap();
    let token = owner.trim();
    write!(
        slow,
        "POST /v1/ingest/messages HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: 100\r\n\r\n{{"
    )
    .unwrap();
    sleep(Duration::from_millis(300));
    let began = Instant::now();
    server.signal("TERM");
    sleep(Duration::from_millis(300));
    assert!(server.child.try_wait().unwrap().is_none());
    // Signals that come at once count as one.
    while server.child.try_wait().unwrap().is_none() && began.elapsed() < PATIENCE {
        server.signal("TERM");
        sleep(Duration::from_millis(100));
    }
    assert!(began.elapsed() < Duration::from_secs(8));
    assert_eq!(server.ended().0, Some(0));
    assert_eq!(home.messages(), "");
}

#[test]
fn a_second_server_is_told_who_holds_the_directory() {
    let home = Home::with_mail();
    let server = Server::start(&home);
    let holder = format!(
        "error: the data directory ~/data is in use by pdpp serve (process {}). Wait until it ends, or stop it.",
        server.child.id()
    );
    let again = ["serve", "--listen", &server.address];
    home.run(&again).refused(&holder);
    // Whoever was refused has taken nothing away.
    assert!(home.data_dir().join("owner.sock").exists());
    assert_eq!(server.ask("GET /healthz", None, "").0, 200);
}

#[test]
fn an_address_that_cannot_be_taken_is_named() {
    let home = Home::new();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().to_string();
    home.run(&["serve", "--listen", &taken])
        .refused_saying(&[&format!("{taken} is in use by another program"), "--listen"]);
    assert!(!home.data_dir().join("owner.sock").exists());
}

#[test]
fn settings_that_make_no_sense_are_refused_before_anything_is_opened() {
    let home = Home::new();
    for address in ["nonsense", "127.0.0.1", "localhost:x", "example.org:80", ""] {
        let ran = home.run(&["serve", "--listen", address]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(
            ran.stderr.contains("is not an address to listen on"),
            "{ran:?}"
        );
        assert!(ran.stderr.contains("127.0.0.1:7420"), "{ran:?}");
    }
    for url in [
        "example.org",
        "ftp://x",
        "https://",
        "https://x/?q",
        "https://x/part",
        "https://a b",
    ] {
        let ran = home.run(&["serve", "--public-url", url]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("is not a public address"), "{ran:?}");
        assert!(ran.stderr.contains("write it as https://"), "{ran:?}");
    }
    for (name, value) in [("PDPP_LOG", "loud"), ("PDPP_CALLS_PER_MINUTE", "0")] {
        let mut command = home.command(&["serve"]);
        let ran = command.env(name, value).output().unwrap();
        assert_eq!(ran.status.code(), Some(1));
        let told = String::from_utf8(ran.stderr).unwrap();
        assert!(told.contains(&format!("{name} '{value}'")), "{told}");
    }
    assert!(!home.data_dir().exists());
}

#[test]
fn other_machines_are_let_in_only_with_a_password() {
    let home = Home::new();
    for address in ["0.0.0.0:0", "192.0.2.1:7420", "[::]:0"] {
        home.run(&["serve", "--listen", address]).refused_saying(&[
            address,
            "no password",
            "pdpp owner-password",
        ]);
    }
    let with_password = |password: &str, args: &[&str]| {
        let mut command = home.command(args);
        let ran = command
            .env("PDPP_OWNER_PASSWORD", password)
            .output()
            .unwrap();
        (ran.status.code(), String::from_utf8(ran.stderr).unwrap())
    };
    let (code, told) = with_password("short", &["owner-password"]);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("12 characters"), "{told}");
    let (code, told) = with_password("a few good words", &["owner-password"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(!told.contains("good words"), "{told}");
    let listen = [
        "serve",
        "--listen",
        "0.0.0.0:0",
        "--public-url",
        "http://pdpp.example.org",
    ];
    let server = Server::from_command(home.command(&listen));
    assert_eq!(server.address, "pdpp.example.org");
    server.signal("TERM");
    let (code, told) = server.ended();
    assert_eq!(code, Some(0), "{told}");
    assert!(
        told.contains("Console: http://pdpp.example.org/\n"),
        "{told}"
    );
}

#[test]
fn a_code_is_printed_until_a_password_is_set() {
    let home = Home::with_mail();
    let server = Server::start(&home);
    let (status, index) = server.ask("GET /", None, "");
    assert_eq!(
        (status, &index["object"]),
        (200, &"pdpp_discovery_index".into())
    );
    let (status, document) = server.ask("GET /.well-known/oauth-authorization-server", None, "");
    assert_eq!(status, 200);
    assert_eq!(document["client_id_metadata_document_supported"], true);
    let mut command = home.command(&["owner-password"]);
    command.env("PDPP_OWNER_PASSWORD", "a few good words");
    assert!(command.status().unwrap().success());
    server.signal("TERM");
    server.ended();
    let server = Server::start(&home);
    server.signal("TERM");
    let (_, told) = server.ended();
    assert!(!told.contains("code="), "{told}");
}

#[test]
fn the_environment_configures_it_and_the_log_is_json_lines() {
    let home = Home::with_mail();
    let mut command = home.command(&["serve"]);
    command
        .env("PDPP_LISTEN", "localhost:0")
        .env("PDPP_LOG", "info");
    let server = Server::from_command(command);
    server.ask("GET /healthz", None, "");
    server.signal("TERM");
    let (code, told) = server.ended();
    assert_eq!(code, Some(0), "{told}");
    let event = told.lines().find(|line| line.starts_with('{')).unwrap();
    let event: Value = serde_json::from_str(event).unwrap();
    assert_eq!(event["level"], "INFO");
    assert_eq!(event["operation"], "getHealth");

    let mut command = home.command(&["serve"]);
    command
        .env("PDPP_LISTEN", "127.0.0.1:0")
        .env("PDPP_PUBLIC_URL", "http://pdpp.example.org/");
    let server = Server::from_command(command);
    assert_eq!(server.address, "pdpp.example.org");
}

#[test]
fn a_grant_calls_the_tools_as_often_as_the_environment_says() {
    let (home, token) = home_with_token();
    let mut command = home.command(&["serve"]);
    command
        .env("PDPP_LISTEN", "127.0.0.1:0")
        .env("PDPP_CALLS_PER_MINUTE", "1");
    let server = Server::from_command(command);
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let ask = || {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{list}",
            list.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let first = ask();
    assert!(first.starts_with("HTTP/1.1 200 "), "{first}");
    let second = ask();
    assert!(second.starts_with("HTTP/1.1 429 "), "{second}");
    assert!(second.contains("rate_limit_exceeded"), "{second}");
}

#[test]
fn a_revocation_that_was_lost_with_the_log_lets_nobody_in_until_the_owner_has_confirmed() {
    // TR-34: a store that went back in time does not serve clients until the owner has confirmed.
    let (home, token) = home_with_token();
    let server = Server::start(&home);
    let read = |server: &Server| server.ask("GET /v1/streams", Some(&token), "");
    assert_eq!(read(&server).0, 200);
    let grants = home.run(&["grants", "--json"]).succeeds().json();
    let grant = grants[0]["id"].as_str().unwrap().to_owned();
    home.run(&["grant", "revoke", &grant]).succeeds();
    assert_eq!(read(&server).0, 403);
    server.signal("KILL");
    server.ended();
    fs::remove_file(home.data_dir().join("records.db-wal")).unwrap();

    let server = Server::start(&home);
    let refused = (503, Value::from("store_rolled_back"));
    let code = |(status, body): (u16, Value)| (status, body["error"]["code"].clone());
    assert_eq!(code(read(&server)), refused);
    assert_eq!(code(server.ask("GET /readyz", None, "")), refused);
    assert_eq!(server.ask("GET /healthz", None, "").0, 200);
    let initialize = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
    assert_eq!(
        code(server.ask("POST /mcp", Some(&token), initialize)),
        refused
    );
    let (status, body) = server.ask("POST /oauth/token", None, "grant_type=refresh_token");
    assert_eq!(
        (status, &body["error"]),
        (503, &Value::from("temporarily_unavailable"))
    );
    for page in [
        "GET /",
        "GET /sign-in",
        "GET /oauth/authorize?client_id=x",
        "POST /sign-in",
    ] {
        let (status, body) = server.ask(page, None, "");
        assert_eq!(status, 503, "{page}");
        assert!(body.to_string().contains("pdpp doctor"), "{page}: {body}");
    }
    owner_is_told(&home);
    let told = home.run(&["grants", "--json"]).succeeds().json();
    assert_eq!(told[0]["state"], "live", "the revocation came undone");
    home.run(&["grant", "revoke", &grant]).succeeds();
    assert_eq!(code(read(&server)), refused, "until it is confirmed");

    let accepted = home.run(&["doctor", "--accept-rollback"]);
    assert!(
        accepted
            .stderr
            .contains("Accepted: the store went back in time"),
        "{accepted:?}"
    );
    assert!(!accepted.stdout.contains("FAIL"), "{accepted:?}");
    assert_eq!(read(&server).0, 403, "revoked, and told so again");
    assert_eq!(server.ask("GET /readyz", None, "").0, 200);
}

// TR-18: a lost link is replaced while the server runs, with a password or without.
#[test]
fn sign_in_prints_a_fresh_link_while_a_server_runs() {
    let home = Home::with_mail();
    home.run(&["sign-in"])
        .refused_saying(&["no server runs", "pdpp serve"]);
    let server = Server::start(&home);
    let port = server.address.rsplit(':').next().unwrap();
    let console = format!("http://pdpp.localhost:{port}/sign-in?code=pdpp_signin_");
    let first = home.run(&["sign-in"]).succeeds().stdout;
    assert!(first.starts_with(&console), "{first}");
    let json = home.run(&["sign-in", "--json"]).succeeds().stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    let second = json["link"].as_str().unwrap();
    assert!(second.starts_with(&console) && second != first.trim());
    let page = first.trim().strip_prefix("http://pdpp.localhost:").unwrap();
    let path = page.strip_prefix(port).unwrap();
    let (status, _) = server.ask(&format!("GET {path}"), None, "");
    assert_eq!(status, 303, "the pages are at their own host");
}

// TR-07: without a public address, those of this machine are its hosts.
#[test]
fn a_server_that_listens_everywhere_goes_by_its_own_addresses() {
    let home = Home::new();
    let mut command = home.command(&["serve", "--listen", "0.0.0.0:0"]);
    let server = Server::from_command({
        command.env("PDPP_OWNER_PASSWORD", "a few good words");
        command
    });
    let (host, port) = server.address.rsplit_once(':').unwrap();
    assert!(
        host.parse::<std::net::Ipv4Addr>()
            .is_ok_and(|own| !own.is_unspecified())
    );
    for (host, status) in [
        ("localhost", 401),
        ("evil.example", 421),
        ("192.0.2.200", 421),
    ] {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        write!(
            stream,
            "GET /v1/streams HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
    }
}

// TR-01: nobody else answers for the pages at the other loopback address, and where applications wait they are not.
#[test]
fn the_pages_are_where_nobody_else_is() {
    let home = Home::new();
    if let Ok(other) = TcpListener::bind("[::1]:0") {
        let port = other.local_addr().unwrap().port();
        let ran = home.run(&["serve", "--listen", &format!("127.0.0.1:{port}")]);
        ran.refused_saying(&[&format!("[::1]:{port} is in use by another program")]);
    }
    for url in [
        "http://127.0.0.1:7420",
        "http://localhost:7420",
        "http://[::1]:7420",
    ] {
        let ran = home.run(&["serve", "--console-url", url]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("pdpp.localhost"), "{ran:?}");
    }
}

/// The owner's own commands work, and say what happened.
fn owner_is_told(home: &Home) {
    let doctor = home.run(&["doctor"]);
    assert_eq!(doctor.code, Some(1));
    for words in [
        "FAIL  history",
        "went back in time",
        "transaction",
        "doctor --accept-rollback",
    ] {
        let flat = doctor
            .stdout
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&words), "{words} in {}", doctor.stdout);
    }
    assert_eq!(home.messages().lines().count(), 1);
}
