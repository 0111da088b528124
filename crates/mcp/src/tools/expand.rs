//! Whether relations may be expanded, asked of the schema before a record is.
//!
//! Servers differ in what they do with a relation they do not have: some refuse, some ignore it. A refusal that names what
//! there is helps more than either. Where a relation was cut, the schema also says how to read on in it.

use contract::error::ErrorCode;
use contract::upstream::Get;

use crate::answer::Related;
use crate::answer::schema::capability::{self, Capabilities};
use crate::args::{ExpandLimits, Filter};
use crate::budget;
use crate::call::Call;
use crate::fault::Fault;
use crate::identity::Identity;
use crate::ladder::Next;
use crate::text::plain;
use crate::tool_call::ToolCall;

/// A relation that was asked for, as far as the schema tells of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Relation {
    pub(super) name: String,
    /// The stream the related records are from.
    target: Option<String>,
    /// The field there that holds the key of the record they belong to.
    foreign_key: Option<String>,
    max_limit: Option<u64>,
    /// Whether the related stream takes a filter on that field.
    is_filtered: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum WayOn {
    /// The related records of this one record, in pages.
    List(ToolCall),
    Larger(ToolCall),
    None(&'static str),
}

impl WayOn {
    pub(super) fn into_next(self) -> Next {
        match self {
            Self::List(call) | Self::Larger(call) => Next::Call(call),
            Self::None(why) => Next::Words(why),
        }
    }
}

impl Relation {
    fn unknown(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    fn known(relation: &capability::Relation) -> Self {
        Self {
            name: relation.name.clone(),
            target: relation.target.clone(),
            foreign_key: relation.foreign_key.clone(),
            max_limit: relation.max_limit,
            is_filtered: false,
        }
    }

    /// How to read on behind the records related to this one that were sent.
    pub(super) fn way_on(&self, parent: &Identity, related: &Related<'_>) -> WayOn {
        if let Some(call) = self.list(parent, related) {
            return WayOn::List(call);
        }
        let count = u64::try_from(related.records.len()).unwrap_or(u64::MAX);
        match self.max_limit {
            Some(most) if most > count => WayOn::Larger(
                ToolCall::fetch(parent)
                    .with("expand", std::slice::from_ref(&self.name))
                    .with("expand_limit", ExpandLimits::new(&self.name, most)),
            ),
            Some(_) => WayOn::None(
                "no call shows more: expand gives no more of them, and their stream takes no filter on the field that names this record",
            ),
            None => {
                WayOn::None("the server tells no call that shows more; a larger expand_limit may")
            }
        }
    }

    fn list(&self, parent: &Identity, related: &Related<'_>) -> Option<ToolCall> {
        let handle = parent.handle.as_ref()?;
        let foreign_key = self.foreign_key.as_ref().filter(|_| self.is_filtered)?;
        let target = self.target.as_deref()?;
        contract::segment::guard(target).ok()?;
        let first = related.records.first().and_then(|record| record.connection);
        let connection = handle.connection().or(first);
        let filter = Filter::default().and(foreign_key, handle.record());
        Some(ToolCall::list(target, connection, filter))
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
        relations
            .iter()
            .map(|name| Relation::unknown(name))
            .collect()
    };
    let rows = match rows(call, stream, connection).await {
        Ok(rows) if rows.is_empty() => return Ok(unknown()),
        Ok(rows) => rows,
        Err(fault) if fault.code() == ErrorCode::OwnerTokenRefused.as_str() => return Err(fault),
        Err(_) => return Ok(unknown()),
    };
    let advertised: Vec<&capability::Relation> = rows.iter().flat_map(|row| &row.expand).collect();
    let mut known = Vec::new();
    for name in relations {
        let mut named = advertised.iter().filter(|one| one.name == *name).peekable();
        let is_known = named.peek().is_some();
        match named.find(|one| one.usable) {
            Some(usable) => known.push(Relation::known(usable)),
            None => return Err(refusal(stream, name, is_known, &advertised)),
        }
    }
    Ok(known)
}

async fn rows(
    call: Call<'_>,
    stream: &str,
    connection: Option<&str>,
) -> Result<Vec<Capabilities>, Fault> {
    let question = Get::v1(["schema"])
        .with("view", Some("compact"))
        .with("stream", Some(stream))
        .with("connection_id", connection);
    let Some(mut schema) = call.get(question).await?.into_schema() else {
        return Ok(Vec::new());
    };
    schema.scope(Some(stream), None);
    Ok(schema
        .rows()
        .map(|(_, row)| Capabilities::new(row))
        .collect())
}

/// Asks of those relations that were cut whether their own stream can be filtered, so that no call is printed that would
/// be refused. Where that is not told, it is taken for a no.
pub(super) async fn learn_filters<'a>(
    call: Call<'_>,
    connection: Option<&str>,
    cut: impl Iterator<Item = &'a mut Relation>,
) {
    for relation in cut {
        let (Some(target), Some(field)) = (&relation.target, &relation.foreign_key) else {
            continue;
        };
        relation.is_filtered = filters(call, target, connection, field).await.exact;
    }
}

/// The filters that a field takes, as the schema tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Filters {
    pub(super) exact: bool,
    pub(super) range: bool,
    /// By an item of an array.
    pub(super) contains: bool,
}

/// Asks the schema which filters a field of a stream takes. What is not told is taken for a no.
pub(super) async fn filters(
    call: Call<'_>,
    stream: &str,
    connection: Option<&str>,
    field: &str,
) -> Filters {
    let rows = rows(call, stream, connection).await.unwrap_or_default();
    // Without a connection there may be rows of several, and the call may go to any.
    let all = |takes: fn(&capability::Field) -> bool| {
        let taken =
            |row: &Capabilities| row.fields.iter().any(|one| one.name == field && takes(one));
        !rows.is_empty() && rows.iter().all(taken)
    };
    Filters {
        exact: all(capability::Field::takes_exact_filter),
        range: all(capability::Field::takes_range_filter),
        contains: all(capability::Field::takes_contains),
    }
}

fn refusal(
    stream: &str,
    relation: &str,
    is_known: bool,
    advertised: &[&capability::Relation],
) -> Fault {
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
        .filter(|one| one.usable)
        .map(|one| shown(&one.name))
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
