//! The records in `SQLite`, as the index over them needs them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use contract::key::RecordKey;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::database::{Database, changed, failed};
use super::declared_records::live_rows;
use super::digest::{CHECKED, checked, readable};
use super::records::{BYTES, MEASURED, STORED, measured, sort_of, stored};
use super::walk::Walk;
use super::{inspect, newest_version};
use crate::index::engine::Versions;
use crate::index::sources::Sources;
use crate::index::truth::{
    ChangedRecord, LiveRow, Mark, Replayed, RowRange, RowRecord, Truth, TruthSnapshot,
};
use crate::records::{ByteBudget, PagePosition, PageRequest, StoredPage, StoredRecord};
use crate::{Result, stop};

/// After how many records cancellation is checked.
const LOOK_EVERY: usize = 1024;

/// One process has the records, so it knows the newest version and the sources without asking.
pub(super) struct SqliteTruth {
    pub(super) place: PathBuf,
    pub(super) database: Arc<Database>,
    sources: RwLock<Arc<Sources>>,
    newest: AtomicU64,
}

impl SqliteTruth {
    pub(super) fn load(place: PathBuf, database: Arc<Database>) -> Result<Self> {
        let truth = Self {
            place,
            sources: RwLock::default(),
            newest: AtomicU64::new(database.read(newest_version)?),
            database,
        };
        truth.reload_sources()?;
        Ok(truth)
    }

    pub(super) fn reload_sources(&self) -> Result<()> {
        let sources = self
            .database
            .read_with(|connection| super::sources::load(connection, self.database.path()))?;
        *self.sources.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(sources);
        Ok(())
    }

    /// The version of the last acknowledged change.
    pub(super) fn newest(&self) -> u64 {
        self.newest.load(Ordering::Acquire)
    }

    pub(super) fn acknowledge(&self, version: u64) {
        self.newest.fetch_max(version, Ordering::AcqRel);
    }
}

impl Truth for SqliteTruth {
    fn place(&self) -> &Path {
        &self.place
    }

    fn sources(&self) -> Arc<Sources> {
        Arc::clone(&self.sources.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn head(&self) -> Result<(u64, Mark)> {
        Ok((self.newest(), None))
    }

    fn on_snapshot(&self, run: &mut dyn FnMut(&dyn TruthSnapshot) -> Result<()>) -> Result<()> {
        self.database.snapshot(|connection| {
            Ok(run(&Snapshot {
                database: &self.database,
                connection,
            })?)
        })
    }

    fn live_records(&self) -> Result<u64> {
        self.database.read(inspect::kept)
    }

    fn live_in(&self, stream: i64) -> Result<u64> {
        self.database.read(|connection| {
            connection
                .prepare_cached("SELECT live_records FROM streams WHERE id = ?1")?
                .query_row([stream], |row| row.get(0))
        })
    }

    fn rows_of(&self, stream: i64, keys: &[RecordKey]) -> Result<HashSet<u64>> {
        self.database.read(|connection| {
            let mut statement = connection
                .prepare_cached("SELECT row_id FROM records WHERE stream_id = ?1 AND key = ?2")?;
            let mut rows = HashSet::new();
            for key in keys {
                let row = statement.query_row((stream, key.ordering_form()), |row| row.get(0));
                rows.extend(row.optional()?.map(i64::cast_unsigned));
            }
            Ok(rows)
        })
    }

    fn names_of(&self, rows: &[u64]) -> Result<Vec<Option<(i64, String)>>> {
        self.database.read(|connection| {
            let mut statement = connection
                .prepare_cached("SELECT stream_id, key FROM records WHERE row_id = ?1")?;
            let names = rows.iter().enumerate().map(|(at, row)| {
                if at % LOOK_EVERY == 0 && stop::asked() {
                    return Ok(None);
                }
                let name = statement.query_row([row], |row| Ok((row.get(0)?, readable(row, 1)?)));
                name.optional()
            });
            names.collect()
        })
    }

    fn records(&self, _: &[i64], rows: &[u64]) -> Result<(Vec<RowRecord>, bool)> {
        self.database.read(|connection| {
            let columns = MEASURED.as_str();
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {columns} FROM records WHERE row_id = ?1 AND data IS NOT NULL"
            ))?;
            let (mut records, mut budget) = (Vec::with_capacity(rows.len()), ByteBudget::default());
            for row in rows {
                let mut found = statement.query([row])?;
                let Some(found) = found.next()? else {
                    continue;
                };
                if !budget.take(found.get(BYTES)?) {
                    return Ok((records, false));
                }
                records.push(RowRecord {
                    row: *row,
                    stream: found.get(6)?,
                    record: measured(connection, found)?,
                });
            }
            Ok((records, true))
        })
    }

    fn positions(&self, rows: &[u64]) -> Result<Vec<(PagePosition, u64)>> {
        self.database.read(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT key, sort FROM records WHERE row_id = ?1")?;
            let mut found = Vec::with_capacity(rows.len());
            for row in rows {
                let position = statement.query_row([row], |row| {
                    let form: String = row.get(0)?;
                    Ok(PagePosition {
                        sort: sort_of(row.get_ref(1)?),
                        key: RecordKey::from_ordering_form(&form),
                    })
                });
                found.extend(position.optional()?.map(|position| (position, *row)));
            }
            Ok(found)
        })
    }

    fn page(&self, stream: i64, request: &PageRequest) -> Result<StoredPage> {
        self.database.read(|connection| {
            let (mut records, mut budget) = (Vec::new(), ByteBudget::default());
            let mut is_last = request.limit > 0;
            if is_last {
                Walk::new(stream, request).for_each(connection, &MEASURED, &mut |row| {
                    let fits = budget.take(row.get(BYTES)?);
                    if fits {
                        records.push(measured(connection, row)?);
                    }
                    is_last = fits && records.len() < request.limit;
                    Ok(is_last)
                })?;
            }
            Ok(StoredPage { records, is_last })
        })
    }

    fn current(&self, stream: i64, row: u64) -> Result<Option<StoredRecord>> {
        self.database.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {STORED} FROM records
                     WHERE row_id = ?1 AND stream_id = ?2 AND data IS NOT NULL"
                ))?
                .query_row((row, stream), stored)
                .optional()
        })
    }

    fn earlier(&self, stream: i64, row: u64, limit: usize) -> Result<Vec<StoredRecord>> {
        self.database.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT key, versions.emitted_at, versions.data, NULL, versions.version, TRUE, versions.stream_id, versions.digest
                     FROM versions CROSS JOIN records USING (row_id)
                     WHERE versions.row_id = ?1 AND versions.stream_id = ?2 AND versions.data IS NOT NULL
                     ORDER BY versions.version DESC LIMIT ?3",
                )?
                .query_map((row, stream, limit), stored)?
                .collect()
        })
    }

    fn then_and_now(&self, row: u64, version: u64) -> Result<Option<(String, String)>> {
        self.database.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT versions.data, records.data FROM records JOIN versions USING (row_id)
                     WHERE row_id = ?1 AND versions.version <= ?2 AND versions.next_version > ?2
                       AND versions.data IS NOT NULL AND records.data IS NOT NULL",
                )?
                .query_row((row, version), |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })
    }

    fn walk(
        &self,
        stream: i64,
        request: &PageRequest,
        each: &mut dyn FnMut(u64, StoredRecord) -> Result<bool>,
    ) -> Result<()> {
        let mut outcome = Ok(());
        self.database.read(|connection| {
            Walk::new(stream, request).for_each(connection, &MEASURED, &mut |row| match each(
                row.get("row_id")?,
                measured(connection, row)?,
            ) {
                Ok(goes_on) => Ok(goes_on),
                Err(error) => {
                    outcome = Err(error);
                    Ok(false)
                }
            })
        })?;
        outcome
    }

    fn walk_rows(
        &self,
        stream: i64,
        request: &PageRequest,
        each: &mut dyn FnMut(u64) -> bool,
    ) -> Result<()> {
        self.database.read(|connection| {
            Walk::new(stream, request)
                .for_each(connection, "row_id", &mut |row| Ok(each(row.get(0)?)))
        })
    }

    fn row_range(&self, stream: i64) -> Result<Option<RowRange>> {
        self.database.read(|connection| {
            connection.query_row(
                "SELECT min(row_id), max(row_id) FROM records WHERE stream_id = ?1 AND data IS NOT NULL",
                [stream],
                |row| {
                    let (first, last): (Option<u64>, Option<u64>) = (row.get(0)?, row.get(1)?);
                    let ends = first.zip(last);
                    Ok(ends.map(|(first, last)| RowRange {
                        stream,
                        first,
                        last,
                    }))
                },
            )
        })
    }

    fn live_between(&self, range: RowRange) -> Result<u64> {
        self.database.read(|connection| {
            connection.query_row(
                "SELECT count(*) FROM records
                 WHERE stream_id = ?1 AND data IS NOT NULL AND row_id BETWEEN ?2 AND ?3",
                (range.stream, range.first, range.last),
                |row| row.get(0),
            )
        })
    }

    fn live_rows(&self, range: RowRange, limit: usize) -> Result<Vec<LiveRow>> {
        let between = (
            range.first.cast_signed().saturating_sub(1),
            range.last.cast_signed(),
        );
        let rows = self
            .database
            .read(|connection| live_rows(connection, range.stream, between, limit))?;
        let found = rows.into_iter().map(|row| LiveRow {
            row: row.number.cast_unsigned(),
            emitted_at: row.emitted_at,
            data: row.data,
        });
        Ok(found.collect())
    }

    fn last_version(&self, stream: i64) -> Result<u64> {
        self.database
            .read(|connection| last_version(connection, stream))
    }

    fn changed(&self, stream: i64, after: u64, limit: usize) -> Result<(u64, Vec<ChangedRecord>)> {
        self.database.snapshot(|connection| {
                            let last = last_version(connection, stream)?;
                if last <= after {
                    return Ok((last, Vec::new()));
                }
                let mut statement = connection.prepare_cached(&format!(
                    "SELECT row_id, {CHECKED} FROM records WHERE stream_id = ?1 AND version > ?2 ORDER BY version LIMIT ?3"
                ))?;
                let rows = statement.query_map(params![stream, after, limit], |row| {
                    let data = match checked(row, 1) {
                        Err(error) if changed(&error).is_some() => None,
                        data => data?,
                    };
                    Ok(ChangedRecord {
                        row: row.get(0)?,
                        version: row.get(3)?,
                        data,
                    })
                })?;
                Ok((last, rows.collect::<rusqlite::Result<_>>()?))
        })
    }

    fn changed_rows(&self, stream: i64, after: u64) -> Result<Vec<(u64, u64)>> {
        self.database.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT row_id, version FROM records WHERE stream_id = ?1 AND version > ?2",
                )?
                .query_map(params![stream, after], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        })
    }

    fn changed_live(&self, stream: i64, after: u64) -> Result<u64> {
        self.database.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT count(*) FROM records WHERE stream_id = ?1 AND version > ?2 AND data IS NOT NULL",
                )?
                .query_row(params![stream, after], |row| row.get(0))
        })
    }

    fn live_versions(&self, rows: &[(u64, u64)]) -> Result<HashSet<u64>> {
        self.database.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT 1 FROM records WHERE row_id = ?1 AND version = ?2 AND data IS NOT NULL",
            )?;
            let mut live = HashSet::new();
            for (row, version) in rows {
                if statement.exists([row, version])? {
                    live.insert(*row);
                }
            }
            Ok(live)
        })
    }
}

fn last_version(connection: &Connection, stream: i64) -> rusqlite::Result<u64> {
    let mut statement =
        connection.prepare_cached("SELECT last_version FROM streams WHERE id = ?1")?;
    let version = statement.query_row([stream], |row| row.get(0)).optional()?;
    Ok(version.unwrap_or(0))
}

struct Snapshot<'a> {
    database: &'a Database,
    connection: &'a Connection,
}

impl TruthSnapshot for Snapshot<'_> {
    fn head(&self) -> Result<u64> {
        newest_version(self.connection).map_err(failed(self.database.path()))
    }

    fn mark(&self, _: u64) -> Result<Mark> {
        Ok(None)
    }

    fn erased(&self, versions: Versions) -> Result<Vec<i64>> {
        let read = || -> rusqlite::Result<Vec<i64>> {
            self.connection
                .prepare_cached(
                    "SELECT stream_id FROM erasures WHERE version > ?1 AND version <= ?2",
                )?
                .query_map([versions.after, versions.upto], |row| row.get(0))?
                .collect()
        };
        read().map_err(failed(self.database.path()))
    }

    fn replay(
        &self,
        versions: Versions,
        each: &mut dyn FnMut(Replayed) -> Result<()>,
    ) -> Result<()> {
        let streams = || -> rusqlite::Result<Vec<i64>> {
            self.connection
                .prepare_cached("SELECT id FROM streams WHERE last_version > ?1")?
                .query_map([versions.after], |row| row.get(0))?
                .collect()
        };
        for stream in streams().map_err(failed(self.database.path()))? {
            self.replay_stream(stream, versions, each)?;
        }
        Ok(())
    }
}

impl Snapshot<'_> {
    fn replay_stream(
        &self,
        stream: i64,
        versions: Versions,
        each: &mut dyn FnMut(Replayed) -> Result<()>,
    ) -> Result<()> {
        let failed = self.database.failed();
        let mut statement = self
            .connection
            .prepare_cached(&format!(
                "SELECT row_id, {CHECKED} FROM records
                 WHERE stream_id = ?1 AND version > ?2 AND version <= ?3 ORDER BY version"
            ))
            .map_err(&failed)?;
        let mut rows = statement
            .query(params![stream, versions.after, versions.upto])
            .map_err(&failed)?;
        while let Some(row) = rows.next().map_err(&failed)? {
            each(Replayed {
                row: row.get::<_, i64>(0).map_err(&failed)?.cast_unsigned(),
                stream,
                emitted_at: readable(row, 4).map_err(&failed)?,
                data: match checked(row, 1) {
                    Err(error) if changed(&error).is_some() => Some("{}".to_owned()),
                    data => data.map_err(&failed)?,
                },
            })?;
        }
        Ok(())
    }
}
