//! Statistics of the tables. Without any the planner takes each stream for small, and reads all of it for a page.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use super::PostgresStore;
use crate::Result;

/// The streams whose part of the table has statistics, as far as is known.
#[derive(Default)]
pub(super) struct Measured(Mutex<HashSet<i64>>);

/// The names of the parts of the table of records that some streams are in.
pub(super) const PARTS: &str = "SELECT DISTINCT 'records_' || part AS name FROM unnest($1) AS stream, generate_series(0, 7) AS part
     WHERE satisfies_hash_partition('records'::regclass, 8, part, stream)";

impl PostgresStore {
    /// Has statistics taken of the tables of streams that were written to, where there are none: the server does so only after a
    /// minute. That takes some milliseconds, since a few rows tell enough.
    pub(super) fn measure_first(&self, streams: impl Iterator<Item = i64>) {
        let measured = self.measured.0.lock();
        let mut measured = measured.unwrap_or_else(PoisonError::into_inner);
        let new: Vec<i64> = streams.filter(|stream| measured.insert(*stream)).collect();
        drop(measured);
        if !new.is_empty() {
            // The server takes them by itself where this fails.
            let _ = self.measure(&new);
        }
    }

    fn measure(&self, streams: &[i64]) -> Result<()> {
        let sql = format!(
            "SELECT name FROM ({PARTS} UNION ALL SELECT 'versions') AS tables WHERE NOT EXISTS (
                 SELECT 1 FROM pg_stats WHERE schemaname = current_schema() AND tablename = name AND attname = 'stream_id'
             )"
        );
        self.pool.read(|tx| {
            for row in tx.query(&sql, &[&streams])? {
                let table: &str = row.get(0)?;
                tx.batch(&format!(
                    "ANALYZE (SKIP_LOCKED) {table} (owner_id, stream_id)"
                ))?;
            }
            Ok(())
        })
    }
}
