//! Decision 12: no date tells of a change that is hidden.

use contract::json::RecordBody;
use contract::key::RecordKey;
use contract::query::{ExpandRequest, ListOptions};
use serde_json::{Value, json};
use store::records::ChangeOp;

use crate::fixture::*;

fn write(world: &World, day: &str, name: &str, record: &Value) {
    let key = RecordKey::single(record["id"].as_str().unwrap()).unwrap();
    let op = ChangeOp::Upsert(RecordBody::parse(record.to_string()).unwrap());
    world.change_at(&format!("{day}T00:00:00Z"), ("work", name), key, op);
}

fn message(id: &str, subject: &str, secret: &str) -> Value {
    json!({"id": id, "subject": subject, "received_at": "2026-02-01", "secret": secret})
}

/// Every date a reader is given: of a message in a list, by itself and in a search, of its attachment, and of the stream.
fn dates(reader: &Reader) -> Vec<String> {
    let expand = vec![ExpandRequest {
        name: "attachments".to_owned(),
        limit: None,
    }];
    let options = ListOptions {
        expand,
        ..ListOptions::default()
    };
    let list = reader.list("messages", options).unwrap();
    let record = reader.record(one("a")).unwrap();
    let found = reader.search(words("tea")).unwrap();
    let streams = reader.streams(None).unwrap();
    let mut listed = streams["data"].as_array().unwrap().iter();
    let messages = listed.find(|one| one["name"] == "messages").unwrap();
    let alone = reader.stream("messages").unwrap();
    let all = [
        &list["data"][0]["emitted_at"],
        &record["emitted_at"],
        &found["data"][0]["emitted_at"],
        &list["data"][0]["expanded"]["attachments"]["data"][0]["emitted_at"],
        &messages["last_updated"],
        &messages["freshness"]["captured_at"],
        &alone["freshness"]["captured_at"],
    ];
    all.map(|date| date.as_str().map_or("none", |date| &date[..10]).to_owned())
        .to_vec()
}

fn world() -> World {
    let world = World::mail();
    write(&world, "2026-05-01", "messages", &message("a", "tea", "1"));
    let attachment = json!({"id": "x", "message_id": "a", "name": "n"});
    write(&world, "2026-05-02", "attachments", &attachment);
    world
}

fn client(world: &World) -> Reader {
    world.mail_client(json!([
        {"name": "messages", "fields": ["id", "subject"]},
        {"name": "attachments", "fields": ["id", "message_id"]}
    ]))
}

#[test]
fn a_record_is_dated_by_the_last_change_that_is_seen() {
    let world = world();
    let (client, owner) = (client(&world), world.owner());
    let first = dates(&client);
    let (day, attached) = ("2026-05-01", "2026-05-02");
    assert_eq!(first, [day, day, day, attached, day, day, day]);
    for (at, secret) in ["2", "3", "4"].into_iter().enumerate() {
        let day = format!("2026-05-1{at}");
        write(&world, &day, "messages", &message("a", "tea", secret));
        let attachment = json!({"id": "x", "message_id": "a", "name": secret});
        write(&world, &day, "attachments", &attachment);
        assert_eq!(dates(&client), first);
    }
    assert_eq!(dates(&owner)[..4], ["2026-05-12"; 4]);
    write(&world, "2026-05-20", "messages", &message("a", "tea!", "4"));
    let (day, attached) = ("2026-05-20", "2026-05-02");
    assert_eq!(dates(&client), [day, day, day, attached, day, day, day]);
}

#[test]
fn a_record_that_comes_back_is_dated_then() {
    let world = world();
    let client = client(&world);
    let key = || RecordKey::single("a").unwrap();
    let place = ("work", "messages");
    world.change_at("2026-05-03", place, key(), ChangeOp::Delete);
    write(&world, "2026-05-04", "messages", &message("a", "tea", "2"));
    write(&world, "2026-05-05", "messages", &message("a", "tea", "3"));
    assert_eq!(dates(&client)[0], "2026-05-04");
    world.store.purge().unwrap();
    assert_eq!(dates(&client)[0], "2026-05-04");
}

#[test]
fn a_stream_is_dated_by_the_latest_of_many_records() {
    let world = world();
    let client = client(&world);
    for at in 0..200 {
        write(
            &world,
            &format!("2026-04-{:02}", at % 28 + 1),
            "messages",
            &message(&format!("m{at}"), "coffee", "1"),
        );
    }
    for at in 0..200 {
        write(
            &world,
            &format!("2026-06-{:02}", at % 28 + 1),
            "messages",
            &message(&format!("m{at}"), "coffee", "2"),
        );
    }
    assert_eq!(dates(&client)[4..], ["2026-05-01"; 3]);
    assert_eq!(dates(&world.owner())[4], "2026-06-28");
}

#[test]
fn a_hidden_change_of_an_earlier_date_leaves_the_stream_its_own() {
    let world = world();
    let client = client(&world);
    write(&world, "2026-04-01", "messages", &message("b", "tea", "1"));
    write(&world, "2026-03-01", "messages", &message("a", "tea", "2"));
    assert_eq!(dates(&client)[4..], ["2026-05-01"; 3]);
    assert_eq!(dates(&world.owner())[4..], ["2026-04-01"; 3]);
    // A change that is seen counts with its date, however early.
    write(&world, "2026-02-01", "messages", &message("a", "tea!", "2"));
    assert_eq!(dates(&client)[4..], ["2026-04-01"; 3]);
}
