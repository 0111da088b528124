//! What a batch does, in order, all of it or nothing, and how content is kept.

use contract::key::RecordKey;
use store::records::{Applied, ChangeOp, ChangesRequest};
use store::{Store, StoreError};

use crate::fixture::{
    Work, add_mail, all, body, compound, connection, delete, delete_at, found, key, message,
    message_with, messages, on_every_mailbox, put, put_at, stream, write,
};

fn live(store: &dyn Store, id: &str, name: &str) -> u64 {
    let wanted = stream(id, name);
    let stats = store.stream_stats().unwrap();
    stats
        .iter()
        .find(|stats| stats.stream == wanted)
        .unwrap()
        .records
}

#[test]
fn equal_json_in_another_spelling_changes_nothing() {
    on_every_mailbox(|store| {
        let first = r#"{"id":"m1","subject":"caf\u00e9 \/","size_bytes":1,"amount":1.50, "labels":["a", {"x":1,"y":2}]}"#;
        let again = r#"{"labels":["a",{"y":2.0,"x":1e0}],"amount":15e-1,"size_bytes":1.0,"subject":"café /","id":"m1"}"#;
        assert_eq!(store.put(vec![put("messages", first)]), [Applied::Added]);
        let mut resent = put("messages", again);
        resent.emitted_at = "2026-05-09T00:00:00Z".to_owned();
        assert_eq!(store.put(vec![resent]), [Applied::Unchanged]);
        let record = store
            .get(&stream("work", "messages"), &key("m1"))
            .unwrap()
            .unwrap();
        assert_eq!(record.body, first);
        assert_eq!(record.emitted_at, "2026-05-01T00:00:00Z");
        assert_eq!(live(store, "work", "messages"), 1);
    });
}

#[test]
fn json_is_kept_exactly_as_written() {
    on_every_mailbox(|store| {
        let texts = [
            r#"{"id":"a","zeta":1,"alpha":2,"Ω":{"b":[ ],"a":{}}}"#,
            r#"{"id":"b","amount":123456789012345678901234567890.12345678901234567890}"#,
            r#"{"id":"c","amount":-0.0,"size_bytes":1E+2,"x":1e-400,"y":0.10}"#,
            r#"{"id":"d","subject":"\u00e9\u0041\ud83d\ude00\/\b\u0000","body":"é😀"}"#,
            "{ \"id\" :\t\"e\" ,\r\n  \"seen\" : true }",
        ];
        store.put(texts.map(|json| put("messages", json)).into());
        let records = all(store, &stream("work", "messages"));
        assert_eq!(records.len(), texts.len());
        for (record, text) in records.iter().zip(texts) {
            assert_eq!(record.body, text);
        }
    });
}

#[test]
fn a_record_is_deleted_once_and_comes_back_as_added() {
    on_every_mailbox(|store| {
        let messages = stream("work", "messages");
        let same = || message("m1", "a", "b");
        assert_eq!(
            store.put(vec![delete("messages", "m1")]),
            [Applied::AlreadyAbsent]
        );
        store.put(vec![same()]);
        assert_eq!(
            store.put(vec![delete("messages", "m1")]),
            [Applied::Deleted]
        );
        assert_eq!(store.get(&messages, &key("m1")).unwrap(), None);
        assert_eq!(live(store, "work", "messages"), 0);
        assert_eq!(
            store.put(vec![delete("messages", "m1")]),
            [Applied::AlreadyAbsent]
        );
        // Equal to what was deleted, and still a change: it was gone.
        assert_eq!(store.put(vec![same()]), [Applied::Added]);
        assert!(store.get(&messages, &key("m1")).unwrap().is_some());
        assert_eq!(live(store, "work", "messages"), 1);
    });
}

#[test]
fn directives_for_one_key_apply_in_the_order_of_the_batch() {
    on_every_mailbox(|store| {
        let applied = store.put(vec![
            message("m1", "first", ""),
            message("m2", "other", ""),
            message("m1", "first", ""),
            message("m1", "second", ""),
            delete("messages", "m1"),
            delete("messages", "m1"),
            message("m1", "third", ""),
            delete("messages", "m2"),
        ]);
        let outcomes = [
            Applied::Added,
            Applied::Added,
            Applied::Unchanged,
            Applied::Updated,
            Applied::Deleted,
            Applied::AlreadyAbsent,
            Applied::Added,
            Applied::Deleted,
        ];
        assert_eq!(applied, outcomes);
        assert_eq!(live(store, "work", "messages"), 1);
        assert_eq!(store.found("third"), ["m1"]);
        for gone in ["first", "second", "other"] {
            assert!(store.found(gone).is_empty());
        }
    });
}

#[test]
fn what_is_only_added_leaves_what_is_there_as_it_is() {
    on_every_mailbox(|store| {
        let add = |subject: &str| {
            let mut change = message("m1", subject, "");
            if let ChangeOp::Upsert(body) = change.op {
                change.op = ChangeOp::Add(body);
            }
            change
        };
        let applied = store.put(vec![add("first"), add("first"), add("second")]);
        assert_eq!(
            applied,
            [Applied::Added, Applied::Unchanged, Applied::LeftAsItIs]
        );
        assert_eq!(store.found("first"), ["m1"]);
        store.put(vec![delete("messages", "m1")]);
        assert_eq!(store.put(vec![add("third")]), [Applied::Added]);
        let mut gone = delete("messages", "m1");
        gone.op = ChangeOp::DeleteByOwner;
        let applied = store.put(vec![gone, add("fourth")]);
        assert_eq!(applied, [Applied::Deleted, Applied::KeptDeleted]);
    });
}

#[test]
fn an_append_only_record_is_resent_but_never_changed() {
    on_every_mailbox(|store| {
        let at = || compound(&["2026-05-01", "1"]);
        let event = |json| put_at("events", at(), json);
        let first = r#"{"day":"2026-05-01","number":"1","note":"woke"}"#;
        let respelled = r#"{"note":"\u0077oke","number":"1","day":"2026-05-01"}"#;
        let other = r#"{"day":"2026-05-01","number":"1","note":"slept"}"#;
        let applied = store.put(vec![event(first), event(respelled), event(other)]);
        assert_eq!(
            applied,
            [
                Applied::Added,
                Applied::Unchanged,
                Applied::AppendOnlyConflict
            ]
        );
        assert_eq!(store.put(vec![event(other)]), [Applied::AppendOnlyConflict]);
        let events = stream("work", "events");
        assert_eq!(body(store, &events, &at()).as_deref(), Some(first));
        assert_eq!(live(store, "work", "events"), 1);
        // A conflict leaves nothing in the feed either.
        let feed = store.changes(&events, &from_beginning()).unwrap();
        assert_eq!(feed.entries.len(), 1);
        store.put(vec![delete_at("events", at())]);
        assert_eq!(store.put(vec![event(other)]), [Applied::Added]);
    });
}

fn from_beginning() -> ChangesRequest {
    ChangesRequest::since(0, 1_000)
}

#[test]
fn keys_may_be_any_text() {
    let longest = "k".repeat(512);
    let texts = [
        " ",
        "a b",
        "/messages/../1",
        "it's \"quoted\"",
        "🦀👩‍👩‍👧",
        "[\"a\",\"b\"]",
        "%00%2F?x=1#y",
        "\\",
        "e\u{301}",
        "\u{e9}",
        "A",
        "a",
        "*",
        "-1",
        "\u{202e}abc",
        longest.as_str(),
    ];
    on_every_mailbox(|store| {
        let batch = texts.map(|text| put_at("messages", key(text), r#"{"subject":"odd"}"#));
        let applied = store.put(batch.into());
        assert!(applied.iter().all(|one| *one == Applied::Added));
        let messages_ref = stream("work", "messages");
        for text in texts {
            let record = store.get(&messages_ref, &key(text)).unwrap().unwrap();
            assert_eq!(record.key.as_str(), text);
        }
        let listed: Vec<RecordKey> = all(store, &messages_ref)
            .into_iter()
            .map(|record| record.key)
            .collect();
        let mut sorted: Vec<RecordKey> = texts.iter().map(|text| key(text)).collect();
        sorted.sort();
        assert_eq!(listed, sorted);
        let hits = store.found("odd");
        assert_eq!(hits.len(), texts.len());
    });
}

#[test]
fn a_batch_that_fails_leaves_nothing_behind() {
    on_every_mailbox(|store| {
        let batch = || {
            vec![
                message("m1", "halfway", ""),
                put_at("nowhere", key("x"), "{}"),
                message("m2", "halfway", ""),
            ]
        };
        let error = store.write(&connection("work"), batch()).unwrap_err();
        assert!(
            matches!(&error, StoreError::UnknownStream { stream, known, .. }
                if stream.as_str() == "nowhere" && known == "messages, events"),
            "{error}"
        );
        let error = store.write(&connection("elsewhere"), batch()).unwrap_err();
        assert!(
            matches!(&error, StoreError::UnknownConnection(id) if id.as_str() == "elsewhere"),
            "{error}"
        );
        let messages_ref = stream("work", "messages");
        assert!(all(store, &messages_ref).is_empty());
        assert_eq!(live(store, "work", "messages"), 0);
        assert!(store.found("halfway").is_empty());
        let feed = store.changes(&messages_ref, &from_beginning()).unwrap();
        assert!(feed.entries.is_empty());
        assert_eq!(store.index_status().unwrap().written, 0);
        store.put(vec![message("m1", "whole", "")]);
        assert_eq!(store.found("whole"), ["m1"]);
    });
}

#[test]
fn an_empty_batch_and_one_without_effect_move_no_version() {
    on_every_mailbox(|store| {
        assert!(store.put(Vec::new()).is_empty());
        store.put(vec![message_with("m1", r#""seen":true"#)]);
        let before = store.index_status().unwrap().written;
        store.put(vec![
            message_with("m1", r#""seen":true"#),
            delete("messages", "m2"),
        ]);
        assert_eq!(store.index_status().unwrap().written, before);
    });
}

#[test]
fn the_same_key_in_two_connections_is_two_records() {
    on_every_mailbox(|store| {
        add_mail(store, "home");
        store.put(vec![message("m1", "office", "")]);
        assert_eq!(
            write(store, "home", vec![message("m1", "garden", "")]),
            [Applied::Added]
        );
        store.put(vec![delete("messages", "m1")]);
        assert_eq!(found(store, "garden", vec![messages("home")]), ["m1"]);
        assert!(all(store, &stream("work", "messages")).is_empty());
        assert_eq!(all(store, &stream("home", "messages")).len(), 1);
    });
}
