//! Bytes in and out.

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::json;

use crate::fixture::World;

const CONTENT: &str = "0123456789";

async fn stored(mime: &str) -> (World, String) {
    let world = World::new().await;
    let target =
        format!("/v1/blobs?connection_id=work&stream=attachments&record_key=a1&mime_type={mime}");
    let answer = world.write(Method::POST, &target, CONTENT).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.body["size_bytes"], 10);
    let id = answer.body["blob_id"].as_str().unwrap().to_owned();
    assert_eq!(
        id,
        format!("blob_sha256_{}", answer.body["sha256"].as_str().unwrap())
    );
    (world, id)
}

async fn attach(world: &World, id: &str) {
    let line = json!({"key": "a1", "data": {
        "id": "a1", "message_id": "m1", "name": "bill.txt",
        "blob_ref": {"blob_id": id, "mime_type": "text/plain"},
    }});
    world.ingest("work", "attachments", &line.to_string()).await;
}

#[tokio::test]
async fn a_blob_is_there_once_a_record_points_at_it() {
    let (world, id) = stored("text/plain").await;
    let target = format!("/v1/blobs/{id}");
    assert_eq!(world.ask(&target).await.failure(), (404, "blob_not_found"));
    attach(&world, &id).await;
    let answer = world.ask(&target).await;
    assert_eq!(answer.bytes, CONTENT.as_bytes());
    for (name, value) in [
        ("content-type", "text/plain"),
        ("content-length", "10"),
        ("accept-ranges", "bytes"),
        ("cache-control", "private, no-store"),
        ("x-content-type-options", "nosniff"),
        ("content-disposition", "attachment"),
    ] {
        assert_eq!(answer.header(name), value, "{name}");
    }
    let record = world
        .read("/v1/streams/attachments/records/a1?connection_id=work")
        .await;
    let fetch = record["data"]["blob_ref"]["fetch_url"].as_str().unwrap();
    assert_eq!(fetch, target);
    let answer = world
        .ask(&format!("{target}?connector_instance_id=work"))
        .await;
    assert_eq!(
        answer.header("pdpp-warning"),
        "deprecated_alias_used: connector_instance_id"
    );
}

#[tokio::test]
async fn a_part_is_a_part() {
    let (world, id) = stored("image/png").await;
    attach(&world, &id).await;
    let part = async |method: Method, range: &str| {
        let request = Request::builder()
            .method(method)
            .uri(format!("/v1/blobs/{id}"))
            .header("authorization", format!("Bearer {}", world.owner))
            .header("accept-encoding", "gzip")
            .header("range", range);
        world.send(request.body(Body::empty()).unwrap()).await
    };
    for (range, status, content, told) in [
        ("bytes=2-4", 206, "234", "bytes 2-4/10"),
        ("bytes=8-", 206, "89", "bytes 8-9/10"),
        ("bytes=-3", 206, "789", "bytes 7-9/10"),
        ("bytes=0-1,3-4", 200, CONTENT, ""),
    ] {
        let answer = part(Method::GET, range).await;
        assert_eq!(answer.status, status, "{range}");
        assert_eq!(answer.bytes, content.as_bytes(), "{range}");
        assert_eq!(answer.header("content-range"), told);
        assert_eq!(answer.header("content-length"), content.len().to_string());
        assert_eq!(answer.header("content-disposition"), "");
    }
    let answer = part(Method::GET, "bytes=10-").await;
    assert_eq!(answer.failure(), (416, "invalid_request"));
    assert_eq!(answer.header("content-range"), "bytes */10");
    let head = part(Method::HEAD, "bytes=2-4").await;
    assert_eq!((head.status.as_u16(), head.bytes.len()), (206, 0));
    assert_eq!(head.header("content-length"), "3");
}

#[tokio::test]
async fn who_may_not_see_the_reference_may_not_see_the_bytes() {
    let (world, id) = stored("text/plain").await;
    attach(&world, &id).await;
    let target = format!("/v1/blobs/{id}");
    let (without, _) = world.grant(&["work"], &["attachments"], &["id", "name"]);
    assert_eq!(
        world.get(&without, &target).await.failure(),
        (404, "blob_not_found")
    );
    let (with, _) = world.grant(&["work"], &["attachments"], &["blob_ref"]);
    assert_eq!(world.get(&with, &target).await.bytes, CONTENT.as_bytes());
    let elsewhere = format!("{target}?connection_id=home");
    assert_eq!(
        world.get(&with, &elsewhere).await.failure(),
        (404, "connection_not_found")
    );
}
