//! One source of a stream in lines: who it is, its fields, and each thing it accepts or does not advertise.

use std::fmt::Write as _;

use serde_json::Value;

use super::{listed, word};
use crate::answer::schema::capability::{COUNTS, Capabilities, Field, Relation, Use};
use crate::answer::schema::document::{Connector, Document, Stream};
use crate::args::can_be_listed;
use crate::budget;
use crate::text::plain;

const NONE: &str = "none advertised for this grant";

/// A row and what it accepts.
pub(super) struct Block<'a> {
    connector: &'a Connector,
    pub(super) row: &'a Stream,
    pub(super) accepts: Capabilities,
}

/// Every row of the document.
pub(super) fn blocks(document: &Document) -> Vec<Block<'_>> {
    let rows = document.rows();
    let block = |(connector, row)| Block {
        connector,
        row,
        accepts: Capabilities::new(row),
    };
    rows.map(block).collect()
}

/// The connector's label, with a space before it.
pub(super) fn label(connector: &Connector) -> String {
    connector.label.as_ref().map_or_else(String::new, |label| {
        format!(" display_name={}", plain::quoted(label, budget::LABEL))
    })
}

impl Block<'_> {
    /// Who it is: enough to ask about it alone.
    fn identity(&self) -> String {
        format!(
            "stream name={} connector_key={}{} connections={}",
            plain::exact(&self.row.name),
            plain::quoted(&self.connector.key, budget::PREVIEW),
            label(self.connector),
            listed(&self.row.connections, true)
        )
    }

    /// The row when there is no room for more.
    pub(super) fn place(&self) -> String {
        format!(
            "{} fields_not_shown={}; call schema with this stream and one of these connection ids",
            self.identity(),
            self.accepts.fields.len()
        )
    }

    /// The same where there are very many rows.
    pub(super) fn brief_place(&self) -> String {
        format!(
            "connector_key={} connections={}",
            plain::quoted(&self.connector.key, budget::PREVIEW),
            listed(&self.row.connections, false)
        )
    }

    /// Everything.
    pub(super) fn whole(&self) -> Vec<String> {
        let fields = self.accepts.fields.iter();
        let fields: Vec<String> = fields
            .map(|field| format!("{}[{}]", word(&field.name), field.flags))
            .collect();
        let mut lines = vec![self.identity(), format!("fields={}", or_none(&fields, ";"))];
        lines.extend(self.facts());
        lines
    }

    /// Names of fields instead of flags, as many as there is room for.
    pub(super) fn short(&self, room: usize) -> Vec<String> {
        let identity = self.identity();
        let all = self.accepts.fields.len();
        let mut left = room.saturating_sub(identity.len() + 200);
        let mut names = Vec::new();
        for field in &self.accepts.fields {
            let name = word(&field.name);
            if name.len() + 1 > left {
                break;
            }
            left -= name.len() + 1;
            names.push(name);
        }
        let mut line = format!("fields={}", or_none(&names, ";"));
        if names.len() < all {
            let _ = write!(line, " fields_not_shown={}", all - names.len());
        }
        line.push_str(" (names only; call schema with this stream and one of these connection ids for what they accept)");
        vec![identity, line]
    }

    /// What it accepts, each kind on its own line.
    fn facts(&self) -> Vec<String> {
        let accepts = &self.accepts;
        [
            format!("filter: {}", self.filter()),
            match &accepts.sort {
                Some(field) => format!(
                    "sort: {} (query_records sort={} oldest first, {} newest first)",
                    word(field),
                    plain::exact(field),
                    plain::exact(&format!("-{field}"))
                ),
                None => format!("sort: {NONE}"),
            },
            self.projection(),
            format!("count: query_records count={}", COUNTS.join("|")),
            format!(
                "search: lexical={} semantic={}",
                or_none(
                    &words(&accepts.names(|field| field.is_for(Use::Lexical))),
                    "|"
                ),
                or_none(
                    &words(&accepts.names(|field| field.is_for(Use::Semantic))),
                    "|"
                )
            ),
            format!("aggregations: {}", self.aggregations()),
            format!("expand: {}", self.expand()),
        ]
        .into_iter()
        .chain(self.unsayable())
        .chain(self.limits())
        .collect()
    }

    /// Fields that an argument cannot name.
    fn unsayable(&self) -> Option<String> {
        let each = self.accepts.unsayable().into_iter();
        let told: Vec<String> = each
            .map(|(argument, names)| format!("{argument}={}", words(&names).join("|")))
            .collect();
        (!told.is_empty()).then(|| {
            let told = told.join("; ");
            format!("cannot be named in these arguments: {told}; without fields, records show them")
        })
    }

    /// What the grant leaves out of this stream, where the server says so.
    fn limits(&self) -> Option<String> {
        let members = &self.row.members;
        let mut told = String::new();
        if let Some(time) = members
            .get("time_constraint")
            .filter(|time| time.is_object())
        {
            let time = time.to_string();
            let time = plain::json(&time);
            let _ = write!(told, " time {}", plain::cut(&time, budget::PREVIEW));
        }
        let listed = members.get("resources").and_then(Value::as_array);
        let counted = members.get("resource_count").and_then(Value::as_u64);
        if let Some(records) = listed.map(|all| all.len() as u64).or(counted) {
            let _ = write!(told, " only {records} named records");
        }
        (!told.is_empty()).then(|| format!("granted:{told}"))
    }

    fn filter(&self) -> String {
        let exact = words(&self.accepts.names(|field| field.is_for(Use::Exact)));
        let ranges = self.accepts.fields.iter().filter_map(|field| {
            let operators = match field.range.as_ref()?.as_slice() {
                [] => "operators not told".to_owned(),
                operators => operators.join("|"),
            };
            Some(format!("{}({operators})", word(&field.name)))
        });
        let ranges: Vec<String> = ranges.collect();
        if exact.is_empty() && ranges.is_empty() {
            return NONE.to_owned();
        }
        format!(
            "exact={} range={}",
            or_none(&exact, "|"),
            or_none(&ranges, ",")
        )
    }

    fn projection(&self) -> String {
        let can_be_named = |field: &Field| field.granted && can_be_listed(&field.name);
        let granted = self.accepts.names(can_be_named).len();
        let views = match &self.accepts.views {
            Some(views) => {
                let views: Vec<&str> = views.iter().map(String::as_str).collect();
                or_none(&words(&views), "|")
            }
            None => "not told; detail:\"full\" may tell".to_owned(),
        };
        format!("projection: fields=[any of the {granted} granted names above] views={views}")
    }

    fn aggregations(&self) -> String {
        let each = self.accepts.aggregates().into_iter();
        let mut told: Vec<String> = each
            .map(|(name, fields)| format!("{name}={}", words(&fields).join("|")))
            .collect();
        match self.accepts.counts_records {
            Some(true) => told.insert(0, "count=records".to_owned()),
            Some(false) => {}
            // The compact view of some servers speaks of fields only.
            None => told.push("count=records (not told; aggregate answers or refuses)".to_owned()),
        }
        or_none(&told, "; ")
    }

    fn expand(&self) -> String {
        let told: Vec<String> = self.accepts.expand.iter().map(relation).collect();
        or_none(&told, "; ")
    }

    /// The JSON Schema of each field that has one.
    pub(super) fn schemas(&self) -> impl Iterator<Item = (&str, &Value)> {
        let fields = self.row.members.get("field_capabilities");
        let fields = fields.and_then(Value::as_object).into_iter().flatten();
        fields.filter_map(|(name, field)| {
            let schema = field.get("schema")?;
            Some((name.as_str(), schema))
        })
    }
}

fn relation(relation: &Relation) -> String {
    let mut told = word(&relation.name);
    if let Some(target) = &relation.target {
        let _ = write!(told, " -> {}", word(target));
    }
    if let Some(cardinality) = &relation.cardinality {
        let _ = write!(told, " {}", word(cardinality));
    }
    if !relation.usable {
        let reason = relation.reason.as_deref().unwrap_or("no reason given");
        let _ = write!(told, " unusable: {}", plain::line(reason, budget::LABEL));
        return told;
    }
    for (name, limit) in [
        ("default_limit", relation.default_limit),
        ("max_limit", relation.max_limit),
    ] {
        if let Some(limit) = limit {
            let _ = write!(told, " {name}={limit}");
        }
    }
    told
}

fn words(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| word(name)).collect()
}

fn or_none(parts: &[String], separator: &str) -> String {
    if parts.is_empty() {
        NONE.to_owned()
    } else {
        parts.join(separator)
    }
}
