//! What a later version of a declaration may change (decision 27).

use contract::declaration::{Declaration, plan_change};
use serde_json::{Value, json};

use crate::{GOOD, edited, good};

fn changed(edits: &[(&str, Option<Value>)]) -> Declaration {
    let mut file = good();
    file["declaration_version"] = json!("4");
    for (pointer, value) in edits {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let members = file.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match value {
            Some(value) => drop(members.insert(name.to_owned(), value.clone())),
            None => drop(members.remove(name).unwrap()),
        }
    }
    Declaration::parse(&file.to_string()).unwrap()
}

fn refusal(new: &Declaration) -> (String, String) {
    let errors = plan_change(&Declaration::parse(GOOD).unwrap(), new).unwrap_err();
    assert_eq!(errors.0.len(), 1, "{errors}");
    (errors.0[0].path.clone(), errors.0[0].rule.clone())
}

#[test]
fn the_same_content_in_another_order_is_unchanged() {
    let old = Declaration::parse(GOOD).unwrap();
    // serde_json sorts members: other text, same value.
    let sorted = Declaration::parse(&good().to_string()).unwrap();
    assert_ne!(old.as_str(), sorted.as_str());
    assert!(plan_change(&old, &sorted).unwrap().unchanged);
}

#[test]
fn other_content_under_the_same_version_is_refused() {
    let new = Declaration::parse(&edited("/display/name", Some(json!("Other")))).unwrap();
    let (path, rule) = refusal(&new);
    assert_eq!(path, "/declaration_version");
    assert!(rule.contains("raise declaration_version"), "{rule}");
}

#[test]
fn primary_key_semantics_and_source_id_never_change() {
    for (pointer, value) in [
        ("/streams/0/primary_key", json!(["id", "subject"])),
        ("/streams/0/semantics", json!("append_only")),
        ("/source/id", json!("https://elsewhere.example/demo_mail")),
    ] {
        assert_eq!(refusal(&changed(&[(pointer, Some(value))])).0, pointer);
    }
}

#[test]
fn changes_that_depend_on_data_are_listed_with_their_paths() {
    let old = Declaration::parse(GOOD).unwrap();
    let schema = "/streams/0/schema/properties";
    let new = changed(&[
        (
            &format!("{schema}/body"),
            Some(json!({"type": ["string", "null"]})),
        ),
        (
            &format!("{schema}/size_bytes"),
            Some(json!({"type": "number"})),
        ),
        (&format!("{schema}/price"), Some(json!({"type": "integer"}))),
        (
            &format!("{schema}/anything"),
            Some(json!({"type": "string"})),
        ),
        (&format!("{schema}/either"), Some(json!({}))),
        (&format!("{schema}/added"), Some(json!({"type": "string"}))),
        (&format!("{schema}/day"), None),
    ]);
    let change = plan_change(&old, &new).unwrap();
    let mut retyped: Vec<_> = change
        .retyped
        .iter()
        .map(|entry| entry.path.as_str())
        .collect();
    retyped.sort_unstable();
    assert_eq!(
        retyped,
        [
            format!("{schema}/added"),
            format!("{schema}/anything"),
            format!("{schema}/price")
        ]
    );
    assert_eq!(change.removed.len(), 1);
    assert_eq!(change.removed[0].path, format!("{schema}/day"));
    assert_eq!(change.removed[0].field.as_ref().unwrap().as_str(), "day");
    assert_eq!(change.reindex, [new.streams[0].name.clone()]);
    assert!(change.reordered.is_empty() && !change.unchanged);
}

#[test]
fn a_stream_that_is_gone_is_listed_as_a_whole() {
    let mut file = good();
    file["declaration_version"] = json!("4");
    let attachments = file["streams"].as_array_mut().unwrap().pop().unwrap();
    file["streams"][0]["relationships"] = json!([]);
    file["streams"][0]["query"]["expand"] = json!([]);
    file["selection_presets"] = json!([]);
    let new = Declaration::parse(&file.to_string()).unwrap();
    let change = plan_change(&Declaration::parse(GOOD).unwrap(), &new).unwrap();
    assert_eq!(change.removed.len(), 1);
    assert_eq!(
        (change.removed[0].path.as_str(), &change.removed[0].field),
        ("/streams", &None)
    );
    assert_eq!(
        change.removed[0].stream,
        attachments["name"].as_str().unwrap()
    );
}

/// A member of the stream, what it becomes, and what that does to the records.
const CAPABILITIES: &str = r#"
query/search | {"lexical_fields": ["body"]} | reindexed
query/range_filters | {} | reindexed
query/aggregations | - | reindexed
schema/properties/id | {"type": "string", "format": "date"} | reindexed
cursor_field | "size_bytes" | reordered
views | [{"id": "envelope", "fields": ["id"]}] | nothing
description | "More mail" | nothing
schema/properties/tags | {"type": "array"} | nothing
"#;

#[test]
fn capabilities_reindex_and_a_new_cursor_reorders() {
    let old = Declaration::parse(GOOD).unwrap();
    let stream = old.streams[0].name.clone();
    for line in CAPABILITIES.trim().lines() {
        let cells: Vec<&str> = line.split(" | ").collect();
        let [pointer, value, effect] = cells[..] else {
            panic!("{line}")
        };
        let pointer = format!("/streams/0/{pointer}");
        let value = (value != "-").then(|| serde_json::from_str(value).unwrap());
        let (reindex, reorder) = (effect == "reindexed", effect == "reordered");
        let change = plan_change(&old, &changed(&[(&pointer, value)])).unwrap();
        assert_eq!(change.reindex.contains(&stream), reindex, "{pointer}");
        assert_eq!(change.reordered.contains(&stream), reorder, "{pointer}");
        assert!(change.removed.is_empty(), "{pointer}");
    }
}
