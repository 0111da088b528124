//! Erasing what stands behind tombstones.

use super::PostgresStore;
use crate::Result;
use crate::records::Purged;

impl PostgresStore {
    /// Removes tombstones that every index has seen, with their history: indexes learn of deletions from the tombstones.
    pub(super) fn purge_tombstones(&self) -> Result<Purged> {
        let mine = self.index.committed_whole()?.cast_signed();
        let purged = self.transact_locked(|tx, _| {
            let row = tx.query_one(
                "SELECT least($2, coalesce(min(version), $2)) FROM node_indexes WHERE owner_id = $1 AND node <> $3",
                &[&self.owner, &mine, &self.options.node],
            )?;
            let upto: i64 = row.get(0)?;
            let gone = "FROM records WHERE owner_id = $1 AND data IS NULL AND version <= $2";
            let params: [&dyn super::pool::Param; 2] = [&self.owner, &upto];
            // Up to the stream's own last change: a reader that has come that far has seen every tombstone.
            tx.execute(
                &format!(
                    "UPDATE streams SET purged_to = last_version
                     WHERE owner_id = $1 AND id IN (SELECT DISTINCT stream_id {gone})"
                ),
                &params,
            )?;
            tx.execute(
                &format!(
                    "DELETE FROM blob_bindings WHERE owner_id = $1 AND (stream_id, key) IN (SELECT stream_id, key {gone})"
                ),
                &params,
            )?;
            for table in ["versions", "redated"] {
                tx.execute(
                    &format!("DELETE FROM {table} WHERE owner_id = $1 AND (stream_id, row_id) IN (SELECT stream_id, row_id {gone})"),
                    &params,
                )?;
            }
            let tombstones = tx.execute(&format!("DELETE {gone}"), &params)?;
            let blobs = self.forget_orphans(tx)?;
            Ok(Purged { tombstones, blobs })
        })?;
        self.sweep_blobs()?;
        self.index.expunge()?;
        Ok(purged)
    }
}
