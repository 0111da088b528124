//! Reads the bodies of the API, which REST sends and the commands print.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::answer::{
    Excerpt, Figures, Found, Hit, Id, Page, Read, Record, Refusal, Stream, WINDOW, Window,
};

pub(crate) fn text(value: &Value, name: &str) -> Option<String> {
    value[name].as_str().map(str::to_owned)
}

fn needed(value: &Value, name: &str) -> String {
    text(value, name).unwrap_or_else(|| panic!("no {name} in {value}"))
}

fn number(value: &Value, name: &str) -> u64 {
    value[name]
        .as_u64()
        .unwrap_or_else(|| panic!("no {name} in {value}"))
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value[name].as_array().into_iter().flatten()
}

pub(crate) fn refusal(error: &Value) -> Refusal {
    let connections = list(error, "available_connections");
    for one in list(error, "available_connections") {
        // AM-03: enough to ask again, and to say whose it is.
        assert!(
            one["grant_id"].is_string() && one["connector_key"].is_string(),
            "{error}"
        );
    }
    Refusal {
        code: needed(error, "code"),
        retry_with: text(error, "retry_with"),
        connections: connections
            .map(|one| needed(one, "connection_id"))
            .collect(),
        total: error["available_connection_count"].as_u64(),
    }
}

fn warnings(body: &Value) -> Vec<String> {
    let all = list(&body["meta"], "warnings");
    all.map(|warning| needed(warning, "code")).collect()
}

/// `count` of a list stands in an object, that of a search by itself.
fn count(body: &Value) -> Option<u64> {
    let count = &body["meta"]["count"];
    count.as_u64().or(count["value"].as_u64())
}

/// The cursor, which is there exactly when more follows, and then in the link too. A page that is counted in bytes has no
/// link that repeats it.
fn cursor(body: &Value) -> Option<String> {
    let cursor = text(body, "next_cursor");
    assert_eq!(cursor.is_some(), body["has_more"] == true, "{body}");
    let links = &body["links"];
    let has_next = links["next"].is_string();
    let is_short = links["self"].is_null();
    assert!(cursor.is_some() == has_next || is_short, "{body}");
    cursor
}

pub(crate) fn record(body: &Value) -> Record {
    let mut related = BTreeMap::new();
    for (name, children) in body["expanded"].as_object().into_iter().flatten() {
        let keys = list(children, "data").map(|child| needed(child, "id"));
        related.insert(name.clone(), keys.collect());
    }
    Record {
        id: Id {
            connection: text(body, "connection_id"),
            stream: needed(body, "stream"),
            record: needed(body, "id"),
        },
        label: text(body, "display_name"),
        deleted: body["deleted"] == true,
        data: body["data"].as_object().cloned().unwrap_or_default(),
        related,
    }
}

pub(crate) fn page(body: &Value) -> Page {
    Page {
        records: list(body, "data").map(record).collect(),
        cursor: cursor(body),
        bookmark: text(body, "next_changes_since"),
        count: count(body),
        warnings: warnings(body),
    }
}

fn excerpt(hit: &Value, body: &Value) -> Excerpt {
    let read = &body["read"];
    Excerpt {
        field: needed(body, "field_path"),
        preview: needed(body, "preview_text"),
        truncated: body["truncated"].as_bool().unwrap(),
        read: Read {
            id: Id {
                connection: text(hit, "connection_id"),
                stream: needed(hit, "stream"),
                record: needed(hit, "record_key"),
            },
            field: needed(body, "field_path"),
            offset: read["offset_chars"].as_u64().unwrap_or(0),
            limit: read["limit_chars"].as_u64().unwrap_or(WINDOW),
        },
    }
}

fn hit(body: &Value) -> Hit {
    Hit {
        id: Id {
            connection: text(body, "connection_id"),
            stream: needed(body, "stream"),
            record: needed(body, "record_key"),
        },
        connector: needed(body, "connector_id"),
        label: text(body, "display_name"),
        // Only matches are marked; a title that looks so is told apart by none.
        title: text(body, "title").map(|title| title.replace("<mark>", "").replace("</mark>", "")),
        excerpts: list(body, "evidence_excerpts")
            .map(|one| excerpt(body, one))
            .collect(),
    }
}

pub(crate) fn hits(body: &Value) -> Found {
    Found {
        hits: list(body, "data").map(hit).collect(),
        cursor: cursor(body),
        count: count(body),
        warnings: warnings(body),
    }
}

/// The part about the text, which all surfaces write alike, of a record's field.
pub(crate) fn window_of(id: Id, field: String, window: &Value) -> Window {
    let found = window["match_start_chars"]
        .as_u64()
        .zip(window["match_end_chars"].as_u64());
    Window {
        id,
        field,
        text: needed(window, "text"),
        start: number(window, "start_chars"),
        end: number(window, "end_chars"),
        total: number(window, "total_chars"),
        complete: window["complete"].as_bool().unwrap(),
        next: window["next_offset_chars"].as_u64(),
        previous: window["previous_offset_chars"].as_u64(),
        found,
    }
}

pub(crate) fn window(body: &Value) -> Window {
    let id = Id {
        connection: text(body, "connection_id"),
        stream: needed(body, "stream"),
        record: needed(body, "record_id"),
    };
    let field = text(&body["field"], "path").or(text(body, "field"));
    window_of(id, field.unwrap(), &body["window"])
}

pub(crate) fn figures(body: &Value) -> Figures {
    let group = |group: &Value| {
        let value = group.get("value").cloned();
        (group["key"].clone(), number(group, "count"), value)
    };
    let groups = body["groups"].as_array();
    Figures {
        value: body.get("value").cloned(),
        records: body["filtered_record_count"].as_u64(),
        groups: groups.map(|groups| groups.iter().map(group).collect()),
        other_count: body["other_count"].as_u64(),
    }
}

pub(crate) fn streams(body: &Value) -> Vec<Stream> {
    let mut streams = Vec::new();
    for connector in list(body, "connectors") {
        for stream in list(connector, "streams") {
            let own = stream.get("granted_connections");
            let connections = own.or(connector.get("granted_connections"));
            let connections = connections.and_then(Value::as_array).into_iter().flatten();
            let flags = |fields: &Map<String, Value>| {
                let written = fields.iter();
                let short = written.filter_map(|(name, flags)| Some((name, flags.as_str()?)));
                short
                    .map(|(name, flags)| (name.clone(), flags.to_owned()))
                    .collect()
            };
            let schemas = stream["schema"]["properties"].as_object();
            let schemas = schemas.into_iter().flatten();
            streams.push(Stream {
                connector: needed(connector, "connector_key"),
                name: needed(stream, "name"),
                connections: connections
                    .map(|connection| needed(connection, "connection_id"))
                    .collect(),
                fields: stream["field_capabilities"]
                    .as_object()
                    .map(flags)
                    .unwrap_or_default(),
                schemas: schemas
                    .map(|(name, schema)| (name.clone(), schema.to_string()))
                    .collect(),
            });
        }
    }
    streams.sort();
    streams
}
