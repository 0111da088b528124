//! The schema document as structured content: whole where it is small, else an index that still names every stream.

use serde_json::{Map, Value, json};

use crate::answer::schema::capability::{Capabilities, LEGEND};
use crate::answer::schema::document::{Connection, Connector, Document, Stream};
pub(super) use crate::answer::size;
use crate::budget;

/// What is kept of a row beside its connections and capabilities.
const KEPT: [&str; 11] = [
    "connector_key",
    "connector_id",
    "connector_display_name",
    "display_name",
    "connection_display_name",
    "connection_id",
    "record_count",
    "granted",
    "primary_key",
    "cursor_field",
    "source",
];
/// What is kept of the document beside its connectors.
const ENVELOPE: [&str; 8] = [
    "object",
    "bearer",
    "links",
    "meta",
    "next_cursor",
    "next_changes_since",
    "has_more",
    "count",
];
/// A member of a foreign server that is larger says more than an index should.
const MEMBER: usize = 1_024;

/// How much of each row is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// Identity, key, order and labels.
    Rows,
    /// Names, and connections with labels.
    Names,
    /// Names and connection ids.
    Ids,
    /// Lists of names, by the connections they share.
    Bare,
}

/// The index of all streams, without fields.
pub(super) fn index(document: &Document) -> Value {
    for depth in [Depth::Rows, Depth::Names, Depth::Ids] {
        let shaped = indexed(document, depth);
        if size(&shaped) <= budget::SCHEMA_STRUCTURED - MEMBER {
            return shaped;
        }
    }
    indexed(document, Depth::Bare)
}

/// The rows of one stream with everything each accepts, as far as there is room.
pub(super) fn scoped(document: &Document) -> Value {
    // Every row keeps its place in the index, so that is set aside first.
    let depths = [Depth::Rows, Depth::Names].into_iter();
    let depth = depths
        .map(|depth| (depth, size(&indexed(document, depth))))
        .find(|(_, bytes)| *bytes <= budget::SCHEMA_STRUCTURED / 2);
    let (depth, index) = depth.unwrap_or_else(|| {
        let bytes = size(&indexed(document, Depth::Ids));
        (Depth::Ids, bytes)
    });
    let mut room = (budget::SCHEMA_STRUCTURED - 2 * MEMBER).saturating_sub(index);
    let mut short = 0_usize;
    let mut connectors = Vec::new();
    for connector in &document.connectors {
        let mut rows = Vec::new();
        for row in &connector.streams {
            let detailed = detailed(connector, row);
            let bytes = size(&detailed);
            if bytes <= room {
                room -= bytes;
                rows.push(detailed);
            } else {
                short += 1;
                rows.push(Value::Object(row_of(connector, row, depth)));
            }
        }
        connectors.push(connector_of(connector, depth, rows));
    }
    let mut shaped = enveloped(document, connectors);
    if short > 0 {
        shaped["rows_without_field_capabilities"] = json!(short);
        shaped["next"] =
            json!("schema with this stream and one connection_id tells all of that row");
    }
    shaped
}

fn indexed(document: &Document, depth: Depth) -> Value {
    let connectors = document.connectors.iter().map(|connector| {
        let rows = connector.streams.iter();
        let rows = match depth {
            Depth::Bare => Vec::new(),
            _ => rows
                .map(|row| Value::Object(row_of(connector, row, depth)))
                .collect(),
        };
        connector_of(connector, depth, rows)
    });
    let mut shaped = enveloped(document, connectors.collect());
    if depth != Depth::Rows {
        shaped["rows"] =
            json!("by name only, because there are many; schema with a stream tells more");
    }
    shaped
}

/// What the document says beside its connectors: on whose behalf, warnings, the way on.
pub(super) fn envelope(document: &Document) -> Map<String, Value> {
    let mut members = Map::new();
    for name in ENVELOPE {
        if let Some(value) = document.members.get(name)
            && size(value) <= MEMBER
        {
            members.insert(name.to_owned(), value.clone());
        }
    }
    // It names sources that this answer may not be about, and connectors name them already.
    if let Some(Value::Object(meta)) = members.get_mut("meta") {
        meta.remove("package");
    }
    members
}

/// The document around its connectors.
fn enveloped(document: &Document, connectors: Vec<Value>) -> Value {
    let mut members = envelope(document);
    members.entry("object").or_insert_with(|| json!("schema"));
    members.insert("detail".to_owned(), json!("compact"));
    members.insert("connector_count".to_owned(), json!(connectors.len()));
    members.insert("stream_count".to_owned(), json!(document.rows().count()));
    let legend: Map<String, Value> = LEGEND
        .iter()
        .map(|(name, meaning)| ((*name).to_owned(), json!(meaning)))
        .collect();
    members.insert("field_capability_legend".to_owned(), Value::Object(legend));
    members.insert("connectors".to_owned(), Value::Array(connectors));
    Value::Object(members)
}

fn connector_of(connector: &Connector, depth: Depth, rows: Vec<Value>) -> Value {
    let mut members = Map::new();
    members.insert("connector_key".to_owned(), json!(connector.key));
    if depth == Depth::Rows {
        for name in [
            "object",
            "connector_id",
            "source",
            "display_name",
            "grant_id",
        ] {
            if let Some(value) = connector.members.get(name)
                && size(value) <= MEMBER
            {
                members.insert(name.to_owned(), value.clone());
            }
        }
    }
    members.insert("stream_count".to_owned(), json!(connector.streams.len()));
    let shared = connector.shared.as_slice();
    if !shared.is_empty() && depth != Depth::Bare {
        members.insert("granted_connections".to_owned(), granted(shared, depth));
    }
    if depth == Depth::Bare {
        let groups = connector.groups();
        let told = groups.iter().map(|(connections, rows)| {
            let ids: Vec<&str> = connections.iter().map(|one| one.id.as_str()).collect();
            let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
            json!({"connection_ids": ids, "stream_names": names})
        });
        members.insert("stream_index".to_owned(), told.collect());
    } else {
        members.insert("streams".to_owned(), Value::Array(rows));
    }
    Value::Object(members)
}

fn row_of(connector: &Connector, row: &Stream, depth: Depth) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("name".to_owned(), json!(row.name));
    if depth == Depth::Rows {
        for name in KEPT {
            if let Some(value) = row.members.get(name)
                && size(value) <= MEMBER
            {
                members.insert(name.to_owned(), value.clone());
            }
        }
    }
    if row.connections != connector.shared {
        let own = granted(&row.connections, depth);
        members.insert("granted_connections".to_owned(), own);
    }
    members
}

fn detailed(connector: &Connector, row: &Stream) -> Value {
    let accepts = Capabilities::new(row);
    let mut members = row_of(connector, row, Depth::Rows);
    for name in ["time_constraint", "resource_count"] {
        if let Some(limit) = row.members.get(name)
            && size(limit) <= MEMBER
        {
            members.insert(name.to_owned(), limit.clone());
        }
    }
    members.insert("field_capabilities".to_owned(), accepts.flags());
    let relations: Vec<Value> = accepts
        .expand
        .iter()
        .map(|relation| {
            let mut told = Map::new();
            told.insert("name".to_owned(), json!(relation.name));
            told.insert("usable".to_owned(), json!(relation.usable));
            for (name, value) in [
                ("target_stream", json!(relation.target)),
                ("cardinality", json!(relation.cardinality)),
                ("default_limit", json!(relation.default_limit)),
                ("max_limit", json!(relation.max_limit)),
                ("reason", json!(relation.reason)),
            ] {
                if !value.is_null() {
                    told.insert(name.to_owned(), value);
                }
            }
            Value::Object(told)
        })
        .collect();
    members.insert("expand_capabilities".to_owned(), Value::Array(relations));
    members.insert("accepts".to_owned(), accepts.arguments());
    Value::Object(members)
}

fn granted(connections: &[Connection], depth: Depth) -> Value {
    let told = connections.iter().map(|one| match &one.label {
        Some(label) if matches!(depth, Depth::Rows | Depth::Names) => {
            json!({"connection_id": one.id, "display_name": label})
        }
        _ => json!({"connection_id": one.id}),
    });
    Value::Array(told.collect())
}
