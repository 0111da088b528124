//! SC and BU-05/06: discovery, from the index to the raw schema.

use serde_json::{Value, json};
use testkit::fake::{Quirk, State, fixtures};

use crate::answer::Answer;
use crate::host::{Caller, each_way};

/// Both servers with the same data, one of which ignores what it is asked.
fn strict_and_lax() -> [State; 2] {
    [fixtures::schema(), fixtures::schema_lax()]
}

/// Whether a raw field schema stands anywhere.
fn has_raw_schema(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            let is_schema =
                |value: &Value| value.get("type").is_some() || value.get("properties").is_some();
            members.get("schema").is_some_and(is_schema) || members.values().any(has_raw_schema)
        }
        Value::Array(many) => many.iter().any(has_raw_schema),
        _ => false,
    }
}

fn connectors(answer: &Answer) -> &Vec<Value> {
    answer.structured["data"]["connectors"].as_array().unwrap()
}

fn streams_of(answer: &Answer) -> Vec<String> {
    let rows = connectors(answer).iter().flat_map(|one| {
        let key = one["connector_key"].as_str().unwrap();
        let streams = one["streams"].as_array().unwrap().iter();
        streams.map(move |stream| format!("{key}/{}", stream["name"].as_str().unwrap()))
    });
    rows.collect()
}

// SC-01, SC-02, SC-05, SC-21
#[test]
fn without_arguments_it_is_an_index_without_fields() {
    for state in strict_and_lax() {
        each_way(&state, |caller| {
            let (answer, calls) = caller.asked("schema", json!({}));
            assert_eq!(calls.len(), 1);
            assert_eq!(calls[0].value("view"), Some("compact"));
            assert_eq!(answer.structured["data"]["detail"], "compact");
            let told = answer.structured.to_string();
            assert!(!told.contains("field_capabilities\":"), "{told}");
            assert!(!has_raw_schema(&answer.structured));
            assert!(!answer.text.contains("[t="), "{}", answer.text);
            let explicit = caller.ok("schema", json!({"detail": "compact"}));
            assert_eq!(explicit.text, answer.text);
            assert_eq!(explicit.structured["data"], answer.structured["data"]);
            for args in [
                json!({"connection_id": "cin_s1"}),
                json!({"stream": "messages"}),
            ] {
                assert!(!has_raw_schema(&caller.ok("schema", args).structured));
            }
        });
    }
}

/// The legend of a text: what each abbreviation means.
fn legend(text: &str) -> Vec<(String, String)> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("field_capability_legend: "));
    let entries = line.unwrap_or_default().split("; ");
    entries
        .filter_map(|entry| entry.split_once(" = "))
        .map(|(flag, meaning)| (flag.to_owned(), meaning.to_owned()))
        .collect()
}

fn fields(text: &str) -> Vec<(String, Vec<String>)> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("fields="))
        .unwrap();
    let fields = line.split(';').map(|field| {
        let (name, flags) = field.strip_suffix(']').unwrap().split_once('[').unwrap();
        (
            name.to_owned(),
            flags.split(',').map(str::to_owned).collect(),
        )
    });
    fields.collect()
}

/// A call of `messages` at one connection, with one more argument.
fn call_with(tool: &'static str, more: &[(&str, Value)]) -> (&'static str, Value) {
    let mut args = json!({"stream": "messages", "connection_id": "cin_s1"});
    for (name, value) in more {
        args[*name] = value.clone();
    }
    (tool, args)
}

/// The calls that a flag of a field allows, by what the legend says it means.
fn allowed(name: &str, flag: &str, meaning: &str) -> Vec<(&'static str, Value)> {
    let values = flag.split_once('=').map_or("", |(_, values)| values);
    let filter = |value: Value| call_with("query_records", &[("filter", json!({name: value}))]);
    if meaning.contains("exact filter") {
        return vec![filter(json!("ada"))];
    }
    if meaning.contains("range filter") {
        let operators = values.split('|');
        return operators
            .map(|operator| filter(json!({operator: "2026-01-01T00:00:00Z"})))
            .collect();
    }
    if meaning.contains("searched by words") {
        let args = json!({"query": "message", "streams": ["messages"]});
        return vec![("search", args)];
    }
    if !meaning.contains("aggregate") {
        return Vec::new();
    }
    let figure = |metric: &str| match metric {
        "group_by" => vec![("metric", json!("count")), ("group_by", json!(name))],
        "group_by_time" => vec![
            ("metric", json!("count")),
            ("group_by_time", json!(name)),
            ("granularity", json!("month")),
        ],
        metric => vec![("metric", json!(metric)), ("field", json!(name))],
    };
    let figures = values.split('|').map(figure);
    figures.map(|more| call_with("aggregate", &more)).collect()
}

// SC-08, SC-11, SC-12: nothing is used here but the text and its legend.
#[test]
fn a_reader_of_text_alone_builds_calls_the_server_accepts() {
    each_way(&fixtures::schema(), |caller| {
        let text = caller.ok("schema", json!({"stream": "messages"})).text;
        let legend = legend(&text);
        let mut calls = Vec::new();
        for (name, flags) in fields(&text) {
            calls.push(call_with("query_records", &[("fields", json!([name]))]));
            for flag in &flags {
                let abbreviation = flag.split('=').next().unwrap();
                let found = legend.iter().find(|(known, _)| known == abbreviation);
                let (_, meaning) = found.unwrap_or_else(|| panic!("no legend for {flag}"));
                calls.extend(allowed(&name, flag, meaning));
            }
        }
        let sort = text.lines().find_map(|line| line.strip_prefix("sort: "));
        let field = sort.unwrap().split(' ').next().unwrap();
        for order in [field.to_owned(), format!("-{field}")] {
            calls.push(call_with("query_records", &[("sort", json!(order))]));
        }
        calls.push(call_with("query_records", &[("count", json!("exact"))]));
        assert!(calls.len() >= 16, "{calls:?}");
        for tool in ["query_records", "aggregate", "search"] {
            let printed = crate::answer::printed(&text, tool).into_iter();
            calls.extend(printed.map(|args| (tool, args)));
        }
        for (tool, args) in calls {
            caller.ok(tool, args);
        }
    });
}

// SC-13, SC-14
#[test]
fn the_whole_grant_in_full_is_refused_with_the_way_there() {
    each_way(&fixtures::schema(), |caller| {
        for args in [
            json!({"detail": "full"}),
            json!({"detail": "full", "connection_id": "cin_s1"}),
        ] {
            let answer = caller.refused_unasked("schema", args);
            assert!(
                answer
                    .text
                    .contains("schema(stream, connection_id, detail: \"full\")")
            );
            assert!(answer.text.contains("compact discovery first"));
        }
    });
}

// SC-19, SC-20
#[test]
fn a_wrapped_or_repeated_document_is_told_once() {
    let states = [
        fixtures::schema().with(Quirk::WrapsSchemaInData),
        fixtures::schema().with(Quirk::RepeatsStreamsAtTop),
        fixtures::schema_lax()
            .with(Quirk::WrapsSchemaInData)
            .with(Quirk::RepeatsStreamsAtTop),
        fixtures::schema().with(Quirk::RefusesCompactView),
    ];
    for state in states {
        each_way(&state, |caller: &Caller| {
            let compact = caller.ok("schema", json!({}));
            assert_eq!(
                streams_of(&compact),
                ["slack/messages", "slack/channels", "gmail/messages"]
            );
            let full = caller.ok("schema", json!({"stream": "channels", "detail": "full"}));
            assert_eq!(streams_of(&full), ["slack/channels"]);
            for answer in [compact, full] {
                let data = &answer.structured["data"];
                assert!(data.get("data").is_none());
                assert!(data.get("streams").is_none(), "{data}");
            }
        });
    }
}
