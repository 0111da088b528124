//! Windows into long fields: exact, continuable, and never more than the grant gives.

use contract::error::ErrorCode;
use contract::window::WindowSelector;
use serde_json::json;

use crate::fixture::*;

fn selector(offset: usize, limit: usize) -> WindowSelector {
    WindowSelector {
        offset_chars: Some(offset),
        limit_chars: Some(limit),
        ..WindowSelector::default()
    }
}

fn find(q: &str) -> WindowSelector {
    WindowSelector {
        q: Some(q.to_owned()),
        ..WindowSelector::default()
    }
}

#[test]
fn what_is_no_text_is_said_to_be_none() {
    let world = World::mail();
    world.message(
        &json!({"id": "m1", "size_bytes": 3, "labels": ["x"], "subject": null, "body": "tea"}),
    );
    let reader = world.mail_client(json!([{"name": "messages", "fields": ["size_bytes", "labels", "subject", "body", "from_email"]}]));
    for (name, kind) in [
        ("size_bytes", "number"),
        ("labels", "array"),
        ("subject", "null"),
    ] {
        let error = reader
            .window(window("m1", name, WindowSelector::default()))
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::FieldNotText);
        assert!(
            error
                .message
                .starts_with(&format!("field '{name}' is {kind}, "))
        );
    }
    let answer = reader.window(window("m1", "from_email", WindowSelector::default()));
    assert_eq!(code(answer), ErrorCode::FieldNotFound);
    let answer = reader.window(window("m1", "body", find("coffee")));
    assert_eq!(
        refusal(answer),
        (ErrorCode::QueryNotFound, Some("q".to_owned()))
    );
}

#[test]
fn selectors_are_checked_before_anything_else() {
    let world = World::mail();
    let bad = WindowSelector {
        before_chars: Some(3),
        ..WindowSelector::default()
    };
    let answer = world.owner().window(window("nope", "body", bad));
    assert_eq!(
        refusal(answer),
        (ErrorCode::InvalidWindow, Some("q".to_owned()))
    );
    let answer = world.owner().window(window("nope", "body", selector(0, 0)));
    assert_eq!(code(answer), ErrorCode::InvalidWindow);
}

#[test]
fn records_and_windows_hold_to_the_grant_whatever_a_handle_says() {
    // PA-08
    let world = World::mail();
    world.connect(MAIL, "home", "Home");
    world.put("home", "messages", &json!({"id": "m1", "body": "private"}));
    world.message(&json!({"id": "m1", "body": "public", "secret": "x"}));
    let reader = world.mail_client(json!([{"name": "messages", "fields": ["body"]}]));
    let mut query = window("m1", "body", WindowSelector::default());
    assert_eq!(
        reader.window(query.clone()).unwrap()["window"]["text"],
        "public"
    );
    query.connection_id = Some("home".to_owned());
    assert_eq!(code(reader.window(query)), ErrorCode::ConnectionNotFound);
    let answer = reader.window(window("m1", "secret", WindowSelector::default()));
    assert_eq!(code(answer), ErrorCode::FieldNotGranted);
    let mut query = one("m1");
    query.connection_id = Some("home".to_owned());
    assert_eq!(code(reader.record(query)), ErrorCode::ConnectionNotFound);
}

#[test]
fn the_owner_may_read_what_is_not_declared() {
    let world = World::mail();
    world.message(&json!({"id": "m1", "undeclared": "long text"}));
    let answer = world
        .owner()
        .window(window("m1", "undeclared", WindowSelector::default()));
    assert_eq!(answer.unwrap()["window"]["text"], "long text");
}
