//! What is read at a time ends by its bytes, so that memory does not grow with the size of records.

use std::ops::Bound;

use contract::scalar::Scalar;
use store::records::{
    Change, ChangesRequest, Direction, OrderBy, PAGE_BYTES, PageRequest, StoredPage,
};
use store::search::Test;
use store::{Store, StreamRef};

use crate::fixture::{
    Work, add_mail, filtered, found_sorted, key, message_with, messages, on_every_backend, request,
    stream,
};

const MIB: usize = 1024 * 1024;

/// A message of about so many bytes.
fn sized(id: &str, bytes: usize) -> Change {
    let padding = "a".repeat(bytes);
    message_with(
        id,
        &format!("\"subject\":\"tea\",\"size_bytes\":1,\"padding\":\"{padding}\""),
    )
}

/// Three records of which two fit a page, one that none does, and one after it.
fn large(store: &dyn Store) {
    add_mail(store, "work");
    let sizes = [
        ("a", MIB),
        ("b", MIB),
        ("c", 3 * MIB),
        ("d", 6 * MIB),
        ("e", 10),
    ];
    for (id, bytes) in sizes {
        store.put(vec![sized(id, bytes)]);
    }
}

const PAGES: [(&[&str], bool); 4] = [
    (&["a", "b"], false),
    (&["c"], false),
    (&["d"], false),
    (&["e"], true),
];

fn assert_pages(mut page: impl FnMut(&PageRequest) -> StoredPage) {
    let mut request = PageRequest::first(OrderBy::Key, Direction::Ascending, 100);
    for (expected, is_last) in PAGES {
        let page = page(&request);
        let keys: Vec<&str> = page.records.iter().map(|one| one.key.as_str()).collect();
        assert_eq!((keys.as_slice(), page.is_last), (expected, is_last));
        let bytes: usize = page.records.iter().map(|one| one.body.len()).sum();
        assert!(bytes <= PAGE_BYTES || page.records.len() == 1);
        request.after = page.records.last().map(|last| last.position.clone());
    }
}

#[test]
fn a_page_of_records_ends_by_its_bytes() {
    // TR-38: rows are read only as far as a page holds them.
    on_every_backend(|store| {
        large(store);
        let place: StreamRef = stream("work", "messages");
        assert_pages(|request| store.page(&place, request).unwrap());
        let at_least = Test::Range(Bound::Included(Scalar::Integer(1)), Bound::Unbounded);
        let scope = filtered(messages("work"), "size_bytes", at_least);
        assert_pages(|request| store.select(&scope, request).unwrap());
    });
}

#[test]
fn a_page_of_changes_and_of_a_history_ends_by_its_bytes() {
    // TR-38: the same for what changed, where each entry may hold two states.
    on_every_backend(|store| {
        large(store);
        let place = stream("work", "messages");
        let mut request = ChangesRequest {
            every_version: true,
            ..ChangesRequest::since(0, 100)
        };
        for (expected, is_last) in PAGES {
            let page = store.changes(&place, &request).unwrap();
            let keys: Vec<&str> = page.entries.iter().map(|one| one.key.as_str()).collect();
            assert_eq!((keys.as_slice(), !page.has_more), (expected, is_last));
            assert!(page.entries.iter().all(|entry| entry.current.is_some()));
            request.after = page.entries.last().unwrap().version;
        }
        let since = request.after;
        // What was and what is count both: neither of these fits beside the other.
        for (id, bytes) in [("b", 2 * MIB), ("c", 10), ("d", 5 * MIB)] {
            store.put(vec![sized(id, bytes)]);
        }
        let request = ChangesRequest {
            since,
            after: since,
            ..request
        };
        let page = store.changes(&place, &request).unwrap();
        assert_eq!((page.entries.len(), page.has_more), (1, true));
        let history = store.history(&place, &key("d"), page.until, 64).unwrap();
        assert_eq!(history.len(), 1);
        let older = history[0].version - 1;
        let history = store.history(&place, &key("d"), older, 64).unwrap();
        assert_eq!(history.len(), 1);
        assert!(
            history[0]
                .body
                .as_ref()
                .is_some_and(|body| body.len() > 6 * MIB)
        );
        let older = history[0].version - 1;
        assert!(
            store
                .history(&place, &key("d"), older, 64)
                .unwrap()
                .is_empty()
        );
    });
}

#[test]
fn a_page_of_a_ranking_ends_by_its_bytes() {
    // TR-38: and for the records behind hits.
    on_every_backend(|store| {
        large(store);
        let mut request = request("tea", vec![messages("work")]);
        let mut keys = Vec::new();
        for _ in 0..5 {
            let page = store.search(&request).unwrap();
            let bytes: usize = page.hits.iter().map(|hit| hit.record.body.len()).sum();
            assert!(bytes <= PAGE_BYTES || page.hits.len() == 1);
            keys.extend(page.hits.iter().map(|hit| hit.record.key.to_string()));
            if !page.has_more {
                break;
            }
            request.after = page.hits.last().map(|hit| hit.position);
        }
        keys.sort();
        assert_eq!(keys, ["a", "b", "c", "d", "e"]);
        let small = filtered(
            messages("work"),
            "id",
            Test::Equals(Scalar::Text("e".into())),
        );
        assert_eq!(found_sorted(store, "tea", vec![small]), ["e"]);
    });
}
