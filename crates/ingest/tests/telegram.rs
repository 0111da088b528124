//! How exports of Telegram Desktop become records.

use crate::memory::{Memory, refused_codes};
use ingest::{Export, ImportError, ImportReport, TelegramImporter};
use proptest::prelude::*;
use serde_json::Value;

const ACCOUNT: &str = include_str!("exports/telegram/result.json");

fn telegram() -> Memory {
    Memory::with_export(Export::TELEGRAM)
}

fn import_limited(
    store: &Memory,
    text: &[u8],
    limit: usize,
) -> (ImportReport, Option<ImportError>) {
    let acceptor = store.acceptor();
    let mut importer = TelegramImporter::with_limit(text, &acceptor, limit);
    store.try_import(&mut importer, "result.json")
}

fn import(store: &Memory, text: &str) -> ImportReport {
    let (report, error) = import_limited(store, text.as_bytes(), 10_000);
    assert!(error.is_none(), "{error:?}");
    report
}

fn message(store: &Memory, key: &str) -> Value {
    serde_json::from_str(&store.body("messages", key).unwrap()).unwrap()
}

fn chat(messages: &str) -> String {
    format!(r#"{{"name":"N","type":"private_group","id":3,"messages":[{messages}]}}"#)
}

#[test]
fn an_account_gives_its_chats_messages_and_contacts() {
    let store = telegram();
    let report = import(&store, ACCOUNT);
    assert_eq!((report.read, report.added, report.rejected), (13, 13, 0));
    assert_eq!(
        store.body("messages", "user42-0000000017").unwrap(),
        concat!(
            r#"{"id":"user42-0000000017","chat_id":"user42","chat_name":"Noor Haddad","chat_type":"personal_chat","#,
            r#""message_id":17,"kind":"message","author_name":"Noor Haddad","author_id":"user42","#,
            r#""sent_at":"2023-12-31T22:59:30.000Z","edited_at":"2023-12-31T23:10:00.000Z","#,
            r#""text":"The ferry leaves at nine, see the timetable or https://ferry.example\nBring tea\u000b.","#,
            r#""links":["https://ferry.example/times","https://ferry.example"],"#,
            r#""reactions":[
       {
        "type": "emoji",
        "count": 1,
        "emoji": "👍"
       }
      ]}"#
        )
    );
    assert_eq!(
        store.body("chats", "user42").unwrap(),
        r#"{"id":"user42","name":"Noor Haddad","type":"personal_chat","participants":["Ida","Noor Haddad"]}"#
    );
    assert_eq!(
        store.body("contacts", "user42").unwrap(),
        r#"{"id":"user42","name":"Noor Haddad","user_id":"user42","phone_number":"+00 111 11","added_at":"2020-05-01T08:00:00.000Z"}"#
    );
    assert_eq!(
        store.body("contacts", "+00 222 22").unwrap(),
        r#"{"id":"+00 222 22","name":"Plumber","phone_number":"+00 222 22"}"#
    );
}

#[test]
fn what_is_sent_besides_text_is_told_and_nothing_is_lost() {
    let store = telegram();
    import(&store, ACCOUNT);
    let voice = message(&store, "user42-0000000018");
    assert_eq!(voice["media_type"], "voice_message");
    assert_eq!(voice["duration_seconds"], 12);
    assert_eq!(voice["reply_to_id"], "user42-0000000017");
    assert!(voice.get("file").is_none(), "{voice}");
    let call = message(&store, "user42-0000000019");
    assert_eq!(call["kind"], "service");
    assert_eq!(call["action"], "phone_call");
    assert_eq!(call["author_name"], "Ida");
    assert_eq!(call["details"]["discard_reason"], "hangup");
    let photo = store.body("messages", "user100-0000000020").unwrap();
    assert!(photo.contains("54.500000"), "{photo}");
    let photo = message(&store, "user100-0000000020");
    assert_eq!(photo["chat_name"], "Saved Messages");
    assert_eq!(photo["media_type"], "photo");
    assert_eq!(photo["file_name"], "photo_1@02-01-2024_09-00-00.jpg");
    assert_eq!(message(&store, "user100-0000000021")["kind"], "unsupported");
}

#[test]
fn a_group_and_a_person_of_one_number_are_two_and_older_exports_are_read() {
    let store = telegram();
    import(&store, ACCOUNT);
    let poll = message(&store, "channel42--999999990");
    assert_eq!(poll["text"], "Beans or peas?\nBeans\nPeas");
    assert_eq!(poll["sent_at"], "2019-03-01T12:00:00");
    assert_eq!(poll["author_id"], "user4242");
    assert!(poll.get("author_name").is_none());
    let reply = message(&store, "channel42-0000000005");
    assert_eq!(reply["reply_to_id"], "user42-0000000017");
    assert_eq!(reply["forwarded_from"], "Seed shop");
}

#[test]
fn one_chat_is_read_like_many_and_reading_it_again_changes_nothing() {
    let store = telegram();
    let text = chat(
        r#"{"id":1,"type":"message","date":"2024-01-01T10:00:00","text":"a"},
           {"id":2,"type":"message","date":"2024-01-01T10:00:00","text":"b"}"#,
    );
    let first = import(&store, &text);
    assert_eq!((first.read, first.added), (3, 3));
    let longer = text.replace("]}", r#",{"id":3,"type":"message","text":"c"}]}"#);
    let again = import(&store, &longer);
    assert_eq!((again.read, again.added, again.unchanged), (4, 1, 3));
    assert!(store.body("chats", "chat3").is_some());
}

#[test]
fn a_bad_message_is_refused_with_its_line_and_the_rest_is_kept() {
    let store = telegram();
    let messages = [
        r#"{"id":1,"type":"message","text":"kept"}"#,
        r#"{"type":"message","text":"no number"}"#,
        r#"{"id":2,"date":"yesterday","text":""}"#,
        r#"{"id":3,"text":7}"#,
        r#"{"id":4,"id":5}"#,
        r#"{"id":6,"text":tru}"#,
        "8",
        r#"{"id":9,"reactions":"many"}"#,
        r#"{"id":10,"text":"kept too"}"#,
    ];
    let report = import(&store, &chat(&format!("\n{}\n", messages.join(",\n"))));
    assert_eq!((report.added, report.rejected), (3, 7));
    assert_eq!(
        refused_codes(&report),
        [
            "3 missing_key",
            "4 malformed_export",
            "5 malformed_export",
            "6 duplicate_member",
            "7 malformed_export",
            "8 malformed_export",
            "9 invalid_field_type",
        ]
    );
}

#[test]
fn bytes_that_are_no_text_and_messages_without_end_are_refused_alone() {
    let store = telegram();
    let mut text = chat(r#"{"id":1,"text":"?"},{"id":2,"text":"LONG"},{"id":3,"text":"kept"}"#)
        .replace("LONG", &"x".repeat(200))
        .into_bytes();
    let place = text.iter().position(|byte| *byte == b'?').unwrap();
    text[place] = 0xff;
    let (report, error) = import_limited(&store, &text, 150);
    assert!(error.is_none());
    let told = ["1 invalid_utf8", "1 line_too_long"];
    assert_eq!(refused_codes(&report), told);
    assert_eq!(report.added, 2);
}

#[test]
fn messages_before_the_id_of_their_chat_are_refused_and_not_guessed_at() {
    let store = telegram();
    let report = import(
        &store,
        r#"{"chats":{"list":[5,{"messages":[{"id":1,"text":"whose?"}],"id":3,"type":"private_group"}]}}"#,
    );
    assert_eq!((report.read, report.added, report.rejected), (3, 0, 3));
}

#[test]
fn what_looks_like_a_list_of_chats_elsewhere_is_passed_over() {
    let store = telegram();
    let inner = r#"{"list":[{"id":9,"type":"private_group","messages":[{"id":1}]}]}"#;
    let text = format!(
        r#"{{"other_data":{{"chats":{inner}}},"chats":{{"chats":{inner},"list":[{{"id":3,"type":"private_group","chats":{inner},"contacts":{inner},"messages":[{{"id":1}}]}}]}}}}"#
    );
    assert_eq!(import(&store, &text).added, 2);
    assert!(store.body("messages", "chat3-0000000001").is_some());
}

#[test]
fn a_file_that_was_cut_off_keeps_what_came_before_and_says_where() {
    let store = telegram();
    let end = ACCOUNT.find("phone_call").unwrap();
    let (report, error) = import_limited(&store, &ACCOUNT.as_bytes()[..end], 10_000);
    assert_eq!(report.added, 5);
    let error = error.unwrap().to_string();
    assert!(
        error.contains("line 103: the file ends too early"),
        "{error}"
    );
    assert!(error.contains("export it anew"), "{error}");
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic_or_stand_still(
        start in 0..ACCOUNT.len(),
        bytes in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut text = ACCOUNT.as_bytes()[..start].to_vec();
        text.extend(&bytes);
        text.extend(&ACCOUNT.as_bytes()[start..]);
        import_limited(&telegram(), &text, 10_000);
        import_limited(&telegram(), &bytes, 10_000);
    }
}
