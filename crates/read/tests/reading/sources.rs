//! Which connection a read means, what several grants give together, and what the owner is told of it.

use std::sync::Arc;

use contract::aggregate::Metric;
use contract::error::ErrorCode;
use contract::id::GrantId;
use contract::query::{ChangesSince, Reading};
use contract::window::WindowSelector;
use serde_json::{Value, json};

use crate::fixture::*;
use crate::shut::Shut;

fn world() -> World {
    let world = World::mail();
    world.connect(CHAT, "chat", "Team chat");
    world.message(&json!({"id": "m1", "subject": "s", "body": "tea"}));
    world.put("chat", "messages", &json!({"id": "c1", "text": "tea"}));
    world
}

fn package(world: &World) -> Reader {
    world.package(&[
        grant(
            "grt_A",
            "demo_mail",
            json!([{"name": "messages", "instance_ids": ["work"], "fields": ["id", "body"]}]),
        ),
        grant(
            "grt_B",
            "demo_chat",
            json!([{"name": "messages", "instance_ids": ["chat"], "fields": ["id", "text"]}]),
        ),
    ])
}

/// Every read that means one connection, without its name.
fn reads(reader: &Reader) -> [Answered; 6] {
    let mut changes = every();
    changes.reading = Reading::Changes(ChangesSince::Beginning);
    // The record is only in one of them: that does not matter.
    [
        reader.records(every()),
        reader.records(changes),
        reader.record(one("m1")),
        reader.window(window("m1", "body", WindowSelector::default())),
        reader.aggregate(aggregate(Metric::Count, None)),
        reader.stream("messages"),
    ]
}

// AM-02
#[test]
fn which_connection_is_meant_is_asked_before_anything_is_read() {
    let mut world = world();
    world.store = Arc::new(Shut(world.store.clone()));
    for answer in reads(&package(&world)) {
        assert_eq!(answer.unwrap_err().code, ErrorCode::AmbiguousConnection);
    }
    assert!(world.notes.0.lock().unwrap().is_empty(), "nothing was read");
}

#[test]
fn a_stream_of_several_connections_needs_one_named() {
    // AM-01, AM-03, AM-04
    let world = world();
    let reader = package(&world);
    for answer in reads(&reader) {
        let error = serde_json::to_value(answer.unwrap_err()).unwrap();
        assert_eq!(error["code"], "ambiguous_connection");
        assert_eq!(error["retry_with"], "connection_id");
        assert_eq!(error["available_connection_count"], 2);
        assert_eq!(
            error["available_connections"],
            json!([
                {"grant_id": "grt_A", "connector_key": "demo_mail", "connection_id": "work", "display_name": "Work mail"},
                {"grant_id": "grt_B", "connector_key": "demo_chat", "connection_id": "chat", "display_name": "Team chat"}
            ])
        );
    }
    for (connection, id) in [("work", "m1"), ("chat", "c1")] {
        let mut query = one(id);
        query.connection_id = Some(connection.to_owned());
        assert_eq!(reader.record(query).unwrap()["connection_id"], connection);
    }
    let error = world.owner().records(every()).unwrap_err();
    assert_eq!(error.code, ErrorCode::AmbiguousConnection);
    assert_eq!(error.available_connections()[0].grant_id, None);
}

#[test]
fn a_search_of_a_stream_asks_only_the_sources_that_have_it() {
    // UP-11
    let world = world();
    let event = json!({"day": "2026-03-01", "number": "1", "note": "tea"});
    world.put("work", "events", &event);
    let reader = world.package(&[
        grant(
            "grt_A",
            "demo_mail",
            json!([{"name": "messages", "instance_ids": ["work"], "fields": ["body"]},
                {"name": "events", "instance_ids": ["work"], "fields": ["note"]}]),
        ),
        grant(
            "grt_B",
            "demo_chat",
            json!([{"name": "messages", "instance_ids": ["chat"], "fields": ["text"]}]),
        ),
    ]);
    let ask = |names: &[&str]| {
        let mut query = words("tea");
        query.streams = names.iter().map(|name| stream(name)).collect();
        reader.search(query)
    };
    // What is asked is what is noted as disclosed: a source that was not asked stands in no entry.
    for (names, hits, asked) in [
        (&["events"][..], 1, &["grt_A"][..]),
        (&["events", "messages"], 3, &["grt_A", "grt_B"]),
    ] {
        let page = ask(names).unwrap();
        assert_eq!(page["data"].as_array().unwrap().len(), hits, "{names:?}");
        assert_eq!(
            page["meta"]["recall"]["sources_searched_count"],
            asked.len()
        );
        assert_eq!(page["meta"]["warnings"], json!([]));
        let notes = world.notes.0.lock().unwrap();
        let ids = notes.last().unwrap().grant_ids.iter();
        let answer: Vec<&str> = ids.map(GrantId::as_str).collect();
        assert_eq!(answer, asked, "{names:?}");
    }
    assert_eq!(code(ask(&["receipts"])), ErrorCode::GrantStreamNotAllowed);
}

#[test]
fn one_carrying_connection_needs_no_name() {
    let world = world();
    let reader = world.client(
        "demo_chat",
        json!([{"name": "messages", "instance_ids": ["chat"], "fields": ["text"]}]),
    );
    let page = reader.records(every()).unwrap();
    assert_eq!(ids(&page), ["c1"]);
}

#[test]
fn a_grant_of_another_source_or_a_lost_connection_gives_nothing() {
    let world = world();
    // The connection exists, but belongs to another connector than the grant's source.
    let crossed = world.client(
        "demo_chat",
        json!([{"name": "messages", "instance_ids": ["work"], "fields": ["id", "body"]}]),
    );
    let answer = crossed.records(every());
    assert_eq!(code(answer), ErrorCode::GrantStreamNotAllowed);
    assert_eq!(crossed.streams(None).unwrap()["data"], json!([]));
    let lost = world
        .mail_client(json!([{"name": "messages", "instance_ids": ["gone"], "fields": ["id"]}]));
    assert_eq!(
        code(lost.records(every())),
        ErrorCode::GrantStreamNotAllowed
    );
    assert_eq!(lost.find("tea"), Vec::<Value>::new());
}

#[test]
fn a_time_constraint_that_cannot_be_evaluated_shows_nothing() {
    let world = World::mail();
    world.message(&json!({"id": "m1", "body": "tea", "from_email": "2026-03-01", "received_at": "2026-03-01"}));
    let reader = |constraint: Value| {
        world.mail_client(
            json!([{"name": "messages", "fields": ["id", "body"], "time_constraint": constraint}]),
        )
    };
    for field in ["from_email", "size_bytes", "nonsense"] {
        let reader = reader(json!({"field": field, "since": "2020-01-01"}));
        assert_eq!(
            reader.keys(limited("messages", 5)),
            Vec::<String>::new(),
            "{field}"
        );
        assert_eq!(reader.find("tea").len(), 0);
        assert_eq!(reader.streams(None).unwrap()["data"][0]["record_count"], 0);
        assert_eq!(
            reader.aggregate(aggregate(Metric::Count, None)).unwrap()["value"],
            0
        );
    }
    // `since` is inside, `until` is not.
    assert_eq!(
        reader(json!({"field": "received_at", "since": "2026-03-01"}))
            .find("tea")
            .len(),
        1
    );
    assert_eq!(
        reader(json!({"field": "received_at", "until": "2026-03-01"}))
            .find("tea")
            .len(),
        0
    );
}

#[test]
fn each_successful_call_of_a_client_is_noted() {
    // Decision 33
    let world = world();
    let reader = world.mail_client(json!([{"name": "messages", "fields": ["subject", "body"]}]));
    reader.find("tea");
    reader.record(one("m1")).unwrap();
    reader.record(one("nope")).unwrap_err();
    reader.streams(None).unwrap();
    world.owner().find("tea");
    let notes = world.notes.0.lock().unwrap();
    let answer: Vec<[String; 3]> = notes
        .iter()
        .map(|note| {
            [
                note.operation.clone(),
                note.records.join(" "),
                note.fields.join(" "),
            ]
        })
        .collect();
    assert_eq!(
        answer,
        [
            ["search", "work/messages:m1", "body subject"],
            ["record", "work/messages:m1", "body subject"],
            ["streams", "", ""]
        ]
    );
    assert!(
        notes
            .iter()
            .all(|note| note.grant_ids.len() == 1 && note.client_id.as_str() == "longview")
    );
}
