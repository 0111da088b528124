//! The `OpenAPI` document: that it is complete, and that answers are what it says.

use axum::http::Method;
use serde_json::Value;

use crate::fixture::{Answer, the_document};

/// Panics unless the document knows this answer.
pub(crate) fn holds(document: &Value, method: &Method, path: &str, answer: &Answer) {
    let status = answer.status.as_u16();
    let Some(template) = template_of(document, path) else {
        assert_eq!(answer.failure(), (404, "not_found"), "{path}");
        return;
    };
    let operation = &document["paths"][template][method.as_str().to_ascii_lowercase()];
    if operation.is_null() {
        assert_eq!(
            answer.failure(),
            (405, "method_not_allowed"),
            "{method} {path}"
        );
        return;
    }
    let response = &operation["responses"][status.to_string()];
    assert!(
        response.is_object(),
        "{method} {path} may not answer {status}: {}",
        answer.body
    );
    let schema = &response["content"]["application/json"]["schema"];
    if !schema.is_null() {
        assert_eq!(
            answer.header("content-type"),
            "application/json; charset=utf-8"
        );
        let told = conforms(document, schema, &answer.body);
        assert_eq!(told, Ok(()), "{method} {path}: {}", answer.body);
    }
}

fn template_of<'a>(document: &'a Value, path: &str) -> Option<&'a str> {
    let parts: Vec<&str> = path.split('/').collect();
    let fits = |template: &str| {
        let known: Vec<&str> = template.split('/').collect();
        let pairs = known.iter().zip(&parts);
        known.len() == parts.len()
            && pairs
                .clone()
                .all(|(known, part)| known == part || known.starts_with('{') && !part.is_empty())
    };
    let paths = document["paths"].as_object().unwrap();
    paths
        .keys()
        .map(String::as_str)
        .find(|template| fits(template))
}

/// As much of JSON Schema as the document uses.
fn conforms(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    if let Some(target) = schema["$ref"].as_str() {
        let target = document.pointer(target.trim_start_matches('#')).unwrap();
        return conforms(document, target, value);
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| is(kind, value)) {
        return Err(format!("{value} is not {kinds:?}"));
    }
    if !schema["const"].is_null() && schema["const"] != *value {
        return Err(format!("{value} is not {}", schema["const"]));
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        if value.get(name.as_str().unwrap()).is_none() {
            return Err(format!("{name} is missing in {value}"));
        }
    }
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(member) = value.get(name) {
            conforms(document, schema, member).map_err(|error| format!("{name}: {error}"))?;
        }
    }
    for item in value.as_array().into_iter().flatten() {
        if !schema["items"].is_null() {
            conforms(document, &schema["items"], item)?;
        }
    }
    Ok(())
}

fn is(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    }
}

#[test]
fn the_document_names_every_route_once_and_every_reference_leads_somewhere() {
    let document = the_document();
    let text = document.to_string();
    for target in text.split("\"$ref\":\"#").skip(1) {
        let target = target.split('"').next().unwrap();
        assert!(document.pointer(target).is_some(), "{target}");
    }
    let paths = document["paths"].as_object().unwrap();
    let operations = paths
        .values()
        .flat_map(|path| path.as_object().unwrap().values());
    let mut names: Vec<&str> = operations
        .map(|one| one["operationId"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
    for path in [
        "/v1/streams/{stream}/records/{record_id}/field-window",
        "/oauth/authorize",
        "/mcp",
    ] {
        assert!(paths.contains_key(path), "{path}");
    }
}
