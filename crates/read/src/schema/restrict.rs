//! A stream's JSON Schema, restricted to the properties that may be seen.

use contract::declaration::FieldDeclaration;
use contract::json::RecordBody;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::enforce::Row;
use crate::failure::Outcome;
use crate::project::raw_json;

/// The owner's schema as written; a client's with the properties it may see and nothing else, for everything around them
/// may name the others.
pub(super) fn schema(row: &Row) -> Outcome<Box<RawValue>> {
    if row.is_owner() {
        return raw_json(row.stream().schema.clone());
    }
    let mut properties = String::new();
    for field in row.fields() {
        if !properties.is_empty() {
            properties.push(',');
        }
        properties.push_str(&quoted(field.name.as_str()));
        properties.push(':');
        properties.push_str(&visible_part(field));
    }
    let required: Vec<String> = required(&row.stream().schema)
        .into_iter()
        .filter(|name| row.sees_field(name))
        .map(|name| quoted(&name))
        .collect();
    raw_json(format!(
        r#"{{"type":"object","required":[{}],"properties":{{{properties}}},"additionalProperties":false}}"#,
        required.join(",")
    ))
}

/// One property's schema.
pub(super) fn property(row: &Row, field: &FieldDeclaration) -> Outcome<Box<RawValue>> {
    raw_json(if row.is_owner() {
        field.schema.clone()
    } else {
        visible_part(field)
    })
}

/// A property that refers to other parts of the schema would show them, or point nowhere: then nothing is said of it.
fn visible_part(field: &FieldDeclaration) -> String {
    let refers =
        serde_json::from_str(&field.schema).map_or(true, |schema: Value| refers_elsewhere(&schema));
    if refers {
        "{}".to_owned()
    } else {
        field.schema.clone()
    }
}

fn refers_elsewhere(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(name, value)| {
            matches!(name.as_str(), "$ref" | "$dynamicRef" | "$recursiveRef")
                || refers_elsewhere(value)
        }),
        Value::Array(items) => items.iter().any(refers_elsewhere),
        _ => false,
    }
}

fn required(schema: &str) -> Vec<String> {
    let schema = RecordBody::parse(schema).ok();
    let listed = schema.as_ref().and_then(|schema| schema.get("required"));
    listed
        .and_then(|raw| serde_json::from_str(raw).ok())
        .unwrap_or_default()
}

fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}
