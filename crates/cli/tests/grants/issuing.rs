//! `pdpp grant create`: what is issued, and what is refused with which words.

use super::world::{create, mail_and_chat, masked};
use crate::harness::Home;

#[test]
fn connections_of_two_sources_make_a_package() {
    let home = mail_and_chat();
    let both = "--connection mail-work chat-team --stream posts --stream messages";
    let ran = create(&home, both).succeeds();
    assert_eq!(masked(&ran.stdout), "pdpp_at_…\n");
    assert_eq!(
        masked(&ran.stderr),
        "Package gpkg_…: until 2099-01-01 02:00:00 +02:00 'agent' may read\n  mail-work messages: id, subject, body, size, read, sent_at\n  chat-team posts: id, subject, body, size, read, sent_at\nThe token on stdout is shown this once. End it early with: pdpp grant revoke gpkg_…\n"
    );
    let repeated = "--connection mail-work --connection chat-team --json";
    let json = create(&home, repeated).succeeds().json();
    assert_eq!(json["token_kind"], "mcp_package");
    assert!(json.get("grant_id").is_none());
    assert_eq!(json["streams"].as_array().unwrap().len(), 4);
    let id = json["grant_package_id"].as_str().unwrap();
    let shown = home.run(format!("grant show {id}")).succeeds();
    assert_eq!(
        masked(&shown.stdout),
        "Package    gpkg_…\nClient     agent\nState      live\nIssued     NOW\nEnds       2099-01-01 02:00:00 +02:00\nLast used  never\nGrant grt_…, live, of https://example.org/connectors/mail for https://pdpp.dev/purpose/agent_context:\n  mail-work messages: id, subject, body, size, read, sent_at\n  mail-work receipts: message, number, note\nagreed to as sha256:…\nGrant grt_…, live, of https://example.org/connectors/chat for https://pdpp.dev/purpose/agent_context:\n  chat-team posts: id, subject, body, size, read, sent_at\n  chat-team receipts: message, number, note\nagreed to as sha256:…\nCalls: none\n"
    );
}

#[test]
fn a_time_to_live_that_is_none_is_refused() {
    let home = Home::with_mail();
    for time in ["1", "0s", "400d", "é"] {
        home.run(format!("owner-token --ttl {time}"))
            .exits_quietly(2);
    }
}

const DETAILS: &str = r#"[{
  "type": "https://pdpp.dev/data-access",
  "source": {"id": "https://example.org/connectors/mail"},
  "purpose_code": "https://pdpp.dev/purpose/agent_context",
  "access_mode": "continuous",
  "streams": [{"name": "messages", "fields": ["subject"], "resources": ["a", "b"]}]
}]"#;

#[test]
fn details_grant_what_flags_cannot_say() {
    let home = Home::with_mail();
    let file = home.file("details.json", DETAILS);
    let ran = create(&home, &format!("--details {file}")).succeeds();
    ran.says("\n  mail-work messages: subject; only the 2 records a, b\n");
    let one = DETAILS.replace("[\"a\", \"b\"]", "[\"a\"]");
    let ran = home.run_with("grant create --client agent --details -", one.as_bytes());
    let ran = ran.succeeds();
    ran.says("\n  mail-work messages: subject; only the record a\n");
}

#[test]
fn the_details_of_the_documentation_are_granted() {
    let home = Home::new();
    let declaration = include_str!("../../../../examples/mail/declaration.json");
    let file = home.file("mail.json", declaration);
    home.run(format!("declare {file}")).succeeds();
    home.run("connections add mail --name Work").succeeds();
    let page = include_str!("../../../../docs/grants.md");
    let example = page.split("```json\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    let file = home.file("details.json", example);
    let ran = create(&home, &format!("--details {file}")).succeeds();
    assert_eq!(
        masked(&ran.stderr),
        "Grant grt_…: until 2099-01-01 02:00:00 +02:00 'agent' may read\n  mail-work messages: id, subject, from_email, received_at; only received_at from 2026-01-01 00:00 UTC before 2026-07-01 00:00 UTC\nThe token on stdout is shown this once. End it early with: pdpp grant revoke grt_…\n"
    );
}

#[test]
fn a_mistake_in_details_is_named_with_its_place() {
    let home = Home::with_mail();
    home.file("details.json", DETAILS.replace("\"subject\"", "\"subjet\""));
    create(&home, "--details ~/details.json").refused(
        "~/details.json: /0/streams/0/fields/0: stream \"messages\" has no field \"subjet\"; known: id, subject, body, size, read, sent_at",
    );
    assert_eq!(home.run("grants --json").succeeds().stdout, "[]\n");
}
