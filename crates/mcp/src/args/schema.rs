//! The JSON Schema of what a tool takes and gives, as hosts see it.

use rmcp::model::JsonObject;
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::reply::Members;

/// The schema of one value.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Schema {
    #[serde(rename = "type")]
    pub(crate) kind: Option<&'static str>,
    /// Hosts which know only one `type` a schema keep this form of several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) any_of: Vec<Schema>,
    pub(crate) min_length: Option<u64>,
    #[serde(rename = "enum", skip_serializing_if = "Vec::is_empty")]
    pub(crate) words: Vec<&'static str>,
    pub(crate) minimum: Option<u64>,
    pub(crate) maximum: Option<u64>,
    pub(crate) items: Option<Box<Schema>>,
    #[serde(skip_serializing_if = "Members::is_empty")]
    pub(crate) properties: Members<&'static str, Schema>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) required: Vec<&'static str>,
    pub(crate) additional_properties: Option<Additional>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) description: &'static str,
}

/// What members besides those named an object may have.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(crate) enum Additional {
    Any(Box<Schema>),
    No(bool),
}

impl Schema {
    pub(crate) fn new(kind: &'static str) -> Self {
        Self {
            kind: Some(kind),
            ..Self::default()
        }
    }

    pub(crate) fn one_of(kinds: &[&'static str]) -> Self {
        Self {
            any_of: kinds.iter().map(|kind| Self::new(kind)).collect(),
            ..Self::default()
        }
    }

    /// An object with members of any name.
    pub(super) fn of_members(value: Self) -> Self {
        Self {
            additional_properties: Some(Additional::Any(Box::new(value))),
            ..Self::new("object")
        }
    }

    /// An object with these members, of which some must be there.
    pub(crate) fn of_object(
        properties: Vec<(&'static str, Schema)>,
        required: Vec<&'static str>,
    ) -> Self {
        Self {
            properties: Members(properties),
            required,
            ..Self::new("object")
        }
    }

    /// The same object without any other member.
    pub(super) fn strict(mut self) -> Self {
        self.additional_properties = Some(Additional::No(false));
        self
    }

    /// As the protocol's library takes it.
    pub(crate) fn into_object(self) -> JsonObject {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::Object(schema)) => schema,
            _ => JsonObject::new(),
        }
    }
}
