//! Drops replaced versions by the owner's rule.

use rusqlite::{Connection, Transaction, params};

use super::EmbeddedStore;
use super::digest::readable;
use crate::Result;
use crate::keeping::{Keep, Retention};
use crate::thinning::{Replaced, Thinning, time_field};

/// Records looked at in one transaction.
const AT_ONCE: usize = 256;

impl EmbeddedStore {
    /// Drops replaced versions and returns how many.
    pub(super) fn thin_versions(&self, retention: Retention) -> Result<u64> {
        if retention.keep == Keep::All {
            return Ok(0);
        }
        let sources = self.sources();
        let (mut after, mut dropped) = (i64::MIN, 0);
        loop {
            let rows = self
                .database
                .read(|connection| revised(connection, after))?;
            let Some((last, _)) = rows.last() else {
                return Ok(dropped);
            };
            after = *last;
            dropped += self.database.transact(|transaction| {
                let mut dropped = 0;
                for (row, stream) in &rows {
                    let time = time_field(&sources, *stream);
                    dropped += thin(transaction, *row, *stream, time.as_deref(), retention)?;
                }
                Ok(dropped)
            })?;
        }
    }
}

/// The next rows that were replaced, and their streams.
fn revised(connection: &Connection, after: i64) -> rusqlite::Result<Vec<(i64, i64)>> {
    connection
        .prepare_cached(
            "SELECT row_id, min(stream_id) FROM versions WHERE row_id > ?1 GROUP BY row_id ORDER BY row_id LIMIT ?2",
        )?
        .query_map(params![after, AT_ONCE], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

fn thin(
    transaction: &Transaction<'_>,
    row: i64,
    stream: i64,
    time: Option<&str>,
    retention: Retention,
) -> rusqlite::Result<u64> {
    let dropped = read(transaction, row, time)?.dropped(retention);
    let Some(latest) = dropped.iter().map(|version| version.next_version).max() else {
        return Ok(0);
    };
    for version in &dropped {
        transaction
            .prepare_cached("DELETE FROM versions WHERE rowid = ?1")?
            .execute([version.number])?;
    }
    // A bookmark before that may need versions that are gone.
    transaction
        .prepare_cached("UPDATE streams SET purged_to = max(purged_to, ?2) WHERE id = ?1")?
        .execute(params![stream, latest])?;
    Ok(dropped.len() as u64)
}

/// All versions of a record.
fn read<'a>(
    connection: &Connection,
    row: i64,
    time: Option<&'a str>,
) -> rusqlite::Result<Thinning<'a>> {
    let mut statement = connection.prepare_cached(
        "SELECT rowid, version, next_version, emitted_at, data FROM versions WHERE row_id = ?1
         UNION ALL
         SELECT NULL, version, NULL, emitted_at, data FROM records WHERE row_id = ?1
         ORDER BY version",
    )?;
    let mut rows = statement.query([row])?;
    let mut thinning = Thinning::of(time);
    while let Some(row) = rows.next()? {
        let replaced = match (row.get(0)?, row.get(2)?) {
            (Some(number), Some(next_version)) => Some(Replaced {
                number,
                next_version,
            }),
            _ => None,
        };
        thinning.take(replaced, &readable(row, 3)?, readable(row, 4)?);
    }
    Ok(thinning)
}
