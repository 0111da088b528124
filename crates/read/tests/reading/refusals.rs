//! What is refused, with which code: the owner is told what does not exist, a client only that it is not granted.

use contract::aggregate::{Granularity, GroupBy, Grouping, Metric};
use contract::declaration::FilterOperator;
use contract::error::ErrorCode;
use contract::id::ViewId;
use contract::query::{
    Count, ExpandRequest, Filter, ListOptions, Order, Projection, Reading, RecordQuery,
    RecordsQuery, Sort,
};
use contract::schema::SchemaQuery;
use contract::search::SearchMode;
use contract::window::WindowSelector;
use serde_json::json;

use crate::fixture::*;

fn world() -> World {
    let world = World::mail();
    world.message(&json!({"id": "m1", "subject": "s", "size_bytes": 3, "secret": "x"}));
    world
}

fn client(world: &World) -> Reader {
    world.mail_client(
        json!([{"name": "messages", "fields": ["id", "subject", "size_bytes", "labels"]}]),
    )
}

#[test]
fn a_field_outside_the_grant_is_the_same_whether_it_exists_or_not() {
    let world = world();
    let (owner, client) = (world.owner(), client(&world));
    for name in ["secret", "nonsense"] {
        let mut listed = every();
        listed.projection = fields(&["id", name]);
        let mut single = one("m1");
        single.projection = fields(&[name]);
        let filter = filtered("messages", vec![Filter::exact(field(name), "1")]);
        let sum = aggregate(Metric::Sum(field(name)), None);
        let group = Grouping::new(GroupBy::Field(field(name)), None).unwrap();
        let grouped = aggregate(Metric::Count, Some(group));
        let mut search = words("s");
        search.streams = vec![stream("messages")];
        let search = search
            .filtered(vec![Filter::exact(field(name), "1")])
            .unwrap();
        let sort = ListOptions {
            sort: Some(Sort::parse(name).unwrap()),
            ..ListOptions::default()
        };
        let refused = [
            client.records(listed),
            client.record(single.clone()),
            client.records(filter.clone()),
            client.aggregate(sum),
            client.aggregate(grouped),
            client.search(search),
            client.list("messages", sort.clone()),
            client.window(window("m1", name, WindowSelector::default())),
        ];
        for answer in refused {
            let error = answer.unwrap_err();
            assert_eq!(error.code, ErrorCode::FieldNotGranted, "{name}: {error}");
            assert_eq!(
                error.message,
                format!("field '{name}' of stream 'messages' is not granted")
            );
        }
        let expected = if name == "secret" {
            None
        } else {
            Some(ErrorCode::UnknownField)
        };
        assert_eq!(owner.record(single).err().map(|error| error.code), expected);
        assert_eq!(
            owner.records(filter).err().map(|error| error.code),
            expected
        );
        assert_eq!(code(owner.list("messages", sort)), ErrorCode::InvalidSort);
    }
    let missing = owner.window(window("m1", "nonsense", WindowSelector::default()));
    assert_eq!(code(missing), ErrorCode::UnknownField);
}

#[test]
fn where_the_order_is_hidden_sort_is_refused_without_telling() {
    let world = world();
    let client = client(&world);
    let sort = |name: &str| ListOptions {
        sort: Some(Sort::parse(name).unwrap()),
        ..ListOptions::default()
    };
    assert_eq!(
        code(client.list("messages", sort("received_at"))),
        ErrorCode::FieldNotGranted
    );
    let error = client.list("messages", sort("subject")).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidSort);
    assert!(!error.message.contains("received_at"));
}

#[test]
fn a_stream_outside_the_grant_is_the_same_whether_it_exists_or_not() {
    let world = world();
    let (owner, client) = (world.owner(), client(&world));
    for name in ["events", "nonsense"] {
        let schema = SchemaQuery::parse(None, None, Some(stream(name)), None).unwrap();
        let mut search = words("s");
        search.streams = vec![stream(name)];
        for answer in [
            client.records(RecordsQuery::new(stream(name))),
            client.record(RecordQuery::new(stream(name), "m1")),
            client.stream(name),
            client.schema(schema),
            client.search(search.clone()),
        ] {
            let error = answer.unwrap_err();
            assert_eq!(error.code, ErrorCode::GrantStreamNotAllowed);
            assert_eq!(error.message, format!("the stream '{name}' is not granted"));
        }
        assert_eq!(owner.search(search).unwrap()["data"], json!([]));
    }
    let answer = owner.records(RecordsQuery::new(stream("nonsense")));
    assert_eq!(code(answer), ErrorCode::StreamNotDeclared);
}

#[test]
fn a_connection_outside_the_grant_is_the_same_whether_it_exists_or_not() {
    let world = world();
    world.connect(CHAT, "chat", "Chat");
    world.connect(MAIL, "home", "Home");
    let (owner, client) = (world.owner(), client(&world));
    for name in ["home", "chat", "nonsense", "", "../x"] {
        let mut records = every();
        records.connection_id = Some(name.to_owned());
        let mut search = words("s");
        search.connection_id = Some(name.to_owned());
        let schema = SchemaQuery::parse(None, None, None, Some(name.to_owned())).unwrap();
        for answer in [
            client.records(records.clone()),
            client.search(search),
            client.schema(schema),
            client.streams(Some(name)),
        ] {
            let error = answer.unwrap_err();
            assert_eq!(error.code, ErrorCode::ConnectionNotFound, "{name}");
            assert_eq!(
                error.message,
                format!("the connection '{name}' is not available")
            );
            assert_eq!(error.param.as_deref(), Some("connection_id"));
        }
        let blob = client.blob(&format!("blob_sha256_{}", "0".repeat(64)), Some(name));
        assert_eq!(blob.unwrap_err().code, ErrorCode::ConnectionNotFound);
        let known = ["home", "chat"].contains(&name);
        assert_eq!(owner.records(records).is_ok(), known);
    }
}

#[test]
fn a_stream_of_another_granted_connection_is_not_granted_here() {
    let world = world();
    world.connect(MAIL, "home", "Home");
    let reader = world.mail_client(json!([{"name": "messages", "fields": ["id"]},
            {"name": "events", "instance_ids": ["home"], "fields": ["note"]}]));
    let mut query = RecordsQuery::new(stream("events"));
    query.connection_id = Some("work".to_owned());
    assert_eq!(
        code(reader.records(query)),
        ErrorCode::GrantStreamNotAllowed
    );
}

#[test]
fn a_relation_outside_the_grant_is_the_same_whether_it_exists_or_not() {
    let world = world();
    let reader = world.mail_client(json!([{"name": "messages", "fields": ["id"]},
            {"name": "attachments", "fields": ["id", "name"]}]));
    let expand = |name: &str, limit| ListOptions {
        expand: vec![ExpandRequest {
            name: name.to_owned(),
            limit,
        }],
        ..ListOptions::default()
    };
    // The child stream is granted, but not the field that points at the record.
    for name in ["attachments", "receipt", "nonsense", "a.b"] {
        let error = reader.list("messages", expand(name, None)).unwrap_err();
        assert_eq!(error.code, ErrorCode::InsufficientScope, "{name}");
    }
    let owner = world.owner();
    for (name, limit) in [
        ("nonsense", None),
        ("attachments", Some(6)),
        ("attachments", Some(0)),
        ("receipt", Some(1)),
    ] {
        let answer = owner.list("messages", expand(name, limit));
        assert_eq!(code(answer), ErrorCode::InvalidExpand, "{name}");
    }
}

#[test]
fn a_view_that_is_not_wholly_granted_is_not_there() {
    let world = world();
    let client = client(&world);
    let ask = |reader: &Reader, view: &str| {
        let mut query = every();
        query.projection = Projection::View(ViewId::parse(view).unwrap());
        reader.records(query)
    };
    for view in ["everything", "nonsense"] {
        let error = ask(&client, view).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidRequest);
        assert_eq!(error.message, format!("Unknown view: {view}"));
        let hint = error.hint.as_deref();
        assert_eq!(hint, Some("pass one of envelope, or fields instead"));
    }
    assert!(ask(&client, "envelope").is_ok());
    assert!(ask(&world.owner(), "everything").is_ok());
}

#[test]
fn filters_must_fit_the_field() {
    let world = world();
    let client = client(&world);
    let range = |name: &str, operator, text: &str| {
        Filter::range(field(name), vec![(operator, text.to_owned())])
    };
    for filter in [
        Filter::exact(field("labels"), "x"),
        Filter::exact(field("size_bytes"), "big"),
        range("size_bytes", FilterOperator::Gt, "3"),
        range("size_bytes", FilterOperator::Gte, "1.5"),
        range("subject", FilterOperator::Gte, "a"),
    ] {
        let param = format!("filter[{}]", filter.field);
        let answer = refusal(client.records(filtered("messages", vec![filter])));
        assert_eq!(answer, (ErrorCode::InvalidRequest, Some(param)));
    }
}

#[test]
fn aggregates_are_computed_as_declared() {
    let world = world();
    let owner = world.owner();
    let by = |name: &str| Some(Grouping::new(GroupBy::Field(field(name)), None).unwrap());
    let by_time = |zone: &str| {
        let by = GroupBy::Time {
            field: field("received_at"),
            granularity: Granularity::Day,
            time_zone: Some(zone.to_owned()),
        };
        Some(Grouping::new(by, None).unwrap())
    };
    for (query, param) in [
        (aggregate(Metric::Sum(field("subject")), None), "field"),
        (aggregate(Metric::Count, by("size_bytes")), "group_by"),
        (aggregate(Metric::Count, by_time("Mars/X")), "time_zone"),
    ] {
        let answer = refusal(owner.aggregate(query));
        assert_eq!(answer, (ErrorCode::InvalidRequest, Some(param.to_owned())));
    }
    let mut query = aggregate(Metric::Count, None);
    query.stream = stream("events");
    let error = owner.aggregate(query).unwrap_err();
    assert_eq!(
        error.message,
        "Aggregations are not declared for stream 'events'"
    );
}

#[test]
fn a_record_that_cannot_be_seen_is_not_found() {
    let world = world();
    world.message(&json!({"id": "m2", "received_at": "2026-01-05T00:00:00Z"}));
    let reader = world.mail_client(json!([{"name": "messages", "fields": ["id", "subject"], "resources": ["m2", "m3"],
            "time_constraint": {"field": "received_at", "since": "2026-01-01", "until": "2026-01-05"}}]));
    // Out of time, not listed, never there, not even a key.
    for id in ["m2", "m1", "m3", "", "[1]", "\u{1}"] {
        let error = reader.record(one(id)).unwrap_err();
        assert_eq!(error.code, ErrorCode::NotFound, "{id:?}");
        assert_eq!(error.message, "Record not found");
        let answer = reader.window(window(id, "subject", WindowSelector::default()));
        assert_eq!(answer.unwrap_err(), error);
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    let world = world();
    let owner = world.owner();
    let mut search = words("s");
    search.mode = SearchMode::Semantic;
    let error = owner.search(search).unwrap_err();
    assert_eq!(error.code, ErrorCode::ModeNotSupported);
    assert!(
        error
            .hint
            .is_some_and(|hint| hint.contains("pdpp model add"))
    );
    let options = ListOptions {
        sort: Some(Sort::parse("received_at").unwrap()),
        order: Some(Order::Descending),
        ..ListOptions::default()
    };
    assert_eq!(
        code(owner.list("messages", options)),
        ErrorCode::InvalidSort
    );
    // A changes cursor goes on with the feed, which has no such options.
    world.message(&json!({"id": "m2"}));
    let mut query = limited("messages", 1);
    query.reading = Reading::Changes(contract::query::ChangesSince::Beginning);
    let page = owner.records(query).unwrap();
    let cursor = page["next_cursor"].as_str().map(str::to_owned);
    let options = |count, time_span| ListOptions {
        cursor: cursor.clone(),
        count,
        time_span,
        ..ListOptions::default()
    };
    assert!(owner.list("messages", options(Count::None, false)).is_ok());
    for (options, param) in [
        (options(Count::Exact, false), "count"),
        (options(Count::None, true), "window"),
    ] {
        let answer = refusal(owner.list("messages", options));
        assert_eq!(answer, (ErrorCode::InvalidRequest, Some(param.to_owned())));
    }
}
