//! The schema document, whichever generation of server wrote it, and the part of it that was asked for.
//!
//! Servers may ignore selectors, repeat streams in two places, lift connections to the connector, or wrap everything in
//! `data`. After this file there is one shape.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use crate::answer::fields::{FieldValue, Fields};
use crate::answer::naming::{connection_of, connector_of, text};

/// What is told of the document beside its connectors.
const ENVELOPE: [&str; 8] = [
    "object",
    "bearer",
    "links",
    "meta",
    "next_cursor",
    "next_changes_since",
    "has_more",
    "count",
];
/// A member of a foreign server that is larger says more than a schema should.
pub(super) const MEMBER: usize = 1_024;

/// The schema of a grant, or a part of it.
#[derive(Debug, Default)]
pub(crate) struct Document {
    /// Everything beside the streams.
    members: Fields<'static>,
    pub(crate) connectors: Vec<Connector>,
}

#[derive(Debug, Default)]
pub(crate) struct Connector {
    pub(crate) key: String,
    pub(crate) label: Option<String>,
    /// Everything beside streams and connections.
    members: Fields<'static>,
    pub(crate) streams: Vec<Stream>,
    /// The connections most of its rows have, known after scoping.
    pub(crate) shared: Vec<Connection>,
}

/// One row: a stream of one connector, with all connections that share it.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) name: String,
    pub(crate) connections: Vec<Connection>,
    pub(crate) record_count: Option<u64>,
    /// The time the grant is limited to, as JSON.
    pub(crate) time_constraint: Option<String>,
    /// How many records the grant is limited to.
    pub(crate) named_records: Option<u64>,
    pub(super) members: Fields<'static>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Connection {
    pub(crate) id: String,
    pub(crate) label: Option<String>,
    pub(crate) grant_id: Option<String>,
}

impl Document {
    /// Reads an answer; nothing where it is no schema.
    pub(crate) fn read(body: Value) -> Option<Self> {
        let Value::Object(mut members) = body else {
            return None;
        };
        let is_schema = |members: &Map<String, Value>| {
            ["connectors", "streams"]
                .iter()
                .any(|name| members.get(*name).is_some_and(Value::is_array))
        };
        if !is_schema(&members) {
            members = match members.remove("data") {
                Some(Value::Object(inner)) if is_schema(&inner) => inner,
                _ => return None,
            };
        }
        let streams = list(members.remove("streams"));
        let connectors = match members.remove("connectors") {
            Some(Value::Array(connectors)) => connectors.into_iter().map(Connector::read).collect(),
            _ => by_connector(streams),
        };
        Some(Self {
            members: Fields::owned(members),
            connectors,
        })
    }

    /// What the document says beside its connectors: on whose behalf, warnings, the way on.
    pub(crate) fn envelope(&self) -> Fields<'static> {
        let mut envelope = self.members.small(&ENVELOPE, MEMBER);
        let members = envelope.to_mut();
        members.entry("object").or_insert_with(|| json!("schema"));
        // It names sources that this answer may not be about, and connectors name them already.
        if let Some(Value::Object(meta)) = members.get_mut("meta") {
            meta.remove("package");
        }
        envelope
    }

    /// Keeps what was asked for, whether or not the server did.
    pub(crate) fn scope(&mut self, stream: Option<&str>, connection: Option<&str>) {
        for connector in &mut self.connectors {
            connector.streams.retain_mut(|row| {
                stream.is_none_or(|stream| row.name == stream) && row.keeps(connection)
            });
            connector.shared = connector.most_shared();
        }
        if stream.is_some() || connection.is_some() {
            self.connectors
                .retain(|connector| !connector.streams.is_empty());
        }
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = (&Connector, &Stream)> {
        self.connectors.iter().flat_map(|connector| {
            let rows = connector.streams.iter();
            rows.map(move |row| (connector, row))
        })
    }

    pub(crate) fn connections(&self) -> Vec<(&Connector, &Connection)> {
        let mut all: Vec<(&Connector, &Connection)> = Vec::new();
        let mut seen = HashSet::new();
        for (connector, row) in self.rows() {
            for connection in &row.connections {
                if seen.insert((connector.key.as_str(), connection.id.as_str())) {
                    all.push((connector, connection));
                }
            }
        }
        all
    }

    /// The grant this was answered for, where it is a single one.
    pub(crate) fn grant_id(&self) -> Option<&str> {
        text(self.members.members().get("bearer")?, "grant_id")
    }
}

impl Connector {
    fn read(value: Value) -> Self {
        let key = connector_key(&value);
        let label = label_of(&value, &["display_name", "connector_display_name"]);
        let shared = connections(&value);
        let mut members = match value {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        members.remove("granted_connections");
        let rows = list(members.remove("streams")).into_iter();
        let streams = rows.filter_map(|row| Stream::read(row, &shared)).collect();
        Self {
            key,
            label,
            members: Fields::owned(members),
            streams,
            shared,
        }
    }

    /// These members as they came, where they are small.
    pub(crate) fn small(&self, names: &[&str]) -> Fields<'static> {
        self.members.small(names, MEMBER)
    }

    /// All members that are small.
    pub(super) fn all_small(&self) -> Map<String, Value> {
        let small = self.members.only(|_, value| value.size() <= MEMBER);
        small.members().clone()
    }

    pub(crate) fn connections(&self) -> Vec<Connection> {
        let mut seen = HashSet::new();
        let all = self.streams.iter().flat_map(|row| &row.connections);
        all.filter(|one| seen.insert(one.id.as_str()))
            .cloned()
            .collect()
    }

    /// Its rows by the connections they share, in the order they came.
    pub(crate) fn groups(&self) -> Vec<(&[Connection], Vec<&Stream>)> {
        let mut groups: Vec<(&[Connection], Vec<&Stream>)> = Vec::new();
        let mut known: HashMap<Vec<&str>, usize> = HashMap::new();
        for row in &self.streams {
            let ids = row.connections.iter().map(|one| one.id.as_str()).collect();
            let at = *known.entry(ids).or_insert(groups.len());
            match groups.get_mut(at) {
                Some((_, rows)) => rows.push(row),
                None => groups.push((&row.connections, vec![row])),
            }
        }
        groups
    }

    /// The connections most of its rows have, the first such set where several are equally frequent.
    fn most_shared(&self) -> Vec<Connection> {
        let groups = self.groups();
        let most = groups.iter().map(|(_, rows)| rows.len()).max();
        let shared = groups.iter().find(|(_, rows)| Some(rows.len()) == most);
        shared.map_or_else(Vec::new, |(connections, _)| connections.to_vec())
    }
}

impl Stream {
    fn read(row: Value, shared: &[Connection]) -> Option<Self> {
        let name = match &row {
            Value::String(name) => name.clone(),
            row => ["name", "stream", "stream_name"]
                .iter()
                .find_map(|name| text(row, name))?
                .to_owned(),
        };
        let mut own = connections(&row);
        if own.is_empty() {
            own = shared.to_vec();
        }
        let members = match row {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        let number = |name: &str| members.get(name).and_then(Value::as_u64);
        let time = members.get("time_constraint");
        let listed = members.get("resources").and_then(Value::as_array);
        Some(Self {
            name,
            connections: own,
            record_count: number("record_count"),
            time_constraint: time
                .filter(|time| time.is_object())
                .map(ToString::to_string),
            named_records: listed
                .map(|all| all.len() as u64)
                .or(number("resource_count")),
            members: Fields::owned(members),
        })
    }

    /// These members as they came, where they are small.
    pub(crate) fn small(&self, names: &[&str]) -> Fields<'static> {
        self.members.small(names, MEMBER)
    }

    pub(crate) fn json_schemas(&self) -> impl Iterator<Item = (&str, FieldValue<'_>)> {
        let fields = self.members.members().get("field_capabilities");
        let fields = fields.and_then(Value::as_object).into_iter().flatten();
        fields.filter_map(|(name, field)| {
            Some((name.as_str(), FieldValue::new(field.get("schema")?)))
        })
    }

    /// Narrows the row to one connection. A row that names none is kept: the server was asked for that connection.
    fn keeps(&mut self, connection: Option<&str>) -> bool {
        let Some(connection) = connection else {
            return true;
        };
        if self.connections.is_empty() {
            return true;
        }
        self.connections.retain(|one| one.id == connection);
        !self.connections.is_empty()
    }
}

/// Rows of a server that knows no connectors, under the connector each names.
fn by_connector(rows: Vec<Value>) -> Vec<Connector> {
    let mut connectors: Vec<Connector> = Vec::new();
    for row in rows {
        let key = connector_key(&row);
        let label = label_of(&row, &["connector_display_name"]);
        let Some(stream) = Stream::read(row, &[]) else {
            continue;
        };
        match connectors.iter_mut().find(|known| known.key == key) {
            Some(known) => known.streams.push(stream),
            None => connectors.push(Connector {
                key,
                label,
                members: Fields::default(),
                streams: vec![stream],
                shared: Vec::new(),
            }),
        }
    }
    connectors
}

fn connector_key(value: &Value) -> String {
    let source = value.get("source");
    let named = connector_of(value).or_else(|| source.and_then(connector_of));
    let from_id = source
        .and_then(|source| text(source, "id"))
        .and_then(|id| id.rsplit('/').find(|part| !part.is_empty()));
    named.or(from_id).unwrap_or("unknown").to_owned()
}

fn label_of(value: &Value, names: &[&str]) -> Option<String> {
    let own = names.iter().find_map(|name| text(value, name));
    let source = value.get("source");
    own.or_else(|| text(source?, "display_name"))
        .map(str::to_owned)
}

/// The connections a connector or row lists: as objects, else its only one, else bare ids.
fn connections(value: &Value) -> Vec<Connection> {
    let grant = text(value, "grant_id");
    let of = |id: &str, label: Option<&str>, grant: Option<&str>| Connection {
        id: id.to_owned(),
        label: label.map(str::to_owned),
        grant_id: grant.map(str::to_owned),
    };
    if let Some(listed) = value.get("granted_connections").and_then(Value::as_array) {
        let read = |one: &Value| {
            let id = connection_of(one).or_else(|| one.as_str())?;
            let label = text(one, "display_name");
            Some(of(id, label, text(one, "grant_id").or(grant)))
        };
        return listed.iter().filter_map(read).collect();
    }
    if let Some(only) = connection_of(value) {
        let label = text(value, "connection_display_name").or_else(|| text(value, "display_name"));
        return vec![of(only, label, grant)];
    }
    let ids = value.get("instance_ids").and_then(Value::as_array);
    let ids = ids.map_or(&[][..], Vec::as_slice).iter();
    ids.filter_map(Value::as_str)
        .map(|id| of(id, None, grant))
        .collect()
}

fn list(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}
