//! `SQLite` as we use it: how a connection is opened, what is refused, and how its errors read.

use std::ffi::CStr;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use contract::key::RecordKey;
use contract::time::Clock;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::commit_mark::{self, Marking};
use super::digest::Changed;
use super::directory::{MARK, create_private_file};
use super::truncated::{Log, refuse_truncated};
use super::tx_error::TxResult;
use super::{migrations, unreadable};
use crate::disk_space;
use crate::error::is_unreadable;
use crate::inspection::Rollback;
use crate::{Result, StoreError, stop};

/// Marks a file as ours ("pdpp").
const APPLICATION_ID: i64 = 0x7064_7070;
const PAGE_BYTES: u32 = 8192;
/// How much a connection keeps in memory. Little: there is one per reader, and the system keeps the pages of the file
/// anyway. A log that is only appended to would fill any cache and gain nothing from it.
const CACHE_KIB: i64 = 2048;
/// How much the writer keeps while batches of records come in, whose keys fall anywhere.
const BULK_CACHE_KIB: i64 = 65_536;

/// What folding the log leaves of the room there is.
const FOLD_SPARES: u64 = 2 * 1024 * 1024;
/// With as many pages in the log, the engine folds it into the file.
const FOLD_AT_PAGES: u32 = 8000;
/// How the engine is asked to keep what readers and the writer share in memory, and in no file: nobody else may open the
/// database meanwhile, which the lock of the directory holds anyway.
const WITHOUT_SHARED_FILE: &CStr = c"unix-excl";

/// For a file that is named by [`as_it_is`].
const READ_ONLY: OpenFlags = OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_URI);
/// How often a waiting writer checks whether the connection is free.
const BETWEEN_TRIES: Duration = Duration::from_millis(5);

/// One writer, and as many readers as are in use at a time.
#[derive(Debug)]
pub(crate) struct Database {
    path: PathBuf,
    // Dropped before the writer: only a connection that may write can fold the log into the file as the last one out.
    idle_readers: Mutex<Vec<Connection>>,
    writer: Mutex<Connection>,
    /// How much the writer may keep in memory now; changed only by who holds it.
    writer_cache: AtomicI64,
    /// The mark outside the database that records how far it has come.
    marking: Marking,
    /// The disk was full when it was opened, so it is read-only.
    is_read_only: bool,
    /// How the engine keeps its files, where that is not as usual.
    vfs: Option<&'static CStr>,
    /// Whether the engine may fold the log into the file; changed only by who holds the writer.
    may_fold: AtomicBool,
}

impl Database {
    /// Opens or creates the file, brings it to the newest format and compares it with its mark.
    ///
    /// The engine needs a little room even to read beside its log. Where there is none it does without the file it shares
    /// with others, and with nothing in the log, the file is read as it is.
    pub(crate) fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        refuse_truncated(path)?;
        refuse_unreadable(&path.with_file_name(MARK))?;
        match Self::open_to_write(path, Arc::clone(&clock), None) {
            Err(StoreError::Full { .. } | StoreError::NoRoom { .. }) => {
                if Log::beside(path).is_some() {
                    return Self::open_to_write(path, clock, Some(WITHOUT_SHARED_FILE));
                }
                Self::open_to_read(path, clock)
            }
            opened => opened,
        }
    }

    fn open_to_read(path: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        let mut reader = connect(&as_it_is(path), READ_ONLY, None).map_err(failed(path))?;
        claim(&reader, path)?;
        migrations::run(&mut reader, path).map_err(|_| StoreError::Full {
            path: path.to_owned(),
        })?;
        let marking = Marking::new(path.with_file_name(MARK), clock);
        marking.compare(&reader).map_err(failed(path))?;
        Ok(Self {
            path: path.to_owned(),
            writer: Mutex::new(reader),
            writer_cache: AtomicI64::new(CACHE_KIB),
            idle_readers: Mutex::new(Vec::new()),
            marking,
            is_read_only: true,
            vfs: None,
            may_fold: AtomicBool::new(false),
        })
    }

    fn open_to_write(
        path: &Path,
        clock: Arc<dyn Clock>,
        vfs: Option<&'static CStr>,
    ) -> Result<Self> {
        // The engine would let everybody read a file it makes; those beside it get the mode of this one.
        create_private_file(path)?;
        let mut writer = connect(
            path,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
            vfs,
        )
        .map_err(failed(path))?;
        claim(&writer, path)?;
        writer
            .execute_batch(
                "PRAGMA journal_mode = WAL;
                 PRAGMA synchronous = FULL;
                 PRAGMA wal_autocheckpoint = 0;",
            )
            .map_err(failed(path))?;
        migrations::run(&mut writer, path)?;
        let marking = Marking::new(path.with_file_name(MARK), clock);
        marking.compare(&writer).map_err(failed(path))?;
        let database = Self {
            path: path.to_owned(),
            writer: Mutex::new(writer),
            writer_cache: AtomicI64::new(CACHE_KIB),
            idle_readers: Mutex::new(Vec::new()),
            marking,
            is_read_only: false,
            vfs,
            may_fold: AtomicBool::new(false),
        };
        if database.marking.rolled_back().is_some() {
            // What cannot be written now is detected again at the next start.
            let _ = database.transact(|transaction| Ok(database.marking.tell(transaction)?));
        }
        Ok(database)
    }

    /// The mark outside the database that records how far it has come.
    pub(crate) fn marking(&self) -> &Marking {
        &self.marking
    }

    /// Accepts the database as it is, although it was rolled back. Nothing is counted meanwhile.
    pub(crate) fn accept_rollback(&self) -> Result<Option<Rollback>> {
        let mut writer = self.writer();
        let transaction = writer.transaction().map_err(self.failed())?;
        let counted = commit_mark::accept(&transaction).map_err(self.failed())?;
        transaction.commit().map_err(self.failed())?;
        self.marking.accepted(counted)
    }

    /// Whether an error of a change says that there is no room, now or when this was opened.
    pub(crate) fn cannot_grow(&self, error: &StoreError) -> bool {
        let is_full = matches!(error, StoreError::Full { .. } | StoreError::NoRoom { .. });
        is_full || self.is_read_only
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn writer(&self) -> MutexGuard<'_, Connection> {
        // A panic while writing rolled its transaction back, so the connection is still good.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a read. It sees everything acknowledged before, and never waits for a writer.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T> {
        stop::check()?;
        let idle = self.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None if self.is_read_only => {
                connect(&as_it_is(&self.path), READ_ONLY, None).map_err(failed(&self.path))?
            }
            None => connect(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY, self.vfs)
                .map_err(failed(&self.path))?,
        };
        let outcome = read(&connection).map_err(self.failed());
        self.idle().push(connection);
        outcome
    }

    /// Like [`Self::read`], for reads that have errors of their own.
    pub(crate) fn read_with<T>(&self, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        self.read(|connection| Ok(read(connection)))?
    }

    /// Runs several reads that all see the same state.
    pub(crate) fn snapshot<T>(&self, read: impl FnOnce(&Connection) -> TxResult<T>) -> Result<T> {
        let outcome = self.read(|connection| {
            let transaction = connection.unchecked_transaction()?;
            let outcome = read(&transaction);
            transaction.finish()?;
            Ok(outcome)
        })?;
        outcome.map_err(|error| error.into_store_error(self))
    }

    pub(crate) fn transact<T>(
        &self,
        change: impl FnOnce(&rusqlite::Transaction<'_>) -> TxResult<T>,
    ) -> Result<T> {
        self.transact_then(change, || Ok(()))
    }

    /// Like [`Self::transact`], unless other writers take longer than this: then nothing is done.
    pub(crate) fn transact_within<T>(
        &self,
        patience: Duration,
        change: impl FnOnce(&rusqlite::Transaction<'_>) -> TxResult<T>,
    ) -> Result<Option<T>> {
        let began = Instant::now();
        let mut writer = loop {
            match self.writer.try_lock() {
                Ok(writer) => break writer,
                Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
                Err(TryLockError::WouldBlock) if began.elapsed() >= patience => return Ok(None),
                Err(TryLockError::WouldBlock) => std::thread::sleep(BETWEEN_TRIES),
            }
        };
        self.transact_with(&mut writer, CACHE_KIB, change).map(Some)
    }

    /// Like [`Self::transact`], for a batch of records.
    pub(crate) fn transact_bulk<T>(
        &self,
        change: impl FnOnce(&rusqlite::Transaction<'_>) -> TxResult<T>,
    ) -> Result<T> {
        self.transact_with(&mut self.writer(), BULK_CACHE_KIB, change)
    }

    /// Runs a change in one durable transaction, and `then` before the next one can begin.
    pub(crate) fn transact_then<T>(
        &self,
        change: impl FnOnce(&rusqlite::Transaction<'_>) -> TxResult<T>,
        then: impl FnOnce() -> Result<()>,
    ) -> Result<T> {
        let mut writer = self.writer();
        let outcome = self.transact_with(&mut writer, CACHE_KIB, change)?;
        then()?;
        Ok(outcome)
    }

    fn transact_with<T>(
        &self,
        writer: &mut Connection,
        cache_kib: i64,
        change: impl FnOnce(&rusqlite::Transaction<'_>) -> TxResult<T>,
    ) -> Result<T> {
        if self.is_read_only {
            let detail = "it was opened while the disk was full, and can only be read; start again when there is room";
            return Err(disk_space::unable(&self.path, detail));
        }
        if cache_kib == CACHE_KIB {
            disk_space::give_back(self.path.parent().unwrap_or(Path::new(".")));
            #[cfg(test)]
            disk_space::pretended::refuse(&self.path)?;
        }
        if self.writer_cache.swap(cache_kib, Ordering::Relaxed) != cache_kib {
            limit_cache(writer, cache_kib).map_err(failed(&self.path))?;
        }
        let transaction = writer
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .map_err(failed(&self.path))?;
        let unchanged = transaction.total_changes();
        let outcome = change(&transaction).map_err(|error| error.into_store_error(self))?;
        let counted = if transaction.total_changes() == unchanged {
            None
        } else {
            self.marking
                .count(&transaction)
                .map_err(failed(&self.path))?
        };
        self.allow_folding(&transaction)
            .map_err(failed(&self.path))?;
        transaction.commit().map_err(failed(&self.path))?;
        if let Some(commit) = counted {
            self.marking.note(commit, cache_kib == BULK_CACHE_KIB);
        }
        Ok(outcome)
    }

    /// Lets the engine fold the log into the file when it has grown, if there is room for what the file grows by: else it
    /// would take what room there is, and not get to its end.
    fn allow_folding(&self, writer: &Connection) -> rusqlite::Result<()> {
        let may_fold = self.has_room_to_fold(writer)?;
        if self.may_fold.swap(may_fold, Ordering::Relaxed) != may_fold {
            let pages = if may_fold { FOLD_AT_PAGES } else { 0 };
            writer.pragma_update(None, "wal_autocheckpoint", pages)?;
        }
        Ok(())
    }

    fn has_room_to_fold(&self, writer: &Connection) -> rusqlite::Result<bool> {
        let pages: u64 = writer
            .prepare_cached("PRAGMA page_count")?
            .query_row([], |row| row.get(0))?;
        let length = std::fs::metadata(&self.path).map_or(0, |file| file.len());
        let grows = (pages * u64::from(PAGE_BYTES)).saturating_sub(length);
        Ok(grows == 0
            || disk_space::free(&self.path).is_none_or(|free| free >= grows + FOLD_SPARES))
    }

    pub(crate) fn failed(&self) -> impl Fn(rusqlite::Error) -> StoreError + '_ {
        |error| match changed(&error) {
            None => failed(&self.path)(error),
            Some(changed) => StoreError::RecordDamaged {
                path: self.path.clone(),
                record: self
                    .read(|connection| named(connection, changed))
                    .unwrap_or_else(|_| changed.to_string()),
            },
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle_readers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Database {
    /// The engine folds the log when the last connection goes, unless it is told not to.
    fn drop(&mut self) {
        let writer = self.writer();
        if !self.has_room_to_fold(&writer).unwrap_or(true) {
            let keep = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
            let _ = writer.set_db_config(keep, true);
        }
    }
}

/// How a file is named that nobody writes while it is read.
fn as_it_is(path: &Path) -> PathBuf {
    let name = path.to_string_lossy();
    // These characters would end the name.
    let name = name
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    PathBuf::from(format!("file:{name}?immutable=1"))
}

pub(crate) fn connect(
    path: &Path,
    flags: OpenFlags,
    vfs: Option<&CStr>,
) -> rusqlite::Result<Connection> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs)?,
        None => Connection::open_with_flags(path, flags)?,
    };
    connection.set_prepared_statement_cache_capacity(64);
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    connection.execute_batch("PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY;")?;
    limit_cache(&connection, CACHE_KIB)?;
    Ok(connection)
}

/// Sets how much a connection keeps in memory; anything beyond is freed at once.
fn limit_cache(connection: &Connection, kib: i64) -> rusqlite::Result<()> {
    // A negative size counts KiB, not pages.
    connection.pragma_update(None, "cache_size", -kib)
}

/// An empty file becomes ours; a file of another program is left alone.
pub(super) fn claim(connection: &Connection, path: &Path) -> Result<()> {
    let number = |sql: &str| -> Result<i64> {
        connection
            .query_row(sql, [], |row| row.get(0))
            .map_err(failed(path))
    };
    let application_id = number("PRAGMA application_id")?;
    if application_id == APPLICATION_ID {
        return Ok(());
    }
    if application_id != 0 || number("SELECT count(*) FROM sqlite_schema")? != 0 {
        return Err(StoreError::Foreign {
            path: path.to_owned(),
            reason: "it is a database of another program".to_owned(),
        });
    }
    connection
        .pragma_update(None, "application_id", APPLICATION_ID)
        .map_err(failed(path))
}

/// A mark that may not be read does not say that the database went back in time.
fn refuse_unreadable(mark: &Path) -> Result<()> {
    match std::fs::File::open(mark) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(StoreError::io(mark, error))
        }
        _ => Ok(()),
    }
}

/// Turns an engine error into ours, naming the file.
pub(crate) fn failed(path: &Path) -> impl Fn(rusqlite::Error) -> StoreError + '_ {
    move |error| {
        let path = path.to_owned();
        let detail = error.to_string();
        if let Some(changed) = changed(&error) {
            let record = changed.to_string();
            return StoreError::RecordDamaged { path, record };
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => disk_space::full(path),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                match unreadable::cause(&path) {
                    Some(error) => StoreError::io(path, error),
                    None => StoreError::Corrupt { path, detail },
                }
            }
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                if is_unreadable(&path) {
                    return StoreError::Forbidden { path, detail };
                }
                StoreError::ReadOnly { path, detail }
            }
            Some(ErrorCode::SystemIoFailure) => io_failure(path, detail),
            // Our columns have the types we gave them, so another type is damage.
            None if is_misread(&error) => StoreError::Corrupt { path, detail },
            _ => StoreError::Engine { path, detail },
        }
    }
}

/// The damaged record that an error is about.
pub(super) fn changed(error: &rusqlite::Error) -> Option<&Changed> {
    match error {
        rusqlite::Error::FromSqlConversionFailure(_, _, cause) => cause.downcast_ref(),
        _ => None,
    }
}

/// What is wrong with a damaged record, with its name.
pub(super) fn named(connection: &Connection, changed: &Changed) -> rusqlite::Result<String> {
    let record = record_name(connection, changed)?;
    Ok(format!("record {record} is not what was written"))
}

/// A damaged record by its key and the names of its connection and stream.
pub(super) fn record_name(connection: &Connection, changed: &Changed) -> rusqlite::Result<String> {
    let sql = "SELECT connection_id, name FROM streams WHERE id = ?1";
    let (source, stream): (String, String) =
        connection.query_row(sql, [changed.stream], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let key = RecordKey::from_ordering_form(&changed.key);
    Ok(format!("'{key}' of {source}/{stream}"))
}

fn is_misread(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..)
    )
}

/// The engine reports a failing disk, a quota and a file size limit alike. Trying to write shows which it was.
fn io_failure(path: PathBuf, detail: String) -> StoreError {
    match try_to_write(&path) {
        Err(error) => StoreError::io(path, error),
        Ok(()) => StoreError::DiskFailed { path, detail },
    }
}

fn try_to_write(path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let log = std::fs::metadata(format!("{}-wal", path.display()));
    let end = log.map_or(0, |log| log.len());
    let file = tempfile::tempfile_in(folder)?;
    file.write_all_at(&[0; PAGE_BYTES as usize], end)?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use contract::time::Instant;

    use super::*;

    #[test]
    fn without_any_room_the_file_is_read_as_it_is() {
        // TR-33: the server starts and serves reads on a full disk.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a ?#% name");
        drop(Database::open(&path, Arc::new(Instant(0))).unwrap());
        let files = || std::fs::read_dir(folder.path()).unwrap().count();
        let before = files();
        let database = Database::open_to_read(&path, Arc::new(Instant(0))).unwrap();
        let tables = |connection: &Connection| {
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| {
                row.get::<_, i64>(0)
            })
        };
        assert!(database.read(tables).unwrap() > 10);
        assert!(database.transact(|_| Ok(())).is_err());
        assert_eq!(files(), before, "no log beside it");
    }

    #[test]
    fn without_room_for_the_shared_file_all_connections_see_the_same() {
        // TR-33: the server starts on a full disk, also where the log holds what the file has not.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records");
        let vfs = Some(WITHOUT_SHARED_FILE);
        let database = Database::open_to_write(&path, Arc::new(Instant(0)), vfs).unwrap();
        let count = |connection: &Connection| {
            let sql = "SELECT count(*) FROM meta WHERE name LIKE 'n%'";
            connection.query_row(sql, [], |row| row.get::<_, i64>(0))
        };
        for number in 0..3 {
            let written = database.transact(|transaction| {
                let sql = "INSERT INTO meta VALUES ('n' || ?1, 0)";
                Ok(transaction.execute(sql, [number])?)
            });
            written.unwrap();
            assert_eq!(database.read(count).unwrap(), number + 1);
        }
        assert!(!folder.path().join("records-shm").exists());
    }

    #[test]
    fn the_log_is_folded_into_the_file_only_where_there_is_room_for_it() {
        // TR-33: what was freed is not taken by the fold, and what the log holds is read from it.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records");
        let open = || Database::open(&path, Arc::new(Instant(0))).unwrap();
        let database = open();
        let write = |database: &Database| {
            let written = database.transact(|transaction| {
                let sql = "INSERT OR REPLACE INTO meta VALUES ('large', zeroblob(80000000))";
                Ok(transaction.execute(sql, [])?)
            });
            written.unwrap();
        };
        let length = || std::fs::metadata(&path).unwrap().len();
        let before = length();
        disk_space::pretended::FREE.set(Some(20_000_000));
        write(&database);
        drop(database);
        assert_eq!(length(), before, "neither by the commit nor at the end");
        let database = open();
        let large = |connection: &Connection| {
            let sql = "SELECT length(value) FROM meta WHERE name = 'large'";
            connection.query_row(sql, [], |row| row.get::<_, i64>(0))
        };
        assert_eq!(database.read(large).unwrap(), 80_000_000);
        let small = |database: &Database| {
            let written = database.transact(|transaction| {
                let sql = "INSERT OR REPLACE INTO meta VALUES ('small', 1)";
                Ok(transaction.execute(sql, [])?)
            });
            written.unwrap();
        };
        small(&database);
        assert_eq!(
            length(),
            before,
            "nor by the first commit after the next start"
        );
        disk_space::pretended::FREE.set(None);
        small(&database);
        small(&database);
        assert!(length() > 80_000_000);
    }

    #[test]
    fn a_disk_that_fails_is_told_as_that_and_not_as_full() {
        // TR-37: the true cause.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records");
        for code in [
            rusqlite::ffi::SQLITE_IOERR_WRITE,
            rusqlite::ffi::SQLITE_IOERR_FSYNC,
            rusqlite::ffi::SQLITE_IOERR_READ,
        ] {
            let cause = rusqlite::ffi::Error::new(code);
            let error = failed(&path)(rusqlite::Error::SqliteFailure(cause, None));
            assert!(matches!(error, StoreError::DiskFailed { .. }), "{error}");
            let words = error.to_string();
            assert!(
                !words.contains("space") && words.contains("pdpp backup"),
                "{words}"
            );
        }
        let eio = StoreError::io(&path, io::Error::from_raw_os_error(5));
        assert!(matches!(eio, StoreError::DiskFailed { .. }), "{eio}");
        assert!(eio.to_string().contains("Input/output error"), "{eio}");
        // The engine tells an error of reading as damage.
        let corrupt = || {
            let cause = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
            rusqlite::Error::SqliteFailure(cause, None)
        };
        let damaged = failed(&path)(corrupt());
        assert!(matches!(damaged, StoreError::Corrupt { .. }), "{damaged}");
        // Memory at no address cannot be read: this is the same error as of a disk.
        let failing = folder.path().join("failing");
        std::os::unix::fs::symlink("/proc/self/mem", &failing).unwrap();
        let error = failed(&failing)(corrupt());
        assert!(matches!(error, StoreError::DiskFailed { .. }), "{error}");
        let full = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL);
        let full = failed(&path)(rusqlite::Error::SqliteFailure(full, None));
        assert!(matches!(full, StoreError::Full { .. }), "{full}");
    }

    #[test]
    fn the_writer_keeps_much_in_memory_only_while_batches_come_in() {
        let folder = tempfile::tempdir().unwrap();
        let database =
            Database::open(&folder.path().join("records"), Arc::new(Instant(0))).unwrap();
        let kept = |connection: &Connection| {
            let kib: i64 = connection.query_row("PRAGMA cache_size", [], |row| row.get(0))?;
            Ok(-kib)
        };
        let limit = |transaction: &rusqlite::Transaction<'_>| Ok(kept(transaction)?);
        assert_eq!(database.transact(limit).unwrap(), CACHE_KIB);
        assert_eq!(database.transact_bulk(limit).unwrap(), BULK_CACHE_KIB);
        assert_eq!(database.transact(limit).unwrap(), CACHE_KIB);
        assert_eq!(database.read(kept).unwrap(), CACHE_KIB);
    }
}
