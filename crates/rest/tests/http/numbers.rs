//! Numbers that no float holds: what `/v1` tells of a record, `/mcp` tells as well, digit for digit.

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::fixture::{World, letter};
use crate::tools::{request, rpc};

/// The exponent is spelled as the tools spell it.
const FAR: &str = r#"{"far":1e+400,"whole":123456789012345678901234567890,"cents":[2.50,-0]}"#;

/// The body of an answer, as it came.
async fn raw(world: &World, mut request: Request<Body>) -> String {
    let host = "127.0.0.1:7420".parse().unwrap();
    request.headers_mut().entry("host").or_insert(host);
    let response = world.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

async fn tool(world: &World, token: &str, name: &str, arguments: Value) -> String {
    let params = json!({"name": name, "arguments": arguments});
    let message = rpc("tools/call", params);
    let request = request(Some(token)).body(Body::from(message.to_string()));
    let said = raw(world, request.unwrap()).await;
    assert!(said.contains(r#""isError":false"#), "{said}");
    said
}

#[tokio::test]
async fn a_record_with_any_numbers_is_served_with_the_rest_of_its_page() {
    // Decision 23, ID-27
    let world = World::new().await;
    let odd = letter("m4", "Odd", "Numbers.", 5).replace(
        r#""size_bytes":50"#,
        &format!(r#""size_bytes":50,"amount":0.12345678901234567890123,"profile":{FAR}"#),
    );
    world.ingest("work", "messages", &odd).await;
    world
        .ingest("work", "messages", &letter("m5", "After", "It.", 6))
        .await;
    let (token, _) = world.grant(&["work"], &["messages"], &[]);

    let request = Request::get("/v1/streams/messages/records?limit=10")
        .header("authorization", format!("Bearer {token}"))
        .body(Body::empty());
    let served = raw(&world, request.unwrap()).await;
    assert!(served.contains(FAR), "{served}");
    let page = tool(
        &world,
        &token,
        "query_records",
        json!({"stream": "messages"}),
    )
    .await;
    // The links repeat the request, and how many rows a tool asks for is its own affair.
    let rows = served.split(r#","links":"#).next().unwrap();
    assert!(page.contains(rows), "{page}\n{served}");
    let quoted = json!(FAR).to_string();
    assert!(page.contains(quoted.trim_matches('"')), "{page}");

    let since = json!({"stream": "messages", "changes_since": "beginning"});
    let changes = tool(&world, &token, "query_records", since).await;
    for key in ["m1", "m4", "m5"] {
        assert!(changes.contains(&format!(r#""id":"{key}""#)), "{changes}");
    }
    assert!(changes.contains(FAR), "{changes}");

    let document = tool(&world, &token, "fetch", json!({"id": "work/messages:m4"})).await;
    assert!(
        document.contains(r#""amount":0.12345678901234567890123"#),
        "{document}"
    );
    let field = json!({"id": "work/messages:m4", "field_path": "profile"});
    let window = tool(&world, &token, "read_record_field", field).await;
    let text = format!(r#""text":{}"#, json!(FAR));
    assert!(window.contains(&text), "{window}");

    let largest = json!({"stream": "messages", "metric": "max", "field": "amount"});
    let figure = tool(&world, &token, "aggregate", largest).await;
    assert!(
        figure.contains(r#""value":0.12345678901234567890123"#),
        "{figure}"
    );
    assert!(
        figure.contains("field=amount = 0.12345678901234567890123"),
        "{figure}"
    );
}
