//! Commands beside a running server: what they change holds at once, and what goes wrong between the two is told.

use std::fs;
use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::harness::server::{PATIENCE, Server, exchange};
use crate::harness::{Home, MAIL, Ran, allow, is_root, lines, signal};
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
    home.run(format!("declare {file}")).succeeds();
    home.run("connections add mail --name Work").succeeds();
    home.import_messages(LETTERS).succeeds();
    home
}

fn bulk() -> String {
    lines(2_000, |n| {
        format!("{{\"id\":\"m{n}\",\"subject\":\"bulk\"}}\n")
    })
}

fn over_socket(home: &Home, request: &str) -> (u16, Value) {
    let stream = UnixStream::connect(home.data_dir().join("owner.sock")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    exchange(stream, request, None, "")
}

#[test]
fn what_is_removed_or_purged_beside_the_server_is_gone_for_its_readers() {
    let home = dated_home();
    let server = Server::start(&home);
    let (_, token) = home.grant("--connection mail-work");
    let found = |word: &str| {
        let request = format!("GET /v1/search?q={word}");
        let (status, page) = server.ask(&request, Some(&token), "");
        (status, page["data"].as_array().map(Vec::len))
    };
    home.import_messages("{\"key\":\"a\",\"op\":\"delete\"}\n")
        .succeeds();
    assert_eq!(found("winter"), (200, Some(0)));
    let purged = home.run("purge --json").succeeds().stdout;
    assert_eq!(
        purged,
        "{\"tombstones\":1,\"blobs\":0,\"log_entries\":0,\"versions\":0}\n"
    );
    home.run("index rebuild").succeeds();
    assert_eq!(found("summer"), (200, Some(1)));
    home.run("connections remove mail-work --yes").succeeds();
    assert_eq!(found("summer").0, 403);
}

#[test]
fn readers_see_everything_while_the_index_is_rebuilt_and_the_store_purged() {
    let home = dated_home();
    home.import_messages(&bulk()).succeeds();
    let server = Server::start(&home);
    let (_, token) = home.grant("--connection mail-work");
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
            home.run("index rebuild").succeeds();
            home.run("purge").succeeds();
        }
        let before = asked.load(Ordering::Relaxed);
        soon(|| asked.load(Ordering::Relaxed) > before || reader.is_finished());
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn the_routes_of_the_owner_are_on_the_socket_and_nowhere_else() {
    let home = dated_home();
    let owner = home.run("owner-token").succeeds().stdout;
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
    // Somebody opened the folders, but not the socket.
    let mut command = home.without_privileges("connections");
    allow(&home.data_dir(), 0o755);
    if !is_root() {
        allow(&home.data_dir().join("owner.sock"), 0o000);
    }
    home.ran(command.arg(home.data_dir())).refused(
        "error: the socket ~/data/owner.sock cannot be used: Permission denied (os error 13)\nhint: run the command as the user who runs `pdpp serve`",
    );
}

#[test]
fn a_server_that_is_killed_under_a_command_is_told_and_what_was_acknowledged_is_kept() {
    let home = dated_home();
    let server = Server::start(&home);
    let import = home.import_under_way();
    drop(server);
    let told = "error: the running server ended before it had answered\nhint: everything acknowledged is kept; run the command again\n";
    assert_eq!(import.ended(), (Some(69), told.to_owned()));
    assert!(home.messages().contains("typewriter"));
}

#[test]
fn a_server_that_is_stopped_does_not_wait_for_ever_for_an_import() {
    let home = dated_home();
    let server = Server::start(&home);
    let import = home.import_under_way();
    server.signal("TERM");
    server.signal("INT");
    assert_eq!(server.ended().0, Some(0));
    assert_eq!(import.ended().0, Some(69));
    assert!(home.messages().contains("typewriter"));
}

#[test]
fn an_import_goes_on_while_others_search_and_import() {
    let home = dated_home();
    let server = Server::start(&home);
    let (_, token) = home.grant("--connection mail-work");
    let mut import = home.import_under_way();
    // The first import is not at its end, and everything it acknowledged is found.
    let (status, page) = server.ask("GET /v1/search?q=typewriter", Some(&token), "");
    assert_eq!((status, page["data"].as_array().unwrap().len()), (200, 1));
    let second = home.import_messages(&bulk()).succeeds().json();
    assert_eq!(second["added"], 2_000);
    let (_, page) = server.ask("GET /v1/search?q=bulk&count=exact", Some(&token), "");
    assert_eq!(page["meta"]["count"], 2_000, "{}", page["meta"]);
    let last = b"{\"id\":\"last\",\"subject\":\"typewriter\"}\n";
    import.input.as_mut().unwrap().write_all(last).unwrap();
    let (code, told) = import.finished();
    assert_eq!(code, Some(0), "{told}");
    let report = "Imported into 'Work': 2 messages: 2 added";
    assert!(told.contains(report), "{told}");
    assert_eq!(home.messages().lines().count(), 2_005);
}

#[test]
fn an_interrupted_import_reports_what_it_kept_with_and_without_a_server() {
    for served in [false, true] {
        let home = dated_home();
        let server = served.then(|| Server::start(&home));
        let import = home.import_under_way();
        signal(import.child.id(), "INT");
        let told = "Imported into 'Work': 1 message: 1 added, 0 updated, 0 unchanged, 0 rejected.\n\
             error: the import was stopped; everything acknowledged is kept\n\
             hint: run the command again for the rest; what is there already counts as unchanged\n";
        assert_eq!(import.ended(), (Some(1), told.to_owned()));
        drop(server);
        assert!(home.messages().contains("typewriter"));
    }
}

#[test]
fn an_export_for_a_grant_is_exactly_what_it_sees_with_and_without_a_server() {
    let home = dated_home();
    let scope = "--stream messages --fields subject,sent_at --since 2026-01-01 --until 2026-09-01";
    let (id, _) = home.grant(&format!("--connection mail-work {scope}"));
    for served in [false, true] {
        let _server = served.then(|| Server::start(&home));
        let export = |what: &str| home.run(format!("export {what} --grant {id}"));
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
            export(hidden).exits_quietly(1).hides("secret");
        }
        export("receipts").refused_saying(&["receipts"]);
        home.run("export messages --grant grt_none").refused(
            "error: no grant or package has the id \"grt_none\"; `pdpp grants` lists them",
        );
    }
    // The owner looked, nothing was disclosed.
    home.run(format!("grant show {id}"))
        .succeeds()
        .shows("Calls: none");
    home.run(format!("grant revoke {id}")).succeeds();
    home.run(format!("export messages --grant {id}"))
        .refused(&format!("error: {id}: the grant was revoked"));
}

#[test]
fn a_command_gives_a_server_that_is_ending_a_moment_and_then_names_it() {
    let home = dated_home();
    let owner = home.run("owner-token").succeeds().stdout;
    let server = Server::start(&home);
    let id = server.child.id();
    let slow = server.endless_request(&owner);
    // It is under way once the server counts it beside the question about it.
    let metrics = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    soon(|| server.raw(metrics).contains("pdpp_requests_in_flight 2"));
    server.signal("TERM");
    let socket = home.data_dir().join("owner.sock");
    soon(|| UnixStream::connect(&socket).is_err());
    home.run("connections").refused(&format!(
        "error: the data directory ~/data is in use by pdpp serve (process {id}). Wait until it ends, or stop it."
    ));
    let waiting = home
        .command("export messages")
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
