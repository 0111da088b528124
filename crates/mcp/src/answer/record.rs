//! A record of a page, or related to one: identity around it, payload inside it, whichever generation of server wrote it.

use serde_json::{Map, Value};

use super::fields::Fields;
use super::naming::{self, OPERATIONAL, connection_of, text};
use super::page::{self, RECORDS};
use crate::identity::Identity;

/// What else stays around the projected payload of a row.
const AROUND_ROWS: [&str; 4] = ["source", "citation_url", "record_json_bytes", "expanded"];
/// What stays of a `source`.
const SOURCE: [&str; 4] = ["kind", "id", "display_name", "connection_id"];

#[derive(Debug)]
pub(crate) struct Record<'a> {
    /// Its name, where it has one that can be called.
    pub(crate) identity: Option<Identity>,
    pub(crate) id: Option<&'a str>,
    pub(crate) connection: Option<&'a str>,
    pub(crate) deleted: bool,
    pub(crate) deleted_at: Option<&'a str>,
    /// Its payload; none where the server sent something else than an object.
    pub(crate) fields: Option<Fields<'a>>,
    /// The whole entry, as JSON, where it is no object.
    pub(crate) other: Option<String>,
    pub(crate) related: Vec<Related<'a>>,
}

#[derive(Debug)]
pub(crate) struct Related<'a> {
    pub(crate) relation: &'a str,
    /// Whether the server says that there are more than it sent.
    pub(crate) has_more: bool,
    pub(crate) records: Vec<RelatedRecord<'a>>,
}

/// A record that another one brought along.
#[derive(Debug)]
pub(crate) struct RelatedRecord<'a> {
    pub(crate) identity: Option<Identity>,
    pub(crate) connection: Option<&'a str>,
    /// Its payload as JSON, without bytes.
    pub(crate) json: String,
    payload: &'a Value,
}

impl<'a> Record<'a> {
    /// Reads an entry of a page of this stream, asked of this connection or of all.
    pub(super) fn read(raw: &'a Value, stream: &str, connection: Option<&str>) -> Self {
        let fields = own_members(raw);
        Self {
            identity: naming::of_record(raw, stream, connection),
            id: text(raw, "id"),
            connection: connection_of(raw),
            deleted: raw.get("deleted") == Some(&Value::Bool(true)),
            deleted_at: text(raw, "deleted_at"),
            other: fields.is_none().then(|| raw.to_string()),
            fields,
            related: related(raw, connection),
        }
    }

    pub(crate) fn size(&self) -> usize {
        self.fields.as_ref().map_or(0, Fields::size)
    }

    /// The payload, with the payloads of related records beside it.
    pub(crate) fn displayed(&self) -> Option<Fields<'a>> {
        let mut fields = self.fields.clone()?;
        if self.related.is_empty() {
            return Some(fields);
        }
        let payloads = self.related.iter().map(|related| {
            let records: Vec<Value> = related
                .records
                .iter()
                .map(|one| one.payload.clone())
                .collect();
            (related.relation.to_owned(), Value::Array(records))
        });
        let expanded = Value::Object(payloads.collect());
        fields.to_mut().insert("expanded".to_owned(), expanded);
        Some(fields)
    }
}

/// The payload of a record: its `data`, or the record itself where a server has no envelope.
fn payload(record: &Value) -> Option<&Map<String, Value>> {
    match record.get("data") {
        Some(Value::Object(data)) => Some(data),
        _ => record.as_object(),
    }
}

/// The payload without the identity that a flat record mixes into it.
fn own_members(record: &Value) -> Option<Fields<'_>> {
    let members = payload(record)?;
    if record.get("data").is_some_and(Value::is_object) {
        return Some(Fields::borrowed(members));
    }
    let is_own = |name: &str| !stays(name) && name != "connector_instance_id";
    let own = members.iter().filter(|(name, _)| is_own(name));
    let own = own.map(|(name, value)| (name.clone(), value.clone()));
    Some(Fields::owned(own.collect()))
}

fn stays(name: &str) -> bool {
    OPERATIONAL.contains(&name) || AROUND_ROWS.contains(&name)
}

pub(super) fn related<'a>(record: &'a Value, connection: Option<&str>) -> Vec<Related<'a>> {
    let expanded = record.get("expanded").and_then(Value::as_object);
    let connection = connection_of(record).or(connection);
    let one = |(relation, raw): (&'a String, &'a Value)| Related {
        relation,
        has_more: raw.get("has_more") == Some(&Value::Bool(true)),
        records: related_entries(raw)
            .iter()
            .map(|entry| RelatedRecord::read(entry, connection))
            .collect(),
    };
    expanded.into_iter().flatten().map(one).collect()
}

fn related_entries(related: &Value) -> &[Value] {
    let is_list = related.is_array() || related.get("data").is_some_and(Value::is_array);
    match related {
        Value::Null => &[],
        _ if is_list => page::entries(related, &RECORDS),
        _ => std::slice::from_ref(related),
    }
}

impl<'a> RelatedRecord<'a> {
    fn read(entry: &'a Value, connection: Option<&str>) -> Self {
        let payload = match entry.get("data") {
            Some(data @ Value::Object(_)) => data,
            _ => entry,
        };
        let stream = text(entry, "stream");
        Self {
            identity: stream.and_then(|stream| naming::of_record(entry, stream, connection)),
            connection: connection_of(entry),
            json: super::bytes::without_bytes(payload).to_string(),
            payload,
        }
    }
}

/// Keeps the asked fields of the payload, and of the rest what names or tells the state of the record, whatever the server
/// sent.
pub(super) fn narrow(record: &mut Value, fields: &[&str]) {
    let connection = connection_of(record).map(str::to_owned);
    let Value::Object(members) = record else {
        return;
    };
    let has_envelope = match members.get_mut("data") {
        Some(Value::Object(data)) => {
            data.retain(|name, _| fields.contains(&name.as_str()));
            true
        }
        _ => false,
    };
    members.retain(|name, _| {
        let name = name.as_str();
        stays(name)
            || if has_envelope {
                name == "data"
            } else {
                fields.contains(&name)
            }
    });
    if let Some(Value::Object(source)) = members.get_mut("source") {
        source.retain(|name, value| SOURCE.contains(&name.as_str()) && !value.is_object());
    }
    // A server that knows the connection by an older name still says which one it is.
    if let Some(connection) = connection {
        members
            .entry("connection_id")
            .or_insert(Value::String(connection));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_flat_record_is_narrowed_too() {
        let mut record =
            json!({"id":"m1","connector_instance_id":"c1","subject":"S","body":"SECRET"});
        narrow(&mut record, &["subject"]);
        assert_eq!(
            record,
            json!({"id":"m1","subject":"S","connection_id":"c1"})
        );
    }

    #[test]
    fn the_payload_of_a_flat_record_is_without_its_identity() {
        let record = json!({"id":"m1","stream":"mail","connector_instance_id":"c1","subject":"S"});
        let own = own_members(&record).unwrap();
        assert_eq!(own.names().collect::<Vec<_>>(), ["subject"]);
    }
}
