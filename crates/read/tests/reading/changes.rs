//! The feed of changes: what a reader is told, and what it is not.

use contract::error::ErrorCode;
use contract::json::RecordBody;
use contract::key::RecordKey;
use contract::query::{ChangesSince, Filter, PageLimit, Reading, RecordsQuery};
use serde_json::{Value, json};
use store::records::ChangeOp;

use crate::fixture::*;

fn since(bookmark: Option<&str>) -> RecordsQuery {
    let mut query = every();
    query.reading = Reading::Changes(bookmark.map_or(ChangesSince::Beginning, ChangesSince::parse));
    query
}

fn bookmark(page: &Value) -> String {
    page["next_changes_since"].as_str().unwrap().to_owned()
}

/// Each entry as its id, with a minus where it is a tombstone.
fn entries(page: &Value) -> Vec<String> {
    let data = page["data"].as_array().unwrap().iter();
    data.map(|record| {
        let sign = if record["deleted"] == true { "-" } else { "" };
        format!("{sign}{}", record["id"].as_str().unwrap())
    })
    .collect()
}

fn put(world: &World, id: &str, subject: &str, received_at: &str) {
    let record =
        json!({"id": id, "subject": subject, "received_at": received_at, "secret": subject});
    world.message(&record);
}

const INSIDE: &str = "2026-02-01T00:00:00Z";
const OUTSIDE: &str = "2025-02-01T00:00:00Z";

/// May see subjects of this year.
fn reader(world: &World) -> Reader {
    world.mail_client(json!([{"name": "messages", "fields": ["id", "subject"],
            "time_constraint": {"field": "received_at", "since": "2026-01-01"}}]))
}

#[test]
fn a_feed_begins_with_what_there_is_and_goes_on_with_what_changed() {
    let world = World::mail();
    for id in ["a", "b", "c"] {
        put(&world, id, "one", INSIDE);
    }
    world.delete("work", "messages", "c");
    let owner = world.owner();
    let first = owner.records(since(None)).unwrap();
    assert_eq!(entries(&first), ["a", "b"]);
    let from = bookmark(&first);
    let nothing = owner.records(since(Some(&from))).unwrap();
    assert_eq!(entries(&nothing), Vec::<String>::new());

    put(&world, "a", "two", INSIDE);
    put(&world, "d", "one", INSIDE);
    world.delete("work", "messages", "b");
    let second = owner.records(since(Some(&from))).unwrap();
    assert_eq!(entries(&second), ["a", "d", "-b"]);
    assert_eq!(
        second["data"][2],
        json!({"object": "record", "id": "b", "stream": "messages", "emitted_at": "2026-05-01T00:00:00Z",
            "connection_id": "work", "connector_key": "demo_mail", "display_name": "Work mail",
            "deleted": true, "deleted_at": "2026-05-01T00:00:00Z"})
    );
}

#[test]
fn a_record_that_leaves_the_grant_is_told_like_a_deletion() {
    let world = World::mail();
    put(&world, "gone", "one", INSIDE);
    put(&world, "moved", "one", INSIDE);
    put(&world, "never", "one", OUTSIDE);
    let reader = reader(&world);
    let first = reader.records(since(None)).unwrap();
    assert_eq!(entries(&first), ["gone", "moved"]);
    world.delete("work", "messages", "gone");
    put(&world, "moved", "secret words", OUTSIDE);
    put(&world, "never", "two", OUTSIDE);
    let second = reader.records(since(Some(&bookmark(&first)))).unwrap();
    assert_eq!(entries(&second), ["-gone", "-moved"]);
    let mut tombstones = second["data"].as_array().unwrap().clone();
    for tombstone in &mut tombstones {
        tombstone["id"].take();
    }
    assert_eq!(tombstones[0], tombstones[1]);
    // And back.
    put(&world, "moved", "three", INSIDE);
    world.delete("work", "messages", "never");
    let third = reader.records(since(Some(&bookmark(&second)))).unwrap();
    assert_eq!(entries(&third), ["moved"]);
}

#[test]
fn a_tombstone_is_dated_when_the_record_went_out_of_sight() {
    let world = World::mail();
    let key = || RecordKey::single("a").unwrap();
    let write = |day: &str, received_at: &str| {
        let record = json!({"id": "a", "subject": day, "received_at": received_at}).to_string();
        let op = ChangeOp::Upsert(RecordBody::parse(record).unwrap());
        world.change_at(day, ("work", "messages"), key(), op);
    };
    write("2026-05-01", INSIDE);
    let reader = reader(&world);
    let from = bookmark(&reader.records(since(None)).unwrap());
    let days = ["2026-05-02", "2026-05-03", "2026-05-04", "2026-05-05"];
    let places = [OUTSIDE, INSIDE, OUTSIDE, OUTSIDE];
    for (day, place) in days.into_iter().zip(places) {
        write(day, place);
    }
    world.change_at("2026-05-06", ("work", "messages"), key(), ChangeOp::Delete);
    let page = reader.records(since(Some(&from))).unwrap();
    assert_eq!(entries(&page), ["-a"]);
    assert_eq!(page["data"][0]["deleted_at"], "2026-05-04");
    assert_eq!(page["data"][0]["emitted_at"], "2026-05-04");
}

#[test]
fn a_change_of_something_hidden_is_not_told() {
    let world = World::mail();
    world.message(&json!({"id": "a", "subject": "s", "secret": "1", "received_at": INSIDE}));
    let reader = reader(&world);
    let from = bookmark(&reader.records(since(None)).unwrap());
    world.message(&json!({"id": "a", "subject": "s", "secret": "2", "received_at": INSIDE}));
    assert_eq!(
        entries(&reader.records(since(Some(&from))).unwrap()),
        Vec::<String>::new()
    );
    assert_eq!(entries(&world.owner().records(since(None)).unwrap()), ["a"]);
    // Nor is a change of what was not asked for.
    world.message(&json!({"id": "a", "subject": "t", "secret": "2", "received_at": INSIDE}));
    let mut query = since(Some(&from));
    query.projection = fields(&["id"]);
    assert_eq!(
        entries(&reader.records(query).unwrap()),
        Vec::<String>::new()
    );
    assert_eq!(entries(&reader.records(since(Some(&from))).unwrap()), ["a"]);
}

#[test]
fn conditions_hold_for_both_sides_of_a_change() {
    let world = World::mail();
    put(&world, "a", "tea", INSIDE);
    put(&world, "b", "coffee", INSIDE);
    let owner = world.owner();
    let tea = |bookmark: Option<&str>| {
        let mut query = since(bookmark);
        query.filters = vec![Filter::exact(field("subject"), "tea")];
        query
    };
    let first = owner.records(tea(None)).unwrap();
    assert_eq!(entries(&first), ["a"]);
    put(&world, "a", "coffee", INSIDE);
    put(&world, "b", "tea", INSIDE);
    let second = owner.records(tea(Some(&bookmark(&first)))).unwrap();
    assert_eq!(entries(&second), ["-a", "b"]);
    // The bookmark belongs to the conditions.
    assert_eq!(
        code(owner.records(since(Some(&bookmark(&first))))),
        ErrorCode::InvalidCursor
    );
}

#[test]
fn a_page_never_promises_more_for_changes_that_are_hidden() {
    let world = World::mail();
    put(&world, "a", "one", INSIDE);
    for at in 0..600 {
        put(&world, &format!("hidden{at}"), "one", OUTSIDE);
    }
    put(&world, "b", "one", INSIDE);
    for at in 0..300 {
        put(&world, &format!("more{at}"), "one", OUTSIDE);
    }
    let reader = reader(&world);
    let mut query = since(None);
    query.limit = PageLimit::new(1);
    assert_eq!(reader.keys(query.clone()), ["a", "b"]);
    query.limit = PageLimit::new(2);
    let page = reader.records(query).unwrap();
    assert_eq!(page["has_more"], false);
    assert_eq!(entries(&page), ["a", "b"]);
}

#[test]
fn a_bookmark_opens_only_for_its_grant_and_expires_with_a_purge() {
    let world = World::mail();
    put(&world, "a", "one", INSIDE);
    let reader = reader(&world);
    let from = bookmark(&reader.records(since(None)).unwrap());
    assert_eq!(
        refusal(world.owner().records(since(Some(&from)))),
        (ErrorCode::InvalidCursor, Some("changes_since".to_owned()))
    );
    let error = reader.records(since(Some("nonsense"))).unwrap_err();
    assert!(error.message.contains("beginning"), "{error}");
    world.delete("work", "messages", "a");
    world.store.purge().unwrap();
    assert_eq!(
        code(reader.records(since(Some(&from)))),
        ErrorCode::CursorExpired
    );
    let again = reader.records(since(None)).unwrap();
    assert_eq!(entries(&again), Vec::<String>::new());
}

/// Decision 16: what happens to a record out of sight does not move its tombstone.
#[test]
fn a_record_keeps_its_place_whatever_happens_to_it_out_of_sight() {
    let world = World::mail();
    for id in ["a", "b", "c"] {
        put(&world, id, "one", INSIDE);
    }
    let reader = reader(&world);
    let from = bookmark(&reader.records(since(None)).unwrap());
    let answer = || {
        let mut query = since(Some(&from));
        let whole = reader.records(query.clone()).unwrap();
        query.limit = PageLimit::new(1);
        assert_eq!(reader.keys(query), ids(&whole));
        entries(&whole)
    };
    put(&world, "a", "two", OUTSIDE);
    put(&world, "b", "two", INSIDE);
    world.delete("work", "messages", "c");
    assert_eq!(answer(), ["-a", "b", "-c"]);
    put(&world, "a", "three", OUTSIDE);
    let hidden = json!({"id": "b", "subject": "two", "received_at": INSIDE, "secret": "other"});
    world.message(&hidden);
    put(&world, "c", "three", OUTSIDE);
    assert_eq!(answer(), ["-a", "b", "-c"]);
    world.delete("work", "messages", "a");
    assert_eq!(answer(), ["-a", "b", "-c"]);
    // What is seen again is told where it came back.
    put(&world, "a", "four", INSIDE);
    assert_eq!(answer(), ["b", "-c", "a"]);
}

/// Many changes of what is hidden do not hide the one that is not.
#[test]
fn a_change_is_told_however_many_hidden_ones_follow() {
    let world = World::mail();
    for id in ["a", "b"] {
        put(&world, id, "one", INSIDE);
    }
    let reader = reader(&world);
    let from = bookmark(&reader.records(since(None)).unwrap());
    put(&world, "a", "two", INSIDE);
    for at in 0..400 {
        for (id, subject) in [("a", "two"), ("b", "one")] {
            let record = json!({"id": id, "subject": subject, "received_at": INSIDE, "secret": at.to_string()});
            world.message(&record);
        }
    }
    let page = reader.records(since(Some(&from))).unwrap();
    assert_eq!(entries(&page), ["a"]);
    assert_eq!(page["has_more"], false);
    assert_eq!(entries(&reader.records(since(None)).unwrap()), ["b", "a"]);
}
