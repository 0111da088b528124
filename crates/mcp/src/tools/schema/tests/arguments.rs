//! A reader with nothing but the text of a schema forms calls that a strict server accepts.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::fixtures::{grant, server};
use super::next;

/// What the text says of one source.
struct Row {
    connections: Vec<String>,
    /// Flags by field.
    fields: BTreeMap<String, Vec<String>>,
    sort: Option<String>,
}

/// The legend: abbreviation to meaning.
fn legend(text: &str) -> BTreeMap<String, String> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("field_capability_legend: "))
        .unwrap();
    line.split("; ")
        .filter_map(|entry| entry.split_once(" = "))
        .map(|(name, meaning)| (name.to_owned(), meaning.to_owned()))
        .collect()
}

fn rows(text: &str) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for line in text.lines() {
        if let Some((_, connections)) = line
            .strip_prefix("stream name=")
            .and_then(|line| line.split_once("connections="))
        {
            let id = |one: &str| one.split(' ').next().unwrap().to_owned();
            rows.push(Row {
                connections: connections.split('|').map(id).collect(),
                fields: BTreeMap::new(),
                sort: None,
            });
        } else if let Some(fields) = line.strip_prefix("fields=") {
            for field in fields.split(';') {
                let (name, flags) = field.trim_end_matches(']').split_once('[').unwrap();
                let flags = flags.split(',').map(str::to_owned).collect();
                let row = rows.last_mut().unwrap();
                row.fields.insert(name.to_owned(), flags);
            }
        } else if let Some(sort) = line.strip_prefix("sort: ") {
            let field = sort.split(' ').next().unwrap();
            rows.last_mut().unwrap().sort = Some(field.to_owned());
        }
    }
    rows
}

/// A server that takes exactly what the grant declares.
fn accepts(connection: &str, args: &Value) -> bool {
    let grant = grant();
    let row = grant["connectors"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|connector| connector["streams"].as_array().unwrap())
        .find(|row| {
            row["name"] == args["stream"]
                && row["granted_connections"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|one| one["connection_id"] == connection)
        })
        .cloned()
        .unwrap();
    let usable = |field: &str, path: &str| {
        let field = &row["field_capabilities"][field];
        field
            .pointer(path)
            .is_some_and(|capability| capability["usable"] == true)
    };
    let filter = args["filter"].as_object().cloned().unwrap_or_default();
    let filters = filter.iter().all(|(field, test)| match test {
        Value::Object(range) => range.keys().all(|operator| {
            let operators = &row["field_capabilities"][field]["range_filter"]["operators"];
            operators.as_array().unwrap().contains(&json!(operator))
        }),
        _ => usable(field, "/exact_filter"),
    });
    let known = |name: &Value| {
        row["field_capabilities"]
            .get(name.as_str().unwrap())
            .is_some()
    };
    let fields = args["fields"]
        .as_array()
        .is_none_or(|all| all.iter().all(known));
    let sort = args["sort"]
        .as_str()
        .is_none_or(|sort| row["cursor_field"] == sort.trim_start_matches('-'));
    let aggregates = ["group_by", "group_by_time"].iter().all(|name| {
        args[*name]
            .as_str()
            .is_none_or(|field| usable(field, &format!("/aggregation/{name}")))
    });
    let metric = args["field"].as_str().is_none_or(|field| {
        usable(
            field,
            &format!("/aggregation/{}", args["metric"].as_str().unwrap()),
        )
    });
    filters && fields && sort && aggregates && metric
}

/// Every call the flags of a row promise, decoded by the legend and nothing else.
fn calls(row: &Row, legend: &BTreeMap<String, String>) -> Vec<Value> {
    let names: Vec<&String> = row.fields.keys().collect();
    let mut calls = vec![
        json!({"stream": "messages", "fields": names}),
        json!({"stream": "messages", "sort": row.sort}),
    ];
    let flags = row
        .fields
        .iter()
        .flat_map(|(field, flags)| flags.iter().map(move |flag| (field, flag)));
    for (field, flag) in flags {
        let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
        let meaning = legend
            .get(name)
            .unwrap_or_else(|| panic!("{name} is not explained"));
        if meaning.starts_with("exact filter") {
            calls.push(json!({"stream": "messages", "filter": {field: "x"}}));
        } else if meaning.starts_with("range filter") {
            let range = |operator: &str| json!({"stream": "messages", "filter": {field: {operator: "2026-01-01"}}});
            calls.extend(value.split('|').map(range));
        } else if meaning.starts_with("aggregate") {
            let aggregate = |name: &str| match name {
                "group_by" | "group_by_time" => {
                    json!({"stream": "messages", "metric": "count", name: field})
                }
                metric => json!({"stream": "messages", "metric": metric, "field": field}),
            };
            calls.extend(value.split('|').map(aggregate));
        }
    }
    calls
}

#[test]
fn text_alone_is_enough_to_filter_sort_project_and_aggregate() {
    // SC-08, SC-11, SC-12
    let stub = server(&grant(), &[(Some("messages"), None)]);
    let text = stub
        .call("schema", json!({"stream": "messages"}))
        .unwrap()
        .text;
    let legend = legend(&text);
    let rows = rows(&text);
    assert_eq!(rows.len(), 2);
    let connections: Vec<&str> = rows
        .iter()
        .flat_map(|row| &row.connections)
        .map(String::as_str)
        .collect();
    assert_eq!(connections, ["cin_s1", "cin_s2", "cin_g1"]);
    let mut formed = 0;
    for row in &rows {
        for args in calls(row, &legend) {
            assert!(accepts(&row.connections[0], &args), "{args}");
            formed += 1;
        }
    }
    assert_eq!(formed, 2 * (2 + 2 + 2 + 6));
    // The calls it ends with are accepted as they stand.
    let offered = next(&text);
    let tools: Vec<&str> = offered.iter().map(|(tool, _)| tool.as_str()).collect();
    assert_eq!(tools, ["query_records", "aggregate", "search"]);
    for (_, args) in offered.iter().take(2) {
        assert!(
            accepts(args["connection_id"].as_str().unwrap(), args),
            "{args}"
        );
    }
    assert_eq!(offered[2].1["streams"], json!(["messages"]));
}
