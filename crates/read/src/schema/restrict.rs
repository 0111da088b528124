//! A stream's JSON Schema, restricted to the properties that may be seen.

use contract::declaration::FieldDeclaration;
use contract::json::RecordBody;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::enforce::Row;
use crate::failure::Result;
use crate::project::raw_json;

/// The owner's schema as written; a client's with the properties it may see and nothing else, for everything around them
/// may name the others.
pub(super) fn schema(row: &Row) -> Result<Box<RawValue>> {
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
        properties.push_str(&schema_of(row, field));
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

/// One property's schema, which stands by itself: it neither names nor shows what is around it.
pub(super) fn property(row: &Row, field: &FieldDeclaration) -> Result<Box<RawValue>> {
    raw_json(schema_of(row, field))
}

/// As declared, or that of the part that is shown.
fn schema_of(row: &Row, field: &FieldDeclaration) -> String {
    match row.redaction(field.name.as_str()) {
        None => field.schema.clone(),
        Some(redaction) => redaction.schema(),
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
