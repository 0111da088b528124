//! The fields of a record: named values as they were sent, each known by what it holds.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use super::bytes::is_bytes;
use super::compact::{self, About, CompactText};
use super::shrink;
use crate::args::Scalar;

/// Longer numbers are read in windows, like other JSON.
const NUMBER: usize = 80;

/// Named values in the order they were sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields<'a>(Cow<'a, Map<String, Value>>);

#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldValue<'a>(&'a Value);

/// What a value holds, as far as reading on is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Text,
    Json,
    /// A reference to bytes, or bytes written as base64.
    Binary,
    /// Null, numbers, booleans, empty texts: shown whole wherever they are shown.
    Small,
}

/// What is known of bytes that are kept elsewhere. All of it is optional, for servers say what they like.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Blob<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) media_type: Option<&'a str>,
    pub(crate) size_bytes: Option<u64>,
    pub(crate) filename: Option<&'a str>,
    pub(crate) digest: Option<&'a str>,
}

impl<'a> Fields<'a> {
    pub(super) fn borrowed(members: &'a Map<String, Value>) -> Self {
        Self(Cow::Borrowed(members))
    }

    pub(super) fn owned(members: Map<String, Value>) -> Self {
        Self(Cow::Owned(members))
    }

    pub(super) fn to_mut(&mut self) -> &mut Map<String, Value> {
        self.0.to_mut()
    }

    pub(super) fn members(&self) -> &Map<String, Value> {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, name: &str) -> Option<FieldValue<'_>> {
        self.0.get(name).map(FieldValue)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?
            .text()
            .filter(|text| !text.trim().is_empty())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, FieldValue<'_>)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), FieldValue(value)))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(crate) fn only(&self, keep: impl Fn(&str, FieldValue<'_>) -> bool) -> Fields<'static> {
        let kept = self
            .0
            .iter()
            .filter(|(name, value)| keep(name, FieldValue(value)));
        Fields::owned(
            kept.map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        )
    }

    /// Those of these names that have no more bytes than this.
    pub(crate) fn small(&self, names: &[&str], most: usize) -> Fields<'static> {
        self.only(|name, value| names.contains(&name) && value.size() <= most)
    }

    pub(crate) fn size(&self) -> usize {
        shrink::size(&self.0)
    }

    /// All of them as compact JSON, with its size in place of every text that is bytes.
    pub(crate) fn json_without_bytes(&self) -> String {
        let bare: Map<String, Value> = (self.0.iter())
            .map(|(name, value)| (name.clone(), super::bytes::without_bytes(value)))
            .collect();
        Value::Object(bare).to_string()
    }

    /// As much of them as fits so many bytes of one line.
    pub(crate) fn shown(&self, about: About<'_>, width: usize) -> CompactText {
        compact::payload(&self.0, about, width)
    }
}

/// The fields as they were sent, for structured content.
impl serde::Serialize for Fields<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'a> FieldValue<'a> {
    pub(super) fn new(value: &'a Value) -> Self {
        Self(value)
    }

    pub(crate) fn content(self) -> Content {
        match self.0 {
            Value::String(text) if text.is_empty() => Content::Small,
            Value::String(text) if is_bytes(text) => Content::Binary,
            Value::String(_) => Content::Text,
            Value::Object(object) if is_blob(object) => Content::Binary,
            Value::Object(_) | Value::Array(_) => Content::Json,
            Value::Number(number) if number.as_str().len() > NUMBER => Content::Json,
            Value::Null | Value::Bool(_) | Value::Number(_) => Content::Small,
        }
    }

    pub(crate) fn text(self) -> Option<&'a str> {
        self.0.as_str()
    }

    /// A value that stands on its own: no list and no object.
    pub(crate) fn is_scalar(self) -> bool {
        is_scalar(self.0)
    }

    pub(crate) fn size(self) -> usize {
        shrink::size(self.0)
    }

    /// The characters of a text; none of anything else.
    pub(crate) fn chars(self) -> usize {
        self.text().map_or(0, |text| text.chars().count())
    }

    /// A text as it is, anything else as compact JSON without bytes.
    pub(crate) fn into_text(self) -> String {
        match self.0 {
            Value::String(text) => text.clone(),
            value => super::bytes::without_bytes(value).to_string(),
        }
    }

    /// As a filter holds it. Of a number in JSON an agent's host may keep as little as a double does, so that longer digits
    /// stand as text.
    pub(crate) fn scalar(self) -> Option<Scalar> {
        match self.0 {
            Value::String(text) => Some(Scalar::Text(text.clone())),
            Value::Number(number) => {
                let is_kept = |double| Number::from_f64(double).as_ref() == Some(number);
                let survives =
                    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(is_kept);
                Some(if survives {
                    Scalar::Number(number.clone())
                } else {
                    Scalar::from(number.as_str())
                })
            }
            Value::Bool(truth) => Some(Scalar::Bool(*truth)),
            _ => None,
        }
    }

    pub(crate) fn json(self) -> String {
        self.0.to_string()
    }

    /// Whether bytes inside it are left out where it is written.
    pub(crate) fn holds_bytes(self) -> bool {
        super::bytes::without_bytes(self.0) != *self.0
    }

    pub(crate) fn kind(self) -> &'static str {
        match self.0 {
            Value::Object(_) => "object",
            Value::Array(_) => "array",
            Value::String(_) => "string",
            Value::Number(_) => "number",
            Value::Bool(_) => "boolean",
            Value::Null => "null",
        }
    }

    /// What is known of bytes kept elsewhere, where it refers to some.
    pub(crate) fn blob(self) -> Option<Blob<'a>> {
        let blob = self.0.as_object().filter(|object| is_blob(object))?;
        let text = |name: &str| blob.get(name).and_then(Value::as_str);
        Some(Blob {
            id: text("blob_id"),
            media_type: text("mime_type").or(text("content_type")),
            size_bytes: blob.get("size_bytes").and_then(Value::as_u64),
            filename: text("filename"),
            digest: text("digest"),
        })
    }
}

impl serde::Serialize for FieldValue<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

pub(super) fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

fn is_blob(object: &Map<String, Value>) -> bool {
    let tagged = object.get("object").and_then(Value::as_str) == Some("blob_ref");
    tagged || object.get("blob_id").is_some_and(Value::is_string)
}
