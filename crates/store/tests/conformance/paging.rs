//! Pages: one order, in both directions, however it is cut.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicU32, Ordering as Atomic};

use contract::json::RecordBody;
use contract::key::RecordKey;
use contract::scalar::{FieldKind, Scalar};
use proptest::prelude::*;
use store::records::{Direction, OrderBy, PageRequest, SortValue};
use store::{Store, StreamRef};

use crate::fixture::{
    add_ledger, add_mail, cases, compound, delete, key, message_with, on_every_backend, put,
    put_at, stream, write,
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
        let page = store
            .page(
                stream,
                &PageRequest {
                    by,
                    direction,
                    after,
                    limit,
                },
            )
            .unwrap()
            .records;
        assert!(page.len() <= limit);
        let Some(last) = page.last() else { return keys };
        after = Some(last.position.clone());
        keys.extend(page.into_iter().map(|record| record.key));
    }
}

fn names(keys: &[RecordKey]) -> Vec<&str> {
    keys.iter().map(RecordKey::as_str).collect()
}

/// Asserts the order by cursor ascending, and descending, in pages of one, two and all.
fn assert_order(store: &dyn Store, stream: &StreamRef, ascending: &[&str], descending: &[&str]) {
    for limit in [1, 2, 100] {
        let up = paged(
            store,
            stream,
            (OrderBy::Cursor, Direction::Ascending),
            limit,
        );
        assert_eq!(names(&up), ascending, "pages of {limit}");
        let down = paged(
            store,
            stream,
            (OrderBy::Cursor, Direction::Descending),
            limit,
        );
        assert_eq!(names(&down), descending, "pages of {limit}");
    }
}

#[test]
fn date_times_are_ordered_as_instants_whatever_their_spelling() {
    on_every_backend(|store| {
        add_mail(store, "work");
        let at = |id, time: &str| message_with(id, &format!("\"received_at\":\"{time}\""));
        write(
            store,
            "work",
            vec![
                at("noon-in-berlin", "2026-03-01T12:00:00+01:00"),
                at("eleven-and-a-bit", "2026-03-01T11:00:00.000001Z"),
                at("half-past-ten", "2026-03-01T10:30:00Z"),
                at("a-date", "2026-03-01"),
                at("new-york-morning", "2026-03-01T05:59:59.9-05:00"),
                at("no-offset", "2026-03-01T11:30:00"),
                at("long-ago", "0012-01-01T00:00:00Z"),
            ],
        );
        let order = [
            "long-ago",
            "a-date",
            "half-past-ten",
            "new-york-morning",
            "noon-in-berlin",
            "eleven-and-a-bit",
            "no-offset",
        ];
        let mut reversed = order;
        reversed.reverse();
        assert_order(store, &stream("work", "messages"), &order, &reversed);
    });
}

#[test]
fn records_without_a_readable_cursor_value_come_last_in_both_directions() {
    on_every_backend(|store| {
        add_mail(store, "work");
        write(
            store,
            "work",
            vec![
                message_with("null", r#""received_at":null"#),
                message_with("absent", r#""seen":true"#),
                message_with("words", r#""received_at":"yesterday""#),
                message_with("empty", r#""received_at":"""#),
                message_with("late", r#""received_at":"2026-03-02T00:00:00Z""#),
                message_with("early", r#""received_at":"2026-03-01T00:00:00Z""#),
            ],
        );
        assert_order(
            store,
            &stream("work", "messages"),
            &["early", "late", "absent", "empty", "null", "words"],
            &["late", "early", "words", "null", "empty", "absent"],
        );
        let page = PageRequest {
            by: OrderBy::Cursor,
            direction: Direction::Ascending,
            after: None,
            limit: 6,
        };
        let page = store.page(&stream("work", "messages"), &page).unwrap();
        assert_eq!(page.records[2].position.sort, SortValue::Missing);
    });
}

#[test]
fn equal_cursor_values_are_ordered_by_key() {
    on_every_backend(|store| {
        add_ledger(store, "books");
        let entry = |id| put("entries", &format!("{{\"id\":\"{id}\",\"number\":7}}"));
        write(
            store,
            "books",
            ["b", "a", "C", "aa", "é", "z"].map(entry).into(),
        );
        assert_order(
            store,
            &stream("books", "entries"),
            &["C", "a", "aa", "b", "z", "é"],
            &["é", "z", "b", "aa", "a", "C"],
        );
    });
}

#[test]
fn compound_keys_are_ordered_part_by_part() {
    on_every_backend(|store| {
        add_ledger(store, "books");
        let keys = [
            compound(&["a!", "b"]),
            compound(&["a", "b"]),
            compound(&["a", "a!"]),
            compound(&["a", "a"]),
            compound(&["", "z"]),
            compound(&["a b", ""]),
        ];
        let cell = |key: &RecordKey| {
            let json = r#"{"changed_at":"2026-01-01T00:00:00Z"}"#;
            put_at("cells", key.clone(), json)
        };
        write(store, "books", keys.iter().map(cell).collect());
        let order = [
            r#"["","z"]"#,
            r#"["a","a"]"#,
            r#"["a","a!"]"#,
            r#"["a","b"]"#,
            r#"["a b",""]"#,
            r#"["a!","b"]"#,
        ];
        let mut reversed = order;
        reversed.reverse();
        assert_order(store, &stream("books", "cells"), &order, &reversed);
    });
}

#[test]
fn integers_are_ordered_by_value_and_those_out_of_range_come_last() {
    on_every_backend(|store| {
        add_ledger(store, "books");
        let entry = |(id, number): (&str, &str)| {
            put(
                "entries",
                &format!("{{\"id\":\"{id}\",\"number\":{number}}}"),
            )
        };
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
        write(store, "books", numbers.map(entry).into());
        assert_order(
            store,
            &stream("books", "entries"),
            &[
                "smallest",
                "minus",
                "nine",
                "ten",
                "thousand",
                "next-largest",
                "largest",
                "beyond",
            ],
            &[
                "largest",
                "next-largest",
                "thousand",
                "ten",
                "nine",
                "minus",
                "smallest",
                "beyond",
            ],
        );
    });
}

#[test]
fn numbers_are_ordered_by_value_and_those_out_of_range_come_last() {
    on_every_backend(|store| {
        add_ledger(store, "books");
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
            &[
                "minus",
                "a-minus-zero",
                "b-zero",
                "tiny",
                "half",
                "two",
                "infinite",
            ],
            &[
                "two",
                "half",
                "tiny",
                "b-zero",
                "a-minus-zero",
                "minus",
                "infinite",
            ],
        );
    });
}

#[test]
fn order_by_key_ignores_the_cursor_value_and_deleted_records_are_on_no_page() {
    on_every_backend(|store| {
        add_ledger(store, "books");
        let entry = |(id, number): (&str, u32)| {
            put(
                "entries",
                &format!("{{\"id\":\"{id}\",\"number\":{number}}}"),
            )
        };
        write(
            store,
            "books",
            [("a", 3), ("b", 2), ("c", 1), ("d", 0)].map(entry).into(),
        );
        write(store, "books", vec![delete("entries", "b")]);
        let entries = stream("books", "entries");
        let up = (OrderBy::Key, Direction::Ascending);
        let down = (OrderBy::Key, Direction::Descending);
        assert_eq!(names(&paged(store, &entries, up, 2)), ["a", "c", "d"]);
        assert_eq!(names(&paged(store, &entries, down, 1)), ["d", "c", "a"]);
        assert_order(store, &entries, &["d", "c", "a"], &["a", "c", "d"]);
    });
}

#[test]
fn a_page_goes_on_where_it_ended_although_that_record_is_gone() {
    on_every_backend(|store| {
        add_ledger(store, "books");
        let entry = |id| put("entries", &format!("{{\"id\":\"{id}\",\"number\":1}}"));
        write(store, "books", ["a", "b", "c"].map(entry).into());
        let entries = stream("books", "entries");
        let mut request = PageRequest {
            by: OrderBy::Cursor,
            direction: Direction::Ascending,
            after: None,
            limit: 2,
        };
        let first = store.page(&entries, &request).unwrap();
        write(store, "books", vec![delete("entries", "b"), entry("bb")]);
        request.after = first.records.last().map(|record| record.position.clone());
        let second = store.page(&entries, &request).unwrap();
        let keys: Vec<RecordKey> = second
            .records
            .into_iter()
            .map(|record| record.key)
            .collect();
        assert_eq!(names(&keys), ["bb", "c"]);
    });
}

#[test]
fn a_page_may_be_as_large_as_a_number_can_say() {
    on_every_backend(|store| {
        add_ledger(store, "books");
        write(store, "books", vec![put("entries", r#"{"id":"a"}"#)]);
        for by in [OrderBy::Cursor, OrderBy::Key] {
            let request = PageRequest {
                by,
                direction: Direction::Descending,
                after: None,
                limit: usize::MAX,
            };
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
