//! Known exports, as people download them: a file, one command, and they are declared, connected and found.

use std::io::Write;

use crate::archives;
use crate::harness::Home;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

const MBOX: &str = "From 17@xxx Mon Mar 04 10:11:12 +0000 2024\r\nX-GM-THRID: 17\r\nX-Gmail-Labels: Inbox,Opened\r\nMessage-ID: <one@example.org>\r\nDate: Mon, 4 Mar 2024 11:11:12 +0100\r\nFrom: \"Ada\" <ada@example.org>\r\nTo: me@example.org\r\nSubject: =?UTF-8?Q?Caf=C3=A9?=\r\n\r\nThe marzipan arrived.\r\n>From here on all is well.\r\n\r\nFrom 18@xxx Tue Mar 05 10:11:12 +0000 2024\r\nnonsense\r\n\r\nFrom 19@xxx Tue Mar 05 10:11:12 +0000 2024\r\nMessage-ID: <two@example.org>\r\nFrom: ada@example.org\r\nSubject: Second\r\n\r\nNothing.\r\n";

const CALENDAR: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nX-WR-CALNAME:Family\r\nX-WR-TIMEZONE:Europe/Berlin\r\n\
    BEGIN:VEVENT\r\nUID:dentist@example.org\r\nDTSTAMP:20260101T000000Z\r\nDTSTART:20260312T170000Z\r\nDTEND:20260312T180000Z\r\n\
    SUMMARY:Dentist\r\nDESCRIPTION:Bring the marzi\r\n pan.<br>Ask for Ms Weber.\r\nEND:VEVENT\r\n\
    BEGIN:VEVENT\r\nUID:fair@example.org\r\nDTSTART;VALUE=DATE:20260501\r\nSUMMARY:May fair\r\n\
    ATTENDEE;CN=Jonas Huber:mailto:jonas@example.org\r\nEND:VEVENT\r\n\
    BEGIN:VEVENT\r\nUID:bad\r\nDTSTART:soon\r\nEND:VEVENT\r\n\
    BEGIN:VTODO\r\nUID:plants\r\nSUMMARY:Water the plants\r\nEND:VTODO\r\nEND:VCALENDAR\r\n";

const CONTACTS: &str = "BEGIN:VCARD\nVERSION:3.0\nFN:Jonas Huber\nORG:Bakery Huber;\nEMAIL:jonas@example.org\nADR:;;Lane 1;Graz;;8010;Austria\nEND:VCARD\n\
    BEGIN:VCARD\nVERSION:2.1\nN;ENCODING=QUOTED-PRINTABLE;CHARSET=UTF-8:M=C3=BCller;Eva;;;\nTEL;CELL:0170 1234\nEND:VCARD\n";

const TELEGRAM: &str = include_str!("../../ingest/tests/exports/telegram/result.json");

const WHATSAPP: &str = "1/2/24, 9:15 PM - Anna: The ferry leaves at nine\n\
    1/2/24, 9:15 PM - Ben: ok\n\
    1/2/24, 9:15 PM - Ben: ok\n\
    1/2/24, 9:16 PM - Anna: <Media omitted>\n";

/// A download: what is said of it, how much is in it, and the words that find one of its records.
struct Download {
    file: &'static str,
    content: &'static str,
    recognised: &'static str,
    connection: &'static str,
    read: u64,
    /// What is told of the line that is no record, or of how the file is read.
    told: &'static str,
    words: &'static str,
    /// What the record found says of itself.
    of: &'static str,
}

const DOWNLOADS: [Download; 5] = [
    Download {
        file: "All mail.mbox",
        content: MBOX,
        recognised: "mail (mbox, eml, emlx or a Maildir)",
        connection: "mailbox",
        read: 3,
        told: "line 13: malformed_mail: the message cannot be read: it has none of the headers of a message, or over 1 MiB of them",
        words: "marzipan",
        of: "one@example.org",
    },
    Download {
        file: "basic.ics",
        content: CALENDAR,
        recognised: "calendars (ics)",
        connection: "calendar-file",
        read: 4,
        told: "line 20: malformed_export: DTSTART is no time: 'soon'",
        words: "marzipan weber",
        of: "dentist@example.org",
    },
    Download {
        file: "contacts.vcf",
        content: CONTACTS,
        recognised: "contacts (vcf)",
        connection: "contacts-file",
        read: 2,
        told: "",
        words: "graz bakery",
        of: "Jonas Huber",
    },
    Download {
        file: "result.json",
        content: TELEGRAM,
        recognised: "a Telegram export (result.json)",
        connection: "telegram",
        read: 13,
        told: "",
        words: "timetable",
        of: "user42-0000000017",
    },
    Download {
        file: "WhatsApp Chat with Trip.txt",
        content: WHATSAPP,
        recognised: "a WhatsApp chat (txt)",
        connection: "whatsapp",
        read: 5,
        told: "Note: no date in it tells the day from the month; they are read as month/day/year.",
        words: "ferry",
        of: "Trip",
    },
];

#[test]
fn every_known_export_is_imported_with_nothing_declared_and_once() {
    for one in DOWNLOADS {
        let home = Home::new();
        home.file(one.file, one.content);
        let import = format!("import '~/{}'", one.file);
        let rejected = u64::from(one.told.starts_with("line "));
        let added = one.read - rejected;
        let exit = i32::from(rejected > 0);
        let first = home.run(&import).exits(exit);
        first.says_all(&[
            &format!(
                "Recognised {}. Added the connection '{}' for it.\n",
                one.recognised, one.connection
            ),
            &format!(": {added} added, 0 updated, 0 unchanged, {rejected} rejected.\n"),
            one.told,
        ]);
        let again = home.run(format!("{import} --json")).exits(exit).json();
        let counts = ["read", "added", "unchanged", "rejected"].map(|name| again[name].clone());
        assert_eq!(
            counts,
            [one.read, 0, added, rejected].map(Value::from),
            "{again}"
        );
        let found = home
            .run(format!("search '{}' --json", one.words))
            .succeeds()
            .json();
        let hit = found["data"][0].to_string();
        assert!(hit.contains(one.of), "{found}");
    }
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
        "Recognised mail (mbox, eml, emlx or a Maildir). It would go into a new connection 'Mailbox'.\nDry run for 'Mailbox', nothing was written: 1 message: 1 added, 0 updated, 0 unchanged, 0 rejected.\n"
    );
    assert_eq!(home.run("connections --json").stdout, "[]\n");
    home.run(format!("import {file}")).succeeds();
    let again = home.run(format!("import {file} --dry-run")).succeeds();
    assert_eq!(
        again.stderr,
        "Dry run for 'Mailbox', nothing was written: 1 message: 0 added, 0 updated, 1 unchanged, 0 rejected.\n"
    );
}

#[test]
fn a_known_export_goes_only_where_it_belongs() {
    let home = Home::with_mail();
    let mail = home.file("Inbox", MBOX);
    let lines = home.file("messages.jsonl", "{\"id\":\"a\"}\n");
    home.run(format!("import {mail} --connection mail-work")).refused(
        "error: connection 'mail-work' is one of connector 'mail'; mail (mbox, eml, emlx or a Maildir) goes into one of 'mailbox'\nhint: leave out --connection to have one made",
    );
    home.run(format!("import {mail} --as mail/messages")).refused(
        "error: the input is mail (mbox, eml, emlx or a Maildir), which knows its streams itself\nhint: leave out --as",
    );
    home.run(format!("import {mail} {lines}")).refused(
        "error: ~/Inbox is mail (mbox, eml, emlx or a Maildir) and ~/messages.jsonl is no export that is recognised\nhint: import each kind with a command of its own",
    );
    // A pipe is not looked at before it is read, and still nothing of it ends up in the wrong place.
    let piped = home.run_with("import - --connection mail-work", MBOX.as_bytes());
    piped.refused_saying(&[
        "error: stdin: it is mail (mbox, eml, emlx or a Maildir), which goes into a connection of 'mailbox', not of 'mail'",
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
        "Imported into 'Work': 1 message: 1 added, 0 updated, 0 unchanged, 0 rejected.\n"
    );
}

#[test]
fn a_recurring_event_is_written_out_also_where_an_earlier_release_declared_calendars() {
    // AN-30: in a store whose declaration knows no occurrences yet.
    let home = Home::new();
    let bundled = include_str!("../../ingest/declarations/calendar-file.json");
    let mut earlier: Value = serde_json::from_str(bundled).unwrap();
    earlier["declaration_version"] = json!("1");
    let events = &mut earlier["streams"][0];
    let fields = events["schema"]["properties"].as_object_mut().unwrap();
    fields.retain(|name, _| name != "occurrence_of" && name != "series_starts_at");
    events.as_object_mut().unwrap().remove("relationships");
    events["query"].as_object_mut().unwrap().remove("expand");
    let groups = events.pointer_mut("/query/aggregations/group_by").unwrap();
    groups
        .as_array_mut()
        .unwrap()
        .retain(|name| name != "occurrence_of");
    let declaration = home.file("earlier.json", earlier.to_string());
    home.run(format!("declare {declaration}")).succeeds();
    let file = home.file(
        "weekly.ics",
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:w\nDTSTART:20260302T090000Z\nRRULE:FREQ=WEEKLY;COUNT=3\nSUMMARY:Choir\nEND:VEVENT\nEND:VCALENDAR\n",
    );
    let report = home.run(format!("import {file}")).succeeds();
    assert!(
        report.stderr.ends_with("1 event: 1 added, 0 updated, 0 unchanged, 0 rejected.\nOccurrences of recurring events: 2 added, 0 updated, 0 removed, 0 unchanged.\n"),
        "{report:?}"
    );
    let found = home.run(
        "query events --filter starts_at>=2026-03-09 --filter starts_at<2026-03-10 --filter occurrence_of=w --json",
    );
    let found = found.succeeds().json();
    assert_eq!(found["data"][0]["id"], json!("w_20260309T090000Z"));
    let count = home.run("aggregate events count --json").succeeds();
    assert_eq!(count.json()["value"], json!(3));
}

fn takeout() -> Vec<u8> {
    let chat = archives::zip(&[("_chat.txt", WHATSAPP.as_bytes())]);
    // So many that the damage is beyond what is looked at first.
    let contacts = CONTACTS.repeat(200);
    let mut damaged = archives::zip_of(&[
        (
            "Takeout/Mail/All mail.mbox",
            MBOX.as_bytes(),
            archives::Packed::Deflated,
        ),
        (
            "Takeout/Calendar/Family.ics",
            CALENDAR.as_bytes(),
            archives::Packed::Deflated,
        ),
        (
            "Takeout/Contacts/Broken.vcf",
            contacts.as_bytes(),
            archives::Packed::Stored,
        ),
        (
            "Takeout/WhatsApp Chat - Trip.zip",
            &chat,
            archives::Packed::Deflated,
        ),
        ("Takeout/Photos/a.jpg", b"jpeg", archives::Packed::Stored),
        (
            "Takeout/Maps/settings.xyz",
            b"who knows",
            archives::Packed::Stored,
        ),
        (
            "../../outside.ics",
            CALENDAR.as_bytes(),
            archives::Packed::Stored,
        ),
    ]);
    let at = damaged
        .windows(6)
        .rposition(|six| six == b"Bakery")
        .unwrap();
    damaged[at] = b'X';
    damaged
}

#[test]
fn an_archive_of_many_exports_is_imported_with_one_command() {
    let home = Home::new();
    home.file("takeout.zip", takeout());
    let first = home.run("import ~/takeout.zip").exits(1);
    first.says_all(&[
        "Recognised mail (mbox, eml, emlx or a Maildir). Added the connection 'mailbox' for it.\n",
        "Imported into 'Mailbox': 2 messages: 2 added, 0 updated, 0 unchanged, 1 rejected.\n",
        "Recognised calendars (ics). Added the connection 'calendar-file' for it.\n",
        "Imported into 'WhatsApp': 1 chat, 4 messages: 5 added, 0 updated, 0 unchanged, 0 rejected.\n",
        "Files: 4 taken, 1 known and left, 1 unknown.\n",
        "  left: 1 file: pictures, sounds and films\n",
        "  unknown: ~/takeout.zip/Takeout/Maps/settings.xyz\n",
        "  not read: ~/takeout.zip/../../outside.ics: the name leads outside the archive\n",
        "  passed over: ~/takeout.zip/Takeout/Contacts/Broken.vcf: it cannot be read",
    ]);
    let again = home.run("import ~/takeout.zip --json").exits(1).json();
    assert_eq!(again["added"], 0, "{again}");
    assert_eq!(again["imports"].as_array().unwrap().len(), 4, "{again}");
    assert_eq!(again["files"]["taken"], 4, "{again}");
    assert_eq!(again["files"]["skipped"][0]["count"], 1, "{again}");
    for words in ["marzipan weber", "ferry"] {
        let found = home
            .run(format!("search '{words}' --json"))
            .succeeds()
            .json();
        assert!(found["data"][0].is_object(), "{found}");
    }
    assert!(!home.path("outside.ics").exists());
    let dry = Home::new();
    dry.file("takeout.zip", takeout());
    dry.run("import ~/takeout.zip --dry-run").exits(1);
    assert_eq!(dry.run("connections --json").stdout, "[]\n");
}

#[test]
fn a_folder_without_anything_known_is_told_what_is_in_it() {
    let home = Home::new();
    std::fs::create_dir(home.path("life")).unwrap();
    home.file("life/diary.xyz", "Dear diary");
    home.run("import ~/life").refused(
        "Files: 0 taken, 0 known and left, 1 unknown.\n  unknown: ~/life/diary.xyz\nerror: nothing in it is known, so nothing was imported\nhint: `pdpp import --list` says which exports are known, and how to get them",
    );
    // What is known and left is said as such, also where nothing is taken.
    std::fs::create_dir(home.path("slack")).unwrap();
    home.file(
        "slack/integration_logs.json",
        r#"[{"user_id": "U1", "date": "1"}]"#,
    );
    home.run("import ~/slack").refused(
        "Files: 0 taken, 1 known and left, 0 unknown.\n  left: 1 file: parts of a Slack export that hold no messages\nerror: what is in it is known and becomes no records, so nothing was imported\nhint: `pdpp import --list` says which exports are known, and how to get them",
    );
    let told = home.run("import ~/slack --json").exits(1).json();
    assert_eq!(told["files"]["left"][0]["count"], 1, "{told}");
    let listed = home.run("import --list").succeeds();
    listed.shows_all(&[
        "a Telegram export (result.json)\n  get it:  Telegram Desktop: ",
        "  becomes: messages with their labels, and attachments\n",
        "Signal\n  not known: ",
    ]);
    let listed = home.run("import --list --json").succeeds().json();
    assert!(listed.as_array().unwrap().len() > 10, "{listed}");
}

#[test]
fn mail_goes_into_the_connection_of_the_account_that_it_names() {
    let home = Home::new();
    let mail = |account: &str, id: &str| {
        format!(
            "From - Mon Mar 04 10:11:12 2024\nDelivered-To: {account}\nMessage-ID: <{id}@example.org>\nSubject: x\n\nHello\n\n"
        )
    };
    home.file("ida.mbox", mail("ida@example.org", "1"));
    home.file("noor.mbox", mail("noor@example.org", "2"));
    home.run("import ~/ida.mbox")
        .succeeds()
        .says("Imported into 'Mailbox (ida@example.org)': 1 message: 1 added");
    home.run("import ~/noor.mbox")
        .succeeds()
        .says("Imported into 'Mailbox (noor@example.org)': 1 message: 1 added");
    home.run("import ~/ida.mbox")
        .succeeds()
        .says("Imported into 'Mailbox (ida@example.org)': 1 message: 0 added");
}

#[test]
fn lists_of_people_labels_and_tags_are_searched_filtered_and_grouped_by() {
    let home = Home::new();
    let mail = "From - Mon Mar 04 10:11:12 2024\nMessage-ID: <1@example.org>\nX-Gmail-Labels: Inbox,Harbour\nTo: Ida <ida@example.org>\nCc: noor@example.org\nSubject: x\n\nHello\n\n";
    home.file("one.mbox", mail);
    home.run("import ~/one.mbox").succeeds();
    // Their fixtures have lines that are refused.
    home.run("import '../ingest/tests/exports/github'").exits(1);
    home.run("import '../ingest/tests/exports/slack'").exits(1);
    for (stream, filter, word) in [
        (
            "messages --connection mailbox",
            "labels~=Harbour",
            "Harbour",
        ),
        (
            "messages --connection mailbox",
            "to~=Ida <ida@example.org>",
            "ida@example.org",
        ),
        (
            "messages --connection mailbox",
            "cc~=noor@example.org",
            "noor@example.org",
        ),
        (
            "messages --connection mailbox",
            "participants~=ida@example.org",
            "ida@example.org",
        ),
        ("issues", "labels~=bug", "bug"),
        ("channels", "members~=Noor Haddad", "Haddad"),
    ] {
        let found = home.run(format!("query {stream} --filter '{filter}' --json"));
        let found = found.succeeds().json();
        assert!(
            !found["data"].as_array().unwrap().is_empty(),
            "{filter}: {found}"
        );
        let none = home.run(format!("query {stream} --filter '{filter}x' --json"));
        let none = none.succeeds().json();
        assert!(
            none["data"].as_array().unwrap().is_empty(),
            "{filter}x: {none}"
        );
        let found = home
            .run(format!("search '{word}' --json"))
            .succeeds()
            .json();
        assert!(
            !found["data"].as_array().unwrap().is_empty(),
            "{word}: {found}"
        );
    }
}

#[test]
fn one_file_that_is_nothing_known_keeps_no_other_out() {
    let home = Home::new();
    home.file("one.mbox", MBOX.split("From 18@").next().unwrap());
    home.file("odd.xyz", "who knows");
    home.file("nothing.csv", "");
    let imported = home.run("import ~/odd.xyz ~/gone.mbox ~/nothing.csv ~/one.mbox");
    imported.exits(1).says_all(&[
        "error: ~/nothing.csv: it is empty\n",
        "error: ~/odd.xyz: neither its name nor its content tells what it holds",
        "gone.mbox",
        "Imported into 'Mailbox': 1 message: 1 added, 0 updated, 0 unchanged, 0 rejected.\n",
    ]);
    // Of one alone nothing is taken, and nothing is said of others.
    home.run("import ~/odd.xyz").exits(1);
    let home = Home::new();
    home.file("nothing.csv", "");
    home.run("import ~/nothing.csv")
        .refused("error: ~/nothing.csv: it is empty");
}

#[test]
fn what_was_sent_in_a_chat_is_no_contact_and_no_document_of_its_own() {
    let home = Home::new();
    let chat = archives::zip(&[
        ("_chat.txt", WHATSAPP.as_bytes()),
        ("00000004-Noor.vcf", CONTACTS.as_bytes()),
        ("00000005-plan.txt", b"The plan: marzipan first."),
        ("00000006-dates.ics", CALENDAR.as_bytes()),
    ]);
    home.file("WhatsApp Chat - Trip.zip", chat);
    home.file("friends.vcf", CONTACTS);
    let imported = home.run("import '~/WhatsApp Chat - Trip.zip' ~/friends.vcf");
    imported.succeeds().says_all(&[
        "Imported into 'WhatsApp': 1 chat, 4 messages",
        "Imported into 'Contacts file': 2 contacts",
        "Files: 2 taken, 3 known and left, 0 unknown.\n",
        "  left: 3 files: files that came with messages or posts, which name them",
    ]);
}

#[test]
fn an_archive_goes_into_the_connection_of_the_account_that_it_names() {
    let home = Home::new();
    for (name, id) in [("ida_l", "1"), ("noor_h", "2")] {
        let account = format!(
            "window.YTD.account.part0 = [{{\"account\":{{\"username\":\"{name}\",\"accountId\":\"{id}\"}}}}]"
        );
        let tweets = format!(
            "window.YTD.tweets.part0 = [{{\"tweet\":{{\"id_str\":\"{id}\",\"full_text\":\"Ahoy\",\"created_at\":\"Tue Mar 05 10:00:00 +0000 2024\"}}}}]"
        );
        home.file(
            &format!("{name}.zip"),
            archives::zip(&[
                ("data/account.js", account.as_bytes()),
                ("data/tweets.js", tweets.as_bytes()),
            ]),
        );
        home.run(format!("import ~/{name}.zip"))
            .succeeds()
            .says(format!("Imported into 'X ({name})': 1 post: 1 added"));
    }
}
