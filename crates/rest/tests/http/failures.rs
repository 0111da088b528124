//! Every failure has the same form, whatever failed.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use futures_core::Stream;
use rest::Limits;
use tower::ServiceExt as _;

use crate::fixture::{World, send};

#[tokio::test]
async fn unknown_routes_and_methods_are_structured_errors() {
    // D30
    let world = World::empty();
    for (method, target, expected) in [
        (Method::GET, "/nothing", (404, "not_found")),
        (Method::GET, "/v1/nope", (404, "not_found")),
        (Method::GET, "/v1/streams/", (404, "not_found")),
        (Method::POST, "/v1/schema", (405, "method_not_allowed")),
        (Method::OPTIONS, "/v1/schema", (405, "method_not_allowed")),
        (
            Method::GET,
            "/v1/ingest/messages",
            (405, "method_not_allowed"),
        ),
    ] {
        let answer = world.write(method, target, Body::empty()).await;
        assert_eq!(answer.failure(), expected, "{target}");
        assert_eq!(
            answer.body["error"]["request_id"],
            answer.header("request-id")
        );
        assert!(answer.body["error"]["type"].is_string());
        assert_eq!(
            answer.header("allow").contains("GET"),
            target == "/v1/schema"
        );
    }
}

#[tokio::test]
async fn every_route_names_the_parameters_it_takes() {
    // Decision 22
    let world = World::new().await;
    for target in [
        "/v1/schema",
        "/v1/connectors",
        "/v1/streams",
        "/v1/streams/messages",
        "/v1/streams/messages/records",
        "/v1/streams/messages/records/m1",
        "/v1/streams/messages/records/m1/field-window",
        "/v1/streams/messages/aggregate",
        "/v1/search",
        "/v1/blobs/blob_x",
        "/v1/openapi.json",
    ] {
        let answer = world.ask(&format!("{target}?foo=1")).await;
        assert_eq!(answer.failure(), (400, "invalid_request"), "{target}");
        let error = &answer.body["error"];
        assert_eq!(error["message"], "Unsupported query parameter: foo");
        assert_eq!(error["param"], "foo");
        assert!(
            error["next"]
                .as_str()
                .unwrap()
                .starts_with("this route takes")
        );
    }
}

const RECORDS: &str = "/v1/streams/messages/records?connection_id=work";
const WINDOW: &str = "/v1/streams/messages/records/m1/field-window?connection_id=work";
const AGGREGATE: &str = "/v1/streams/messages/aggregate?connection_id=work";

/// What is asked, the status of the answer, and its code.
const TABLE: &str = "\
RECORDS&order=up 400 invalid_request
RECORDS&count=maybe 400 invalid_request
RECORDS&window=all 400 invalid_request
RECORDS&fields= 400 invalid_request
RECORDS&fields=nope 400 unknown_field
RECORDS&fields=id&view=envelope 400 invalid_request
RECORDS&sort=subject 400 invalid_sort
RECORDS&sort=received_at,-received_at 400 invalid_sort
RECORDS&sort=received_at&order=desc 400 invalid_sort
RECORDS&filter=abc 400 invalid_request
RECORDS&filter[]=abc 400 invalid_request
RECORDS&filter[nope]=1 400 unknown_field
RECORDS&filter[id]=1&filter[id]=2 400 invalid_request
RECORDS&filter[size_bytes][like]=1 400 invalid_request
RECORDS&filter[size_bytes][gte]=x 400 invalid_request
RECORDS&filter[size_bytes][gt]=1 400 invalid_request
RECORDS&filter[size_bytes]=x 400 invalid_request
RECORDS&expand=nope 400 invalid_expand
RECORDS&expand_limit[attachments]=1 400 invalid_expand
RECORDS&expand=attachments&expand_limit[attachments]=0 400 invalid_expand
RECORDS&expand=attachments&expand_limit[attachments]=99 400 invalid_expand
RECORDS&cursor=nonsense 400 invalid_cursor
RECORDS&changes_since=nonsense 400 invalid_cursor
RECORDS&changes_since=beginning&sort=received_at 400 invalid_request
RECORDS&changes_since=beginning&expand=attachments 400 invalid_expand
RECORDS&connector_instance_id=home 400 invalid_argument
RECORDS&limit=1&limit=2 400 invalid_request
RECORDS&limit[x]=1 400 invalid_request
RECORDS&cursor=%ff 400 invalid_request
WINDOW& 400 invalid_field_path
WINDOW&field=body&offset_chars=x 400 invalid_window
WINDOW&field=body&offset_chars=-1 400 invalid_window
WINDOW&field=body&limit_chars=0 400 invalid_window
WINDOW&field=body&q= 400 invalid_window
WINDOW&field=body&before_chars=1 400 invalid_window
WINDOW&field=body&q=absent 404 query_not_found
WINDOW&field=size_bytes 422 field_not_text
AGGREGATE& 400 invalid_request
AGGREGATE&metric=avg 400 invalid_request
AGGREGATE&metric=count&limit=3 400 invalid_request
AGGREGATE&metric=count&group_by=from_email&limit=0 400 invalid_request
AGGREGATE&metric=count&group_by=from_email&limit=x 400 invalid_request
AGGREGATE&metric=count&group_by_time=received_at 400 invalid_request
AGGREGATE&metric=count&granularity=day 400 invalid_request
AGGREGATE&metric=sum&field=nope 400 unknown_field
AGGREGATE&metric=count&group_by_time=received_at&granularity=day&time_zone=Mars/X 400 invalid_request
/v1/search? 400 invalid_request
/v1/search?q=x&filter[id]=1 400 invalid_request
/v1/search?q=x&connection_id=nope 404 connection_not_found
/v1/search?q=x&connector_id=demo_mail 400 invalid_request
/v1/schema?detail=full 400 invalid_request
/v1/streams/messages/records 409 ambiguous_connection
/v1/streams/nope/records 404 stream_not_declared
/v1/streams/a%3Ab/records 404 stream_not_declared
/v1/streams/messages/records/none?connection_id=work 404 not_found
/v1/streams/messages/records/m1?connection_id=nope 404 connection_not_found
/v1/blobs/blob_sha256_00 404 blob_not_found
";

#[tokio::test]
async fn parameters_fail_with_the_code_of_the_table() {
    let world = World::new().await;
    let table = TABLE
        .replace("RECORDS", RECORDS)
        .replace("WINDOW", WINDOW)
        .replace("AGGREGATE", AGGREGATE);
    world.refuses(Method::GET, &table).await;
}

#[tokio::test]
async fn another_version_of_the_contract_is_refused() {
    let world = World::empty();
    for (version, status) in [("2026-04-06", 200), ("", 200), ("2020-01-01", 400)] {
        let request = Request::get("/v1/schema")
            .header("authorization", format!("Bearer {}", world.owner))
            .header("pdpp-version", version);
        let answer = world.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status, status, "{version}");
        if status == 400 {
            assert_eq!(answer.failure().1, "unsupported_version");
        }
    }
}

struct Never;

impl Stream for Never {
    type Item = Result<&'static str, std::io::Error>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Pending
    }
}

#[tokio::test]
async fn a_slow_client_is_given_up_wherever_it_writes() {
    let world = World::new().await;
    let (client, _) = world.grant(&["work"], &["messages"], &[]);
    let router = world.limited(Limits {
        body_pause: Duration::from_millis(50),
        ..Limits::default()
    });
    let form = "application/x-www-form-urlencoded";
    for (target, kind) in [
        ("/mcp", "application/json"),
        ("/oauth/token", form),
        ("/oauth/register", "application/json"),
        ("/oauth/revoke", form),
        ("/oauth/device_authorization", form),
        ("/sign-in", form),
        ("/consent/approve", form),
    ] {
        let request = Request::post(target)
            .header("host", "pdpp.localhost:7420")
            .header("authorization", format!("Bearer {client}"))
            .header("content-type", kind)
            .header("accept", "application/json, text/event-stream")
            .body(Body::from_stream(Never));
        let given_up = router.clone().oneshot(request.unwrap());
        let answer = tokio::time::timeout(Duration::from_secs(20), given_up).await;
        assert_eq!(answer.unwrap().unwrap().status(), 408, "{target}");
    }
    crate::listening::kept_secret([client.as_str()]);
}

#[tokio::test]
async fn slow_clients_hold_up_nobody_else() {
    let world = World::new().await;
    let (client, _) = world.grant(&["work"], &["messages"], &[]);
    let router = world.limited(Limits::default());
    let token = format!("Bearer {client}");
    // Far more than are answered at a time.
    let places = std::thread::available_parallelism().map_or(1, usize::from) * 4;
    for _ in 0..places {
        let request = Request::post("/mcp")
            .header("host", "127.0.0.1:7420")
            .header("authorization", &token)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(Body::from_stream(Never));
        tokio::spawn(router.clone().oneshot(request.unwrap()));
    }
    // They come first.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let read = Request::get("/v1/schema")
        .header("host", "127.0.0.1:7420")
        .header("authorization", &token)
        .body(Body::empty());
    let answer = router.oneshot(read.unwrap());
    let answer = tokio::time::timeout(Duration::from_secs(10), answer).await;
    assert_eq!(answer.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn what_takes_too_long_is_given_up() {
    let world = World::new().await;
    let short = Duration::from_millis(50);
    let long = Duration::from_mins(1);
    for (pause, write, expected) in [
        (short, long, (408, "invalid_request")),
        (long, short, (503, "internal_error")),
    ] {
        let limits = Limits {
            body_pause: pause,
            write_time: write,
            ..Limits::default()
        };
        let request = Request::post("/v1/ingest/messages?connection_id=work")
            .header("authorization", format!("Bearer {}", world.owner))
            .body(Body::from_stream(Never));
        let answer = send(world.limited(limits), request.unwrap()).await;
        assert_eq!(answer.failure(), expected);
    }
}
