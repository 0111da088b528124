//! Reading the catalog from the database.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use contract::declaration::Declaration;
use contract::id::{ConnectorKey, FieldName, StreamName};
use contract::time::Instant;
use rusqlite::{Connection as Sqlite, Row};

use super::database::failed;
use crate::Result;
use crate::catalog::{Connection, StreamRef};
use crate::index::layout::{SlotKind, TakenSlots};
use crate::index::sources::{Sources, registered};

pub(super) fn load(sqlite: &Sqlite, path: &Path) -> Result<Sources> {
    let unreadable = failed(path);
    let declarations = load_declarations(sqlite, path)?;
    let connections = load_connections(sqlite).map_err(&unreadable)?;
    let streams = load_streams(sqlite).map_err(&unreadable)?;
    let mut slots = HashMap::new();
    for declaration in declarations.values() {
        for stream in &declaration.streams {
            let taken = taken_slots(sqlite, declaration.connector_key(), &stream.name);
            let key = (declaration.connector_key().clone(), stream.name.clone());
            slots.insert(key, taken.map_err(&unreadable)?);
        }
    }
    Ok(Sources::new(declarations, connections, streams, slots))
}

fn load_streams(sqlite: &Sqlite) -> rusqlite::Result<Vec<(i64, StreamRef)>> {
    let mut statement = sqlite.prepare(
        "SELECT streams.id, connection_id, streams.name
         FROM streams JOIN connections ON connections.id = connection_id ORDER BY ordinal, streams.id",
    )?;
    let rows = statement.query_map([], |row| {
        let stream = StreamRef {
            connection: parsed(row, 1)?,
            stream: parsed(row, 2)?,
        };
        Ok((row.get(0)?, stream))
    })?;
    rows.collect()
}

pub(super) fn taken_slots(
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
        let declaration = registered(&text, number, path)?;
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
