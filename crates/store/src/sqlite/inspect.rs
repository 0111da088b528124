//! Compares what is stored with checksums, counts and the hashes that name blobs.

use std::io;
use std::path::PathBuf;

use contract::id::BlobId;
use contract::json::RecordBody;
use rusqlite::Connection;

use super::blobs::{Verified, is_bound};
use super::database::{changed, named};
use super::digest::{CHECKED, checked};
use super::{EmbeddedStore, erase};
use crate::inspection::{Damage, Depth, Inspect, Inspection, Rollback, TOLD};
use crate::{Result, StoreError};

impl Inspect for EmbeddedStore {
    fn rolled_back(&self) -> Option<Rollback> {
        self.database.marking().rolled_back()
    }

    fn accept_rollback(&self) -> Result<Option<Rollback>> {
        self.database.accept_rollback()
    }

    fn inspect(&self, depth: Depth) -> Result<Inspection> {
        let thorough = depth == Depth::Thorough;
        let (records, damaged_records) = damage_of(self.look_at_records(thorough))?;
        let (blobs, damaged_blobs) = damage_of(self.look_at_blobs(thorough))?;
        // Records that cannot be read cannot be counted either, and the index is not to blame.
        let damaged_index = if damaged_records.is_empty() {
            self.index.inspect(thorough)?
        } else {
            Vec::new()
        };
        let (begun, finished) = self.database.read(erase::erasures)?;
        let unwritable = self.try_to_write().err();
        // What waits may have found its way with that.
        let _ = self.settle_disclosures();
        let (waiting, in_memory) = self.waiting_outside();
        Ok(Inspection {
            records,
            blobs,
            damaged_records,
            damaged_blobs,
            damaged_index,
            traces_left: finished < begun,
            room_to_erase: if finished < begun {
                self.room_to_erase()?
            } else {
                0
            },
            rolled_back: self.rolled_back().map(|found| found.to_string()),
            unmarked: self.database.marking().trouble(),
            waiting,
            ended_in_memory: in_memory,
            unwritable: unwritable.map(|error| error.to_string()),
            ..Inspection::default()
        })
    }
}

/// The damage found, and how much was inspected. Damage that ended the inspection is its result.
fn damage_of(outcome: Result<(u64, Vec<Damage>)>) -> Result<(u64, Vec<Damage>)> {
    match outcome {
        Err(StoreError::Corrupt { path, detail }) => Ok((0, vec![Damage { path, detail }])),
        outcome => outcome,
    }
}

impl EmbeddedStore {
    /// Writes what is there already.
    fn try_to_write(&self) -> Result<()> {
        self.database.transact(|transaction| {
            let sql = "UPDATE meta SET value = value WHERE name = 'store_id'";
            transaction.execute(sql, [])?;
            Ok(())
        })
    }

    fn look_at_records(&self, thorough: bool) -> Result<(u64, Vec<Damage>)> {
        self.database.snapshot(|connection| {
            let records = kept(connection)?;
            let mut found = Vec::new();
            if thorough {
                for look in [engine_says, miscounted, unreadable] {
                    found.extend(look(connection)?);
                }
            }
            found.truncate(TOLD);
            let damage = |detail| Damage {
                path: self.database.path().to_owned(),
                detail,
            };
            Ok((records, found.into_iter().map(damage).collect()))
        })
    }

    fn look_at_blobs(&self, thorough: bool) -> Result<(u64, Vec<Damage>)> {
        if !thorough {
            let count = |connection: &Connection| {
                connection.query_row("SELECT count(*) FROM blobs", [], |row| row.get(0))
            };
            return Ok((self.database.read(count)?, Vec::new()));
        }
        let stored: Vec<(String, u64)> = self.database.read(|connection| {
            connection
                .prepare("SELECT id, size_bytes FROM blobs ORDER BY id")?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        })?;
        let mut found = Vec::new();
        for (id, size_bytes) in &stored {
            let Ok(id) = BlobId::parse(id.as_str()) else {
                found.push(Damage {
                    path: self.database.path().to_owned(),
                    detail: "it names a blob that cannot be one".to_owned(),
                });
                continue;
            };
            if let Some(damage) = self.look_at_blob(&id, *size_bytes)? {
                // It may have been erased since it was listed.
                let bound = self.database.read(|connection| is_bound(connection, &id))?;
                found.extend(bound.then_some(damage));
            }
            if found.len() >= TOLD {
                break;
            }
        }
        Ok((stored.len() as u64, found))
    }

    fn look_at_blob(&self, id: &BlobId, size_bytes: u64) -> Result<Option<Damage>> {
        let damage = |path: PathBuf, detail: String| Ok(Some(Damage { path, detail }));
        let (path, file) = match self.blob_file(id) {
            Err(StoreError::UnknownBlob(_)) => {
                return damage(self.settled(id), "it is missing".to_owned());
            }
            Err(StoreError::Io { path, source }) => return damage(path, source.to_string()),
            opened => opened?,
        };
        let length = file.metadata().map_err(StoreError::at(&path))?.len();
        if length != size_bytes {
            let detail = format!("it should have {size_bytes} bytes and has {length}");
            return damage(path, detail);
        }
        let mut bytes = Verified::new(file, &path, id, size_bytes);
        match io::copy(&mut bytes, &mut io::sink()) {
            Ok(_) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                damage(path, "its bytes are not those that were stored".to_owned())
            }
            Err(error) => damage(path, error.to_string()),
        }
    }
}

pub(super) fn kept(connection: &Connection) -> rusqlite::Result<u64> {
    let sql = "SELECT coalesce(sum(live_records), 0) FROM streams";
    connection.query_row(sql, [], |row| row.get(0))
}

/// What the engine itself finds wrong.
fn engine_says(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let lines: Vec<String> = connection
        .prepare("PRAGMA integrity_check(10)")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let wrong = lines.into_iter().filter(|line| line != "ok");
    Ok(wrong.map(|line| line.replace('\n', "; ")).collect())
}

/// The streams whose stored count is wrong.
fn miscounted(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(
        "SELECT connection_id, name, live_records,
                (SELECT count(*) FROM records WHERE stream_id = streams.id AND data IS NOT NULL) AS counted
         FROM streams WHERE live_records <> counted",
    )?;
    let mut rows = statement.query([])?;
    let mut wrong = Vec::new();
    while let Some(row) = rows.next()? {
        let (connection, stream): (String, String) = (row.get(0)?, row.get(1)?);
        let (kept, counted): (i64, i64) = (row.get(2)?, row.get(3)?);
        wrong.push(format!(
            "{connection}/{stream} should have {kept} records and has {counted}"
        ));
    }
    Ok(wrong)
}

/// Records that are not what was written, not JSON any more, or changed into other kinds of values.
pub(crate) fn unreadable(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut wrong = Vec::new();
    for (table, rows) in [
        ("records", format!("SELECT row_id, {CHECKED} FROM records")),
        (
            "versions",
            "SELECT row_id, versions.stream_id, records.key, versions.version, versions.emitted_at, versions.data,
                    versions.digest
             FROM versions LEFT JOIN records USING (row_id)"
                .to_owned(),
        ),
    ] {
        let mut statement = connection.prepare(&rows)?;
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            let number: i64 = row.get(0)?;
            match checked(row, 1) {
                Ok(text) => {
                    if text.is_some_and(|text| RecordBody::parse(text).is_err()) {
                        wrong.push(format!("row {number} of {table} is not JSON any more"));
                    }
                }
                Err(error) => wrong.push(match changed(&error) {
                    Some(changed) => {
                        format!("{}, row {number} of {table}", named(connection, changed)?)
                    }
                    None => format!("row {number} of {table} cannot be read: {error}"),
                }),
            }
            if wrong.len() >= TOLD {
                return Ok(wrong);
            }
        }
    }
    Ok(wrong)
}
