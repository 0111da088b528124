//! What a node says of itself over HTTP: while it starts, when it cannot be used, and when too much waits.

use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Nodes;
use crate::harness::MAIL;
use crate::harness::server::{PATIENCE, Server, connect, raw_exchange, status_in};

/// What a person at the database does.
fn psql(url: &str, sql: &str) -> Child {
    let mut psql = std::process::Command::new("psql");
    psql.args(["-qX", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql]);
    psql.stdout(Stdio::null()).spawn().unwrap()
}

pub(super) fn at_database(url: &str, sql: &str) {
    assert!(psql(url, sql).wait().unwrap().success(), "{sql}");
}

/// Asks whether it is ready until it answers so, with these words.
fn until(node: &Server, wanted: u16, words: &str) {
    let request = "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let began = Instant::now();
    loop {
        let (head, body) = raw_exchange(connect(&node.address), request);
        let status = status_in(&head);
        if status == 503 {
            assert!(head.to_lowercase().contains("retry-after:"), "{head}{body}");
        }
        if status == wanted && body.contains(words) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{status}: {body}");
    }
}

pub(super) fn until_ready(node: &Server) {
    until(node, 200, "ready");
}

/// Asks until it is not ready for this reason, while it lives.
pub(super) fn until_not_ready(node: &Server, why: &str) {
    until(node, 503, why);
    assert_eq!(node.ask("GET /healthz", None, "").0, 200);
}

/// A database of its own, so that what is done to it disturbs nobody.
pub(super) struct Own {
    server: String,
    name: String,
}

impl Own {
    pub(super) fn of(nodes: &mut Nodes) -> Self {
        let server = nodes.url.clone();
        let name = nodes.owner.replace(['-', '.'], "_");
        at_database(&server, &format!("CREATE DATABASE {name}"));
        let (place, _) = server.rsplit_once('/').unwrap();
        nodes.url = format!("{place}/{name}");
        Self { server, name }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        for sql in [
            "DROP DATABASE {} WITH (FORCE)",
            "SET client_min_messages = warning; DROP ROLE IF EXISTS {}",
        ] {
            let _ = psql(&self.server, &sql.replace("{}", &self.name)).wait();
        }
    }
}

#[test]
fn a_node_whose_database_is_of_a_later_release_is_not_ready() {
    let Some(mut nodes) = Nodes::new() else {
        return;
    };
    let _own = Own::of(&mut nodes);
    let node = nodes.start("a");
    until_ready(&node);
    at_database(&nodes.url, "UPDATE schema_version SET min_reader = 1000");
    until_not_ready(&node, "needs a newer release");
    let newer = ["needs a newer pdpp (format 1000", "Upgrade pdpp"];
    nodes.refused(nodes.serving("b"), &newer);
    at_database(&nodes.url, "UPDATE schema_version SET min_reader = 1");
    until_ready(&node);
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    let Some(mut nodes) = Nodes::new() else {
        return;
    };
    let _own = Own::of(&mut nodes);
    at_database(&nodes.url, "CREATE TABLE accounts (id bigint)");
    let foreign = ["a table \"accounts\" of another program", "empty database"];
    nodes.refused(nodes.serving("a"), &foreign);
    at_database(&nodes.url, "DROP TABLE accounts");
    let node = nodes.start("a");
    until_ready(&node);
    // What it used is exchanged while it runs.
    for (taken, back) in [
        (
            "UPDATE schema_version SET application = 'accounts'",
            "UPDATE schema_version SET application = 'pdpp'",
        ),
        (
            "ALTER TABLE schema_version RENAME TO away",
            "ALTER TABLE away RENAME TO schema_version",
        ),
    ] {
        at_database(&nodes.url, taken);
        until_not_ready(&node, "is not one of pdpp");
        at_database(&nodes.url, back);
        until_ready(&node);
    }
}

/// Sets something of a database, and ends who is connected to it: what comes then finds it so.
fn set(own: &Own, statement: &str) {
    at_database(&own.server, statement);
    let sql = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'",
        own.name
    );
    at_database(&own.server, &sql);
}

/// Writes until it is acknowledged, which a node that has just become ready does at once.
fn written(node: &Server, token: &str, id: &str) {
    let (head, body) = write(node, token, id);
    assert_eq!(status_in(&head), 200, "{body}");
}

pub(super) fn count(node: &Server, token: &str) -> Value {
    let target = "GET /v1/search?q=waits&count=exact";
    node.ask(target, Some(token), "").1["meta"]["count"].clone()
}

#[test]
fn a_node_whose_database_can_only_be_read_is_not_ready_and_loses_nothing() {
    for options in ["", "?target_session_attrs=read-write"] {
        let Some(mut nodes) = Nodes::new() else {
            return;
        };
        let own = Own::of(&mut nodes);
        nodes.url.push_str(options);
        let node = nodes.start("a");
        let token = declared(&nodes);
        written(&node, &token, "m1");
        until_ready(&node);
        let only_reads =
            |setting: &str| set(&own, &format!("ALTER DATABASE {} {setting}", own.name));
        only_reads("SET default_transaction_read_only = on");
        until_not_ready(&node, "takes no writes");
        let (head, body) = write(&node, &token, "m2");
        assert_eq!(status_in(&head), 503, "{body}");
        assert!(head.to_lowercase().contains("retry-after:"), "{head}");
        assert!(body.contains("takes no writes"), "{body}");
        nodes.refused(nodes.serving("b"), &["can only be read", "primary"]);
        only_reads("RESET default_transaction_read_only");
        until_ready(&node);
        written(&node, &token, "m2");
        assert_eq!(count(&node, &token), 2);
        // Asked without pause, it says the same in few lines.
        let told = node.stop();
        let refusals = told
            .lines()
            .filter(|line| line.contains("this server is not ready"));
        assert!((1..10).contains(&refusals.count()), "{told}");
        assert!(told.contains("can only be read"), "{told}");
    }
}

#[test]
fn a_node_whose_password_is_wrong_is_not_ready_until_it_is_good_again() {
    let Some(mut nodes) = Nodes::new() else {
        return;
    };
    let own = Own::of(&mut nodes);
    let name = &own.name;
    at_database(
        &own.server,
        &format!("CREATE ROLE {name} LOGIN PASSWORD 'first'"),
    );
    at_database(
        &own.server,
        &format!("ALTER DATABASE {name} OWNER TO {name}"),
    );
    let (scheme, rest) = nodes.url.split_once("://").unwrap();
    let (_, server) = rest.split_once('@').unwrap();
    nodes.url = format!("{scheme}://{name}:first@{server}");
    let node = nodes.start("a");
    let token = declared(&nodes);
    written(&node, &token, "m1");
    until_ready(&node);
    set(&own, &format!("ALTER ROLE {name} PASSWORD 'hidden'"));
    until_not_ready(&node, "the server's database ");
    let (head, body) = write(&node, &token, "m2");
    assert_eq!(status_in(&head), 503, "{body}");
    assert!(head.to_lowercase().contains("retry-after:"), "{head}");
    let (head, body) = raw_exchange(
        connect(&node.address),
        &format!(
            "GET /v1/search?q=waits HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
        ),
    );
    assert_eq!(status_in(&head), 503, "{body}");
    nodes.refused(
        nodes.serving("b"),
        &["cannot be used", "a password that it knows"],
    );
    set(&own, &format!("ALTER ROLE {name} PASSWORD 'first'"));
    until_ready(&node);
    written(&node, &token, "m2");
    assert_eq!(count(&node, &token), 2);
    let told = node.stop();
    assert!(told.contains("password"), "{told}");
}

#[test]
fn a_node_that_starts_says_that_it_lives() {
    let Some(mut nodes) = Nodes::new() else {
        return;
    };
    // A database that takes connections and never answers: the node is busy with it for some seconds.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let (who, _) = nodes.url.split_once('@').unwrap();
    nodes.url = format!("{who}@{}/pdpp", silent.local_addr().unwrap());
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let mut serving = nodes.serving("a");
    let serving = serving.env("PDPP_LISTEN", &address);
    let mut child = serving.stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while std::net::TcpStream::connect(&address).is_err() {
        assert!(began.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(5));
    }
    let ask = |path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        raw_exchange(connect(&address), &request).0
    };
    assert_eq!(status_in(&ask("/healthz")), 200);
    let told = ask("/readyz");
    assert_eq!(status_in(&told), 503);
    assert!(told.to_lowercase().contains("retry-after:"), "{told}");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Declares mail at the node `a`, with one connection, and returns a token of the owner.
pub(super) fn declared(nodes: &Nodes) -> String {
    let declaration = nodes.home.file("mail.json", MAIL);
    nodes.run("a", &format!("declare {declaration}")).succeeds();
    let add = "connections add mail --name Work";
    nodes.run("a", add).succeeds();
    let token = nodes.run("a", "owner-token").succeeds().stdout;
    token.trim().to_owned()
}

/// Writes a record; returns the head and the body of the answer.
pub(super) fn write(node: &Server, token: &str, id: &str) -> (String, String) {
    let body = format!(r#"{{"key":"{id}","data":{{"id":"{id}","subject":"waits"}}}}"#);
    let request = format!(
        "POST /v1/ingest/messages HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len(),
    );
    raw_exchange(connect(&node.address), &request)
}

/// Somebody who holds the row of the owner for so many seconds.
fn hold(nodes: &Nodes, seconds: u32) -> Child {
    let locked = format!(
        "SELECT id FROM owners WHERE host = '{}' FOR UPDATE; SELECT pg_sleep({seconds})",
        nodes.owner
    );
    let holding = psql(&nodes.url, &locked);
    thread::sleep(Duration::from_secs(1));
    holding
}

fn is_told_to_come_again((head, body): &(String, String)) -> bool {
    if status_in(head) == 200 {
        return false;
    }
    assert_eq!(status_in(head), 503, "{body}");
    assert!(head.to_lowercase().contains("retry-after:"), "{head}");
    assert!(body.contains("busy"), "{body}");
    true
}

#[test]
fn a_write_that_waits_too_long_is_told_to_come_again() {
    let Some(nodes) = Nodes::new() else { return };
    let node = nodes.start("a");
    let token = declared(&nodes);
    // Longer than a lock is waited for.
    let mut holding = hold(&nodes, 15);
    assert!(is_told_to_come_again(&write(&node, &token, "m1")));
    assert!(holding.wait().unwrap().success());
    assert!(!is_told_to_come_again(&write(&node, &token, "m1")));
}

#[test]
fn more_writes_than_may_wait_are_told_at_once_to_come_again_and_the_others_are_written() {
    let Some(nodes) = Nodes::new() else { return };
    let node = nodes.start("a");
    let token = declared(&nodes);
    // Shorter than a lock is waited for.
    let mut holding = hold(&nodes, 7);
    let asked = Instant::now();
    let answers = thread::scope(|scope| {
        let (node, token) = (&node, &token);
        let writing = (0..80).map(|number| {
            scope.spawn(move || {
                let answer = write(node, token, &format!("m{number}"));
                (is_told_to_come_again(&answer), asked.elapsed())
            })
        });
        let writing: Vec<_> = writing.collect();
        let answers = writing.into_iter().map(|one| one.join().unwrap());
        answers.collect::<Vec<_>>()
    });
    assert!(holding.wait().unwrap().success());
    let refused = answers.iter().filter(|(refused, _)| *refused);
    assert_eq!(refused.clone().count(), 80 - 64);
    assert!(refused.clone().all(|(_, after)| after.as_secs() < 5));
    assert_eq!(count(&node, &token), 64);
    for number in 0..80 {
        assert!(!is_told_to_come_again(&write(
            &node,
            &token,
            &format!("m{number}")
        )));
    }
    assert_eq!(count(&node, &token), 80);
}
