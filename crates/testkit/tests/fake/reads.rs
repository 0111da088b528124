//! Records, aggregates, schema and the calls that are remembered.

use serde_json::{Value, json};
use testkit::fake::{
    Connector, Expand, FakeServer, Field, ListShape, Quirk, State, Stream, World, fixtures,
};

use super::ask::{get, ok, refused, send};

fn keys(body: &Value) -> Vec<String> {
    let rows = body["data"].as_array().unwrap();
    rows.iter()
        .map(|row| row["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn cursors_reach_every_row_once() {
    // QR-04
    let server = FakeServer::start(fixtures::rows(60));
    let mut seen = Vec::new();
    let mut target = "/v1/streams/mail/records?limit=25&count=exact".to_owned();
    loop {
        let body = ok(&server, &target);
        assert_eq!(body["meta"]["count"], json!({"kind": "exact", "value": 60}));
        seen.extend(keys(&body));
        match body["next_cursor"].as_str() {
            Some(cursor) => {
                target = format!("/v1/streams/mail/records?limit=25&count=exact&cursor={cursor}");
            }
            None => break,
        }
    }
    let newest_first: Vec<String> = (0..60).rev().map(|i| format!("r{i:03}")).collect();
    assert_eq!(seen, newest_first);
    let elsewhere = target.replace("cursor=", "filter[folder]=sent&cursor=");
    assert_eq!(refused(&server, &elsewhere).1, "invalid_cursor");
    let (_, code) = refused(&server, "/v1/streams/mail/records?cursor=cur_2");
    assert_eq!(code, "invalid_cursor");
}

#[test]
fn bookmarks_bring_changes_and_tombstones() {
    let server = FakeServer::start(fixtures::rows(30));
    let first = ok(
        &server,
        "/v1/streams/mail/records?changes_since=beginning&limit=20",
    );
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = ok(
        &server,
        &format!("/v1/streams/mail/records?limit=20&cursor={cursor}"),
    );
    assert_eq!(keys(&first).len() + keys(&second).len(), 30);
    let bookmark = second["next_changes_since"].as_str().unwrap();
    let since = format!("/v1/streams/mail/records?changes_since={bookmark}");
    assert_eq!(keys(&ok(&server, &since)), Vec::<String>::new());
    server.change(|state| {
        state.world.put("c1", "mail", "new", json!({"id": "new"}));
        state.world.delete("c1", "mail", "r003");
    });
    let changes = ok(&server, &since);
    assert_eq!(keys(&changes), ["new", "r003"]);
    assert_eq!(changes["data"][1]["deleted"], json!(true));
}

#[test]
fn only_what_is_advertised_is_accepted() {
    // SC-08
    let server = FakeServer::start(fixtures::rows(10));
    for (query, expected) in [
        ("records?bogus=1", (400, "invalid_request")),
        ("records?filter=a", (400, "invalid_request")),
        ("records?filter[]=a", (400, "invalid_request")),
        ("records?filter[subject]=a", (400, "invalid_request")),
        (
            "records?filter[sent_at][lte]=2026-01-01",
            (400, "invalid_request"),
        ),
        (
            "records?filter[sent_at][gte]=soon",
            (400, "invalid_request"),
        ),
        ("records?filter[nope]=a", (403, "field_not_granted")),
        ("records?fields=nope", (403, "field_not_granted")),
        ("records?sort=size", (400, "invalid_sort")),
        ("records?order=up", (400, "invalid_request")),
        ("records?limit=101", (400, "invalid_request")),
        ("records?view=nope", (400, "invalid_request")),
        ("records?expand=thread", (400, "invalid_expand")),
        ("records/none", (404, "not_found")),
        ("aggregate?metric=median", (400, "invalid_request")),
        (
            "aggregate?metric=sum&field=folder",
            (400, "invalid_request"),
        ),
        (
            "aggregate?metric=count&group_by=subject",
            (400, "invalid_request"),
        ),
        (
            "aggregate?metric=count&group_by_time=sent_at",
            (400, "invalid_request"),
        ),
        ("aggregate?metric=count&limit=3", (400, "invalid_request")),
    ] {
        let (status, code) = refused(&server, &format!("/v1/streams/mail/{query}"));
        assert_eq!((status, code.as_str()), expected, "{query}");
    }
    assert_eq!(
        refused(&server, "/v1/streams/nope/records").1,
        "grant_stream_not_allowed"
    );
    assert_eq!(refused(&server, "/v1/nothing").0, 404);
    let body = ok(
        &server,
        "/v1/streams/mail/records?sort=sent_at&fields=subject&filter[size][gte]=3&filter[size][lt]=5&filter[folder]=inbox",
    );
    assert_eq!(keys(&body), ["r004"]);
    assert_eq!(body["data"][0]["data"], json!({"subject": "Subject 4"}));
}

#[test]
fn aggregates_count_sum_and_group() {
    let server = FakeServer::start(fixtures::rows(40));
    let ask = |query: &str| ok(&server, &format!("/v1/streams/mail/aggregate?{query}"));
    assert_eq!(ask("metric=count")["value"], json!(40));
    assert_eq!(ask("metric=sum&field=size")["value"], json!(780));
    assert_eq!(
        ask("metric=max&field=size&filter[folder]=sent")["value"],
        json!(39)
    );
    assert_eq!(
        ask("metric=min&field=sent_at")["value"],
        json!("2026-01-01T09:00:00Z")
    );
    assert_eq!(ask("metric=count_distinct&field=folder")["value"], json!(3));
    let grouped = ask("metric=count&group_by=folder&limit=2");
    assert_eq!(
        grouped["groups"],
        json!([{"key": "inbox", "count": 20}, {"key": "archive", "count": 10}])
    );
    assert_eq!(grouped["other_count"], json!(10));
    let summed = ask("metric=sum&field=size&group_by=folder&limit=1");
    assert_eq!(
        summed["groups"],
        json!([{"key": "inbox", "count": 20, "value": 370}])
    );
    let months =
        ask("metric=count&group_by_time=sent_at&granularity=month&time_zone=Europe/Berlin");
    assert_eq!(
        months["groups"],
        json!([{"key": "2026-01-01", "count": 28}, {"key": "2026-02-01", "count": 12}])
    );
    assert_eq!(months["time_zone"], json!("Europe/Berlin"));
}

#[test]
fn a_stream_of_several_connections_needs_one_named() {
    // AM-08
    let server = FakeServer::start(fixtures::multi());
    let (status, body) = get(&server, "/v1/streams/orders/records/o1");
    assert_eq!(
        (status, &body["error"]["code"]),
        (409, &json!("ambiguous_connection"))
    );
    assert_eq!(body["error"]["retry_with"], json!("connection_id"));
    let text = |connection: &str| {
        let target = format!("/v1/streams/orders/records/o1?connection_id={connection}");
        ok(&server, &target)["data"]["text"].clone()
    };
    assert_eq!(
        (text("cin_aaa"), text("cin_bbb")),
        (json!("LAPTOP"), json!("ORG"))
    );
    for n in [25, 1_000] {
        let server = FakeServer::start(fixtures::shared(n));
        let (_, body) = get(&server, "/v1/streams/repos/records");
        assert_eq!(
            body["error"]["available_connections"]
                .as_array()
                .unwrap()
                .len(),
            n
        );
    }
}

#[test]
fn relations_bring_their_children_up_to_the_limit() {
    let thread = Expand {
        name: "thread".to_owned(),
        target: "replies".to_owned(),
        foreign_key: "parent".to_owned(),
        default_limit: 2,
        max_limit: 3,
    };
    let connector = Connector::new("slack")
        .connection("c1", "Work")
        .stream(Stream::new("posts").field(Field::id("id")).expand(thread))
        .stream(
            Stream::new("replies")
                .field(Field::id("id"))
                .field(Field::id("parent")),
        );
    let mut world = World::default().with(connector);
    world.put("c1", "posts", "p1", json!({"id": "p1"}));
    for (reply, parent) in [("a", "p1"), ("b", "p2"), ("c", "p1"), ("d", "p1")] {
        world.put(
            "c1",
            "replies",
            reply,
            json!({"id": reply, "parent": parent}),
        );
    }
    let server = FakeServer::start(State::new(world));
    let record = ok(&server, "/v1/streams/posts/records/p1?expand=thread");
    let children = &record["expanded"]["thread"];
    assert_eq!(keys(children), ["a", "c"]);
    assert_eq!(children["has_more"], json!(true));
    let target = "/v1/streams/posts/records?expand=thread&expand_limit[thread]=3";
    let list = ok(&server, target);
    assert_eq!(
        keys(&list["data"][0]["expanded"]["thread"]),
        ["a", "c", "d"]
    );
    for query in [
        "expand=thread&expand_limit[thread]=4",
        "expand=thread&expand_limit[other]=1",
        "expand=other",
    ] {
        let (_, code) = refused(&server, &format!("/v1/streams/posts/records?{query}"));
        assert_eq!(code, "invalid_expand", "{query}");
    }
}

#[test]
fn the_schema_is_scoped_and_sized_as_asked() {
    let server = FakeServer::start(fixtures::schema());
    let compact = ok(
        &server,
        "/v1/schema?view=compact&stream=messages&connection_id=cin_s2",
    );
    assert_eq!(
        (&compact["connector_count"], &compact["stream_count"]),
        (&json!(1), &json!(1))
    );
    let slack = &compact["connectors"][0];
    assert_eq!(
        slack["granted_connections"],
        json!([{"connection_id": "cin_s2", "display_name": "Home"}])
    );
    let flags = &slack["streams"][0]["field_capabilities"];
    assert_eq!(
        flags["sent_at"],
        json!("t=timestamp,r=gte|lt,a=group_by_time")
    );
    assert_eq!(
        flags["sender"],
        json!("t=string,eq,a=count_distinct|group_by")
    );
    assert_eq!(refused(&server, "/v1/schema?detail=full").0, 400);
    let (_, code) = refused(&server, "/v1/schema?detail=full&stream=messages");
    assert_eq!(code, "ambiguous_schema_detail");
    let shared = ok(&server, "/v1/schema?detail=full&stream=channels");
    assert_eq!(shared["stream_count"], json!(1));
    let full = ok(
        &server,
        "/v1/schema?detail=full&stream=messages&connection_id=cin_g1",
    );
    let row = &full["connectors"][0]["streams"][0];
    assert_eq!(row["views"][0]["id"], json!("basic"));
    assert_eq!(row["expand_capabilities"][0]["max_limit"], json!(50));

    let lax = FakeServer::start(fixtures::schema_lax());
    let everything = ok(&lax, "/v1/schema?detail=full&stream=channels");
    assert_eq!(everything["stream_count"], json!(3));

    let xl = FakeServer::start(fixtures::schema_xl());
    let row = ok(
        &xl,
        "/v1/schema?detail=full&stream=stream_00_00&connection_id=cin_00_00",
    );
    let stream = &row["connectors"][0]["streams"][0];
    assert_eq!(stream["field_capabilities"].as_object().unwrap().len(), 40);
    let schema = &stream["field_capabilities"]["id"]["schema"];
    assert_eq!(schema.to_string().len(), 1_200);
    let index = ok(&xl, "/v1/schema?view=compact");
    assert_eq!(index["stream_count"], json!(1_800));
}

#[test]
fn older_shapes_hold_the_same_rows() {
    for (shape, pointer) in [
        (ListShape::Records, "/records/0/id"),
        (ListShape::DataRecords, "/data/records/0/id"),
        (ListShape::Bare, "/0/id"),
    ] {
        let mut state = fixtures::rows(3);
        state.list_shape = shape;
        let server = FakeServer::start(state);
        let body = ok(&server, "/v1/streams/mail/records");
        assert_eq!(body.pointer(pointer), Some(&json!("r002")), "{shape:?}");
    }
    let state = fixtures::schema()
        .with(Quirk::WrapsSchemaInData)
        .with(Quirk::RepeatsStreamsAtTop);
    let body = ok(&FakeServer::start(state), "/v1/schema");
    assert_eq!(body["data"]["streams"].as_array().unwrap().len(), 3);
}

#[test]
fn projection_keeps_secrets_unless_the_server_ignores_it() {
    let target = "/v1/streams/mail/records/m1?fields=subject";
    let strict = ok(&FakeServer::start(fixtures::proj_ok()), target);
    assert!(!strict.to_string().contains("SECRET"));
    let careless = ok(&FakeServer::start(fixtures::proj()), target).to_string();
    for n in 1..=4 {
        assert!(careless.contains(&format!("SECRET{n}")));
    }
}

#[test]
fn calls_are_remembered_as_sent_and_as_meant() {
    let server = FakeServer::start(fixtures::odd(&[7]));
    let target = "/v1/streams/messages/records/a%2Fb%3Ac?connection_id=cin_slack";
    assert_eq!(ok(&server, target)["id"], json!("a/b:c"));
    let calls = server.calls();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].raw_target, target);
    assert_eq!(
        calls[0].segments,
        ["v1", "streams", "messages", "records", "a/b:c"]
    );
    assert_eq!(
        calls[0].query,
        [("connection_id".to_owned(), "cin_slack".to_owned())]
    );
    assert_eq!(
        calls[0].authorization.as_deref(),
        Some("Bearer scoped-token")
    );
    server.clear_calls();
    assert!(server.calls().is_empty());
}

#[test]
fn only_the_right_token_is_admitted() {
    // TS-06
    let server = FakeServer::start(fixtures::multi());
    for token in [None, Some("other")] {
        assert_eq!(send(&server, "/v1/schema", token).unwrap().status, 401);
    }
    let forbidden = FakeServer::start(fixtures::forbidden("grant_revoked"));
    assert_eq!(
        refused(&forbidden, "/v1/search?q=a"),
        (403, "grant_revoked".to_owned())
    );
    let owner = ok(&FakeServer::start(fixtures::owner()), "/v1/schema");
    assert_eq!(owner["bearer"]["token_kind"], json!("owner"));
}
