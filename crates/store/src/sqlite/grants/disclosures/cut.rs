//! Drops the beginning of the log by the owner's rule: the log records it, and the rest stays provable from there.

use rusqlite::{Connection, Transaction};

use super::{END, EmbeddedStore, Head, START, bytes, end, note_head, put, stored_head};
use crate::disclosure_log::{Cut, Dropping, Logged};
use crate::keeping::{Keep, Retention};
use crate::sqlite::tx_error::TxResult;
use crate::{Result, StoreError};

impl EmbeddedStore {
    /// Drops the beginning of the log, as far as the rule does not keep it, and records that at its end.
    pub(in crate::sqlite) fn drop_log(&self, retention: Retention) -> Result<u64> {
        if retention.keep == Keep::All {
            return Ok(0);
        }
        // Waiting disclosures belong to the end of the log.
        self.settle_disclosures()?;
        let broken = |sequence| {
            StoreError::engine(
                self.path(),
                format!(
                    "the disclosure log is broken at entry {sequence}, so nothing was dropped from it; `pdpp grants verify` tells more"
                ),
            )
        };
        self.database
            .transact(|transaction| drop_entries(transaction, retention, &broken))
    }
}

fn drop_entries(
    transaction: &Transaction<'_>,
    retention: Retention,
    broken: &dyn Fn(u64) -> StoreError,
) -> TxResult<u64> {
    let end = end(transaction)?;
    let (last, dropped) = droppable(transaction, retention, end)?.map_err(broken)?;
    if dropped == 0 {
        return Ok(0);
    }
    for table in ["disclosures", "disclosures_by_grant"] {
        let sql = format!("DELETE FROM {table} WHERE sequence <= ?1");
        transaction.execute(&sql, [last.sequence])?;
    }
    note_head(transaction, START, last)?;
    let cut = serde_json::to_string(&Cut::after(last, retention.now))
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    let end = put(transaction, end, &cut)?;
    note_head(transaction, END, end)?;
    Ok(dropped)
}

/// The last entry that the rule does not keep, and how many disclosures there are up to it. An entry that is not intact is
/// not dropped, and named.
fn droppable(
    connection: &Connection,
    retention: Retention,
    end: Head,
) -> rusqlite::Result<std::result::Result<(Head, u64), u64>> {
    let start = stored_head(connection, START)?.unwrap_or(Head::EMPTY);
    let mut dropping = Dropping::from(start, end, retention);
    let mut statement = connection
        .prepare_cached("SELECT sequence, entry, hash FROM disclosures ORDER BY sequence")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let found = Logged {
            sequence: row.get(0)?,
            entry: bytes(row, 1)?.unwrap_or_default(),
            hash: bytes(row, 2)?,
        };
        match dropping.take(found) {
            Ok(true) => {}
            Ok(false) => break,
            Err(broken) => return Ok(Err(broken)),
        }
    }
    Ok(Ok((dropping.last, dropping.dropped)))
}
