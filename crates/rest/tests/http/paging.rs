//! Following `links.next` from the first page to the last.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::fixture::{World, letter};

async fn many() -> World {
    let world = World::empty();
    world.connect("work", "Work mail");
    let letters: Vec<String> = (0..57)
        .map(|at| letter(&format!("m{at}"), &format!("fee {at}"), "text", at % 28 + 1))
        .collect();
    world.ingest("work", "messages", &letters.join("\n")).await;
    world
}

async fn follow(world: &World, first: &str) -> (Vec<String>, Value) {
    let mut target = first.to_owned();
    let mut ids = Vec::new();
    loop {
        assert!(ids.len() < 1_000, "{first} has no last page");
        let body = world.read(&target).await;
        let entries = body["data"].as_array().unwrap();
        let id = |one: &Value| {
            one["id"]
                .as_str()
                .or(one["record_key"].as_str())
                .unwrap()
                .to_owned()
        };
        ids.extend(entries.iter().map(id));
        let Some(next) = body["links"]["next"].as_str() else {
            assert_eq!(body["has_more"], false);
            assert!(body.get("next_cursor").is_none());
            return (ids, body);
        };
        assert_eq!(body["has_more"], true);
        assert!(!next.contains("changes_since"), "{next}");
        assert_eq!(next.matches("cursor=").count(), 1);
        next.clone_into(&mut target);
    }
}

#[tokio::test]
async fn every_list_is_read_to_its_end_without_gap_or_repetition() {
    let world = many().await;
    for first in [
        "/v1/streams/messages/records?limit=10",
        "/v1/streams/messages/records?limit=10&order=asc&fields=id&filter[from_email]=bank@example.test",
        "/v1/streams/messages/records?limit=7&sort=-received_at&connection_id=work",
        "/v1/streams/messages/records?limit=10&changes_since=beginning",
        "/v1/search?q=fee&limit=10&streams=messages",
    ] {
        let (ids, _) = follow(&world, first).await;
        assert_eq!(ids.len(), 57, "{first}");
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 57, "{first}");
    }
}

#[tokio::test]
async fn a_bookmark_gives_what_changed_since() {
    let world = many().await;
    let (_, last) = follow(
        &world,
        "/v1/streams/messages/records?limit=20&changes_since=beginning",
    )
    .await;
    let bookmark = last["next_changes_since"].as_str().unwrap().to_owned();
    world
        .ingest("work", "messages", &letter("m3", "changed", "text", 3))
        .await;
    let gone = world
        .write(
            axum::http::Method::DELETE,
            "/v1/streams/messages/records/m5",
            "",
        )
        .await;
    assert_eq!(gone.status, 204);
    let target = format!("/v1/streams/messages/records?changes_since={bookmark}");
    let body = world.read(&target).await;
    let data = body["data"].as_array().unwrap();
    assert_eq!(data.len(), 2);
    assert_eq!(data[0]["id"], "m3");
    assert_eq!(data[1]["deleted"], true);
    assert!(data[1].get("data").is_none());
}

#[tokio::test]
async fn a_cursor_belongs_to_its_request() {
    let world = many().await;
    let body = world.read("/v1/streams/messages/records?limit=2").await;
    let cursor = body["next_cursor"].as_str().unwrap();
    for other in ["order=asc", "filter[id]=m1", "changes_since=beginning"] {
        let target = format!("/v1/streams/messages/records?cursor={cursor}&{other}");
        let answer = world.get(&world.owner, &target).await;
        assert_eq!(answer.failure(), (400, "invalid_cursor"), "{other}");
    }
    let (client, _) = world.grant(&["work"], &["messages"], &[]);
    let target = format!("/v1/streams/messages/records?cursor={cursor}");
    assert_eq!(
        world.get(&client, &target).await.failure(),
        (400, "invalid_cursor")
    );
}
