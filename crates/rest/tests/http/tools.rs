//! `/mcp`: who is let in, and that the tools tell what `/v1` would tell the same caller.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use contract::declaration::Declaration;
use rest::Limits;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::fixture::{MAIL, NOON, PUBLIC_URL, World};

pub(crate) struct Said {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Said {
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }
}

/// A request to the tools as hosts send it, changed at will.
pub(crate) fn request(token: Option<&str>) -> axum::http::request::Builder {
    let mut request = Request::post("/mcp")
        .header("host", "127.0.0.1:7420")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    request
}

pub(crate) async fn send(router: &Router, request: Request<Body>) -> Said {
    let response = router.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.unwrap();
    Said {
        status: parts.status,
        headers: parts.headers,
        body: serde_json::from_slice(&bytes).unwrap_or_default(),
    }
}

pub(crate) async fn post(world: &World, token: Option<&str>, message: &Value) -> Said {
    let request = request(token);
    send(
        &world.router,
        request.body(Body::from(message.to_string())).unwrap(),
    )
    .await
}

pub(crate) fn rpc(method: &str, params: impl Into<Value>) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params.into()})
}

async fn call(world: &World, token: &str, tool: &str, arguments: impl Into<Value>) -> Value {
    let message = rpc(
        "tools/call",
        json!({"name": tool, "arguments": arguments.into()}),
    );
    let mut said = post(world, Some(token), &message).await;
    assert_eq!(said.status, StatusCode::OK, "{}", said.body);
    said.body["result"].take()
}

#[tokio::test]
async fn without_a_token_the_challenge_names_the_document_of_this_path() {
    // UP-08
    let world = World::new().await;
    let metadata = format!("{PUBLIC_URL}/.well-known/oauth-protected-resource/mcp");
    for token in [None, Some("nonsense")] {
        let said = post(&world, token, &rpc("tools/list", json!({}))).await;
        assert_eq!(said.status, StatusCode::UNAUTHORIZED);
        let challenge = said.header("www-authenticate");
        assert!(
            challenge.contains(&format!("resource_metadata=\"{metadata}\"")),
            "{challenge}"
        );
        assert_eq!(challenge.contains("invalid_token"), token.is_some());
        // Decisions 11: a token nobody gave out is not known; `invalid_token` tells of a grant that has ended.
        assert_eq!(said.body["error"]["code"], "authentication_error");
        assert_eq!(said.body["error"]["resource_metadata"], json!(metadata));
        assert!(said.header("link").contains("/icon.svg"));
        assert!(said.body.get("result").is_none());
    }
}

#[tokio::test]
async fn an_owner_s_token_is_refused_for_every_method() {
    // AU-01, AU-02, AU-07
    let world = World::new().await;
    for method in [
        "initialize",
        "tools/list",
        "tools/call",
        "ping",
        "server/discover",
    ] {
        let said = post(&world, Some(&world.owner), &rpc(method, json!({}))).await;
        assert_eq!(said.status, StatusCode::FORBIDDEN, "{method}");
        assert_eq!(said.body["error"]["code"], "permission_error");
        assert!(said.body.get("result").is_none() && said.body.get("jsonrpc").is_none());
        assert!(said.header("www-authenticate").is_empty());
    }
    // Nothing was read on the way; what is read for a grant is counted.
    let (token, _) = world.grant(&["work"], &[], &[]);
    let is_read = async || {
        let figures = world.ask("/metrics").await;
        let figures = String::from_utf8(figures.bytes).unwrap();
        ["search", "getSchema", "listRecords", "getRecord"]
            .map(|read| figures.contains(&format!("operation=\"{read}\"")))
    };
    assert_eq!(is_read().await, [false; 4]);
    call(&world, &token, "search", json!({"query": "overdraft"})).await;
    assert!(is_read().await[0]);
}

#[tokio::test]
async fn there_is_no_stream_to_get_whoever_asks() {
    let world = World::new().await;
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        let request = Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", "localhost");
        let said = send(&world.router, request.body(Body::empty()).unwrap()).await;
        assert_eq!(said.status, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(said.header("allow"), "POST");
    }
}

#[tokio::test]
async fn other_hosts_and_pages_are_turned_away_before_any_token() {
    let world = World::new().await;
    let (token, _) = world.grant(&["work"], &[], &[]);
    let message = rpc("tools/list", json!({}));
    for (name, value, status, code) in [
        ("host", "evil.example", 421, "misdirected_request"),
        ("origin", "https://evil.example", 403, "permission_error"),
    ] {
        let mut request = request(Some(&token))
            .body(Body::from(message.to_string()))
            .unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
        let said = send(&world.router, request).await;
        assert_eq!(said.status.as_u16(), status);
        assert_eq!(said.body["error"]["code"], code);
    }
    crate::listening::kept_secret([token.as_str(), "evil.example"]);
}

#[tokio::test]
async fn a_grant_that_ended_makes_a_host_authorize_again() {
    let world = World::new().await;
    let (token, id) = world.grant(&["work"], &[], &[]);
    let tools = post(&world, Some(&token), &rpc("tools/list", json!({}))).await;
    assert_eq!(tools.body["result"]["tools"].as_array().unwrap().len(), 6);
    grants::revoke(&*world.store, &id, NOON).unwrap();
    let said = post(&world, Some(&token), &rpc("tools/list", json!({}))).await;
    assert_eq!(said.status, StatusCode::UNAUTHORIZED);
    assert_eq!(said.body["error"]["code"], "invalid_token");
    assert!(
        said.header("www-authenticate")
            .contains("error=\"invalid_token\"")
    );
}

#[tokio::test]
async fn the_tools_are_those_of_every_other_transport() {
    // SU-06, TS-01
    let world = World::new().await;
    let (token, _) = world.grant(&["work"], &[], &[]);
    let mut said = post(&world, Some(&token), &rpc("tools/list", json!({}))).await;
    let expected = serde_json::to_value(mcp::Server::tools()).unwrap();
    // FI-41: `mode` is offered with a sentence model only.
    let search = &mut said.body["result"]["tools"][1]["inputSchema"]["properties"];
    assert_eq!(search.get("mode"), None);
    search["mode"] = expected[1]["inputSchema"]["properties"]["mode"].clone();
    assert_eq!(said.body["result"]["tools"], expected);
    let document = world.get(&token, "/v1/openapi.json").await.body.to_string();
    assert!(!document.contains("/v1/search/hybrid"));

    let model = tempfile::tempdir().unwrap();
    testkit::tiny_model::write(model.path()).unwrap();
    world.store.add_model(model.path()).unwrap();
    let said = post(&world, Some(&token), &rpc("tools/list", json!({}))).await;
    assert_eq!(said.body["result"]["tools"], expected);
    let document = world.get(&token, "/v1/openapi.json").await.body.to_string();
    assert!(document.contains("/v1/search/hybrid"));
    let metadata = world
        .get(&token, "/.well-known/oauth-protected-resource")
        .await;
    assert_eq!(
        metadata.body["capabilities"]["hybrid_retrieval"]["cursor_supported"],
        true
    );
    let schema = world.get(&token, "/v1/schema").await;
    assert_eq!(
        schema.body["search"]["modes"],
        json!(["lexical", "semantic", "hybrid"])
    );
}

#[tokio::test]
async fn every_era_is_shown_the_icon_and_no_session() {
    let world = World::new().await;
    let (token, _) = world.grant(&["work"], &[], &[]);
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let said = post(&world, Some(&token), &rpc("initialize", params)).await;
        assert_eq!(said.body["result"]["protocolVersion"], version);
        // UP-08
        let icon = &said.body["result"]["serverInfo"]["icons"][0]["src"];
        assert_eq!(icon, &json!(format!("{PUBLIC_URL}/icon.svg")));
        // SU-07
        let told = said.body["result"].to_string();
        assert!(
            !told.contains("profile") && !told.contains("toolset"),
            "{told}"
        );
        assert!(said.headers.get("mcp-session-id").is_none());
    }
}

#[tokio::test]
async fn a_package_is_named_in_the_headers() {
    let world = World::new().await;
    // Grants are given by source, so two sources make a package.
    let post_office = MAIL.replace("demo_mail", "demo_post");
    let post_office = Declaration::parse(&post_office).unwrap();
    world.store.declare(&post_office).unwrap();
    world.connect_to("demo_post", "club", "Club");
    let (token, id) = world.grant(&["work", "home", "club"], &["messages"], &[]);
    let said = post(&world, Some(&token), &rpc("tools/list", json!({}))).await;
    assert_eq!(said.header("x-pdpp-grant-package-id"), id);
    assert_eq!(said.header("x-pdpp-grant-package-member-count"), "2");
}

#[tokio::test]
async fn a_grant_that_calls_too_often_is_told_to_wait() {
    let world = World::new().await;
    let (token, _) = world.grant(&["work"], &[], &[]);
    let (other, _) = world.grant(&["home"], &[], &[]);
    let limits = Limits {
        calls_per_minute: 2,
        ..Limits::default()
    };
    let router = world.limited(limits);
    let message = rpc("ping", json!({}));
    let ask = async |token: &str| {
        let request = request(Some(token));
        send(
            &router,
            request.body(Body::from(message.to_string())).unwrap(),
        )
        .await
    };
    assert_eq!(ask(&token).await.status, StatusCode::OK);
    assert_eq!(ask(&token).await.status, StatusCode::OK);
    let refused = ask(&token).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.header("retry-after"), "30");
    assert_eq!(ask(&other).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_body_larger_than_any_call_is_refused() {
    let world = World::new().await;
    let (token, _) = world.grant(&["work"], &[], &[]);
    let message = rpc(
        "tools/call",
        json!({"name": "search", "arguments": {"query": "a secret question ".repeat(100_000)}}),
    );
    let said = post(&world, Some(&token), &message).await;
    assert_eq!(said.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(said.body["error"]["code"].is_string(), "{}", said.body);
    crate::listening::kept_secret([token.as_str(), "a secret question"]);
}
