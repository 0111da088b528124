//! Drops the beginning of the log by the owner's rule: the log records it, and the rest stays provable from there.

use contract::time::Instant;
use rusqlite::{Connection, Transaction};
use serde::{Deserialize, Serialize};

use super::{END, EmbeddedStore, Head, START, bytes, end, note_head, put, stored_head};
use crate::grants::Disclosure;
use crate::keeping::{Keep, Retention};
use crate::{Result, StoreError};

/// An entry that records that all entries up to one were dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cut {
    at: Instant,
    dropped_through: u64,
    /// Its hash, which the first remaining entry continues.
    hash: String,
}

impl Cut {
    fn after(last: Head, at: Instant) -> Self {
        Self {
            at,
            dropped_through: last.sequence,
            hash: hex(&last.hash),
        }
    }

    pub(super) fn is_after(&self, last: Head) -> bool {
        self.dropped_through == last.sequence && self.hash == hex(&last.hash)
    }
}

fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or('0');
    let digits = |byte: &u8| [digit(byte >> 4), digit(byte & 15)];
    bytes.iter().flat_map(digits).collect()
}

pub(super) enum Entry {
    Disclosure(Disclosure),
    Cut(Cut),
}

impl Entry {
    pub(super) fn read(text: &[u8]) -> serde_json::Result<Self> {
        match serde_json::from_slice(text) {
            Ok(disclosure) => Ok(Self::Disclosure(disclosure)),
            Err(error) => serde_json::from_slice(text)
                .map(Self::Cut)
                .map_err(|_| error),
        }
    }

    fn at(&self) -> Instant {
        match self {
            Self::Disclosure(disclosure) => disclosure.at,
            Self::Cut(cut) => cut.at,
        }
    }
}

enum NotDropped {
    Broken(u64),
    Database(rusqlite::Error),
}

impl From<rusqlite::Error> for NotDropped {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl EmbeddedStore {
    /// Drops the beginning of the log, as far as the rule does not keep it, and records that at its end.
    pub(in crate::sqlite) fn drop_log(&self, retention: Retention) -> Result<u64> {
        if retention.keep == Keep::All {
            return Ok(0);
        }
        // Waiting disclosures belong to the end of the log.
        self.settle_disclosures()?;
        self.database.transact(|transaction| {
            drop_entries(transaction, retention).map_err(|error| match error {
                NotDropped::Database(error) => self.database.failed()(error),
                NotDropped::Broken(sequence) => StoreError::Engine {
                    path: self.path().to_owned(),
                    detail: format!(
                        "the disclosure log is broken at entry {sequence}, so nothing was dropped from it; `pdpp grants verify` tells more"
                    ),
                },
            })
        })
    }
}

fn drop_entries(
    transaction: &Transaction<'_>,
    retention: Retention,
) -> std::result::Result<u64, NotDropped> {
    let end = end(transaction)?;
    let (last, dropped) = droppable(transaction, retention, end)?;
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
/// not dropped.
fn droppable(
    connection: &Connection,
    retention: Retention,
    end: Head,
) -> std::result::Result<(Head, u64), NotDropped> {
    let mut head = stored_head(connection, START)?.unwrap_or(Head::EMPTY);
    let mut statement = connection
        .prepare_cached("SELECT sequence, entry, hash FROM disclosures ORDER BY sequence")?;
    let mut rows = statement.query([])?;
    let mut dropped = 0;
    while let Some(row) = rows.next()? {
        let text = bytes(row, 1)?.unwrap_or_default();
        let next = head.extended(text);
        let entry = Entry::read(text).map_err(|_| NotDropped::Broken(next.sequence))?;
        let from_newest = end.sequence.saturating_sub(head.sequence);
        if retention.keeps(from_newest, Some(entry.at())) {
            break;
        }
        let is_sound = row.get::<_, i64>(0).ok() == i64::try_from(next.sequence).ok()
            && bytes(row, 2)? == Some(next.hash.as_slice());
        if !is_sound {
            return Err(NotDropped::Broken(next.sequence));
        }
        dropped += u64::from(matches!(entry, Entry::Disclosure(_)));
        head = next;
    }
    Ok((head, dropped))
}
