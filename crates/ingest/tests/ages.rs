//! Which of two exports counts: the later one, in whichever order they are imported.

use std::fs;

use crate::formats::{self, cases, fixture, sorted};
use crate::memory::{Memory, NOW, connection};
use ingest::container::{Contents, Limits, walk};
use ingest::{BatchLimits, Companions, Export, Import, ImportReport, Input};
use serde_json::Value;
use store::records::Records;
use tempfile::TempDir;

/// Sources that are as their files are now, those of which nothing changes, and those whose example says nowhere how old it is: a newer one
/// here is a part of an export, which may be older than other parts.
const AS_IMPORTED_LAST: [&str; 24] = [
    "mail",
    "calendar",
    "contacts",
    "chatgpt",
    "claude",
    "markdown",
    "bank",
    "git",
    "github",
    "browser",
    "facebook",
    "instagram",
    "documents",
    "evernote",
    "notion",
    "google-activity",
    "google-timeline",
    "google-pay",
    "places",
    "spotify",
    "netflix",
    "goodreads",
    "feeds",
    "photos",
];

fn imported(store: &Memory, export: Export, contents: &Contents) -> ImportReport {
    let (taken, ..) = sorted(export, contents);
    formats::import(store, export, &taken)
}

#[test]
fn an_older_export_adds_what_is_missing_and_sets_nothing_back() {
    let mut wrong = Vec::new();
    for case in &cases() {
        let newer = fixture(&format!("newer/{}", case.export));
        let older = walk(&case.path(), Limits::default()).unwrap().unwrap();
        let newer = walk(&newer, Limits::default()).unwrap().unwrap();
        let store = Memory::with_export(case.export());
        imported(&store, case.export(), &older);
        let changed = imported(&store, case.export(), &newer).updated;
        let before = store.records.borrow().clone();
        let again = imported(&store, case.export(), &older);
        let is_back =
            (again.updated, again.kept_newer) != (0, changed) || before != *store.records.borrow();
        if is_back != AS_IMPORTED_LAST.contains(&&*case.export) {
            wrong.push((
                case.export.clone(),
                again.updated,
                again.kept_newer,
                changed,
            ));
        }
        // Nor does it where it is imported after the newer one for the first time, and what only it has is added.
        let all = before.len();
        let store = Memory::with_export(case.export());
        imported(&store, case.export(), &newer);
        imported(&store, case.export(), &older);
        if !is_back && store.records.borrow().len() != all {
            wrong.push((
                case.export.clone(),
                0,
                store.records.borrow().len() as u64,
                all as u64,
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Imports one file, in a connection that may have records.
fn file(store: &Memory, export: Export, name: &str, content: &str) -> ImportReport {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join(name), content).unwrap();
    let contents = walk(folder.path(), Limits::default()).unwrap().unwrap();
    imported(store, export, &contents)
}

fn told(store: &Memory, stream: &str, key: &str, member: &str) -> Value {
    let body = store.body(stream, key);
    assert!(body.is_some(), "no {key}");
    let record: Value = serde_json::from_str(&body.unwrap()).unwrap();
    record[member].clone()
}

fn mail(id: u32, day: u32, label: &str) -> String {
    format!(
        "From {id}@xxx Mon Jan 01 10:00:00 +0000 2024\nX-GM-THRID: {id}\nX-Gmail-Labels: {label}\nMessage-ID: <{id}@x>\n\
         From: noor@example.org\nDate: {day} Jan 2024 10:00:00 +0000\nSubject: Tides\n\nHello\n\n"
    )
}

#[test]
fn an_archive_is_as_old_as_the_newest_message_in_it() {
    let older = [mail(1, 1, "Unread"), mail(2, 2, "Inbox")].concat();
    let newer = [
        mail(1, 1, "Opened"),
        mail(2, 2, "Inbox"),
        mail(1, 5, "Inbox").replace("<1@", "<3@"),
    ]
    .concat();
    let store = Memory::with_export(Export::MAIL);
    file(&store, Export::MAIL, "a.mbox", &older);
    let report = file(&store, Export::MAIL, "a.mbox", &newer);
    assert_eq!((report.added, report.updated, report.kept_newer), (1, 1, 0));
    let report = file(&store, Export::MAIL, "a.mbox", &older);
    assert_eq!(
        (report.read, report.unchanged, report.kept_newer),
        (2, 1, 1)
    );
    assert_eq!(report.records["messages"], 2, "what stays has come");
    assert_eq!(told(&store, "messages", "1@x", "labels")[0], "Opened");
    // Messages of other conversations may be newer: they would not stand in it.
    let other = mail(2, 2, "Archived");
    let report = file(&store, Export::MAIL, "b.mbox", &other);
    assert_eq!((report.updated, report.kept_newer), (1, 0));
    // A folder of mail is no archive: what was answered stands in another, and says nothing of its age.
    let folder = |label: &str| {
        let plain = mail(7, 3, label).replace("X-GM-THRID: 7\n", "");
        plain.replace("X-Gmail-Labels", "X-Mozilla-Keys")
    };
    file(&store, Export::MAIL, "Inbox", &folder("one"));
    let answer = folder("").replace("<7@x>", "<8@x>\nReferences: <7@x>");
    file(
        &store,
        Export::MAIL,
        "Sent",
        &answer.replace("Date: 3", "Date: 4"),
    );
    let report = file(&store, Export::MAIL, "Inbox", &folder("two"));
    assert_eq!((report.updated, report.kept_newer), (1, 0));
    // Of the same age, the one that is imported last counts.
    let report = file(&store, Export::MAIL, "b.mbox", &mail(2, 2, "Inbox"));
    assert_eq!((report.updated, report.kept_newer), (1, 0));
}

#[test]
fn an_edited_message_stays_edited_whatever_else_the_export_has() {
    let chat = |messages: &str| {
        format!(r#"{{"name":"Noor","type":"personal_chat","id":42,"messages":[{messages}]}}"#)
    };
    let message = |id: u32, said: &str, edited: &str| {
        format!(
            r#"{{"id":{id},"type":"message","date":"2024-01-0{id}T10:00:00","date_unixtime":"170410000{id}"{edited},"from":"Noor","from_id":"user42","text":"{said}"}}"#
        )
    };
    let edited = message(
        1,
        "two",
        r#","edited":"2024-01-02T10:00:00","edited_unixtime":"1704200000""#,
    );
    let store = Memory::with_export(Export::TELEGRAM);
    file(&store, Export::TELEGRAM, "result.json", &chat(&edited));
    // This one has a newer message, and is older all the same in what it says of the first.
    let both = [message(1, "one", ""), message(2, "three", "")].join(",");
    let report = file(&store, Export::TELEGRAM, "result.json", &chat(&both));
    assert_eq!((report.added, report.updated, report.kept_newer), (1, 0, 1));
    assert_eq!(told(&store, "messages", "user42-0000000001", "text"), "two");
}

#[test]
fn a_branch_that_was_left_since_stays_left() {
    let conversation = |last: &str, changed: u32| {
        let message = |id: &str, role: &str, at: u32, children: &str| {
            format!(
                r#""{id}":{{"id":"{id}","parent":null,"children":[{children}],"message":{{"id":"{id}","author":{{"role":"{role}"}},"create_time":{at},"content":{{"content_type":"text","parts":["said {id}"]}}}}}}"#
            )
        };
        let messages = [
            message("q", "user", 1_704_000_000, r#""a","b""#),
            message("a", "assistant", 1_704_000_010, "").replace("null", "\"q\""),
            message("b", "assistant", 1_704_000_020, "").replace("null", "\"q\""),
        ];
        format!(
            r#"[{{"title":"Tides","create_time":1704000000,"update_time":{changed},"mapping":{{{}}},"current_node":"{last}","conversation_id":"c1","id":"c1"}}]"#,
            messages.join(",")
        )
    };
    let (older, newer) = (
        conversation("a", 1_704_000_030),
        conversation("b", 1_704_000_090),
    );
    let store = Memory::with_export(Export::CHATGPT);
    file(&store, Export::CHATGPT, "conversations.json", &older);
    let report = file(&store, Export::CHATGPT, "conversations.json", &newer);
    assert_eq!((report.updated, report.kept_newer), (3, 0));
    let before = store.records.borrow().clone();
    let report = file(&store, Export::CHATGPT, "conversations.json", &older);
    assert_eq!((report.updated, report.kept_newer), (0, 3));
    assert_eq!(before, *store.records.borrow());
}

#[test]
fn of_two_calendars_the_later_one_tells_when_an_event_takes_place() {
    let weekly = |hour: u32, changed: u32| {
        format!(
            "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:choir\r\nDTSTART:20260302T{hour}0000Z\r\nRRULE:FREQ=WEEKLY;COUNT=3\r\n\
             LAST-MODIFIED:2026010{changed}T000000Z\r\nSUMMARY:Choir\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
        )
    };
    let store = Memory::with_export(Export::CALENDAR);
    file(&store, Export::CALENDAR, "a.ics", &weekly(18, 1));
    file(&store, Export::CALENDAR, "a.ics", &weekly(20, 2));
    let before = store.records.borrow().clone();
    assert_eq!(before.len(), 3);
    let report = file(&store, Export::CALENDAR, "a.ics", &weekly(18, 1));
    assert_eq!((report.updated, report.kept_newer), (0, 1));
    assert_eq!(before, *store.records.borrow());
}

#[test]
fn what_is_to_become_as_the_export_has_it_does_so_though_it_is_older() {
    let older = [mail(1, 1, "Unread"), mail(2, 2, "Inbox")].concat();
    let newer = [
        mail(1, 1, "Opened"),
        mail(1, 5, "Inbox").replace("<1@", "<3@"),
    ]
    .concat();
    let store = Memory::with_export(Export::MAIL);
    file(&store, Export::MAIL, "a.mbox", &newer);
    let run = |dry: bool| {
        let connection = connection();
        let existing: Option<(&dyn Records, _)> = Some((&store, &connection));
        let limits = BatchLimits::default();
        let import = if dry {
            Import::dry(existing, &store.declaration, limits)
        } else {
            Import::new(&store, &connection, limits).pruning(true)
        };
        let mut import = import.comparing_ages(&store.declaration, NOW);
        let acceptor = store.acceptor();
        let companions = Companions::default();
        let bytes = std::io::Cursor::new(older.clone().into_bytes());
        let input = Input::from_file("a.mbox", "a.mbox", bytes).unwrap();
        let mut importer = Export::MAIL.importer(input, &acceptor, &companions);
        import.run(importer.as_mut(), None, &mut |_| {}).unwrap();
        import.finish(NOW).unwrap();
        import.into_report()
    };
    // A dry run tells what would come of it without that.
    let report = run(true);
    assert_eq!((report.added, report.updated, report.kept_newer), (1, 0, 1));
    let report = run(false);
    assert_eq!((report.added, report.updated, report.pruned), (1, 1, 1));
    assert_eq!(told(&store, "messages", "1@x", "labels")[0], "Unread");
}
