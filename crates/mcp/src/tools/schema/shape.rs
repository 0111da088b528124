//! The schema document as structured content: whole where it is small, else ever less of each row. Every stream and connection
//! is named in any case.

use serde::Serialize;
use serde_with::skip_serializing_none;

use super::Row;
use crate::answer::schema::capability::{COUNTS, Capabilities, Relation, Use, legend};
use crate::answer::schema::document::{Connection, Connector, Document, Stream};
use crate::answer::{Fields, size};
use crate::reply::Members;

/// What is kept of a row beside its connections and capabilities.
const KEPT: [&str; 13] = [
    "connector_key",
    "connector_id",
    "connector_display_name",
    "display_name",
    "connection_display_name",
    "connection_id",
    "record_count",
    "granted",
    "primary_key",
    "cursor_field",
    "source",
    "time_constraint",
    "resource_count",
];
const CONNECTOR: [&str; 5] = [
    "object",
    "connector_id",
    "source",
    "display_name",
    "grant_id",
];

#[skip_serializing_none]
#[derive(Serialize)]
pub(super) struct Shape<'a> {
    #[serde(flatten)]
    envelope: Fields<'static>,
    detail: &'static str,
    connector_count: usize,
    stream_count: usize,
    #[serde(skip_serializing_if = "Members::is_empty")]
    field_capability_legend: Members<&'static str, &'static str>,
    rows: Option<&'static str>,
    #[serde(flatten)]
    sources: Sources<'a>,
}

/// The connectors with their streams, or where there are very many, names alone.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Sources<'a> {
    Connectors(Vec<ConnectorShape<'a>>),
    Sources(Vec<Source<'a>>),
}

/// Connector, connections, and of an index the streams.
#[derive(Serialize)]
#[serde(untagged)]
enum Source<'a> {
    OfStream(&'a str, Vec<&'a str>),
    OfIndex(&'a str, Vec<&'a str>, Vec<&'a str>),
}

#[derive(Serialize)]
struct ConnectorShape<'a> {
    connector_key: &'a str,
    #[serde(flatten)]
    members: Fields<'static>,
    stream_count: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    granted_connections: Vec<Granted<'a>>,
    streams: Vec<RowShape<'a>>,
}

#[skip_serializing_none]
#[derive(Serialize)]
struct RowShape<'a> {
    name: &'a str,
    #[serde(flatten)]
    members: Fields<'static>,
    granted_connections: Option<Vec<Granted<'a>>>,
    #[serde(flatten)]
    fields: FieldsShape<'a>,
}

#[skip_serializing_none]
#[derive(Serialize)]
struct Granted<'a> {
    connection_id: &'a str,
    display_name: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum FieldsShape<'a> {
    Capabilities {
        field_capabilities: Members<&'a str, &'a str>,
        expand_capabilities: &'a [Relation],
        accepts: Box<Accepts<'a>>,
    },
    Names {
        field_names: Vec<&'a str>,
    },
    Count {
        fields_not_listed: usize,
    },
    Index {},
}

/// What a row takes, by argument. Filters, searches and aggregates of fields stand in the flags as well.
#[skip_serializing_none]
#[derive(Serialize)]
struct Accepts<'a> {
    filter: Option<FilterShape<'a>>,
    sort: &'a [String],
    projection: Projection<'a>,
    count: [&'static str; 3],
    search: Option<SearchShape<'a>>,
    aggregate: AggregateShape<'a>,
    expand: Vec<&'a str>,
    #[serde(skip_serializing_if = "Members::is_empty")]
    cannot_be_named: Members<&'static str, Vec<&'a str>>,
}

#[derive(Serialize)]
struct FilterShape<'a> {
    exact: Vec<&'a str>,
    range: Members<&'a str, &'a [String]>,
}

#[derive(Serialize)]
struct Projection<'a> {
    fields: &'static str,
    views: Option<&'a [String]>,
}

#[derive(Serialize)]
struct SearchShape<'a> {
    lexical: Vec<&'a str>,
    semantic: Vec<&'a str>,
}

#[skip_serializing_none]
#[derive(Serialize)]
struct AggregateShape<'a> {
    count: Option<bool>,
    #[serde(flatten)]
    of_fields: Members<&'static str, Vec<&'a str>>,
}

/// How much of each row is told beside its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// Identity, key, order and labels.
    Rows,
    /// Names, and connections with labels.
    Names,
    /// Names and connection ids.
    Ids,
}

/// The index of all streams, without fields, in so many bytes where its names leave it the choice.
pub(super) fn index(document: &Document, room: usize) -> Shape<'_> {
    for depth in [Depth::Rows, Depth::Names, Depth::Ids] {
        let connectors = document.connectors.iter();
        let connectors = connectors.map(|connector| {
            let rows = connector.streams.iter();
            let rows = rows.map(|row| row_shape(connector, row, depth, FieldsShape::Index {}));
            connector_shape(connector, depth, rows.collect())
        });
        let shape = Shape {
            rows: (depth != Depth::Rows)
                .then_some("by name only, because there are many; schema with a stream tells more"),
            ..Shape::new(document, connectors.collect())
        };
        if size(&shape) <= room {
            return shape;
        }
    }
    let connectors = document.connectors.iter();
    let sources = connectors.flat_map(|connector| {
        connector.groups().into_iter().map(|(connections, rows)| {
            let streams = rows.iter().map(|row| row.name.as_str()).collect();
            Source::OfIndex(&connector.key, ids(connections), streams)
        })
    });
    Shape {
        rows: Some(
            "sources of [connector_key, connection_ids, streams], because there are very many",
        ),
        sources: Sources::Sources(sources.collect()),
        ..Shape::new(document, Vec::new())
    }
}

/// The rows of one stream with what each accepts, in so many bytes where their names leave it the choice.
pub(super) fn scoped<'a>(document: &'a Document, rows: &'a [Row<'a>], room: usize) -> Shape<'a> {
    for is_whole in [true, false] {
        let told = |row: &'a Row<'a>| FieldsShape::new(&row.accepts, is_whole);
        let shape = Shape::new(document, with_fields(document, rows, Depth::Rows, told));
        let shape = shape.explained(rows);
        if size(&shape) <= room {
            return shape;
        }
    }
    let shape = Shape::new(document, Vec::new());
    let names = |row: &'a Row<'a>| row.accepts.names(|_| true);
    // The names of a single source stand whatever they take.
    let most = match rows {
        [only] => room.max(size(&names(only)) * 3 / 2),
        _ => room,
    };
    // Every row keeps its place; what is left goes to the first ones.
    let count = |row: &'a Row<'a>| FieldsShape::Count {
        fields_not_listed: row.accepts.fields.len(),
    };
    let bare = with_fields(document, rows, Depth::Ids, count);
    let shape = Shape {
        rows: Some("without all fields; schema with this stream and one connection_id tells more"),
        ..shape.explained(rows)
    };
    let used = size(&shape) + size(&bare);
    if let Some(mut left) = most.checked_sub(used) {
        let connectors = with_fields(document, rows, Depth::Ids, |row| {
            let flags = FieldsShape::new(&row.accepts, false);
            let field_names = names(row);
            for fields in [flags, FieldsShape::Names { field_names }] {
                if let Some(rest) = left.checked_sub(size(&fields)) {
                    left = rest;
                    return fields;
                }
            }
            count(row)
        });
        return Shape {
            sources: Sources::Connectors(connectors),
            ..shape
        };
    }
    let sources = rows.iter();
    let sources =
        sources.map(|row| Source::OfStream(&row.connector.key, ids(&row.stream.connections)));
    Shape {
        rows: Some(
            "sources of [connector_key, connection_ids], because there are very many; schema with one connection_id tells its fields",
        ),
        sources: Sources::Sources(sources.collect()),
        ..Shape::new(document, Vec::new())
    }
}

fn with_fields<'a>(
    document: &'a Document,
    rows: &'a [Row<'a>],
    depth: Depth,
    mut told: impl FnMut(&'a Row<'a>) -> FieldsShape<'a>,
) -> Vec<ConnectorShape<'a>> {
    let mut rows = rows.iter();
    let connectors = document.connectors.iter();
    connectors
        .map(|connector| {
            let own = rows.by_ref().take(connector.streams.len());
            let own = own.map(|row| row_shape(connector, row.stream, depth, told(row)));
            connector_shape(connector, depth, own.collect())
        })
        .collect()
}

impl<'a> Shape<'a> {
    fn new(document: &Document, connectors: Vec<ConnectorShape<'a>>) -> Self {
        Self {
            envelope: document.envelope(),
            detail: "compact",
            connector_count: document.connectors.len(),
            stream_count: document.rows().count(),
            field_capability_legend: Members::default(),
            rows: None,
            sources: Sources::Connectors(connectors),
        }
    }

    fn explained(mut self, rows: &[Row<'_>]) -> Self {
        let accepts: Vec<&Capabilities> = rows.iter().map(|row| &row.accepts).collect();
        self.field_capability_legend = Members(legend(&accepts));
        self
    }
}

fn connector_shape<'a>(
    connector: &'a Connector,
    depth: Depth,
    streams: Vec<RowShape<'a>>,
) -> ConnectorShape<'a> {
    ConnectorShape {
        connector_key: &connector.key,
        members: match depth {
            Depth::Rows => connector.small(&CONNECTOR),
            _ => Fields::default(),
        },
        stream_count: connector.streams.len(),
        granted_connections: granted(&connector.shared, depth),
        streams,
    }
}

fn row_shape<'a>(
    connector: &Connector,
    row: &'a Stream,
    depth: Depth,
    fields: FieldsShape<'a>,
) -> RowShape<'a> {
    let own = (row.connections != connector.shared).then(|| granted(&row.connections, depth));
    RowShape {
        name: &row.name,
        members: match depth {
            Depth::Rows => row.small(&KEPT),
            _ => Fields::default(),
        },
        granted_connections: own,
        fields,
    }
}

fn granted(connections: &[Connection], depth: Depth) -> Vec<Granted<'_>> {
    let each = connections.iter().map(|one| Granted {
        connection_id: &one.id,
        display_name: one.label.as_deref().filter(|_| depth != Depth::Ids),
    });
    each.collect()
}

fn ids(connections: &[Connection]) -> Vec<&str> {
    connections.iter().map(|one| one.id.as_str()).collect()
}

impl<'a> FieldsShape<'a> {
    /// The flags, and by argument what they tell by field, too, or only what they do not.
    fn new(accepts: &'a Capabilities, is_whole: bool) -> Self {
        let fields = accepts.fields.iter();
        let flags = fields.map(|field| (field.name.as_str(), field.flags.as_str()));
        Self::Capabilities {
            field_capabilities: Members(flags.collect()),
            expand_capabilities: &accepts.expand,
            accepts: Box::new(Accepts::new(accepts, is_whole)),
        }
    }
}

impl<'a> Accepts<'a> {
    fn new(accepts: &'a Capabilities, is_whole: bool) -> Self {
        let used = |this: Use| accepts.names(move |field| field.is_for(this));
        let fields = accepts.fields.iter();
        let ranges =
            fields.filter_map(|field| Some((field.name.as_str(), field.range.as_deref()?)));
        let usable = accepts.expand.iter().filter(|relation| relation.usable);
        Self {
            filter: is_whole.then(|| FilterShape {
                exact: used(Use::Exact),
                range: Members(ranges.collect()),
            }),
            sort: accepts.sort.as_slice(),
            projection: Projection {
                fields: "any granted field",
                views: accepts.views.as_deref(),
            },
            count: COUNTS,
            search: is_whole.then(|| SearchShape {
                lexical: used(Use::Lexical),
                semantic: used(Use::Semantic),
            }),
            aggregate: AggregateShape {
                count: accepts.counts_records,
                of_fields: Members(if is_whole {
                    accepts.aggregates()
                } else {
                    Vec::new()
                }),
            },
            expand: usable.map(|relation| relation.name.as_str()).collect(),
            cannot_be_named: Members(accepts.unsayable()),
        }
    }
}
