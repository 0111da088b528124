//! Keys that can stand in a handle, and stores of earlier releases, which keep the keys they have.

use contract::id::ConnectionId;
use ingest::{CalendarImporter, Export, ImportReport, Importer, MailImporter, WhatsappImporter};
use serde_json::Value;
use store::records::Records;

use crate::memory::{Memory, connection};

/// Imports with keys as an earlier release made them, or with readable ones.
fn run(
    store: &Memory,
    export: Export,
    readable: bool,
    importer: impl for<'a> Fn(&'a ingest::Acceptor<'a>) -> Box<dyn Importer + 'a>,
) -> ImportReport {
    let connection = connection();
    let mut acceptor = store.acceptor();
    if readable {
        let existing: Option<(&dyn Records, &ConnectionId)> = Some((store, &connection));
        acceptor = acceptor.with_readable_keys(export, &store.declaration, existing);
    }
    store.import(importer(&acceptor).as_mut())
}

fn changes(report: &ImportReport) -> (u64, u64, u64) {
    (report.added, report.updated, report.unchanged)
}

fn all_readable(store: &Memory) {
    for (_, key) in store.records.borrow().keys() {
        assert!(contract::segment::guard(key.as_str()).is_ok(), "{key}");
        assert!(key.as_str().chars().count() <= 64, "{key}");
    }
}

/// A message with an attachment.
fn message(id: &str, refers: &str, subject: &str) -> String {
    format!(
        "From - Mon Mar 04 10:11:12 2024\nMessage-ID: <{id}>\n{refers}From: a@example.org\nSubject: {subject}\nMIME-Version: 1.0\n\
             Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nHello\n--b\n\
             Content-Type: text/plain\nContent-Disposition: attachment; filename=a.txt\n\nx\n--b--\n\n"
    )
}

/// Keys as an earlier release made them stay, with everything that points at them; new ones can stand in a handle.
#[test]
fn a_store_of_before_keeps_its_keys() {
    let long = "x".repeat(80);
    let old = [
        message("a/b@example.org", "", "one"),
        message(
            "plain@example.org",
            "In-Reply-To: <gone/away@example.org>\n",
            "two",
        ),
        message(&long, "In-Reply-To: <a/b@example.org>\n", "three"),
    ]
    .concat();
    let newer = [
        old.clone(),
        message(
            "c/d@example.org",
            "In-Reply-To: <a/b@example.org>\n",
            "four",
        ),
        message("e@example.org", "In-Reply-To: <c/d@example.org>\n", "five"),
    ]
    .concat();
    let run = |store: &Memory, text: &str, readable: bool| {
        let text = text.to_owned();
        run(store, Export::MAIL, readable, move |acceptor| {
            Box::new(MailImporter::new(
                std::io::Cursor::new(text.clone()),
                acceptor,
            ))
        })
    };
    let store = Memory::with_export(Export::MAIL);
    assert_eq!(run(&store, &old, false).added, 6);
    let again = run(&store, &old, true);
    assert_eq!((again.added, again.updated, again.unchanged), (0, 0, 6));
    let more = run(&store, &newer, true);
    assert_eq!((more.added, more.updated, more.unchanged), (4, 0, 6));
    let body = |key: &str| -> Value {
        let body = store.body("messages", key);
        serde_json::from_str(&body.unwrap_or_else(|| panic!("no {key}"))).unwrap()
    };
    let new = "c-d@example.org-e3d1788d2e";
    assert_eq!(body(new)["in_reply_to"], "a/b@example.org");
    assert_eq!(body("e@example.org")["in_reply_to"], new);
    let attachments = store.records_of("attachments");
    assert!(
        attachments
            .iter()
            .any(|attachment| attachment["message_id"] == new)
    );
    let fresh = Memory::with_export(Export::MAIL);
    run(&fresh, &newer, true);
    all_readable(&fresh);
}

fn whatsapp(store: &Memory, chat: &str, text: &str, readable: bool) -> ImportReport {
    let path = format!("WhatsApp Chat with {chat}.txt");
    let text = text.to_owned();
    run(store, Export::WHATSAPP, readable, move |acceptor| {
        let text = std::io::Cursor::new(text.clone());
        Box::new(WhatsappImporter::new(text, &path, acceptor))
    })
}

#[test]
fn a_chat_whose_name_is_no_key_gets_a_readable_one_and_stays_one_chat() {
    let name = "Boat .. crew, summer";
    let said = |minutes: std::ops::Range<u32>| -> String {
        let authors = ["Ida", "Noor"].iter().cycle();
        let lines = minutes.zip(authors);
        let lines =
            lines.map(|(minute, author)| format!("12/31/23, 9:{minute} PM - {author}: {minute}\n"));
        lines.collect::<Vec<_>>().concat()
    };
    let (old, newer) = (said(20..30), said(20..31));
    let store = Memory::with_export(Export::WHATSAPP);
    assert_eq!(changes(&whatsapp(&store, name, &old, false)), (11, 0, 0));
    assert_eq!(changes(&whatsapp(&store, name, &old, true)), (0, 0, 11));
    assert_eq!(changes(&whatsapp(&store, name, &newer, true)), (1, 0, 11));
    assert!(
        store.body("chats", name).is_some(),
        "a store of before keeps its key"
    );
    let chats = |store: &Memory| -> Vec<Value> {
        let messages = store.records_of("messages");
        messages.iter().map(|one| one["chat"].clone()).collect()
    };
    assert!(chats(&store).iter().all(|chat| chat == name));

    let fresh = Memory::with_export(Export::WHATSAPP);
    whatsapp(&fresh, name, &old, true);
    all_readable(&fresh);
    let chat = &fresh.records_of("chats")[0];
    assert_eq!(chat["name"], name);
    assert!(chats(&fresh).iter().all(|one| *one == chat["id"]));
    // Also under another file name.
    let again = whatsapp(&fresh, "Crew", &newer, true);
    assert_eq!(changes(&again), (1, 0, 11));
}

fn calendar(store: &Memory, text: &str, readable: bool) -> ImportReport {
    let text = text.to_owned();
    run(store, Export::CALENDAR, readable, move |acceptor| {
        Box::new(CalendarImporter::new(
            std::io::Cursor::new(text.clone()),
            acceptor,
        ))
    })
}

#[test]
fn a_series_whose_uid_is_no_key_gets_readable_ones_and_lets_go_of_what_no_longer_takes_place() {
    let uid = format!("https://example.org/{}", "0".repeat(80));
    let series = |count: u32| {
        format!(
            "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:{uid}\nDTSTART:20260105T100000Z\nSUMMARY:Choir\n\
             RRULE:FREQ=WEEKLY;COUNT={count}\nEND:VEVENT\nEND:VCALENDAR\n"
        )
    };
    let occurrences = |report: &ImportReport| {
        let counts = report.occurrences;
        (counts.added, counts.unchanged, counts.removed)
    };
    let store = Memory::with_export(Export::CALENDAR);
    assert_eq!(occurrences(&calendar(&store, &series(3), false)), (2, 0, 0));
    let again = calendar(&store, &series(3), true);
    assert_eq!(
        (changes(&again), occurrences(&again)),
        ((0, 0, 1), (0, 2, 0))
    );
    assert!(
        store.body("events", &uid).is_some(),
        "a store of before keeps its key"
    );
    let shorter = calendar(&store, &series(2), true);
    assert_eq!(occurrences(&shorter), (0, 1, 1));

    let fresh = Memory::with_export(Export::CALENDAR);
    assert_eq!(occurrences(&calendar(&fresh, &series(3), true)), (2, 0, 0));
    all_readable(&fresh);
    let events = fresh.records_of("events");
    let of: Vec<&Value> = events.iter().map(|one| &one["occurrence_of"]).collect();
    let master = events.iter().find(|one| one["repeats"] == true).unwrap();
    assert_eq!(of.iter().filter(|of| ***of == master["id"]).count(), 2);
    let again = calendar(&fresh, &series(3), true);
    assert_eq!(
        (changes(&again), occurrences(&again)),
        ((0, 0, 1), (0, 2, 0))
    );
    let shorter = calendar(&fresh, &series(2), true);
    assert_eq!(occurrences(&shorter), (0, 1, 1));
}
