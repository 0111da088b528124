//! The catalog in memory: declarations, connections, and how each stream is stored. Rebuilt whenever any of it changes.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use contract::declaration::{Declaration, Reading};
use contract::id::{ConnectionId, ConnectorKey, StreamName};

use super::engine::Capacity;
use super::layout::{StreamLayout, TakenSlots};
use crate::catalog::{Connection, StreamRef};
use crate::{Result, StoreError};

/// A stream of a connection and everything needed to read and write it.
#[derive(Debug)]
pub(crate) struct StreamEntry {
    pub(crate) id: i64,
    pub(crate) stream: StreamRef,
    pub(crate) layout: Arc<StreamLayout>,
}

#[derive(Debug, Default)]
pub(crate) struct Sources {
    pub(crate) declarations: BTreeMap<ConnectorKey, Arc<Declaration>>,
    pub(crate) connections: Vec<Connection>,
    streams: Vec<Arc<StreamEntry>>,
    by_ref: HashMap<StreamRef, usize>,
    by_id: HashMap<i64, usize>,
    /// Asked for by every search and every batch, so it is found once.
    capacity: Capacity,
}

impl Sources {
    /// Puts the catalog together. Slots are those that fields of a stream were given already.
    pub(crate) fn new(
        declarations: BTreeMap<ConnectorKey, Arc<Declaration>>,
        connections: Vec<Connection>,
        streams: Vec<(i64, StreamRef)>,
        mut slots: HashMap<(ConnectorKey, StreamName), TakenSlots>,
    ) -> Self {
        let mut layouts: HashMap<(ConnectorKey, StreamName), Arc<StreamLayout>> = HashMap::new();
        for declaration in declarations.values() {
            for stream in &declaration.streams {
                let key = (declaration.connector_key().clone(), stream.name.clone());
                let taken = slots.entry(key.clone()).or_default();
                layouts.insert(key, Arc::new(StreamLayout::derive(stream, taken)));
            }
        }
        let connectors: HashMap<ConnectionId, ConnectorKey> = connections
            .iter()
            .map(|one| (one.id.clone(), one.connector.clone()))
            .collect();
        let mut sources = Self {
            declarations,
            connections,
            ..Self::default()
        };
        for (id, stream) in streams {
            let connector = connectors.get(&stream.connection).cloned();
            let key = connector.map(|connector| (connector, stream.stream.clone()));
            let Some(layout) = key.and_then(|key| layouts.get(&key)) else {
                continue;
            };
            sources.by_ref.insert(stream.clone(), sources.streams.len());
            sources.by_id.insert(id, sources.streams.len());
            sources.streams.push(Arc::new(StreamEntry {
                id,
                stream,
                layout: Arc::clone(layout),
            }));
        }
        let slots = sources.streams.iter().flat_map(|entry| &entry.layout.slots);
        sources.capacity = slots.fold(Capacity::USUAL, |capacity, slot| {
            capacity.including(slot.kind, slot.number)
        });
        sources
    }

    /// All streams, by connection and declaration order.
    pub(crate) fn streams(&self) -> &[Arc<StreamEntry>] {
        &self.streams
    }

    pub(crate) fn by_id(&self, id: i64) -> Option<&Arc<StreamEntry>> {
        self.by_id.get(&id).and_then(|at| self.streams.get(*at))
    }

    pub(crate) fn connection(&self, id: &ConnectionId) -> Result<&Connection> {
        self.connections
            .iter()
            .find(|connection| connection.id == *id)
            .ok_or_else(|| StoreError::UnknownConnection(id.clone()))
    }

    pub(crate) fn stream(&self, stream: &StreamRef) -> Result<&Arc<StreamEntry>> {
        let found = self.by_ref.get(stream).and_then(|at| self.streams.get(*at));
        if let Some(entry) = found {
            return Ok(entry);
        }
        self.connection(&stream.connection)?;
        let known: Vec<&str> = self
            .streams
            .iter()
            .filter(|entry| entry.stream.connection == stream.connection)
            .map(|entry| entry.stream.stream.as_str())
            .collect();
        Err(StoreError::UnknownStream {
            connection: stream.connection.clone(),
            stream: stream.stream.clone(),
            known: known.join(", "),
        })
    }

    pub(crate) fn capacity(&self) -> Capacity {
        self.capacity
    }
}

/// The streams that a batch for one connection writes to, each looked up once.
pub(crate) struct BatchStreams<'a> {
    sources: Arc<Sources>,
    connection: &'a ConnectionId,
    entries: HashMap<StreamName, Arc<StreamEntry>>,
}

impl<'a> BatchStreams<'a> {
    pub(crate) fn new(sources: Arc<Sources>, connection: &'a ConnectionId) -> Result<Self> {
        sources.connection(connection)?;
        Ok(Self {
            sources,
            connection,
            entries: HashMap::new(),
        })
    }

    pub(crate) fn entry(&mut self, stream: &StreamName) -> Result<Arc<StreamEntry>> {
        if let Some(entry) = self.entries.get(stream) {
            return Ok(Arc::clone(entry));
        }
        let entry = self.sources.stream(&StreamRef {
            connection: self.connection.clone(),
            stream: stream.clone(),
        })?;
        self.entries.insert(stream.clone(), Arc::clone(entry));
        Ok(Arc::clone(entry))
    }
}

/// How the catalog writes down how a declaration is read.
pub(crate) fn reading_number(reading: Reading) -> i64 {
    match reading {
        Reading::Literal => 1,
        Reading::Following => 2,
    }
}

/// A registered declaration, with the number of how it is read.
pub(crate) fn registered(text: &str, number: i64, place: &Path) -> Result<Declaration> {
    let reading = if number == reading_number(Reading::Literal) {
        Reading::Literal
    } else {
        Reading::Following
    };
    Declaration::parse_as(text, reading).map_err(|errors| {
        StoreError::corrupt(
            place,
            format!("a registered declaration does not hold: {errors}"),
        )
    })
}
