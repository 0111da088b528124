//! The connector as the owner's selector, beside the connection.

use axum::http::Method;
use serde_json::json;

use crate::fixture::{World, letter};

#[tokio::test]
async fn the_owner_may_name_a_connector_that_has_one_connection() {
    let world = World::empty();
    world.connect("work", "Work mail");
    let lines = letter("m1", "Overdraft notice", "The fee is 42 EUR.", 1);
    let ingest = "/v1/ingest/messages?connector_id=demo_mail";
    let answer = world.write(Method::POST, ingest, lines).await;
    assert_eq!(answer.body["records_accepted"], 1, "{}", answer.body);
    for target in [
        "/v1/streams?connector_id=demo_mail",
        "/v1/streams/messages?connector_id=demo_mail",
        "/v1/streams/messages/records?connector_id=demo_mail&connector_instance_id=work",
        "/v1/streams/messages/records/m1?connector_id=demo_mail",
        "/v1/streams/messages/records/m1/field-window?field=body&connector_id=demo_mail",
        "/v1/streams/messages/aggregate?metric=count&connector_id=demo_mail",
    ] {
        let answer = world.ask(target).await;
        assert_eq!(answer.status, 200, "{target} {}", answer.body);
    }
    // Sources are not chosen in a search: it is over all of them.
    let refused = "
        /v1/streams/messages/records?connector_id=nope                         404 not_found
        /v1/streams?connector_id=No%20key                                      404 not_found
        /v1/streams/messages/records?connector_id=demo_mail&connection_id=home 404 connection_not_found
        /v1/streams/nope/records?connector_id=demo_mail                        404 stream_not_declared
        /v1/search?q=fee&connector_id=demo_mail                                400 invalid_request
    ";
    world.refuses(Method::GET, refused).await;
}

#[tokio::test]
async fn a_connector_with_several_connections_does_not_choose_one() {
    let world = World::new().await;
    let records = "/v1/streams/messages/records?connector_id=demo_mail";
    let answer = world.ask(records).await;
    assert_eq!(answer.failure(), (409, "ambiguous_connection"));
    assert_eq!(answer.body["error"]["available_connection_count"], 2);
    let streams = world.read("/v1/streams?connector_id=demo_mail").await;
    assert_eq!(streams["data"], world.read("/v1/streams").await["data"]);
    let answer = world
        .ask("/v1/streams/nope/records?connector_id=demo_mail")
        .await;
    assert_eq!(answer.failure(), (404, "stream_not_declared"));
}

#[tokio::test]
async fn a_schema_of_one_connector_holds_that_one() {
    // TR-26
    let world = World::new().await;
    let whole = world.read("/v1/schema").await;
    let connectors = whole["connectors"].as_array().unwrap();
    let mail = connectors
        .iter()
        .find(|one| one["connector_key"] == "demo_mail")
        .unwrap();
    let by_id = mail["source"]["id"].as_str().unwrap();
    let by_id = by_id.replace(':', "%3A").replace('/', "%2F");
    for connector in ["demo_mail", &by_id] {
        let told = world
            .read(&format!("/v1/schema?connector_id={connector}"))
            .await;
        assert_eq!(told["connectors"], json!([mail]), "{connector}");
        assert_eq!(told["connector_count"], 1);
    }
    let unknown = world.ask("/v1/schema?connector_id=nope").await;
    assert_eq!(unknown.failure(), (404, "not_found"));
    // A client is told what it may read of it, and of what it may not, nothing, whether it exists or not.
    let (token, _) = world.grant(&["work"], &["messages"], &["id"]);
    let target = "/v1/schema?connector_id=demo_mail&view=compact";
    let told = world.get(&token, target).await;
    assert_eq!(told.body["connectors"][0]["streams"][0]["name"], "messages");
    for connector in ["nope", "https%3A%2F%2Felsewhere.example%2Fdemo_mail"] {
        let target = format!("/v1/schema?connector_id={connector}");
        let told = world.get(&token, &target).await;
        assert_eq!(
            (told.status.as_u16(), &told.body["connectors"]),
            (200, &json!([]))
        );
    }
}

#[tokio::test]
async fn a_clients_connector_is_taken_and_says_nothing() {
    let world = World::new().await;
    let (token, _) = world.grant(&["work"], &["messages"], &["id"]);
    let plain = world.get(&token, "/v1/streams/messages/records").await;
    for key in ["demo_mail", "nope"] {
        let target = format!("/v1/streams/messages/records?connector_id={key}");
        let answer = world.get(&token, &target).await;
        assert_eq!(answer.body["data"], plain.body["data"], "{key}");
    }
}

#[tokio::test]
async fn a_subject_is_accepted_and_ignored() {
    let world = World::new().await;
    for target in [
        "/v1/streams?connection_id=work",
        "/v1/streams/messages/records?connection_id=work",
        "/v1/streams/messages/aggregate?connection_id=work&metric=count",
    ] {
        let (mut with, mut without) = (
            world.read(&format!("{target}&subject_id=somebody")).await,
            world.read(target).await,
        );
        with["links"].take();
        without["links"].take();
        assert_eq!(with, without, "{target}");
    }
    let answer = world.ask("/v1/search?q=x&subject_id=somebody").await;
    assert_eq!(answer.failure(), (400, "invalid_request"));
}
