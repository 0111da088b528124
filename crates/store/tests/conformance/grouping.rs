//! Groups: by value and by calendar bucket, in order, with what they add up to, and nobody left out unsaid.

use contract::scalar::Scalar;
use jiff::tz::TimeZone;
use store::search::{Granularity, GroupKey, Grouping, Metric, Test, Value};

use crate::aggregates::{add_records, by, counted, counts, number};
use crate::fixture::{
    Work, compute, field, filtered, message_with, messages, on_every_backend, on_every_mailbox, put,
};

fn by_time(granularity: Granularity, zone: &str, limit: usize) -> Grouping {
    Grouping::Time {
        field: field("received_at"),
        granularity,
        zone: TimeZone::get(zone).unwrap(),
        limit,
    }
}

#[test]
fn groups_by_value_are_the_largest_first_and_the_rest_is_counted() {
    on_every_backend(|store| {
        add_records(store);
        let all = counts(store, by("from_email", 10));
        assert_eq!(counted(&all.groups), "x=3 y=1 none=1");
        assert_eq!((all.matched, all.other_count), (5, 0));
        assert!(all.groups.iter().all(|group| group.value.is_none()));
        for (name, limit, expected, others) in [
            ("from_email", 1, "x=3", 2),
            ("from_email", 0, "", 5),
            ("seen", 10, "true=2 none=2 false=1", 0),
            ("size_bytes", 2, "10=2 none=2", 1),
        ] {
            let some = counts(store, by(name, limit));
            assert_eq!(counted(&some.groups), expected);
            assert_eq!(some.other_count, others);
        }
    });
}

#[test]
fn time_buckets_follow_the_calendar_of_the_zone() {
    on_every_backend(|store| {
        add_records(store);
        for (granularity, zone, expected) in [
            (Granularity::Day, "UTC", "2026-03-01=2 2026-03-31=1 none=2"),
            (
                Granularity::Day,
                "Europe/Berlin",
                "2026-03-01=1 2026-03-02=1 2026-04-01=1 none=2",
            ),
            (
                Granularity::Hour,
                "Asia/Kathmandu",
                "2026-03-01T15:00=1 2026-03-02T05:00=1 2026-04-01T04:00=1 none=2",
            ),
            (
                Granularity::Minute,
                "UTC",
                "2026-03-01T10:00=1 2026-03-01T23:30=1 2026-03-31T23:00=1 none=2",
            ),
        ] {
            let buckets = counts(store, by_time(granularity, zone, 10));
            assert_eq!(counted(&buckets.groups), expected);
        }
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
            Some(by_time(Granularity::Day, "UTC", 1)),
        );
        assert_eq!(counted(&answer.groups), "2026-03-01=2");
        assert_eq!(answer.groups[0].value, Some(Value::Integer(7)));
        assert_eq!(answer.other_count, 3);
    });
}

#[test]
fn times_before_the_epoch_and_far_ahead_have_their_buckets() {
    on_every_mailbox(|store| {
        let at = |id, time: &str| message_with(id, &format!("\"received_at\":\"{time}\""));
        store.put(vec![
            at("a", "0001-01-01T00:00:00Z"),
            at("b", "1969-12-31T23:59:59.999999Z"),
            at("c", "9999-12-30T00:00:00Z"),
            // The integers of another field share columns with times of other streams, however large they are.
            message_with("d", r#""size_bytes":9223372036854775807"#),
        ]);
        for (granularity, zone) in [
            (Granularity::Minute, "America/New_York"),
            (Granularity::Day, "UTC"),
            (Granularity::Year, "Pacific/Apia"),
        ] {
            let grouping = Some(by_time(granularity, zone, 10));
            let answer = compute(store, messages("work"), Metric::Count, grouping);
            assert_eq!(answer.groups.len(), 4, "{answer:?}");
        }
        let days = counts(store, by_time(Granularity::Day, "UTC", 10));
        assert_eq!(
            counted(&days.groups),
            "0001-01-01=1 1969-12-31=1 9999-12-30=1 none=1"
        );
    });
}

#[test]
fn thousands_of_groups_keep_the_largest_and_count_the_rest() {
    on_every_mailbox(|store| {
        let from = |at: usize, name: &str| {
            message_with(&format!("m{at}"), &format!("\"from_email\":\"{name}\""))
        };
        let many = (0..6_000)
            .map(|at| from(at, &format!("sender{at:04}")))
            .collect();
        store.put(many);
        store.put((6_000..6_003).map(|at| from(at, "zz-often")).collect());
        let answer = counts(store, by("from_email", 2));
        assert_eq!(counted(&answer.groups), "zz-often=3 sender0000=1");
        assert_eq!(answer.other_count, 5_999);
        assert_eq!(
            number(store, Metric::CountDistinct(field("from_email"))),
            Value::Integer(6_001)
        );
        let all = counts(store, by("from_email", usize::MAX));
        assert_eq!((all.groups.len(), all.other_count), (6_001, 0));
    });
}

#[test]
fn odd_texts_are_groups_of_their_own() {
    on_every_mailbox(|store| {
        let texts = ["", " ", "null", "É", "E\u{301}", "\u{0}", "😀"];
        let batch = texts.iter().enumerate().map(|(at, text)| {
            let json = serde_json::json!({ "id": format!("m{at}"), "from_email": text });
            put("messages", &json.to_string())
        });
        store.put(batch.collect());
        let answer = counts(store, by("from_email", 20));
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
fn texts_are_told_apart_by_their_last_character_however_long_they_are() {
    on_every_mailbox(|store| {
        let long = |end: &str| format!("{}{end}", "é".repeat(40_000));
        let batch =
            ["a", "b"].map(|end| message_with(end, &format!("\"from_email\":\"{}\"", long(end))));
        store.put(batch.into());
        assert_eq!(
            number(store, Metric::CountDistinct(field("from_email"))),
            Value::Integer(2)
        );
        let test = Test::Equals(Scalar::Text(long("a")));
        let scope = filtered(messages("work"), "from_email", test);
        assert_eq!(compute(store, scope, Metric::Count, None).matched, 1);
    });
}
