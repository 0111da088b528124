//! Servers that fail, lie or are old: every outcome is typed, bounded and leads on. Also UP-09.

use serde_json::{Value, json};
use testkit::fake::{Call, ErrorShape, Failure, Misbehaviour, Quirk, Reply, RequestId, fixtures};

use crate::host::each_way;
use crate::paging::{ids, read_all};

fn every_tool() -> [(&'static str, Value); 6] {
    [
        ("schema", json!({})),
        ("search", json!({"query": "maker"})),
        (
            "query_records",
            json!({"stream": "orders", "connection_id": "cin_aaa"}),
        ),
        (
            "aggregate",
            json!({"stream": "orders", "connection_id": "cin_aaa", "metric": "count"}),
        ),
        ("fetch", json!({"id": "cin_aaa/orders:o1"})),
        (
            "read_record_field",
            json!({"id": "cin_aaa/orders:o1", "field_path": "text"}),
        ),
    ]
}

#[test]
fn every_failure_of_a_server_is_a_typed_error_of_every_tool() {
    let failures = [
        (Misbehaviour::Html(200), "rs_bad_response"),
        (Misbehaviour::Html(502), "http_502"),
        (Misbehaviour::TruncatedJson, "rs_bad_response"),
        (Misbehaviour::BrokenBody, "rs_bad_response"),
        (Misbehaviour::InvalidUtf8, "rs_bad_response"),
        (
            Misbehaviour::Redirect("https://elsewhere.test/".to_owned()),
            "rs_bad_response",
        ),
        (Misbehaviour::Reset, "rs_unreachable"),
        (Misbehaviour::Scalar, "rs_bad_response"),
        (Misbehaviour::Empty, "rs_bad_response"),
    ];
    for (how, code) in failures {
        each_way(&fixtures::multi().misbehaving("/", how.clone()), |caller| {
            for (tool, args) in every_tool() {
                let (answer, calls) = caller.asked(tool, args);
                assert!(answer.is_error, "{tool} {how:?}: {}", answer.text);
                assert_eq!(answer.code(), code, "{tool} {how:?}: {}", answer.text);
                assert!(!answer.text.contains("<html"), "{}", answer.text);
                assert!(
                    answer.text.contains("next:") || code.starts_with("http_"),
                    "{tool} {how:?}: {}",
                    answer.text
                );
                assert_eq!(calls.len(), 1, "asked once: {tool} {how:?}");
            }
        });
    }
}

// UP-09
#[test]
fn errors_in_any_shape_keep_code_status_and_request_id() {
    let failure = Failure::new(429, "rate_limit_exceeded", "Slow down");
    for (shape, code) in [
        (ErrorShape::Object, "rate_limit_exceeded"),
        (ErrorShape::OAuth, "rate_limit_exceeded"),
        (ErrorShape::Plain, "http_429"),
    ] {
        for header in [RequestId::Standard, RequestId::Prefixed] {
            let mut state =
                fixtures::multi().misbehaving("/v1", Misbehaviour::Fails(shape, failure.clone()));
            state.request_id = header;
            each_way(&state, |caller| {
                for (tool, args) in every_tool() {
                    let answer = caller.refused(tool, args);
                    assert_eq!(answer.code(), code, "{tool} {shape:?}");
                    assert_eq!(answer.structured["http_status"], 429);
                    let id = answer.structured["request_id"].as_str().unwrap();
                    assert!(
                        answer.text.contains(id) && id.starts_with("req_"),
                        "{}",
                        answer.text
                    );
                    assert!(answer.text.contains("Slow down"));
                }
            });
        }
    }
}

// A foreign error of any size is still a small one.
#[test]
fn a_huge_error_is_cut() {
    let long = "long ".repeat(2_000);
    let body = json!({"error": {"code": "weird_code", "message": long, "detail": {"more": long}, "param": long,
        "available_connections": (0..500).map(|i| json!({"connection_id": format!("c{i}"), "display_name": long})).collect::<Vec<_>>()}});
    let state = fixtures::multi().on("/v1", move |_: &Call| Reply::json(400, &body));
    each_way(&state, |caller| {
        for (tool, args) in every_tool() {
            let answer = caller.refused(tool, args);
            assert_eq!(answer.code(), "weird_code");
            assert!(answer.raw.to_string().len() <= 12_288);
        }
    });
}

#[test]
fn a_server_that_ignores_limits_and_always_has_more_is_still_bounded() {
    each_way(&fixtures::rows(60).with(Quirk::IgnoresLimit), |caller| {
        let page = caller.ok("query_records", json!({"stream": "mail", "limit": 3}));
        assert!(page.text.len() < 1_800);
        assert!(page.text.contains("record(s)"));
    });
    each_way(
        &fixtures::rows(20).with(Quirk::RefusesClientFilters),
        |caller| {
            let args = json!({"stream": "mail", "filter": {"folder": "sent"}});
            let answer = caller.refused("query_records", args);
            assert!(answer.text.contains("schema"), "{}", answer.text);
            assert_eq!(
                read_all(caller, "query_records", &json!({"stream": "mail"})).len(),
                20
            );
        },
    );
}

// LG-04: what is said of the window's end would be a circle.
#[test]
fn the_call_that_a_lying_window_prints_leads_on() {
    let window = json!({"text": "x".repeat(100), "start_chars": 0, "end_chars": 100, "total_chars": 1_000,
        "complete": false, "has_more": true, "next_offset_chars": 0});
    let body = json!({"object": "field_window", "field": {"path": "text", "type": "string"}, "window": window});
    let route = "/v1/streams/orders/records/o1/field-window";
    let state = fixtures::multi().on(route, move |_: &Call| Reply::json(200, &body));
    let args = json!({"id": "cin_aaa/orders:o1", "field_path": "text", "offset_chars": 0, "limit_chars": 300});
    each_way(&state, |caller| {
        let window = caller.ok("read_record_field", args.clone());
        assert!(window.text.contains("chars=0..100"), "{}", window.text);
        let next = &window.printed("read_record_field")[0];
        assert_eq!(next["offset_chars"], 100);
        let (_, calls) = caller.asked("read_record_field", next.clone());
        assert_eq!(calls[0].values("offset_chars"), ["100"]);
    });
}

// Answers that are JSON objects, but not what was asked for.
#[test]
fn objects_of_another_kind_are_refused_or_empty_never_invented() {
    for body in [
        json!({}),
        json!({"ok": true}),
        json!({"data": {}}),
        json!({"data": null}),
        json!([]),
        json!({"data": [1, "two", null]}),
    ] {
        let told = body.clone();
        let state = fixtures::multi().on("/v1", move |_: &Call| Reply::json(200, &told));
        each_way(&state, |caller| {
            for (tool, args) in every_tool() {
                let answer = caller.call(tool, args);
                assert!(answer.raw.to_string().len() < 4_096, "{tool} {body}");
                if matches!(tool, "schema" | "read_record_field") && !answer.is_error {
                    assert!(answer.text.contains("0 "), "{tool} {body}: {}", answer.text);
                }
                assert_eq!(ids(&answer.text), [""; 0], "{tool} {body}: {}", answer.text);
            }
        });
    }
}
