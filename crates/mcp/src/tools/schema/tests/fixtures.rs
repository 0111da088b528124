//! Servers and grants the schema is read from.

use std::fmt::Write as _;

use contract::schema::Schema;
use serde_json::{Map, Value, json};

use crate::stub::Stub;

fn can(usable: bool) -> Value {
    json!({"declared": usable, "usable": usable})
}

fn field(kind: &str, also: &Value) -> Value {
    let mut field = json!({"schema": {"type": "string"}, "type": kind, "granted": true,
        "exact_filter": can(false), "range_filter": can(false), "lexical_search": can(false),
        "semantic_search": can(false), "aggregation": {}});
    for (name, value) in also.as_object().unwrap() {
        field[name] = value.clone();
    }
    field
}

fn messages(connections: &Value) -> Value {
    json!({"object": "stream_metadata", "name": "messages", "primary_key": ["id"], "cursor_field": "sent_at",
        "field_capabilities": {
            "id": field("string", &json!({"exact_filter": can(true)})),
            "sent_at": field("timestamp", &json!({
                "range_filter": {"declared": true, "usable": true, "operators": ["gte", "lt"]},
                "aggregation": {"group_by_time": can(true)}})),
            "sender": field("string", &json!({"exact_filter": can(true),
                "aggregation": {"count_distinct": can(true), "group_by": can(true)}})),
            "text": field("string", &json!({"lexical_search": can(true)})),
            "amount": field("number", &json!({"schema": {"type": "number"},
                "aggregation": {"sum": can(true), "min": can(true), "max": can(true)}}))},
        "query": {"aggregations": {"count": true}},
        "views": [{"id": "basic", "label": "Basic", "fields": ["id", "sender"]}],
        "relationships": [],
        "expand_capabilities": [{"name": "thread", "stream": "threads", "target_stream": "threads",
            "cardinality": "has_many", "granted": true, "usable": true, "default_limit": 5, "max_limit": 50}],
        "granted_connections": connections})
}

fn channels(connections: &Value) -> Value {
    json!({"object": "stream_metadata", "name": "channels", "primary_key": ["id"],
        "field_capabilities": {"id": field("string", &json!({})), "topic": field("string", &json!({}))},
        "query": {}, "views": [], "expand_capabilities": [], "granted_connections": connections})
}

/// FX-SCHEMA, in full.
pub(super) fn grant() -> Value {
    let slack = json!([{"connection_id": "cin_s1", "display_name": "Work"},
        {"connection_id": "cin_s2", "display_name": "Home"}]);
    let work = json!([slack[0]]);
    let gmail = json!([{"connection_id": "cin_g1"}]);
    json!({"object": "schema",
        "bearer": {"token_kind": "client", "scope": "grant", "grant_id": "grt_1"},
        "connectors": [
            {"object": "connector", "connector_key": "slack", "connector_id": "slack",
                "source": {"kind": "connector", "id": "https://registry.test/slack", "display_name": "Slack"},
                "stream_count": 2, "streams": [messages(&slack), channels(&work)]},
            {"object": "connector", "connector_key": "gmail", "connector_id": "gmail", "stream_count": 1,
                "streams": [messages(&gmail)]}],
        "links": {"self": "/v1/schema"}, "meta": {"count": {"kind": "none"}, "warnings": []}})
}

/// What a server that honours its parameters makes of a grant.
pub(super) fn narrowed(grant: &Value, stream: Option<&str>, connection: Option<&str>) -> Value {
    let mut grant = grant.clone();
    for connector in grant["connectors"].as_array_mut().unwrap() {
        let streams = connector["streams"].as_array_mut().unwrap();
        for row in streams.iter_mut() {
            let listed = row["granted_connections"].as_array_mut().unwrap();
            listed.retain(|one| connection.is_none_or(|id| one["connection_id"] == id));
        }
        streams.retain(|row| {
            stream.is_none_or(|name| row["name"] == name)
                && !row["granted_connections"].as_array().unwrap().is_empty()
        });
    }
    let connectors = grant["connectors"].as_array_mut().unwrap();
    connectors.retain(|connector| !connector["streams"].as_array().unwrap().is_empty());
    grant
}

pub(super) fn compact(document: &Value) -> Value {
    let read: Schema = serde_json::from_str(&document.to_string()).unwrap();
    let mut compact = serde_json::to_value(read.compact()).unwrap();
    // Our types know no label of a source; other servers send one.
    let connectors = compact["connectors"].as_array_mut().unwrap().iter_mut();
    for (compact, full) in connectors.zip(document["connectors"].as_array().unwrap()) {
        if let Some(source) = full.get("source") {
            compact["source"] = source.clone();
        }
    }
    compact
}

/// A server that honours view, stream, connection and detail.
pub(super) fn server(grant: &Value, asked: &[(Option<&str>, Option<&str>)]) -> Stub {
    let mut stub = Stub::default();
    for (stream, connection) in asked {
        let narrowed = narrowed(grant, *stream, *connection);
        let mut selectors = String::new();
        for (name, value) in [("stream", stream), ("connection_id", connection)] {
            if let Some(value) = value {
                let _ = write!(selectors, "&{name}={value}");
            }
        }
        stub = stub.on(
            &format!("/v1/schema?view=compact{selectors}"),
            compact(&narrowed),
        );
        stub = stub.on(&format!("/v1/schema?detail=full{selectors}"), narrowed);
    }
    stub
}

/// FX-SCHEMA-LAX: everything in full, whatever was asked.
pub(super) fn lax() -> Stub {
    Stub::default().on("/v1/schema", grant())
}

fn accounts(connector: usize, stream: usize) -> Vec<Value> {
    let many = if (connector, stream) == (0, 0) { 12 } else { 1 };
    let account = |n| {
        json!({"connection_id": format!("cin_{connector:02}_{n:02}"),
            "display_name": format!("Account {connector} {n}")})
    };
    (0..many).map(account).collect()
}

/// One connector of FX-SCHEMA-XL in full: each field with a JSON Schema of 1,200 characters, told twice.
pub(super) fn extra_large_connector() -> Value {
    let schema = json!({"type": "string", "description": "d".repeat(1_160)});
    let also = json!({"schema": schema, "exact_filter": can(true),
        "aggregation": {"count_distinct": can(true), "group_by": can(true)}});
    let fields: Map<String, Value> = (0..40)
        .map(|n| (format!("field_name_{n:02}"), field("string", &also)))
        .collect();
    let properties: Map<String, Value> = fields
        .keys()
        .map(|name| (name.clone(), schema.clone()))
        .collect();
    let streams: Vec<Value> = (0..3)
        .map(|s| {
            json!({"object": "stream_metadata", "name": format!("stream_00_{s:02}"),
                "primary_key": ["field_name_00"], "cursor_field": "field_name_01",
                "schema": {"type": "object", "properties": properties},
                "field_capabilities": fields, "granted_connections": accounts(0, s),
                "expand_capabilities": [], "views": [], "query": {}})
        })
        .collect();
    json!({"object": "schema", "connectors": [{"connector_key": "connector_00", "streams": streams}]})
}
