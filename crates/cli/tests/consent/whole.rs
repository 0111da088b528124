//! `pdpp serve`, `pdpp connect`, the pages, `pdpp mcp`, and the end: one grant, and a package over three connections.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::served::{Connecting, Kept, Served, reading};
use super::visitor::Visitor;
use crate::harness::Home;
use crate::harness::agent::Agent;

/// The agent of a machine that connected before, asked to begin.
fn agent(home: &Home, url: &str) -> Agent {
    Agent::begin(home, reading(url))
}

fn letter(home: &Home, connection: &str, stream: &str, key: &str) {
    let line = json!({"key": key, "data": {"id": key, "subject": "Harbour bridge", "body": "About the ferry.",
                      "sent_at": "2026-03-01T09:00:00Z"}});
    let file = home.file("letter.jsonl", format!("{line}\n"));
    home.run(format!(
        "import {file} --as {stream} --connection {connection}"
    ))
    .succeeds();
}

/// Ends the access token alone, as its life does.
fn end_access_token(visitor: &mut Visitor, kept: &Kept) {
    let (client, token) = (kept.client(), kept.token("access_token"));
    let form = [("client_id", client.as_str()), ("token", &token)];
    assert_eq!(visitor.post("/oauth/revoke", &form).status, 200);
}

fn secrets(visitor: &Visitor, kept: &[&Kept]) -> Vec<String> {
    let tokens = kept
        .iter()
        .flat_map(|kept| ["access_token", "refresh_token"].map(|name| kept.token(name)));
    let cookies = visitor.cookies.values().cloned();
    tokens
        .chain(cookies.filter(|value| !value.is_empty()))
        .collect()
}

/// What stands on the terminal after the link, and what is kept then.
fn is_told_what_connecting_did(home: &Home, url: &str, told: &str) {
    let (code, told) = told.split_once('\n').unwrap();
    let shown = code.strip_prefix("The code shown there must be: ");
    assert_eq!(shown.map(str::len), Some("BCDF-GHJK".len()), "{code}");
    let file = format!("cache/clients/{}.json", url[7..].replace(':', "_"));
    let expected = format!(
        "Waiting for at most 10 minutes.
Connected to {url}. The credential is in ~/{file}.
It may read: messages.
Next: give an agent this command as an MCP server, see `pdpp setup`
  pdpp mcp --provider-url {url} --cache-root ~/cache
"
    );
    assert_eq!(told.replace(home.folder().to_str().unwrap(), "~"), expected);
    let mode = home.path(&file).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // The credential reads at once, and all is well.
    let options = "--cache-root ~/cache";
    let schema = home.run(format!("schema --provider-url {url} {options}"));
    schema.succeeds().shows("messages");
    let well = home.run(format!("doctor {url} {options}")).succeeds();
    well.shows_all(&[
        "ok    metadata   the server describes itself\n",
        &format!("`pdpp connect {url} {options}` shows a link and a code, and the owner chooses what to grant\n"),
        "ok    challenge  strangers are refused and told where to sign in\n",
        "ok    read       the stored credential may read 1 stream\n",
    ]);
}

// AU-06, decisions 29 to 32
#[test]
fn a_device_is_approved_reads_renews_by_itself_and_is_refused_after_the_end() {
    let home = Home::with_mail();
    letter(&home, "mail-work", "mail/messages", "m1");
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
    is_told_what_connecting_did(&home, &server.url, &told);
    let first = Kept::read(&home, &server.url);

    let mut agent = agent(&home, &server.url);
    assert_eq!(agent.found("ferry"), ["mail-work/messages:m1"]);
    let fetched = agent.content("fetch", json!({"id": "mail-work/messages:m1"}));
    assert_eq!(fetched["text"], "About the ferry.");
    assert!(!fetched.to_string().contains("2026-03-01"), "{fetched}");

    end_access_token(&mut owner, &first);
    assert_eq!(agent.found("ferry"), ["mail-work/messages:m1"]);
    let second = Kept::read(&home, &server.url);
    assert_eq!(first.grant(), second.grant());
    assert_ne!(first.token("access_token"), second.token("access_token"));
    assert_ne!(first.token("refresh_token"), second.token("refresh_token"));

    owner.end(&second.grant());
    let refusal = agent.refusal("search", json!({"query": "ferry"}));
    assert_eq!(refusal, "grant_revoked");
    assert_eq!(agent.leave(), Some(0));
    let mut secrets = secrets(&owner, &[&first, &second]);
    secrets.push(server.link.split_once("code=").unwrap().1.to_owned());
    server.kept_secret(&secrets);
}
