//! What the schema adds to an answer: similar names where one was refused, and where related records are. It is the schema
//! of the same caller, so nothing is suggested that the grant does not show.

use contract::error::ErrorCode;
use contract::handle::Handle;
use contract::record::Record;
use contract::schema::{
    CompactSchema, CompactStream, ExpandCapability, GrantedConnection, SchemaAnswer, StreamMetadata,
};
use contract::upstream::Get;

use super::{Reading, filter};
use crate::output::visible;
use crate::spelling::{did_you_mean, join_names};

impl Reading<'_> {
    /// What the caller may have meant, for the refusals where a name can be mistaken.
    pub(super) fn suggestions(&self, code: ErrorCode) -> Vec<String> {
        use ErrorCode::{
            ConnectionNotFound, FieldNotFound, FieldNotGranted, GrantStreamNotAllowed,
            StreamNotDeclared, UnknownField,
        };
        let wanted = match code {
            StreamNotDeclared | GrantStreamNotAllowed => NameKind::Stream,
            UnknownField | FieldNotGranted | FieldNotFound => NameKind::Field,
            ConnectionNotFound => NameKind::Connection,
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
            .filter_map(|name| did_you_mean(name, &known))
            .collect();
        if wanted == NameKind::Connection {
            hints.extend(labelled(&schema, &named.connections));
        }
        hints.dedup();
        if known.is_empty() {
            let steps = self.first_steps();
            if !steps.is_empty() {
                return steps;
            }
        } else {
            hints.push(format!("{}: {}", wanted.plural(), join_names(&known)));
        }
        let line = self.line.another("schema");
        let line = match (wanted, &named.stream) {
            (NameKind::Field, Some(stream)) => line.option("stream", Some(stream)),
            _ => line,
        };
        hints.push(format!("`{line}` lists them all"));
        hints
    }

    pub(crate) fn relations(&self, record: &Record) -> Vec<ExpandCapability> {
        let schema = self.schema(Some(&record.stream), record.connection_id.as_deref());
        let connectors = schema.into_iter().flat_map(|schema| schema.connectors);
        let streams = connectors.flat_map(|connector| connector.streams);
        streams
            .filter_map(|stream| stream.expand_capabilities)
            .flatten()
            .collect()
    }

    /// The fields that a record's stream declares as the time of its records.
    pub(crate) fn times(&self, record: &Record) -> [Option<String>; 2] {
        let connection = record.connection_id.as_deref();
        let question = Get::v1(["streams", &record.stream]).with("connection_id", connection);
        let answer = self.answer(question).ok();
        let answer = answer.filter(|answer| answer.status == 200);
        let stream: Option<StreamMetadata> =
            answer.and_then(|answer| serde_json::from_str(&answer.body).ok());
        stream
            .map(|stream| [stream.consent_time_field, stream.cursor_field])
            .unwrap_or_default()
    }

    pub(super) fn schema(
        &self,
        stream: Option<&str>,
        connection: Option<&str>,
    ) -> Option<CompactSchema> {
        match self.schema_of(stream, connection, Some("compact"))? {
            SchemaAnswer::Compact(schema) => Some(schema),
            SchemaAnswer::Full(schema) => Some(schema.compact()),
        }
    }

    pub(super) fn schema_of(
        &self,
        stream: Option<&str>,
        connection: Option<&str>,
        view: Option<&str>,
    ) -> Option<SchemaAnswer> {
        let question = Get::v1(["schema"])
            .with("view", view)
            .with("stream", stream)
            .with("connection_id", connection);
        let answer = self.answer(question).ok()?;
        if answer.status != 200 {
            return None;
        }
        serde_json::from_str(&answer.body).ok()
    }
}

/// The ids of connections that were named by their label.
fn labelled(schema: &CompactSchema, named: &[String]) -> Vec<String> {
    let connections = schema.connectors.iter().flat_map(|connector| {
        let own = connector
            .streams
            .iter()
            .flat_map(|one| &one.granted_connections);
        connector.granted_connections.iter().chain(own).flatten()
    });
    let meant = connections.filter(|one| {
        let label = one
            .display_name
            .as_deref()
            .unwrap_or_default()
            .to_lowercase();
        named.iter().any(|name| name.to_lowercase() == label)
    });
    meant
        .map(|one| format!("did you mean '{}'?", visible(&one.connection_id)))
        .collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum NameKind {
    Stream,
    Field,
    Connection,
}

#[derive(Default)]
pub(super) struct Names {
    pub(super) stream: Option<String>,
    pub(super) streams: Vec<String>,
    fields: Vec<String>,
    pub(super) connections: Vec<String>,
}

impl NameKind {
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

impl super::CommandLine {
    pub(super) fn names(&self) -> Names {
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
