//! Erasing for good: a removed connection, and what stands behind tombstones. Nothing of it stays in database pages,
//! the log, the index or the blob folder.

use std::sync::atomic::Ordering;

use contract::id::{BlobId, ConnectionId};
use rusqlite::{Transaction, params};

use super::{EmbeddedStore, newest_version, set_newest_version};
use crate::Result;
use crate::catalog::Removed;
use crate::records::Purged;

impl EmbeddedStore {
    pub(super) fn erase_connection(&self, id: &ConnectionId) -> Result<Removed> {
        self.sources().connection(id)?;
        let erase = |transaction: &Transaction<'_>| {
            super::grants::forget_connection(transaction, id, self.clock.now())
                .and_then(|()| erase_rows(transaction, id))
                .map_err(self.database.failed())
        };
        let (records, version, blobs) = self
            .database
            .transact_then(erase, || self.reload_sources())?;
        self.newest.fetch_max(version, Ordering::AcqRel);
        self.forget_files(&blobs)?;
        self.wipe_traces()?;
        Ok(Removed {
            records,
            blobs: blobs.len() as u64,
        })
    }

    pub(super) fn purge_tombstones(&self) -> Result<Purged> {
        // The index learns of deletions from the tombstones, so it must have seen them all before they go.
        self.current_index()?;
        let (tombstones, blobs) = self
            .database
            .transact(|transaction| purge_rows(transaction).map_err(self.database.failed()))?;
        self.forget_files(&blobs)?;
        self.wipe_traces()?;
        Ok(Purged {
            tombstones,
            blobs: blobs.len() as u64,
        })
    }

    /// Rewrites the database, empties the log and rewrites index segments, so that erased text is nowhere on disk.
    ///
    /// Overwriting what is freed (`secure_delete`) is not enough: cells that moved between pages leave copies behind.
    fn wipe_traces(&self) -> Result<()> {
        let writer = self.database.writer();
        writer
            .execute_batch("VACUUM")
            .and_then(|()| writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())))
            .map_err(self.database.failed())?;
        drop(writer);
        self.current_index()?.expunge()
    }

    fn forget_files(&self, blobs: &[String]) -> Result<()> {
        for id in blobs
            .iter()
            .filter_map(|id| BlobId::parse(id.as_str()).ok())
        {
            self.remove_blob_file(&id)?;
        }
        Ok(())
    }
}

/// Removes a connection's rows and leaves an order for the index. Answers records, version and orphaned blobs.
fn erase_rows(
    transaction: &Transaction<'_>,
    id: &ConnectionId,
) -> rusqlite::Result<(u64, u64, Vec<String>)> {
    let version = newest_version(transaction)? + 1;
    let records = transaction.query_row(
        "SELECT coalesce(sum(live_records), 0) FROM streams WHERE connection_id = ?1",
        [id.as_str()],
        |row| row.get(0),
    )?;
    transaction.execute(
        "INSERT INTO erasures SELECT ?2, id FROM streams WHERE connection_id = ?1",
        params![id.as_str(), version],
    )?;
    for table in ["records", "versions", "blob_bindings", "reindexing"] {
        transaction.execute(
            &format!("DELETE FROM {table} WHERE stream_id IN (SELECT id FROM streams WHERE connection_id = ?1)"),
            [id.as_str()],
        )?;
    }
    transaction.execute("DELETE FROM connections WHERE id = ?1", [id.as_str()])?;
    set_newest_version(transaction, version)?;
    Ok((records, version, take_orphans(transaction)?))
}

/// Removes tombstones with their history, and closes the feed to bookmarks that would need them.
fn purge_rows(transaction: &Transaction<'_>) -> rusqlite::Result<(u64, Vec<String>)> {
    // Up to the stream's own last change: who has read that far has seen every tombstone.
    transaction.execute(
        "UPDATE streams SET purged_to = last_version
         WHERE id IN (SELECT DISTINCT stream_id FROM records WHERE data IS NULL)",
        [],
    )?;
    transaction.execute(
        "DELETE FROM blob_bindings WHERE (stream_id, key) IN (SELECT stream_id, key FROM records WHERE data IS NULL)",
        [],
    )?;
    transaction.execute(
        "DELETE FROM versions WHERE row_id IN (SELECT row_id FROM records WHERE data IS NULL)",
        [],
    )?;
    let tombstones = transaction.execute("DELETE FROM records WHERE data IS NULL", [])?;
    Ok((tombstones as u64, take_orphans(transaction)?))
}

/// Forgets blobs that nothing refers to any more, and names them.
fn take_orphans(transaction: &Transaction<'_>) -> rusqlite::Result<Vec<String>> {
    transaction
        .prepare(
            "DELETE FROM blobs WHERE id NOT IN (SELECT blob_id FROM blob_bindings) RETURNING id",
        )?
        .query_map([], |row| row.get(0))?
        .collect()
}
