//! What the log learns of requests: everything but whose data they were about.

use axum::body::Body;
use axum::http::{Method, Request};

use crate::fixture::World;
use crate::listening;

#[tokio::test]
async fn requests_are_logged_by_operation_and_never_by_content() {
    let world = World::new().await;
    let (client, _) = world.grant(&["work"], &["messages"], &[]);
    let ask = |target: &str, id: &str| {
        Request::get(target)
            .header("authorization", format!("Bearer {client}"))
            .header("request-id", id)
            .body(Body::empty())
            .unwrap()
    };
    for (at, target) in [
        "/v1/search?q=overdraft",
        "/v1/streams/messages/records/m1?fields=subject",
        "/v1/streams/messages/records?filter[secret]=hunter2",
        "/v1/streams/secretstream/records",
        "/v1/nowhere/overdraft",
        "/v1/search?q=overdraft&cursor=nonsense",
    ]
    .into_iter()
    .enumerate()
    {
        world.send(ask(target, &format!("logged-{at}"))).await;
    }
    world
        .write(
            Method::POST,
            "/v1/ingest/messages?connection_id=work",
            "{\"key\":\"hunter2\"",
        )
        .await;
    let lines = listening::lines();
    let mine: Vec<&String> = lines
        .iter()
        .filter(|line| line.contains("logged-"))
        .collect();
    assert_eq!(mine.len(), 6);
    assert!(
        mine.iter()
            .any(|line| line.contains("operation=\"search\"") && line.contains("status=200"))
    );
    assert!(mine.iter().any(|line| line.contains("token=\"client\"")));
    for secret in [
        "pdpp_at_",
        "pdpp_owner_",
        "hunter2",
        "verdraft",
        "secretstream",
        "m1",
    ] {
        let told: Vec<&String> = lines.iter().filter(|line| line.contains(secret)).collect();
        assert!(told.is_empty(), "{secret}: {told:?}");
    }
}
