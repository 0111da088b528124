//! Declaring connectors and configuring connections. Every change is made under the owner's lock and counted, so that other
//! nodes read the catalog again.

use std::sync::Arc;

use contract::declaration::{Declaration, plan_change};
use contract::id::{ConnectionId, ConnectorKey};

use super::declared_records::DeclaredRecords;
use super::pool::Tx;
use super::sources::{next_number, taken_slots};
use super::{Owner, PostgresStore};
use crate::catalog::{
    Catalog, Connection, Declared, NewConnection, Removed, StreamStats, check_display_name,
    free_id, refuse_other_content,
};
use crate::index::layout::StreamLayout;
use crate::index::sources::{Sources, reading_number};
use crate::redeclaring::refuse_losses;
use crate::{Result, StoreError};

impl Catalog for PostgresStore {
    fn declare(&self, declaration: &Declaration) -> Result<Declared> {
        let declared = self.change_catalog(|tx, owner, sources| {
            let known = sources.declarations.get(declaration.connector_key());
            let change = match known {
                None => None,
                Some(old) => Some(plan_change(old, declaration)?),
            };
            if change.as_ref().is_some_and(|change| change.unchanged) {
                return Ok(None);
            }
            let replaces =
                known.is_some_and(|old| old.declaration_version != declaration.declaration_version);
            let returned = self.was_registered(tx, declaration)? && replaces;
            let Some(change) = &change else {
                self.register(tx, owner, declaration)?;
                return Ok(Some(Declared::Added));
            };
            let mut records = DeclaredRecords::new(self, tx, declaration);
            refuse_losses(&mut records, declaration, change)?;
            self.register(tx, owner, declaration)?;
            records.reorder(change)?;
            Ok(Some(Declared::Updated {
                reindexed: records.count_reindexed(change)?,
                returned,
                damaged: records.into_damaged(),
            }))
        })?;
        Ok(declared.unwrap_or(Declared::Unchanged))
    }

    fn declaration(&self, connector: &ConnectorKey) -> Option<Arc<Declaration>> {
        self.sources().declarations.get(connector).cloned()
    }

    fn declarations(&self) -> Vec<Arc<Declaration>> {
        self.sources().declarations.values().cloned().collect()
    }

    fn add_connection(&self, new: NewConnection) -> Result<Connection> {
        check_display_name(&new.name)?;
        let added = self.change_catalog(|tx, owner, sources| {
            let Some(declaration) = sources.declarations.get(&new.connector) else {
                return Err(StoreError::UnknownConnector(new.connector.clone()));
            };
            let taken = |id: &ConnectionId| sources.connection(id).is_ok();
            let id = match &new.id {
                Some(id) if taken(id) => return Err(StoreError::ConnectionExists(id.clone())),
                Some(id) => id.clone(),
                None => free_id(&ConnectionId::slug(&new.connector, &new.name), taken)?,
            };
            let connection = Connection {
                id,
                connector: new.connector.clone(),
                display_name: new.name.clone(),
                created_at: self.now(),
            };
            tx.execute(
                "INSERT INTO connections (owner_id, id, connector_key, display_name, created_at)
                 VALUES ($1, $2, $3, $4, $5)",
                &[
                    &self.owner,
                    &connection.id.as_str(),
                    &connection.connector.as_str(),
                    &connection.display_name,
                    &connection.created_at.0,
                ],
            )?;
            self.add_stream_rows(tx, owner, connection.id.as_str(), declaration)?;
            Ok(Some(connection))
        })?;
        added.ok_or(StoreError::Stopped)
    }

    fn connections(&self) -> Vec<Connection> {
        self.sources().connections.clone()
    }

    fn connection(&self, id: &ConnectionId) -> Option<Connection> {
        self.sources().connection(id).ok().cloned()
    }

    fn rename_connection(&self, id: &ConnectionId, name: &str) -> Result<Connection> {
        check_display_name(name)?;
        let renamed = self.change_catalog(|tx, _, sources| {
            let mut connection = sources.connection(id)?.clone();
            name.clone_into(&mut connection.display_name);
            tx.execute(
                "UPDATE connections SET display_name = $3 WHERE owner_id = $1 AND id = $2",
                &[&self.owner, &id.as_str(), &name],
            )?;
            Ok(Some(connection))
        })?;
        renamed.ok_or_else(|| StoreError::UnknownConnection(id.clone()))
    }

    fn remove_connection(&self, id: &ConnectionId) -> Result<Removed> {
        self.erase_connection(id)
    }

    fn stream_stats(&self) -> Result<Vec<StreamStats>> {
        let sources = self.sources.current(&self.pool)?;
        let rows = self.pool.read(|tx| {
            let sql = "SELECT id, live_records FROM streams WHERE owner_id = $1";
            tx.query(sql, &[&self.owner])
        })?;
        let mut stats = Vec::new();
        for entry in sources.streams() {
            for row in &rows {
                if row.get::<i64>(0)? == entry.id {
                    stats.push(StreamStats {
                        stream: entry.stream.clone(),
                        records: row.get::<i64>(1)?.cast_unsigned(),
                    });
                }
            }
        }
        Ok(stats)
    }
}

impl PostgresStore {
    /// The catalog as it is now, or as it was known last where the database does not answer.
    pub(super) fn sources(&self) -> Arc<Sources> {
        let current = self.sources.current(&self.pool);
        current.unwrap_or_else(|_| self.sources.last())
    }

    /// Changes the catalog, unless there is nothing to change. The change is handed the catalog as it is, which stays so until
    /// it is done.
    pub(super) fn change_catalog<T>(
        &self,
        change: impl FnOnce(&Tx<'_>, Owner, &Sources) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let changed = self.pool.transact_if(|tx| {
            let owner = self.lock_owner(tx)?;
            let sources = self.sources.at(tx, self.place(), owner.catalog)?;
            let changed = change(tx, owner, &sources)?;
            if changed.is_some() {
                let sql = "UPDATE owners SET catalog = $2 WHERE id = $1";
                tx.execute(
                    sql,
                    &[&self.owner, &next_number(owner.catalog)?.cast_signed()],
                )?;
            }
            Ok(changed)
        })?;
        // What this node changed it knows at once; other nodes look before they read.
        self.sources.current(&self.pool)?;
        Ok(changed)
    }

    /// Whether this version was registered before. Refuses one that had other content then.
    fn was_registered(&self, tx: &Tx<'_>, declaration: &Declaration) -> Result<bool> {
        let known = tx.query_opt(
            "SELECT declaration FROM declared_versions WHERE owner_id = $1 AND connector_key = $2 AND version = $3",
            &[
                &self.owner,
                &declaration.connector_key().as_str(),
                &declaration.declaration_version.as_str(),
            ],
        )?;
        if let Some(row) = &known {
            refuse_other_content(row.get(0)?, declaration)?;
        }
        Ok(known.is_some())
    }

    /// Stores the declaration, gives new fields their slots and new streams their rows.
    fn register(&self, tx: &Tx<'_>, owner: Owner, declaration: &Declaration) -> Result<()> {
        let connector = declaration.connector_key().as_str();
        tx.execute(
            "INSERT INTO declarations (owner_id, connector_key, declaration, declared_at, reading)
             VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (owner_id, connector_key) DO UPDATE SET declaration = $3, declared_at = $4, reading = $5",
            &[
                &self.owner,
                &connector,
                &declaration.as_str(),
                &self.now().0,
                &reading_number(declaration.reading()),
            ],
        )?;
        tx.execute(
            "INSERT INTO declared_versions (owner_id, connector_key, version, declaration)
             VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
            &[
                &self.owner,
                &connector,
                &declaration.declaration_version.as_str(),
                &declaration.as_str(),
            ],
        )?;
        self.add_slots(tx, declaration)?;
        let connections = tx.query(
            "SELECT id FROM connections WHERE owner_id = $1 AND connector_key = $2 ORDER BY ordinal",
            &[&self.owner, &connector],
        )?;
        for row in &connections {
            self.add_stream_rows(tx, owner, row.get(0)?, declaration)?;
        }
        Ok(())
    }

    fn add_slots(&self, tx: &Tx<'_>, declaration: &Declaration) -> Result<()> {
        let connector = declaration.connector_key();
        let mut slots = taken_slots(tx, self.owner, Some(connector.as_str()))?;
        let (mut streams, mut fields) = (Vec::new(), Vec::new());
        let (mut kinds, mut numbers) = (Vec::new(), Vec::new());
        for stream in &declaration.streams {
            let taken = slots
                .entry((connector.clone(), stream.name.clone()))
                .or_default();
            StreamLayout::derive(stream, taken);
            for ((field, kind), slot) in taken {
                streams.push(stream.name.as_str());
                fields.push(field.to_string());
                kinds.push(kind.as_str());
                numbers.push(i64::try_from(*slot).unwrap_or(i64::MAX));
            }
        }
        tx.execute(
            "INSERT INTO slots (owner_id, connector_key, stream, field, kind, slot)
             SELECT $1, $2, * FROM unnest($3::text[], $4::text[], $5::text[], $6::bigint[]) ON CONFLICT DO NOTHING",
            &[&self.owner, &connector.as_str(), &streams, &fields, &kinds, &numbers],
        )
        .map(drop)
    }

    fn add_stream_rows(
        &self,
        tx: &Tx<'_>,
        owner: Owner,
        connection: &str,
        declaration: &Declaration,
    ) -> Result<()> {
        let names = declaration
            .streams
            .iter()
            .map(|stream| stream.name.as_str());
        let names: Vec<&str> = names.collect();
        // A bookmark from before the stream was there belongs to a removed connection of the same id: it has expired.
        tx.execute(
            "INSERT INTO streams (owner_id, connection_id, name, purged_to)
             SELECT $1, $2, name, $4 FROM unnest($3::text[]) WITH ORDINALITY AS declared (name, place)
             ORDER BY place ON CONFLICT (owner_id, connection_id, name) DO NOTHING",
            &[&self.owner, &connection, &names, &owner.version.cast_signed()],
        )
        .map(drop)
    }
}
