//! Pages: one order, in both directions, however it is cut.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicU32, Ordering as Atomic};

use contract::json::RecordBody;
use contract::key::RecordKey;
use contract::scalar::{FieldKind, Scalar};
use proptest::prelude::*;
use store::records::{Change, Direction, OrderBy, PageRequest};
use store::{Store, StreamRef};

use crate::fixture::{
    add_ledger, cases, compound, delete, key, on_every_backend, put, put_at, stream, write,
};

/// The keys of a stream, read in pages of one size.
fn paged(
    store: &dyn Store,
    stream: &StreamRef,
    (by, direction): (OrderBy, Direction),
    limit: usize,
) -> Vec<RecordKey> {
    let mut keys = Vec::new();
    let mut after = None;
    loop {
        let mut request = PageRequest::first(by, direction, limit);
        request.after = after;
        let page = store.page(stream, &request).unwrap().records;
        assert!(page.len() <= limit);
        let Some(last) = page.last() else { return keys };
        after = Some(last.position.clone());
        keys.extend(page.into_iter().map(|record| record.key));
    }
}

fn names(keys: &[RecordKey]) -> String {
    let names: Vec<&str> = keys.iter().map(RecordKey::as_str).collect();
    names.join(" ")
}

/// Asserts the order by cursor ascending, and descending, in pages of one, two and all.
fn assert_order(store: &dyn Store, stream: &StreamRef, ascending: &str, descending: &str) {
    for (direction, expected) in [
        (Direction::Ascending, ascending),
        (Direction::Descending, descending),
    ] {
        for limit in [1, 2, 100] {
            let keys = paged(store, stream, (OrderBy::Cursor, direction), limit);
            assert_eq!(names(&keys), expected, "pages of {limit}");
        }
    }
}

fn entry(id: &str, number: &str) -> Change {
    put(
        "entries",
        &format!("{{\"id\":\"{id}\",\"number\":{number}}}"),
    )
}

#[test]
fn numbers_are_ordered_by_value_and_those_out_of_range_come_last() {
    on_every_backend(|store| {
        add_ledger(store, "books");
        let numbers = [
            ("ten", "10"),
            ("nine", "9.0"),
            ("minus", "-3"),
            ("largest", "9223372036854775807"),
            ("next-largest", "9223372036854775806"),
            ("smallest", "-9223372036854775808"),
            ("beyond", "9223372036854775808"),
            ("thousand", "1e3"),
        ];
        let integers = numbers.map(|(id, number)| entry(id, number));
        write(store, "books", integers.into());
        assert_order(
            store,
            &stream("books", "entries"),
            "smallest minus nine ten thousand next-largest largest beyond",
            "largest next-largest thousand ten nine minus smallest beyond",
        );
        let rate = |(id, rate): (&str, &str)| {
            put("rates", &format!("{{\"id\":\"{id}\",\"rate\":{rate}}}"))
        };
        let rates = [
            ("b-zero", "0"),
            ("a-minus-zero", "-0.0"),
            ("tiny", "1e-300"),
            ("half", "0.5"),
            ("two", "2"),
            ("infinite", "1e999"),
            ("minus", "-2.5e3"),
        ];
        write(store, "books", rates.map(rate).into());
        assert_order(
            store,
            &stream("books", "rates"),
            "minus a-minus-zero b-zero tiny half two infinite",
            "two half tiny b-zero a-minus-zero minus infinite",
        );
    });
}

#[test]
fn order_by_key_ignores_the_cursor_value_and_deleted_records_are_on_no_page() {
    on_every_backend(|store| {
        add_ledger(store, "books");
        let records = [("a", "3"), ("b", "2"), ("c", "1"), ("d", "0")];
        let records = records.map(|(id, number)| entry(id, number));
        write(store, "books", records.into());
        write(store, "books", vec![delete("entries", "b")]);
        let entries = stream("books", "entries");
        let up = (OrderBy::Key, Direction::Ascending);
        let down = (OrderBy::Key, Direction::Descending);
        assert_eq!(names(&paged(store, &entries, up, 2)), "a c d");
        assert_eq!(names(&paged(store, &entries, down, 1)), "d c a");
        assert_order(store, &entries, "d c a", "a c d");
    });
}

#[test]
fn a_page_goes_on_where_it_ended_although_that_record_is_gone() {
    on_every_backend(|store| {
        add_ledger(store, "books");
        let entry = |id| entry(id, "1");
        write(store, "books", ["a", "b", "c"].map(entry).into());
        let entries = stream("books", "entries");
        let mut request = PageRequest::first(OrderBy::Cursor, Direction::Ascending, 2);
        let first = store.page(&entries, &request).unwrap();
        write(store, "books", vec![delete("entries", "b"), entry("bb")]);
        request.after = first.records.last().map(|record| record.position.clone());
        let second = store.page(&entries, &request).unwrap().records;
        let keys: Vec<RecordKey> = second.into_iter().map(|record| record.key).collect();
        assert_eq!(names(&keys), "bb c");
    });
}

#[test]
fn a_page_may_be_as_large_as_a_number_can_say() {
    on_every_backend(|store| {
        add_ledger(store, "books");
        write(store, "books", vec![put("entries", r#"{"id":"a"}"#)]);
        for by in [OrderBy::Cursor, OrderBy::Key] {
            let request = PageRequest::first(by, Direction::Descending, usize::MAX);
            let page = store.page(&stream("books", "entries"), &request).unwrap();
            assert_eq!(page.records[0].key, key("a"));
        }
    });
}

/// A cursor value in JSON: present in many spellings, null, unreadable or of an extreme size.
fn cursor_value() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0_i64..6, -12_i32..13).prop_map(|(second, hours)| {
            let sign = if hours < 0 { '-' } else { '+' };
            let local = 12 + hours;
            let day = 1 + local.div_euclid(24);
            let hour = local.rem_euclid(24);
            let hours = hours.abs();
            format!("\"2026-03-{day:02}T{hour:02}:00:0{second}{sign}{hours:02}:00\"")
        }),
        2 => (0_u32..3).prop_map(|fraction| format!("\"2026-03-01T12:00:01.{fraction}Z\"")),
        1 => Just("\"2026-03-01\"".to_owned()),
        1 => Just("null".to_owned()),
        1 => Just("\"soon\"".to_owned()),
    ]
}

/// The order the pages must have, computed plainly.
fn expected(
    records: &[(RecordKey, String)],
    (by, direction): (OrderBy, Direction),
) -> Vec<RecordKey> {
    let value = |json: &str| {
        let body = RecordBody::parse(json).unwrap();
        let raw = body.get("changed_at")?;
        Scalar::from_json(FieldKind::DateTime, raw)
    };
    let turned = |order: Ordering| match direction {
        Direction::Ascending => order,
        Direction::Descending => order.reverse(),
    };
    let mut sorted: Vec<_> = records.iter().collect();
    sorted.sort_by(|(one, a), (other, b)| {
        let by_value = match (by, value(a), value(b)) {
            (OrderBy::Key, ..) | (_, None, None) => Ordering::Equal,
            (_, None, Some(_)) => Ordering::Greater,
            (_, Some(_), None) => Ordering::Less,
            (_, Some(a), Some(b)) => turned(a.compare(&b).unwrap()),
        };
        by_value.then(turned(one.parts().cmp(&other.parts())))
    });
    sorted.into_iter().map(|(key, _)| key.clone()).collect()
}

#[test]
fn pages_of_any_size_join_up_to_the_whole_sorted_list() {
    let connections = AtomicU32::new(0);
    on_every_backend(|store| {
        let part = || prop_oneof![Just(""), Just("a"), Just("a!"), Just("b"), Just("é")];
        let record = (part(), 0_u8..6, prop::option::weighted(0.9, cursor_value()));
        let config = cases(32);
        proptest!(config, |(records in prop::collection::vec(record, 0..30), limit in 1_usize..9)| {
            let id = format!("c{}", connections.fetch_add(1, Atomic::Relaxed));
            add_ledger(store, &id);
            let mut kept: Vec<(RecordKey, String)> = Vec::new();
            for (sheet, row, value) in &records {
                let key = compound(&[sheet, &row.to_string()]);
                let member = value.as_ref().map(|value| format!("\"changed_at\":{value}"));
                let json = format!("{{{}}}", member.unwrap_or_default());
                write(store, &id, vec![put_at("cells", key.clone(), &json)]);
                kept.retain(|(known, _)| *known != key);
                kept.push((key, json));
            }
            for by in [OrderBy::Cursor, OrderBy::Key] {
                for direction in [Direction::Ascending, Direction::Descending] {
                    let order = (by, direction);
                    let pages = paged(store, &stream(&id, "cells"), order, limit);
                    prop_assert_eq!(&pages, &expected(&kept, order));
                }
            }
        });
    });
}
