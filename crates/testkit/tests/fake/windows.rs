//! Field windows.

use serde_json::{Value, json};
use testkit::fake::{Connector, FakeServer, Field, State, Stream, World, fixtures};

use super::ask::{ok, refused};

const M1: &str = "/v1/streams/messages/records/m1/field-window";

fn walk(server: &FakeServer, route: &str, limit: usize) -> String {
    let (mut text, mut offset) = (String::new(), Some(0));
    while let Some(at) = offset {
        let body = ok(
            server,
            &format!("{route}&offset_chars={at}&limit_chars={limit}"),
        );
        let window = &body["window"];
        assert_eq!(window["start_chars"], json!(at));
        text.push_str(window["text"].as_str().unwrap());
        offset = window["next_offset_chars"].as_u64();
    }
    text
}

#[test]
fn walking_windows_yields_the_field_also_with_astral_text() {
    // FW-07
    let server = FakeServer::start(fixtures::evidence());
    let whole = walk(&server, &format!("{M1}?field=text"), 1_000);
    assert_eq!(whole.chars().count(), 6_000);
    assert_eq!(whole.find("Hyperlane"), Some(3_000));

    let text = "a😀é\u{301}会".repeat(50);
    let stream = Stream::new("s").field(Field::text("t"));
    let world = World::default()
        .with(Connector::new("k").connection("c", "C").stream(stream))
        .with_record("c", "s", "r", json!({"t": text}));
    let server = FakeServer::start(State::new(world));
    for limit in [1, 3, 7] {
        let route = "/v1/streams/s/records/r/field-window?field=t";
        assert_eq!(walk(&server, route, limit), text);
    }
}

#[test]
fn a_window_has_every_member() {
    // FW-05
    let server = FakeServer::start(fixtures::evidence());
    let window = |query: &str| ok(&server, &format!("{M1}?field=text&{query}"))["window"].clone();
    let mut found = window("q=hyperLANE&before_chars=10&after_chars=5");
    assert_eq!(found["text"].take(), json!("dge using Hyperlane or L"));
    assert_eq!(
        found,
        json!({
            "text": null, "start_chars": 2990, "end_chars": 3014, "limit_chars": 24, "total_chars": 6000,
            "complete": false, "has_more": true, "match_start_chars": 3000, "match_end_chars": 3009,
            "next_offset_chars": 3014, "previous_offset_chars": 2966,
        })
    );
    let last = window("offset_chars=5000");
    assert_eq!(last["end_chars"], json!(6_000));
    assert_eq!(last["complete"], json!(false));
    assert_eq!(last["next_offset_chars"], Value::Null);
    let past = window("offset_chars=9000");
    assert_eq!(
        (&past["text"], &past["has_more"]),
        (&json!(""), &json!(false))
    );
    let whole = window("limit_chars=6000");
    assert_eq!(whole["complete"], json!(true));
    assert_eq!(whole["previous_offset_chars"], Value::Null);
    let clamped = ok(&server, &format!("{M1}?field=text&limit_chars=20000"));
    assert_eq!(
        clamped["meta"]["warnings"][0]["code"],
        json!("limit_clamped")
    );
}

#[test]
fn windows_are_refused_by_their_code() {
    // FW-09
    let server = FakeServer::start(fixtures::evidence());
    for (query, expected) in [
        ("", (400, "invalid_field_path")),
        ("field=text&limit_chars=0", (400, "invalid_window")),
        ("field=text&offset_chars=-1", (400, "invalid_window")),
        ("field=text&q=", (400, "invalid_window")),
        ("field=text&q=a&offset_chars=1", (400, "invalid_window")),
        ("field=text&before_chars=1", (400, "invalid_window")),
        ("field=text&q=a&after_chars=8193", (400, "invalid_window")),
        ("field=text&cursor=1", (400, "invalid_request")),
        ("field=secret", (403, "field_not_granted")),
        ("field=nope", (403, "field_not_granted")),
        ("field=body", (404, "field_not_found")),
        ("field=text&q=zzzz", (404, "query_not_found")),
        ("field=size", (422, "field_not_text")),
        (
            "field=text&connection_id=cin_x",
            (404, "connection_not_found"),
        ),
    ] {
        let (status, code) = refused(&server, &format!("{M1}?{query}"));
        assert_eq!((status, code.as_str()), expected, "{query}");
    }
    let (status, code) = refused(
        &server,
        "/v1/streams/messages/records/no/field-window?field=text",
    );
    assert_eq!((status, code.as_str()), (404, "not_found"));
}
