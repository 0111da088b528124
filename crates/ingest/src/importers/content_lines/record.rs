//! From a component to a record: its key, and its content without what is empty.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use contract::key::RecordKey;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Component, Property};

/// What changes with every export, or is no part of the content.
const VOLATILE: [&str; 7] = [
    "CREATED",
    "DTSTAMP",
    "LAST-MODIFIED",
    "PRODID",
    "REV",
    "SEQUENCE",
    "X-LAST-MODIFIED",
];

/// The key of a component: its `UID`, which stays the same in all exports, and what tells it from others of that `UID`.
/// Without one, and where it could be no key, a hash; where there is none, of the content.
pub(crate) fn key_of(component: &Component, part: Option<&str>) -> String {
    let uid = component.property("UID").map(|uid| uid.value.trim());
    let uid = uid.filter(|uid| !uid.is_empty());
    let Some(uid) = uid else {
        let words = component
            .properties
            .iter()
            .filter(|property| !VOLATILE.contains(&property.name.as_str()))
            .flat_map(Property::words);
        return hash(words);
    };
    let key = match part {
        Some(part) => format!("{uid}_{part}"),
        None => uid.to_owned(),
    };
    match RecordKey::single(key.as_str()) {
        Ok(_) => key,
        Err(_) => hash([key.as_str()].into_iter()),
    }
}

/// The lengths go in too, so that the same letters, divided otherwise, are something else.
fn hash<'t>(words: impl Iterator<Item = &'t str>) -> String {
    let mut hasher = Sha256::new();
    for word in words {
        hasher.update((word.len() as u64).to_be_bytes());
        hasher.update(word);
    }
    format!("sha256-{}", URL_SAFE_NO_PAD.encode(hasher.finalize()))
}

/// The record without members that say nothing.
pub(crate) fn filled(mut members: Value) -> Value {
    drop_empty(&mut members);
    members
}

/// Records are written by us and two levels deep at most.
fn drop_empty(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(drop_empty);
            members.retain(|_, member| !is_empty(member));
        }
        Value::Array(items) => {
            items.iter_mut().for_each(drop_empty);
            items.retain(|item| !is_empty(item));
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
