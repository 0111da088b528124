//! The calls a schema leads to, with names from the answer, to be sent as they stand.

use super::super::{Row, Scope};
use crate::answer::schema::capability::{Capabilities, Field, Use};
use crate::answer::schema::document::Document;
use crate::args::{Filter, Scalar, can_be_listed};
use crate::budget;
use crate::tool_call::ToolCall;

/// The call that tells more of one stream: of its only source, where the name alone would mean several.
pub(super) fn schema_call(document: &Document, scope: &Scope<'_>) -> ToolCall {
    let first = document.rows().next();
    ToolCall::new("schema")
        .with_some("stream", first.map(|(_, row)| &row.name))
        .with_some("connection_id", scope.connection)
}

/// Reads of this row, the plainest first.
pub(super) fn calls(row: &Row<'_>, needs_connection: bool) -> String {
    let connection = row.stream.connections.first();
    let connection = connection.filter(|_| needs_connection);
    let place = |tool| {
        ToolCall::new(tool)
            .with("stream", &row.stream.name)
            .with_some("connection_id", connection.map(|one| &one.id))
    };
    let calls = [
        Some(records(place("query_records"), &row.accepts)),
        aggregate(place("aggregate"), &row.accepts),
        search(place("search"), row),
    ];
    let calls = calls.into_iter().flatten().map(|call| call.to_string());
    calls.collect::<Vec<_>>().join(" or ")
}

fn records(mut call: ToolCall, accepts: &Capabilities) -> ToolCall {
    let fields = telling(accepts);
    if !fields.is_empty() {
        call = call.with("fields", fields.as_slice());
    }
    let sort = accepts.sort.as_ref().map(|field| format!("-{field}"));
    call.with_some("filter", accepts.fields.iter().find_map(range))
        .with_some("sort", sort)
        .with("limit", budget::DEFAULT_LIMIT)
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
fn range(field: &Field) -> Option<Filter> {
    let mut operators = field.range.as_ref()?.iter();
    let operator = operators.find(|operator| *operator != "contains")?;
    let bound = if field.is_number() {
        Scalar::Number(0.into())
    } else {
        "2026-01-01".into()
    };
    Some(Filter::bound(&field.name, operator, bound))
}

fn aggregate(call: ToolCall, accepts: &Capabilities) -> Option<ToolCall> {
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
    if let Some(by) = field("group_by").filter(|_| grouped) {
        Some(call.with("metric", "count").with("group_by", by))
    } else if let Some(by) = field("group_by_time").filter(|_| grouped) {
        let call = call.with("metric", "count").with("group_by_time", by);
        Some(call.with("granularity", "month"))
    } else if let Some((metric, field)) = metric {
        Some(call.with("metric", metric).with("field", field))
    } else {
        (accepts.counts_records == Some(true)).then(|| call.with("metric", "count"))
    }
}

fn search(call: ToolCall, row: &Row<'_>) -> Option<ToolCall> {
    let fields = &row.accepts.fields;
    let is_searched = fields.iter().any(|field| field.is_for(Use::Lexical));
    let stream = &row.stream.name;
    (is_searched && can_be_listed(stream)).then(|| {
        call.without("stream")
            .with("query", "words to find")
            .with("streams", std::slice::from_ref(stream))
    })
}
