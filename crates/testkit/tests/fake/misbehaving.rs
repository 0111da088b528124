//! Servers that fail their callers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;
use testkit::fake::{ErrorShape, Failure, FakeServer, Misbehaviour, Reply, RequestId, fixtures};

use super::ask::{get, ok, send};

fn asked(how: Misbehaviour) -> Option<super::ask::Raw> {
    let server = FakeServer::start(fixtures::multi().misbehaving("/v1/search", how));
    assert_eq!(get(&server, "/v1/schema").0, 200, "other routes are well");
    send(&server, "/v1/search?q=a", Some(server.token()))
}

#[test]
fn every_misbehaviour_is_what_it_says() {
    let html = asked(Misbehaviour::Html(502)).unwrap();
    assert_eq!(html.status, 502);
    assert!(html.head.contains("text/html"));
    let cut = asked(Misbehaviour::TruncatedJson).unwrap();
    assert!(serde_json::from_slice::<serde_json::Value>(&cut.body).is_err());
    let bytes = asked(Misbehaviour::InvalidUtf8).unwrap();
    assert!(String::from_utf8(bytes.body).is_err());
    let huge = asked(Misbehaviour::Huge(20_000_000)).unwrap();
    assert!(huge.body.len() >= 20_000_000);
    assert!(serde_json::from_slice::<serde_json::Value>(&huge.body).is_ok());
    let elsewhere = asked(Misbehaviour::Redirect("http://127.0.0.1:1/x".to_owned())).unwrap();
    assert_eq!(elsewhere.status, 302);
    assert!(elsewhere.head.contains("location: http://127.0.0.1:1/x"));
    assert!(asked(Misbehaviour::Reset).is_none());
    let broken = asked(Misbehaviour::BrokenBody).unwrap();
    assert!(
        !broken.body.ends_with(b"0\r\n\r\n"),
        "the last chunk never comes"
    );
    let failure = Failure::new(503, "busy", "Come back later");
    let oauth = asked(Misbehaviour::Fails(ErrorShape::OAuth, failure.clone())).unwrap();
    assert_eq!(
        serde_json::from_slice::<serde_json::Value>(&oauth.body).unwrap(),
        json!({"error": "busy", "error_description": "Come back later"})
    );
    let plain = asked(Misbehaviour::Fails(ErrorShape::Plain, failure)).unwrap();
    assert_eq!(
        (plain.status, plain.body.as_slice()),
        (503, &b"Come back later"[..])
    );
}

#[test]
fn a_silent_server_takes_the_question_and_still_stops() {
    let server =
        FakeServer::start(fixtures::multi().misbehaving("/v1", Misbehaviour::NeverAnswers));
    let mut socket = TcpStream::connect(server.url().strip_prefix("http://").unwrap()).unwrap();
    socket
        .write_all(b"GET /v1/schema HTTP/1.1\r\nHost: fake\r\n\r\n")
        .unwrap();
    let asked = (0..1_000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        !server.calls().is_empty()
    });
    assert!(asked, "the question arrived");
    socket.set_nonblocking(true).unwrap();
    assert!(socket.read(&mut [0; 1]).is_err(), "nothing came");
    socket.set_nonblocking(false).unwrap();
    drop(server);
    assert_eq!(
        socket.read(&mut [0; 1]).unwrap_or(0),
        0,
        "the server is gone"
    );
}

#[test]
fn a_reset_is_no_orderly_end() {
    let server = FakeServer::start(fixtures::multi().misbehaving("/v1", Misbehaviour::Reset));
    let mut socket = TcpStream::connect(server.url().strip_prefix("http://").unwrap()).unwrap();
    socket
        .write_all(b"GET /v1/schema HTTP/1.1\r\nHost: fake\r\n\r\n")
        .unwrap();
    let error = socket.read(&mut [0; 1]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[test]
fn hooks_answer_or_pass_on() {
    let state = fixtures::multi().on("/v1/schema", |call: &testkit::fake::Call| {
        (call.value("stream") == Some("special")).then(|| Reply::json(418, &json!({})))
    });
    let server = FakeServer::start(state);
    assert_eq!(get(&server, "/v1/schema?stream=special").0, 418);
    assert_eq!(get(&server, "/v1/schema").0, 200);
    let page = FakeServer::start(fixtures::page());
    let first = ok(&page, "/v1/streams/orders/records");
    assert_eq!(first["next_cursor"], json!("cur_2"));
    assert_eq!(
        ok(&page, "/v1/streams/orders/records?cursor=cur_2")["has_more"],
        json!(false)
    );
    assert_eq!(
        ok(&page, "/v1/streams/orders/records/o2")["id"],
        json!("o2")
    );
    assert_eq!(get(&page, "/v1/search?q=a&cursor=other").0, 400);
}

#[test]
fn the_request_id_has_its_header_or_none() {
    for (kind, expected) in [
        (RequestId::Standard, Some("\r\nrequest-id: req_1")),
        (RequestId::Prefixed, Some("\r\nx-request-id: req_1")),
        (RequestId::None, None),
    ] {
        let mut state = fixtures::multi();
        state.request_id = kind;
        let server = FakeServer::start(state);
        let head = send(&server, "/v1/schema", Some(server.token()))
            .unwrap()
            .head;
        match expected {
            Some(header) => assert!(head.contains(header), "{head}"),
            None => assert!(!head.contains("request-id"), "{head}"),
        }
    }
}
