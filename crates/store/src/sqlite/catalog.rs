//! Declaring connectors and configuring connections.

use std::sync::Arc;

use contract::declaration::{Declaration, plan_change};
use contract::id::{ConnectionId, ConnectorKey};
use rusqlite::{OptionalExtension as _, Transaction, params};

use super::EmbeddedStore;
use super::declared_records::DeclaredRecords;
use super::sources::taken_slots;
use crate::catalog::{
    Catalog, Connection, Declared, NewConnection, Removed, StreamStats, check_display_name,
    free_id, refuse_other_content,
};
use crate::index::layout::StreamLayout;
use crate::index::sources::reading_number;
use crate::redeclaring::refuse_losses;
use crate::sqlite::tx_error::TxResult;
use crate::{Result, StoreError};

impl Catalog for EmbeddedStore {
    fn declare(&self, declaration: &Declaration) -> Result<Declared> {
        let _one_at_a_time = self.declaring();
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
            let returned = was_registered(transaction, declaration)? && replaces;
            let Some(change) = &change else {
                self.register(transaction, declaration)?;
                return Ok(Declared::Added);
            };
            let mut records = DeclaredRecords::new(self, transaction, declaration);
            refuse_losses(&mut records, declaration, change)?;
            self.register(transaction, declaration)?;
            records.reorder(change)?;
            Ok(Declared::Updated {
                reindexed: records.count_reindexed(change)?,
                returned,
                damaged: records.into_damaged(),
            })
        };
        self.database
            .transact_then(apply, || self.truth.reload_sources())
    }

    fn declaration(&self, connector: &ConnectorKey) -> Option<Arc<Declaration>> {
        self.sources().declarations.get(connector).cloned()
    }

    fn declarations(&self) -> Vec<Arc<Declaration>> {
        self.sources().declarations.values().cloned().collect()
    }

    fn add_connection(&self, new: NewConnection) -> Result<Connection> {
        check_display_name(&new.name)?;
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
            insert_connection(transaction, &connection)?;
            Ok(add_stream_rows(
                transaction,
                connection.id.as_str(),
                declaration,
            )?)
        };
        self.database
            .transact_then(add, || self.truth.reload_sources())?;
        Ok(connection)
    }

    fn connections(&self) -> Vec<Connection> {
        self.sources().connections.clone()
    }

    fn connection(&self, id: &ConnectionId) -> Option<Connection> {
        self.sources().connection(id).ok().cloned()
    }

    fn rename_connection(&self, id: &ConnectionId, name: &str) -> Result<Connection> {
        check_display_name(name)?;
        self.sources().connection(id)?;
        let rename = |transaction: &Transaction<'_>| {
            let sql = "UPDATE connections SET display_name = ?2 WHERE id = ?1";
            Ok(transaction.execute(sql, (id.as_str(), name))?)
        };
        self.database
            .transact_then(rename, || self.truth.reload_sources())?;
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
    /// Stores the declaration, gives new fields their slots and new streams their rows.
    fn register(&self, transaction: &Transaction<'_>, declaration: &Declaration) -> TxResult<()> {
        let connector = declaration.connector_key();
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
                        kind.as_str(),
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
    }
}

/// Whether this version was registered before. Refuses one that had other content then.
fn was_registered(transaction: &Transaction<'_>, declaration: &Declaration) -> TxResult<bool> {
    let version = declaration.declaration_version.as_str();
    let known: Option<String> = transaction
        .query_row(
            "SELECT declaration FROM declared_versions WHERE connector_key = ?1 AND version = ?2",
            [declaration.connector_key().as_str(), version],
            |row| row.get(0),
        )
        .optional()?;
    if let Some(known) = &known {
        refuse_other_content(known, declaration)?;
    }
    Ok(known.is_some())
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
