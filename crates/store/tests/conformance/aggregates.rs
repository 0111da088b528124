//! Aggregates: exact numbers over the visible records, whole or in groups.

use std::ops::Bound;

use contract::scalar::Scalar;
use jiff::tz::TimeZone;
use store::search::{
    AggregateAnswer, AggregateRequest, Granularity, Group, GroupKey, Grouping, Metric, Scope, Test,
    Value,
};
use store::{Store, StoreError};

use crate::fixture::{
    add_mail, delete, field, filtered, message_with, messages, on_every_backend, put, write,
};

fn compute(
    store: &dyn Store,
    scope: Scope,
    metric: Metric,
    grouping: Option<Grouping>,
) -> AggregateAnswer {
    let request = AggregateRequest {
        scope,
        metric,
        grouping,
    };
    store.aggregate(&request).unwrap()
}

fn number(store: &dyn Store, metric: Metric) -> Value {
    compute(store, messages("work"), metric, None).value
}

fn by(name: &str, limit: usize) -> Option<Grouping> {
    let field = field(name);
    Some(Grouping::Values { field, limit })
}

fn by_time(granularity: Granularity, zone: &str, limit: usize) -> Option<Grouping> {
    Some(Grouping::Time {
        field: field("received_at"),
        granularity,
        zone: TimeZone::get(zone).unwrap(),
        limit,
    })
}

fn text(text: &str) -> GroupKey {
    GroupKey::Text(text.to_owned())
}

fn counted(groups: &[Group]) -> Vec<(GroupKey, u64)> {
    groups
        .iter()
        .map(|group| (group.key.clone(), group.count))
        .collect()
}

/// Six records in two segments, of which one was replaced and one deleted.
fn add_records(store: &dyn Store) {
    add_mail(store, "work");
    let rows = [
        (
            "a",
            r#""from_email":"x","seen":true,"size_bytes":10,"amount":1.5,"received_at":"2026-03-01T10:00:00Z""#,
        ),
        (
            "b",
            r#""from_email":"y","seen":false,"size_bytes":-3,"amount":-2.0,"received_at":"2026-03-01T23:30:00Z""#,
        ),
        (
            "c",
            r#""from_email":"gone","seen":true,"size_bytes":1000,"amount":1000"#,
        ),
        (
            "d",
            r#""from_email":"replaced","size_bytes":5000,"amount":5000"#,
        ),
    ];
    write(
        store,
        "work",
        rows.map(|(id, members)| message_with(id, members)).into(),
    );
    store.settle_index().unwrap();
    let rows = [
        (
            "d",
            r#""from_email":"x","seen":true,"size_bytes":10.0,"amount":null,"received_at":"2026-04-01T01:00:00+02:00""#,
        ),
        ("e", r#""from_email":"x","received_at":null"#),
        ("f", r#""subject":"nothing else""#),
    ];
    write(
        store,
        "work",
        rows.map(|(id, members)| message_with(id, members)).into(),
    );
    write(store, "work", vec![delete("messages", "c")]);
}

#[test]
fn one_number_over_all_visible_records() {
    on_every_backend(|store| {
        add_records(store);
        let json = |text: &str| Value::Json(text.to_owned());
        assert_eq!(number(store, Metric::Count), Value::Integer(5));
        assert_eq!(
            number(store, Metric::Sum(field("size_bytes"))),
            Value::Integer(17)
        );
        assert_eq!(
            number(store, Metric::Sum(field("amount"))),
            Value::Number(-0.5)
        );
        assert_eq!(number(store, Metric::Min(field("size_bytes"))), json("-3"));
        assert_eq!(number(store, Metric::Max(field("amount"))), json("1.5"));
        // As the record has it, though another spelling of the time.
        assert_eq!(
            number(store, Metric::Max(field("received_at"))),
            json("\"2026-04-01T01:00:00+02:00\"")
        );
        assert_eq!(
            number(store, Metric::Min(field("received_at"))),
            json("\"2026-03-01T10:00:00Z\"")
        );
        assert_eq!(
            number(store, Metric::CountDistinct(field("from_email"))),
            Value::Integer(2)
        );
        assert_eq!(
            number(store, Metric::CountDistinct(field("size_bytes"))),
            Value::Integer(2)
        );
    });
}

#[test]
fn over_nothing_the_sum_is_zero_and_the_extremes_are_none() {
    on_every_backend(|store| {
        add_records(store);
        let none = || {
            let test = Test::Equals(Scalar::Text("nobody".to_owned()));
            filtered(messages("work"), "from_email", test)
        };
        let value = |metric| compute(store, none(), metric, None).value;
        assert_eq!(value(Metric::Count), Value::Integer(0));
        assert_eq!(value(Metric::Sum(field("size_bytes"))), Value::Integer(0));
        assert_eq!(value(Metric::Sum(field("amount"))), Value::Number(0.0));
        assert_eq!(value(Metric::Min(field("size_bytes"))), Value::None);
        assert_eq!(value(Metric::Max(field("received_at"))), Value::None);
        assert_eq!(
            value(Metric::CountDistinct(field("from_email"))),
            Value::Integer(0)
        );
        let grouped = compute(store, none(), Metric::Count, by("from_email", 5));
        assert_eq!(
            (grouped.matched, grouped.groups.len(), grouped.other_count),
            (0, 0, 0)
        );
    });
}

#[test]
fn groups_by_value_are_the_largest_first_and_the_rest_is_counted() {
    on_every_backend(|store| {
        add_records(store);
        let all = compute(store, messages("work"), Metric::Count, by("from_email", 10));
        assert_eq!(
            counted(&all.groups),
            [(text("x"), 3), (text("y"), 1), (GroupKey::Missing, 1)]
        );
        assert_eq!((all.matched, all.other_count), (5, 0));
        assert!(all.groups.iter().all(|group| group.value.is_none()));
        let some = compute(store, messages("work"), Metric::Count, by("from_email", 1));
        assert_eq!(
            (counted(&some.groups), some.other_count),
            (vec![(text("x"), 3)], 2)
        );
        let none = compute(store, messages("work"), Metric::Count, by("from_email", 0));
        assert_eq!((none.groups.len(), none.other_count), (0, 5));
        let seen = compute(store, messages("work"), Metric::Count, by("seen", 10));
        assert_eq!(
            counted(&seen.groups),
            [
                (GroupKey::Boolean(true), 2),
                (GroupKey::Missing, 2),
                (GroupKey::Boolean(false), 1)
            ]
            .to_vec()
        );
        let sizes = compute(store, messages("work"), Metric::Count, by("size_bytes", 2));
        assert_eq!(
            counted(&sizes.groups),
            [(GroupKey::Integer(10), 2), (GroupKey::Missing, 2)]
        );
        assert_eq!(sizes.other_count, 1);
    });
}

#[test]
fn groups_carry_sums_and_extremes() {
    // Decision 21.
    on_every_backend(|store| {
        add_records(store);
        let values = |metric| {
            let answer = compute(store, messages("work"), metric, by("from_email", 10));
            answer
                .groups
                .into_iter()
                .map(|group| group.value.unwrap())
                .collect::<Vec<_>>()
        };
        let json = |text: &str| Value::Json(text.to_owned());
        assert_eq!(
            values(Metric::Sum(field("size_bytes"))),
            [Value::Integer(20), Value::Integer(-3), Value::Integer(0)]
        );
        assert_eq!(
            values(Metric::Max(field("amount"))),
            [json("1.5"), json("-2.0"), Value::None]
        );
        assert_eq!(
            values(Metric::Min(field("received_at"))),
            [
                json("\"2026-03-01T10:00:00Z\""),
                json("\"2026-03-01T23:30:00Z\""),
                Value::None
            ]
        );
        let refused = AggregateRequest {
            scope: messages("work"),
            metric: Metric::CountDistinct(field("from_email")),
            grouping: by("seen", 3),
        };
        assert!(matches!(
            store.aggregate(&refused),
            Err(StoreError::Unsupported { .. })
        ));
    });
}

#[test]
fn time_buckets_follow_the_calendar_of_the_zone() {
    on_every_backend(|store| {
        add_records(store);
        let buckets = |granularity, zone| {
            let grouping = by_time(granularity, zone, 10);
            counted(&compute(store, messages("work"), Metric::Count, grouping).groups)
        };
        let missing = (GroupKey::Missing, 2);
        assert_eq!(
            buckets(Granularity::Day, "UTC"),
            [
                (text("2026-03-01"), 2),
                (text("2026-03-31"), 1),
                missing.clone()
            ]
        );
        assert_eq!(
            buckets(Granularity::Day, "Europe/Berlin"),
            [
                (text("2026-03-01"), 1),
                (text("2026-03-02"), 1),
                (text("2026-04-01"), 1),
                missing.clone()
            ]
        );
        assert_eq!(
            buckets(Granularity::Hour, "Asia/Kathmandu"),
            [
                (text("2026-03-01T15:00"), 1),
                (text("2026-03-02T05:00"), 1),
                (text("2026-04-01T04:00"), 1),
                missing.clone()
            ]
        );
        assert_eq!(
            buckets(Granularity::Minute, "UTC")[0],
            (text("2026-03-01T10:00"), 1)
        );
        assert_eq!(
            buckets(Granularity::Week, "UTC"),
            [
                (text("2026-02-23"), 2),
                (text("2026-03-30"), 1),
                missing.clone()
            ]
        );
        assert_eq!(
            buckets(Granularity::Month, "Europe/Berlin"),
            [
                (text("2026-03-01"), 2),
                (text("2026-04-01"), 1),
                missing.clone()
            ]
        );
        assert_eq!(
            buckets(Granularity::Quarter, "UTC"),
            [(text("2026-01-01"), 3), missing.clone()]
        );
        assert_eq!(
            buckets(Granularity::Year, "UTC"),
            [(text("2026-01-01"), 3), missing]
        );
    });
}

#[test]
fn the_earliest_buckets_are_kept_and_carry_values() {
    on_every_backend(|store| {
        add_records(store);
        let answer = compute(
            store,
            messages("work"),
            Metric::Sum(field("size_bytes")),
            by_time(Granularity::Day, "UTC", 1),
        );
        let only = Group {
            key: text("2026-03-01"),
            count: 2,
            value: Some(Value::Integer(7)),
        };
        assert_eq!((answer.groups, answer.other_count), (vec![only], 3));
    });
}

#[test]
fn times_before_the_epoch_and_far_ahead_have_their_buckets() {
    on_every_backend(|store| {
        add_mail(store, "work");
        let at = |id, time: &str| message_with(id, &format!("\"received_at\":\"{time}\""));
        write(
            store,
            "work",
            vec![
                at("a", "0001-01-01T00:00:00Z"),
                at("b", "1969-12-31T23:59:59.999999Z"),
                at("c", "9999-12-30T00:00:00Z"),
                // The integers of another field share columns with times of other streams, however large they are.
                message_with("d", r#""size_bytes":9223372036854775807"#),
            ],
        );
        for (granularity, zone) in [
            (Granularity::Minute, "America/New_York"),
            (Granularity::Day, "UTC"),
            (Granularity::Year, "Pacific/Apia"),
        ] {
            let grouping = by_time(granularity, zone, 10);
            let answer = compute(store, messages("work"), Metric::Count, grouping);
            assert_eq!(answer.groups.len(), 4, "{answer:?}");
        }
        let days = compute(
            store,
            messages("work"),
            Metric::Count,
            by_time(Granularity::Day, "UTC", 10),
        );
        let keys: Vec<GroupKey> = days.groups.into_iter().map(|group| group.key).collect();
        assert_eq!(
            keys,
            [
                text("0001-01-01"),
                text("1969-12-31"),
                text("9999-12-30"),
                GroupKey::Missing
            ]
        );
    });
}

#[test]
fn sums_of_integers_never_lose_a_digit() {
    on_every_backend(|store| {
        add_mail(store, "work");
        let largest = |id| message_with(id, &format!("\"size_bytes\":{}", i64::MAX));
        write(store, "work", ["a", "b", "c"].map(largest).into());
        write(
            store,
            "work",
            vec![message_with("d", r#""size_bytes":9223372036854775808"#)],
        );
        assert_eq!(
            number(store, Metric::Sum(field("size_bytes"))),
            Value::Integer(3 * i128::from(i64::MAX))
        );
    });
}

#[test]
fn a_sum_of_numbers_is_a_number_however_large_they_are() {
    on_every_backend(|store| {
        add_mail(store, "work");
        let amount = |(id, amount): (&str, &str)| message_with(id, &format!("\"amount\":{amount}"));
        let tenths = (0..10)
            .map(|at| amount((&format!("t{at}"), "0.1")))
            .collect();
        write(store, "work", tenths);
        assert_eq!(
            number(store, Metric::Sum(field("amount"))),
            Value::Number(1.0)
        );
        write(
            store,
            "work",
            vec![
                amount(("a", "1e308")),
                amount(("b", "1e308")),
                amount(("c", "-1e308")),
            ],
        );
        let Value::Number(sum) = number(store, Metric::Sum(field("amount"))) else {
            panic!("a sum of numbers is a number");
        };
        assert!(!sum.is_nan(), "{sum}");
    });
}

#[test]
fn thousands_of_groups_keep_the_largest_and_count_the_rest() {
    on_every_backend(|store| {
        add_mail(store, "work");
        let from = |at: usize, name: &str| {
            message_with(&format!("m{at}"), &format!("\"from_email\":\"{name}\""))
        };
        let many = (0..6_000)
            .map(|at| from(at, &format!("sender{at:04}")))
            .collect();
        write(store, "work", many);
        write(
            store,
            "work",
            (6_000..6_003).map(|at| from(at, "zz-often")).collect(),
        );
        let answer = compute(store, messages("work"), Metric::Count, by("from_email", 2));
        assert_eq!(
            counted(&answer.groups),
            [(text("zz-often"), 3), (text("sender0000"), 1)]
        );
        assert_eq!(answer.other_count, 5_999);
        assert_eq!(
            number(store, Metric::CountDistinct(field("from_email"))),
            Value::Integer(6_001)
        );
        let all = compute(
            store,
            messages("work"),
            Metric::Count,
            by("from_email", usize::MAX),
        );
        assert_eq!((all.groups.len(), all.other_count), (6_001, 0));
    });
}

#[test]
fn odd_texts_are_groups_of_their_own() {
    on_every_backend(|store| {
        add_mail(store, "work");
        let texts = ["", " ", "null", "É", "E\u{301}", "\u{0}", "😀"];
        let batch = texts.iter().enumerate().map(|(at, text)| {
            let json = serde_json::json!({ "id": format!("m{at}"), "from_email": text });
            put("messages", &json.to_string())
        });
        write(store, "work", batch.collect());
        let answer = compute(store, messages("work"), Metric::Count, by("from_email", 20));
        let mut keys: Vec<String> = answer
            .groups
            .iter()
            .map(|group| match &group.key {
                GroupKey::Text(text) => text.clone(),
                other => panic!("{other:?}"),
            })
            .collect();
        keys.sort();
        let mut expected = texts.map(str::to_owned).to_vec();
        expected.sort();
        assert_eq!(keys, expected);
    });
}

#[test]
fn filters_and_lists_apply_to_every_metric() {
    on_every_backend(|store| {
        add_records(store);
        let positive = || {
            let low = Bound::Included(Scalar::Integer(0));
            filtered(
                messages("work"),
                "size_bytes",
                Test::Range(low, Bound::Unbounded),
            )
        };
        let answer = compute(store, positive(), Metric::Sum(field("size_bytes")), None);
        assert_eq!((answer.matched, answer.value), (2, Value::Integer(20)));
        let answer = compute(
            store,
            positive(),
            Metric::CountDistinct(field("from_email")),
            None,
        );
        assert_eq!(answer.value, Value::Integer(1));
        let answer = compute(store, positive(), Metric::Count, by("from_email", 5));
        assert_eq!(
            (counted(&answer.groups), answer.other_count),
            (vec![(text("x"), 2)], 0)
        );
    });
}

#[test]
fn what_a_field_cannot_compute_is_an_error_that_names_it() {
    on_every_backend(|store| {
        add_records(store);
        let refused = [
            (Metric::Sum(field("received_at")), None),
            (Metric::Sum(field("seen")), None),
            (Metric::Min(field("subject")), None),
            (Metric::Max(field("nothing")), None),
            (Metric::CountDistinct(field("labels")), None),
            (Metric::Count, by("labels", 3)),
        ];
        for (metric, grouping) in refused {
            let request = AggregateRequest {
                scope: messages("work"),
                metric: metric.clone(),
                grouping,
            };
            let answer = store.aggregate(&request);
            assert!(
                matches!(answer, Err(StoreError::Unsupported { .. })),
                "{metric:?}"
            );
        }
    });
}

#[test]
fn texts_are_told_apart_by_their_last_character_however_long_they_are() {
    on_every_backend(|store| {
        add_mail(store, "work");
        let long = |end: &str| format!("{}{end}", "é".repeat(40_000));
        let batch =
            ["a", "b"].map(|end| message_with(end, &format!("\"from_email\":\"{}\"", long(end))));
        write(store, "work", batch.into());
        assert_eq!(
            number(store, Metric::CountDistinct(field("from_email"))),
            Value::Integer(2)
        );
        let test = Test::Equals(Scalar::Text(long("a")));
        let scope = filtered(messages("work"), "from_email", test);
        assert_eq!(compute(store, scope, Metric::Count, None).matched, 1);
    });
}
