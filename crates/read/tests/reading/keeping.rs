//! Dropping what records were changes nothing that is told of them as they are.

use contract::error::ErrorCode;
use contract::json::RecordBody;
use contract::key::RecordKey;
use contract::query::{ChangesSince, Reading, RecordsQuery};
use serde_json::{Value, json};
use store::keeping::{Keep, KeepRules};
use store::records::ChangeOp;

use crate::fixture::*;

/// Writes a record as it was emitted on a day of the year.
fn emit(world: &World, day: usize, record: &Value) {
    let key = RecordKey::single(record["id"].as_str().unwrap()).unwrap();
    let body = RecordBody::parse(record.to_string()).unwrap();
    let at = format!("2026-{:02}-{:02}T00:00:00Z", day / 28 + 1, day % 28 + 1);
    world.change_at(&at, ("work", "messages"), key, ChangeOp::Upsert(body));
}

/// A record that was replaced often: mostly in what is hidden, sometimes in what is not, and twice in its time.
fn history(world: &World) {
    for day in 0..60 {
        let received = match day {
            0..10 => "2026-01-05T00:00:00Z",
            10..30 => "2026-03-05T00:00:00Z",
            _ => "2026-03-06T00:00:00Z",
        };
        emit(
            world,
            day,
            &json!({"id": "m0", "subject": if day < 40 { "tea" } else { "milk" }, "body": format!("b{}", day / 7),
                "secret": format!("s{day}"), "received_at": received, "seen": day % 3 == 0}),
        );
        if day == 20 {
            world.delete("work", "messages", "m1");
        } else {
            emit(
                world,
                day,
                &json!({"id": "m1", "subject": "tea", "secret": day}),
            );
        }
    }
    emit(world, 1, &json!({"id": "m2", "subject": "once"}));
}

fn readers(world: &World) -> Vec<Reader> {
    let client = |fields: Value, range: Option<Value>| {
        let mut stream = json!({"name": "messages", "instance_ids": ["work"], "fields": fields});
        if let Some(range) = range {
            stream["time_constraint"] = range;
        }
        world.mail_client(json!([stream]))
    };
    vec![
        world.owner(),
        client(json!(["id"]), None),
        client(json!(["id", "subject"]), None),
        client(json!(["id", "subject", "body"]), None),
        client(json!(["id", "seen"]), None),
        client(
            json!(["id"]),
            Some(json!({"field": "received_at", "since": "2026-02-01T00:00:00Z"})),
        ),
        client(
            json!(["id", "body"]),
            Some(json!({"field": "received_at", "until": "2026-03-06T00:00:00Z"})),
        ),
    ]
}

fn changes(since: ChangesSince) -> RecordsQuery {
    let mut query = limited("messages", 100);
    query.reading = Reading::Changes(since);
    query
}

/// What is told of the records as they are: lists, dates, and the feed from its beginning.
fn answer(world: &World) -> Vec<Value> {
    let ask = |reader: &Reader| {
        let list = reader.records(limited("messages", 100)).unwrap();
        let feed = reader.records(changes(ChangesSince::Beginning)).unwrap();
        [list["data"].clone(), feed["data"].clone()]
    };
    readers(world).iter().flat_map(ask).collect()
}

#[test]
fn what_a_grant_sees_of_dates_stays_when_versions_are_dropped() {
    // TR-40: replaced versions go by rule, and what is told of records, dates and changes stays what it was.
    let world = World::mail();
    history(&world);
    let mut bookmarks = Vec::new();
    for reader in readers(&world) {
        let page = reader.records(changes(ChangesSince::Beginning)).unwrap();
        bookmarks.push(page["next_changes_since"].as_str().unwrap().to_owned());
    }
    // After these bookmarks a version comes that is replaced again, so that it may be dropped.
    for day in 61..65 {
        emit(
            &world,
            day,
            &json!({"id": "m1", "subject": "tea", "secret": day}),
        );
    }
    let (before, grown) = (answer(&world), world.store.grown().unwrap());
    assert!(grown.versions > 100);

    let rules = |versions| KeepRules {
        versions,
        ..KeepRules::default()
    };
    let kept = world.store.drop_old(rules(Keep::Newest(1_000))).unwrap();
    assert_eq!(kept.versions, 0);
    // By their dates: all are from before the middle of the year, where the clock stands.
    let month = 31 * 86_400_000_000;
    let dropped = world.store.drop_old(rules(Keep::For(4 * month))).unwrap();
    assert!(dropped.versions > 0);
    let more = world.store.drop_old(rules(Keep::Newest(0))).unwrap();
    let left = world.store.grown().unwrap();
    assert_eq!(
        left.versions,
        grown.versions - dropped.versions - more.versions
    );
    assert!(left.versions < 30, "{left:?}");
    assert_eq!(answer(&world), before);
    assert_eq!(
        world
            .store
            .drop_old(rules(Keep::Newest(0)))
            .unwrap()
            .versions,
        0
    );

    for (reader, bookmark) in readers(&world).iter().zip(bookmarks) {
        let expired = reader.records(changes(ChangesSince::Bookmark(bookmark)));
        assert_eq!(code(expired), ErrorCode::CursorExpired);
        // A new one goes on.
        let page = reader.records(changes(ChangesSince::Beginning)).unwrap();
        let fresh = page["next_changes_since"].as_str().unwrap().to_owned();
        assert!(
            reader
                .records(changes(ChangesSince::Bookmark(fresh)))
                .is_ok()
        );
    }
}
