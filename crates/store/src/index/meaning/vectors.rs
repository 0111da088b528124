//! The file of vectors: derived data, with everything that says what it was derived from. One that is missing, cut, of
//! another format, of another model or of another store is thrown away and made anew.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use contract::id::FieldName;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, params};

use super::quantize::{Code, signs, words_for};
use super::remove_folder;
use super::scan::{Entry, Kind, Signing, Table};
use crate::sqlite::database::{connect, failed};
use crate::sqlite::directory::{create_private, create_private_file};
use crate::{Result, StoreError};

const FILE: &str = "vectors.db";
const FORMAT: i64 = 2;
const SCHEMA: &str = "
    CREATE TABLE origin (store_id BLOB NOT NULL, model TEXT NOT NULL, dimensions INTEGER NOT NULL,
        generation INTEGER NOT NULL) STRICT;
    -- Up to which change of a stream there are vectors, and of which fields.
    CREATE TABLE progress (stream INTEGER PRIMARY KEY, fields TEXT NOT NULL, version INTEGER NOT NULL) STRICT;
    CREATE TABLE kinds (id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, field TEXT NOT NULL, signing TEXT NOT NULL,
        UNIQUE (stream, field, signing)) STRICT;
    CREATE TABLE windows (id INTEGER PRIMARY KEY, row INTEGER NOT NULL, version INTEGER NOT NULL, kind INTEGER NOT NULL,
        first_char INTEGER NOT NULL, end_char INTEGER NOT NULL, bits BLOB NOT NULL) STRICT;
    CREATE INDEX windows_by_row ON windows (row);
    CREATE TABLE codes (id INTEGER PRIMARY KEY, scale REAL NOT NULL, code BLOB NOT NULL) STRICT;";

/// What vectors are made from.
pub(super) struct Origin<'a> {
    pub(super) store_id: [u8; 16],
    pub(super) fingerprint: &'a str,
    pub(super) dimensions: usize,
}

/// How far the vectors of a stream are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Progress {
    /// The fields that are looked at, as one text.
    pub(super) fields: String,
    pub(super) version: u64,
}

/// What is held in memory.
pub(super) struct State {
    pub(super) table: Table,
    /// By number.
    pub(super) kinds: Vec<Kind>,
    pub(super) progress: HashMap<i64, Progress>,
    /// Up to which change of a stream it was looked for records whose vectors are out of date.
    pub(super) looked: HashMap<i64, u64>,
    /// Changes with every vector.
    pub(super) generation: u64,
}

/// A record that has changed since its vectors were made.
pub(super) struct Changed {
    pub(super) row: u64,
    pub(super) version: u64,
    /// The fields that say what they said then.
    pub(super) same: Vec<FieldName>,
    /// Whether it names the same author as then.
    pub(super) same_speaker: bool,
}

/// The vectors of one record; none if it is gone or has no text.
pub(super) struct Embedded {
    pub(super) row: u64,
    pub(super) version: u64,
    pub(super) windows: Vec<MadeWindow>,
}

pub(super) struct MadeWindow {
    pub(super) field: FieldName,
    pub(super) signing: Signing,
    pub(super) start_chars: usize,
    pub(super) end_chars: usize,
    pub(super) vector: Vec<f32>,
}

/// A window with its vector in eight bits per number.
pub(super) struct Stored {
    pub(super) kind: u16,
    pub(super) start_chars: u64,
    pub(super) end_chars: u64,
    pub(super) code: Code,
}

pub(super) struct Vectors {
    path: PathBuf,
    dimensions: usize,
    writer: Mutex<Connection>,
    reader: Mutex<Connection>,
    state: RwLock<State>,
}

pub(super) fn bytes_on_disk(folder: &Path) -> u64 {
    std::fs::metadata(folder.join(FILE)).map_or(0, |file| file.len())
}

impl Vectors {
    pub(super) fn open(folder: &Path, origin: &Origin<'_>) -> Result<Self> {
        match Self::open_file(folder, origin) {
            Err(StoreError::Corrupt { .. } | StoreError::Foreign { .. }) => {
                remove_folder(folder)?;
                Self::open_file(folder, origin)
            }
            opened => opened,
        }
    }

    fn open_file(folder: &Path, origin: &Origin<'_>) -> Result<Self> {
        create_private(folder)?;
        let path = folder.join(FILE);
        create_private_file(&path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
        let writer = connect(&path, flags, None).map_err(failed(&path))?;
        prepare(&writer, origin).map_err(|error| described(&path, error))?;
        let state = load(&writer, origin.dimensions).map_err(|error| described(&path, error))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let reader = connect(&path, flags, None).map_err(failed(&path))?;
        Ok(Self {
            dimensions: origin.dimensions,
            writer: Mutex::new(writer),
            reader: Mutex::new(reader),
            state: RwLock::new(state),
            path,
        })
    }

    pub(super) fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> MutexGuard<'_, Connection> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reader(&self) -> MutexGuard<'_, Connection> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the vectors of some records of a stream, in place of those they had.
    pub(super) fn keep(&self, stream: i64, progress: &Progress, made: &[Embedded]) -> Result<()> {
        let mut placed = Vec::with_capacity(made.len());
        let mut kinds = Vec::new();
        let generation = self.change(|transaction| {
            for one in made {
                remove_row(transaction, one.row)?;
                let mut entries = Vec::with_capacity(one.windows.len());
                for window in &one.windows {
                    let kind = Kind {
                        stream,
                        field: window.field.clone(),
                        signing: window.signing.clone(),
                    };
                    let kind = number_of(transaction, kind, &mut kinds)?;
                    entries.push(insert(transaction, one, kind, window)?);
                }
                placed.push(entries);
            }
            transaction.execute(
                "INSERT OR REPLACE INTO progress VALUES (?1, ?2, ?3)",
                params![stream, progress.fields, progress.version],
            )?;
            Ok(())
        })?;
        let mut state = self.state_mut();
        for (number, kind) in kinds {
            let at = usize::from(number);
            while state.kinds.len() < at {
                // A number that is not used any more.
                state.kinds.push(Kind {
                    stream: -1,
                    ..kind.clone()
                });
            }
            match state.kinds.get_mut(at) {
                Some(known) => *known = kind,
                None => state.kinds.push(kind),
            }
        }
        for (one, entries) in made.iter().zip(&placed) {
            state.table.put(one.row, one.version, entries);
        }
        // A record may have changed again since it was read.
        state.looked.insert(stream, progress.version);
        state.progress.insert(stream, progress.clone());
        state.generation = generation;
        Ok(())
    }

    /// Forgets all about a stream.
    pub(super) fn forget_stream(&self, stream: i64) -> Result<()> {
        let generation = self.change(|transaction| {
            transaction.execute(
                "DELETE FROM codes WHERE id IN
                 (SELECT id FROM windows WHERE kind IN (SELECT id FROM kinds WHERE stream = ?1))",
                [stream],
            )?;
            transaction.execute(
                "DELETE FROM windows WHERE kind IN (SELECT id FROM kinds WHERE stream = ?1)",
                [stream],
            )?;
            transaction.execute("DELETE FROM kinds WHERE stream = ?1", [stream])?;
            transaction.execute("DELETE FROM progress WHERE stream = ?1", [stream])?;
            Ok(())
        })?;
        let mut state = self.state_mut();
        let numbers: Vec<u16> = (0..)
            .zip(&state.kinds)
            .filter(|(_, kind)| kind.stream == stream)
            .map(|(number, _)| number)
            .collect();
        state.table.remove_kinds(&numbers);
        state.progress.remove(&stream);
        state.looked.remove(&stream);
        state.generation = generation;
        Ok(())
    }

    /// Removes vectors from memory that were made of earlier forms of records, given the rows that changed up to a version. A
    /// field that says what it said before keeps its vectors: who sees no other field must not notice the change.
    pub(super) fn leave_out(&self, stream: i64, upto: u64, changed: &[Changed]) {
        let mut state = self.state_mut();
        let State { table, kinds, .. } = &mut *state;
        for one in changed {
            let is_same = |kind: &Kind| {
                let says_the_same = one.same.contains(&kind.field);
                let is_said_by_the_same =
                    !matches!(kind.signing, Signing::Signed(_)) || one.same_speaker;
                kind.stream == stream && says_the_same && is_said_by_the_same
            };
            let same = (0..).zip(&*kinds).filter(|(_, kind)| is_same(kind));
            let same: Vec<u16> = same.map(|(number, _)| number).collect();
            table.remove_before(one.row, one.version, &same);
        }
        state.looked.insert(stream, upto);
    }

    /// Removes from disk what is not to be kept, so that nothing of it stays there.
    pub(super) fn rewrite(
        &self,
        streams: &HashSet<i64>,
        live: impl FnOnce(&[(u64, u64)]) -> Result<HashSet<u64>>,
    ) -> Result<()> {
        let gone = |stream: &i64| !streams.contains(stream);
        let gone: Vec<i64> = self.state().progress.keys().copied().filter(gone).collect();
        for stream in gone {
            self.forget_stream(stream)?;
        }
        let kept = made(&self.reader()).map_err(|error| described(&self.path, error))?;
        let live = live(&kept)?;
        let mut removed: Vec<u64> = kept.into_iter().map(|(row, _)| row).collect();
        removed.retain(|row| !live.contains(row));
        let generation = self.change(|transaction| {
            removed
                .iter()
                .try_for_each(|row| remove_row(transaction, *row))
        })?;
        let mut state = self.state_mut();
        for row in removed {
            state.table.remove(row);
        }
        state.generation = generation;
        drop(state);
        let (writer, _no_reader) = (self.writer(), self.reader());
        writer
            .execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
            .map_err(failed(&self.path))
    }

    /// The windows of these numbers; one that was replaced meanwhile is left out.
    pub(super) fn stored(&self, ids: &[i64]) -> Result<HashMap<i64, Stored>> {
        let reader = self.reader();
        let read = || -> rusqlite::Result<HashMap<i64, Stored>> {
            let mut statement = reader.prepare_cached(
                "SELECT kind, first_char, end_char, scale, code FROM windows JOIN codes USING (id) WHERE id = ?1",
            )?;
            let mut found = HashMap::with_capacity(ids.len());
            for id in ids {
                let stored = statement.query_row([id], |row| {
                    let code = row.get_ref(4)?.as_blob()?;
                    if code.len() != self.dimensions {
                        return Err(damaged());
                    }
                    #[expect(clippy::cast_possible_truncation, reason = "it was written as such")]
                    let scale = row.get::<_, f64>(3)? as f32;
                    Ok(Stored {
                        kind: row.get(0)?,
                        start_chars: row.get(1)?,
                        end_chars: row.get(2)?,
                        code: Code::from_bytes(scale, code),
                    })
                });
                found.extend(stored.optional()?.map(|stored| (*id, stored)));
            }
            Ok(found)
        };
        read().map_err(|error| described(&self.path, error))
    }

    /// Runs a change in one transaction, and returns the generation it makes.
    fn change(&self, change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>) -> Result<u64> {
        let mut writer = self.writer();
        let run = || -> rusqlite::Result<u64> {
            let transaction = writer.transaction()?;
            change(&transaction)?;
            let sql = "UPDATE origin SET generation = generation + 1 RETURNING generation";
            let generation = transaction.query_row(sql, [], |row| row.get(0))?;
            transaction.commit()?;
            Ok(generation)
        };
        run().map_err(|error| described(&self.path, error))
    }
}

/// What cannot be what was written.
fn damaged() -> rusqlite::Error {
    rusqlite::Error::InvalidQuery
}

fn described(path: &Path, error: rusqlite::Error) -> StoreError {
    match error {
        rusqlite::Error::InvalidQuery
        | rusqlite::Error::QueryReturnedNoRows
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..) => {
            StoreError::corrupt(path, "its vectors are not what was written")
        }
        other => failed(path)(other),
    }
}

/// Makes an empty file ours, and refuses one that comes from something else.
fn prepare(writer: &Connection, origin: &Origin<'_>) -> rusqlite::Result<()> {
    let format: i64 = writer.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let tables: i64 =
        writer.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    writer.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")?;
    if format == 0 && tables == 0 {
        let dimensions = i64::try_from(origin.dimensions).map_err(|_| damaged())?;
        writer.execute_batch("BEGIN IMMEDIATE")?;
        writer.execute_batch(SCHEMA)?;
        writer.execute(
            "INSERT INTO origin VALUES (?1, ?2, ?3, 1)",
            params![origin.store_id.as_slice(), origin.fingerprint, dimensions],
        )?;
        writer.pragma_update(None, "user_version", FORMAT)?;
        return writer.execute_batch("COMMIT");
    }
    if format != FORMAT {
        return Err(damaged());
    }
    let sql = "SELECT store_id, model, dimensions FROM origin";
    let is_ours = writer.query_row(sql, [], |row| {
        let dimensions: usize = row.get(2)?;
        Ok(row.get_ref(0)?.as_blob()? == origin.store_id.as_slice()
            && row.get_ref(1)?.as_str()? == origin.fingerprint
            && dimensions == origin.dimensions)
    })?;
    if is_ours { Ok(()) } else { Err(damaged()) }
}

fn load(writer: &Connection, dimensions: usize) -> rusqlite::Result<State> {
    let mut state = State {
        table: Table::new(words_for(dimensions)),
        kinds: Vec::new(),
        progress: HashMap::new(),
        looked: HashMap::new(),
        generation: writer.query_row("SELECT generation FROM origin", [], |row| row.get(0))?,
    };
    let mut statement =
        writer.prepare("SELECT id, stream, field, signing FROM kinds ORDER BY id")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (number, stream): (u16, i64) = (row.get(0)?, row.get(1)?);
        let kind = Kind {
            stream,
            field: FieldName::parse(row.get_ref(2)?.as_str()?).map_err(|_| damaged())?,
            signing: Signing::read(row.get_ref(3)?.as_str()?).ok_or_else(damaged)?,
        };
        while state.kinds.len() < usize::from(number) {
            let unused = Kind {
                stream: -1,
                ..kind.clone()
            };
            state.kinds.push(unused);
        }
        state.kinds.push(kind);
    }
    let mut statement = writer.prepare("SELECT stream, fields, version FROM progress")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let progress = Progress {
            fields: row.get(1)?,
            version: row.get(2)?,
        };
        state.looked.insert(row.get(0)?, progress.version);
        state.progress.insert(row.get(0)?, progress);
    }
    load_windows(writer, dimensions, &mut state.table)?;
    Ok(state)
}

fn load_windows(writer: &Connection, dimensions: usize, table: &mut Table) -> rusqlite::Result<()> {
    let bytes = words_for(dimensions) * 8;
    let mut statement =
        writer.prepare("SELECT id, row, version, kind, bits FROM windows ORDER BY id")?;
    let mut rows = statement.query([])?;
    // The windows of a record are written together, so their numbers follow each other.
    let (mut current, mut entries) = ((0, 0), Vec::new());
    while let Some(row) = rows.next()? {
        let owner: (u64, u64) = (row.get(1)?, row.get(2)?);
        if owner != current {
            table.put(current.0, current.1, &entries);
            entries.clear();
            current = owner;
        }
        let bits = row.get_ref(4)?.as_blob()?;
        if bits.len() != bytes {
            return Err(damaged());
        }
        let (words, _) = bits.as_chunks::<8>();
        entries.push(Entry {
            id: row.get(0)?,
            kind: row.get(3)?,
            bits: words.iter().map(|word| u64::from_le_bytes(*word)).collect(),
        });
    }
    table.put(current.0, current.1, &entries);
    Ok(())
}

fn remove_row(transaction: &Transaction<'_>, row: u64) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("DELETE FROM codes WHERE id IN (SELECT id FROM windows WHERE row = ?1)")?
        .execute([row])?;
    let mut windows = transaction.prepare_cached("DELETE FROM windows WHERE row = ?1")?;
    windows.execute([row]).map(drop)
}

/// The rows that have vectors, each with the version they were made of.
fn made(reader: &Connection) -> rusqlite::Result<Vec<(u64, u64)>> {
    let mut made = reader.prepare("SELECT DISTINCT row, version FROM windows")?;
    let rows = made.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// The number of a kind of vectors, given when it is met first.
fn number_of(
    transaction: &Transaction<'_>,
    kind: Kind,
    known: &mut Vec<(u16, Kind)>,
) -> rusqlite::Result<u16> {
    if let Some((number, _)) = known.iter().find(|(_, one)| *one == kind) {
        return Ok(*number);
    }
    let name = params![kind.stream, kind.field.as_str(), kind.signing.file_text()];
    transaction.execute(
        "INSERT OR IGNORE INTO kinds (id, stream, field, signing)
         VALUES ((SELECT coalesce(max(id) + 1, 0) FROM kinds), ?1, ?2, ?3)",
        name,
    )?;
    let sql = "SELECT id FROM kinds WHERE stream = ?1 AND field = ?2 AND signing = ?3";
    let number: u16 = transaction.query_row(sql, name, |row| row.get(0))?;
    known.push((number, kind));
    Ok(number)
}

fn insert(
    transaction: &Transaction<'_>,
    record: &Embedded,
    kind: u16,
    window: &MadeWindow,
) -> rusqlite::Result<Entry> {
    let (bits, code) = (signs(&window.vector), Code::new(&window.vector));
    let bytes: Vec<u8> = bits.iter().flat_map(|word| word.to_le_bytes()).collect();
    transaction
        .prepare_cached(
            "INSERT INTO windows (row, version, kind, first_char, end_char, bits) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![record.row, record.version, kind, window.start_chars, window.end_chars, bytes])?;
    let id = transaction.last_insert_rowid();
    transaction
        .prepare_cached("INSERT INTO codes VALUES (?1, ?2, ?3)")?
        .execute(params![id, f64::from(code.scale), code.bytes()])?;
    Ok(Entry { id, kind, bits })
}
