//! Scopes: which records may count, and which fields may be looked at. Nothing outside them shows.

use std::ops::Bound::{Excluded, Included, Unbounded};

use contract::scalar::Scalar;
use contract::time::TimeRange;
use store::search::{Metric, Scope, Test};
use store::{Store, StoreError};

use crate::fixture::{
    Work, add_mail, compound, compute, delete, field, filtered, found, found_sorted, instant, key,
    message, message_with, messages, on_every_backend, on_every_mailbox, put_at, request, scope,
    score, search, write,
};

#[test]
fn several_streams_share_one_ranking_and_keep_their_own_fields() {
    on_every_mailbox(|store| {
        add_mail(store, "home");
        store.put(vec![
            message("w1", "river", ""),
            message("w2", "bank", "river river river"),
        ]);
        write(
            store,
            "home",
            vec![message("h1", "", "river"), message("h2", "river", "bank")],
        );
        let event = put_at("events", compound(&["d", "1"]), r#"{"note":"river walk"}"#);
        write(store, "home", vec![event]);
        let everything = || {
            vec![
                messages("work"),
                messages("home"),
                scope("home", "events", &["note"]),
            ]
        };
        assert_eq!(
            found_sorted(store, "river", everything()),
            [r#"["d","1"]"#, "h1", "h2", "w1", "w2"]
        );
        let answer = search(store, "river", everything());
        let scores: Vec<f32> = answer.hits.iter().map(score).collect();
        assert!(scores.is_sorted_by(|one, next| one >= next), "{scores:?}");
        let narrow = vec![
            scope("work", "messages", &["body"]),
            scope("home", "messages", &["subject"]),
        ];
        assert_eq!(found_sorted(store, "river", narrow), ["h2", "w2"]);
        assert_eq!(found_sorted(store, "bank", vec![messages("home")]), ["h2"]);
        let hits = search(store, "river", vec![scope("home", "events", &["note"])]).hits;
        assert_eq!(hits[0].stream, crate::fixture::stream("home", "events"));
    });
}

/// Records with values of every type, and some without.
fn add_typed(store: &dyn Store) {
    add_mail(store, "work");
    let rows = [
        (
            "full",
            r#""seen":true,"size_bytes":5,"amount":1.5,"from_email":"a@x","subject":"x","due_on":"2026-03-01","received_at":"2026-03-01T10:00:00Z""#,
        ),
        (
            "spelled",
            r#""seen":true,"size_bytes":5.0,"amount":15e-1,"from_email":"\u0061@x","subject":"\u0078","due_on":"2026-03-01","received_at":"2026-03-01T12:00:00.000+02:00""#,
        ),
        (
            "other",
            r#""seen":false,"size_bytes":-5,"amount":-1.5,"from_email":"A@x","subject":"x ","due_on":"2026-03-02","received_at":"2026-03-01T10:00:00.000001Z""#,
        ),
        (
            "zero",
            r#""seen":false,"size_bytes":0,"amount":-0.0,"from_email":"","subject":"","due_on":"1999-12-31","received_at":"1970-01-01T00:00:00Z""#,
        ),
        (
            "nulls",
            r#""amount":null,"subject":null,"received_at":null"#,
        ),
        ("none", r#""labels":[]"#),
    ];
    store.put(rows.map(|(id, members)| message_with(id, members)).into());
}

/// The number of records that pass a filter, and those a search finds through it, which must agree.
fn passing(store: &dyn Store, name: &str, test: &Test) -> u64 {
    let counted = compute(
        store,
        filtered(messages("work"), name, test.clone()),
        Metric::Count,
        None,
    )
    .matched;
    let probe = filtered(scope("work", "messages", &["body"]), name, test.clone());
    let matched = found(store, "everywhere", vec![probe]).len() as u64;
    assert_eq!(matched, counted, "{name} {test:?}");
    counted
}

/// Gives every record a word to be found by.
fn add_word_everywhere(store: &dyn Store) {
    let records = crate::fixture::all(store, &crate::fixture::stream("work", "messages"));
    let batch = records.iter().map(|record| {
        let json = record.body.replacen('{', r#"{"body":"everywhere","#, 1);
        put_at("messages", record.key.clone(), &json)
    });
    store.put(batch.collect());
}

#[test]
fn equality_compares_values_of_the_declared_type_and_null_never_matches() {
    // Decision 10.
    on_every_backend(|store| {
        add_typed(store);
        add_word_everywhere(store);
        let text = |value: &str| Scalar::Text(value.to_owned());
        let time = |text: &str| Scalar::Instant(instant(text));
        let expectations = [
            ("seen", Scalar::Boolean(true), 2),
            ("seen", Scalar::Boolean(false), 2),
            ("size_bytes", Scalar::Integer(5), 2),
            ("size_bytes", Scalar::Integer(0), 1),
            ("size_bytes", Scalar::Integer(1), 0),
            ("amount", Scalar::Number(1.5), 2),
            ("amount", Scalar::Number(0.0), 1),
            ("amount", Scalar::Number(-1.5), 1),
            // A dictionary column, then a hashed one.
            ("from_email", text("a@x"), 2),
            ("from_email", text("A@x"), 1),
            ("from_email", text(""), 1),
            ("from_email", text("null"), 0),
            ("subject", text("x"), 2),
            ("subject", text("x "), 1),
            ("subject", text(""), 1),
            ("subject", text("null"), 0),
            ("id", text("none"), 1),
            ("received_at", time("2026-03-01T10:00:00Z"), 2),
            ("received_at", time("1970-01-01T00:00:00Z"), 1),
            ("due_on", time("2026-03-01"), 2),
        ];
        for (name, value, expected) in expectations {
            let equals = Test::Equals(value);
            assert_eq!(passing(store, name, &equals), expected, "{name} {equals:?}");
        }
    });
}

#[test]
fn range_bounds_are_inclusive_or_exclusive_as_asked() {
    on_every_backend(|store| {
        add_typed(store);
        add_word_everywhere(store);
        let int = Scalar::Integer;
        let num = Scalar::Number;
        let time = |text: &str| Scalar::Instant(instant(text));
        let expectations = [
            ("size_bytes", Included(int(0)), Unbounded, 3),
            ("size_bytes", Excluded(int(0)), Unbounded, 2),
            ("size_bytes", Unbounded, Included(int(0)), 2),
            ("size_bytes", Unbounded, Excluded(int(0)), 1),
            ("size_bytes", Included(int(-5)), Included(int(5)), 4),
            ("size_bytes", Excluded(int(i64::MAX)), Unbounded, 0),
            ("size_bytes", Unbounded, Excluded(int(i64::MIN)), 0),
            ("size_bytes", Included(int(5)), Included(int(-5)), 0),
            ("amount", Included(num(0.0)), Unbounded, 3),
            ("amount", Excluded(num(0.0)), Unbounded, 2),
            ("amount", Unbounded, Excluded(num(0.0)), 1),
            ("amount", Excluded(num(-1.5)), Included(num(1.5)), 3),
            (
                "received_at",
                Included(time("2026-03-01T10:00:00Z")),
                Unbounded,
                3,
            ),
            (
                "received_at",
                Excluded(time("2026-03-01T10:00:00Z")),
                Unbounded,
                1,
            ),
            (
                "due_on",
                Included(time("2026-03-01")),
                Excluded(time("2026-03-02")),
                2,
            ),
        ];
        for (name, low, high, expected) in expectations {
            let test = Test::Range(low, high);
            assert_eq!(passing(store, name, &test), expected, "{name} {test:?}");
        }
    });
}

#[test]
fn a_value_between_those_stored_matches_nothing() {
    on_every_mailbox(|store| {
        // All multiples of ten, all hashes far apart: engines pack such columns by what the values have in common.
        let record = |at: i64| {
            let members = format!("\"body\":\"everywhere\",\"size_bytes\":{}", at * 10);
            message_with(&format!("m{at}"), &members)
        };
        store.put((0..40).map(record).collect());
        for size in -2..403 {
            let equals = Test::Equals(Scalar::Integer(size));
            let stored = (0..400).contains(&size) && size % 10 == 0;
            assert_eq!(
                passing(store, "size_bytes", &equals),
                u64::from(stored),
                "{size}"
            );
            let above = Test::Range(
                Included(Scalar::Integer(size)),
                Excluded(Scalar::Integer(size + 3)),
            );
            let stored =
                (0..3).any(|more| (0..400).contains(&(size + more)) && (size + more) % 10 == 0);
            assert_eq!(
                passing(store, "size_bytes", &above),
                u64::from(stored),
                "{size}"
            );
        }
    });
}

#[test]
fn a_filter_a_field_cannot_serve_is_an_error_that_names_it() {
    on_every_backend(|store| {
        add_typed(store);
        let refused = [
            ("labels", Test::Equals(Scalar::Text("a".to_owned()))),
            ("size_bytes", Test::Equals(Scalar::Text("5".to_owned()))),
            ("size_bytes", Test::Equals(Scalar::Number(5.0))),
            ("subject", Test::Equals(Scalar::Integer(5))),
            ("nothing", Test::Equals(Scalar::Boolean(true))),
        ];
        for (name, test) in refused {
            let scope = filtered(messages("work"), name, test);
            let error = store.search(&request("x", vec![scope])).unwrap_err();
            assert!(
                matches!(&error, StoreError::Unsupported { field, .. } if field == name),
                "{error}"
            );
        }
        let mut timeless = messages("work");
        timeless.time = Some((field("subject"), TimeRange::default()));
        assert!(store.search(&request("x", vec![timeless])).is_err());
        let error = store
            .search(&request("x", vec![messages("nobody")]))
            .unwrap_err();
        assert!(matches!(error, StoreError::UnknownConnection(_)), "{error}");
    });
}

#[test]
fn an_extent_counts_what_passes_and_names_what_was_emitted_latest() {
    on_every_mailbox(|store| {
        for (id, day) in [("m1", 3), ("m2", 9), ("m3", 5), ("m4", 9), ("m5", 1)] {
            let mut change = message(id, "plan", "");
            change.emitted_at = format!("2026-05-{day:02}T00:00:00Z");
            store.put(vec![change]);
        }
        let mut some = scope("work", "messages", &[]);
        some.keys = Some(["m1", "m2", "m3", "m5"].map(key).to_vec());
        let days = |scope: &Scope, latest: usize| {
            let extent = store.extent(scope, latest).unwrap();
            let latest = extent.latest.iter();
            let days = latest.map(|record| record.emitted_at[8..10].to_owned());
            (extent.records, days.collect::<Vec<_>>().join(" "))
        };
        assert_eq!(days(&some, 1), (4, "09".to_owned()));
        assert_eq!(days(&some, 3), (4, "09 05 03".to_owned()));
        assert_eq!(days(&some, 9), (4, "09 05 03 01".to_owned()));
        let whole = scope("work", "messages", &[]);
        assert_eq!(days(&whole, 3), (5, "09 09 05".to_owned()));
        assert_eq!(days(&whole, 0), (5, String::new()));
    });
}

#[test]
fn records_that_are_given_an_earlier_date_are_known_until_they_are_erased() {
    on_every_mailbox(|store| {
        let days = [("m1", 5), ("m1", 3), ("m1", 4), ("m2", 1), ("m2", 2)];
        let later = [("m3", 7), ("m3", 9), ("m3", 8), ("m4", 9), ("m4", 1)];
        for (at, (id, day)) in days.into_iter().chain(later).enumerate() {
            let mut change = message(id, &format!("plan {at}"), "");
            change.emitted_at = format!("2026-05-{day:02}T00:00:00Z");
            store.put(vec![change]);
        }
        let redated = |after: Option<&str>, limit: usize| {
            let found = store.redated(&messages("work").stream, after.map(instant), limit);
            let found = found.unwrap().into_iter();
            found
                .map(|(latest, record)| format!("{} {}", record.key, latest.to_rfc3339_millis()))
                .collect::<Vec<_>>()
        };
        let third = "m3 2026-05-09T00:00:00.000Z";
        let all = [
            "m4 2026-05-09T00:00:00.000Z",
            third,
            "m1 2026-05-05T00:00:00.000Z",
        ];
        assert_eq!(redated(None, 9), all);
        assert_eq!(redated(None, 1), all[..1]);
        assert_eq!(redated(Some("2026-05-05T00:00:00Z"), 9), all[..2]);
        store.put(vec![delete("messages", "m4")]);
        assert_eq!(redated(Some("2026-05-05T00:00:00Z"), 9), [third]);
        store.purge().unwrap();
        store.put(vec![message("m4", "plan", "")]);
        assert_eq!(redated(Some("2026-05-05T00:00:00Z"), 9), [third]);
    });
}
