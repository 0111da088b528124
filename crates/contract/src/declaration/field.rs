//! One top-level field: its JSON types and the kind the rest of the system works with.
//!
//! JSON Schema says far more than this; only `type`, `format`, what leads to them, and our two `x_` members are given
//! meaning here, the rest is carried as written.

use super::references::{Reading, Schema};
use crate::document::{Mistakes, Node, Object, step};
use crate::id::FieldName;
use crate::json::{self, JsonKind};
use crate::names::Named as _;
use crate::scalar::FieldKind;

/// One top-level field of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldDeclaration {
    /// The name in `data`.
    pub name: FieldName,
    /// The one kind of value it holds besides null, or [`FieldKind::Mixed`].
    pub kind: FieldKind,
    /// The one scalar kind that the items of an array have.
    pub items: Option<FieldKind>,
    /// Whether null is an accepted value.
    pub nullable: bool,
    /// The JSON types it accepts; empty accepts all.
    pub types: Vec<JsonType>,
    /// What the field is for, such as `title` or `body`.
    pub role: Option<String>,
    pub presentation_type: Option<String>,
    /// The property's JSON Schema, readable by itself: as written, except that what it refers to stands in place.
    pub schema: String,
}

impl FieldDeclaration {
    /// Whether a JSON value has one of the declared types. Formats are not types, and `1.0` is an integer.
    pub fn accepts(&self, raw: &str) -> bool {
        self.types.is_empty() || self.types.iter().any(|declared| declared.accepts(raw))
    }
}

crate::names! {
    pub enum JsonType {
        /// `null`
        Null = "null",
        /// `true`, `false`
        Boolean = "boolean",
        /// A number without a fractional part.
        Integer = "integer",
        Number = "number",
        String = "string",
        Array = "array",
        Object = "object",
    }
}

impl JsonType {
    /// Whether every value of the other type is a value of this one.
    pub(super) fn covers(self, other: JsonType) -> bool {
        self == other || (self == JsonType::Number && other == JsonType::Integer)
    }

    pub fn accepts(self, raw: &str) -> bool {
        match json::kind_of(raw) {
            JsonKind::Null => self == JsonType::Null,
            JsonKind::Boolean => self == JsonType::Boolean,
            JsonKind::Number => {
                self == JsonType::Number || (self == JsonType::Integer && is_whole(raw))
            }
            JsonKind::String => self == JsonType::String,
            JsonKind::Array => self == JsonType::Array,
            JsonKind::Object => self == JsonType::Object,
        }
    }
}

/// Whether a JSON number has no fractional part, whichever way it is written (`1`, `1.0`, `10e-1`).
fn is_whole(raw: &str) -> bool {
    let raw = raw.trim();
    let (mantissa, exponent) = raw.split_once(['e', 'E']).unwrap_or((raw, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let whole = whole.trim_start_matches('-');
    if fraction.is_empty() && whole.bytes().all(|digit| digit == b'0') {
        return true;
    }
    let Ok(exponent) = exponent.parse::<i64>() else {
        // Beyond i64 only the sign still matters: a huge power of ten is whole, a huge negative one is not.
        return !exponent.starts_with('-');
    };
    let places = if fraction.is_empty() {
        let trailing = whole.len() - whole.trim_end_matches('0').len();
        -i64::try_from(trailing).unwrap_or(i64::MAX)
    } else {
        i64::try_from(fraction.len()).unwrap_or(i64::MAX)
    };
    exponent >= places
}

/// Reads one entry of `schema.properties`.
pub(super) fn read(
    name: FieldName,
    node: &Node,
    schema: &mut Schema,
    mistakes: &mut Mistakes,
) -> FieldDeclaration {
    let mut field = FieldDeclaration {
        name,
        kind: FieldKind::Mixed,
        items: None,
        nullable: true,
        types: Vec::new(),
        role: None,
        presentation_type: None,
        schema: node.raw.clone(),
    };
    if json::kind_of(&node.raw) == JsonKind::Boolean {
        return field;
    }
    if node.object(mistakes).is_none() {
        return field;
    }
    let shape = schema.shape(node, mistakes);
    field.schema = schema.standalone(node, &shape);
    let standing = match schema.reading {
        Reading::Literal => node.clone(),
        Reading::Following => Node {
            raw: field.schema.clone(),
            path: node.path.clone(),
        },
    };
    let Some(mut property) = standing.object(&mut Mistakes::default()) else {
        return field;
    };
    field.role = property.text("x_pdpp_role", mistakes);
    field.presentation_type = property.text("x_pdpp_type", mistakes);
    if shape.types.as_ref().is_some_and(Vec::is_empty) {
        let rule = "no value can have this field: what it says and what it refers to contradict each other";
        mistakes.add(&node.path, rule);
    }
    field.types = shape.types.unwrap_or_default();
    field.nullable = field.types.is_empty() || field.types.contains(&JsonType::Null);
    // Read literally, a field that refers elsewhere is of any kind.
    if schema.reading == Reading::Following || !schema.refers_itself(node) {
        field.kind = kind(&field.types, shape.format.as_deref());
    }
    if field.kind == FieldKind::Array {
        field.items = property.optional("items").and_then(|node| items(&node));
    }
    if field.name.as_str() == "blob_ref" {
        check_blob_ref(&field, &mut property, mistakes);
    }
    field
}

pub(super) fn read_types(node: &Node, mistakes: &mut Mistakes) -> Vec<JsonType> {
    if json::kind_of(&node.raw) == JsonKind::String {
        return node.choice(JsonType::NAMED, mistakes).into_iter().collect();
    }
    let mut types = Vec::new();
    for item in node.filled_array(mistakes).unwrap_or_default() {
        if let Some(declared) = item.choice(JsonType::NAMED, mistakes) {
            let rule = "type names must be unique";
            mistakes.push_unique(&mut types, declared, &item.path, rule);
        }
    }
    types
}

fn kind(types: &[JsonType], format: Option<&str>) -> FieldKind {
    let mut stated = types.iter().filter(|declared| **declared != JsonType::Null);
    let (Some(only), None) = (stated.next(), stated.next()) else {
        return FieldKind::Mixed;
    };
    match (only, format) {
        (JsonType::Boolean, _) => FieldKind::Boolean,
        (JsonType::Integer, _) => FieldKind::Integer,
        (JsonType::Number, _) => FieldKind::Number,
        (JsonType::String, Some("date")) => FieldKind::Date,
        (JsonType::String, Some("date-time")) => FieldKind::DateTime,
        (JsonType::String, _) => FieldKind::Text,
        (JsonType::Array, _) => FieldKind::Array,
        (JsonType::Object, _) => FieldKind::Object,
        (JsonType::Null, _) => FieldKind::Mixed,
    }
}

/// The scalar kind of the items of an array, where their schema says one outright.
fn items(node: &Node) -> Option<FieldKind> {
    // What is wrong inside is not looked at here: it only keeps the items from being compared.
    let ignored = &mut Mistakes::default();
    if json::kind_of(&node.raw) != JsonKind::Object {
        return None;
    }
    let mut items = node.object(ignored)?;
    let types = read_types(&items.optional("type")?, ignored);
    let format = items.text("format", ignored);
    Some(kind(&types, format.as_deref())).filter(|kind| kind.is_scalar())
}

/// A field named `blob_ref` is how a record points at bytes, so its shape is fixed.
fn check_blob_ref(field: &FieldDeclaration, property: &mut Object, mistakes: &mut Mistakes) {
    let path = property.path.clone();
    if field.kind != FieldKind::Object {
        mistakes.add(&path, "blob_ref must have type object");
        return;
    }
    match property.object("properties", mistakes) {
        None => mistakes.add(&path, "blob_ref must have properties"),
        Some(properties) => {
            if !properties
                .members()
                .iter()
                .any(|(name, _)| name == "blob_id")
            {
                mistakes.add(
                    step(&path, "properties"),
                    "blob_ref must declare the property blob_id",
                );
            }
        }
    }
    let required = property
        .optional("required")
        .and_then(|node| serde_json::from_str::<Vec<String>>(&node.raw).ok());
    if !required
        .unwrap_or_default()
        .iter()
        .any(|name| name == "blob_id")
    {
        mistakes.add(&path, "blob_ref must list blob_id in required");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_recognised_in_every_spelling() {
        for raw in [
            "0",
            "-0",
            "1",
            "1.0",
            "10e-1",
            "1e3",
            "1.50e1",
            "0.0e-9",
            "1e99999999999999999999",
            "-20E-1",
        ] {
            assert!(is_whole(raw), "{raw}");
        }
        for raw in ["1.5", "1e-1", "10e-2", "1.05e1", "1e-99999999999999999999"] {
            assert!(!is_whole(raw), "{raw}");
        }
    }
}
