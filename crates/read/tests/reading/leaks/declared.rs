//! The source of a random scene, declared with all of its fields or with some.

use serde_json::{Value, json};

use super::scene::fields_of;

/// The declaration with the fields that are kept, and with uses only of those that are granted.
pub(crate) fn declaration(
    keeps: &dyn Fn(&str, &str) -> bool,
    grants: &dyn Fn(&str, &str) -> bool,
) -> String {
    // Rules look at fields that are not granted.
    let listed = |stream: &'static str, names: &[&'static str]| -> Vec<&str> {
        names
            .iter()
            .copied()
            .filter(|name| keeps(stream, name))
            .collect()
    };
    let properties = |stream: &'static str| -> Value {
        let kept = fields_of(stream).iter().filter(|name| keeps(stream, name));
        kept.map(|name| ((*name).to_owned(), property(name)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let mut notes = json!({
        "name": "notes", "semantics": "mutable_state", "primary_key": ["akey"],
        "schema": {"type": "object", "properties": properties("notes")},
        "query": {"search": {"lexical_fields": listed("notes", &["btitle", "cbody"])}}
    });
    for member in ["cursor_field", "consent_time_field"] {
        if grants("notes", "dmoment") {
            notes[member] = json!("dmoment");
        }
    }
    let mut aggregations = json!({"count": true});
    for (list, names) in [
        ("sum", &["eamount"][..]),
        ("min", &["eamount", "dmoment"]),
        ("max", &["eamount", "dmoment"]),
        ("group_by", &["ftag", "gflag"]),
        ("group_by_time", &["dmoment"]),
        ("count_distinct", &["ftag", "eamount"]),
    ] {
        aggregations[list] = json!(listed("notes", names));
    }
    notes["query"]["aggregations"] = aggregations;
    let ranges = ["dmoment", "eamount"].into_iter();
    let ranges = ranges
        .filter(|name| keeps("notes", name))
        .map(|name| (name.to_owned(), json!(["gte", "lt"])));
    notes["query"]["range_filters"] = ranges.collect::<serde_json::Map<_, _>>().into();
    if ["btitle", "cbody"].iter().all(|name| grants("notes", name)) {
        notes["views"] = json!([{"id": "texts", "label": "Texts", "fields": ["btitle", "cbody"]}]);
    }
    let mut streams = vec![notes];
    if keeps("parts", "pkey") {
        if grants("parts", "pnote") {
            streams[0]["relationships"] = json!([{"name": "pieces", "stream": "parts", "foreign_key": "pnote", "cardinality": "has_many"}]);
            streams[0]["query"]["expand"] =
                json!([{"name": "pieces", "default_limit": 2, "max_limit": 3}]);
        }
        streams.push(json!({
            "name": "parts", "semantics": "mutable_state", "primary_key": ["pkey"],
            "schema": {"type": "object", "properties": properties("parts")},
            "query": {"search": {"lexical_fields": listed("parts", &["ptext"])}}
        }));
    }
    json!({"protocol_version": "0.1.0", "source": {"kind": "connector", "id": "https://sources.example/random"},
        "declaration_version": "1", "streams": streams})
    .to_string()
}

fn property(name: &str) -> Value {
    match name {
        "dmoment" | "sent_at" => json!({"type": "string", "format": "date-time"}),
        "eamount" => json!({"type": "integer"}),
        "gflag" => json!({"type": "boolean"}),
        "btitle" => json!({"type": "string", "x_pdpp_role": "title"}),
        "ftag" => json!({"type": "string", "x_pdpp_role": "thread"}),
        "name" => json!({"type": "string", "x_pdpp_role": "author"}),
        _ => json!({"type": "string"}),
    }
}
