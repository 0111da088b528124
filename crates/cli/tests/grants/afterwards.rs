//! `pdpp grants`, `grant show`, `grant revoke` and `grants verify`: what becomes of a grant.

use std::fs;

use super::world::{disclose, issued, masked};
use crate::harness::Home;

#[test]
fn a_grant_is_shown_with_the_calls_it_was_used_for() {
    let home = Home::with_mail();
    let id = issued(&home, "--connection mail-work --stream receipts");
    disclose(
        &home,
        &id,
        &[
            ("schema", "", ""),
            ("search", "r:1 r:2 r:3 r:4", "note"),
            ("fetch", "r\u{7}:5", "message note"),
        ],
    );
    let head = "Grant      grt_…\nClient     agent\nState      live\nIssued     NOW\nEnds       2099-01-01 02:00:00 +02:00\nLast used  NOW\nOf https://example.org/connectors/mail for https://pdpp.dev/purpose/agent_context:\n  mail-work receipts: message, number, note\nagreed to as sha256:…\nCalls, newest first:\n  NOW fetch: r\\u{7}:5; fields message, note\n";
    let shown = home.run(format!("grant show {id}")).succeeds();
    assert_eq!(
        masked(&shown.stdout),
        format!(
            "{head}  NOW search: r:1, r:2, r:3 and 1 more; fields note\n  NOW schema: no records\n"
        )
    );
    assert_eq!(shown.stderr, "");
    let cut = home.run(format!("grant show {id} --calls 1")).succeeds();
    assert_eq!(masked(&cut.stdout), head);
    assert_eq!(
        masked(&cut.stderr),
        "There are earlier calls: pdpp grant show grt_… --calls 100\n"
    );
    let json = home
        .run(format!("grant show {id} --json"))
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
fn the_disclosure_log_is_verified_and_tampering_is_found() {
    let home = Home::with_mail();
    let verify = |more: &str| home.run(format!("grants verify {more}"));
    assert_eq!(
        verify("").succeeds().stdout,
        "The disclosure log is whole. Entries, each as it was written: 0.\n"
    );
    let id = issued(&home, "--connection mail-work");
    let calls = [
        ("fetch", "m:honest", "subject"),
        ("fetch", "m:quixotic", "subject"),
        ("fetch", "m:later", "subject"),
    ];
    disclose(&home, &id, &calls);
    assert_eq!(
        verify("").succeeds().stdout,
        "The disclosure log is whole. Entries, each as it was written: 3.\n"
    );
    assert_eq!(
        verify("--json").succeeds().stdout,
        "{\"entries\":3,\"dropped\":0,\"waiting\":0,\"broken\":null}\n"
    );

    home.end_server();
    let path = home.data_dir().join("records.db");
    let mut content = fs::read(&path).unwrap();
    let word = b"quixotic";
    let at = content.windows(word.len()).position(|bytes| bytes == word);
    content[at.unwrap()] = b'Q';
    fs::write(&path, content).unwrap();
    verify("").refused(
        "error: the disclosure log is broken at entry 2: the entry, or one before it, is not what was written\nhint: entries before it that stand as they were written: 1; a backup made before the change shows what the others were",
    );
    assert_eq!(
        verify("--json").exits(1).stdout,
        "{\"entries\":1,\"dropped\":0,\"waiting\":0,\"broken\":{\"sequence\":2,\"reason\":\"the entry, or one before it, is not what was written\"}}\n"
    );
}
