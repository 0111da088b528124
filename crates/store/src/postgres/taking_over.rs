//! Taking over everything that a data directory holds, in one transaction: it is there whole, or not at all.
//!
//! Streams get numbers of this database, and digests cover the number, so records get digests anew. One that is damaged gets one
//! that does not hold, and stays damaged.

mod sink;

use std::collections::HashMap;
use std::io::ErrorKind;

use contract::id::BlobId;
use rusqlite::types::{Value, ValueRef};

use self::sink::Sink;
use super::PostgresStore;
use super::pool::Tx;
use super::sealing::hidden;
use super::sort::sort_bits;
use super::sources::next_number;

use crate::blobs::Blobs as _;
use crate::grants::ChainCheck;
use crate::record_digest::Content;
use crate::records::SortValue;
use crate::sqlite::backup::blobs_in;
use crate::sqlite::database::failed;
use crate::sqlite::digest::checked;
use crate::sqlite::grants::ends;
use crate::sqlite::inspect::unreadable;
use crate::sqlite::newest_version;
use crate::tables::{self, CATALOG, Kind, OTHERS, RECORDS, STREAMS, Table, VERSIONS};
use crate::{EmbeddedStore, Grants as _, Inspect as _, Result, StoreError, stop};

/// What was taken over, as it was counted in the database afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenOver {
    /// Rows by table, those of deleted records included.
    pub rows: Vec<(&'static str, u64)>,
    pub blobs: u64,
    pub chain: ChainCheck,
    /// What is damaged in the directory, and is so here.
    pub damaged: Vec<String>,
    /// Blobs whose bytes are missing or damaged in the directory.
    pub missing_blobs: Vec<BlobId>,
}

impl PostgresStore {
    /// Takes over everything of a data directory, into an owner that has nothing yet. The directory is left as it is. `progress`
    /// is told how many rows were sent.
    pub fn take_over(
        &self,
        from: &EmbeddedStore,
        progress: &mut dyn FnMut(u64),
    ) -> Result<TakenOver> {
        refuse_unfit(from)?;
        self.pool.read(|tx| self.refuse_filled(tx))?;
        let key = from.sealing_key()?;
        let chain = from.check_disclosures()?;
        let damaged = from.database.read(unreadable)?;
        let (blobs, missing_blobs) = self.take_blobs(from)?;
        let rows = from.database.read_with(|source| {
            self.pool.transact(|tx| {
                let owner = self.lock_owner(tx)?;
                self.refuse_filled(tx)?;
                let mut taking = Taking {
                    store: self,
                    tx,
                    source,
                    from,
                    streams: HashMap::new(),
                    rows: Vec::new(),
                    sent: 0,
                    progress: &mut *progress,
                };
                taking.run()?;
                let rows = taking.rows;
                self.note_taken(tx, source, from, key)?;
                tx.execute(
                    "UPDATE owners SET catalog = $2 WHERE id = $1",
                    &[&self.owner, &next_number(owner.catalog)?.cast_signed()],
                )?;
                self.verify(tx, &rows, &chain)?;
                Ok(rows)
            })
        })?;
        self.sources.current(&self.pool)?;
        // Without it the planner guesses until the server looks by itself.
        let _ = self.pool.read(|tx| tx.batch("ANALYZE records, versions"));
        Ok(TakenOver {
            rows,
            blobs,
            chain,
            damaged,
            missing_blobs,
        })
    }

    /// Refuses an owner that has anything already.
    fn refuse_filled(&self, tx: &Tx<'_>) -> Result<()> {
        for table in tables::all() {
            let sql = format!(
                "SELECT EXISTS (SELECT 1 FROM {} WHERE owner_id = $1)",
                table.postgres
            );
            if tx.query_one(&sql, &[&self.owner])?.get(0)? {
                return Err(StoreError::OwnerNotEmpty {
                    place: self.place().to_owned(),
                    owner: self.options.owner.clone(),
                    holds: table.postgres.replace('_', " "),
                });
            }
        }
        Ok(())
    }

    /// Stores the bytes first: what is never bound is swept, and a binding never stands without its bytes.
    fn take_blobs(&self, from: &EmbeddedStore) -> Result<(u64, Vec<BlobId>)> {
        let (mut taken, mut missing) = (0, Vec::new());
        for id in from.database.read(blobs_in)? {
            stop::check()?;
            let mut bytes = match from.open_blob(&id) {
                Ok(bytes) => bytes,
                Err(StoreError::UnknownBlob(_)) => {
                    missing.push(id);
                    continue;
                }
                Err(error) => return Err(error),
            };
            match self.objects.receive(&mut bytes) {
                Ok(received) => self.name(&received)?,
                // The bytes are not those that the id names.
                Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::InvalidData => {
                    missing.push(id);
                    continue;
                }
                Err(error) => return Err(error),
            }
            taken += 1;
        }
        Ok((taken, missing))
    }

    /// Notes the newest version with its mark, the ends of the log, and the key that sealed cursors.
    fn note_taken(
        &self,
        tx: &Tx<'_>,
        source: &rusqlite::Connection,
        from: &EmbeddedStore,
        key: [u8; 32],
    ) -> Result<()> {
        let failed = failed(from.path());
        let (last, dropped) = ends(source).map_err(&failed)?;
        let version = newest_version(source).map_err(&failed)?;
        if version > 0 {
            self.advance(tx, version)?;
        }
        tx.execute(
            "UPDATE chains SET sequence = $2, hash = $3, dropped_sequence = $4, dropped_hash = $5 WHERE owner_id = $1",
            &[
                &self.owner,
                &last.sequence.cast_signed(),
                &last.hash.as_slice(),
                &dropped.sequence.cast_signed(),
                &dropped.hash.as_slice(),
            ],
        )?;
        let hidden = hidden(key, &self.options.secret, self.store_id);
        let sql = "UPDATE owners SET sealing_key = $2 WHERE id = $1";
        tx.execute(sql, &[&self.owner, &hidden]).map(drop)
    }

    /// Counts what is there now, and recomputes the chain of disclosures, before any of it holds.
    fn verify(&self, tx: &Tx<'_>, sent: &[(&'static str, u64)], chain: &ChainCheck) -> Result<()> {
        let wrong = |detail: String| StoreError::Database {
            place: self.place().to_owned(),
            detail: format!("{detail}; nothing was moved"),
        };
        for (table, sent) in sent {
            let sql = format!("SELECT count(*) FROM {table} WHERE owner_id = $1");
            let found = tx.query_one(&sql, &[&self.owner])?.get::<i64>(0)?;
            if found.cast_unsigned() != *sent {
                return Err(wrong(format!(
                    "{found} rows of {table} arrived, and {sent} were sent"
                )));
            }
        }
        let found = self.check_chain_in(tx)?;
        if found != *chain {
            return Err(wrong(format!(
                "the log of disclosures is not the one that was sent: {found:?} instead of {chain:?}"
            )));
        }
        Ok(())
    }
}

/// Refuses a directory whose state must be looked at first.
fn refuse_unfit(from: &EmbeddedStore) -> Result<()> {
    let unfit = |reason: String| StoreError::NotMovable {
        path: from.path().to_owned(),
        reason,
    };
    if let Some(rollback) = from.rolled_back() {
        return Err(unfit(format!(
            "{rollback}. `pdpp doctor` tells how to accept that"
        )));
    }
    from.settle_disclosures()
}

/// The one transaction that takes over.
struct Taking<'a> {
    store: &'a PostgresStore,
    tx: &'a Tx<'a>,
    source: &'a rusqlite::Connection,
    from: &'a EmbeddedStore,
    /// The numbers of streams here, by those in the directory.
    streams: HashMap<i64, i64>,
    rows: Vec<(&'static str, u64)>,
    sent: u64,
    progress: &'a mut dyn FnMut(u64),
}

impl Taking<'_> {
    fn run(&mut self) -> Result<()> {
        for table in CATALOG {
            self.take(table)?;
        }
        self.take_streams()?;
        let sql = format!("SELECT {} FROM records ORDER BY row_id", RECORDS.names());
        self.take_contents(&RECORDS, &sql)?;
        let sql = "SELECT v.stream_id, r.key, v.version, v.emitted_at, v.data, v.digest, v.row_id, v.next_version
             FROM versions v JOIN records r ON r.row_id = v.row_id ORDER BY v.row_id, v.version";
        self.take_contents(&VERSIONS, sql)?;
        for table in OTHERS {
            self.take(table)?;
        }
        Ok(())
    }

    /// Takes over a table whose rows only may name streams.
    fn take(&mut self, table: &'static Table) -> Result<()> {
        let sql = format!(
            "SELECT {} FROM {} ORDER BY {}",
            table.names(),
            table.sqlite,
            table.order
        );
        let named = table
            .columns
            .iter()
            .position(|(_, kind)| *kind == Kind::Stream);
        self.send(table, &sql, |taking, row| {
            let mut values = taking.values(row, table.columns.len())?;
            if let Some(Value::Integer(stream)) = named.and_then(|at| values.get_mut(at)) {
                match taking.streams.get(stream) {
                    Some(number) => *stream = *number,
                    // It was left behind by a stream that is gone.
                    None => return Ok(None),
                }
            }
            Ok(Some(values))
        })
    }

    /// Takes over the streams, which get new numbers in the same order.
    fn take_streams(&mut self) -> Result<()> {
        let sql = format!("SELECT {} FROM streams ORDER BY id", STREAMS.names());
        let read = || -> rusqlite::Result<Vec<_>> {
            let mut statement = self.source.prepare(&sql)?;
            let streams = statement.query_map([], |row| {
                let name: (i64, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
                let counts: (i64, i64, i64) = (row.get(3)?, row.get(4)?, row.get(5)?);
                Ok((name, counts))
            })?;
            streams.collect()
        };
        let streams = read().map_err(failed(self.from.path()))?;
        for ((id, connection, name), (live, last, purged)) in &streams {
            let row = self.tx.query_one(
                "INSERT INTO streams (owner_id, connection_id, name, live_records, last_version, purged_to)
                 VALUES ($1, $2, $3, $4, $5, $6) RETURNING id",
                &[&self.store.owner, connection, name, live, last, purged],
            )?;
            self.streams.insert(*id, row.get(0)?);
        }
        self.rows.push((STREAMS.postgres, streams.len() as u64));
        Ok(())
    }

    /// Takes over records or what they were. The statement gives what a digest covers, the digest, and the rest.
    fn take_contents(&mut self, table: &'static Table, sql: &str) -> Result<()> {
        let with_key = table.columns.iter().any(|(name, _)| *name == "key");
        let width = table.columns.len() + usize::from(!with_key);
        self.send(table, sql, |taking, row| {
            let is_intact = checked(row, 0).is_ok();
            let mut values = taking.values(row, width)?;
            let [stream, key, version, emitted_at, data, digest, ..] = values.as_mut_slice() else {
                return Err(taking.unreadable(table));
            };
            let Value::Integer(stream) = stream else {
                return Err(taking.unreadable(table));
            };
            let Some(number) = taking.streams.get(stream) else {
                return Err(taking.unreadable(table));
            };
            *stream = *number;
            let (Value::Text(key), Value::Integer(version), Value::Text(emitted_at)) =
                (&*key, &*version, &*emitted_at)
            else {
                return Err(taking.unreadable(table));
            };
            let content = Content {
                stream: *stream,
                key,
                version: version.cast_unsigned(),
                emitted_at,
                data: match &*data {
                    Value::Text(data) => Some(data),
                    _ => None,
                },
            };
            *digest = Value::Integer(content.digest() ^ i64::from(!is_intact));
            if with_key {
                values.last_mut().map(written_sort);
            } else {
                values.remove(1);
            }
            Ok(Some(values))
        })
    }

    /// Reads rows with a statement, and sends what is made of each.
    fn send(
        &mut self,
        table: &'static Table,
        sql: &str,
        mut row: impl FnMut(&Self, &rusqlite::Row<'_>) -> Result<Option<Vec<Value>>>,
    ) -> Result<()> {
        let (source, from) = (self.source, self.from);
        let failed = |error| failed(from.path())(error);
        let mut statement = source.prepare(sql).map_err(failed)?;
        let mut found = statement.query([]).map_err(failed)?;
        let mut sink = Sink::new(table);
        while let Some(next) = found.next().map_err(failed)? {
            let Some(values) = row(self, next)? else {
                continue;
            };
            if !sink.push(values) {
                return Err(self.unreadable(table));
            }
            if sink.is_full() {
                self.sent += sink.flush(self.tx, self.store.owner)?;
                (self.progress)(self.sent);
                stop::check()?;
            }
        }
        self.sent += sink.flush(self.tx, self.store.owner)?;
        (self.progress)(self.sent);
        self.rows.push((table.postgres, sink.sent));
        Ok(())
    }

    /// The columns of a row. Text that is none any more is read as far as it can be.
    fn values(&self, row: &rusqlite::Row<'_>, width: usize) -> Result<Vec<Value>> {
        let mut values = Vec::with_capacity(width);
        for at in 0..width {
            let value = row.get_ref(at).map_err(failed(self.from.path()))?;
            values.push(match value {
                ValueRef::Text(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
                ValueRef::Null => Value::Null,
                ValueRef::Integer(value) => Value::Integer(value),
                ValueRef::Real(value) => Value::Real(value),
                ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
            });
        }
        Ok(values)
    }

    fn unreadable(&self, table: &Table) -> StoreError {
        StoreError::NotMovable {
            path: self.from.path().to_owned(),
            reason: format!(
                "a row of {} holds what was never written there, or a character (NUL) that PostgreSQL cannot keep. `pdpp doctor --thorough` looks for damage",
                table.sqlite
            ),
        }
    }
}

/// The cursor value of a record, as this database orders it.
fn written_sort(sort: &mut Value) {
    let value = match sort {
        Value::Integer(value) => SortValue::Integer(*value),
        Value::Real(value) => SortValue::Real(*value),
        _ => SortValue::Missing,
    };
    *sort = sort_bits(value).into();
}
