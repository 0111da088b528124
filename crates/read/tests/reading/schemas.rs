//! The schema: the owner's whole, a client's restricted to what it may use.

use contract::error::ErrorCode;
use contract::json::RecordBody;
use contract::key::RecordKey;
use contract::schema::SchemaQuery;
use serde_json::{Value, json};
use store::records::ChangeOp;

use crate::fixture::*;

fn query(view: Option<&str>, name: Option<&str>, connection: Option<&str>) -> SchemaQuery {
    let connection = connection.map(str::to_owned);
    SchemaQuery::parse(view, None, name.map(stream), connection).unwrap()
}

fn whole(name: Option<&str>, connection: Option<&str>) -> SchemaQuery {
    query(None, name, connection)
}

fn compact(name: Option<&str>, connection: Option<&str>) -> SchemaQuery {
    query(Some("compact"), name, connection)
}

fn full(name: &str, connection: Option<&str>) -> SchemaQuery {
    let connection = connection.map(str::to_owned);
    SchemaQuery::parse(None, Some("full"), Some(stream(name)), connection).unwrap()
}

fn world() -> World {
    let world = World::mail();
    world.connect(MAIL, "home", "demo_mail");
    world.connect(CHAT, "chat", "Team chat");
    world
}

#[test]
fn the_owner_sees_the_whole_declaration() {
    let world = world();
    let answer = world.owner().schema(whole(None, None)).unwrap();
    assert_eq!(answer["object"], "schema");
    assert_eq!(
        answer["bearer"],
        json!({"token_kind": "owner", "scope": "owner"})
    );
    assert!(answer.get("stream_count").is_none());
    assert_eq!(
        answer["connectors"][1]["source"],
        json!({"kind": "connector", "id": "https://sources.example/demo_mail"})
    );
    assert_eq!(answer["connectors"][1]["stream_count"], 4);
    let messages = &answer["connectors"][1]["streams"][0];
    assert_eq!(messages["primary_key"], json!(["id"]));
    assert_eq!(messages["cursor_field"], "received_at");
    assert_eq!(
        messages["schema"]["$defs"],
        json!({"secret_shape": {"type": "object"}})
    );
    assert_eq!(messages["views"].as_array().unwrap().len(), 2);
    assert_eq!(
        messages["granted_connections"],
        json!([{"connection_id": "work", "display_name": "Work mail"}, {"connection_id": "home"}])
    );
    assert_eq!(messages["freshness"], json!({"status": "unknown"}));
    assert_eq!(
        messages["field_capabilities"]["size_bytes"],
        json!({"schema": {"type": "integer"}, "granted": true,
            "exact_filter": {"declared": true, "usable": true},
            "range_filter": {"declared": true, "usable": true, "operators": ["gte", "lte"]},
            "lexical_search": {"declared": false, "usable": false}, "semantic_search": {"declared": false, "usable": false},
            "aggregation": {"count_distinct": {"declared": true, "usable": true}, "group_by": {"declared": false, "usable": false},
                "group_by_time": {"declared": false, "usable": false}, "max": {"declared": true, "usable": true},
                "min": {"declared": true, "usable": true}, "sum": {"declared": true, "usable": true}}})
    );
    assert_eq!(
        messages["expand_capabilities"][0],
        json!({"name": "attachments", "stream": "attachments", "target_stream": "attachments", "cardinality": "has_many",
            "granted": true, "usable": true, "foreign_key": "message_id", "child_parent_key_field": "message_id",
            "default_limit": 2, "max_limit": 5})
    );
}

#[test]
fn the_newest_visible_record_is_told_of_each_stream() {
    let world = World::mail();
    world.connect(MAIL, "home", "demo_mail");
    let put = |connection: &str, id: &str, emitted_at: &str, received_at: &str| {
        let body = json!({"id": id, "received_at": received_at}).to_string();
        let op = ChangeOp::Upsert(RecordBody::parse(&body).unwrap());
        let key = RecordKey::single(id).unwrap();
        world.change_at(emitted_at, (connection, "messages"), key, op);
    };
    put("work", "m1", "2026-03-01T10:00:00Z", "2026-02-01T00:00:00Z");
    put(
        "home",
        "h1",
        "2026-03-01T12:30:00+02:00",
        "2026-02-01T00:00:00Z",
    );
    let answer = |reader: &dyn Fn(SchemaQuery) -> Value, query: SchemaQuery| {
        let answer = reader(query);
        answer["connectors"][0]["streams"][0]["freshness"]["captured_at"].clone()
    };
    let owner = |query| world.owner().schema(query).unwrap();
    let in_connection = |connection: &str| whole(Some("messages"), Some(connection));
    let all = || whole(Some("messages"), None);
    assert_eq!(answer(&owner, all()), "2026-03-01T10:30:00.000Z");
    assert_eq!(
        answer(&owner, in_connection("work")),
        "2026-03-01T10:00:00.000Z"
    );
    // A client is told of what it may see, and what is written later of what is there then.
    let client = world.mail_client(json!([{"name": "messages", "fields": ["id", "received_at"],
            "time_constraint": {"field": "received_at", "until": "2026-04-01T00:00:00Z"}}]));
    let client = |query| client.schema(query).unwrap();
    put("work", "m2", "2026-03-05T00:00:00Z", "2026-05-01T00:00:00Z");
    assert_eq!(
        answer(&owner, in_connection("work")),
        "2026-03-05T00:00:00.000Z"
    );
    assert_eq!(answer(&client, all()), "2026-03-01T10:00:00.000Z");
    put("work", "m3", "2026-03-06T00:00:00Z", "2026-03-01T00:00:00Z");
    assert_eq!(answer(&client, all()), "2026-03-06T00:00:00.000Z");
    world.delete("work", "messages", "m3");
    assert_eq!(answer(&client, all()), "2026-03-01T10:00:00.000Z");
    let compact = owner(compact(Some("messages"), None));
    assert!(!compact.to_string().contains("freshness"), "{compact}");
}

#[test]
fn a_limit_is_told_only_where_a_relation_accepts_one() {
    // Decision 10: what is one record at most takes no `expand_limit`.
    let world = world();
    let query = whole(Some("messages"), Some("work"));
    let answer = world.owner().schema(query).unwrap();
    let messages = &answer["connectors"][0]["streams"][0];
    assert_eq!(
        messages["expand_capabilities"][1],
        json!({"name": "receipt", "stream": "receipts", "target_stream": "receipts", "cardinality": "has_one",
            "granted": true, "usable": true, "foreign_key": "id", "child_parent_key_field": "id"})
    );
    assert_eq!(
        messages["query"]["expand"],
        json!([{"name": "attachments", "default_limit": 2, "max_limit": 5}, {"name": "receipt"}])
    );
}

#[test]
fn a_client_sees_exactly_what_it_may_use() {
    let world = world();
    let reader = world.mail_client(json!([{"name": "messages", "fields": ["subject", "id", "size_bytes", "profile"],
            "time_constraint": {"field": "received_at", "since": "2026-01-01"}, "resources": ["m2", "m1"]}]));
    let answer = reader.stream("messages").unwrap();
    let mut answer = answer;
    let capabilities = answer["field_capabilities"].take();
    assert_eq!(
        answer,
        json!({"object": "stream_metadata", "name": "messages", "description": "Letters, one record each.",
            "semantics": "mutable_state", "primary_key": ["id"], "selection": {"fields": true, "resources": true},
            "schema": {"type": "object", "required": ["id"], "additionalProperties": false, "properties": {
                "id": {"type": "string"}, "profile": {"type": "object"}, "size_bytes": {"type": "integer"},
                "subject": {"type": ["string", "null"], "x_pdpp_type": "text", "x_pdpp_role": "primary-title"}}},
            "query": {"range_filters": {"size_bytes": ["gte", "lte"]}, "search": {"lexical_fields": ["subject"]},
                "aggregations": {"count": true, "sum": ["size_bytes"], "min": ["size_bytes"], "max": ["size_bytes"],
                    "count_distinct": ["size_bytes"]}},
            "views": [{"id": "envelope", "label": "Envelope", "fields": ["subject", "id"]}], "relationships": [],
            "field_capabilities": null, "expand_capabilities": [], "freshness": {"status": "unknown"},
            "instance_ids": ["work"], "resources": ["m1", "m2"], "time_constraint": {"since": "2026-01-01"},
            "granted_connections": [{"connection_id": "work", "display_name": "Work mail"}],
            "meta": {"count": {"kind": "none"}, "warnings": []}})
    );
    let names: Vec<&str> = capabilities
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    // In the order they are declared.
    assert_eq!(names, ["id", "subject", "size_bytes", "profile"]);
    let schema = reader.schema(whole(None, None)).unwrap();
    assert_eq!(
        schema["bearer"],
        json!({"token_kind": "client", "scope": "grant", "grant_id": "grt_1", "client_id": "longview"})
    );
    let text = schema.to_string();
    for hidden in [
        "secret",
        "received_at",
        "body",
        "attachments",
        "receipt",
        "events",
        "home",
        "chat",
        "everything",
        "$defs",
    ] {
        assert!(!text.contains(hidden), "{hidden}");
    }
}

#[test]
fn a_compact_schema_says_each_field_in_a_few_flags() {
    let world = world();
    let answer = world
        .owner()
        .schema(compact(Some("messages"), Some("work")))
        .unwrap();
    assert_eq!(
        (
            &answer["detail"],
            &answer["connector_count"],
            &answer["stream_count"]
        ),
        (&json!("compact"), &json!(1), &json!(1))
    );
    let connector = &answer["connectors"][0];
    assert_eq!(
        connector["granted_connections"],
        json!([{"connection_id": "work", "display_name": "Work mail"}])
    );
    let fields = &connector["streams"][0]["field_capabilities"];
    assert_eq!(fields["subject"], "t=text,role=primary-title,eq,lex");
    assert_eq!(
        fields["received_at"],
        "t=string|null,eq,r=gte|gt|lte|lt,a=group_by_time|max|min"
    );
    assert_eq!(fields["labels"], "t=array");
    let client = world.mail_client(json!([{"name": "messages", "fields": ["received_at"]}]));
    let answer = client.schema(compact(None, None)).unwrap();
    let stream = &answer["connectors"][0]["streams"][0];
    assert_eq!(
        stream["field_capabilities"],
        json!({"received_at": fields["received_at"]})
    );
    // What no field tells: SC-10. A view that is not wholly granted has no name.
    let owned = &connector["streams"][0];
    assert_eq!(owned["views"], json!(["envelope", "everything"]));
    assert_eq!(owned["query"], json!({"aggregations": {"count": true}}));
    assert!(owned.get("time_constraint").is_none());
    assert_eq!(stream["views"], json!([]));
    assert_eq!(stream["query"], json!({"aggregations": {"count": true}}));
    let lately = world.mail_client(json!([{"name": "messages", "fields": ["received_at"],
            "time_constraint": {"field": "received_at", "since": "2026-03-01"}}]));
    let answer = lately.schema(compact(None, None)).unwrap();
    let limit = &answer["connectors"][0]["streams"][0]["time_constraint"];
    assert!(limit.to_string().contains("2026-03-01"), "{limit}");
}

#[test]
fn a_scoped_full_schema_holds_only_what_was_asked() {
    // SC-15, PA-07
    let world = world();
    let owner = world.owner();
    // TR-27: two connections of one connector are two sources, alike or not.
    let refused = owner.schema(full("events", None));
    let refused = refused.unwrap_err();
    assert_eq!(refused.code, ErrorCode::AmbiguousSchemaDetail);
    assert_eq!(refused.available_connections().len(), 2);
    let answer = owner.schema(full("events", Some("work"))).unwrap();
    assert_eq!(
        (&answer["connector_count"], &answer["stream_count"]),
        (&json!(1), &json!(1))
    );
    let names: Vec<&Value> = answer["connectors"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|connector| connector["streams"].as_array().unwrap())
        .map(|stream| &stream["name"])
        .collect();
    assert_eq!(names, ["events"]);
    let error = owner.schema(full("messages", None)).unwrap_err();
    assert_eq!(error.code, ErrorCode::AmbiguousSchemaDetail);
    assert_eq!(error.retry_with, Some("connection_id"));
    let listed: Vec<&str> = error
        .available_connections()
        .iter()
        .map(|one| one.connection_id.as_str())
        .collect();
    assert_eq!(listed, ["chat", "work", "home"]);
    let answer = owner.schema(full("messages", Some("home"))).unwrap();
    assert_eq!(
        answer["connectors"][0]["streams"][0]["granted_connections"],
        json!([{"connection_id": "home"}])
    );
}

#[test]
fn connections_granted_differently_are_told_apart() {
    let world = world();
    let reader = world.package(&[
        grant(
            "grt_1",
            "demo_mail",
            json!([{"name": "messages", "instance_ids": ["work"], "fields": ["id"]}]),
        ),
        grant(
            "grt_2",
            "demo_mail",
            json!([{"name": "messages", "instance_ids": ["home"], "fields": ["id", "subject"]}]),
        ),
    ]);
    let answer = reader.schema(whole(None, None)).unwrap();
    assert_eq!(
        answer["bearer"],
        json!({"token_kind": "mcp_package", "scope": "grant", "client_id": "longview", "grant_package_id": "gpkg_1"})
    );
    let connectors = answer["connectors"].as_array().unwrap();
    assert_eq!(connectors.len(), 1);
    let streams = connectors[0]["streams"].as_array().unwrap();
    let answer: Vec<(Value, usize)> = streams
        .iter()
        .map(|stream| {
            (
                stream["instance_ids"].clone(),
                stream["field_capabilities"].as_object().unwrap().len(),
            )
        })
        .collect();
    assert_eq!(answer, [(json!(["work"]), 1), (json!(["home"]), 2)]);
}

#[test]
fn a_relation_is_told_where_its_child_and_foreign_key_are_granted() {
    let world = world();
    let granted = |fields: Value| {
        let reader = world.mail_client(json!([{"name": "messages", "fields": ["id"]},
                {"name": "attachments", "fields": fields}]));
        let answer = reader.schema(whole(Some("messages"), None)).unwrap();
        answer["connectors"][0]["streams"][0].clone()
    };
    let answer = granted(json!(["message_id"]));
    assert_eq!(
        answer["relationships"],
        json!([{"name": "attachments", "stream": "attachments", "foreign_key": "message_id", "cardinality": "has_many"}])
    );
    assert_eq!(
        answer["query"]["expand"],
        json!([{"name": "attachments", "default_limit": 2, "max_limit": 5}])
    );
    let answer = granted(json!(["name"]));
    assert_eq!(
        (&answer["relationships"], &answer["expand_capabilities"]),
        (&json!([]), &json!([]))
    );
}
