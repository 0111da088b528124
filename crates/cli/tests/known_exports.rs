//! Known exports: recognised, declared and connected by themselves.
#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

mod harness;

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use harness::Home;

const MBOX: &str = "From 17@xxx Mon Mar 04 10:11:12 +0000 2024\r\nX-GM-THRID: 17\r\nX-Gmail-Labels: Inbox,Opened\r\nMessage-ID: <one@example.org>\r\nDate: Mon, 4 Mar 2024 11:11:12 +0100\r\nFrom: \"Ada\" <ada@example.org>\r\nTo: me@example.org\r\nSubject: =?UTF-8?Q?Caf=C3=A9?=\r\n\r\nThe marzipan arrived.\r\n>From here on all is well.\r\n\r\nFrom 18@xxx Tue Mar 05 10:11:12 +0000 2024\r\nnonsense\r\n\r\nFrom 19@xxx Tue Mar 05 10:11:12 +0000 2024\r\nMessage-ID: <two@example.org>\r\nFrom: ada@example.org\r\nSubject: Second\r\n\r\nNothing.\r\n";

#[test]
fn mail_is_imported_with_nothing_declared() {
    let home = Home::new();
    let file = home.file("All mail.mbox", MBOX);
    home.run(format!("import '{file}'")).refused(
        "Recognised mail (mbox or eml). Added the connection 'mailbox' for it.\nImported into 'Mailbox': 3 read, 2 added, 0 updated, 0 unchanged, 1 rejected.\n  line 13: malformed_mail: the message cannot be read: it has none of the headers of a message, or over 1 MiB of them",
    );
    let again = home.run(format!("import '{file}' --json"));
    assert_eq!(again.stderr, "");
    assert_eq!(
        again.json(),
        serde_json::json!({"read": 3, "added": 0, "updated": 0, "unchanged": 2, "rejected": 1, "rejections": [
            {"line": 13, "code": "malformed_mail", "message": "the message cannot be read: it has none of the headers of a message, or over 1 MiB of them"},
        ]})
    );
    home.run("search marzipan --json")
        .succeeds()
        .shows("one@example.org");
}

#[test]
fn a_dry_run_of_a_known_export_makes_nothing() {
    let home = Home::new();
    let message = "Subject: Hello\nFrom: ada@example.org\n\nHi\n";
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(message.as_bytes()).unwrap();
    let file = home.file("hello.eml.gz", packed.finish().unwrap());
    let told = home.run(format!("import {file} --dry-run")).succeeds();
    assert_eq!(
        told.stderr,
        "Recognised mail (mbox or eml). It would go into a new connection 'Mailbox'.\nDry run for 'Mailbox', nothing was written: 1 read, 1 added, 0 updated, 0 unchanged, 0 rejected.\n"
    );
    assert_eq!(home.run("connections --json").stdout, "[]\n");
    home.run(format!("import {file}")).succeeds();
    let again = home.run(format!("import {file} --dry-run")).succeeds();
    assert_eq!(
        again.stderr,
        "Dry run for 'Mailbox', nothing was written: 1 read, 0 added, 0 updated, 1 unchanged, 0 rejected.\n"
    );
}

#[test]
fn a_known_export_goes_only_where_it_belongs() {
    let home = Home::with_mail();
    let mail = home.file("Inbox", MBOX);
    let lines = home.file("messages.jsonl", "{\"id\":\"a\"}\n");
    home.run(format!("import {mail} --connection mail-work")).refused(
        "error: connection 'mail-work' is one of connector 'mail'; mail (mbox or eml) goes into one of 'mailbox'\nhint: leave out --connection to have one made",
    );
    home.run(format!("import {mail} --as mail/messages")).refused(
        "error: the input is mail (mbox or eml), which knows its streams itself\nhint: leave out --as",
    );
    home.run(format!("import {mail} {lines}")).refused(
        "error: ~/Inbox is mail (mbox or eml) and ~/messages.jsonl is no export that is recognised\nhint: import each kind with a command of its own",
    );
    // A pipe is not looked at before it is read, and still nothing of it ends up in the wrong place.
    let piped = home.run_with("import - --connection mail-work", MBOX.as_bytes());
    piped.refused_saying(&[
        "error: stdin: it is mail (mbox or eml), which goes into a connection of 'mailbox', not of 'mail'",
        "hint: write it to a file and import that: then it is recognised, and its connection found or added",
    ]);
    home.run_with("import -", b"id,subject\na,x\n")
        .refused_saying(&["Write anything else to a file first, CSV to one named .csv"]);
    assert_eq!(home.messages(), "");
}

#[test]
fn of_several_mailboxes_the_one_that_is_named_is_taken() {
    let home = Home::new();
    let mail = home.file("hello.eml", "Subject: Hello\nFrom: ada@example.org\n\nHi\n");
    home.run(format!("import {mail}")).succeeds();
    home.run("connections add mailbox --name Work").succeeds();
    home.run(format!("import {mail}")).refused(
        "error: 2 connections could be meant\nhint: choose with --connection: mailbox ('Mailbox'), mailbox-work ('Work')",
    );
    let named = home
        .run(format!("import {mail} --connection Work"))
        .succeeds();
    assert_eq!(
        named.stderr,
        "Imported into 'Work': 1 read, 1 added, 0 updated, 0 unchanged, 0 rejected.\n"
    );
}

#[test]
fn a_file_that_nobody_can_read_is_refused_before_there_is_a_place_for_it() {
    let home = Home::new();
    let file = home.file("notes.txt", "Dear diary");
    home.run(format!("import {file}")).refused(
        "error: ~/notes.txt: neither its name nor its content tells what it holds; name it .jsonl, .ndjson or .csv. Known exports are recognised by themselves: mail (mbox or eml), a Telegram export (result.json), a WhatsApp chat (txt), calendars (ics), contacts (vcf)",
    );
}
