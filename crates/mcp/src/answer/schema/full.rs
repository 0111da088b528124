//! The full schema of one stream as structured content: as the server sent it, bounded where it would not fit.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::capability::Capabilities;
use super::document::{Connector, Document, MEMBER, Stream};
use crate::answer::size;
use crate::budget;

/// Bytes kept for what stands around the rows.
const FRAME: usize = 12_288;

/// Where the rest of a schema is that is too large for one result.
pub(crate) const ELSEWHERE: &str = "GET /v1/schema?detail=full on the server has them, for programs with a token for that whole server";

/// The document, and the fields whose JSON Schema had to be left out.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct FullSchema {
    data: Value,
    #[serde(skip)]
    pub(crate) omitted: Vec<String>,
}

impl FullSchema {
    /// The rows of the document, each as it came.
    pub(crate) fn new(document: &Document) -> Self {
        let mut omitted = Vec::new();
        let rows = document.rows().count();
        let room = (budget::FULL_SCHEMA_STRUCTURED - FRAME) / rows.max(1);
        let connectors: Vec<Value> = document
            .connectors
            .iter()
            .map(|connector| members_of(connector, room, &mut omitted))
            .collect();
        let mut envelope = document.envelope();
        let members = envelope.to_mut();
        members.insert("detail".to_owned(), json!("full"));
        members.insert("connector_count".to_owned(), json!(connectors.len()));
        members.insert("stream_count".to_owned(), json!(rows));
        members.insert("connectors".to_owned(), Value::Array(connectors));
        if !omitted.is_empty() {
            let told: Vec<&str> = omitted.iter().take(200).map(String::as_str).collect();
            members.insert(
                "omitted".to_owned(),
                json!({"count": omitted.len(), "json_schemas": told, "how": ELSEWHERE}),
            );
        }
        Self {
            data: Value::Object(std::mem::take(members)),
            omitted,
        }
    }
}

fn members_of(connector: &Connector, room: usize, omitted: &mut Vec<String>) -> Value {
    let rows = connector
        .streams
        .iter()
        .map(|row| bounded(row, room, omitted));
    let rows = Value::Array(rows.collect());
    let mut members = connector.all_small();
    members.insert("connector_key".to_owned(), json!(connector.key));
    members.insert("stream_count".to_owned(), json!(connector.streams.len()));
    members.insert("streams".to_owned(), rows);
    Value::Object(members)
}

fn bounded(row: &Stream, room: usize, omitted: &mut Vec<String>) -> Value {
    let ids: Vec<&str> = row.connections.iter().map(|one| one.id.as_str()).collect();
    let mut members = row.members.members().clone();
    members.insert("name".to_owned(), json!(row.name));
    narrow(&mut members, &ids);
    // What the server takes is told as it came, so what no tool can ask of it is told beside it.
    for (argument, names) in Capabilities::new(row).unsayable() {
        let told = members
            .entry("cannot_be_named")
            .or_insert_with(|| json!({}));
        told[argument] = json!(names);
    }
    bound(&mut members, room, omitted);
    Value::Object(members)
}

/// Takes out every connection but those of the row, and the deprecated name of the id.
fn narrow(members: &mut Map<String, Value>, ids: &[&str]) {
    members.remove("connector_instance_id");
    if let Some(Value::Array(listed)) = members.get_mut("granted_connections") {
        listed.retain_mut(|one| {
            if let Value::Object(one) = one {
                one.remove("connector_instance_id");
            }
            let id = one.get("connection_id").or(Some(&*one));
            id.and_then(Value::as_str)
                .is_none_or(|id| ids.contains(&id))
        });
    } else if !ids.is_empty() {
        let listed: Vec<Value> = ids.iter().map(|id| json!({"connection_id": id})).collect();
        members.insert("granted_connections".to_owned(), Value::Array(listed));
    }
    if let Some(Value::Array(listed)) = members.get_mut("instance_ids") {
        listed.retain(|id| id.as_str().is_none_or(|id| ids.contains(&id)));
    }
}

/// Shortens a row: first what is told twice, then the JSON Schema of the largest fields, then all else that is large.
fn bound(members: &mut Map<String, Value>, room: usize, omitted: &mut Vec<String>) {
    if total(members) <= room {
        return;
    }
    let has_fields = members
        .get("field_capabilities")
        .is_some_and(Value::is_object);
    if has_fields && let Some(Value::Object(schema)) = members.get_mut("schema") {
        schema.remove("properties");
        schema.insert(
            "properties_at".to_owned(),
            json!("field_capabilities.<field>.schema"),
        );
    }
    let mut over = total(members).saturating_sub(room);
    if let Some(Value::Object(fields)) = members.get_mut("field_capabilities") {
        let mut sizes: Vec<(usize, String)> = fields
            .iter()
            .filter_map(|(name, field)| Some((size(field.get("schema")?), name.clone())))
            .collect();
        sizes.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
        for (bytes, name) in sizes {
            if over == 0 {
                break;
            }
            let left_out = json!({"omitted_bytes": bytes});
            over = over.saturating_sub(bytes.saturating_sub(size(&left_out)));
            if let Some(Value::Object(field)) = fields.get_mut(&name) {
                field.insert("schema".to_owned(), left_out);
                omitted.push(name);
            }
        }
    }
    if over == 0 {
        return;
    }
    let large: Vec<String> = members
        .iter()
        .filter(|(name, value)| *name != "name" && size(value) > MEMBER)
        .map(|(name, _)| name.clone())
        .collect();
    for name in large {
        if let Some(value) = members.get_mut(&name) {
            *value = json!({"omitted_bytes": size(value)});
        }
        omitted.push(name);
    }
}

fn total(members: &Map<String, Value>) -> usize {
    let each = members.iter();
    each.map(|(name, value)| name.len() + size(value) + 4).sum()
}
