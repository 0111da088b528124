//! One source of a stream in lines: who it is, its fields, and each thing it accepts or does not advertise.

use std::fmt::Write as _;

use super::super::Row;
use super::{listed, word};
use crate::answer::schema::capability::{COUNTS, Field, Relation, Use};
use crate::answer::schema::document::Connector;
use crate::args::can_be_listed;
use crate::budget;
use crate::text::plain;

const NONE: &str = "none advertised for this grant";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// What each field takes, and by argument which fields it takes.
    Whole,
    /// What each field takes, and nothing twice.
    Once,
}

/// How a row is named that there is no room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Whole,
    Brief,
    Bare,
}

/// The connector's label, with a space before it.
pub(super) fn label(connector: &Connector) -> String {
    connector.label.as_ref().map_or_else(String::new, |label| {
        format!(" display_name={}", plain::quoted(label, budget::LABEL))
    })
}

impl Row<'_> {
    /// Who it is: enough to ask about it alone.
    fn identity(&self) -> String {
        format!(
            "stream name={} connector_key={}{} connections={}",
            plain::exact(&self.stream.name),
            plain::quoted(&self.connector.key, budget::PREVIEW),
            label(self.connector),
            listed(&self.stream.connections, true)
        )
    }

    pub(super) fn place(&self, place: Place) -> String {
        let connections = || listed(&self.stream.connections, false);
        match place {
            Place::Whole => format!(
                "{} fields_not_shown={}; call schema with this stream and one of these connection ids",
                self.identity(),
                self.accepts.fields.len()
            ),
            Place::Brief => {
                let key = plain::quoted(&self.connector.key, budget::PREVIEW);
                format!("connector_key={key} connections={}", connections())
            }
            Place::Bare => format!("{} @ {}", word(&self.connector.key), connections()),
        }
    }

    pub(super) fn lines(&self, depth: Depth) -> Vec<String> {
        let fields = self.accepts.fields.iter();
        let fields: Vec<String> = fields
            .map(|field| format!("{}[{}]", word(&field.name), field.flags))
            .collect();
        let mut lines = vec![self.identity(), format!("fields={}", or_none(&fields, ";"))];
        lines.extend(self.facts(depth));
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
        line.push_str(" (names only; schema with this stream, one of these connection ids and detail:\"full\" tells what they accept)");
        vec![identity, line]
    }

    /// What it accepts, each kind on its own line.
    fn facts(&self, depth: Depth) -> Vec<String> {
        let accepts = &self.accepts;
        let is_whole = depth == Depth::Whole;
        let used = |this: Use| {
            let names = accepts.names(|field| field.is_for(this));
            or_none(&words(&names), "|")
        };
        let sort = match &accepts.sort {
            Some(field) if is_whole => format!(
                "{} (query_records sort={} oldest first, {} newest first)",
                word(field),
                plain::exact(field),
                plain::exact(&format!("-{field}"))
            ),
            Some(field) => word(field),
            None => NONE.to_owned(),
        };
        let mut facts = Vec::new();
        if is_whole {
            facts.push(format!("filter: {}", self.filter()));
        }
        facts.push(format!("sort: {sort}"));
        facts.push(self.projection());
        facts.push(format!("count: query_records count={}", COUNTS.join("|")));
        if is_whole {
            let (lexical, semantic) = (used(Use::Lexical), used(Use::Semantic));
            facts.push(format!("search: lexical={lexical} semantic={semantic}"));
        } else {
            facts.push("filter, search: as the flags eq, r, lex and sem say".to_owned());
        }
        facts.push(format!("aggregations: {}", self.aggregations(is_whole)));
        facts.push(format!("expand: {}", self.expand()));
        facts.extend(self.unsayable());
        facts.extend(self.limits());
        facts
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
        let mut told = String::new();
        // Writing to a String cannot fail.
        if let Some(time) = &self.stream.time_constraint {
            let time = plain::json(time);
            let _ = write!(told, " time {}", plain::cut(&time, budget::PREVIEW));
        }
        if let Some(records) = self.stream.named_records {
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

    fn aggregations(&self, is_whole: bool) -> String {
        let offered = self.accepts.aggregates();
        let each = offered.iter();
        let mut told: Vec<String> = each
            .filter(|_| is_whole)
            .map(|(name, fields)| format!("{name}={}", words(fields).join("|")))
            .collect();
        if !is_whole && !offered.is_empty() {
            told.push("of fields as the flag a says".to_owned());
        }
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
