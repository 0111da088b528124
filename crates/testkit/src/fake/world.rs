//! The data of a fake server: connectors with connections and streams, and the records in them.

use serde_json::{Map, Value};

#[derive(Debug, Clone, Default)]
pub struct World {
    /// The connectors, in the order the schema lists them.
    pub connectors: Vec<Connector>,
    /// The records of all streams, deleted ones included.
    pub records: Vec<Record>,
    version: u64,
}

#[derive(Debug, Clone, Default)]
pub struct Connector {
    pub key: String,
    pub connections: Vec<Connection>,
    pub streams: Vec<Stream>,
}

#[derive(Debug, Clone)]
pub struct Connection {
    pub id: String,
    pub label: Option<String>,
    /// The streams it carries; `None` means all of its connector.
    pub streams: Option<Vec<String>>,
}

#[derive(Debug, Clone, Default)]
pub struct Stream {
    pub name: String,
    pub fields: Vec<Field>,
    pub cursor_field: Option<String>,
    pub views: Vec<View>,
    /// Relations that a read may bring along.
    pub expands: Vec<Expand>,
}

#[derive(Debug, Clone)]
pub struct View {
    /// What to pass as `view`.
    pub id: String,
    pub fields: Vec<String>,
}

/// A relation to another stream of the same connection.
#[derive(Debug, Clone)]
pub struct Expand {
    /// What to pass as `expand`.
    pub name: String,
    /// The other stream.
    pub target: String,
    /// The field of the other stream that holds this record's key.
    pub foreign_key: String,
    pub default_limit: usize,
    pub max_limit: usize,
}

#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each capability is its own yes or no"
)]
pub struct Field {
    pub name: String,
    pub json_type: &'static str,
    pub presentation: Option<&'static str>,
    pub role: Option<&'static str>,
    /// Whether the token may read it.
    pub granted: bool,
    /// Why its filters are declared and not usable.
    pub unusable: Option<&'static str>,
    /// `filter[field]=value`.
    pub exact: bool,
    /// Operators of `filter[field][op]=value`.
    pub range: Vec<&'static str>,
    /// Found by words.
    pub lexical: bool,
    /// Found by meaning.
    pub semantic: bool,
    /// Aggregates it takes part in: `sum`, `min`, `max`, `count_distinct`, `group_by`, `group_by_time`.
    pub aggregates: Vec<&'static str>,
    /// How long its JSON Schema is, at least.
    pub schema_chars: usize,
}

#[derive(Debug, Clone)]
pub struct Record {
    pub connection_id: String,
    pub stream: String,
    pub key: String,
    pub data: Map<String, Value>,
    pub emitted_at: String,
    /// Members beside `data`.
    pub extra: Map<String, Value>,
    /// When it last changed, counted.
    pub version: u64,
    pub deleted: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) connector: &'a Connector,
    pub(crate) connection: &'a Connection,
    pub(crate) stream: &'a Stream,
}

impl World {
    #[must_use]
    pub fn with(mut self, connector: Connector) -> World {
        self.connectors.push(connector);
        self
    }

    /// Adds a record, `data` being an object.
    #[must_use]
    pub fn with_record(
        mut self,
        connection_id: &str,
        stream: &str,
        key: &str,
        data: Value,
    ) -> World {
        self.put(connection_id, stream, key, data);
        self
    }

    /// Adds or replaces a record, `data` being an object.
    pub fn put(
        &mut self,
        connection_id: &str,
        stream: &str,
        key: &str,
        data: Value,
    ) -> &mut Record {
        let Value::Object(data) = data else {
            unreachable!("the data of a record is an object")
        };
        self.records
            .retain(|record| !record.is(connection_id, stream, key));
        self.version += 1;
        self.records.push(Record {
            connection_id: connection_id.to_owned(),
            stream: stream.to_owned(),
            key: key.to_owned(),
            data,
            emitted_at: "2026-05-01T00:00:00Z".to_owned(),
            extra: Map::new(),
            version: self.version,
            deleted: false,
        });
        self.records.last_mut().expect("it was just added")
    }

    /// Deletes a record; bookmarks before it see a tombstone.
    pub fn delete(&mut self, connection_id: &str, stream: &str, key: &str) {
        self.version += 1;
        for record in &mut self.records {
            if record.is(connection_id, stream, key) {
                record.deleted = true;
                record.version = self.version;
            }
        }
    }

    /// The last change, counted.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn sources(&self) -> impl Iterator<Item = Source<'_>> {
        self.connectors.iter().flat_map(|connector| {
            connector.connections.iter().flat_map(move |connection| {
                connector
                    .streams
                    .iter()
                    .filter(|stream| connection.carries(&stream.name))
                    .map(move |stream| Source {
                        connector,
                        connection,
                        stream,
                    })
            })
        })
    }
}

impl<'a> Source<'a> {
    /// The records of this stream and connection that exist.
    pub(crate) fn records(self, world: &'a World) -> impl Iterator<Item = &'a Record> {
        self.history(world).filter(|record| !record.deleted)
    }

    /// The records and the tombstones of this stream and connection.
    pub(crate) fn history(self, world: &'a World) -> impl Iterator<Item = &'a Record> {
        world.records.iter().filter(move |record| {
            record.stream == self.stream.name && record.connection_id == self.connection.id
        })
    }
}

impl Connector {
    pub fn new(key: &str) -> Connector {
        Connector {
            key: key.to_owned(),
            ..Connector::default()
        }
    }

    #[must_use]
    pub fn connection(mut self, id: &str, label: &str) -> Connector {
        self.connections.push(Connection {
            id: id.to_owned(),
            label: Some(label.to_owned()),
            streams: None,
        });
        self
    }

    /// Adds a connection that carries only these streams.
    #[must_use]
    pub fn connection_of(mut self, id: &str, label: &str, streams: &[&str]) -> Connector {
        self.connections.push(Connection {
            id: id.to_owned(),
            label: Some(label.to_owned()),
            streams: Some(streams.iter().map(|name| (*name).to_owned()).collect()),
        });
        self
    }

    #[must_use]
    pub fn stream(mut self, stream: Stream) -> Connector {
        self.streams.push(stream);
        self
    }
}

impl Connection {
    pub(crate) fn carries(&self, stream: &str) -> bool {
        self.streams
            .as_ref()
            .is_none_or(|streams| streams.iter().any(|name| name == stream))
    }
}

impl Stream {
    pub fn new(name: &str) -> Stream {
        Stream {
            name: name.to_owned(),
            ..Stream::default()
        }
    }

    #[must_use]
    pub fn field(mut self, field: Field) -> Stream {
        self.fields.push(field);
        self
    }

    #[must_use]
    pub fn ordered_by(mut self, field: &str) -> Stream {
        self.cursor_field = Some(field.to_owned());
        self
    }

    #[must_use]
    pub fn view(mut self, id: &str, fields: &[&str]) -> Stream {
        self.views.push(View {
            id: id.to_owned(),
            fields: fields.iter().map(|&name| name.to_owned()).collect(),
        });
        self
    }

    #[must_use]
    pub fn expand(mut self, expand: Expand) -> Stream {
        self.expands.push(expand);
        self
    }

    pub(crate) fn granted(&self, name: &str) -> Option<&Field> {
        self.fields
            .iter()
            .find(|field| field.granted && field.name == name)
    }
}

impl Field {
    /// A granted field of a JSON type, accepting nothing but projection.
    pub fn new(name: &str, json_type: &'static str) -> Field {
        Field {
            name: name.to_owned(),
            json_type,
            presentation: None,
            role: None,
            granted: true,
            unusable: None,
            exact: false,
            range: Vec::new(),
            lexical: false,
            semantic: false,
            aggregates: Vec::new(),
            schema_chars: 0,
        }
    }

    pub fn text(name: &str) -> Field {
        Field {
            lexical: true,
            ..Field::new(name, "string")
        }
    }

    /// A short text that can be matched exactly.
    pub fn id(name: &str) -> Field {
        Field::new(name, "string").exact()
    }

    pub fn time(name: &str) -> Field {
        Field {
            presentation: Some("timestamp"),
            ..Field::new(name, "string")
        }
    }

    #[must_use]
    pub fn exact(mut self) -> Field {
        self.exact = true;
        self
    }

    #[must_use]
    pub fn range(mut self, operators: &[&'static str]) -> Field {
        self.range = operators.to_vec();
        self
    }

    #[must_use]
    pub fn aggregates(mut self, aggregates: &[&'static str]) -> Field {
        self.aggregates = aggregates.to_vec();
        self
    }

    #[must_use]
    pub fn semantic(mut self) -> Field {
        self.semantic = true;
        self
    }

    #[must_use]
    pub fn role(mut self, role: &'static str) -> Field {
        self.role = Some(role);
        self
    }

    /// Declares its filters, but refuses them for this reason.
    #[must_use]
    pub fn unusable(mut self, reason: &'static str) -> Field {
        self.unusable = Some(reason);
        self
    }

    /// Exists, but is hidden from the token.
    #[must_use]
    pub fn hidden(mut self) -> Field {
        self.granted = false;
        self
    }

    /// Has a JSON Schema of at least this length.
    #[must_use]
    pub fn schema_of(mut self, chars: usize) -> Field {
        self.schema_chars = chars;
        self
    }
}

impl Record {
    pub(crate) fn is(&self, connection_id: &str, stream: &str, key: &str) -> bool {
        self.connection_id == connection_id && self.stream == stream && self.key == key
    }
}
