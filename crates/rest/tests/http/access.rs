//! Who may ask, and what the others are told.

use axum::body::Body;
use axum::http::{Method, Request};

use crate::fixture::{NOON, World, send, the_document};

const METADATA: &str = "http://127.0.0.1:7420/.well-known/oauth-protected-resource";

#[tokio::test]
async fn without_a_token_there_is_a_challenge_and_a_way_on() {
    let world = World::empty();
    for value in [None, Some("Basic abc"), Some("Bearer"), Some("Bearer ")] {
        let mut request = Request::get("/v1/schema");
        if let Some(value) = value {
            request = request.header("authorization", value);
        }
        let answer = world.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.failure(), (401, "authentication_error"));
        assert_eq!(answer.body["error"]["message"], "Missing Bearer token");
        assert_eq!(
            answer.header("www-authenticate"),
            format!("Bearer resource_metadata=\"{METADATA}\"")
        );
        assert_eq!(answer.body["error"]["resource_metadata"], METADATA);
        assert!(answer.body["error"]["next_step"].is_string());
    }
}

#[tokio::test]
async fn an_unknown_token_is_told_so_before_anything_else() {
    let world = World::empty();
    for target in [
        "/v1/schema",
        "/v1/schema?nonsense=1",
        "/v1/streams/x/records/y",
    ] {
        let answer = world.get("pdpp_at_unknown", target).await;
        assert_eq!(answer.failure(), (401, "authentication_error"), "{target}");
        assert_eq!(
            answer.header("www-authenticate"),
            format!("Bearer error=\"invalid_token\", resource_metadata=\"{METADATA}\"")
        );
    }
}

// TR-24: an adapter can tell an owner's token from every answer, a refusal included.
#[tokio::test]
async fn every_answer_names_the_kind_of_token() {
    let world = World::new().await;
    let (client, grant) = world.grant(&["work"], &["messages"], &[]);
    let owner = world.owner.as_str();
    for (target, status) in [
        ("/v1/schema", 200),
        ("/v1/schema?view=compact", 200),
        ("/v1/streams", 200),
        ("/v1/streams/messages?connection_id=work", 200),
        ("/v1/search?q=overdraft", 200),
        ("/v1/streams/messages/records?connection_id=work", 200),
        ("/v1/streams/messages/records/m1?connection_id=work", 200),
        (
            "/v1/streams/messages/records/m1/field-window?connection_id=work&field=body",
            200,
        ),
        (
            "/v1/streams/messages/aggregate?connection_id=work&metric=count",
            200,
        ),
        ("/v1/schema?nonsense=1", 400),
        ("/v1/streams/messages/records/none?connection_id=work", 404),
        ("/v1/blobs/none", 404),
    ] {
        for (token, kind) in [(owner, "owner"), (&client, "client")] {
            let answer = world.get(token, target).await;
            assert_eq!(answer.status, status, "{target} {}", answer.body);
            assert_eq!(answer.header("pdpp-token-kind"), kind, "{target}");
        }
    }
    let writing = Request::post("/v1/ingest/messages?connection_id=work")
        .header("authorization", format!("Bearer {client}"));
    let writing = world.send(writing.body(Body::empty()).unwrap()).await;
    assert_eq!(writing.failure(), (403, "permission_error"));
    assert_eq!(writing.header("pdpp-token-kind"), "client");
    grants::revoke(&*world.store, &grant, NOON).unwrap();
    for token in ["pdpp_at_unknown", &client] {
        let refused = world.get(token, "/v1/schema").await;
        assert_eq!(refused.header("pdpp-token-kind"), "", "{}", refused.body);
    }
    let document = the_document();
    let answers = &document["paths"]["/v1/search"]["get"]["responses"];
    for status in ["200", "404"] {
        let header = &answers[status]["headers"]["PDPP-Token-Kind"]["$ref"];
        let described = document.pointer(header.as_str().unwrap().trim_start_matches('#'));
        assert_eq!(described.unwrap()["schema"]["enum"][0], "owner");
    }
}

#[tokio::test]
async fn writing_is_for_the_owner() {
    let world = World::new().await;
    let (client, _) = world.grant(&["work"], &["messages"], &[]);
    for (method, target) in [
        (Method::POST, "/v1/ingest/messages?connection_id=work"),
        (Method::DELETE, "/v1/streams/messages/records/m1"),
        (Method::DELETE, "/v1/streams/messages/records"),
        (Method::POST, "/v1/blobs?stream=attachments&record_key=a1"),
        (Method::POST, "/v1/connectors"),
    ] {
        let request = Request::builder()
            .method(method)
            .uri(target)
            .header("authorization", format!("bearer {client}"))
            .body(Body::from("{}"));
        let answer = world.send(request.unwrap()).await;
        assert_eq!(answer.failure(), (403, "permission_error"), "{target}");
        assert_eq!(answer.body["error"]["message"], "Owner token required");
    }
    assert_eq!(
        world
            .read("/v1/streams/messages/records?connection_id=work")
            .await["data"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
}

#[tokio::test]
async fn where_only_the_owner_comes_no_token_is_asked_for() {
    let world = World::new().await;
    let router = rest::owner_router(world.service.clone());
    let request = Request::get("/v1/schema").body(Body::empty()).unwrap();
    let answer = send(router, request).await;
    assert_eq!(answer.body["bearer"]["token_kind"], "owner");
}

#[tokio::test]
async fn the_owner_looks_through_a_grant_without_a_note_and_a_client_reads_with_one() {
    let world = World::new().await;
    let (client, grant) = world.grant(&["work"], &["messages"], &["id", "subject"]);
    let target = "/v1/streams/messages/records/m1";
    let seen = world.get(&client, target).await.body;
    world.log.flush().unwrap();
    assert_eq!(grants::verify(&*world.store).unwrap().entries, 1);
    let under = async |headers: &[axum::http::HeaderName]| {
        let mut request = Request::get(target);
        for header in headers {
            request = request.header(header, &grant);
        }
        let router = rest::owner_router(world.service.clone());
        let answer = send(router, request.body(Body::empty()).unwrap()).await;
        world.log.flush().unwrap();
        (answer.body, grants::verify(&*world.store).unwrap().entries)
    };
    assert_eq!(under(&[rest::PREVIEW_AS_GRANT]).await, (seen.clone(), 1));
    assert_eq!(under(&[rest::AS_GRANT]).await, (seen.clone(), 2));
    let both = [rest::PREVIEW_AS_GRANT, rest::AS_GRANT];
    assert_eq!(under(&both).await, (seen, 3));
    // What the owner reads is not noted; a client has one entry per call, also where it takes two reads (decision 33).
    world.read(&format!("{target}?connection_id=work")).await;
    world.get(&client, "/v1/connectors").await;
    world.log.flush().unwrap();
    assert_eq!(grants::verify(&*world.store).unwrap().entries, 4);
    // Over TCP it is the token that counts, and nothing else.
    let request = Request::get(target)
        .header("authorization", format!("Bearer {client}"))
        .header(rest::PREVIEW_AS_GRANT, &grant);
    world.send(request.body(Body::empty()).unwrap()).await;
    world.log.flush().unwrap();
    assert_eq!(grants::verify(&*world.store).unwrap().entries, 5);
}
