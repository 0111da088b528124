//! A record as a server answered it: identity around it, payload inside it, and what a projection leaves of both.

use contract::citation::Citation;
use contract::handle::{RECORD_URI, RecordHandle, WINDOW_URI};
use serde_json::{Map, Value};

use super::fields::{FieldValue, Fields, is_scalar};
use super::naming::{self, OPERATIONAL, connection_of};
use super::record::{self, Related};
use crate::identity::{Addresses, Identity};

/// What stands around a record and is neither of it nor about it.
const AROUND: [&str; 7] = [
    "links",
    "meta",
    "url",
    "source",
    "connector_instance_id",
    "citation_url",
    "expanded",
];

#[derive(Debug, Default)]
pub(crate) struct Payload {
    /// Operational members, scalars only.
    envelope: Map<String, Value>,
    pub(crate) data: Fields<'static>,
    /// What else the server put beside the payload. Nothing of it is left when fields were named.
    pub(crate) extras: Fields<'static>,
    /// Scalars and more of a `metadata` that a server put beside the payload.
    pub(crate) metadata: Fields<'static>,
    /// Related records, by relation.
    expanded: Value,
    /// Citations of its texts, by field.
    pub(crate) cite: Fields<'static>,
    /// Where people can look at it, as the server says.
    pub(crate) addresses: Addresses,
}

impl Payload {
    /// Takes an answer apart. Where fields are named, nothing but these is kept, whatever the server sent (FE-05).
    pub(super) fn read(body: Value, fields: &[&str]) -> Option<Self> {
        let body = unwrapped(body);
        let connection = connection_of(&body).map(str::to_owned);
        let Value::Object(mut body) = body else {
            return None;
        };
        body.retain(|name, value| !is_machine_address(name, value));
        let mut payload = Self::default();
        for name in OPERATIONAL {
            if let Some(value) = body.get(name).filter(|value| is_scalar(value)) {
                payload.envelope.insert(name.to_owned(), value.clone());
            }
        }
        if let Some(connection) = connection {
            let connection = Value::String(connection);
            payload
                .envelope
                .entry("connection_id")
                .or_insert(connection);
        }
        if let Some(expanded @ Value::Object(_)) = body.remove("expanded") {
            let connection = payload.envelope.get("connection_id").cloned();
            payload.expanded =
                serde_json::json!({"expanded": expanded, "connection_id": connection});
        }
        let mut data = match body.remove("data") {
            Some(Value::Object(data)) => {
                let url = body.get("citation_url").and_then(Value::as_str);
                payload.addresses.citation = url.map(str::to_owned);
                if let Some(Value::Object(mut cite)) = body.remove("cite") {
                    let is_one = |text: &str| Citation::parse(text).is_some();
                    cite.retain(|_, value| value.as_str().is_some_and(is_one));
                    payload.cite = Fields::owned(cite);
                }
                if fields.is_empty() {
                    body.retain(|name, _| !is_around(name));
                    if let Some(Value::Object(about)) = body.get("metadata") {
                        payload.metadata = Fields::owned(about.clone());
                    }
                    payload.extras = Fields::owned(body);
                }
                data
            }
            // A flat record: what is not identity is payload; a field that was named is payload in any case.
            other => {
                body.extend(other.map(|other| ("data".to_owned(), other)));
                body.retain(|name, _| !fields.is_empty() || !OPERATIONAL.contains(&name.as_str()));
                body
            }
        };
        if !fields.is_empty() {
            data.retain(|name, _| fields.contains(&name.as_str()));
        }
        payload.data = Fields::owned(data);
        Some(payload)
    }

    /// The record that was asked for, by the best name there is.
    pub(crate) fn identity(&self, asked: &RecordHandle) -> Identity {
        let connection = self.envelope.get("connection_id").and_then(Value::as_str);
        Identity::adopting(asked, connection)
    }

    /// The members that say which record it is and where it is from.
    pub(crate) fn envelope(&self) -> impl Iterator<Item = (&str, FieldValue<'_>)> {
        let members = self.envelope.iter();
        members.map(|(name, value)| (name.as_str(), FieldValue::new(value)))
    }

    pub(crate) fn related(&self, connection: Option<&str>) -> Vec<Related<'_>> {
        record::related(&self.expanded, connection)
    }

    /// What to call it: its own title, else source, stream and time.
    pub(crate) fn title(&self, identity: &Identity) -> String {
        let own = |name: &&str| self.data.text(name).or_else(|| self.extras.text(name));
        if let Some(title) = naming::TITLES.iter().find_map(own) {
            return title.to_owned();
        }
        let mut face = self.envelope.clone();
        face.insert(
            "data".to_owned(),
            Value::Object(self.data.members().clone()),
        );
        naming::title(&Value::Object(face), identity)
    }
}

/// Some servers wrap the record once more.
fn unwrapped(body: Value) -> Value {
    let is_record = |value: &Value| {
        value.get("data").is_some_and(Value::is_object)
            || value.get("object").and_then(Value::as_str) == Some("record")
    };
    match body {
        Value::Object(mut object)
            if !object.contains_key("id")
                && object.get("object").and_then(Value::as_str) != Some("record")
                && object.get("data").is_some_and(is_record) =>
        {
            object.remove("data").unwrap_or_default()
        }
        body => body,
    }
}

/// A handle a server put beside the record. The id says the same, and every tool takes it (HD-08, HD-11).
fn is_machine_address(name: &str, value: &Value) -> bool {
    let is_handle = value
        .as_str()
        .is_some_and(|text| text.starts_with(RECORD_URI) || text.starts_with(WINDOW_URI));
    is_handle && name.to_ascii_lowercase().ends_with("uri")
}

fn is_around(name: &str) -> bool {
    OPERATIONAL.contains(&name) || AROUND.contains(&name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_flat_record_is_payload_beside_its_identity() {
        let flat = json!({"id":"m1","stream":"mail","emitted_at":"2026-01-01T00:00:00Z","subject":"S","data":"raw"});
        let payload = Payload::read(flat, &[]).unwrap();
        assert_eq!(
            Value::Object(payload.data.members().clone()),
            json!({"subject":"S","data":"raw"})
        );
        assert_eq!(payload.envelope["id"], "m1");
        assert!(Payload::read(json!([1]), &[]).is_none());
    }

    #[test]
    fn handles_beside_a_record_are_dropped_and_words_of_people_are_kept() {
        // HD-08, HD-11
        let body = json!({"id":"m1","record_uri":"pdpp://record/x","resource_uri":"pdpp://field-window/y",
            "text":"pdpp://record/ is a prefix"});
        let payload = Payload::read(body, &[]).unwrap();
        let data = Value::Object(payload.data.members().clone());
        assert_eq!(data, json!({"text":"pdpp://record/ is a prefix"}));
    }

    #[test]
    fn a_record_that_is_wrapped_once_more_is_taken_out() {
        let record = json!({"object":"record","id":"m1","data":{"text":"x"}});
        let payload = Payload::read(json!({ "data": record }), &[]).unwrap();
        assert_eq!(payload.data.names().collect::<Vec<_>>(), ["text"]);
        // What has an id is the record itself, whatever its payload looks like.
        let payload = Payload::read(json!({"id":"m1","data": record}), &[]).unwrap();
        assert!(payload.data.names().any(|name| name == "data"));
    }
}
