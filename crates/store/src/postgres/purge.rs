//! Erasing what stands behind tombstones.

use std::thread;
use std::time::Duration;

use super::PostgresStore;
use super::pool::{Param, Tx};
use crate::records::Purged;
use crate::{Result, StoreError};

/// How often, and after which pauses, it is seen whether running nodes have come far enough: they say so every second.
const ATTEMPTS: u32 = 15;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(250);

impl PostgresStore {
    /// Removes tombstones that every index has seen, with their history: indexes learn of deletions from the tombstones.
    pub(super) fn purge_tombstones(&self) -> Result<Purged> {
        let mine = self.index.committed_whole()?.cast_signed();
        self.await_running_nodes(mine)?;
        let (purged, behind) = self.transact_locked(|tx, _| {
            let row = tx.query_one(
                "SELECT least($2, coalesce(min(version), $2)) FROM node_indexes WHERE owner_id = $1 AND node <> $3",
                &[&self.owner, &mine, &self.options.node],
            )?;
            let upto: i64 = row.get(0)?;
            let purged = self.purge_rows(tx, upto)?;
            let behind = tx.query(
                "SELECT DISTINCT node FROM node_indexes JOIN records ON records.owner_id = node_indexes.owner_id
                 WHERE node_indexes.owner_id = $1 AND node <> $3 AND data IS NULL
                     AND records.version > node_indexes.version AND records.version <= $2 ORDER BY node",
                &[&self.owner, &mine, &self.options.node],
            )?;
            let behind: Vec<String> = behind.iter().map(|row| row.get(0)).collect::<Result<_>>()?;
            Ok((purged, behind))
        })?;
        self.sweep_blobs()?;
        self.finish_erasing().map_err(|error| self.left(&error))?;
        if behind.is_empty() {
            return Ok(purged);
        }
        Err(StoreError::NodesBehind(behind.join(", ")))
    }

    /// A node that runs is not far behind, and only has to say how far it is.
    fn await_running_nodes(&self, mine: i64) -> Result<()> {
        for _ in 0..ATTEMPTS {
            if !self.is_any_late(mine)? {
                return Ok(());
            }
            thread::sleep(BETWEEN_ATTEMPTS);
        }
        Ok(())
    }

    pub(super) fn purge_rows(&self, tx: &Tx<'_>, upto: i64) -> Result<Purged> {
        let gone = "FROM records WHERE owner_id = $1 AND data IS NULL AND version <= $2";
        let params: [&dyn Param; 2] = [&self.owner, &upto];
        // An index that is not as far as this can learn of these deletions no more.
        tx.execute(
            &format!(
                "UPDATE owners SET erasures_begun = erasures_begun + 1,
                     purged_to = CASE WHEN EXISTS (SELECT 1 {gone}) THEN greatest(purged_to, $2) ELSE purged_to END
                 WHERE id = $1"
            ),
            &params,
        )?;
        let streams = tx.query(&format!("SELECT DISTINCT stream_id {gone}"), &params)?;
        let streams: Vec<i64> = streams
            .iter()
            .map(|row| row.get(0))
            .collect::<Result<_>>()?;
        // Up to the stream's own last change: a reader that has come that far has seen every tombstone.
        tx.execute(
            "UPDATE streams SET purged_to = last_version WHERE owner_id = $1 AND id = ANY($2)",
            &[&self.owner, &streams],
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
        self.note_files(tx, &streams)?;
        let blobs = self.forget_orphans(tx)?;
        Ok(Purged { tombstones, blobs })
    }
}
