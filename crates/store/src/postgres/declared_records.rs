//! The records of a declaration that is replaced: whether they hold what would be lost, their new order, and which streams are
//! to be indexed again. A record that is damaged is left out and named.

use std::collections::BTreeSet;
use std::mem;
use std::path::Path;

use contract::declaration::{Declaration, DeclarationChange};
use contract::id::StreamName;
use contract::json::RecordBody;
use contract::key::RecordKey;

use super::PostgresStore;
use super::pool::Tx;
use super::sort::sort_bits;
use crate::Result;
use crate::index::layout::{StreamLayout, TakenSlots};
use crate::index::parse_stored;
use crate::record_digest::Content;
use crate::records::SortValue;
use crate::redeclaring::HeldRecords;

/// Rows reordered by one statement.
const AT_ONCE: usize = 5_000;

/// The records of a connector, within the transaction that replaces its declaration.
pub(super) struct DeclaredRecords<'a> {
    store: &'a PostgresStore,
    tx: &'a Tx<'a>,
    declaration: &'a Declaration,
    damaged: BTreeSet<String>,
}

/// A stream of one of the connector's connections.
struct Held {
    id: i64,
    connection: String,
    name: String,
}

impl<'a> DeclaredRecords<'a> {
    pub(super) fn new(
        store: &'a PostgresStore,
        tx: &'a Tx<'a>,
        declaration: &'a Declaration,
    ) -> Self {
        Self {
            store,
            tx,
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
        for name in &change.reordered {
            let Some(stream) = self.declaration.stream(name.as_str()) else {
                continue;
            };
            let layout = StreamLayout::derive(stream, &mut TakenSlots::new());
            for held in self.streams(name)? {
                let (store, tx) = (self.store, self.tx);
                let (mut rows, mut sorts) = (Vec::new(), Vec::new());
                let write = |rows: &mut Vec<i64>, sorts: &mut Vec<Option<i64>>| {
                    tx.execute(
                        "UPDATE records SET sort = ordered.sort
                         FROM unnest($3::bigint[], $4::bigint[]) AS ordered (row_id, sort)
                         WHERE owner_id = $1 AND stream_id = $2 AND records.row_id = ordered.row_id",
                        &[&store.owner, &held.id, &mem::take(rows), &mem::take(sorts)],
                    )
                };
                self.each(&held, &mut |row, body| {
                    rows.push(row);
                    sorts.push(sort_bits(SortValue::of(&layout, body)));
                    if rows.len() == AT_ONCE {
                        write(&mut rows, &mut sorts)?;
                    }
                    Ok(true)
                })?;
                write(&mut rows, &mut sorts)?;
            }
        }
        Ok(())
    }

    /// How many streams with records are to be indexed again, because their indexed fields changed.
    pub(super) fn count_reindexed(&self, change: &DeclarationChange) -> Result<usize> {
        let mut count = 0;
        for stream in &change.reindex {
            for held in self.streams(stream)? {
                count += usize::from(self.has_records(held.id)?);
            }
        }
        Ok(count)
    }

    fn has_records(&self, stream: i64) -> Result<bool> {
        let sql = "SELECT live_records > 0 FROM streams WHERE id = $1";
        self.tx.query_one(sql, &[&stream])?.get(0)
    }

    /// Hands over the live records of a stream, until the callback returns false. Returns whether it never did. A damaged one
    /// comes without members.
    fn each(
        &mut self,
        held: &Held,
        each: &mut dyn FnMut(i64, &RecordBody) -> Result<bool>,
    ) -> Result<bool> {
        let sql = "SELECT row_id, key, version, emitted_at, data, digest FROM records
             WHERE owner_id = $1 AND stream_id = $2 AND data IS NOT NULL ORDER BY row_id";
        let (store, tx) = (self.store, self.tx);
        tx.each(sql, &[&store.owner, &held.id], &mut |row| {
            let data: &str = row.get(4)?;
            let content = Content {
                stream: held.id,
                key: row.get(1)?,
                version: row.get::<i64>(2)?.cast_unsigned(),
                emitted_at: row.get(3)?,
                data: Some(data),
            };
            let is_whole = content.is_written_with(Some(row.get(5)?));
            if !is_whole {
                let key = RecordKey::from_ordering_form(content.key);
                let name = format!("'{key}' of {}/{}", held.connection, held.name);
                self.damaged.insert(name);
            }
            let data = if is_whole { data } else { "{}" };
            let body = parse_stored(data.to_owned(), Path::new(store.place()))?;
            each(row.get(0)?, &body)
        })
    }

    fn streams(&self, stream: &StreamName) -> Result<Vec<Held>> {
        let rows = self.tx.query(
            "SELECT s.id, s.connection_id, s.name FROM streams s
             JOIN connections c ON c.owner_id = s.owner_id AND c.id = s.connection_id
             WHERE s.owner_id = $1 AND c.connector_key = $2 AND s.name = $3 ORDER BY s.id",
            &[
                &self.store.owner,
                &self.declaration.connector_key().as_str(),
                &stream.as_str(),
            ],
        )?;
        rows.iter()
            .map(|row| {
                Ok(Held {
                    id: row.get(0)?,
                    connection: row.get(1)?,
                    name: row.get(2)?,
                })
            })
            .collect()
    }
}

impl HeldRecords for DeclaredRecords<'_> {
    fn any(&mut self, stream: &StreamName) -> Result<bool> {
        for held in self.streams(stream)? {
            if self.has_records(held.id)? {
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
        for held in self.streams(stream)? {
            if !self.each(&held, &mut |_, body| Ok(!test(body)))? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
