//! `pdpp grants`, `grant show`, `grant revoke` and `grants verify`: what becomes of a grant.

use std::fs;

use crate::harness::Home;
use crate::world::{Call, END_HERE, disclose, issued, mail_and_chat, masked};

#[test]
fn grants_are_listed_newest_first() {
    let home = Home::with_mail();
    let empty = home.run(&["grants"]).succeeds();
    assert_eq!(empty.stdout, "");
    assert_eq!(
        empty.stderr,
        "Nothing was granted yet. Grant something with: pdpp grant create --client NAME --connection ID\n"
    );
    let first = issued(&home, &["--connection", "mail-work"]);
    let named = [
        "grant",
        "create",
        "--client",
        "Claude Desktop",
        "--expires",
        "2099-01-01",
    ];
    home.run(
        &[
            &named[..],
            &["--connection", "mail-work", "--stream", "receipts"],
        ]
        .concat(),
    )
    .succeeds();
    home.run(&["grant", "revoke", &first]).succeeds();
    let listed = home.run(&["grants"]).succeeds();
    let pad = " ".repeat("0123456789abcdef".len());
    let below = " ".repeat(86);
    assert_eq!(
        masked(&listed.stdout),
        format!(
            "ID  {pad}  CLIENT          STATE    ENDS                        LAST USED  MAY READ\ngrt_…  Claude Desktop  live     {END_HERE}  never      mail-work receipts: message, number, note\ngrt_…  agent           revoked  {END_HERE}  never      mail-work messages: id, subject, body, size, read, sent_at\n{below}mail-work receipts: message, number, note\n"
        )
    );
    assert_eq!(listed.stderr, "");
    let json = home.run(&["grants", "--json"]).succeeds();
    let mut of_first = json.json()[1].clone();
    // TR-11: the list holds the grants as `grant show` has them.
    let shown = home.run(&["grant", "show", &first, "--json"]).succeeds();
    assert_eq!(of_first["grants"], shown.json()["grants"]);
    of_first.as_object_mut().unwrap().remove("grants");
    let of_first = of_first.to_string();
    assert_eq!(
        masked(&of_first),
        "{\"id\":\"grt_…\",\"token_kind\":\"client\",\"client_id\":\"agent\",\"state\":\"revoked\",\"issued_at\":\"NOW\",\"expires_at\":\"2099-01-01T00:00:00.000Z\",\"revoked_at\":\"NOW\",\"revoked_reason\":\"owner\",\"last_used_at\":null,\"grant_ids\":[\"grt_…\"],\"streams\":[{\"connection_id\":\"mail-work\",\"stream\":\"messages\",\"fields\":[\"id\",\"subject\",\"body\",\"size\",\"read\",\"sent_at\"]},{\"connection_id\":\"mail-work\",\"stream\":\"receipts\",\"fields\":[\"message\",\"number\",\"note\"]}]}"
    );
}

#[test]
fn a_grant_is_shown_with_the_calls_it_was_used_for() {
    let home = Home::with_mail();
    let id = issued(
        &home,
        &["--connection", "mail-work", "--stream", "receipts"],
    );
    disclose(
        &home,
        &id,
        &[
            ("schema", &[], &[]),
            ("search", &["r:1", "r:2", "r:3", "r:4"], &["note"]),
            ("fetch", &["r\u{7}:5"], &["message", "note"]),
        ],
    );
    let head = "Grant      grt_…\nClient     agent\nState      live\nIssued     NOW\nEnds       2099-01-01 02:00:00 +02:00\nLast used  NOW\nOf https://example.org/connectors/mail for https://pdpp.dev/purpose/agent_context:\n  mail-work receipts: message, number, note\nCalls, newest first:\n  NOW fetch: r\\u{7}:5; fields message, note\n";
    let shown = home.run(&["grant", "show", &id]).succeeds();
    assert_eq!(
        masked(&shown.stdout),
        format!(
            "{head}  NOW search: r:1, r:2, r:3 and 1 more; fields note\n  NOW schema: no records\n"
        )
    );
    assert_eq!(shown.stderr, "");
    let cut = home.run(&["grant", "show", &id, "--calls", "1"]).succeeds();
    assert_eq!(masked(&cut.stdout), head);
    assert_eq!(
        masked(&cut.stderr),
        "There are earlier calls: pdpp grant show grt_… --calls 100\n"
    );
    let json = home
        .run(&["grant", "show", &id, "--json"])
        .succeeds()
        .json();
    assert_eq!(json["id"], id.as_str());
    assert_eq!(json["grants"][0]["grant_id"], id.as_str());
    assert_eq!(
        json["disclosures"][1]["records"].as_array().unwrap().len(),
        4
    );
}

#[test]
fn revoking_holds_at_once_and_twice_is_harmless() {
    let home = Home::with_mail();
    let id = issued(&home, &["--connection", "mail-work"]);
    let ran = home.run(&["grant", "revoke", &id]).succeeds();
    assert_eq!(ran.stdout, "");
    assert_eq!(
        masked(&ran.stderr),
        "Revoked grant grt_…. Nothing can be read under it any more.\n"
    );
    let again = home.run(&["grant", "revoke", &id]).succeeds();
    assert_eq!(
        masked(&again.stderr),
        "Nothing to do: grant grt_… was revoked at NOW.\n"
    );
    let json = home.run(&["grant", "revoke", &id, "--json"]).succeeds();
    assert_eq!(
        masked(&json.stdout),
        "{\"id\":\"grt_…\",\"kind\":\"grant\",\"already_since\":\"NOW\"}\n"
    );
    let shown = home.run(&["grant", "show", &id]).succeeds();
    assert!(shown.stdout.contains("\nState      revoked\n"), "{shown:?}");
}

#[test]
fn one_grant_of_a_package_can_be_revoked() {
    let home = mail_and_chat();
    let id = issued(&home, &["--connection", "mail-work", "chat-team"]);
    let json = home
        .run(&["grant", "show", &id, "--json"])
        .succeeds()
        .json();
    let first = json["grant_ids"][0].as_str().unwrap();
    home.run(&["grant", "revoke", first]).succeeds();
    let shown = home.run(&["grant", "show", &id]).succeeds().stdout;
    assert!(shown.contains("\nState      live\n"), "{shown}");
    assert!(
        shown.contains(&format!("\nGrant {first}, revoked, of ")),
        "{shown}"
    );
    let package = home.run(&["grant", "revoke", &id]).succeeds();
    assert_eq!(
        masked(&package.stderr),
        "Revoked package gpkg_…. Nothing can be read under it any more.\n"
    );
}

#[test]
fn a_removed_connection_ends_its_grant() {
    let home = Home::with_mail();
    let id = issued(&home, &["--connection", "mail-work"]);
    home.run(&["connections", "remove", "mail-work", "--yes"])
        .succeeds();
    let json = home
        .run(&["grant", "show", &id, "--json"])
        .succeeds()
        .json();
    assert_eq!(json["state"], "revoked");
    assert_eq!(json["revoked_reason"], "connection_removed");
    let shown = home.run(&["grant", "show", &id]).succeeds().stdout;
    assert!(shown.contains("\nRevoked    "), "{shown}");
}

#[test]
fn the_disclosure_log_is_verified_and_tampering_is_found() {
    let home = Home::with_mail();
    let verify = |more: &[&str]| home.run(&[&["grants", "verify"], more].concat());
    assert_eq!(
        verify(&[]).succeeds().stdout,
        "The disclosure log is whole. Entries, each as it was written: 0.\n"
    );
    let id = issued(&home, &["--connection", "mail-work"]);
    let calls: [Call<'_>; 3] = [
        ("fetch", &["m:honest"], &["subject"]),
        ("fetch", &["m:quixotic"], &["subject"]),
        ("fetch", &["m:later"], &["subject"]),
    ];
    disclose(&home, &id, &calls);
    assert_eq!(
        verify(&[]).succeeds().stdout,
        "The disclosure log is whole. Entries, each as it was written: 3.\n"
    );
    assert_eq!(
        verify(&["--json"]).succeeds().stdout,
        "{\"entries\":3,\"dropped\":0,\"waiting\":0,\"broken\":null}\n"
    );

    home.end_server();
    let path = home.data_dir().join("records.db");
    let mut content = fs::read(&path).unwrap();
    let word = b"quixotic";
    let at = content.windows(word.len()).position(|bytes| bytes == word);
    content[at.unwrap()] = b'Q';
    fs::write(&path, content).unwrap();
    verify(&[]).refused(
        "error: the disclosure log is broken at entry 2: the entry, or one before it, is not what was written\nhint: entries before it that stand as they were written: 1; a backup made before the change shows what the others were",
    );
    let json = verify(&["--json"]);
    assert_eq!(json.code, Some(1));
    assert_eq!(
        json.stdout,
        "{\"entries\":1,\"dropped\":0,\"waiting\":0,\"broken\":{\"sequence\":2,\"reason\":\"the entry, or one before it, is not what was written\"}}\n"
    );
}
