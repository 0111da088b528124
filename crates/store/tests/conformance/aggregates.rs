//! Aggregates: exact numbers over the visible records, whole or in groups.

use contract::scalar::Scalar;
use store::search::{
    AggregateAnswer, AggregateRequest, Group, GroupKey, Grouping, Metric, Test, Value,
};
use store::{Store, StoreError};

use crate::fixture::{
    Work, add_mail, compute, delete, field, filtered, message_with, messages, on_every_backend,
    on_every_mailbox,
};

pub(crate) fn counts(store: &dyn Store, grouping: Grouping) -> AggregateAnswer {
    compute(store, messages("work"), Metric::Count, Some(grouping))
}

pub(crate) fn number(store: &dyn Store, metric: Metric) -> Value {
    compute(store, messages("work"), metric, None).value
}

pub(crate) fn by(name: &str, limit: usize) -> Grouping {
    let field = field(name);
    Grouping::Values { field, limit }
}

pub(crate) fn counted(groups: &[Group]) -> String {
    let group = |group: &Group| {
        let key = match &group.key {
            GroupKey::Missing => "none".to_owned(),
            GroupKey::Text(text) => text.clone(),
            GroupKey::Integer(number) => number.to_string(),
            GroupKey::Number(number) => number.to_string(),
            GroupKey::Boolean(truth) => truth.to_string(),
        };
        format!("{key}={}", group.count)
    };
    groups.iter().map(group).collect::<Vec<_>>().join(" ")
}

/// Six records in two segments, of which one was replaced and one deleted.
pub(crate) fn add_records(store: &dyn Store) {
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
    store.put(rows.map(|(id, members)| message_with(id, members)).into());
    store.settle_index().unwrap();
    let rows = [
        (
            "d",
            r#""from_email":"x","seen":true,"size_bytes":10.0,"amount":null,"received_at":"2026-04-01T01:00:00+02:00""#,
        ),
        ("e", r#""from_email":"x","received_at":null"#),
        ("f", r#""subject":"nothing else""#),
    ];
    store.put(rows.map(|(id, members)| message_with(id, members)).into());
    store.put(vec![delete("messages", "c")]);
}

#[test]
fn the_extremes_are_given_as_the_records_have_them() {
    on_every_backend(|store| {
        add_records(store);
        assert_eq!(number(store, Metric::Count), Value::Integer(5));
        for (metric, expected) in [
            (Metric::Min(field("size_bytes")), "-3"),
            (Metric::Max(field("amount")), "1.5"),
            // Though another spelling of the time.
            (
                Metric::Max(field("received_at")),
                "\"2026-04-01T01:00:00+02:00\"",
            ),
            (
                Metric::Min(field("received_at")),
                "\"2026-03-01T10:00:00Z\"",
            ),
        ] {
            assert_eq!(number(store, metric), Value::Json(expected.to_owned()));
        }
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
        let grouped = compute(store, none(), Metric::Count, Some(by("from_email", 5)));
        assert_eq!(
            (grouped.matched, grouped.groups.len(), grouped.other_count),
            (0, 0, 0)
        );
    });
}

#[test]
fn sums_of_integers_never_lose_a_digit() {
    on_every_mailbox(|store| {
        let largest = |id| message_with(id, &format!("\"size_bytes\":{}", i64::MAX));
        store.put(["a", "b", "c"].map(largest).into());
        store.put(vec![message_with(
            "d",
            r#""size_bytes":9223372036854775808"#,
        )]);
        assert_eq!(
            number(store, Metric::Sum(field("size_bytes"))),
            Value::Integer(3 * i128::from(i64::MAX))
        );
    });
}

#[test]
fn a_sum_of_numbers_is_a_number_however_large_they_are() {
    on_every_mailbox(|store| {
        let amount = |(id, amount): (&str, &str)| message_with(id, &format!("\"amount\":{amount}"));
        let tenths = (0..10)
            .map(|at| amount((&format!("t{at}"), "0.1")))
            .collect();
        store.put(tenths);
        assert_eq!(
            number(store, Metric::Sum(field("amount"))),
            Value::Number(1.0)
        );
        store.put(vec![
            amount(("a", "1e308")),
            amount(("b", "1e308")),
            amount(("c", "-1e308")),
        ]);
        let Value::Number(sum) = number(store, Metric::Sum(field("amount"))) else {
            panic!("a sum of numbers is a number");
        };
        assert!(!sum.is_nan(), "{sum}");
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
            (Metric::Count, Some(by("labels", 3))),
            (
                Metric::CountDistinct(field("from_email")),
                Some(by("seen", 3)),
            ),
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
