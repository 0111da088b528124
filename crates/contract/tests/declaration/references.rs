//! Types behind references and combinations count like types that stand in place.

use contract::declaration::{Declaration, FieldDeclaration, JsonType, Reading};
use contract::scalar::FieldKind;
use serde_json::{Value, json};

use crate::mistakes;

/// A declaration whose one stream has the property `r` and these definitions.
fn file(property: &Value, definitions: &Value) -> String {
    json!({
        "protocol_version": "0.1.0",
        "source": {"kind": "connector", "id": "https://sources.example/kit"},
        "declaration_version": "1",
        "streams": [{
            "name": "items",
            "semantics": "mutable_state",
            "primary_key": ["id"],
            "schema": {
                "type": "object",
                "properties": {"id": {"type": "string"}, "r": property, "secret": {"type": "string", "title": "Hidden"}},
                "$defs": definitions,
            },
        }],
    })
    .to_string()
}

fn definitions() -> Value {
    json!({
        "i": {"type": "integer", "minimum": 1},
        "day": {"$anchor": "day", "type": "string", "format": "date", "x_pdpp_role": "time"},
        "other day": {"$ref": "#/$defs/day"},
        "tree": {"type": "object", "properties": {"below": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}},
    })
}

fn field(property: &Value) -> FieldDeclaration {
    let declaration = Declaration::parse(&file(property, &definitions())).unwrap();
    declaration.streams[0].field("r").unwrap().clone()
}

/// Property, its kind, and whether it may be null.
const KINDS: &str = r##"
{"$ref": "#/$defs/i"} | integer | false
{"$ref": "#/$defs/other%20day"} | date | false
{"$ref": "#day"} | date | false
{"$ref": "#/properties/secret"} | text | false
{"$ref": "#"} | object | false
{"$ref": "#/$defs/tree"} | object | false
{"anyOf": [{"type": "integer"}, {"type": "null"}]} | integer | true
{"oneOf": [{"type": "null"}, {"$ref": "#/$defs/day"}]} | date | true
{"anyOf": [{"type": "integer"}, {"type": "number"}]} | number | false
{"anyOf": [{"type": "integer"}, {"type": "string"}]} | mixed | false
{"anyOf": [{"type": "integer"}, {}]} | mixed | true
{"anyOf": [{"type": "string", "format": "date"}, {"type": "string", "format": "date-time"}]} | text | false
{"type": ["number", "null"], "$ref": "#/$defs/i"} | integer | false
{"allOf": [{"type": "string"}, {"format": "date-time"}]} | date_time | false
"##;

fn rows<const N: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    table.trim().lines().map(|line| {
        let cells: Vec<&str> = line.split(" | ").collect();
        cells.try_into().unwrap_or_else(|_| panic!("{line}"))
    })
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_type_behind_references_and_combinations_is_the_type_of_the_field() {
    for [property, kind, nullable] in rows(KINDS) {
        let field = field(&parsed(property));
        let told = (field.kind.as_str(), field.nullable.to_string());
        assert_eq!(told, (kind, nullable.to_owned()), "{property}");
    }
    let integer = field(&json!({"anyOf": [{"$ref": "#/$defs/i"}, {"type": "null"}]}));
    assert_eq!(integer.types, [JsonType::Integer, JsonType::Null]);
    assert!(integer.accepts("5") && integer.accepts("null") && !integer.accepts("\"5\""));
}

/// Property, and its schema by itself. What leads back to itself ends with its type; other properties are not copied, and not
/// named.
const ALONE: &str = r##"
{"type": "string"} | {"type": "string"}
{"$ref": "#/$defs/i"} | {"type": "integer", "minimum": 1}
{"$ref": "#/$defs/i", "title": "Count"} | {"title": "Count", "type": "integer", "minimum": 1}
{"$ref": "#/$defs/i", "minimum": 5} | {"type": "integer", "allOf": [{"minimum": 5}, {"type": "integer", "minimum": 1}]}
{"anyOf": [{"$ref": "#/$defs/i"}, {"type": "null"}]} | {"type": ["integer", "null"], "anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}
{"$ref": "#/$defs/tree"} | {"type": "object", "properties": {"below": {"type": "array", "items": {"type": "object"}}}}
{"$ref": "#/properties/secret"} | {"type": "string"}
{"$ref": "#"} | {"type": "object"}
{"type": "array", "items": {"$ref": "#"}} | {"type": "array", "items": {"type": "object"}}
"##;

#[test]
fn the_schema_of_a_field_can_be_read_by_itself() {
    for [property, alone] in rows(ALONE) {
        let schema = field(&parsed(property)).schema;
        assert_eq!(parsed(&schema), parsed(alone), "{property}");
    }
    assert_eq!(
        field(&json!({"$ref": "#/$defs/day"})).role.as_deref(),
        Some("time")
    );
}

/// Property, definitions, what to name after `/streams/0/schema`, words of the rule.
const REFUSED: &str = r##"
{"$ref": "#/$defs/j"} | {"i": {}} | /properties/r/$ref | did you mean "#/$defs/i"
{"$ref": "#nowhere"} | {} | /properties/r/$ref | there is no "#nowhere"
{"$ref": "#/type"} | {} | /properties/r/$ref | must point at a schema
{"items": {"$ref": "#/%zz"}} | {} | /properties/r/items/$ref | must point at a schema
{"$ref": "other.json#/i"} | {} | /properties/r/$ref | must stay inside this schema
{"$ref": "#/properties/r"} | {} | /properties/r/$ref | leads back to itself
{} | {"a": {"$ref": "#/$defs/a"}} | /$defs/a/$ref | leads back to itself
{} | {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}} | /$defs/b/anyOf/0/$ref | leads back to itself
{"type": "string", "$ref": "#/$defs/i"} | {"i": {"type": "integer"}} | /properties/r | contradict each other
{"$ref": "#/$defs/i"} | {"i": {"type": "int"}} | /$defs/i/type | must be one of
{"type": "string", "pattern": "("} | {} | /properties/r/pattern | a group is not closed
"##;

#[test]
fn a_reference_that_leads_nowhere_or_back_is_refused_with_its_place() {
    for [property, definitions, path, words] in rows(REFUSED) {
        let found = mistakes(&file(&parsed(property), &parsed(definitions)));
        assert_eq!(found.len(), 1, "{property}: {found:?}");
        assert_eq!(found[0].0, format!("/streams/0/schema{path}"), "{found:?}");
        assert!(found[0].1.contains(words), "{found:?}");
    }
}

#[test]
fn references_are_followed_with_bounds() {
    // Each definition names the next one twice: written out, it would be larger than any memory.
    let mut doubling = serde_json::Map::new();
    for at in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        doubling.insert(
            format!("d{at}"),
            json!({"type": "object", "properties": {"a": next.clone(), "b": next}}),
        );
    }
    doubling.insert("d40".to_owned(), json!({"type": "string"}));
    let text = file(&json!({"$ref": "#/$defs/d0"}), &Value::Object(doubling));
    let declaration = Declaration::parse(&text).unwrap();
    assert_eq!(
        declaration.streams[0].field("r").unwrap().schema,
        r#"{"type":"object"}"#
    );

    let mut chain = serde_json::Map::new();
    for at in 0..200 {
        chain.insert(
            format!("d{at}"),
            json!({"$ref": format!("#/$defs/d{}", at + 1)}),
        );
    }
    chain.insert("d200".to_owned(), json!({"type": "string"}));
    let found = mistakes(&file(&json!({"$ref": "#/$defs/d0"}), &Value::Object(chain)));
    assert!(
        found[0].1.contains("references lead on from here"),
        "{found:?}"
    );
}

#[test]
fn a_declaration_from_before_references_were_followed_keeps_its_meaning() {
    let text = file(
        &json!({"$ref": "#/$defs/gone", "x_pdpp_role": "title"}),
        &json!({"a": {"$ref": "#/$defs/a"}}),
    );
    assert!(Declaration::parse(&text).is_err());
    let declaration = Declaration::parse_as(&text, Reading::Literal).unwrap();
    let field = declaration.streams[0].field("r").unwrap();
    assert_eq!(
        (field.kind, field.schema.as_str()),
        (FieldKind::Mixed, "{}")
    );
    assert!(field.accepts("\"x\""));
    assert_eq!(field.role.as_deref(), Some("title"));
}
