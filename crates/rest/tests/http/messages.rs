//! `/mcp`: what a request may hold, and how what it may not hold is refused.

use axum::body::Body;
use axum::http::StatusCode;
use rest::Limits;
use serde_json::{Value, json};

use crate::fixture::World;
use crate::tools::{post, request, rpc, send};

#[tokio::test]
async fn what_is_no_message_is_refused_in_a_form_that_can_be_read() {
    let world = World::new().await;
    let (token, _) = world.grant(&["work"], &["messages"], &[]);
    let ping = rpc("ping", json!({})).to_string();
    let plain = ("x-plain", "");
    for (header, body, status, code) in [
        (("accept", "application/json"), ping.as_str(), 406, None),
        (("content-type", "text/plain"), &ping, 415, None),
        (("mcp-protocol-version", "1999-01-01"), &ping, 400, None),
        (plain, "{nope", 400, Some(-32700)),
        (plain, "", 400, Some(-32700)),
        (plain, "[]", 400, Some(-32600)),
        (plain, "5", 400, Some(-32600)),
    ] {
        let mut request = request(Some(&token));
        let headers = request.headers_mut().unwrap();
        headers.insert(header.0, header.1.parse().unwrap());
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let said = send(&world.router, request).await;
        assert_eq!(said.status.as_u16(), status, "{header:?} {body}");
        assert!(said.header("content-type").starts_with("application/json"));
        let mut told = &said.body["error"];
        if let Some(code) = code {
            assert_eq!(told["code"], code, "{}", said.body);
            told = &told["data"]["error"];
        }
        assert_eq!(told["code"], "invalid_request", "{}", said.body);
        assert!(told["next"].as_str().unwrap().starts_with("send "));
    }
}

// Receiving lists is a must of 2025-03-26.
#[tokio::test]
async fn a_list_of_messages_is_answered_by_one_list() {
    let world = World::new().await;
    let (token, _) = world.grant(&["work"], &["messages"], &[]);
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let search = json!({"jsonrpc": "2.0", "id": "s", "method": "tools/call",
        "params": {"name": "search", "arguments": {"query": "overdraft"}}});
    let hello = json!({"jsonrpc": "2.0", "id": "h", "method": "initialize", "params": {
        "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let list =
        json!([rpc("ping", json!({})), ready, search, 5, {"jsonrpc": "2.0", "id": "odd"}, hello]);
    let said = post(&world, Some(&token), &list).await;
    assert_eq!(said.status, StatusCode::OK, "{}", said.body);
    assert!(said.header("content-type").starts_with("application/json"));
    let answers = said.body.as_array().unwrap();
    let ids: Vec<&Value> = answers.iter().map(|one| &one["id"]).collect();
    assert_eq!(
        ids,
        [
            &json!(1),
            &json!("s"),
            &Value::Null,
            &json!("odd"),
            &json!("h")
        ]
    );
    assert_eq!(answers[0]["result"], json!({}));
    let alone = post(&world, Some(&token), &search).await;
    assert_eq!(
        answers[1]["result"]["structuredContent"]["results"],
        alone.body["result"]["structuredContent"]["results"]
    );
    for refused in &answers[2..] {
        assert_eq!(refused["error"]["code"], -32600, "{refused}");
        assert!(refused["error"]["data"]["error"]["next"].is_string());
    }
    // By itself it may stand in a list.
    let said = post(&world, Some(&token), &json!([hello])).await;
    assert_eq!(said.body[0]["result"]["protocolVersion"], "2025-03-26");
    let said = post(&world, Some(&token), &json!([ready, ready])).await;
    assert_eq!(said.status, StatusCode::ACCEPTED);
    assert_eq!(said.body, Value::Null);
    let too_many = vec![rpc("ping", json!({})); 51];
    for list in [json!([]), json!(too_many)] {
        let said = post(&world, Some(&token), &list).await;
        assert_eq!(said.status, StatusCode::BAD_REQUEST);
        assert_eq!(said.body["error"]["code"], -32600);
    }
}

#[tokio::test]
async fn every_message_of_a_list_counts_as_a_call() {
    let world = World::new().await;
    let (token, _) = world.grant(&["work"], &[], &[]);
    let router = world.limited(Limits {
        calls_per_minute: 4,
        ..Limits::default()
    });
    let ask = async |count: usize| {
        let list = json!(vec![rpc("ping", json!({})); count]);
        let request = request(Some(&token)).body(Body::from(list.to_string()));
        send(&router, request.unwrap()).await
    };
    assert_eq!(ask(3).await.status, StatusCode::OK);
    let refused = ask(2).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.body["error"]["code"], "rate_limit_exceeded");
}

#[tokio::test]
async fn an_answer_that_nobody_asked_for_is_refused_with_an_id() {
    let world = World::new().await;
    let (token, _) = world.grant(&["work"], &[], &[]);
    let unasked = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    let said = post(&world, Some(&token), &unasked).await;
    assert_eq!(said.status, StatusCode::BAD_REQUEST);
    assert_eq!(said.body["error"]["code"], -32600, "{}", said.body);
    assert_eq!(said.body.get("id"), Some(&Value::Null));
}

#[tokio::test]
async fn where_every_request_names_its_revision_none_begins_with_initialize() {
    let world = World::new().await;
    let (token, _) = world.grant(&["work"], &[], &[]);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    let message =
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"_meta": meta}});
    let request = request(Some(&token))
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "initialize")
        .body(Body::from(message.to_string()))
        .unwrap();
    let said = send(&world.router, request).await;
    assert_eq!(said.status, StatusCode::NOT_FOUND);
    assert_eq!(said.body["error"]["code"], -32601, "{}", said.body);
}
