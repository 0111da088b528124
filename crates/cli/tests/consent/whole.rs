//! `pdpp serve`, `pdpp connect`, the pages, `pdpp mcp`, and the end: one grant, and a package over three connections.

use serde_json::{Value, json};

use crate::harness::agent::Agent;
use crate::harness::{Home, MAIL};
use crate::served::{Connecting, Kept, Served, reading};
use crate::visitor::Visitor;

/// The agent of a machine that connected before.
fn agent(home: &Home, url: &str) -> Agent {
    let words = reading(home, url);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Agent::start(&mut home.command(&words))
}

fn letter(home: &Home, (connection, stream): (&str, &str), key: &str) {
    let line = json!({"key": key, "data": {"id": key, "subject": "Harbour bridge", "body": "About the ferry.",
                      "sent_at": "2026-03-01T09:00:00Z"}});
    let file = home.file("letter.jsonl", format!("{line}\n"));
    home.run(&["import", &file, "--as", stream, "--connection", connection])
        .succeeds();
}

fn ids(found: &Value) -> Vec<&str> {
    let results = found["structuredContent"]["results"].as_array();
    let results = results.unwrap_or_else(|| panic!("no results: {found}"));
    let mut ids: Vec<&str> = results
        .iter()
        .map(|hit| hit["id"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    ids
}

/// Ends the access token alone, as its life does.
fn end_access_token(visitor: &mut Visitor, kept: &Kept) {
    let (client, token) = (kept.client(), kept.token("access_token"));
    let form = [("client_id", client.as_str()), ("token", &token)];
    assert_eq!(visitor.post("/oauth/revoke", &form).status, 200);
}

/// The secrets of a flow so far.
fn secrets(visitor: &Visitor, kept: &[&Kept]) -> Vec<String> {
    let tokens = kept
        .iter()
        .flat_map(|kept| ["access_token", "refresh_token"].map(|name| kept.token(name)));
    let cookies = visitor.cookies.values().cloned();
    tokens
        .chain(cookies.filter(|value| !value.is_empty()))
        .collect()
}

// AU-06, decisions 29 to 32
#[test]
fn a_device_is_approved_reads_renews_by_itself_and_is_refused_after_the_end() {
    let home = Home::with_mail();
    letter(&home, ("mail-work", "mail/messages"), "m1");
    let server = Served::start(&home);
    let mut owner = Visitor::signed_in(&server.url, &server.link);
    let connecting = Connecting::start(&home, &server.url);
    owner.allow(
        &connecting.link,
        &[
            ("stream", "mail-work/messages"),
            ("field", "mail-work/messages/subject"),
            ("field", "mail-work/messages/body"),
        ],
    );
    let told = connecting.done();
    assert!(told.contains("It may read: messages."), "{told}");
    let first = Kept::read(&home, &server.url);

    let mut agent = agent(&home, &server.url);
    let info = agent.initialize();
    assert_eq!(info["result"]["protocolVersion"], "2025-11-25");
    let tools = agent.ask("tools/list", json!({}));
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 6);
    let found = agent.call("search", json!({"query": "ferry"}));
    assert_eq!(ids(&found), ["mail-work/messages:m1"]);
    let fetched = agent.call("fetch", json!({"id": "mail-work/messages:m1"}));
    assert_eq!(fetched["structuredContent"]["text"], "About the ferry.");
    assert!(!fetched.to_string().contains("2026-03-01"), "{fetched}");

    end_access_token(&mut owner, &first);
    let found = agent.call("search", json!({"query": "ferry"}));
    assert_eq!(ids(&found), ["mail-work/messages:m1"]);
    let second = Kept::read(&home, &server.url);
    assert_eq!(first.grant(), second.grant());
    assert_ne!(first.token("access_token"), second.token("access_token"));
    assert_ne!(first.token("refresh_token"), second.token("refresh_token"));

    owner.end(&second.grant());
    let refused = agent.call("search", json!({"query": "ferry"}));
    assert_eq!(refused["isError"], true, "{refused}");
    let error = &refused["structuredContent"]["error"];
    assert_eq!(error["code"], "grant_revoked", "{refused}");
    assert!(!refused.to_string().contains("ferry\""), "{refused}");
    assert_eq!(agent.leave(), Some(0));
    let mut secrets = secrets(&owner, &[&first, &second]);
    secrets.push(server.link.split_once("code=").unwrap().1.to_owned());
    server.kept_secret(&secrets);
}

/// Two mailboxes and one of another source, with a letter each.
fn three_connections() -> Home {
    let home = Home::with_mail();
    home.run(&[
        "connections",
        "add",
        "mail",
        "--name",
        "Home",
        "--id",
        "mail-home",
    ])
    .succeeds();
    let post = MAIL
        .replace("connectors/mail", "connectors/post")
        .replace("\"Mail\"", "\"Post\"");
    let post = home.file("post.json", post);
    home.run(&["declare", &post]).succeeds();
    home.run(&[
        "connections",
        "add",
        "post",
        "--name",
        "Club",
        "--id",
        "club",
    ])
    .succeeds();
    letter(&home, ("mail-work", "mail/messages"), "m1");
    letter(&home, ("mail-home", "mail/messages"), "m2");
    letter(&home, ("club", "post/messages"), "m3");
    home
}

/// A read that may mean three sources lists them, and works for each.
fn every_source_can_be_named(agent: &mut Agent) {
    let query = json!({"stream": "messages"});
    let ambiguous = agent.call("query_records", query);
    let error = &ambiguous["structuredContent"]["error"];
    assert_eq!(error["code"], "ambiguous_connection", "{ambiguous}");
    let available = error["available_connections"].as_array().unwrap();
    assert_eq!(available.len(), 3, "{error}");
    for connection in available {
        assert!(connection["grant_id"].is_string(), "{connection}");
        let id = connection["connection_id"].as_str().unwrap();
        let query = json!({"stream": "messages", "connection_id": id});
        let read = agent.call("query_records", query);
        assert_ne!(read["isError"], true, "{read}");
    }
}

// SE-11, SE-13, SE-17, AM-01, AM-03, AM-04: the same over the wire, from a process of its own
#[test]
fn a_package_over_three_connections_is_approved_read_renewed_and_ended_as_one() {
    let home = three_connections();
    let server = Served::start(&home);
    let mut owner = Visitor::signed_in(&server.url, &server.link);
    let connecting = Connecting::start(&home, &server.url);
    let picks = ["mail-work/messages", "mail-home/messages", "club/messages"];
    owner.allow(&connecting.link, &picks.map(|pick| ("stream", pick)));
    connecting.done();
    let first = Kept::read(&home, &server.url);
    assert!(first.grant().starts_with("gpkg_"), "{}", first.grant());

    let mut agent = agent(&home, &server.url);
    agent.initialize();
    let all = [
        "club/messages:m3",
        "mail-home/messages:m2",
        "mail-work/messages:m1",
    ];
    let found = agent.call("search", json!({"query": "ferry"}));
    assert_eq!(ids(&found), all);
    let text = found["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("source_mix="), "{text}");
    let one = agent.call("search", json!({"query": "ferry", "connection_id": "club"}));
    assert_eq!(ids(&one), ["club/messages:m3"]);
    let two = agent.call("search", json!({"query": "ferry", "limit": 2}));
    assert_eq!(ids(&two).len(), 2);
    every_source_can_be_named(&mut agent);

    end_access_token(&mut owner, &first);
    assert_eq!(ids(&agent.call("search", json!({"query": "ferry"}))), all);
    let second = Kept::read(&home, &server.url);
    assert_eq!(first.grant(), second.grant());
    assert_ne!(first.token("access_token"), second.token("access_token"));

    owner.end(&second.grant());
    let refused = agent.call("search", json!({"query": "ferry"}));
    assert_eq!(refused["isError"], true, "{refused}");
    assert_eq!(
        refused["structuredContent"]["error"]["code"],
        "package_revoked"
    );
    assert_eq!(agent.leave(), Some(0));
    server.kept_secret(&secrets(&owner, &[&first, &second]));
}
