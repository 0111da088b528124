//! Removing a connection: its rows go in one transaction, under a version at which every index drops its streams. The bytes of
//! its blobs go afterwards.

use contract::id::ConnectionId;

use super::PostgresStore;
use super::pool::Tx;
use crate::catalog::Removed;
use crate::{Result, StoreError};

/// Rows deleted by one statement, so that none takes long.
const AT_ONCE: i64 = 20_000;

impl PostgresStore {
    pub(super) fn erase_connection(&self, id: &ConnectionId) -> Result<Removed> {
        let removed = self.change_catalog(|tx, owner, sources| {
            sources.connection(id)?;
            // From here on no approval can name it, and those that do are seen.
            tx.query(
                "SELECT 1 FROM connections WHERE owner_id = $1 AND id = $2 FOR UPDATE",
                &[&self.owner, &id.as_str()],
            )?;
            self.forget_connection(tx, id, self.now())?;
            let version = owner.version + 1;
            let removed = self.erase_rows(tx, id, version.cast_signed())?;
            self.advance(tx, version)?;
            Ok(Some(removed))
        })?;
        self.sweep_blobs()?;
        self.finish_erasing().map_err(|error| self.left(&error))?;
        removed.ok_or_else(|| StoreError::UnknownConnection(id.clone()))
    }

    pub(super) fn left(&self, error: &StoreError) -> StoreError {
        StoreError::TracesLeft {
            path: self.options.data_dir.clone(),
            detail: error.to_string(),
        }
    }

    /// Removes a connection's rows and leaves an order for the indexes.
    fn erase_rows(&self, tx: &Tx<'_>, id: &ConnectionId, version: i64) -> Result<Removed> {
        tx.execute(
            "UPDATE owners SET erasures_begun = erasures_begun + 1 WHERE id = $1",
            &[&self.owner],
        )?;
        let streams = tx.query(
            "SELECT id, live_records FROM streams WHERE owner_id = $1 AND connection_id = $2",
            &[&self.owner, &id.as_str()],
        )?;
        let mut records = 0;
        for row in &streams {
            let stream: i64 = row.get(0)?;
            records += row.get::<i64>(1)?.cast_unsigned();
            tx.execute(
                "INSERT INTO erasures (owner_id, version, stream_id) VALUES ($1, $2, $3)",
                &[&self.owner, &version, &stream],
            )?;
            self.delete_in_parts(tx, "records", "key", stream)?;
            self.delete_in_parts(tx, "versions", "(row_id, version)", stream)?;
            for table in ["redated", "deleted_by_owner", "blob_bindings"] {
                let sql = format!("DELETE FROM {table} WHERE owner_id = $1 AND stream_id = $2");
                tx.execute(&sql, &[&self.owner, &stream])?;
            }
        }
        tx.execute(
            "DELETE FROM connections WHERE owner_id = $1 AND id = $2",
            &[&self.owner, &id.as_str()],
        )?;
        let blobs = self.forget_orphans(tx)?;
        Ok(Removed { records, blobs })
    }

    fn delete_in_parts(&self, tx: &Tx<'_>, table: &str, key: &str, stream: i64) -> Result<()> {
        let columns = key.trim_matches(['(', ')']);
        let sql = format!(
            "DELETE FROM {table} WHERE owner_id = $1 AND stream_id = $2 AND {key} IN (
                 SELECT {columns} FROM {table} WHERE owner_id = $1 AND stream_id = $2 LIMIT $3
             )"
        );
        while tx.execute(&sql, &[&self.owner, &stream, &AT_ONCE])? > 0 {}
        Ok(())
    }
}
