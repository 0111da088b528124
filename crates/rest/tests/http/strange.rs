//! Requests nobody meant to send. Whatever comes, the answer is one the document knows, and never that something failed
//! inside.

use axum::body::Body;
use axum::http::{Method, Request};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::fixture::World;

fn words(words: &'static str) -> impl Strategy<Value = String> {
    let words: Vec<&str> = words.split(' ').collect();
    prop::sample::select(words).prop_map(str::to_owned)
}

fn values() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[a-z_]{1,6}",
        "-?[0-9]{1,20}",
        "%[0-9a-f]{2}",
        words(
            "2026-03-01 received_at -received_at size_bytes subject from_email messages attachments"
        ),
        words("count day exact beginning overdraft"),
    ]
}

fn names() -> impl Strategy<Value = String> {
    let plain = words(
        "limit cursor order sort fields view count window changes_since q streams[] metric field group_by \
         group_by_time granularity time_zone offset_chars limit_chars before_chars expand detail stream connection_id",
    );
    let nested = words("filter expand_limit fields");
    prop_oneof![
        6 => plain,
        2 => (nested, values()).prop_map(|(name, key)| format!("{name}[{key}]")),
        1 => (values(), values()).prop_map(|(key, op)| format!("filter[{key}][{op}]")),
    ]
}

fn targets() -> impl Strategy<Value = String> {
    let paths = prop::sample::select(vec![
        "/v1/schema",
        "/v1/streams",
        "/v1/streams/messages",
        "/v1/streams/messages/records",
        "/v1/streams/messages/records/m1",
        "/v1/streams/messages/records/m1/field-window",
        "/v1/streams/messages/aggregate",
        "/v1/streams/%00/records/%2e%2e",
        "/v1/streams/events/records/%5B%22a%22%5D",
        "/v1/search",
        "/v1/search?q=overdraft&",
        "/v1/streams/messages/records/m1/field-window?field=subject&",
        "/v1/streams/messages/aggregate?metric=count&",
        "/v1/blobs/%20",
    ]);
    let pairs = prop::collection::vec((names(), values()), 0..4);
    let connection = prop::sample::select(vec!["", "connection_id=work&", "connection_id=zz&"]);
    (paths, connection, pairs).prop_map(|(path, connection, pairs)| {
        let pairs: Vec<String> = pairs
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let mark = if path.contains('?') { "" } else { "?" };
        format!("{path}{mark}{connection}{}", pairs.join("&"))
    })
}

#[test]
fn no_request_is_too_strange_to_answer() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = runtime.block_on(World::new());
    let (client, _) = world.grant(&["work"], &["messages"], &["id", "subject", "received_at"]);
    let config = Config {
        failure_persistence: None,
        ..Config::with_cases(400)
    };
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(&(targets(), any::<bool>()), |(target, owner)| {
        let token = if owner { &world.owner } else { &client };
        let answer = runtime.block_on(world.get(token, &target));
        prop_assert!(answer.status.as_u16() < 500, "{target}: {}", answer.body);
        if !owner {
            let text = String::from_utf8_lossy(&answer.bytes);
            prop_assert!(
                !text.contains("hunter2") && !text.contains("said the bank"),
                "{target}: {text}"
            );
        }
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn no_body_is_too_strange_to_take() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = runtime.block_on(World::new());
    let config = Config {
        failure_persistence: None,
        ..Config::with_cases(60)
    };
    let mut runner = TestRunner::new(config);
    let targets = prop::sample::select(vec![
        "/v1/ingest/messages?connection_id=work",
        "/v1/connectors",
        "/v1/blobs?connection_id=work&stream=attachments&record_key=a1",
    ]);
    let bodies = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..60),
        prop::collection::vec(any::<u8>(), 0..60).prop_map(|mut tail| {
            tail.splice(0..0, [0x1f, 0x8b, 8, 0]);
            tail
        }),
        "(\\{\"key\":\"[a-z]\",\"data\":\\{[a-z\":]{0,9}\\}\\}\n){0,3}"
            .prop_map(String::into_bytes),
    ];
    let outcome = runner.run(&(targets, bodies), |(target, body)| {
        let request = Request::builder()
            .method(Method::POST)
            .uri(target)
            .header("authorization", format!("Bearer {}", world.owner));
        let answer = runtime.block_on(world.send(request.body(Body::from(body)).unwrap()));
        prop_assert!(answer.status.as_u16() < 500, "{target}: {}", answer.body);
        Ok(())
    });
    outcome.unwrap();
}
