//! Records that point at the one they are related to.

use contract::error::ErrorCode;
use contract::query::{ExpandRequest, RecordQuery};
use serde_json::{Value, json};

use crate::fixture::*;

/// Mail whose attachments are related to the message they belong to.
fn world_that_points() -> World {
    let pointing = MAIL.replacen(
        r#""query": { "search": { "lexical_fields": ["name"] } }"#,
        r#""relationships": [{ "name": "message", "stream": "messages", "foreign_key": "message_id", "cardinality": "has_one" }],
           "query": { "search": { "lexical_fields": ["name"] }, "expand": [{ "name": "message" }] }"#,
        1,
    );
    assert_ne!(pointing, MAIL);
    let world = World::empty();
    world.connect(&pointing, "work", "Work mail");
    world.message(&json!({"id": "m1", "subject": "One", "secret": "s"}));
    for (id, message) in [("a1", "m1"), ("a2", "gone")] {
        let attachment = json!({"id": id, "message_id": message, "name": "plan.pdf"});
        world.attachment(&attachment);
    }
    world.attachment(&json!({"id": "a3", "name": "plan.pdf"}));
    world
}

#[test]
fn a_record_brings_along_the_one_it_points_at() {
    // TR-30
    let world = world_that_points();
    let ask = |reader: &Reader, id: &str| {
        let mut query = RecordQuery::new(stream("attachments"), id);
        query.expand = vec![ExpandRequest {
            name: "message".to_owned(),
            limit: None,
        }];
        // What is asked for of the record does not decide what it points at.
        query.projection = fields(&["name"]);
        reader.record(query)
    };
    let owner = world.owner();
    let record = ask(&owner, "a1").unwrap();
    assert_eq!(record["data"], json!({"name": "plan.pdf"}));
    assert_eq!(record["expanded"]["message"]["data"]["subject"], "One");
    for id in ["a2", "a3"] {
        assert_eq!(ask(&owner, id).unwrap()["expanded"]["message"], Value::Null);
    }
    let streams = |attachment: &[&str], keys: Value| {
        let mut messages =
            json!({"name": "messages", "instance_ids": ["work"], "fields": ["id", "subject"]});
        if keys.is_array() {
            messages["resources"] = keys;
        }
        json!([messages, {"name": "attachments", "instance_ids": ["work"], "fields": attachment}])
    };
    let seeing = world.mail_client(streams(&["id", "message_id", "name"], Value::Null));
    let record = ask(&seeing, "a1").unwrap();
    assert_eq!(
        record["expanded"]["message"]["data"],
        json!({"id": "m1", "subject": "One"})
    );
    // Whoever may not see the field that points, or the record it points at, is not led there.
    let blind = world.mail_client(streams(&["id", "name"], Value::Null));
    let refused = ask(&blind, "a1").unwrap_err();
    assert_eq!(refused.code, ErrorCode::InsufficientScope);
    let limited = streams(&["id", "message_id", "name"], json!(["another"]));
    let limited = world.mail_client(limited);
    assert_eq!(
        ask(&limited, "a1").unwrap()["expanded"]["message"],
        Value::Null
    );
}

#[test]
fn a_compound_key_is_pointed_at_by_its_text_from_either_side() {
    // TR-30
    let declared = json!({
        "protocol_version": "0.1.0", "source": {"kind": "connector", "id": "https://a.example/budget"}, "declaration_version": "1",
        "streams": [
            {"name": "accounts", "semantics": "mutable_state", "primary_key": ["bank", "number"],
             "schema": {"properties": {"bank": {"type": "string"}, "number": {"type": "string"}}},
             "relationships": [{"name": "balances", "stream": "balances", "foreign_key": "account", "cardinality": "has_many"}],
             "query": {"expand": [{"name": "balances"}]}},
            {"name": "balances", "semantics": "append_only", "primary_key": ["id"],
             "schema": {"properties": {"id": {"type": "string"}, "account": {"type": "string"}}},
             "relationships": [{"name": "of", "stream": "accounts", "foreign_key": "account", "cardinality": "has_one"}],
             "query": {"expand": [{"name": "of"}]}}
        ]
    });
    let world = World::empty();
    world.connect(&declared.to_string(), "money", "Money");
    let key = contract::key::RecordKey::compound(&["a".to_owned(), "1".to_owned()]).unwrap();
    let body = contract::json::RecordBody::parse(r#"{"bank":"a","number":"1"}"#.to_owned());
    let op = store::records::ChangeOp::Upsert(body.unwrap());
    world.change_at("2026-05-01T00:00:00Z", ("money", "accounts"), key, op);
    let balance = json!({"id": "b1", "account": r#"["a","1"]"#});
    world.put("money", "balances", &balance);
    world.put("money", "balances", &json!({"id": "b2", "account": "1"}));
    let expanded = |of: &str, id: &str, name: &str| {
        let mut query = RecordQuery::new(stream(of), id);
        query.expand = vec![ExpandRequest {
            name: name.to_owned(),
            limit: None,
        }];
        world.owner().record(query).unwrap()["expanded"][name].clone()
    };
    let balances = expanded("accounts", r#"["a","1"]"#, "balances");
    assert_eq!(ids(&balances), ["b1"], "{balances}");
    assert_eq!(expanded("balances", "b1", "of")["data"]["bank"], "a");
    assert_eq!(expanded("balances", "b2", "of"), Value::Null);
}
