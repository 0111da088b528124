//! What exports of chats and social networks hold that looks alike, is broken, or is written in a language that nobody knows here.

use std::fs;

use crate::formats;
use crate::memory::{Memory, refused_codes};
use ingest::container::{Limits, walk};
use ingest::{Export, ImportReport};
use tempfile::TempDir;

/// Imports what a folder with these files holds of an export.
fn import(store: &Memory, export: Export, files: &[(&str, &str)]) -> ImportReport {
    let folder = TempDir::new().unwrap();
    for (path, content) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let contents = walk(folder.path(), Limits::default()).unwrap().unwrap();
    let (taken, ..) = formats::sorted(export, &contents);
    formats::import(store, export, &taken)
}

/// The values of a member in the records of a stream, in order.
fn values(store: &Memory, stream: &str, member: &str) -> Vec<String> {
    let records = store.records.borrow();
    let of_stream = records
        .iter()
        .filter(|((of, _), _)| of.as_str() == stream)
        .map(|(_, (_, body))| {
            let value: serde_json::Value = serde_json::from_str(body).unwrap();
            value[member].as_str().unwrap_or("none").to_owned()
        });
    let mut values: Vec<String> = of_stream.collect();
    values.sort();
    values
}

#[test]
fn people_of_one_name_stay_several_also_when_another_of_them_comes() {
    let friends = |years: &[u32]| {
        let friend = |year: &u32| format!(r#"{{"name":"Jo Kim","timestamp":{year}00000000}}"#);
        let list: Vec<String> = years.iter().map(friend).collect();
        format!(r#"{{"friends_v2":[{}]}}"#, list.join(","))
    };
    let store = Memory::with_export(Export::FACEBOOK);
    let path = "connections/friends/your_friends.json";
    let two = friends(&[14, 13]);
    let report = import(&store, Export::FACEBOOK, &[(path, &two)]);
    assert_eq!((report.added, report.updated), (2, 0));
    let again = import(&store, Export::FACEBOOK, &[(path, &two)]);
    assert_eq!((again.added, again.updated), (0, 0));
    import(&store, Export::FACEBOOK, &[(path, &friends(&[15, 14, 13]))]);
    assert_eq!(
        values(&store, "people", "since"),
        [
            "2011-03-13T07:06:40.000Z",
            "2014-05-13T16:53:20.000Z",
            "2017-07-14T02:40:00.000Z"
        ]
    );
}

#[test]
fn a_list_of_meta_keeps_what_stands_around_a_broken_entry_and_before_its_end() {
    let comments = r#"{"comments_v2":[
        {"timestamp":1704001000,"data":[{"comment":{"comment":"one"}}]},
        {"timestamp":1704001100,"data":[{"comment":{"comment":"broken" "x"}}]},
        {"timestamp":1704001200,"attachments":[{"data":[{"media":{"uri":"a/knot.jpg"}}]}]},
        {"timestamp":1704001300,"data":[{"comment":{"comm"#;
    let mut cases = formats::cases().into_iter();
    let case = cases.find(|case| case.export == "facebook").unwrap();
    let contents = walk(&case.path(), Limits::default()).unwrap().unwrap();
    let (taken, ..) = formats::sorted(case.export(), &contents);
    let store = formats::import_bytes(&case, taken[0], comments.as_bytes());
    assert_eq!(values(&store, "posts", "text"), ["none", "one"]);
    assert_eq!(values(&store, "posts", "kind"), ["comment", "comment"]);
}

#[test]
fn a_conversation_that_broke_off_keeps_what_stood_before() {
    let chat = r#"{"participants":[{"name":"Jo"},{"name":"Ida"}],"messages":[
        {"sender_name":"Jo","timestamp_ms":1704489330000,"content":"two"},
        {"sender_name":"Jo","timestamp_ms":1704489320000,"content":"one"},
        {"sender_name":"Jo","timestamp_ms":17044893"#;
    let store = Memory::with_export(Export::FACEBOOK);
    let path = "messages/inbox/jo_1/message_1.json";
    let report = import(&store, Export::FACEBOOK, &[(path, chat)]);
    assert_eq!((report.added, report.rejected), (2, 1));
    assert_eq!(values(&store, "messages", "text"), ["one", "two"]);
    assert_eq!(
        values(&store, "messages", "conversation_id"),
        ["jo_1", "jo_1"]
    );
}

#[test]
fn a_file_of_meta_may_be_larger_than_what_is_held() {
    let long = "x".repeat(51 << 20);
    let comment = |said: &str| {
        format!(r#"{{"timestamp":1704001000,"data":[{{"comment":{{"comment":"{said}"}}}}]}}"#)
    };
    let entries = [comment("one"), comment(&long), comment("two")].join(",\n");
    let comments = format!(r#"{{"comments_v2":[{entries}]}}"#);
    let words = "x".repeat(1 << 20);
    let message = |number: u64| {
        format!(r#"{{"sender_name":"Jo","timestamp_ms":{number},"content":"{number} {words}"}}"#)
    };
    // The newest comes first, and two were sent at once.
    let sent = (1_704_000_000_000..1_704_000_000_060)
        .rev()
        .chain([1_704_000_000_000]);
    let sent: Vec<String> = sent.map(message).collect();
    let chat = format!(
        r#"{{"participants":[{{"name":"Jo"}}],"messages":[{}],"title":"Boats","thread_path":"inbox/boats_7"}}"#,
        sent.join(",\n")
    );
    let store = Memory::with_export(Export::FACEBOOK);
    let files = [
        ("comments/comments.json", comments.as_str()),
        ("messages/inbox/jo_1/message_1.json", chat.as_str()),
    ];
    let report = import(&store, Export::FACEBOOK, &files);
    assert_eq!(values(&store, "posts", "text"), ["one", "two"]);
    assert_eq!(refused_codes(&report), ["2 line_too_long"]);
    let chats = values(&store, "messages", "conversation_id");
    assert_eq!((chats.len(), chats[0].as_str()), (61, "boats_7"));
    assert_eq!(values(&store, "messages", "conversation")[60], "Boats");
    let again = import(&store, Export::FACEBOOK, &files);
    assert_eq!((again.added, again.updated, again.unchanged), (0, 0, 63));
}

#[test]
fn a_table_of_discord_without_its_folder_is_of_no_conversation() {
    let store = Memory::with_export(Export::DISCORD);
    let message = r#"[{"ID":"1214500000000000001","Timestamp":"2024-01-05 21:15:30","Contents":"x","Attachments":""}]"#;
    let report = import(&store, Export::DISCORD, &[("loose/chat.json", message)]);
    assert_eq!((report.added, report.rejected), (1, 0));
    assert_eq!(values(&store, "messages", "conversation_id"), ["none"]);
}

#[test]
fn half_days_in_an_unknown_language_are_noted() {
    for (line, notes) in [
        ("13/2/24, xyz 9:15 - Anna: x\n", 1),
        ("13/2/24, xyz 21:15 - Anna: x\n", 0),
        ("13/2/24, பிற்பகல் 9:15 - Anna: x\n", 0),
    ] {
        let store = Memory::with_export(Export::WHATSAPP);
        let report = import(&store, Export::WHATSAPP, &[("Anna.txt", line)]);
        assert_eq!(report.notes.len(), notes, "{line}: {:?}", report.notes);
        let said = report
            .notes
            .iter()
            .all(|note| note.contains("twelve hours"));
        assert!(said, "{:?}", report.notes);
    }
}
