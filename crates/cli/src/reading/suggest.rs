//! What the schema can add to an answer: names that may be meant where one was refused, and where related records are. It is
//! the schema of the same caller, so nothing is suggested that a grant does not show.

use contract::error::ErrorCode;
use contract::handle::Handle;
use contract::record::Record;
use contract::schema::{
    CompactSchema, CompactStream, ExpandCapability, GrantedConnection, SchemaAnswer,
};
use contract::upstream::Get;

use super::{Reading, filter};
use crate::output::visible;

/// Names in a hint.
const LISTED: usize = 12;

impl Reading<'_> {
    /// What the caller may have meant, for the refusals where a name can be mistaken.
    pub(super) fn suggestions(&self, code: ErrorCode) -> Vec<String> {
        use ErrorCode::{
            ConnectionNotFound, FieldNotFound, FieldNotGranted, GrantStreamNotAllowed,
            StreamNotDeclared, UnknownField,
        };
        let wanted = match code {
            StreamNotDeclared | GrantStreamNotAllowed => Wanted::Stream,
            UnknownField | FieldNotGranted | FieldNotFound => Wanted::Field,
            ConnectionNotFound => Wanted::Connection,
            _ => return Vec::new(),
        };
        let Some(schema) = self.schema(None, None) else {
            return Vec::new();
        };
        let named = self.line.names();
        let known = wanted.known(&schema, named.stream.as_deref());
        let mistaken = wanted.named(&named);
        let mistaken = mistaken
            .iter()
            .filter(|name| !known.contains(&name.as_str()));
        let mut hints: Vec<String> = mistaken
            .filter_map(|name| nearest(name, &known))
            .map(|name| format!("did you mean '{}'?", visible(name)))
            .collect();
        hints.dedup();
        hints.extend(listed(wanted, &known));
        let line = self.line.another("schema");
        let line = match (wanted, &named.stream) {
            (Wanted::Field, Some(stream)) => line.option("stream", Some(stream)),
            _ => line,
        };
        hints.push(format!("`{line}` lists them all"));
        hints
    }

    /// The relationships of a record's stream.
    pub(crate) fn relations(&self, record: &Record) -> Vec<ExpandCapability> {
        let schema = self.schema(Some(&record.stream), record.connection_id.as_deref());
        let connectors = schema.into_iter().flat_map(|schema| schema.connectors);
        let streams = connectors.flat_map(|connector| connector.streams);
        streams
            .filter_map(|stream| stream.expand_capabilities)
            .flatten()
            .collect()
    }

    fn schema(&self, stream: Option<&str>, connection: Option<&str>) -> Option<CompactSchema> {
        let question = Get::v1(["schema"])
            .with("view", Some("compact"))
            .with("stream", stream)
            .with("connection_id", connection);
        let (answer, text) = self.answer(question).ok()?;
        if answer.status != 200 {
            return None;
        }
        match serde_json::from_str(&text).ok()? {
            SchemaAnswer::Compact(schema) => Some(schema),
            SchemaAnswer::Full(schema) => Some(schema.compact()),
        }
    }
}

fn listed(wanted: Wanted, known: &[&str]) -> Option<String> {
    if known.is_empty() {
        return None;
    }
    let names: Vec<String> = known
        .iter()
        .take(LISTED)
        .map(|name| visible(name))
        .collect();
    let more = match known.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("{}: {}{more}", wanted.plural(), names.join(", ")))
}

/// The kind of name that was refused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Stream,
    Field,
    Connection,
}

/// The names a command line gives.
#[derive(Default)]
pub(super) struct Names {
    stream: Option<String>,
    streams: Vec<String>,
    fields: Vec<String>,
    connections: Vec<String>,
}

impl Wanted {
    fn plural(self) -> &'static str {
        match self {
            Self::Stream => "streams",
            Self::Field => "fields",
            Self::Connection => "connections",
        }
    }

    fn named(self, names: &Names) -> &[String] {
        match self {
            Self::Stream => &names.streams,
            Self::Field => &names.fields,
            Self::Connection => &names.connections,
        }
    }

    fn known<'a>(self, schema: &'a CompactSchema, stream: Option<&str>) -> Vec<&'a str> {
        let mut known: Vec<&str> = Vec::new();
        for connector in &schema.connectors {
            let shared = connector.granted_connections.iter().flatten();
            match self {
                Self::Stream => known.extend(connector.streams.iter().map(|one| one.name.as_str())),
                Self::Connection => {
                    let id = |one: &'a GrantedConnection| one.connection_id.as_str();
                    let own = |one: &'a CompactStream| one.granted_connections.iter().flatten();
                    known.extend(shared.chain(connector.streams.iter().flat_map(own)).map(id));
                }
                Self::Field => {
                    let meant = |one: &&CompactStream| stream.is_none_or(|name| one.name == name);
                    for one in connector.streams.iter().filter(meant) {
                        known.extend(one.field_capabilities.iter().map(|(name, _)| name));
                    }
                }
            }
        }
        let mut seen = std::collections::HashSet::new();
        known.retain(|name| seen.insert(*name));
        known
    }
}

impl super::Line {
    /// The names it gives, whatever the command.
    fn names(&self) -> Names {
        let list = |name| self.values(name).flat_map(|value| value.split(','));
        let bare = |text: &str| text.trim().trim_start_matches('-').to_owned();
        let mut names = Names::default();
        match (self.command(), self.arguments()) {
            ("query" | "aggregate", [stream, ..]) => names.stream = Some(stream.clone()),
            ("fetch" | "read", [id, rest @ ..]) => {
                if let Ok(handle) = Handle::parse(id) {
                    let record = handle.record();
                    names.stream = Some(record.stream().to_owned());
                    names
                        .connections
                        .extend(record.connection().map(str::to_owned));
                }
                names.fields.extend(rest.iter().cloned());
            }
            _ => {}
        }
        names.streams.extend(names.stream.clone());
        names
            .streams
            .extend(list("stream").chain(list("streams")).map(bare));
        if names.streams.len() == 1 {
            names.stream = names.streams.first().cloned();
        }
        names
            .connections
            .extend(self.values("connection-id").map(str::to_owned));
        for option in ["fields", "sort", "field", "group-by", "group-by-time"] {
            names.fields.extend(list(option).map(bare));
        }
        let filtered = self.values("filter").filter_map(filter::field);
        names.fields.extend(filtered.map(str::to_owned));
        names
    }
}

/// The known name nearest to a mistaken one, if it is near enough to be meant.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let wanted: Vec<char> = name.to_lowercase().chars().collect();
    let reach = (wanted.len() / 3).max(1);
    let distances = known
        .iter()
        .map(|known| (distance(&wanted, &known.to_lowercase()), *known));
    let (least, found) = distances.min_by_key(|(distance, _)| *distance)?;
    (least <= reach).then_some(found)
}

/// How many characters must be added, taken away, exchanged, or swapped with their neighbour.
fn distance(from: &[char], to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let first: Vec<usize> = (0..=to.len()).collect();
    let mut rows = vec![first];
    for (line, wanted) in from.iter().enumerate() {
        let mut row = vec![line + 1];
        for (column, known) in to.iter().enumerate() {
            let above = &rows[line];
            let changed = above[column] + usize::from(wanted != known);
            let mut best = changed.min(above[column + 1] + 1).min(row[column] + 1);
            let swapped =
                line > 0 && column > 0 && from[line - 1] == *known && to[column - 1] == *wanted;
            if swapped {
                best = best.min(rows[line - 1][column - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_single_changes() {
        for (from, to, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("abc", "abc", 0),
            ("recieved_at", "received_at", 1),
            ("mesages", "messages", 1),
            ("kitten", "sitting", 3),
        ] {
            let from: Vec<char> = from.chars().collect();
            assert_eq!(distance(&from, to), expected, "{to}");
        }
    }

    #[test]
    fn only_what_could_be_meant_is_suggested() {
        let known = ["received_at", "subject", "body"];
        assert_eq!(nearest("recieved_at", &known), Some("received_at"));
        assert_eq!(nearest("Subject", &known), Some("subject"));
        assert_eq!(nearest("price", &known), None);
        assert_eq!(nearest("x", &[]), None);
    }
}
