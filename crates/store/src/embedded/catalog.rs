//! Declaring connectors and configuring connections.

use std::sync::Arc;

use contract::declaration::{
    Declaration, DeclarationChange, DeclarationError, DeclarationErrors, plan_change,
};
use contract::id::{ConnectionId, ConnectorKey, StreamName};
use contract::json::{self, RecordBody};
use rusqlite::{OptionalExtension as _, Transaction, params};

use super::EmbeddedStore;
use super::changes::parse_stored;
use super::digest::{CHECKED, checked_live, readable};
use super::layout::StreamLayout;
use super::sources::{reading_number, taken_slots};
use super::sqlite::changed;
use super::write::sort_value;
use crate::catalog::{Catalog, Connection, Declared, NewConnection, Removed, StreamStats};
use crate::{Result, StoreError};

/// Rows rewritten at a time when the order of a stream changes.
const REORDER_CHUNK: usize = 5_000;

impl Catalog for EmbeddedStore {
    fn declare(&self, declaration: &Declaration) -> Result<Declared> {
        let _no_reindexing = self.declaring();
        let sources = self.sources();
        let known = sources.declarations.get(declaration.connector_key());
        let change = match known {
            None => None,
            Some(old) => Some(plan_change(old, declaration)?),
        };
        if change.as_ref().is_some_and(|change| change.unchanged) {
            return Ok(Declared::Unchanged);
        }
        let apply = |transaction: &Transaction<'_>| {
            let replaces =
                known.is_some_and(|old| old.declaration_version != declaration.declaration_version);
            let returned = self.was_registered(transaction, declaration)? && replaces;
            if let Some(change) = &change {
                self.refuse_losses(transaction, declaration, change)?;
            }
            self.register(transaction, declaration)?;
            let Some(change) = &change else {
                return Ok(Declared::Added);
            };
            self.reorder(transaction, declaration, change)?;
            let reindexed = self.schedule_reindexing(transaction, declaration, change)?;
            Ok(Declared::Updated {
                reindexed,
                returned,
            })
        };
        self.database.transact_then(apply, || self.reload_sources())
    }

    fn declaration(&self, connector: &ConnectorKey) -> Option<Arc<Declaration>> {
        self.sources().declarations.get(connector).cloned()
    }

    fn declarations(&self) -> Vec<Arc<Declaration>> {
        self.sources().declarations.values().cloned().collect()
    }

    fn add_connection(&self, new: NewConnection) -> Result<Connection> {
        let sources = self.sources();
        let Some(declaration) = sources.declarations.get(&new.connector) else {
            return Err(StoreError::UnknownConnector(new.connector));
        };
        let taken = |id: &ConnectionId| sources.connection(id).is_ok();
        let id = match new.id {
            Some(id) if taken(&id) => return Err(StoreError::ConnectionExists(id)),
            Some(id) => id,
            None => free_id(&ConnectionId::slug(&new.connector, &new.name), taken)?,
        };
        let connection = Connection {
            id,
            connector: new.connector,
            display_name: new.name,
            created_at: self.clock.now(),
        };
        let add = |transaction: &Transaction<'_>| {
            insert_connection(transaction, &connection)
                .and_then(|()| add_stream_rows(transaction, connection.id.as_str(), declaration))
                .map_err(self.database.failed())
        };
        self.database.transact_then(add, || self.reload_sources())?;
        Ok(connection)
    }

    fn connections(&self) -> Vec<Connection> {
        self.sources().connections.clone()
    }

    fn connection(&self, id: &ConnectionId) -> Option<Connection> {
        self.sources().connection(id).ok().cloned()
    }

    fn rename_connection(&self, id: &ConnectionId, name: &str) -> Result<Connection> {
        self.sources().connection(id)?;
        let rename = |transaction: &Transaction<'_>| {
            let sql = "UPDATE connections SET display_name = ?2 WHERE id = ?1";
            transaction
                .execute(sql, (id.as_str(), name))
                .map_err(self.database.failed())
        };
        self.database
            .transact_then(rename, || self.reload_sources())?;
        self.sources().connection(id).cloned()
    }

    fn remove_connection(&self, id: &ConnectionId) -> Result<Removed> {
        self.erase_connection(id)
    }

    fn stream_stats(&self) -> Result<Vec<StreamStats>> {
        let sources = self.sources();
        self.database.read(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT live_records FROM streams WHERE id = ?1")?;
            sources
                .streams()
                .iter()
                .map(|entry| {
                    Ok(StreamStats {
                        stream: entry.stream.clone(),
                        records: statement.query_row([entry.id], |row| row.get(0))?,
                    })
                })
                .collect()
        })
    }
}

impl EmbeddedStore {
    /// Whether this version was registered before. Refuses one that had other content then.
    fn was_registered(
        &self,
        transaction: &Transaction<'_>,
        declaration: &Declaration,
    ) -> Result<bool> {
        let version = declaration.declaration_version.as_str();
        let known: Option<String> = transaction
            .query_row(
                "SELECT declaration FROM declared_versions WHERE connector_key = ?1 AND version = ?2",
                [declaration.connector_key().as_str(), version],
                |row| row.get(0),
            )
            .optional()
            .map_err(self.database.failed())?;
        match known {
            Some(known) if !json::same_value(&known, declaration.as_str()) => {
                let rule = format!(
                    "version {version:?} was registered before with other content; choose a declaration_version that was never used"
                );
                Err(DeclarationErrors::one("/declaration_version", rule).into())
            }
            known => Ok(known.is_some()),
        }
    }

    /// Refuses to drop or retype what existing records hold.
    fn refuse_losses(
        &self,
        transaction: &Transaction<'_>,
        declaration: &Declaration,
        change: &DeclarationChange,
    ) -> Result<()> {
        let mut refusals = Vec::new();
        for removed in &change.removed {
            let has_data = |body: &RecordBody| match &removed.field {
                None => true,
                Some(field) => body.get(field.as_str()).is_some(),
            };
            if self.any_record(transaction, declaration, &removed.stream, has_data)? {
                let what = match &removed.field {
                    None => format!(
                        "the stream {:?} is missing here, and",
                        removed.stream.as_str()
                    ),
                    Some(_) => "it is missing, and".to_owned(),
                };
                refusals.push(DeclarationError {
                    path: removed.path.clone(),
                    rule: format!(
                        "{what} records hold it, so it cannot be removed; keep it, or remove the connections first"
                    ),
                });
            }
        }
        for retyped in &change.retyped {
            let stream = declaration.stream(retyped.stream.as_str());
            let field = stream.and_then(|stream| stream.field(retyped.field.as_str()));
            let violates = |body: &RecordBody| match (field, body.get(retyped.field.as_str())) {
                (Some(field), Some(raw)) => !field.accepts(raw),
                _ => false,
            };
            if self.any_record(transaction, declaration, &retyped.stream, violates)? {
                refusals.push(DeclarationError {
                    path: retyped.path.clone(),
                    rule: "existing records hold values of another type; widen the type instead"
                        .to_owned(),
                });
            }
        }
        if refusals.is_empty() {
            Ok(())
        } else {
            Err(DeclarationErrors(refusals).into())
        }
    }

    /// Whether any live record of the stream, in any connection of the connector, satisfies the test.
    fn any_record(
        &self,
        transaction: &Transaction<'_>,
        declaration: &Declaration,
        stream: &StreamName,
        test: impl Fn(&RecordBody) -> bool,
    ) -> Result<bool> {
        let failed = self.database.failed();
        for id in stream_ids(transaction, declaration.connector_key(), stream).map_err(&failed)? {
            let mut statement = transaction
                .prepare_cached(&format!(
                    "SELECT {CHECKED} FROM records WHERE stream_id = ?1 AND data IS NOT NULL"
                ))
                .map_err(&failed)?;
            let mut rows = statement.query([id]).map_err(&failed)?;
            while let Some(row) = rows.next().map_err(&failed)? {
                let data = checked_live(row, 0).map_err(&failed)?;
                if test(&parse_stored(data, self.path())?) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Stores the declaration, gives new fields their slots and new streams their rows.
    fn register(&self, transaction: &Transaction<'_>, declaration: &Declaration) -> Result<()> {
        let connector = declaration.connector_key();
        let register = || -> rusqlite::Result<()> {
            transaction.execute(
                "INSERT INTO connectors VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (connector_key) DO UPDATE SET declaration = ?2, declared_at = ?3, reading = ?4",
                params![
                    connector.as_str(),
                    declaration.as_str(),
                    self.clock.now().0,
                    reading_number(declaration.reading())
                ],
            )?;
            transaction.execute(
                "INSERT OR IGNORE INTO declared_versions VALUES (?1, ?2, ?3)",
                [
                    connector.as_str(),
                    declaration.declaration_version.as_str(),
                    declaration.as_str(),
                ],
            )?;
            for stream in &declaration.streams {
                let mut taken = taken_slots(transaction, connector, &stream.name)?;
                StreamLayout::derive(stream, &mut taken);
                for ((field, kind), slot) in taken {
                    transaction
                        .prepare_cached("INSERT OR IGNORE INTO slots VALUES (?1, ?2, ?3, ?4, ?5)")?
                        .execute(params![
                            connector.as_str(),
                            stream.name.as_str(),
                            field.as_str(),
                            kind.name(),
                            slot
                        ])?;
                }
            }
            let mut statement =
                transaction.prepare("SELECT id FROM connections WHERE connector_key = ?1")?;
            let mut rows = statement.query([connector.as_str()])?;
            while let Some(row) = rows.next()? {
                let id: String = row.get(0)?;
                add_stream_rows(transaction, &id, declaration)?;
            }
            Ok(())
        };
        register().map_err(self.database.failed())
    }

    /// Recomputes the order of streams whose cursor field changed.
    fn reorder(
        &self,
        transaction: &Transaction<'_>,
        declaration: &Declaration,
        change: &DeclarationChange,
    ) -> Result<()> {
        let failed = self.database.failed();
        for name in &change.reordered {
            let Some(stream) = declaration.stream(name.as_str()) else {
                continue;
            };
            let layout = StreamLayout::derive(stream, &mut super::layout::TakenSlots::new());
            for id in stream_ids(transaction, declaration.connector_key(), name).map_err(&failed)? {
                let mut last = 0;
                loop {
                    let chunk = live_rows(transaction, id, last, i64::MAX, REORDER_CHUNK)
                        .map_err(&failed)?;
                    let Some((row, ..)) = chunk.last() else { break };
                    last = *row;
                    for (row, _, data) in chunk {
                        let body = parse_stored(data, self.path())?;
                        transaction
                            .prepare_cached("UPDATE records SET sort = ?2 WHERE row_id = ?1")
                            .and_then(|mut statement| {
                                statement.execute(params![row, sort_value(&layout, &body)])
                            })
                            .map_err(&failed)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn schedule_reindexing(
        &self,
        transaction: &Transaction<'_>,
        declaration: &Declaration,
        change: &DeclarationChange,
    ) -> Result<usize> {
        let mut scheduled = 0;
        for stream in &change.reindex {
            let ids = stream_ids(transaction, declaration.connector_key(), stream)
                .map_err(self.database.failed())?;
            for id in ids {
                scheduled += transaction
                    .execute(
                        "INSERT OR REPLACE INTO reindexing
                         SELECT ?1, min(row_id), max(row_id) FROM records
                         WHERE stream_id = ?1 AND data IS NOT NULL HAVING count(*) > 0",
                        [id],
                    )
                    .map_err(self.database.failed())?;
            }
        }
        Ok(scheduled)
    }
}

/// Live rows of a stream with numbers in `(after, upto]`: number, time, content.
pub(super) fn live_rows(
    connection: &rusqlite::Connection,
    stream: i64,
    after: i64,
    upto: i64,
    limit: usize,
) -> rusqlite::Result<Vec<(i64, String, String)>> {
    connection
        .prepare_cached(&format!(
            "SELECT row_id, {CHECKED} FROM records
             WHERE row_id > ?2 AND row_id <= ?3 AND stream_id = ?1 AND data IS NOT NULL ORDER BY row_id LIMIT ?4"
        ))?
        .query_map(params![stream, after, upto, limit], |row| {
            let content = match checked_live(row, 1) {
                // It stays with nothing to be found by, so that all others can be.
                Err(error) if changed(&error).is_some() => "{}".to_owned(),
                content => content?,
            };
            Ok((row.get(0)?, readable(row, 4)?, content))
        })?
        .collect()
}

fn stream_ids(
    transaction: &Transaction<'_>,
    connector: &ConnectorKey,
    stream: &StreamName,
) -> rusqlite::Result<Vec<i64>> {
    transaction
        .prepare_cached(
            "SELECT streams.id FROM streams JOIN connections ON connections.id = connection_id
             WHERE connector_key = ?1 AND streams.name = ?2",
        )?
        .query_map([connector.as_str(), stream.as_str()], |row| row.get(0))?
        .collect()
}

fn insert_connection(
    transaction: &Transaction<'_>,
    connection: &Connection,
) -> rusqlite::Result<()> {
    transaction
        .execute(
            "INSERT INTO connections (id, connector_key, display_name, created_at) VALUES (?1, ?2, ?3, ?4)",
            params![
                connection.id.as_str(),
                connection.connector.as_str(),
                connection.display_name,
                connection.created_at.0
            ],
        )
        .map(drop)
}

fn add_stream_rows(
    transaction: &Transaction<'_>,
    connection: &str,
    declaration: &Declaration,
) -> rusqlite::Result<()> {
    // A bookmark from before the stream was there belongs to a removed connection of the same id: it has expired.
    let newest = super::newest_version(transaction)?;
    for stream in &declaration.streams {
        transaction
            .prepare_cached(
                "INSERT OR IGNORE INTO streams (connection_id, name, purged_to) VALUES (?1, ?2, ?3)",
            )?
            .execute(params![connection, stream.name.as_str(), newest])?;
    }
    Ok(())
}

/// The slug itself, or the first of `slug-2`, `slug-3` … that is free.
fn free_id(slug: &ConnectionId, taken: impl Fn(&ConnectionId) -> bool) -> Result<ConnectionId> {
    if !taken(slug) {
        return Ok(slug.clone());
    }
    (2_u32..10_000)
        .filter_map(|number| {
            let suffix = format!("-{number}");
            let room = 32 - suffix.len();
            let stem: String = slug.as_str().chars().take(room).collect();
            ConnectionId::parse(format!("{stem}{suffix}")).ok()
        })
        .find(|id| !taken(id))
        .ok_or_else(|| StoreError::ConnectionExists(slug.clone()))
}
