//! Drops replaced versions by the owner's rule.

use super::PostgresStore;
use super::pool::Tx;
use crate::Result;
use crate::keeping::{Keep, Retention};
use crate::thinning::{Replaced, Thinning, time_field};

/// Records looked at in one transaction.
const AT_ONCE: i64 = 256;

impl PostgresStore {
    /// Drops replaced versions and returns how many.
    pub(super) fn thin_versions(&self, retention: Retention) -> Result<u64> {
        if retention.keep == Keep::All {
            return Ok(0);
        }
        let sources = self.sources.current(&self.pool)?;
        let (mut after, mut dropped) = (i64::MIN, 0);
        loop {
            let revised = self.pool.query(
                "SELECT row_id, min(stream_id) FROM versions WHERE owner_id = $1 AND row_id > $2
                     GROUP BY row_id ORDER BY row_id LIMIT $3",
                &[&self.owner, &after, &AT_ONCE],
            )?;
            let Some(last) = revised.last() else {
                return Ok(dropped);
            };
            after = last.get(0)?;
            dropped += self.pool.transact(|tx| {
                let mut dropped = 0;
                for row in &revised {
                    let (record, stream) = (row.get(0)?, row.get(1)?);
                    let time = time_field(&sources, stream);
                    let thinning = read_versions(tx, stream, record, time.as_deref())?;
                    dropped += drop_versions(tx, stream, record, &thinning.dropped(retention))?;
                }
                Ok(dropped)
            })?;
        }
    }
}

/// All versions of a record. What finds one of them is its version.
fn read_versions<'a>(
    tx: &Tx<'_>,
    stream: i64,
    record: i64,
    time: Option<&'a str>,
) -> Result<Thinning<'a>> {
    let rows = tx.query(
        "SELECT version, next_version, emitted_at, coalesce(data, '') FROM versions
         WHERE stream_id = $1 AND row_id = $2
         UNION ALL
         SELECT version, NULL, emitted_at, coalesce(data, '') FROM records WHERE stream_id = $1 AND row_id = $2
         ORDER BY 1",
        &[&stream, &record],
    )?;
    let mut thinning = Thinning::of(time);
    for row in &rows {
        let number = row.get(0)?;
        let replaced = row.get::<Option<i64>>(1)?.map(|next_version| Replaced {
            number,
            next_version: next_version.cast_unsigned(),
        });
        thinning.take(replaced, row.get(2)?, row.get(3)?);
    }
    Ok(thinning)
}

fn drop_versions(tx: &Tx<'_>, stream: i64, record: i64, dropped: &[Replaced]) -> Result<u64> {
    let Some(latest) = dropped.iter().map(|version| version.next_version).max() else {
        return Ok(0);
    };
    let versions: Vec<i64> = dropped.iter().map(|version| version.number).collect();
    tx.execute(
        "DELETE FROM versions WHERE stream_id = $1 AND row_id = $2 AND version = ANY($3)",
        &[&stream, &record, &versions],
    )?;
    // A bookmark before that may need versions that are gone.
    tx.execute(
        "UPDATE streams SET purged_to = greatest(purged_to, $2) WHERE id = $1",
        &[&stream, &latest.cast_signed()],
    )?;
    Ok(dropped.len() as u64)
}
