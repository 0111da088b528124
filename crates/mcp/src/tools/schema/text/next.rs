//! The calls a schema leads to, with names from the answer, to be sent as they stand.

use serde_json::{Map, Value, json};

use super::super::Scope;
use super::row::Block;
use crate::answer::schema::capability::{Capabilities, Field, Use};
use crate::answer::schema::document::Document;
use crate::args::can_be_listed;
use crate::budget;
use crate::text::plain;

/// The call that tells more of one stream: of its only source, where the name alone would mean several.
pub(super) fn schema_call(document: &Document, scope: &Scope<'_>) -> String {
    let mut args = Map::new();
    if let Some((_, row)) = document.rows().next() {
        args.insert("stream".to_owned(), json!(row.name));
    }
    if let Some(connection) = scope.connection {
        args.insert("connection_id".to_owned(), json!(connection));
    }
    format!("schema {}", plain::json(&Value::Object(args).to_string()))
}

/// Reads of this row, the plainest first.
pub(super) fn calls(block: &Block<'_>, needs_connection: bool) -> String {
    let mut place = Map::new();
    place.insert("stream".to_owned(), json!(block.row.name));
    if needs_connection && let Some(connection) = block.row.connections.first() {
        place.insert("connection_id".to_owned(), json!(connection.id));
    }
    let accepts = &block.accepts;
    let calls = [
        Some(records(place.clone(), accepts)),
        aggregate(place.clone(), accepts),
        search(place, accepts),
    ];
    let calls: Vec<String> = calls.into_iter().flatten().collect();
    calls.join(" or ")
}

fn call(tool: &str, args: Map<String, Value>) -> String {
    format!("{tool} {}", plain::json(&Value::Object(args).to_string()))
}

fn records(mut args: Map<String, Value>, accepts: &Capabilities) -> String {
    let fields = telling(accepts);
    if !fields.is_empty() {
        args.insert("fields".to_owned(), json!(fields));
    }
    if let Some((name, test)) = accepts.fields.iter().find_map(range) {
        args.insert("filter".to_owned(), json!({ name: test }));
    }
    if let Some(field) = &accepts.sort {
        args.insert("sort".to_owned(), json!(format!("-{field}")));
    }
    args.insert("limit".to_owned(), json!(budget::DEFAULT_LIMIT));
    call("query_records", args)
}

/// Three fields that tell records apart, in declared order: when, what it is called, by whom, then any others. A key says
/// little, and ids are printed anyway.
fn telling(accepts: &Capabilities) -> Vec<&str> {
    let rank = |field: &Field| match field.role.as_deref() {
        _ if accepts.sort.as_deref() == Some(field.name.as_str()) => 0,
        Some(role) if role == "title" || role.ends_with("-title") => 1,
        Some("author") => 2,
        _ if field.name == "id" || field.name.ends_with("_id") => 4,
        _ => 3,
    };
    let granted = accepts.fields.iter().enumerate();
    let can_be_asked = |(_, field): &(usize, &Field)| field.granted && can_be_listed(&field.name);
    let mut granted: Vec<(usize, &Field)> = granted.filter(can_be_asked).collect();
    granted.sort_by_key(|(place, field)| (rank(field), *place));
    granted.truncate(3);
    granted.sort_by_key(|(place, _)| *place);
    granted
        .iter()
        .map(|(_, field)| field.name.as_str())
        .collect()
}

/// A range over the field that any server of this schema can read.
fn range(field: &Field) -> Option<(&str, Value)> {
    let operator = field.range.as_ref()?.first()?;
    let bound = if field.is_number() {
        json!(0)
    } else {
        json!("2026-01-01")
    };
    Some((field.name.as_str(), json!({ operator: bound })))
}

fn aggregate(mut args: Map<String, Value>, accepts: &Capabilities) -> Option<String> {
    let offered = accepts.aggregates();
    let field = |name: &str| {
        let (_, fields) = offered.iter().find(|(known, _)| *known == name)?;
        fields.first().copied()
    };
    let metric = ["sum", "max", "min", "count_distinct"]
        .into_iter()
        .find_map(|metric| Some((metric, field(metric)?)));
    // Groups are counts, and the compact view does not say whether records may be counted.
    let grouped = match accepts.counts_records {
        Some(counts) => counts,
        None => metric.is_none(),
    };
    let mut put = |name: &str, value: &str| args.insert(name.to_owned(), json!(value));
    if let Some(by) = field("group_by").filter(|_| grouped) {
        put("metric", "count");
        put("group_by", by);
    } else if let Some(by) = field("group_by_time").filter(|_| grouped) {
        put("metric", "count");
        put("group_by_time", by);
        put("granularity", "month");
    } else if let Some((metric, field)) = metric {
        put("metric", metric);
        put("field", field);
    } else if accepts.counts_records == Some(true) {
        put("metric", "count");
    } else {
        return None;
    }
    Some(call("aggregate", args))
}

fn search(mut args: Map<String, Value>, accepts: &Capabilities) -> Option<String> {
    let is_searched = accepts
        .fields
        .iter()
        .any(|field| field.is_for(Use::Lexical));
    let stream = args.remove("stream")?;
    let is_searched = is_searched && stream.as_str().is_some_and(can_be_listed);
    args.insert("query".to_owned(), json!("words to find"));
    args.insert("streams".to_owned(), json!([stream]));
    is_searched.then(|| call("search", args))
}
