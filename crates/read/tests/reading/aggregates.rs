//! Figures over what may be seen.

use contract::aggregate::{Granularity, GroupBy, Grouping, Metric};
use serde_json::json;

use crate::fixture::*;

fn world() -> World {
    let world = World::mail();
    for record in [
        r#"{"id":"m1","from_email":"a@x","size_bytes":1,"amount":0.10,"received_at":"2026-03-31T23:30:00Z","secret":"s"}"#,
        r#"{"id":"m2","from_email":"a@x","size_bytes":2,"amount":0.20,"received_at":"2026-03-31T10:00:00Z","secret":"s"}"#,
        r#"{"id":"m3","from_email":"b@x","size_bytes":9007199254740993,"amount":null,"received_at":"2026-01-01T00:00:00Z","secret":"s"}"#,
    ] {
        world.put_text("work", "messages", record);
    }
    world
}

fn reader(world: &World) -> Reader {
    world.mail_client(json!([{"name": "messages", "fields": ["id", "from_email", "size_bytes", "amount", "received_at"],
            "time_constraint": {"field": "received_at", "since": "2026-02-01"}}]))
}

#[test]
fn a_figure_has_the_shape_of_the_contract() {
    let world = world();
    let answer = reader(&world)
        .aggregate(aggregate(Metric::Sum(field("size_bytes")), None))
        .unwrap();
    assert_eq!(
        answer,
        json!({"object": "aggregation", "stream": "messages", "metric": "sum", "field": "size_bytes", "group_by": null,
            "group_by_time": null, "granularity": null, "time_zone": null, "connection_id": "work",
            "filtered_record_count": 2, "approximate": false, "value": 3,
            "meta": {"count": {"kind": "none"}, "warnings": []}})
    );
}

#[test]
fn groups_have_counts_values_and_what_is_left() {
    // Decision 21
    let world = world();
    let by = || GroupBy::Field(field("from_email"));
    let grouping = Grouping::new(by(), Some(1)).unwrap();
    let answer = world
        .owner()
        .aggregate(aggregate(Metric::Sum(field("size_bytes")), Some(grouping)))
        .unwrap();
    assert_eq!(
        answer["groups"],
        json!([{"key": "a@x", "count": 2, "value": 3}])
    );
    assert_eq!(
        (&answer["limit"], &answer["other_count"]),
        (&json!(1), &json!(1))
    );
    assert!(answer.get("value").is_none());
    let grouping = Grouping::new(by(), None).unwrap();
    let answer = reader(&world)
        .aggregate(aggregate(Metric::Count, Some(grouping)))
        .unwrap();
    assert_eq!(answer["groups"], json!([{"key": "a@x", "count": 2}]));
    assert_eq!(answer["other_count"], 0);
}

#[test]
fn time_is_cut_in_the_zone_that_was_named() {
    let world = world();
    let months = |zone: Option<&str>| {
        let by = GroupBy::Time {
            field: field("received_at"),
            granularity: Granularity::Month,
            time_zone: zone.map(str::to_owned),
        };
        let grouping = Grouping::new(by, None).unwrap();
        reader(&world)
            .aggregate(aggregate(Metric::Count, Some(grouping)))
            .unwrap()
    };
    let answer = months(None);
    assert_eq!(answer["groups"], json!([{"key": "2026-03-01", "count": 2}]));
    assert_eq!(
        (
            &answer["group_by_time"],
            &answer["granularity"],
            &answer["time_zone"]
        ),
        (&json!("received_at"), &json!("month"), &json!("UTC"))
    );
    let answer = months(Some("Europe/Berlin"));
    assert_eq!(
        answer["groups"],
        json!([{"key": "2026-03-01", "count": 1}, {"key": "2026-04-01", "count": 1}])
    );
    assert_eq!(answer["time_zone"], "Europe/Berlin");
}
