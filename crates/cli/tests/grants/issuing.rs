//! `pdpp grant create`: what is issued, and what is refused with which words.

use crate::harness::Home;
use crate::world::{create, mail_and_chat, masked};

#[test]
fn a_grant_prints_its_token_once_and_tells_what_it_sees() {
    let home = Home::with_mail();
    let ran = create(
        &home,
        &[
            "--connection",
            "mail-work",
            "--stream",
            "messages",
            "--fields",
            "subject,id",
        ],
    )
    .succeeds();
    assert_eq!(masked(&ran.stdout), "pdpp_at_…\n");
    assert_eq!(ran.stdout.trim().len(), "pdpp_at_".len() + 43);
    assert_eq!(
        masked(&ran.stderr),
        "Grant grt_…: until 2099-01-01 02:00:00 +02:00 'agent' may read\n  mail-work messages: subject, id\nThe token on stdout is shown this once. End it early with: pdpp grant revoke grt_…\n"
    );
    let quiet = create(&home, &["--connection", "mail-work", "-q"]).succeeds();
    assert_eq!(masked(&quiet.stdout), "pdpp_at_…\n");
    assert_eq!(quiet.stderr, "");
}

#[test]
fn the_json_of_a_grant_has_the_agreed_shape() {
    let home = Home::with_mail();
    let ran = create(&home, &["--connection", "mail-work", "--json"]).succeeds();
    assert_eq!(
        masked(&ran.stdout),
        "{\"access_token\":\"pdpp_at_…\",\"token_kind\":\"client\",\"grant_id\":\"grt_…\",\"expires_at\":\"2099-01-01T00:00:00.000Z\",\"streams\":[{\"connection_id\":\"mail-work\",\"stream\":\"messages\",\"fields\":[\"id\",\"subject\",\"body\",\"size\",\"read\",\"sent_at\"]},{\"connection_id\":\"mail-work\",\"stream\":\"receipts\",\"fields\":[\"message\",\"number\",\"note\"]}]}\n"
    );
    assert_eq!(ran.stderr, "");
}

#[test]
fn connections_of_two_sources_make_a_package() {
    let home = mail_and_chat();
    let both = ["--connection", "mail-work", "chat-team"];
    let ran = create(
        &home,
        &[&both[..], &["--stream", "posts", "--stream", "messages"]].concat(),
    )
    .succeeds();
    assert_eq!(masked(&ran.stdout), "pdpp_at_…\n");
    assert_eq!(
        masked(&ran.stderr),
        "Package gpkg_…: until 2099-01-01 02:00:00 +02:00 'agent' may read\n  mail-work messages: id, subject, body, size, read, sent_at\n  chat-team posts: id, subject, body, size, read, sent_at\nThe token on stdout is shown this once. End it early with: pdpp grant revoke gpkg_…\n"
    );
    let repeated = [
        "--connection",
        "mail-work",
        "--connection",
        "chat-team",
        "--json",
    ];
    let json = create(&home, &repeated).succeeds().json();
    assert_eq!(json["token_kind"], "mcp_package");
    assert!(json.get("grant_id").is_none());
    assert_eq!(json["streams"].as_array().unwrap().len(), 4);
    let id = json["grant_package_id"].as_str().unwrap();
    let shown = home.run(&["grant", "show", id]).succeeds();
    assert_eq!(
        masked(&shown.stdout),
        "Package    gpkg_…\nClient     agent\nState      live\nIssued     NOW\nEnds       2099-01-01 02:00:00 +02:00\nLast used  never\nGrant grt_…, live, of https://example.org/connectors/mail for https://pdpp.dev/purpose/agent_context:\n  mail-work messages: id, subject, body, size, read, sent_at\n  mail-work receipts: message, number, note\nGrant grt_…, live, of https://example.org/connectors/chat for https://pdpp.dev/purpose/agent_context:\n  chat-team posts: id, subject, body, size, read, sent_at\n  chat-team receipts: message, number, note\nCalls: none\n"
    );
}

#[test]
fn other_misuse_exits_with_2() {
    let home = Home::with_mail();
    let details = home.file("details.json", "[]");
    for args in [
        &["--connection", "mail-work", "--since", "soon"][..],
        &["--connection", "mail-work", "--details", &details],
        &["--connection"],
    ] {
        let ran = create(&home, args);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert_eq!(ran.stdout, "");
    }
    for args in [
        &["grant"][..],
        &["grant", "create", "--connection", "mail-work"],
        &[
            "grant",
            "create",
            "--client",
            "a",
            "--expires",
            "soon",
            "--connection",
            "mail-work",
        ],
        &["grant", "show"],
        &["grant", "revoke"],
        &["owner-token", "--ttl", "1"],
        &["owner-token", "--ttl", "0s"],
        &["owner-token", "--ttl", "400d"],
        &["owner-token", "--ttl", "é"],
    ] {
        assert_eq!(home.run(args).code, Some(2), "{args:?}");
    }
    assert!(home.run(&["grant", "revke"]).stderr.contains("'revoke'"));
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
    let ran = create(&home, &["--details", &file]).succeeds();
    assert!(
        ran.stderr
            .contains("\n  mail-work messages: subject; only the 2 records a, b\n"),
        "{ran:?}"
    );
    let args = ["grant", "create", "--client", "agent", "--details", "-"];
    let one = DETAILS.replace("[\"a\", \"b\"]", "[\"a\"]");
    let ran = home.run_with(&args, one.as_bytes()).succeeds();
    assert!(
        ran.stderr
            .contains("\n  mail-work messages: subject; only the record a\n"),
        "{ran:?}"
    );
}

#[test]
fn the_details_of_the_documentation_are_granted() {
    let home = Home::new();
    let declaration = include_str!("../../../../examples/mail/declaration.json");
    let file = home.file("mail.json", declaration);
    home.run(&["declare", &file]).succeeds();
    home.run(&["connections", "add", "mail", "--name", "Work"])
        .succeeds();
    let page = include_str!("../../../../docs/grants.md");
    let example = page.split("```json\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    let file = home.file("details.json", example);
    let ran = create(&home, &["--details", &file]).succeeds();
    assert_eq!(
        masked(&ran.stderr),
        "Grant grt_…: until 2099-01-01 02:00:00 +02:00 'agent' may read\n  mail-work messages: id, subject, from_email, received_at; only received_at from 2026-01-01 00:00 UTC before 2026-07-01 00:00 UTC\nThe token on stdout is shown this once. End it early with: pdpp grant revoke grt_…\n"
    );
}

#[test]
fn mistakes_in_details_are_all_named_with_their_place() {
    let home = Home::with_mail();
    let refused = |from: &str, to: &str| {
        let file = home.file("details.json", DETAILS.replace(from, to));
        create(&home, &["--details", &file])
    };
    refused("\"subject\"", "\"subjet\"").refused(
        "~/details.json: /0/streams/0/fields/0: stream \"messages\" has no field \"subjet\"; known: id, subject, body, size, read, sent_at",
    );
    refused("connectors/mail", "connectors/male").refused(
        "~/details.json: /0/source/id: no source \"https://example.org/connectors/male\" is declared; known: https://example.org/connectors/mail",
    );
    refused(DETAILS, "[]").refused(
        "~/details.json: (whole file): is empty, and an empty selection grants nothing; name something or leave it out",
    );
    let none = home.path("none.json");
    create(&home, &["--details", none.to_str().unwrap()])
        .refused("error: ~/none.json: No such file or directory (os error 2)");
    assert_eq!(home.run(&["grants", "--json"]).succeeds().stdout, "[]\n");
}
