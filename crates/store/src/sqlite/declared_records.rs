//! The records of a declaration that is replaced: whether they hold what would be lost, their new order, and which
//! streams are to be indexed again.
//!
//! A record that was damaged on the disk can show nothing. It is left out and named, so that it keeps nobody from
//! declaring.

use std::collections::BTreeSet;

use contract::declaration::{Declaration, DeclarationChange};
use contract::id::StreamName;
use contract::json::RecordBody;
use rusqlite::{Connection, Transaction, params};

use super::EmbeddedStore;
use super::database::{changed, record_name};
use super::digest::{CHECKED, Changed, checked_live, readable};
use super::walk::sort_value;
use crate::Result;
use crate::index::layout::{StreamLayout, TakenSlots};
use crate::index::parse_stored;
use crate::records::SortValue;
use crate::redeclaring::HeldRecords;

/// Rows rewritten at a time when the order of a stream changes.
const REORDER_CHUNK: usize = 5_000;

/// The records of a connector, within the transaction that replaces its declaration.
pub(super) struct DeclaredRecords<'a> {
    store: &'a EmbeddedStore,
    transaction: &'a Transaction<'a>,
    declaration: &'a Declaration,
    damaged: BTreeSet<String>,
}

impl<'a> DeclaredRecords<'a> {
    pub(super) fn new(
        store: &'a EmbeddedStore,
        transaction: &'a Transaction<'a>,
        declaration: &'a Declaration,
    ) -> Self {
        Self {
            store,
            transaction,
            declaration,
            damaged: BTreeSet::new(),
        }
    }

    /// The names of the records that could not be read.
    pub(super) fn into_damaged(self) -> Vec<String> {
        self.damaged.into_iter().collect()
    }

    /// Recomputes the order of streams whose cursor field changed.
    pub(super) fn reorder(&mut self, change: &DeclarationChange) -> Result<()> {
        let failed = self.store.database.failed();
        for name in &change.reordered {
            let Some(stream) = self.declaration.stream(name.as_str()) else {
                continue;
            };
            let layout = StreamLayout::derive(stream, &mut TakenSlots::new());
            for id in self.stream_ids(name)? {
                let mut last = 0;
                loop {
                    let chunk = live_rows(self.transaction, id, (last, i64::MAX), REORDER_CHUNK)
                        .map_err(&failed)?;
                    let Some(end) = chunk.last() else { break };
                    last = end.number;
                    for row in chunk {
                        if let Some(damage) = &row.damage {
                            self.note(damage)?;
                        }
                        let body = parse_stored(row.data, self.store.path())?;
                        self.transaction
                            .prepare_cached("UPDATE records SET sort = ?2 WHERE row_id = ?1")
                            .and_then(|mut statement| {
                                statement.execute(params![
                                    row.number,
                                    sort_value(SortValue::of(&layout, &body))
                                ])
                            })
                            .map_err(&failed)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// How many streams with records are to be indexed again, because their indexed fields changed.
    pub(super) fn count_reindexed(&self, change: &DeclarationChange) -> Result<usize> {
        let mut count = 0;
        for stream in &change.reindex {
            for id in self.stream_ids(stream)? {
                count += usize::from(self.has_records(id)?);
            }
        }
        Ok(count)
    }

    fn has_records(&self, stream: i64) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM records WHERE stream_id = ?1 AND data IS NOT NULL)";
        let any = self.transaction.query_row(sql, [stream], |row| row.get(0));
        any.map_err(self.store.database.failed())
    }

    fn note(&mut self, damage: &Changed) -> Result<()> {
        let name = record_name(self.transaction, damage).map_err(self.store.database.failed())?;
        self.damaged.insert(name);
        Ok(())
    }

    fn stream_ids(&self, stream: &StreamName) -> Result<Vec<i64>> {
        let ids = || -> rusqlite::Result<Vec<i64>> {
            self.transaction
                .prepare_cached(
                    "SELECT streams.id FROM streams JOIN connections ON connections.id = connection_id
                     WHERE connector_key = ?1 AND streams.name = ?2",
                )?
                .query_map(
                    [self.declaration.connector_key().as_str(), stream.as_str()],
                    |row| row.get(0),
                )?
                .collect()
        };
        ids().map_err(self.store.database.failed())
    }
}

impl HeldRecords for DeclaredRecords<'_> {
    fn any(&mut self, stream: &StreamName) -> Result<bool> {
        for id in self.stream_ids(stream)? {
            if self.has_records(id)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn any_with(
        &mut self,
        stream: &StreamName,
        test: &dyn Fn(&RecordBody) -> bool,
    ) -> Result<bool> {
        let failed = self.store.database.failed();
        for id in self.stream_ids(stream)? {
            let mut statement = self
                .transaction
                .prepare_cached(&format!(
                    "SELECT {CHECKED} FROM records WHERE stream_id = ?1 AND data IS NOT NULL"
                ))
                .map_err(&failed)?;
            let mut rows = statement.query([id]).map_err(&failed)?;
            while let Some(row) = rows.next().map_err(&failed)? {
                match checked_live(row, 0) {
                    Ok(data) => {
                        if test(&parse_stored(data, self.store.path())?) {
                            return Ok(true);
                        }
                    }
                    Err(error) => match changed(&error) {
                        Some(damage) => self.note(damage)?,
                        None => return Err(failed(error)),
                    },
                }
            }
        }
        Ok(false)
    }
}

pub(super) struct LiveRow {
    pub(super) number: i64,
    pub(super) emitted_at: String,
    /// What it is ordered and found by: nothing where it is damaged, so that all others can be.
    pub(super) data: String,
    damage: Option<Changed>,
}

/// Live rows of a stream with numbers after the first and up to the second of `range`.
pub(super) fn live_rows(
    connection: &Connection,
    stream: i64,
    (after, upto): (i64, i64),
    limit: usize,
) -> rusqlite::Result<Vec<LiveRow>> {
    connection
        .prepare_cached(&format!(
            "SELECT row_id, {CHECKED} FROM records
             WHERE row_id > ?2 AND row_id <= ?3 AND stream_id = ?1 AND data IS NOT NULL ORDER BY row_id LIMIT ?4"
        ))?
        .query_map(params![stream, after, upto, limit], |row| {
            let (data, damage) = match checked_live(row, 1) {
                Ok(data) => (data, None),
                Err(error) => match changed(&error) {
                    Some(damage) => ("{}".to_owned(), Some(damage.clone())),
                    None => return Err(error),
                },
            };
            Ok(LiveRow {
                number: row.get(0)?,
                emitted_at: readable(row, 4)?,
                data,
                damage,
            })
        })?
        .collect()
}
