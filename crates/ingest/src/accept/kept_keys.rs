//! Keys of known exports that cannot stand in a handle become ones that can, and so does what points at them. A store that
//! holds a record under its old key keeps it there, so that the same export changes nothing.

use std::collections::HashMap;

use contract::declaration::{Declaration, Pointing};
use contract::id::ConnectionId;
use contract::json::{self, JsonKind, RecordBody};
use contract::key::RecordKey;
use store::StoreError;
use store::catalog::StreamRef;
use store::records::Records;

use crate::exports::Export;
use crate::importer::{Presence, stored_presence};
use crate::readable_key::is_readable;
use crate::rejection::{Rejection, RejectionCode};

/// Makes keys readable, except those that a store holds already.
pub(super) struct KeptKeys<'a> {
    /// What is there already; nothing if the connection is yet to be added.
    existing: Option<(&'a dyn Records, &'a ConnectionId)>,
    /// By stream, and by field of it: the stream whose keys stand there.
    pointing: HashMap<(&'a str, &'a str), &'a str>,
    /// By stream: the field that is its key, where one field is.
    keys: HashMap<&'a str, &'a str>,
    readable_key: fn(&str) -> String,
}

impl<'a> KeptKeys<'a> {
    pub(super) fn new(
        export: Export,
        declaration: &'a Declaration,
        existing: Option<(&'a dyn Records, &'a ConnectionId)>,
    ) -> Self {
        let mut pointing = HashMap::new();
        let mut keys = HashMap::new();
        for stream in &declaration.streams {
            let name = stream.name.as_str();
            if let [key] = stream.primary_key.as_slice() {
                keys.insert(name, key.as_str());
            }
            for relationship in &stream.relationships {
                let (other, field) = (
                    relationship.stream.as_str(),
                    relationship.foreign_key.as_str(),
                );
                match relationship.pointing {
                    Pointing::Here => pointing.insert((other, field), name),
                    Pointing::There => pointing.insert((name, field), other),
                };
            }
        }
        Self {
            existing,
            pointing,
            keys,
            readable_key: export.readable_key(),
        }
    }

    /// The record with readable keys.
    pub(super) fn readable(&self, stream: &str, body: RecordBody) -> Result<RecordBody, Rejection> {
        let key_field = self.keys.get(stream).copied();
        let mut own = None;
        let mut changed = Vec::new();
        for (name, raw) in body.members() {
            let is_key = Some(name) == key_field;
            let target = if is_key {
                Some(stream)
            } else {
                self.pointing.get(&(stream, name)).copied()
            };
            let (Some(target), JsonKind::String) = (target, json::kind_of(raw)) else {
                continue;
            };
            let text = json::decode_string(raw).unwrap_or_default();
            if is_key {
                own = Some(text.clone());
            }
            if is_readable(&text)
                || self
                    .holds(target, &text)
                    .map_err(|error| unreadable(&error))?
            {
                continue;
            }
            changed.push((name.to_owned(), is_key, text.into_owned()));
        }
        if let Some(own) = own.filter(|_| changed.iter().any(|(_, is_key, _)| !is_key)) {
            let kept = self
                .fields_of(stream, &own)
                .map_err(|error| unreadable(&error))?;
            changed.retain(|(name, is_key, text)| *is_key || kept.get(name) != Some(text));
        }
        if changed.is_empty() {
            return Ok(body);
        }
        self.rewritten(&body, &changed)
    }

    /// The key of a record that is deleted.
    pub(super) fn key<'k>(
        &self,
        stream: &str,
        key: &'k str,
    ) -> Result<std::borrow::Cow<'k, str>, Rejection> {
        if is_readable(key)
            || self
                .holds(stream, key)
                .map_err(|error| unreadable(&error))?
        {
            return Ok(key.into());
        }
        Ok((self.readable_key)(key).into())
    }

    /// The record that is stored under a key, or under the one that is made of it.
    pub(super) fn stored(&self, stream: &str, key: &str) -> Option<serde_json::Value> {
        let (store, connection) = self.existing?;
        let key = RecordKey::single(self.key(stream, key).ok()?).ok()?;
        let stream = StreamRef {
            connection: connection.clone(),
            stream: contract::id::StreamName::parse(stream).ok()?,
        };
        let found = store.get(&stream, &key).ok()??;
        serde_json::from_str(&found.body).ok()
    }

    fn rewritten(
        &self,
        body: &RecordBody,
        changed: &[(String, bool, String)],
    ) -> Result<RecordBody, Rejection> {
        let mut text = String::from("{");
        for (name, raw) in body.members() {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(&serde_json::Value::from(name).to_string());
            text.push(':');
            match changed.iter().find(|(changed, ..)| changed == name) {
                Some((_, _, value)) => {
                    text.push_str(&serde_json::Value::from((self.readable_key)(value)).to_string());
                }
                None => text.push_str(raw),
            }
        }
        text.push('}');
        RecordBody::parse(text)
            .map_err(|error| Rejection::new(RejectionCode::MalformedExport, error.to_string()))
    }

    /// Whether the store knows a key: there is such a record, or the owner deleted it.
    fn holds(&self, stream: &str, key: &str) -> Result<bool, StoreError> {
        let (Some((store, connection)), Ok(key)) = (self.existing, RecordKey::single(key)) else {
            return Ok(false);
        };
        Ok(stored_presence(store, connection, stream, &key)? != Presence::Absent)
    }

    /// The texts of the record that is stored under a key. What it points at may not be there, and still be written as it was.
    fn fields_of(&self, stream: &str, key: &str) -> Result<HashMap<String, String>, StoreError> {
        let stream = contract::id::StreamName::parse(stream);
        let (Some((store, connection)), Ok(key), Ok(stream)) =
            (self.existing, RecordKey::single(key), stream)
        else {
            return Ok(HashMap::new());
        };
        let connection = connection.clone();
        let found = store.get(&StreamRef { connection, stream }, &key)?;
        let body = found.and_then(|found| RecordBody::parse(found.body).ok());
        let members = body.iter().flat_map(RecordBody::members);
        Ok(members
            .filter_map(|(name, raw)| {
                Some((name.to_owned(), json::decode_string(raw)?.into_owned()))
            })
            .collect())
    }
}

/// The store cannot be read. The write that follows fails as well, and says so for the whole import.
fn unreadable(error: &StoreError) -> Rejection {
    Rejection::new(RejectionCode::MalformedExport, error.to_string())
}
