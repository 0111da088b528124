//! The streams that whoever looks may see, by connection, each connector with a colour of its own.

use contract::id::{ConnectorKey, StreamName};
use contract::query::StreamsQuery;
use contract::reader::ReadContract as _;

use super::format::label;
use super::stream_shape::title;
use super::viewer::Viewer;
use crate::problem::Problem;

/// How many colours the style sheet has.
const COLOURS: usize = 8;

pub(super) struct Sources(pub(super) Vec<Source>);

/// One connection.
pub(super) struct Source {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) connector: String,
    /// The number of its connector's colour.
    pub(super) colour: usize,
    pub(super) streams: Vec<SourceStream>,
}

pub(super) struct SourceStream {
    pub(super) name: StreamName,
    /// What the declaration calls it, else its name as a title.
    pub(super) label: String,
    pub(super) records: u64,
    /// When its newest record was emitted.
    pub(super) newest: Option<String>,
}

impl Source {
    pub(super) fn records(&self) -> u64 {
        self.streams.iter().map(|stream| stream.records).sum()
    }
}

impl Sources {
    pub(super) async fn read(viewer: &Viewer) -> Result<Self, Problem> {
        let page = viewer.reader.streams(StreamsQuery::default()).await?;
        let mut sources: Vec<Source> = Vec::new();
        for stream in page.data {
            let id = stream.connection_id.unwrap_or_default();
            let Ok(name) = StreamName::parse(&stream.name) else {
                continue;
            };
            let connector = stream.connector_key.as_deref().unwrap_or_default();
            let entry = SourceStream {
                label: stream_label(viewer, connector, name.as_str()),
                name,
                records: stream.record_count.unwrap_or_default(),
                newest: stream.last_updated.as_option().cloned(),
            };
            match sources.iter_mut().find(|source| source.id == id) {
                Some(source) => source.streams.push(entry),
                None => sources.push(Source {
                    name: label(stream.display_name.as_deref().unwrap_or(&id)),
                    connector: stream.connector_key.unwrap_or_default(),
                    colour: 0,
                    streams: vec![entry],
                    id,
                }),
            }
        }
        let mut connectors: Vec<String> = sources.iter().map(|one| one.connector.clone()).collect();
        connectors.sort();
        connectors.dedup();
        for source in &mut sources {
            let at = connectors.binary_search(&source.connector);
            source.colour = at.unwrap_or_default() % COLOURS;
        }
        Ok(Self(sources))
    }

    /// What a stream of a connection is called.
    pub(super) fn label(&self, connection: &str, stream: &str) -> String {
        let streams = self
            .get(connection)
            .into_iter()
            .flat_map(|one| &one.streams);
        let mut streams = streams.filter(|one| one.name.as_str() == stream);
        streams
            .next()
            .map_or_else(|| label(&title(stream)), |one| one.label.clone())
    }

    pub(super) fn get(&self, connection: &str) -> Option<&Source> {
        self.0.iter().find(|source| source.id == connection)
    }

    pub(super) fn records(&self) -> u64 {
        self.0.iter().map(Source::records).sum()
    }
}

fn stream_label(viewer: &Viewer, connector: &str, stream: &str) -> String {
    let connector = ConnectorKey::parse(connector).ok();
    let declaration = connector.and_then(|key| viewer.service.store.declaration(&key));
    let declared = declaration.as_deref().and_then(|one| one.stream(stream));
    let declared = declared.and_then(|stream| stream.label.as_deref());
    declared.map_or_else(|| label(&title(stream)), label)
}
