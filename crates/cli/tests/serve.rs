//! A running server, from its first line to its last: who is let in, what it answers, and how it ends.

// Only there does a machine have many addresses of its own.
#[cfg(target_os = "linux")]
mod crowd;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::harness::server::{PATIENCE, Server, connect, exchange};
use crate::harness::{Home, signal};
use serde_json::Value;

const LETTER: &str =
    "{\"id\":\"a\",\"subject\":\"Overdraft notice\",\"body\":\"The fee is 42 EUR.\"}\n";
/// A home with one letter, the id of a grant over its mail, and its token.
fn granted() -> (Home, String, String) {
    let home = Home::with_mail();
    home.import_messages(LETTER).succeeds();
    let (id, token) = home.grant("--connection mail-work");
    (home, id, token)
}

#[test]
fn the_owner_needs_no_token_on_a_socket_nobody_else_can_open() {
    let home = granted().0;
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
fn a_log_that_nobody_reads_keeps_no_request_waiting() {
    let home = Home::new();
    let mut command = home.command("serve --listen 127.0.0.1:0");
    let command = command.env("PDPP_LOG", "info").stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut unread = BufReader::with_capacity(1, child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("API: ") {
        line.clear();
        assert!(unread.read_line(&mut line).unwrap() > 0);
    }
    let address = line.trim().strip_prefix("API: http://").unwrap();
    let address = address.strip_suffix("/v1").unwrap();
    let mut stream = connect(address);
    // A pipe has room for a few hundred lines.
    for _ in 0..1_000 {
        let asked = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(asked.as_bytes()).unwrap();
        let mut answer = [0; 2_048];
        assert!(stream.read(&mut answer).unwrap() > 0);
        assert!(answer.starts_with(b"HTTP/1.1 200"));
    }
    signal(child.id(), "TERM");
    assert!(child.wait().unwrap().success());
    drop(unread);
}

#[test]
fn a_signal_ends_it_well_with_everything_disclosed_in_the_log() {
    for signal in ["TERM", "INT"] {
        let (home, id, token) = granted();
        let server = Server::start(&home);
        server.ask("GET /v1/search?q=overdraft", Some(&token), "");
        server.signal(signal);
        let (code, told) = server.ended();
        assert_eq!(code, Some(0), "{signal} {told}");
        for line in ["pdpp grant create", "\nSign in: pdpp sign-in", "/mcp\n"] {
            assert!(told.contains(line), "{told}");
        }
        // TR-09: nobody sits at this log, so no code stands in it.
        assert!(!told.contains("code="), "{told}");
        assert_eq!(told.lines().count(), 5, "{told}");
        assert!(!home.data_dir().join("owner.sock").exists());
        home.run(format!("grant show {id}"))
            .succeeds()
            .shows("search");
    }
}

#[test]
fn a_request_that_does_not_end_is_waited_for_until_a_second_signal() {
    let home = Home::with_mail();
    let owner = home.run("owner-token").succeeds().stdout;
    let mut server = Server::start(&home);
    let _endless = server.endless_request(&owner);
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
fn an_address_that_cannot_be_taken_is_named() {
    let home = Home::new();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().to_string();
    home.run(format!("serve --listen {taken}"))
        .refused_saying(&[&format!("{taken} is in use by another program"), "--listen"]);
    assert!(!home.data_dir().join("owner.sock").exists());
}

#[test]
fn settings_that_make_no_sense_are_refused_before_anything_is_opened() {
    let home = Home::new();
    for address in ["nonsense", "127.0.0.1", "localhost:x", "example.org:80", ""] {
        let ran = home.run(format!("serve --listen '{address}'")).exits(2);
        ran.says_all(&["is not an address to listen on", "127.0.0.1:7420"]);
    }
    for url in [
        "example.org",
        "ftp://x",
        "https://",
        "https://x/?q",
        "https://x/part",
        "https://a b",
    ] {
        let ran = home.run(format!("serve --public-url '{url}'")).exits(2);
        ran.says_all(&["is not a public address", "write it as https://"]);
    }
    // TR-01: where applications wait, the pages are not.
    for host in ["127.0.0.1", "localhost", "[::1]"] {
        let ran = home.run(format!("serve --console-url http://{host}:7420"));
        ran.exits(2).says("pdpp.localhost");
    }
    for (name, value) in [("PDPP_LOG", "loud"), ("PDPP_CALLS_PER_MINUTE", "0")] {
        let ran = home.ran(home.command("serve").env(name, value));
        ran.refused_saying(&[&format!("{name} '{value}'")]);
    }
    assert!(!home.data_dir().exists());
}

#[test]
fn other_machines_are_let_in_only_with_a_password() {
    let home = Home::new();
    for address in ["0.0.0.0:0", "192.0.2.1:7420", "[::]:0"] {
        let ran = home.run(format!("serve --listen {address}"));
        ran.refused_saying(&[address, "no password", "pdpp owner-password"]);
    }
    let set_password = |password: &str| {
        let mut command = home.command("owner-password");
        home.ran(command.env("PDPP_OWNER_PASSWORD", password))
    };
    set_password("short").refused_saying(&["12 characters"]);
    set_password("a few good words")
        .succeeds()
        .hides("good words");
    let listen = "serve --listen 0.0.0.0:0 --public-url http://pdpp.example.org";
    let server = Server::from_command(home.command(listen));
    assert_eq!(server.address, "pdpp.example.org");
    let told = server.stop();
    let console = "Console: http://pdpp.example.org/\n";
    assert!(told.contains(console), "{told}");
}

#[test]
fn the_environment_configures_it_and_the_log_is_json_lines() {
    let (home, _, token) = granted();
    let env = [
        ("PDPP_LISTEN", "localhost:0"),
        ("PDPP_LOG", "info"),
        ("PDPP_CALLS_PER_MINUTE", "1"),
    ];
    let server = Server::with_env(&home, "serve", &env);
    server.ask("GET /healthz", None, "");
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let list = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{list}",
        list.len()
    );
    for status in [200, 429] {
        let answer = server.raw(&list);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
    }
    let told = server.stop();
    let event = told.lines().find(|line| line.starts_with('{')).unwrap();
    let event: Value = serde_json::from_str(event).unwrap();
    assert_eq!(event["level"], "INFO");
    assert_eq!(event["operation"], "getHealth");

    let env = [
        ("PDPP_LISTEN", "127.0.0.1:0"),
        ("PDPP_PUBLIC_URL", "http://pdpp.example.org/"),
    ];
    let server = Server::with_env(&home, "serve", &env);
    assert_eq!(server.address, "pdpp.example.org");
}

#[test]
fn a_revocation_that_was_lost_with_the_log_lets_nobody_in_until_the_owner_has_confirmed() {
    // TR-34: a store that went back in time does not serve clients until the owner has confirmed.
    let (home, grant, token) = granted();
    let server = Server::start(&home);
    let read = |server: &Server| server.ask("GET /v1/streams", Some(&token), "");
    assert_eq!(read(&server).0, 200);
    home.run(format!("grant revoke {grant}")).succeeds();
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
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let asked = server.ask("POST /mcp", Some(&token), ping);
    assert_eq!(code(asked), refused);
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
    let told = home.run("grants --json").succeeds().json();
    assert_eq!(told[0]["state"], "live", "the revocation came undone");
    home.run(format!("grant revoke {grant}")).succeeds();
    assert_eq!(code(read(&server)), refused, "until it is confirmed");

    let accepted = home.run("doctor --accept-rollback");
    accepted.says("Accepted: the store went back in time");
    accepted.hides("FAIL");
    assert_eq!(read(&server).0, 403, "revoked, and told so again");
    assert_eq!(server.ask("GET /readyz", None, "").0, 200);
}

// TR-18: a lost link is replaced while the server runs, with a password or without.
#[test]
fn sign_in_prints_a_fresh_link_while_a_server_runs() {
    let home = Home::with_mail();
    let none = home.run("sign-in");
    none.refused_saying(&["no server runs", "pdpp serve"]);
    let server = Server::start(&home);
    let port = server.address.rsplit(':').next().unwrap();
    let console = format!("http://pdpp.localhost:{port}");
    let first = home.run("sign-in").succeeds().stdout;
    let second = home.run("sign-in --json").succeeds().text("link");
    for link in [&first, &second] {
        assert!(
            link.starts_with(&format!("{console}/sign-in?code=pdpp_signin_")),
            "{link}"
        );
    }
    assert_ne!(first.trim(), second);
    let page = first.trim().strip_prefix(&console).unwrap();
    let (status, _) = server.ask(&format!("GET {page}"), None, "");
    assert_eq!(status, 303, "the pages are at their own host");
    // On request it is opened, too, and where that fails the link stands there all the same.
    let programs = home.path("programs");
    fs::create_dir(&programs).unwrap();
    let mut command = home.command("sign-in --open");
    home.ran(command.env("PATH", &programs))
        .says("xdg-open could not open it");
    let opener = programs.join("xdg-open");
    let link = home.path("link");
    let script = format!("#!/bin/sh\nprintf %s \"$1\" > '{}'\n", link.display());
    fs::write(&opener, script).unwrap();
    let mode = PermissionsExt::from_mode(0o755);
    fs::set_permissions(&opener, mode).unwrap();
    let mut command = home.command("sign-in --open");
    let ran = home.ran(command.env("PATH", &programs)).succeeds();
    assert_eq!(fs::read_to_string(link).unwrap(), ran.stdout.trim());
}

// TR-07: without a public address, those of this machine are its hosts.
#[test]
fn a_server_that_listens_everywhere_goes_by_its_own_addresses() {
    let home = Home::new();
    let password = [("PDPP_OWNER_PASSWORD", "a few good words")];
    let mut server = Server::with_env(&home, "serve --listen 0.0.0.0:0", &password);
    let (host, port) = server.address.rsplit_once(':').unwrap();
    let own: std::net::Ipv4Addr = host.parse().unwrap();
    assert!(!own.is_unspecified());
    let port = port.to_owned();
    server.address = format!("127.0.0.1:{port}");
    for (host, status) in [
        ("localhost", 401),
        ("evil.example", 421),
        ("192.0.2.200", 421),
    ] {
        let answer = server.raw(&format!(
            "GET /v1/streams HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n"
        ));
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
    }
}

// TR-01: nobody else answers for the pages at the other loopback address.
#[test]
fn the_pages_are_where_nobody_else_is() {
    let home = Home::new();
    if let Ok(other) = TcpListener::bind("[::1]:0") {
        let port = other.local_addr().unwrap().port();
        let ran = home.run(format!("serve --listen 127.0.0.1:{port}"));
        ran.refused_saying(&[&format!("[::1]:{port} is in use by another program")]);
    }
}

/// The owner's own commands work, and say what happened.
fn owner_is_told(home: &Home) {
    let doctor = home.run("doctor").exits(1).stdout;
    let flat = doctor.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "FAIL history",
        "went back in time",
        "transaction",
        "doctor --accept-rollback",
    ] {
        assert!(flat.contains(words), "{words} in {doctor}");
    }
    assert_eq!(home.messages().lines().count(), 1);
}
