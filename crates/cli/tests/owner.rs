//! Commands beside a running server: what they change holds at once, and what goes wrong between the two is told.
#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

mod harness;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use harness::server::{PATIENCE, Server, exchange};
use harness::{Home, MAIL, Ran};
use serde_json::Value;

/// Messages of two years, the later one with more in it than is granted.
const LETTERS: &str = r#"{"id":"a","subject":"Winter","body":"the secret of winter","sent_at":"2025-01-05T00:00:00Z"}
{"id":"b","subject":"Summer","body":"the secret of summer","sent_at":"2026-06-05T00:00:00Z"}
{"id":"c","subject":"Autumn","body":"the secret of autumn","sent_at":"2026-10-05T00:00:00Z"}
"#;

/// A home whose messages can be granted by time.
fn dated_home() -> Home {
    let home = Home::new();
    let mail = MAIL.replace(
        "\"cursor_field\": \"sent_at\"",
        "\"cursor_field\": \"sent_at\", \"consent_time_field\": \"sent_at\"",
    );
    let file = home.file("mail.json", mail);
    home.run(&["declare", &file]).succeeds();
    home.run(&["connections", "add", "mail", "--name", "Work"])
        .succeeds();
    home.import_messages(LETTERS).succeeds();
    home
}

/// Issues a grant; gives its id and token.
fn grant(home: &Home, args: &[&str]) -> (String, String) {
    let fixed = ["grant", "create", "--client", "agent", "--json"];
    let connection = ["--connection", "mail-work"];
    let json = home
        .run(&[&fixed, connection.as_slice(), args].concat())
        .succeeds()
        .json();
    let text = |name: &str| json[name].as_str().unwrap().to_owned();
    (text("grant_id"), text("access_token"))
}

/// An import over the pipe that has acknowledged one line and waits for the next.
fn import_under_way(home: &Home) -> (Child, ChildStdin, BufReader<ChildStderr>) {
    let args = ["import", "-", "--as", "mail/messages", "-v"];
    let mut import = home
        .command(&[&args, ["--batch-lines", "1"].as_slice()].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = import.stdin.take().unwrap();
    stdin
        .write_all(b"{\"id\":\"typed\",\"subject\":\"typewriter\"}\n")
        .unwrap();
    let mut stderr = BufReader::new(import.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert_eq!(line, "acknowledged 1\n");
    (import, stdin, stderr)
}

fn end(mut child: Child, mut stderr: BufReader<ChildStderr>) -> (Option<i32>, String) {
    let code = child.wait().unwrap().code();
    let mut told = String::new();
    stderr.read_to_string(&mut told).unwrap();
    (code, told)
}

fn over_socket(home: &Home, request: &str) -> (u16, Value) {
    let stream = UnixStream::connect(home.data_dir().join("owner.sock")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    exchange(stream, request, None, "")
}

#[test]
fn a_grant_made_beside_the_server_reads_at_once_and_ends_at_once() {
    let home = dated_home();
    let server = Server::start(&home);
    let (id, token) = grant(&home, &[]);
    let read = || server.ask("GET /v1/search?q=winter", Some(&token), "");
    assert_eq!(read().0, 200);
    // What was read a moment ago is in the log the owner sees.
    let shown = home.run(&["grant", "show", &id]).succeeds().stdout;
    assert!(shown.contains("search: "), "{shown}");
    home.run(&["grants", "verify"]).succeeds();
    home.run(&["grant", "revoke", &id]).succeeds();
    let (status, refusal) = read();
    assert_eq!(status, 403, "{refusal}");
    assert_eq!(refusal["error"]["code"], "grant_revoked");
}

#[test]
fn what_is_removed_or_purged_beside_the_server_is_gone_for_its_readers() {
    let home = dated_home();
    let server = Server::start(&home);
    let (_, token) = grant(&home, &[]);
    let found = |word: &str| {
        let request = format!("GET /v1/search?q={word}");
        let (status, page) = server.ask(&request, Some(&token), "");
        (status, page["data"].as_array().map(Vec::len))
    };
    home.import_messages("{\"key\":\"a\",\"op\":\"delete\"}\n")
        .succeeds();
    assert_eq!(found("winter"), (200, Some(0)));
    let purged = home.run(&["purge", "--json"]).succeeds().stdout;
    assert_eq!(
        purged,
        "{\"tombstones\":1,\"blobs\":0,\"log_entries\":0,\"versions\":0}\n"
    );
    home.run(&["index", "rebuild"]).succeeds();
    assert_eq!(found("summer"), (200, Some(1)));
    home.run(&["connections", "remove", "mail-work", "--yes"])
        .succeeds();
    assert_eq!(found("summer").0, 403);
}

#[test]
fn readers_see_everything_while_the_index_is_rebuilt_and_the_store_purged() {
    let home = dated_home();
    let lines = harness::lines(2_000, |n| {
        format!("{{\"id\":\"m{n}\",\"subject\":\"bulk\"}}\n")
    });
    home.import_messages(&lines).succeeds();
    let server = Server::start(&home);
    let (_, token) = grant(&home, &[]);
    let (done, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let request = "GET /v1/search?q=bulk&count=exact&limit=1";
                let (status, page) = server.ask(request, Some(&token), "");
                assert_eq!((status, &page["meta"]["count"]), (200, &2_000.into()));
                asked.fetch_add(1, Ordering::Relaxed);
            }
        });
        for _ in 0..3 {
            home.run(&["index", "rebuild"]).succeeds();
            home.run(&["purge"]).succeeds();
        }
        let before = asked.load(Ordering::Relaxed);
        soon(|| asked.load(Ordering::Relaxed) > before || reader.is_finished());
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn the_routes_of_the_owner_are_on_the_socket_and_nowhere_else() {
    let home = dated_home();
    let owner = home.run(&["owner-token"]).succeeds().stdout;
    let server = Server::start(&home);
    for request in [
        "GET /owner/sources",
        "GET /owner/grants",
        "GET /owner/backup",
        "GET /owner/export?stream=messages&connection_id=mail-work",
        "POST /owner/tokens",
        "POST /owner/import?connection_id=mail-work",
        "DELETE /owner/connections/mail-work",
    ] {
        for token in [None, Some(owner.trim())] {
            let (status, refusal) = server.ask(request, token, "");
            assert_eq!(status, 404, "{request} {refusal}");
        }
    }
    assert_eq!(over_socket(&home, "GET /owner/sources").0, 200);
    for (status, document) in [
        server.ask("GET /v1/openapi.json", None, ""),
        over_socket(&home, "GET /v1/openapi.json"),
    ] {
        assert_eq!(status, 200);
        let paths = document["paths"].as_object().unwrap();
        assert!(paths.contains_key("/v1/search"));
        assert!(
            !paths.keys().any(|path| path.contains("owner")),
            "{paths:?}"
        );
    }
}

#[test]
fn a_socket_that_a_killed_server_left_behind_stops_nobody() {
    let home = dated_home();
    let mut server = Server::start(&home);
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let socket = home.data_dir().join("owner.sock");
    assert!(socket.exists());
    assert_eq!(home.messages().lines().count(), 3);
    // And one that never was a server's.
    fs::remove_file(&socket).unwrap();
    drop(UnixListener::bind(&socket).unwrap());
    assert_eq!(home.messages().lines().count(), 3);
    fs::remove_file(&socket).unwrap();
    fs::write(&socket, "no socket").unwrap();
    assert_eq!(home.messages().lines().count(), 3);
}

#[test]
fn a_socket_that_may_not_be_used_is_named() {
    let home = dated_home();
    let _server = Server::start(&home);
    let open = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    // Somebody opened the folders, but not the socket.
    open(home.folder(), 0o755);
    open(&home.data_dir(), 0o755);
    let program = home.path("pdpp");
    fs::copy(env!("CARGO_BIN_EXE_pdpp"), &program).unwrap();
    open(&program, 0o755);
    let mut command = Command::new(&program);
    command
        .args(["connections", "--data-dir"])
        .arg(home.data_dir());
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        // Nothing is closed to root, so root steps down.
        command.uid(65534).gid(65534);
    } else {
        open(&home.data_dir().join("owner.sock"), 0o000);
    }
    Ran::new(command.output().unwrap(), home.folder()).refused(
        "error: the socket ~/data/owner.sock cannot be used: Permission denied (os error 13)\nhint: run the command as the user who runs `pdpp serve`",
    );
}

#[test]
fn a_server_that_is_killed_under_a_command_is_told_and_what_was_acknowledged_is_kept() {
    let home = dated_home();
    let mut server = Server::start(&home);
    let (import, _stdin, stderr) = import_under_way(&home);
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let (code, told) = end(import, stderr);
    assert_eq!(code, Some(69), "{told}");
    assert_eq!(
        told,
        "error: the running server ended before it had answered\nhint: everything acknowledged is kept; run the command again\n"
    );
    assert!(home.messages().contains("typewriter"));
}

#[test]
fn a_server_that_is_stopped_does_not_wait_for_ever_for_an_import() {
    let home = dated_home();
    let server = Server::start(&home);
    let (import, stdin, stderr) = import_under_way(&home);
    server.signal("TERM");
    server.signal("INT");
    let (code, _) = server.ended();
    assert_eq!(code, Some(0));
    let (code, told) = end(import, stderr);
    assert_eq!(code, Some(69), "{told}");
    drop(stdin);
    assert!(home.messages().contains("typewriter"));
}

#[test]
fn an_import_goes_on_while_others_search_and_import() {
    let home = dated_home();
    let server = Server::start(&home);
    let (_, token) = grant(&home, &[]);
    let (import, mut stdin, stderr) = import_under_way(&home);
    // The first import is not at its end, and everything it acknowledged is found.
    let (status, page) = server.ask("GET /v1/search?q=typewriter", Some(&token), "");
    assert_eq!((status, page["data"].as_array().unwrap().len()), (200, 1));
    let lines = harness::lines(2_000, |n| {
        format!("{{\"id\":\"m{n}\",\"subject\":\"bulk\"}}\n")
    });
    let second = home.import_messages(&lines).succeeds().json();
    assert_eq!(second["added"], 2_000);
    let (_, page) = server.ask("GET /v1/search?q=bulk&count=exact", Some(&token), "");
    assert_eq!(page["meta"]["count"], 2_000, "{}", page["meta"]);
    stdin
        .write_all(b"{\"id\":\"last\",\"subject\":\"typewriter\"}\n")
        .unwrap();
    drop(stdin);
    let (code, told) = end(import, stderr);
    assert_eq!(code, Some(0), "{told}");
    assert!(
        told.contains("Imported into 'Work': 2 read, 2 added"),
        "{told}"
    );
    assert_eq!(home.messages().lines().count(), 2_005);
}

#[test]
fn an_interrupted_import_reports_what_it_kept_with_and_without_a_server() {
    for served in [false, true] {
        let home = dated_home();
        let server = served.then(|| Server::start(&home));
        let (import, stdin, stderr) = import_under_way(&home);
        let id = import.id().to_string();
        let sent = Command::new("kill").args(["-s", "INT", &id]).status();
        assert!(sent.unwrap().success());
        let (code, told) = end(import, stderr);
        assert_eq!(code, Some(1), "{told}");
        assert_eq!(
            told,
            "Imported into 'Work': 1 read, 1 added, 0 updated, 0 unchanged, 0 rejected.\n\
             error: the import was stopped; everything acknowledged is kept\n\
             hint: run the command again for the rest; what is there already counts as unchanged\n"
        );
        drop((stdin, server));
        assert!(home.messages().contains("typewriter"));
    }
}

#[test]
fn an_export_for_a_grant_is_exactly_what_it_sees_with_and_without_a_server() {
    let home = dated_home();
    let scope = ["--stream", "messages", "--fields", "subject,sent_at"];
    let time = ["--since", "2026-01-01", "--until", "2026-09-01"];
    let (id, _) = grant(&home, &[scope, time].concat());
    for served in [false, true] {
        let _server = served.then(|| Server::start(&home));
        let export = |what: &str| home.run(&["export", what, "--grant", &id]);
        let seen = export("messages").succeeds().stdout;
        assert_eq!(seen.lines().count(), 1, "{seen}");
        assert!(
            seen.starts_with(r#"{"key":"b","stream":"messages","emitted_at":""#),
            "{seen}"
        );
        let data = r#""data":{"subject":"Summer","sent_at":"2026-06-05T00:00:00Z"}}"#;
        assert!(seen.trim_end().ends_with(data), "{seen}");
        assert_eq!(export("messages:b").succeeds().stdout, seen);
        for hidden in ["messages:a", "messages:none"] {
            let ran = export(hidden);
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
            assert!(!ran.stderr.contains("secret"), "{ran:?}");
        }
        export("receipts").refused_saying(&["receipts"]);
        home.run(&["export", "messages", "--grant", "grt_none"])
            .refused(
                "error: no grant or package has the id \"grt_none\"; `pdpp grants` lists them",
            );
    }
    // The owner looked, nothing was disclosed.
    let shown = home.run(&["grant", "show", &id]).succeeds().stdout;
    assert!(shown.contains("Calls: none"), "{shown}");
    home.run(&["grant", "revoke", &id]).succeeds();
    home.run(&["export", "messages", "--grant", &id])
        .refused(&format!("error: {id}: the grant was revoked"));
}

#[test]
fn a_command_gives_a_server_that_is_ending_a_moment_and_then_names_it() {
    let home = dated_home();
    let owner = home.run(&["owner-token"]).succeeds().stdout;
    let server = Server::start(&home);
    let id = server.child.id();
    // A request that does not end keeps the server from ending.
    let mut slow = std::net::TcpStream::connect(&server.address).unwrap();
    write!(
        slow,
        "POST /v1/ingest/messages HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Length: 100\r\n\r\n{{",
        owner.trim()
    )
    .unwrap();
    // It is under way once the server counts it beside the question about it.
    soon(|| metrics(&server).contains("pdpp_requests_in_flight 2"));
    server.signal("TERM");
    let socket = home.data_dir().join("owner.sock");
    soon(|| UnixStream::connect(&socket).is_err());
    home.run(&["connections"]).refused(&format!(
        "error: the data directory ~/data is in use by pdpp serve (process {id}). Wait until it ends, or stop it."
    ));
    let waiting = home
        .command(&["export", "messages"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(slow);
    assert_eq!(server.ended().0, Some(0));
    let ran = Ran::new(waiting.wait_with_output().unwrap(), home.folder()).succeeds();
    assert_eq!(ran.stdout.lines().count(), 3);
}

/// Waits until something is so.
fn soon(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "it does not come to be");
        sleep(Duration::from_millis(5));
    }
}

fn metrics(server: &Server) -> String {
    let mut stream = std::net::TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
