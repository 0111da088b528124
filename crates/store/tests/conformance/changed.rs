//! A record whose bytes changed on the disk: refused, named, and mended by sending it again.

use std::fs;
use std::path::Path;

use contract::declaration::Declaration;
use serde_json::json;
use store::catalog::Declared;
use store::inspection::Depth;
use store::records::{ChangesRequest, Direction, OrderBy, PageRequest};
use store::{Catalog, EmbeddedStore, Inspect, Records, Search};

use crate::fixture::{MAIL, Work, add_mail, key, message_with, messages, open, request, stream};

/// Changes one letter of a text wherever it stands in the database, which the engine does not notice.
fn change_letter(folder: &Path, text: &str) -> usize {
    flip(folder, text, 1)
}

/// Flips bits of the first byte of a text wherever it stands in the database.
fn flip(folder: &Path, text: &str, bits: u8) -> usize {
    let path = folder.join("records.db");
    let mut bytes = fs::read(&path).unwrap();
    let at: Vec<usize> = bytes
        .windows(text.len())
        .enumerate()
        .filter(|(_, window)| *window == text.as_bytes())
        .map(|(at, _)| at)
        .collect();
    for at in &at {
        bytes[*at] ^= bits;
    }
    fs::write(&path, bytes).unwrap();
    at.len()
}

/// Asserts that an error names the record `a`.
fn names_a(error: &store::StoreError) {
    let told = matches!(error, store::StoreError::RecordDamaged { .. });
    assert!(
        told && error.to_string().contains("'a' of work/messages"),
        "{error}"
    );
}

/// A store whose record `a` was changed on the disk, and has an earlier version.
fn with_a_changed_letter(folder: &Path) -> EmbeddedStore {
    let store = open(folder);
    add_mail(&store, "work");
    store.put(vec![message_with("a", "\"subject\":\"zyzzyva old\"")]);
    store.put(vec![message_with("b", "\"subject\":\"quokka\"")]);
    store.put(vec![message_with("a", "\"subject\":\"zyzzyva new\"")]);
    store.settle_index().unwrap();
    drop(store);
    assert!(change_letter(folder, "zyzzyva new") > 0);
    open(folder)
}

#[test]
fn a_byte_that_is_no_text_any_more_is_damage_of_that_record_alone() {
    // TR-35: whichever bit flips, the others are given, and sending the record again mends it.
    for (text, large) in [("zyzzyva", false), ("zyzzyva", true), ("2026-03-09", false)] {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        add_mail(&store, "work");
        let filler = "x".repeat(if large { 100_000 } else { 1 });
        let subject = format!("\"subject\":\"zyzzyva {filler}\"");
        let damaged = || {
            let mut change = message_with("a", &subject);
            "2026-03-09T00:00:00Z".clone_into(&mut change.emitted_at);
            change
        };
        store.put(vec![message_with("b", "\"subject\":\"quokka\"")]);
        store.put(vec![damaged()]);
        store.settle_index().unwrap();
        drop(store);
        assert!(flip(folder.path(), text, 0x80) > 0);
        let store = open(folder.path());
        let owner = stream("work", "messages");
        names_a(&store.get(&owner, &key("a")).unwrap_err());
        let page = PageRequest::first(OrderBy::Key, Direction::Ascending, 10);
        let page = store.page(&owner, &page).unwrap().records;
        let told: Vec<_> = page
            .iter()
            .map(|one| (one.key.as_str(), one.is_damaged))
            .collect();
        assert_eq!(told, [("a", true), ("b", false)], "{text} {large}");
        let changes = ChangesRequest::since(0, 9);
        assert_eq!(store.changes(&owner, &changes).unwrap().entries.len(), 2);
        store.rebuild_index(&mut |_| {}).unwrap();
        let hits = store.search(&request("quokka", vec![messages("work")]));
        assert_eq!(hits.unwrap().hits.len(), 1);
        let found = store.inspect(Depth::Thorough).unwrap().damaged_records;
        assert_eq!(found.len(), 1, "{found:?}");
        store.put(vec![damaged()]);
        assert!(store.get(&owner, &key("a")).unwrap().is_some());
        assert_eq!(store.inspect(Depth::Thorough).unwrap().damaged_records, []);
    }
}

#[test]
fn a_letter_that_changed_on_the_disk_is_never_given_as_the_records() {
    // TR-35: a record whose bytes are not those that were written is refused and named, whichever way it is read.
    let folder = tempfile::tempdir().unwrap();
    let store = with_a_changed_letter(folder.path());
    let owner = stream("work", "messages");
    names_a(&store.get(&owner, &key("a")).unwrap_err());
    let page = PageRequest::first(OrderBy::Key, Direction::Ascending, 10);
    // Among others it is said to be damaged, and keeps nobody from them.
    let told = |records: Vec<store::records::StoredRecord>| -> Vec<(String, bool)> {
        assert!(
            records
                .iter()
                .all(|one| one.is_damaged == one.body.is_empty())
        );
        let told = records
            .iter()
            .map(|one| (one.key.to_string(), one.is_damaged));
        told.collect()
    };
    let both = [("a".to_owned(), true), ("b".to_owned(), false)];
    assert_eq!(told(store.page(&owner, &page).unwrap().records), both);
    let find = |words: &str| {
        let found = store
            .search(&request(words, vec![messages("work")]))
            .unwrap();
        told(found.hits.into_iter().map(|hit| hit.record).collect())
    };
    assert_eq!(find("zyzzyva"), both[..1]);
    assert_eq!(find("quokka"), both[1..]);
    let changes = ChangesRequest::since(0, 9);
    let changes = store.changes(&owner, &changes).unwrap().entries;
    let changes: Vec<_> = changes
        .iter()
        .map(|one| (one.key.as_str(), one.is_damaged))
        .collect();
    assert_eq!(changes, [("b", false), ("a", true)]);
    names_a(&store.history(&owner, &key("a"), 9, 9).unwrap_err());
    // The index is derived without it, and counts it all the same.
    store.rebuild_index(&mut |_| {}).unwrap();
    assert_eq!((find("zyzzyva"), find("quokka").len()), (Vec::new(), 1));
    assert_eq!(store.inspect(Depth::Glance).unwrap().damaged_index, []);
    // The others are given as before, and an inspection names the one.
    assert!(store.get(&owner, &key("b")).unwrap().is_some());
    let found = store.inspect(Depth::Thorough).unwrap().damaged_records;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].detail.contains("'a' of work/messages"),
        "{found:?}"
    );
}

#[test]
fn a_damaged_record_is_mended_by_sending_it_again() {
    // TR-35
    let folder = tempfile::tempdir().unwrap();
    let store = with_a_changed_letter(folder.path());
    let owner = stream("work", "messages");
    // Sent again, it is mended, and what was damaged is not kept as its history.
    store.put(vec![message_with("a", "\"subject\":\"zyzzyva new\"")]);
    assert!(
        store
            .get(&owner, &key("a"))
            .unwrap()
            .unwrap()
            .body
            .contains("zyzzyva new")
    );
    assert_eq!(store.history(&owner, &key("a"), 9, 9).unwrap().len(), 2);
    assert_eq!(store.inspect(Depth::Thorough).unwrap().damaged_records, []);
    drop(store);
    // So are earlier versions.
    assert!(change_letter(folder.path(), "zyzzyva old") > 0);
    let store = open(folder.path());
    names_a(&store.history(&owner, &key("a"), 9, 9).unwrap_err());
    assert_eq!(
        store
            .inspect(Depth::Thorough)
            .unwrap()
            .damaged_records
            .len(),
        1
    );
}

#[test]
fn a_declaration_is_replaced_without_a_damaged_record_which_is_named() {
    // TR-35: one damaged record refuses nothing, whatever of its stream is dropped, retyped or ordered anew.
    type Edit = fn(&mut serde_json::Value);
    let edits: [Edit; 3] = [
        |stream| {
            let fields = stream["schema"]["properties"].as_object_mut().unwrap();
            fields.remove("labels");
        },
        |stream| stream["schema"]["properties"]["due_on"] = json!({ "type": "boolean" }),
        |stream| stream["cursor_field"] = json!("due_on"),
    ];
    for edit in edits {
        let folder = tempfile::tempdir().unwrap();
        let store = with_a_changed_letter(folder.path());
        let mut document: serde_json::Value = serde_json::from_str(MAIL).unwrap();
        document["declaration_version"] = json!("2");
        edit(&mut document["streams"][0]);
        let declared = store.declare(&Declaration::parse(&document.to_string()).unwrap());
        let Declared::Updated { damaged, .. } = declared.unwrap() else {
            panic!("it is another version")
        };
        assert_eq!(damaged, ["'a' of work/messages"]);
        // A stream is never dropped with its records, damaged or not.
        document["declaration_version"] = json!("3");
        document["streams"].as_array_mut().unwrap().remove(0);
        let without = Declaration::parse(&document.to_string()).unwrap();
        let error = store.declare(&without).unwrap_err();
        assert!(
            matches!(error, store::StoreError::Declaration(_)),
            "{error}"
        );
    }
}
