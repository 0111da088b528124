//! Whether relations may be expanded, asked of the schema before a record is.
//!
//! Servers differ in what they do with a relation they do not have: some refuse, some ignore it. A refusal that names
//! the relations there are is worth one call. What the schema tells of a relation also tells how to read on in it.

use contract::error::ErrorCode;
use contract::upstream::Get;
use serde_json::{Map, Value, json};

use super::schema;
use crate::budget;
use crate::call::Call;
use crate::evidence::identity::{Identity, connection_of, text};
use crate::evidence::{ladder, plain};
use crate::fault::Fault;

/// A relation that was asked for, as far as the schema tells of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Relation {
    pub(super) name: String,
    /// The stream the related records are from.
    target: Option<String>,
    /// The field there that holds the key of the record they belong to.
    pub(super) foreign_key: Option<String>,
    max_limit: Option<u64>,
    /// Whether the related stream takes a filter on that field.
    is_filtered: bool,
}

/// How a relation that was cut is read on.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum WayOn {
    /// The related records of this one record, in pages.
    List(Value),
    /// The same record with more of them.
    Larger(Value),
    /// There is none, for this reason.
    None(&'static str),
}

impl WayOn {
    /// As it stands in structured content.
    pub(super) fn told(self) -> Value {
        match self {
            Self::List(call) | Self::Larger(call) => call,
            Self::None(why) => json!(why),
        }
    }
}

impl Relation {
    /// How to read on behind the first `count` records related to this one.
    pub(super) fn way_on(&self, parent: &Identity, related: &Value, count: usize) -> WayOn {
        if let Some(call) = self.list(parent, related) {
            return WayOn::List(call);
        }
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        match self.max_limit {
            Some(most) if most > count => {
                let mut args = parent.args();
                args.insert("expand".to_owned(), json!([self.name]));
                args.insert("expand_limit".to_owned(), json!({ &self.name: most }));
                WayOn::Larger(ladder::call("fetch", args))
            }
            Some(_) => WayOn::None(
                "no call shows more: expand gives no more of them, and their stream takes no filter on the field that names this record",
            ),
            None => {
                WayOn::None("the server tells no call that shows more; a larger expand_limit may")
            }
        }
    }

    fn list(&self, parent: &Identity, related: &Value) -> Option<Value> {
        let handle = parent.handle.as_ref()?;
        let foreign_key = self.foreign_key.as_ref().filter(|_| self.is_filtered)?;
        let mut args = Map::new();
        let target = self.target.as_deref()?;
        contract::segment::guard(target).ok()?;
        args.insert("stream".to_owned(), json!(target));
        let connection = handle.connection().or_else(|| connection_of(related));
        if let Some(connection) = connection {
            args.insert("connection_id".to_owned(), json!(connection));
        }
        args.insert("filter".to_owned(), json!({ foreign_key: handle.record() }));
        Some(ladder::call("query_records", args))
    }
}

/// Passes relations the stream advertises, and tells what is known of them. Where the schema cannot be had or does not
/// know the stream, the server decides when the record is asked.
pub(super) async fn gate(
    call: Call<'_>,
    stream: &str,
    connection: Option<&str>,
    relations: &[&str],
) -> Result<Vec<Relation>, Fault> {
    if relations.is_empty() {
        return Ok(Vec::new());
    }
    let unknown = || {
        let named = |name: &&str| Relation {
            name: (*name).to_owned(),
            ..Relation::default()
        };
        relations.iter().map(named).collect()
    };
    let answered = match call.get(question(stream, connection)).await {
        Ok(answered) => answered,
        Err(fault) if fault.code() == ErrorCode::OwnerTokenRefused.as_str() => return Err(fault),
        Err(_) => return Ok(unknown()),
    };
    let rows = rows(&answered.body, stream);
    if rows.is_empty() {
        return Ok(unknown());
    }
    let advertised: Vec<&Value> = rows
        .iter()
        .filter_map(|row| row.get("expand_capabilities")?.as_array())
        .flatten()
        .collect();
    let mut known = Vec::new();
    for relation in relations {
        let mut named = advertised
            .iter()
            .filter(|one| name_of(one) == Some(*relation))
            .peekable();
        let is_known = named.peek().is_some();
        let Some(usable) = named.find(|one| is_usable(one)) else {
            return Err(refusal(stream, relation, is_known, &advertised));
        };
        known.push(told(relation, usable));
    }
    Ok(known)
}

fn question(stream: &str, connection: Option<&str>) -> Get {
    Get::v1(["schema"])
        .with("view", Some("compact"))
        .with("stream", Some(stream))
        .with("connection_id", connection)
}

fn told(name: &str, capability: &Value) -> Relation {
    let member = |names: [&str; 2]| {
        let found = names.iter().find_map(|name| text(capability, name));
        found.map(str::to_owned)
    };
    Relation {
        name: name.to_owned(),
        target: member(["target_stream", "stream"]),
        foreign_key: member(["foreign_key", "child_parent_key_field"]),
        max_limit: capability.get("max_limit").and_then(Value::as_u64),
        is_filtered: false,
    }
}

/// Asks of those relations that were cut whether their own stream can be filtered, so that no call is printed that would
/// be refused. Where that is not told, it is taken for a no.
pub(super) async fn look_ahead<'a>(
    call: Call<'_>,
    connection: Option<&str>,
    cut: impl Iterator<Item = &'a mut Relation>,
) {
    for relation in cut {
        let (Some(target), Some(field)) = (&relation.target, &relation.foreign_key) else {
            continue;
        };
        let filters = filters(call, (target, connection), field).await;
        relation.is_filtered = filters.exact;
    }
}

/// The filters that a field takes, as the schema tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Filters {
    /// By equality.
    pub(super) exact: bool,
    /// From a value on.
    pub(super) range: bool,
}

/// Asks the schema which filters a field of a stream takes. What is not told is taken for a no.
pub(super) async fn filters(
    call: Call<'_>,
    (stream, connection): (&str, Option<&str>),
    field: &str,
) -> Filters {
    let Ok(answered) = call.get(question(stream, connection)).await else {
        return Filters::default();
    };
    // Without a connection there may be rows of several, and the call may go to any.
    let rows = rows(&answered.body, stream);
    let all = |takes: fn(&str, &Value) -> bool| {
        let taken = |row: &&Value| {
            let capability = row.get("field_capabilities")?.get(field)?;
            Some(takes(field, capability))
        };
        !rows.is_empty() && rows.iter().all(|row| taken(row) == Some(true))
    };
    Filters {
        exact: all(schema::takes_exact_filter),
        range: all(schema::takes_range_filter),
    }
}

/// The rows of a stream, in either shape of schema: below connectors, or in one list; wrapped in `data` or not.
fn rows<'a>(body: &'a Value, stream: &str) -> Vec<&'a Value> {
    let mut rows: Vec<&Value> = Vec::new();
    for place in [Some(body), body.get("data")].into_iter().flatten() {
        let list = |value: &'a Value, name: &str| value.get(name).and_then(Value::as_array);
        let connectors = list(place, "connectors").into_iter().flatten();
        let below = connectors
            .filter_map(|connector| list(connector, "streams"))
            .flatten();
        rows.extend(below.chain(list(place, "streams").into_iter().flatten()));
    }
    let is_named = |row: &&Value| {
        ["name", "stream", "stream_name"]
            .iter()
            .find_map(|name| text(row, name))
            == Some(stream)
    };
    rows.retain(is_named);
    rows
}

fn name_of(capability: &Value) -> Option<&str> {
    capability
        .as_str()
        .or_else(|| text(capability, "name"))
        .or_else(|| text(capability, "relation"))
}

fn is_usable(capability: &Value) -> bool {
    ["usable", "granted"]
        .iter()
        .all(|name| capability.get(name) != Some(&Value::Bool(false)))
}

fn refusal(stream: &str, relation: &str, is_known: bool, advertised: &[&Value]) -> Fault {
    let shown = |name: &str| plain::quoted(name, budget::LABEL);
    let why = if is_known {
        "cannot be used with this grant"
    } else {
        "is not advertised"
    };
    let message = format!(
        "the relation {} of the stream {} {why}",
        shown(relation),
        shown(stream)
    );
    let mut usable: Vec<String> = advertised
        .iter()
        .filter(|one| is_usable(one))
        .filter_map(|one| name_of(one).map(shown))
        .collect();
    usable.dedup();
    usable.truncate(12);
    let next = if usable.is_empty() {
        "leave out expand; this stream has no relation to expand".to_owned()
    } else {
        format!("leave it out, or expand one of {}", usable.join(", "))
    };
    Fault::refused(ErrorCode::InvalidExpand, "expand", message).with_next(next)
}

#[cfg(test)]
mod tests;
