//! What whoever runs the server sees, and what every answer carries.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use serde_json::json;

use crate::fixture::{MAIL, World, gunzip};

#[tokio::test]
async fn a_sane_request_id_is_kept_and_any_other_replaced() {
    let world = World::empty();
    for (name, id, kept) in [
        ("request-id", "abc-123", true),
        ("x-request-id", "from.proxy:7", true),
        ("request-id", "has space", false),
        ("request-id", "", false),
        ("request-id", &"x".repeat(200), false),
    ] {
        let request = Request::get("/v1/nope").header(name, id);
        let answer = world.send(request.body(Body::empty()).unwrap()).await;
        let sent = answer.header("request-id");
        assert_eq!(sent == id, kept, "{id}");
        assert_eq!(answer.body["error"]["request_id"], sent);
        if !kept {
            let hex = sent.strip_prefix("req_").unwrap();
            assert!(
                hex.len() == 16 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()),
                "{sent}"
            );
        }
    }
}

#[tokio::test]
async fn head_answers_like_get_without_the_body() {
    let world = World::new().await;
    for target in [
        "/v1/schema",
        "/v1/search?q=overdraft",
        "/v1/streams/nope",
        "/healthz",
    ] {
        let ask = |method: Method| {
            let request = Request::builder().method(method).uri(target);
            request
                .header("authorization", format!("Bearer {}", world.owner))
                .body(Body::empty())
                .unwrap()
        };
        let get = world.send(ask(Method::GET)).await;
        let head = world.send(ask(Method::HEAD)).await;
        assert_eq!(head.status, get.status, "{target}");
        assert_eq!(head.header("content-type"), get.header("content-type"));
        assert_eq!(
            head.header("content-length"),
            get.bytes.len().to_string(),
            "{target}"
        );
        assert!(head.bytes.is_empty());
    }
}

#[tokio::test]
async fn the_process_lives_is_ready_and_counts() {
    let world = World::new().await;
    world.read("/v1/search?q=overdraft").await;
    world.get("nobody", "/v1/search?q=overdraft").await;
    let ask = async |target: &str| {
        world
            .send(Request::get(target).body(Body::empty()).unwrap())
            .await
    };
    assert_eq!(ask("/healthz").await.body["status"], "alive");
    assert_eq!(ask("/readyz").await.body["status"], "ready");
    let figures = world.ask("/metrics").await;
    let text = String::from_utf8(figures.bytes).unwrap();
    for line in [
        "pdpp_requests_total{operation=\"search\",status=\"2xx\"} 1",
        "pdpp_requests_total{operation=\"search\",status=\"4xx\"} 1",
        "pdpp_requests_total{operation=\"ingest\",status=\"2xx\"} 3",
        "pdpp_request_duration_seconds_count{operation=\"search\"} 2",
        "pdpp_ingested_lines_total{result=\"accepted\"} 5",
        "pdpp_disclosure_log_trouble 0",
        "pdpp_requests_in_flight 1",
    ] {
        assert!(text.lines().any(|known| known == line), "{line} in {text}");
    }
    assert!(!text.contains("overdraft") && !text.contains("messages"));
}

// TR-31: a declaration sent over HTTP is indexed by the server itself, and /readyz says how far that is.
#[tokio::test]
async fn what_a_declaration_queues_is_worked_off_in_the_background() {
    let world = World::new().await;
    world.read("/v1/search?q=overdraft").await;
    let mut document: serde_json::Value = serde_json::from_str(MAIL).unwrap();
    document["declaration_version"] = json!("2");
    let lexical = &mut document["streams"][0]["query"]["search"]["lexical_fields"];
    lexical.as_array_mut().unwrap().push(json!("from_email"));
    let declared = world.write(Method::POST, "/v1/connectors", document.to_string());
    assert_eq!(declared.await.status, StatusCode::OK);
    let ready = async || {
        let request = Request::get("/readyz").body(Body::empty()).unwrap();
        world.send(request).await.body
    };
    let index = &ready().await["index"];
    assert_eq!(index["state"], "reindexing");
    assert!(
        index["percent"]
            .as_u64()
            .is_some_and(|percent| percent < 100)
    );
    let page = world.read("/v1/search?q=overdraft").await;
    assert_eq!(page["meta"]["recall"]["complete"], false);
    assert!(page["meta"]["index_maintenance"]["pending_scopes"].is_number());

    let _updater = rest::IndexUpdater::start(&world.store).unwrap();
    for _ in 0..600 {
        if ready().await["index"] == json!({"state": "current"}) {
            let page = world.read("/v1/search?q=overdraft").await;
            assert_eq!(page["meta"]["recall"]["complete"], true);
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the queue is not worked off: {}", ready().await);
}

#[tokio::test]
async fn long_answers_are_compressed_for_who_asks() {
    let world = World::new().await;
    for (encoding, expected) in [("gzip", "gzip"), ("zstd", "zstd"), ("identity", "")] {
        let request = Request::get("/v1/schema")
            .header("authorization", format!("Bearer {}", world.owner))
            .header("accept-encoding", encoding);
        let answer = world.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.header("content-encoding"), expected);
        if encoding == "gzip" {
            assert!(gunzip(&answer.bytes).contains("\"object\":\"schema\""));
        }
    }
}
