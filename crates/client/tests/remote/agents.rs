//! An agent reads with the token of a grant and never with an owner's, whatever its file calls it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use client::HttpServer;
use contract::error::ErrorCode;
use contract::time::Clock as _;
use contract::upstream::{Get, Upstream as _};
use serde_json::{Value, json};

use crate::fake::{
    Fake, LIMITS, NOW, ReceivedRequest, Reply, TOKEN, cache_with, http, json, shown,
};

fn records() -> Get {
    Get::v1(["streams", "orders", "records"])
}

/// A server whose schema is answered by this, and whose records are there for everybody.
async fn over(schema: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> Fake {
    Fake::start(move |asked, _| {
        if asked.path().starts_with("/v1/schema") {
            return schema(asked);
        }
        json(200, &json!({"object": "list", "data": [{"id": "o1"}]}))
    })
    .await
}

fn said(bearer: &Value) -> Reply {
    json(200, &json!({"object": "schema", "bearer": bearer}))
}

fn paths(fake: &Fake) -> Vec<String> {
    let asked = fake.asked();
    asked.iter().map(|one| one.path().to_owned()).collect()
}

// AU-05: it was read with until something asked for the schema.
#[tokio::test]
async fn an_owners_token_reads_nothing_from_the_first_question_on() {
    for bearer in [
        json!({"scope": "owner", "token_kind": "owner"}),
        json!({"token_kind": "OWNER"}),
        json!({"scope": "owner"}),
        json!({"token_kind": "control_plane"}),
    ] {
        let fake = over(move |_| said(&bearer)).await;
        let server = fake.server().for_agents();
        assert!(!server.refused_an_owner());
        for _ in 0..3 {
            let error = server.get(records()).await.unwrap_err();
            assert_eq!(error.code, ErrorCode::OwnerTokenRefused);
            assert!(error.hint.as_ref().unwrap().contains("pdpp connect"));
            shown(&error);
        }
        assert!(server.refused_an_owner());
        // One look at the schema, and nothing after it.
        assert_eq!(paths(&fake), ["/v1/schema?view=compact"]);
    }
}

#[tokio::test]
async fn a_schema_asked_for_first_tells_it_too() {
    // AU-05
    let fake = over(|_| said(&json!({"token_kind": "owner"}))).await;
    let server = fake.server().for_agents();
    let schema = Get::v1(["schema"]).with("stream", Some("orders"));
    for question in [schema, records()] {
        let error = server.get(question).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::OwnerTokenRefused);
    }
    assert_eq!(paths(&fake), ["/v1/schema?stream=orders"]);
}

#[tokio::test]
async fn a_grants_token_is_asked_about_once() {
    for bearer in [
        json!({"scope": "grant", "token_kind": "client"}),
        json!({"token_kind": "mcp_package"}),
        // A server that tells no kind stays usable.
        Value::Null,
    ] {
        let fake = over(move |_| said(&bearer)).await;
        let server = fake.server().for_agents();
        let (first, second) = tokio::join!(server.get(records()), server.get(records()));
        assert_eq!((first.unwrap().status, second.unwrap().status), (200, 200));
        server.get(records()).await.unwrap();
        assert_eq!(fake.count("/v1/schema"), 1);
        assert_eq!(fake.asked().len(), 4);
    }
    // Where the first question tells, nothing is asked besides.
    let fake = over(|_| said(&json!({"token_kind": "client"}))).await;
    let server = fake.server().for_agents();
    server.get(Get::v1(["schema"])).await.unwrap();
    server.get(records()).await.unwrap();
    assert_eq!(paths(&fake), ["/v1/schema", "/v1/streams/orders/records"]);
}

#[tokio::test]
async fn a_record_about_owners_is_no_owners_token() {
    let fake = Fake::start(|asked, _| match asked.path() {
        "/v1/schema?view=compact" => said(&json!({"token_kind": "client"})),
        _ => json(200, &json!({"data": {"bearer": {"scope": "owner"}}})),
    })
    .await;
    let server = fake.server().for_agents();
    for _ in 0..2 {
        let answer = server.get(records()).await.unwrap();
        let body = answer.json().unwrap();
        assert_eq!(body["data"]["bearer"]["scope"], "owner");
    }
}

#[tokio::test]
async fn servers_without_a_compact_schema_or_without_any_stay_usable() {
    let older = over(|asked| {
        if asked.path().contains("view=") {
            let error = json!({"code": "invalid_request", "message": "Unsupported: view"});
            return json(400, &json!({ "error": error }));
        }
        said(&json!({"token_kind": "owner"}))
    })
    .await;
    let error = older.server().for_agents().get(records()).await;
    assert_eq!(error.unwrap_err().code, ErrorCode::OwnerTokenRefused);
    assert_eq!(paths(&older), ["/v1/schema?view=compact", "/v1/schema"]);
    for status in [404, 405, 410, 501] {
        let none = over(move |_| http(status, "", "")).await;
        let server = none.server().for_agents();
        assert_eq!(server.get(records()).await.unwrap().status, 200);
        assert_eq!(server.get(records()).await.unwrap().status, 200);
        assert_eq!(none.count("/v1/schema"), 1);
    }
}

#[tokio::test]
async fn nothing_is_read_while_the_kind_is_refused_or_cannot_be_had() {
    // AU-05
    static UP: AtomicBool = AtomicBool::new(false);
    for status in [403, 429, 500, 503] {
        UP.store(false, Ordering::Relaxed);
        let fake = over(move |_| {
            if UP.load(Ordering::Relaxed) {
                return said(&json!({"token_kind": "client"}));
            }
            json(
                status,
                &json!({"error": {"code": "some_code", "message": "no"}}),
            )
        })
        .await;
        let server = fake.server().for_agents();
        let answer = server.get(records()).await.unwrap();
        assert_eq!(answer.status, status, "the server's own refusal");
        assert_eq!(fake.count("/v1/streams"), 0);
        UP.store(true, Ordering::Relaxed);
        assert_eq!(server.get(records()).await.unwrap().status, 200);
    }
    let fake = over(|_| Reply::Reset).await;
    let error = fake.server().for_agents().get(records()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::RsUnreachable);
    assert_eq!(fake.count("/v1/streams"), 0);
}

#[tokio::test]
async fn callers_at_once_wait_together_for_a_server_that_fails() {
    let fake = over(|_| http(503, "", "")).await;
    let server = fake.server().for_agents();
    let answers = tokio::join!(
        server.get(records()),
        server.get(records()),
        server.get(records())
    );
    for answer in [answers.0, answers.1, answers.2] {
        assert_eq!(answer.unwrap().status, 503);
    }
    assert_eq!(paths(&fake), ["/v1/schema?view=compact"]);
    // The next one looks again.
    assert_eq!(server.get(records()).await.unwrap().status, 503);
    assert_eq!(fake.asked().len(), 2);
}

/// The server, asked with a credential from a file that says this of it.
fn labelled(fake: &Fake, outer: &Value, own: &Value) -> HttpServer {
    let mut file = outer.clone();
    file["credential"] = own.clone();
    file["credential"]["access_token"] = TOKEN.into();
    let (_folder, cache) = cache_with(&fake.provider(), &file.to_string());
    let credential = cache.load(&fake.provider(), NOW.now()).unwrap();
    let server = HttpServer::with_credential(fake.provider(), credential, Arc::new(NOW), LIMITS);
    server.for_agents()
}

// TR-24: the schema was asked for first, and where that failed every read failed.
#[tokio::test]
async fn a_credential_that_is_labelled_a_clients_is_used_without_asking() {
    for (outer, own) in [
        (json!({}), json!({"pdpp_token_kind": "client"})),
        (json!({}), json!({"token_kind": "mcp_package"})),
        (json!({}), json!({"kind": " Client "})),
        (json!({"role": "client"}), json!({})),
        (json!({"kind": "credential"}), json!({"role": "CLIENT"})),
    ] {
        let fake = over(|_| http(503, "", "")).await;
        let server = labelled(&fake, &outer, &own);
        for _ in 0..2 {
            assert_eq!(server.get(records()).await.unwrap().status, 200);
        }
        assert_eq!(fake.count("/v1/schema"), 0, "{outer} {own}");
    }
    // What says nothing of it is no label.
    for own in [json!({}), json!({"kind": "oauth"}), json!({"role": 7})] {
        let fake = over(|_| said(&json!({"token_kind": "client"}))).await;
        let server = labelled(&fake, &json!({}), &own);
        for _ in 0..2 {
            assert_eq!(server.get(records()).await.unwrap().status, 200);
        }
        assert_eq!(fake.count("/v1/schema"), 1, "{own}");
    }
}

// TR-24
#[tokio::test]
async fn an_owners_token_labelled_a_clients_is_refused_by_the_first_answer_that_tells() {
    let client = json!({"pdpp_token_kind": "client"});
    for status in [200, 403, 404, 500] {
        let fake = Fake::start(move |_, _| {
            http(
                status,
                "PDPP-Token-Kind: owner\r\n",
                r#"{"data": "a letter"}"#,
            )
        })
        .await;
        let server = labelled(&fake, &json!({}), &client);
        for _ in 0..2 {
            let error = server.get(records()).await.unwrap_err();
            assert_eq!(error.code, ErrorCode::OwnerTokenRefused);
            assert!(!shown(&error).contains("letter"));
        }
        assert!(server.refused_an_owner());
        assert_eq!(paths(&fake), ["/v1/streams/orders/records"]);
    }
    // A server that says it in its schema only.
    let fake = over(|_| said(&json!({"token_kind": "owner"}))).await;
    let server = labelled(&fake, &json!({}), &client);
    assert_eq!(server.get(records()).await.unwrap().status, 200);
    for question in [Get::v1(["schema"]), records()] {
        let error = server.get(question).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::OwnerTokenRefused);
    }
    assert_eq!(fake.asked().len(), 2);
}

// TR-24
#[tokio::test]
async fn the_question_about_a_token_is_told_when_it_fails_and_asked_again() {
    static UP: AtomicBool = AtomicBool::new(false);
    let fake = over(|_| {
        if UP.load(Ordering::Relaxed) {
            return said(&json!({"token_kind": "client"}));
        }
        Reply::Reset
    })
    .await;
    let server = labelled(&fake, &json!({}), &json!({}));
    let error = server.get(records()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::RsUnreachable);
    assert!(
        error.message.contains("whose credential this is"),
        "{error}"
    );
    assert!(error.message.contains("broke off"), "{error}");
    UP.store(true, Ordering::Relaxed);
    assert_eq!(server.get(records()).await.unwrap().status, 200);
    assert_eq!(server.get(records()).await.unwrap().status, 200);
    assert_eq!(fake.count("/v1/schema"), 2);
}
