//! Removing a connection: its rows go in one transaction, under a version at which every index drops its streams. The bytes of
//! its blobs go afterwards.

use contract::id::ConnectionId;

use super::PostgresStore;
use super::pool::Tx;
use super::statistics::PARTS;
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
            "SELECT id, live_records, last_version > 0 FROM streams WHERE owner_id = $1 AND connection_id = $2",
            &[&self.owner, &id.as_str()],
        )?;
        let (mut records, mut written) = (0, Vec::new());
        for row in &streams {
            let stream: i64 = row.get(0)?;
            if row.get(2)? {
                written.push(stream);
            }
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
        self.note_files(tx, &written)?;
        let blobs = self.forget_orphans(tx)?;
        Ok(Removed { records, blobs })
    }

    /// Notes the files of the tables that records of some streams were deleted from. The rows just deleted keep these from being
    /// written anew until this is committed.
    pub(super) fn note_files(&self, tx: &Tx<'_>, streams: &[i64]) -> Result<()> {
        if streams.is_empty() {
            return Ok(());
        }
        let sql = format!(
            "INSERT INTO erased_from (owner_id, name, file, erased_at)
             SELECT $2, name, pg_relation_filenode(name::regclass)::bigint, $3
             FROM ({PARTS} UNION ALL VALUES ('versions'), ('blob_bindings')) AS held
             ON CONFLICT (owner_id, name) DO UPDATE SET file = excluded.file, erased_at = excluded.erased_at"
        );
        tx.execute(&sql, &[&streams, &self.owner, &self.now().0])
            .map(drop)
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
