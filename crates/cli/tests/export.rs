//! Getting everything out again: exports, backups, and what is left after a purge or without an index.

use std::path::PathBuf;
use std::process::Stdio;

use crate::harness::{Home, holding, lines};
use serde_json::json;

const LINES: &str = r#"{"key":"b","emitted_at":"2026-03-01","data":{ "id":"b", "size":1.50e1,"subject":"\u0042", "deep":{"x":[1,2]} }}
{"key":"a","emitted_at":"2026-03-01T10:00:00+02:00","data":{}}
{"key":"a/ü:1","emitted_at":"2026-03-01T10:00:00Z","data":{"id":"a/ü:1"}}
"#;

#[test]
fn one_record_is_exported_by_any_of_its_names() {
    let home = Home::with_mail();
    home.import_messages(LINES).succeeds();
    let line = home.run("export messages:b").succeeds().stdout;
    assert!(line.starts_with("{\"key\":\"b\","), "{line}");
    let uri = contract::handle::RecordHandle::new(Some("mail-work"), "messages", "a/ü:1").unwrap();
    let named = home.run("export mail-work/messages:b").succeeds();
    assert_eq!(named.stdout, line);
    home.run(format!("export {uri}")).succeeds().shows("a/ü:1");
    home.run("export mail-work/messages:none")
        .refused("error: stream 'messages' of connection 'mail-work' has no record 'none'");
    home.run("export none:b")
        .refused("error: no connection has a stream 'none'\nhint: streams: messages, receipts");
    home.run("export a:/b").refused_saying(&["error: "]);
}

#[test]
fn a_stream_that_several_connections_have_needs_one_named() {
    let home = Home::with_mail();
    home.import_messages(LINES).succeeds();
    home.run("connections add mail --name Home").succeeds();
    let candidates = "error: 2 connections could be meant\nhint: choose with --connection: mail-work ('Work'), mail-home ('Home')";
    home.run("export messages").refused(candidates);
    home.run("export messages:b").refused(candidates);
    let work = home
        .run("export messages --connection mail-work")
        .succeeds();
    assert_eq!(work.stdout.lines().count(), 3);
    let none = home
        .run("export messages --connection mail-home")
        .succeeds();
    assert_eq!(none.stdout, "");
    home.run("export mail-work/messages:b --connection mail-home")
        .refused_saying(&["names the connection 'mail-work' and connection_id names 'mail-home'"]);
}

#[test]
fn a_closed_pipe_ends_an_export_quietly() {
    let home = Home::with_mail();
    let body = "x".repeat(200);
    let lines = lines(3_000, |n| {
        format!("{{\"id\":\"{n}\",\"body\":\"{body}\"}}\n")
    });
    home.import_messages(&lines).succeeds();
    let mut child = home
        .command("export messages")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn a_backup_restores_into_an_empty_folder() {
    let home = Home::with_mail();
    home.import_messages(LINES).succeeds();
    let messages = home.messages();
    for (name, compressed) in [("backup.tar", false), ("backup.tar.gz", true)] {
        let ran = home.run(format!("backup ~/{name}")).succeeds();
        ran.says("To restore into a new folder: pdpp restore");
        let begins = std::fs::read(home.path(name)).unwrap();
        assert_eq!(begins.starts_with(&[0x1f, 0x8b]), compressed);
        let restore = format!("restore ~/{name} --data-dir ~/{name}.restored");
        let ran = home.run(&restore).succeeds();
        ran.says("Restored 3 records and 0 blobs into");
        home.run(&restore).refused(&format!(
            "error: ~/{name}.restored is not empty: it holds 'commits.mark'\nhint: name an empty or new folder with --data-dir; a restore never replaces anything"
        ));
        let exported = home.run(format!("--data-dir ~/{name}.restored export messages"));
        assert_eq!(exported.succeeds().stdout, messages);
        home.run(format!("backup ~/{name}")).refused(&format!(
            "error: ~/{name} exists already\nhint: name a new file; a backup never replaces one"
        ));
    }
    let json = home.run("backup ~/third.tar --json").succeeds().json();
    let bytes = home.path("third.tar").metadata().unwrap().len();
    assert_eq!(json["bytes"], bytes);
    home.run("backup ~/none/b.tar").refused(
        "error: there is no folder ~/none to write into\nhint: make it first, or name another",
    );
}

#[test]
fn a_copy_without_grants_is_told_with_what_ended() {
    // TR-20: for people and as JSON; what is no backup is named.
    let home = Home::with_mail();
    home.import_messages(LINES).succeeds();
    home.grant("--connection mail-work");
    home.run("backup ~/all.tar.gz").succeeds();
    let told = home.run("restore ~/all.tar.gz --data-dir ~/copy --without-grants --json");
    let told = told.succeeds().json();
    let counts = ["records", "live_grants", "ended_grants"].map(|name| told[name].clone());
    assert_eq!(counts, [json!(3), json!(0), json!(1)]);
    assert_eq!(told["damaged"], json!([]));
    home.file("other.tar", "hello");
    home.run("restore ~/other.tar --data-dir ~/nowhere")
        .refused_saying(&["~/other.tar", "name a file that `pdpp backup` wrote"]);
    assert!(!home.path("nowhere").exists());
}

#[test]
fn a_record_that_its_owner_deleted_stays_deleted() {
    // TR-21: through a purge and further imports, until it is revived.
    let home = Home::with_mail();
    let lines = "{\"id\":\"a\",\"subject\":\"zyzzyva\"}\n{\"id\":\"b\"}\n";
    let import = |more: &str| {
        let import = format!("import - --as mail/messages --json {more}");
        let report = home.run_with(import, lines.as_bytes()).succeeds().json();
        ["added", "unchanged", "kept_deleted"].map(|name| report[name].as_u64().unwrap_or(0))
    };
    assert_eq!(import(""), [2, 0, 0]);
    let a = "mail-work/messages:a";
    home.run(format!("delete {a}"))
        .refused_saying(&["no terminal to ask on", &format!("pdpp delete {a} --yes")]);
    home.run(format!("delete {a} mail-work/messages:none --yes"))
        .refused_saying(&["nothing was deleted", "mail-work/messages:none"]);
    assert_eq!(home.messages().lines().count(), 2, "all of them or none");
    let told = home.run(format!("delete {a} {a} --yes")).succeeds();
    assert_eq!(
        told.stderr,
        format!("Deleted {a}. To erase what was held there: pdpp purge\n")
    );
    home.run(format!("fetch {a}"))
        .refused_saying(&["not found"]);
    let found = home.run("search zyzzyva --json").succeeds().json();
    assert_eq!(found["data"].as_array().unwrap().len(), 0);
    assert_eq!(import(""), [0, 1, 1]);
    let purged = home.run("purge --json").succeeds();
    assert_eq!(
        purged.stdout,
        "{\"tombstones\":1,\"blobs\":0,\"log_entries\":0,\"versions\":0}\n"
    );
    assert_eq!(import("--dry-run"), [0, 1, 1]);
    assert_eq!(import(""), [0, 1, 1]);
    let left = holding(&home.data_dir(), "zyzzyva");
    assert_eq!(left, Vec::<PathBuf>::new(), "nothing of it is on the disk");
    assert_eq!(import("--dry-run --revive"), [1, 1, 0]);
    assert_eq!(import("--revive"), [1, 1, 0]);
    assert_eq!(import(""), [0, 2, 0]);
    // What a source deletes may come back from it.
    home.import_messages("{\"key\":\"a\",\"op\":\"delete\"}\n")
        .succeeds();
    assert_eq!(import(""), [1, 1, 0]);
    let json = home.run(format!("delete {a} --yes --json")).succeeds();
    assert_eq!(json.stdout, "{\"deleted\":1}\n");
    home.file("again.jsonl", lines);
    let told = home.run("import ~/again.jsonl --as mail/messages");
    let kept = "Left out because you deleted them here: 1; --revive brings them back.\n";
    assert!(told.succeeds().stderr.ends_with(kept));
}

/// A mail with two attachments, and an answer to it.
const MAIL: &str = "From a@example.test Thu Mar  5 10:00:00 2026\n\
    From: a@example.test\nDate: Thu, 5 Mar 2026 10:00:00 +0000\nMessage-ID: <one@example.test>\nSubject: plans\n\
    MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n\
    --b\nContent-Type: text/plain\n\nSee both.\n\
    --b\nContent-Type: text/plain; name=one.txt\nContent-Disposition: attachment; filename=one.txt\n\nzyzzyva\n\
    --b\nContent-Type: text/plain; name=two.txt\nContent-Disposition: attachment; filename=two.txt\n\nquokka\n\
    --b--\n\n\
    From b@example.test Thu Mar  5 11:00:00 2026\n\
    From: b@example.test\nDate: Thu, 5 Mar 2026 11:00:00 +0000\nMessage-ID: <two@example.test>\n\
    In-Reply-To: <one@example.test>\nSubject: Re: plans\n\nThanks.\n";

#[test]
fn what_belongs_to_a_deleted_record_is_named_and_goes_when_it_is_asked_for() {
    // TR-21
    let home = Home::new();
    home.file("all.mbox", MAIL);
    home.run("import ~/all.mbox").succeeds();
    let ids = |stream: &str| -> Vec<String> {
        let exported = home.run(format!("export {stream}")).succeeds().stdout;
        let key = |line: &str| -> serde_json::Value { serde_json::from_str(line).unwrap() };
        let keys = exported.lines().map(key);
        keys.map(|one| format!("mailbox/{stream}:{}", one["key"].as_str().unwrap()))
            .collect()
    };
    let first = "mailbox/messages:one@example.test";
    let files = ids("attachments");
    assert_eq!((ids("messages").len(), files.len()), (2, 2));
    let asked = home.run(format!("delete {first}"));
    // The newest first.
    let (one, two) = (&files[1], &files[0]);
    let named = format!(
        "Related by files and kept: 2 records ({one}, {two}); to delete them as well: pdpp delete '{one}' '{two}'\n"
    );
    asked.says(&named);
    asked.says("Related by replies and kept: 1 record");
    home.run(format!("delete {first} --with none --yes"))
        .refused_saying(&["by 'none'", "relationships: files, replies"]);
    assert_eq!((ids("messages").len(), ids("attachments").len()), (2, 2));
    let json = home.run("delete mailbox/messages:two@example.test --yes --json");
    assert_eq!(json.succeeds().stdout, "{\"deleted\":1}\n");
    let deleted = home.run(format!("delete {first} --with files --yes"));
    assert!(deleted.succeeds().stderr.starts_with("Deleted 3 records."),);
    assert_eq!((ids("messages").len(), ids("attachments").len()), (0, 0));
    // TR-21: alone, it says what it leaves.
    home.run("import ~/all.mbox --revive").succeeds();
    let left = home.run(format!("delete {first} --yes")).succeeds();
    left.says(&named);
    home.run(format!("delete {one} {two} --yes")).succeeds();
    let purged = home.run("purge").succeeds();
    purged.hides("1 deleted records");
    assert_eq!(holding(&home.data_dir(), "quokka"), Vec::<PathBuf>::new());
}
