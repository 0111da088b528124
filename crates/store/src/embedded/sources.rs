//! The catalog in memory: declarations, connections, and how each stream is stored. Rebuilt whenever any of it changes.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use contract::declaration::{Declaration, Reading};
use contract::id::{ConnectionId, ConnectorKey, FieldName, StreamName};
use contract::time::Instant;
use rusqlite::{Connection as Sqlite, Row};

use super::index::Capacity;
use super::layout::{SlotKind, StreamLayout, TakenSlots};
use super::sqlite::failed;
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
    pub(crate) fn load(sqlite: &Sqlite, path: &Path) -> Result<Self> {
        let unreadable = failed(path);
        let declarations = load_declarations(sqlite, path)?;
        let connections = load_connections(sqlite).map_err(&unreadable)?;
        let mut layouts: HashMap<(ConnectorKey, StreamName), Arc<StreamLayout>> = HashMap::new();
        for declaration in declarations.values() {
            for stream in &declaration.streams {
                let mut taken = taken_slots(sqlite, declaration.connector_key(), &stream.name)
                    .map_err(&unreadable)?;
                let layout = StreamLayout::derive(stream, &mut taken);
                let key = (declaration.connector_key().clone(), stream.name.clone());
                layouts.insert(key, Arc::new(layout));
            }
        }
        let mut sources = Self {
            declarations,
            connections,
            ..Self::default()
        };
        sources.add_streams(sqlite, &layouts).map_err(&unreadable)?;
        let slots = sources.streams.iter().flat_map(|entry| &entry.layout.slots);
        sources.capacity = slots.fold(Capacity::USUAL, |capacity, slot| {
            capacity.including(slot.kind, slot.number)
        });
        Ok(sources)
    }

    fn add_streams(
        &mut self,
        sqlite: &Sqlite,
        layouts: &HashMap<(ConnectorKey, StreamName), Arc<StreamLayout>>,
    ) -> rusqlite::Result<()> {
        let mut statement = sqlite.prepare(
            "SELECT streams.id, connection_id, streams.name, connector_key
             FROM streams JOIN connections ON connections.id = connection_id ORDER BY ordinal, streams.id",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let stream = StreamRef {
                connection: parsed(row, 1)?,
                stream: parsed(row, 2)?,
            };
            let connector: ConnectorKey = parsed(row, 3)?;
            let Some(layout) = layouts.get(&(connector, stream.stream.clone())) else {
                continue;
            };
            let id = row.get(0)?;
            self.by_ref.insert(stream.clone(), self.streams.len());
            self.by_id.insert(id, self.streams.len());
            self.streams.push(Arc::new(StreamEntry {
                id,
                stream,
                layout: Arc::clone(layout),
            }));
        }
        Ok(())
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

pub(crate) fn taken_slots(
    sqlite: &Sqlite,
    connector: &ConnectorKey,
    stream: &StreamName,
) -> rusqlite::Result<TakenSlots> {
    let mut statement = sqlite.prepare_cached(
        "SELECT field, kind, slot FROM slots WHERE connector_key = ?1 AND stream = ?2",
    )?;
    let mut rows = statement.query([connector.as_str(), stream.as_str()])?;
    let mut taken = TakenSlots::new();
    while let Some(row) = rows.next()? {
        let field: FieldName = parsed(row, 0)?;
        let kind: String = row.get(1)?;
        if let Some(kind) = SlotKind::named(&kind) {
            taken.insert((field, kind), row.get(2)?);
        }
    }
    Ok(taken)
}

pub(crate) fn reading_number(reading: Reading) -> i64 {
    match reading {
        Reading::Literal => 1,
        Reading::Following => 2,
    }
}

fn load_declarations(
    sqlite: &Sqlite,
    path: &Path,
) -> Result<BTreeMap<ConnectorKey, Arc<Declaration>>> {
    let texts: Vec<(String, i64)> = sqlite
        .prepare("SELECT declaration, reading FROM connectors")
        .and_then(|mut statement| {
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })
        .map_err(failed(path))?;
    let mut declarations = BTreeMap::new();
    for (text, number) in texts {
        let reading = if number == reading_number(Reading::Literal) {
            Reading::Literal
        } else {
            Reading::Following
        };
        let declaration =
            Declaration::parse_as(&text, reading).map_err(|errors| StoreError::Corrupt {
                path: path.to_owned(),
                detail: format!("a registered declaration does not hold: {errors}"),
            })?;
        declarations.insert(declaration.connector_key().clone(), Arc::new(declaration));
    }
    Ok(declarations)
}

fn load_connections(sqlite: &Sqlite) -> rusqlite::Result<Vec<Connection>> {
    let mut statement = sqlite.prepare(
        "SELECT id, connector_key, display_name, created_at FROM connections ORDER BY ordinal",
    )?;
    let rows = statement.query_map([], |row| {
        Ok(Connection {
            id: parsed(row, 0)?,
            connector: parsed(row, 1)?,
            display_name: row.get(2)?,
            created_at: Instant(row.get(3)?),
        })
    })?;
    rows.collect()
}

/// A value that was checked when it was written.
fn parsed<T: std::str::FromStr>(row: &Row<'_>, column: usize) -> rusqlite::Result<T>
where
    T::Err: std::error::Error + Send + Sync + 'static,
{
    let text = row.get_ref(column)?.as_str()?;
    text.parse().map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(
            column,
            rusqlite::types::Type::Text,
            Box::new(error),
        )
    })
}
