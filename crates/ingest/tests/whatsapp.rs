//! How exports of `WhatsApp` chats become records.

use std::io::{self, BufReader, Read};

use crate::memory::{self, Memory, refused_codes};
use ingest::{BatchLimits, Export, Import, ImportError, ImportReport, WhatsappImporter};
use proptest::prelude::*;
use store::records::{Change, ChangeOp, Records};

/// As an American Android phone writes it, narrow spaces before AM and PM.
const ANDROID: &str = "12/30/23, 9:14\u{202f}PM - Messages and calls are end-to-end encrypted. Tap to learn more.\n\
    12/30/23, 9:15\u{202f}PM - Anna: Are we still on for tomorrow?\n\
    12/30/23, 9:15\u{202f}PM - Ben: ok\n\
    12/30/23, 9:15\u{202f}PM - Ben: ok\n\
    12/30/23, 9:16\u{202f}PM - Anna: Bring:\n\
    - tea\n\
    \n\
    - 12/31/23 tickets\n\
    1/2/24, 12:05\u{202f}AM - Anna: IMG-20240102-WA0001.jpg (file attached)\n\
    The view\n\
    1/2/24, 12:05\u{202f}AM - Ben: <Media omitted>\n";

/// As a German iPhone writes it.
const IPHONE: &str = "\u{feff}[30.12.23, 21:14:59] Family: \u{200e}Messages and calls are end-to-end encrypted.\r\n\
    \u{200e}[30.12.23, 21:15:02] Anna: \u{200e}<attached: 00000002-PHOTO-2023-12-30-21-15-02.jpg>\r\n\
    [30.12.23, 21:15:07] \u{202a}+49 170 0000000\u{202c}: two\nlines\r\n\
    [01.01.24, 08:00:00] Anna: at ten \u{200e}<This message was edited>\r\n";

fn whatsapp() -> Memory {
    Memory::with_export(Export::WHATSAPP)
}

fn try_import(
    store: &Memory,
    file: &str,
    text: &[u8],
    limit: usize,
) -> Result<ImportReport, ImportError> {
    let acceptor = store.acceptor();
    let mut importer = WhatsappImporter::with_limit(text, file, &acceptor, limit);
    let (report, error) = store.try_import(&mut importer, file);
    error.map_or(Ok(report), Err)
}

fn import_limited(store: &Memory, file: &str, text: &[u8], limit: usize) -> ImportReport {
    try_import(store, file, text, limit).unwrap()
}

fn import(store: &Memory, file: &str, text: &str) -> ImportReport {
    import_limited(store, file, text.as_bytes(), 10_000)
}

/// What is stored of a stream, by time or name, without the ids.
fn stored(store: &Memory, stream: &str) -> Vec<String> {
    let records = store.records.borrow();
    let mut bodies: Vec<(String, String)> = records
        .iter()
        .filter(|((of, _), _)| of.as_str() == stream)
        .map(|((_, key), (_, body))| {
            let value: serde_json::Value = serde_json::from_str(body).unwrap();
            let order = value["sent_at"].as_str().unwrap_or_default().to_owned();
            (order, body.replace(&format!(r#""id":"{key}","#), ""))
        })
        .collect();
    bodies.sort();
    bodies.into_iter().map(|(_, body)| body).collect()
}

#[test]
fn a_chat_of_an_android_phone_is_read_with_its_odd_lines() {
    let store = whatsapp();
    let report = import(&store, "WhatsApp Chat with Trip 🚢.txt", ANDROID);
    assert_eq!((report.read, report.added, report.rejected), (8, 8, 0));
    assert!(report.notes.is_empty());
    assert_eq!(
        stored(&store, "messages"),
        [
            r#"{"chat":"Trip 🚢","sent_at":"2023-12-30T21:14:00","kind":"system","text":"Messages and calls are end-to-end encrypted. Tap to learn more."}"#,
            r#"{"chat":"Trip 🚢","author":"Anna","sent_at":"2023-12-30T21:15:00","kind":"message","text":"Are we still on for tomorrow?"}"#,
            r#"{"chat":"Trip 🚢","author":"Ben","sent_at":"2023-12-30T21:15:00.001","kind":"message","text":"ok"}"#,
            r#"{"chat":"Trip 🚢","author":"Ben","sent_at":"2023-12-30T21:15:00.002","kind":"message","text":"ok"}"#,
            r#"{"chat":"Trip 🚢","author":"Anna","sent_at":"2023-12-30T21:16:00","kind":"message","text":"Bring:\n- tea\n\n- 12/31/23 tickets"}"#,
            r#"{"chat":"Trip 🚢","author":"Anna","sent_at":"2024-01-02T00:05:00","kind":"media","text":"The view","attachment":"IMG-20240102-WA0001.jpg"}"#,
            r#"{"chat":"Trip 🚢","author":"Ben","sent_at":"2024-01-02T00:05:00.001","kind":"media","text":""}"#,
        ]
    );
    assert_eq!(
        stored(&store, "chats"),
        [
            r#"{"name":"Trip 🚢","participants":["Anna","Ben"],"date_order":"month/day/year","date_order_assumed":false}"#
        ]
    );
}

#[test]
fn a_chat_of_an_iphone_is_named_by_its_first_line() {
    let store = whatsapp();
    let report = import(&store, "_chat.txt", IPHONE);
    assert_eq!((report.read, report.added), (5, 5));
    assert_eq!(
        stored(&store, "messages"),
        [
            r#"{"chat":"Family","author":"Family","sent_at":"2023-12-30T21:14:59","kind":"system","text":"Messages and calls are end-to-end encrypted."}"#,
            r#"{"chat":"Family","author":"Anna","sent_at":"2023-12-30T21:15:02","kind":"media","text":"","attachment":"00000002-PHOTO-2023-12-30-21-15-02.jpg"}"#,
            r#"{"chat":"Family","author":"+49 170 0000000","sent_at":"2023-12-30T21:15:07","kind":"message","text":"two\nlines"}"#,
            r#"{"chat":"Family","author":"Anna","sent_at":"2024-01-01T08:00:00","kind":"message","text":"at ten","edited":true}"#,
        ]
    );
}

#[test]
fn an_export_made_again_later_adds_only_what_is_new() {
    let store = whatsapp();
    import(&store, "WhatsApp Chat with Trip.txt", ANDROID);
    let again = import(&store, "WhatsApp Chat with Trip.txt", ANDROID);
    assert_eq!((again.read, again.unchanged), (8, 8));
    let longer = format!("{ANDROID}1/2/24, 12:05\u{202f}AM - Ben: ok\n");
    let later = import(&store, "WhatsApp Chat with Trip (1).txt", &longer);
    assert_eq!((later.added, later.unchanged), (1, 8));
    // An export reaches back only so far.
    let cut = ANDROID.split_once("12/30/23, 9:16").unwrap().1;
    let cut = format!("12/30/23, 9:16{cut}");
    let cut = import(&store, "WhatsApp Chat with Trip.txt", &cut);
    assert_eq!((cut.added, cut.unchanged), (0, 4));
}

#[test]
fn a_new_phone_with_another_language_gives_the_same_messages() {
    let store = whatsapp();
    import(
        &store,
        "WhatsApp Chat with Anna.txt",
        "12/30/23, 9:15 PM - Anna: hello\n12/30/23, 9:15 PM - Anna: <Media omitted>\n",
    );
    let moved = import(
        &store,
        "_chat.txt",
        "[30.12.23, 21:14:59] Anna: \u{200e}Messages and calls are end-to-end encrypted.\n\
         [30.12.23, 21:15:01] Anna: hello\n\
         [30.12.23, 21:15:02] Anna: \u{200e}<attached: 00000003-PHOTO-2023.jpg>\n",
    );
    assert_eq!((moved.added, moved.updated), (1, 3), "{moved:?}");
}

#[test]
fn dates_that_prove_nothing_are_read_by_a_stated_default() {
    for (text, order, sent_at) in [
        (
            "1/2/24, 9:15 PM - Anna: x\n",
            "month/day/year",
            "2024-01-02T21:15:00",
        ),
        (
            "01/02/2024, 21:15 - Anna: x\n",
            "day/month/year",
            "2024-02-01T21:15:00",
        ),
    ] {
        let store = whatsapp();
        let report = import(&store, "Anna.txt", text);
        let note = format!("no date in it tells the day from the month; they are read as {order}");
        assert_eq!((report.notes, report.rejected), (vec![note], 0));
        let chat = format!(
            r#"{{"name":"Anna","participants":["Anna"],"date_order":"{order}","date_order_assumed":true}}"#
        );
        assert_eq!(stored(&store, "chats"), [chat]);
        let message = stored(&store, "messages").remove(0);
        assert!(message.contains(sent_at), "{message}");
    }
}

#[test]
fn a_date_that_proves_the_order_may_come_late() {
    let store = whatsapp();
    let lines = (0..60).map(|minute| format!("01/02/2024, 21:{minute:02} - Anna: x\n"));
    let mut text: String = lines.collect();
    text.push_str("02/13/2024, 9:15 - Anna: last\n");
    let report = import(&store, "Anna.txt", &text);
    assert_eq!(report.added, 62);
    assert!(stored(&store, "messages")[0].contains("2024-01-02T21:00:00"));
}

#[test]
fn what_cannot_be_read_is_refused_with_its_line_and_the_rest_is_kept() {
    let store = whatsapp();
    let mut text = b"who knows\n\
        31/12/2023, 21:15 - Anna: kept\n\
        12/31/2023, 21:15 - Anna: no such month\n\
        31/12/2023, 25:16 - Anna: no such hour\n\
        31/12/2023, 21:16 - Anna: \xff\n\
        31/12/2023, 21:17 - Anna: one\n\xff\nthree\n\
        31/12/2023, 21:18 - Anna: "
        .to_vec();
    text.extend("x".repeat(300).as_bytes());
    text.extend(b"\nand more\n31/12/2023, 21:19 - Anna: ");
    text.extend("y".repeat(100).as_bytes());
    text.extend([b"\n".as_slice(), "z".repeat(150).as_bytes()].concat());
    text.extend(b"\n31/12/2023, 21:20 - Anna: kept too\n");
    let report = import_limited(&store, "Anna.txt", &text, 200);
    assert_eq!(
        refused_codes(&report),
        [
            "1 malformed_export",
            "3 malformed_export",
            "4 malformed_export",
            "5 invalid_utf8",
            "6 invalid_utf8",
            "9 line_too_long",
            "11 line_too_long",
        ]
    );
    assert_eq!(stored(&store, "messages").len(), 2);
}

#[test]
fn a_file_that_cannot_be_read_to_its_end_keeps_what_came_before() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let store = whatsapp();
    let acceptor = store.acceptor();
    // Nothing tells the order of these dates, so all of it is read ahead.
    let text: &[u8] = b"1/2/24, 9:15 - Anna: x\n1/2/24, 9:16 - Anna: y\n1/2/24, 9:17 - Anna: z\n";
    let reader = BufReader::new(text.chain(Failing));
    let mut importer = WhatsappImporter::new(reader, "Anna.txt", &acceptor);
    assert!(store.try_import(&mut importer, "Anna.txt").1.is_some());
    assert_eq!(stored(&store, "messages").len(), 2);
}

#[test]
fn one_chat_is_one_chat_whatever_its_file_is_called() {
    // TR-16
    for first in [
        "WhatsApp Chat with Trip.txt",
        "Trip.txt",
        "exports/_chat.txt",
    ] {
        for second in [
            "WhatsApp Chat with Trip (1).txt",
            "WhatsApp Chat with The trip.txt",
            "copy.txt",
            "exports/_chat.txt",
            "old phone/_chat.txt",
            "_chat 2.txt",
            "",
        ] {
            let store = whatsapp();
            assert_eq!(import(&store, first, ANDROID).added, 8, "{first}");
            let again = import(&store, second, ANDROID);
            assert_eq!((again.read, again.unchanged), (8, 8), "{first} {second}");
            // Later and longer, it continues.
            let longer = format!("{ANDROID}1/3/24, 12:05\u{202f}AM - Ben: new\n");
            let later = import(&store, second, &longer);
            assert_eq!((later.added, later.unchanged), (1, 8), "{first} {second}");
            // An export reaches back only so far, and says no more than that.
            let cut = longer.split_once("12/30/23, 9:16").unwrap().1;
            let newest = format!("12/30/23, 9:16{cut}1/3/24, 12:06\u{202f}AM - Ben: newest\n");
            let newest = import(&store, second, &newest);
            assert_eq!((newest.added, newest.unchanged), (1, 5), "{first} {second}");
            assert_eq!(stored(&store, "chats").len(), 1);
        }
    }
}

#[test]
fn a_chat_that_is_found_under_another_name_is_said_so() {
    let store = whatsapp();
    import(&store, "WhatsApp Chat with Trip.txt", ANDROID);
    assert_eq!(
        import(&store, "copy.txt", ANDROID).notes,
        ["its messages are those of the chat 'Trip', and go there instead of into 'copy'"]
    );
}

/// Deletes what is stored of a stream and holds a text, as the owner's command does.
fn delete(store: &Memory, stream: &str, containing: &str) {
    let records = store.records.borrow().clone();
    for ((of, key), (emitted_at, body)) in records {
        if of.as_str() != stream || !body.contains(containing) {
            continue;
        }
        let other = Export::other_key("whatsapp", stream, &key, &body);
        let batch = std::iter::once(key).chain(other).map(|key| Change {
            stream: of.clone(),
            key,
            emitted_at: emitted_at.clone(),
            op: ChangeOp::DeleteByOwner,
        });
        store.write(&memory::connection(), batch.collect()).unwrap();
    }
}

fn revive(store: &Memory, file: &str, text: &str) -> ImportReport {
    let (acceptor, connection) = (store.acceptor(), memory::connection());
    let mut import = Import::new(store, &connection, BatchLimits::default()).reviving(true);
    let mut importer = WhatsappImporter::new(text.as_bytes(), file, &acceptor);
    import.run(&mut importer, None, &mut |_| {}).unwrap();
    import.into_report()
}

/// Names under which an export may come again.
const OTHER_NAMES: [&str; 4] = [
    "Trip-backup.txt",
    "WhatsApp Chat with The trip.txt",
    "exports/_chat.txt",
    "WhatsApp Chat with Trip (1).txt",
];

#[test]
fn deleted_messages_stay_deleted_when_the_chat_comes_under_another_name() {
    // TR-16, TR-21: a part of the messages is deleted, of a short chat too.
    for deleted in ["still on", "Ben", "sent_at"] {
        for again in OTHER_NAMES {
            let store = whatsapp();
            import(&store, "WhatsApp Chat with Trip.txt", ANDROID);
            delete(&store, "messages", deleted);
            let left = stored(&store, "messages");
            let report = import(&store, again, ANDROID);
            assert_eq!(report.added, 0, "{deleted} {again}: {report:?}");
            assert_eq!(stored(&store, "messages"), left, "{deleted} {again}");
            assert_eq!(stored(&store, "chats").len(), 1, "{deleted} {again}");
            assert_eq!(revive(&store, again, ANDROID).added, 7 - left.len() as u64);
            assert_eq!(stored(&store, "chats").len(), 1, "{deleted} {again}");
        }
    }
}

/// As a Korean Android phone writes it, and a Japanese iPhone.
const KOREAN: &str = "2024년 3월 5일 오전 9:15 - 메시지와 통화는 종단간 암호화됩니다.\n\
    2024년 3월 5일 오전 9:16 - 민수: 안녕하세요\n\
    2024년 3월 5일 오후 11:59 - 지영: <미디어 파일 생략>\n\
    2024년 3월 6일 오전 12:10 - 민수: 삭제된 메시지입니다.\n";
const JAPANESE: &str = "[2024/03/05 9:15:02] 花子: \u{200e}メッセージと通話は暗号化されています。\n\
    [2024/03/05 9:16:10] 太郎: こんにちは\n\
    \u{200e}[2024/03/05 21:16:10] 太郎: \u{200e}画像は省略されました\n";

#[test]
fn what_further_languages_say_of_files_tells_the_kind_and_leaves_the_keys() {
    let store = whatsapp();
    import(&store, "민수.txt", KOREAN);
    let records = store.records_of("messages");
    let kinds = ["system", "message", "media", "system"];
    assert!(records.iter().map(|one| &one["kind"]).eq(kinds));
    assert_eq!(records[2]["sent_at"], "2024-03-05T23:59:00");
    import(&store, "太郎.txt", JAPANESE);
    // The key of an earlier release, which took it for a text.
    let media = store.body("messages", "202403052116-68ae916544f66aff3336");
    assert!(media.unwrap().contains("\"kind\":\"media\""));
    for text in [KOREAN, JAPANESE] {
        let store = whatsapp();
        import(&store, "A.txt", text);
        delete(&store, "messages", "");
        delete(&store, "chats", "");
        assert_eq!(import(&store, "WhatsApp Chat with B.txt", text).added, 0);
    }
}

#[test]
fn a_chat_that_was_deleted_as_a_whole_does_not_come_back_under_another_name() {
    // TR-16, TR-21: nothing that tells its name is left.
    for again in OTHER_NAMES {
        let store = whatsapp();
        import(&store, "WhatsApp Chat with Trip.txt", ANDROID);
        delete(&store, "messages", "");
        delete(&store, "chats", "");
        let report = import(&store, again, ANDROID);
        assert_eq!(report.added, 0, "{again}: {report:?}");
        assert!(store.records.borrow().is_empty(), "{again}");
        // What was written since is new, and comes once.
        let longer = format!("{ANDROID}1/3/24, 12:05\u{202f}AM - Ben: new\n");
        for (file, added) in [(again, 1), ("elsewhere.txt", 0)] {
            import(&store, file, &longer);
            let messages = stored(&store, "messages");
            assert_eq!(messages.len(), 1, "{again} {file} {added}: {messages:?}");
        }
        // And all of it, if the owner says so; however the file is called after that, it is there.
        revive(&store, again, &longer);
        assert_eq!(stored(&store, "messages").len(), 8, "{again}");
        assert_eq!(stored(&store, "chats").len(), 1, "{again}");
        for file in ["WhatsApp Chat with Trip.txt", "elsewhere.txt"] {
            let report = import(&store, file, &longer);
            assert_eq!((report.added, report.unchanged), (0, 9), "{again} {file}");
        }
    }
}

#[test]
fn a_chat_whose_record_was_deleted_keeps_its_messages_together() {
    // TR-16, TR-21
    for again in OTHER_NAMES {
        let store = whatsapp();
        import(&store, "WhatsApp Chat with Trip.txt", ANDROID);
        delete(&store, "chats", "");
        let report = import(&store, again, ANDROID);
        assert_eq!((report.added, report.unchanged), (0, 7), "{again}");
        assert!(stored(&store, "chats").is_empty(), "{again}");
    }
}

#[test]
fn another_chat_is_not_taken_for_a_deleted_one() {
    let store = whatsapp();
    let broadcast = "31/12/23, 21:15 - Ben: Happy new year!\n31/12/23, 21:16 - Ben: See you\n";
    import(&store, "WhatsApp Chat with Anna.txt", broadcast);
    delete(&store, "messages", "");
    delete(&store, "chats", "");
    assert_eq!(
        import(&store, "WhatsApp Chat with Carl.txt", broadcast).added,
        3
    );
    assert_eq!(
        import(&store, "WhatsApp Chat with Anna.txt", broadcast).added,
        0
    );
}

#[test]
fn different_chats_stay_apart() {
    // TR-16
    let store = whatsapp();
    let broadcast = "31/12/23, 21:15 - Ben: Happy new year!\n31/12/23, 21:16 - Ben: See you\n";
    import(&store, "WhatsApp Chat with Anna.txt", broadcast);
    // The same words at the same minutes to somebody else.
    let other = import(&store, "WhatsApp Chat with Carl.txt", broadcast);
    assert_eq!((other.added, other.unchanged), (3, 0));
    // It begins alike, and goes on otherwise.
    let begun = format!("{broadcast}31/12/23, 21:17 - Dora: You too\n");
    let lines = (10..40).map(|minute| format!("1/1/24, 10:{minute} - Dora: {minute}\n"));
    let answered = lines.collect::<Vec<_>>().concat();
    let begun = import(
        &store,
        "WhatsApp Chat with Dora.txt",
        &format!("{begun}{answered}"),
    );
    assert_eq!((begun.added, begun.unchanged), (34, 0));
    // Nobody names these, and the same people are in both.
    import(
        &store,
        "a/_chat.txt",
        "[30.12.23, 21:15:01] Anna: hello\n[30.12.23, 21:16:01] Ben: hi\n",
    );
    let group = "[2.1.24, 21:15:01] Anna: who comes?\n[2.1.24, 21:16:01] Ben: me\n";
    assert_eq!(import(&store, "b/_chat.txt", group).added, 3);
    let names: Vec<String> = stored(&store, "chats");
    assert!(
        names
            .iter()
            .any(|chat| chat.contains(r#""name":"Anna, Ben (2)""#)),
        "{names:?}"
    );
    assert_eq!(names.len(), 5);
    assert_eq!(import(&store, "c/_chat.txt", group).unchanged, 3);
}

#[test]
fn a_chat_nobody_wrote_in_needs_a_name() {
    let text = b"[30.12.23, 21:15:01] Somebody joined\n";
    let error = try_import(&whatsapp(), "_chat.txt", text, 1_000).unwrap_err();
    assert!(error.to_string().contains("name the file after"), "{error}");
}

#[test]
fn a_dry_run_knows_the_chats_of_the_files_before() {
    let store = whatsapp();
    let acceptor = store.acceptor();
    let mut import = Import::dry(None, &store.declaration, BatchLimits::default());
    for file in ["WhatsApp Chat with Trip.txt", "copy.txt"] {
        let mut importer = WhatsappImporter::new(ANDROID.as_bytes(), file, &acceptor);
        import.run(&mut importer, None, &mut |_| {}).unwrap();
    }
    let report = import.into_report();
    assert_eq!((report.added, report.unchanged), (8, 8));
}

#[test]
fn an_empty_file_is_no_chat() {
    assert_eq!(import(&whatsapp(), "_chat.txt", "").read, 0);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        place in 0..ANDROID.len(),
        bytes in proptest::collection::vec(any::<u8>(), 0..40),
        text in "[\\[0-9/.:, APM\u{200e}\u{202f}<>()\n-]{0,60}",
    ) {
        for export in [ANDROID, IPHONE] {
            let mut mutated = export.as_bytes().to_vec();
            let place = place.min(mutated.len());
            mutated.splice(place..place, bytes.iter().copied());
            let _ = try_import(&whatsapp(), "Anna.txt", &mutated, 10_000);
        }
        let _ = try_import(&whatsapp(), &text, text.as_bytes(), 10_000);
    }
}
