//! Aggregates against plain arithmetic over the records, however they lie in segments.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use contract::json::RecordBody;
use contract::scalar::{FieldKind, Scalar};
use jiff::tz::TimeZone;
use proptest::prelude::*;
use proptest::sample::select;
use store::Store;
use store::search::{
    AggregateRequest, Granularity, GroupKey, Grouping, Metric, Scope, Test, Value,
};

use crate::fixture::{
    Work, add_mail, all, cases, delete, field, filtered, message_with, messages, on_every_mailbox,
    stream, write,
};

/// What happens to one key: new content, or a deletion.
type Event = (u8, Option<String>);

fn members() -> impl Strategy<Value = String> {
    let member = |name: &'static str, values: &'static [&'static str]| {
        let present = select(values).prop_map(move |raw| format!("\"{name}\":{raw},"));
        prop_oneof![1 => Just(String::new()), 4 => present]
    };
    (
        member("from_email", &["\"a\"", "\"b\"", "\"\"", "\"\\u0061\""]),
        member("seen", &["true", "false"]),
        member("size_bytes", &["-7", "0", "3", "3.0", "4000000000"]),
        member("amount", &["-0.25", "0.5", "5e-1", "null", "1024"]),
        member(
            "received_at",
            &[
                "null",
                "\"x\"",
                "\"2026-03-29T00:30:00Z\"",
                "\"2026-03-29T01:30:00Z\"",
                "\"2026-01-01\"",
            ],
        ),
    )
        .prop_map(|(a, b, c, d, e)| format!("{a}{b}{c}{d}{e}\"labels\":[]"))
}

fn history() -> impl Strategy<Value = Vec<Vec<Event>>> {
    let event = (0_u8..25, prop::option::weighted(0.8, members()));
    prop::collection::vec(prop::collection::vec(event, 1..30), 1..5)
}

/// The value of a field of a message, as its declaration reads it.
pub(crate) fn scalar(body: &RecordBody, name: &str) -> Option<Scalar> {
    let kind = match name {
        "seen" => FieldKind::Boolean,
        "size_bytes" => FieldKind::Integer,
        "amount" => FieldKind::Number,
        "received_at" => FieldKind::DateTime,
        _ => FieldKind::Text,
    };
    Scalar::from_json(kind, body.get(name)?)
}

/// What a group is called, in an order that tests can sort by.
fn group_of(body: &RecordBody, grouping: &Grouping) -> GroupKey {
    match grouping {
        Grouping::Values { field, .. } => match scalar(body, field.as_str()) {
            None | Some(Scalar::Instant(_)) => GroupKey::Missing,
            Some(Scalar::Boolean(value)) => GroupKey::Boolean(value),
            Some(Scalar::Integer(value)) => GroupKey::Integer(value),
            Some(Scalar::Number(value)) => GroupKey::Number(value),
            Some(Scalar::Text(value)) => GroupKey::Text(value),
        },
        Grouping::Time { field, zone, .. } => match scalar(body, field.as_str()) {
            Some(Scalar::Instant(at)) => {
                let moment = jiff::Timestamp::from_microsecond(at.0).unwrap();
                let local = moment.to_zoned(zone.clone());
                GroupKey::Text(local.strftime("%Y-%m-%dT%H:00").to_string())
            }
            _ => GroupKey::Missing,
        },
    }
}

/// The metric over some records, computed plainly.
fn value_of(bodies: &[&RecordBody], metric: &Metric) -> Value {
    match metric {
        Metric::Count => Value::Integer(bodies.len() as i128),
        Metric::CountDistinct(name) => {
            let values = bodies.iter().filter_map(|body| scalar(body, name.as_str()));
            let distinct: BTreeSet<String> = values.map(|value| format!("{value:?}")).collect();
            Value::Integer(distinct.len() as i128)
        }
        Metric::Sum(name) => {
            let values = bodies.iter().filter_map(|body| scalar(body, name.as_str()));
            if name.as_str() == "amount" {
                let amount = |value| {
                    if let Scalar::Number(value) = value {
                        value
                    } else {
                        0.0
                    }
                };
                // The amounts are such that no sum is rounded.
                return Value::Number(values.map(amount).sum());
            }
            let size = |value| {
                if let Scalar::Integer(value) = value {
                    value
                } else {
                    0
                }
            };
            Value::Integer(values.map(size).map(i128::from).sum())
        }
        Metric::Min(name) | Metric::Max(name) => {
            let largest = matches!(metric, Metric::Max(_));
            let values = bodies.iter().filter_map(|body| scalar(body, name.as_str()));
            let best = values.reduce(|one, other| {
                let greater = one.compare(&other).unwrap().is_gt();
                if greater == largest { one } else { other }
            });
            best.map_or(Value::None, |best| Value::Json(format!("{best:?}")))
        }
    }
}

/// Extremes are compared as values: which of several equal spellings is given is not a rule.
fn comparable(value: &Value, metric: &Metric) -> Value {
    match (value, metric) {
        (Value::Json(raw), Metric::Min(name) | Metric::Max(name)) => {
            let body = RecordBody::parse(format!("{{\"{name}\":{raw}}}")).unwrap();
            Value::Json(format!("{:?}", scalar(&body, name.as_str()).unwrap()))
        }
        _ => value.clone(),
    }
}

fn metrics() -> Vec<Metric> {
    vec![
        Metric::Count,
        Metric::Sum(field("size_bytes")),
        Metric::Sum(field("amount")),
        Metric::Min(field("size_bytes")),
        Metric::Max(field("size_bytes")),
        Metric::Min(field("amount")),
        Metric::Max(field("amount")),
        Metric::Min(field("received_at")),
        Metric::Max(field("received_at")),
        Metric::CountDistinct(field("from_email")),
        Metric::CountDistinct(field("size_bytes")),
    ]
}

fn groupings() -> Vec<Option<Grouping>> {
    let values = |name| {
        let field = field(name);
        Some(Grouping::Values { field, limit: 100 })
    };
    let hours = Grouping::Time {
        field: field("received_at"),
        granularity: Granularity::Hour,
        zone: TimeZone::get("Europe/Berlin").unwrap(),
        limit: 100,
    };
    vec![
        None,
        values("from_email"),
        values("seen"),
        values("size_bytes"),
        Some(hours),
    ]
}

fn check(store: &dyn Store, scope: &Scope, bodies: &[&RecordBody]) {
    for metric in metrics() {
        for grouping in groupings() {
            if grouping.is_some() && matches!(metric, Metric::CountDistinct(_)) {
                continue;
            }
            let request = AggregateRequest {
                scope: scope.clone(),
                metric: metric.clone(),
                grouping: grouping.clone(),
            };
            let answer = store.aggregate(&request).unwrap();
            assert_eq!(answer.matched, bodies.len() as u64, "{request:?}");
            let Some(grouping) = grouping else {
                let value = comparable(&answer.value, &metric);
                assert_eq!(value, value_of(bodies, &metric), "{request:?}");
                continue;
            };
            let mut expected: BTreeMap<String, Vec<&RecordBody>> = BTreeMap::new();
            for body in bodies {
                let key = format!("{:?}", group_of(body, &grouping));
                expected.entry(key).or_default().push(body);
            }
            assert_eq!(answer.groups.len(), expected.len(), "{request:?}");
            assert_eq!(answer.other_count, 0);
            for group in &answer.groups {
                let members = &expected[&format!("{:?}", group.key)];
                assert_eq!(group.count, members.len() as u64, "{request:?}");
                let value = group.value.as_ref().map(|value| comparable(value, &metric));
                let wanted = (metric != Metric::Count).then(|| value_of(members, &metric));
                assert_eq!(value, wanted, "{request:?} {:?}", group.key);
            }
        }
    }
}

#[test]
fn aggregates_are_what_plain_arithmetic_over_the_records_gives() {
    proptest!(cases(12), |(history in history())| {
        on_every_mailbox(|store| {
            add_mail(store, "home");
            for batch in &history {
                let changes = batch.iter().map(|(key, members)| match members {
                    Some(members) => message_with(&format!("k{key}"), members),
                    None => delete("messages", &format!("k{key}")),
                });
                store.put(changes.collect());
                // A segment that holds one stream alone is read in another way.
                if batch.len().is_multiple_of(2) {
                    write(store, "home", vec![message_with("x", &format!("\"size_bytes\":{}", batch.len()))]);
                }
                store.settle_index().unwrap();
            }
            let records = all(store, &stream("work", "messages"));
            let bodies: Vec<RecordBody> = records
                .into_iter()
                .map(|record| RecordBody::parse(record.body).unwrap())
                .collect();
            check(store, &messages("work"), &bodies.iter().collect::<Vec<_>>());
            let seen = Test::Equals(Scalar::Boolean(true));
            let seen_only: Vec<&RecordBody> = bodies
                .iter()
                .filter(|body| scalar(body, "seen") == Some(Scalar::Boolean(true)))
                .collect();
            check(store, &filtered(messages("work"), "seen", seen.clone()), &seen_only);
            let mut ruled = messages("work");
            ruled.rules.except = filtered(messages("work"), "seen", seen).filters;
            let mut unseen = bodies.iter().collect::<Vec<_>>();
            unseen.retain(|body| scalar(body, "seen") != Some(Scalar::Boolean(true)));
            check(store, &ruled, &unseen);
            let small = Test::Range(Bound::Unbounded, Bound::Included(Scalar::Integer(3)));
            unseen.retain(|body| matches!(scalar(body, "size_bytes"), Some(Scalar::Integer(size)) if size <= 3));
            check(store, &filtered(ruled, "size_bytes", small), &unseen);
        });
    });
}
