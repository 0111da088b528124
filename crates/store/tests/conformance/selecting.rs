//! Pages of the records that pass a scope: the same order as all records, less those that do not pass.

use std::ops::Bound;

use contract::json::RecordBody;
use contract::scalar::{FieldKind, Scalar};
use proptest::prelude::*;
use store::Store;
use store::records::{Direction, OrderBy, PageRequest};
use store::search::{Scope, Test};

use crate::fixture::{
    Work, cases, delete, filtered, key, message_with, messages, on_every_mailbox,
};

const ORDERS: [(OrderBy, Direction); 4] = [
    (OrderBy::Cursor, Direction::Ascending),
    (OrderBy::Cursor, Direction::Descending),
    (OrderBy::Key, Direction::Ascending),
    (OrderBy::Key, Direction::Descending),
];

fn page((by, direction): (OrderBy, Direction), limit: usize) -> PageRequest {
    PageRequest::first(by, direction, limit)
}

/// The keys that pass, read in pages of one size.
fn selected(
    store: &dyn Store,
    scope: &Scope,
    order: (OrderBy, Direction),
    limit: usize,
) -> Vec<String> {
    let mut request = page(order, limit);
    let mut keys = Vec::new();
    loop {
        let records = store.select(scope, &request).unwrap().records;
        assert!(records.len() <= limit);
        let Some(last) = records.last() else {
            return keys;
        };
        request.after = Some(last.position.clone());
        keys.extend(records.iter().map(|record| record.key.to_string()));
    }
}

/// The same, from all records one after the other.
fn expected(
    store: &dyn Store,
    order: (OrderBy, Direction),
    passes: impl Fn(&RecordBody) -> bool,
) -> Vec<String> {
    let all = store
        .page(&messages("work").stream, &page(order, 100_000))
        .unwrap();
    all.records
        .into_iter()
        .filter(|record| passes(&RecordBody::parse(record.body.clone()).unwrap()))
        .map(|record| record.key.to_string())
        .collect()
}

fn at_least(size: i64) -> Scope {
    let low = Bound::Included(Scalar::Integer(size));
    filtered(
        messages("work"),
        "size_bytes",
        Test::Range(low, Bound::Unbounded),
    )
}

fn has_at_least(size: i64) -> impl Fn(&RecordBody) -> bool {
    move |body| {
        let value = body
            .get("size_bytes")
            .and_then(|raw| Scalar::from_json(FieldKind::Integer, raw));
        matches!(value, Some(Scalar::Integer(value)) if value >= size)
    }
}

#[test]
fn selected_pages_are_the_order_of_all_records_less_those_that_do_not_pass() {
    let record = (0_u8..30, prop::option::of(0_i64..6), 0_u8..5);
    let records = prop::collection::vec(record, 0..40);
    proptest!(cases(8), |(records in records, limit in 1_usize..7, size in 0_i64..6)| {
        on_every_mailbox(|store| {
            let batch = records.iter().map(|(id, size, day)| {
                let size = size.map_or(String::new(), |size| format!("\"size_bytes\":{size},"));
                let time = if *day == 0 { "null".to_owned() } else { format!("\"2026-03-0{day}\"") };
                message_with(&format!("m{id}"), &format!("{size}\"received_at\":{time}"))
            });
            store.put(batch.collect());
            store.put(vec![delete("messages", "m1"), delete("messages", "m2")]);
            for order in ORDERS {
                let keys = selected(store, &at_least(size), order, limit);
                assert_eq!(keys, expected(store, order, has_at_least(size)), "{order:?}");
                let whole = selected(store, &messages("work"), order, limit);
                assert_eq!(whole, expected(store, order, |_| true), "{order:?}");
            }
        });
    });
}

#[test]
fn thousands_that_pass_are_paged_in_the_same_order() {
    on_every_mailbox(|store| {
        let record = |at: usize| {
            let time = if at.is_multiple_of(11) {
                "null".to_owned()
            } else {
                format!("\"2026-03-01T00:{:02}:00Z\"", at * 7 % 60)
            };
            message_with(
                &format!("m{at:04}"),
                &format!("\"size_bytes\":{},\"received_at\":{time}", at % 10),
            )
        };
        store.put((0..5_600).map(record).collect());
        // More than are sorted in memory, and fewer.
        for size in [1, 8] {
            for order in ORDERS {
                let keys = selected(store, &at_least(size), order, 900);
                assert_eq!(
                    keys,
                    expected(store, order, has_at_least(size)),
                    "{size} {order:?}"
                );
            }
        }
    });
}

#[test]
fn a_page_of_nothing_and_a_page_of_everything_are_pages_too() {
    on_every_mailbox(|store| {
        let record = |at: usize| message_with(&format!("m{at}"), &format!("\"size_bytes\":{at}"));
        for (records, passing) in [(0..10, 9), (10..4_500, 4_499)] {
            store.put(records.map(record).collect());
            let none = store.select(&at_least(1), &page(ORDERS[0], 0)).unwrap();
            assert!(none.records.is_empty());
            let everything = store
                .select(&at_least(1), &page(ORDERS[0], usize::MAX))
                .unwrap();
            assert_eq!(everything.records.len(), passing);
        }
        let mut listed = messages("work");
        listed.keys = Some(vec![key("m7"), key("m3"), key("absent")]);
        assert_eq!(selected(store, &listed, ORDERS[2], 1), ["m3", "m7"]);
    });
}
