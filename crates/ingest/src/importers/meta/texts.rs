//! Texts, names and times as Meta's archives write them.

use serde_json::Value;

use crate::importers::json_members::seconds_to_moment;

/// The words behind `#`, each once.
pub(super) fn hashtags(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut tags: Vec<String> = Vec::new();
    for after in text.split('#').skip(1) {
        let tag: String = after.chars().take_while(|c| is_part(*c)).collect();
        if !tag.is_empty() && !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    tags
}

pub(super) fn last_part(uri: &str) -> String {
    uri.rsplit('/').next().unwrap_or(uri).to_owned()
}

pub(super) fn millis_to_moment(millis: i64) -> Option<String> {
    seconds_to_moment(&format!(
        "{}.{:03}",
        millis.div_euclid(1_000),
        millis.rem_euclid(1_000)
    ))
}

/// Undoes what was done to a text: every byte of UTF-8 was written as a character of its own.
pub(crate) fn mended_text(text: String) -> String {
    let bytes = text.chars().map(|c| u8::try_from(u32::from(c)).ok());
    let bytes: Option<Vec<u8>> = bytes.collect();
    let mended = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    mended.unwrap_or(text)
}

pub(super) fn mended(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(mended_text(text)),
        Value::Array(items) => items.into_iter().map(mended).collect(),
        Value::Object(members) => {
            let members = members.into_iter();
            Value::Object(members.map(|(name, value)| (name, mended(value))).collect())
        }
        other => other,
    }
}
