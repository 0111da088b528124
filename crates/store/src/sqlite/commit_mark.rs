//! The mark: a small file outside the database that says how far the database had come.
//!
//! Every transaction that changes something counts itself in the database, with a digest over all that were counted before.
//! When it is on disk, the same is written into the mark. So the mark may lag behind, after a crash, but never lead: a
//! database that is behind its mark lost what was acknowledged, revocations included. The engine cannot tell: without its
//! log, or with a cut one, a database is whole, only older.
//!
//! The file has two pages that are written in turn, each with a checksum, so that a torn write leaves the other.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as Moment};

use contract::time::{Clock, Instant};
use rusqlite::{Connection, OptionalExtension, Transaction};
use sha2::{Digest, Sha256};

use super::directory::sync_folder;
use super::newest_version;
use crate::inspection::Rollback;
use crate::{Result, StoreError};

const MAGIC: &[u8; 8] = b"pdppmrk1";
/// Each entry has a page of its own, so that no write touches both.
const PAGE_BYTES: usize = 4096;
const SECOND_PAGE: u64 = PAGE_BYTES as u64;
const COMMIT_BYTES: usize = 56;
/// Batches of records sync the mark no more often than this.
const SYNC_EVERY: Duration = Duration::from_millis(100);
/// Nor so often that syncing takes more than this share of the time, however slow the disk is.
const SYNC_SHARE: u32 = 32;
const COUNTED: &str = "commit";
const WENT_BACK: &str = "rolled_back";

/// A transaction that was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Commit {
    number: u64,
    version: u64,
    at: Instant,
    /// Over this one and all before it.
    digest: [u8; 32],
}

impl Commit {
    fn after(before: Option<Self>, version: u64, at: Instant) -> Result<Self, getrandom::Error> {
        // Two commits after the same one must differ, even if they change the same data at the same time.
        let mut chance = [0; 16];
        getrandom::fill(&mut chance)?;
        let number = before.map_or(0, |before| before.number) + 1;
        let mut hasher = Sha256::new();
        hasher.update(before.map_or([0; 32], |before| before.digest));
        for part in [
            &number.to_be_bytes(),
            &version.to_be_bytes(),
            &at.0.to_be_bytes(),
        ] {
            hasher.update(part);
        }
        hasher.update(chance);
        Ok(Self {
            number,
            version,
            at,
            digest: hasher.finalize().into(),
        })
    }

    fn to_bytes(self) -> [u8; COMMIT_BYTES] {
        let mut bytes = [0; COMMIT_BYTES];
        bytes[..8].copy_from_slice(&self.number.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.version.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.at.0.to_be_bytes());
        bytes[24..].copy_from_slice(&self.digest);
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (number, rest) = bytes.split_first_chunk::<8>()?;
        let (version, rest) = rest.split_first_chunk::<8>()?;
        let (at, digest) = rest.split_first_chunk::<8>()?;
        Some(Self {
            number: u64::from_be_bytes(*number),
            version: u64::from_be_bytes(*version),
            at: Instant(i64::from_be_bytes(*at)),
            digest: digest.try_into().ok()?,
        })
    }
}

/// Counts transactions, keeps the mark, and detects a rollback of the database.
pub(crate) struct Marking {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    kept: Mutex<Kept>,
    rollback: Mutex<Option<Rollback>>,
}

struct Kept {
    file: Option<MarkFile>,
    /// A rollback was detected and the database does not record it yet. Until it does, the mark stays as it is.
    is_untold: bool,
    /// The error that keeps the mark from being written.
    trouble: Option<String>,
    is_dirty: bool,
    synced: Moment,
    sync_took: Duration,
}

impl Marking {
    /// The mark at this path. Nothing is counted before [`Self::compare`].
    pub(crate) fn new(path: PathBuf, clock: Arc<dyn Clock>) -> Self {
        Self {
            path,
            clock,
            kept: Mutex::new(Kept {
                file: None,
                is_untold: false,
                trouble: None,
                is_dirty: false,
                synced: Moment::now(),
                sync_took: Duration::ZERO,
            }),
            rollback: Mutex::default(),
        }
    }

    /// Compares the database with the mark, and begins to count. A rollback that was found earlier and not accepted
    /// remains.
    pub(crate) fn compare(&self, connection: &Connection) -> rusqlite::Result<()> {
        let counted = last_counted(connection)?;
        let version = newest_version(connection)?;
        let known = known_rollback(connection)?;
        let marked = MarkFile::open(&self.path);
        let found = match &marked {
            Ok(Some((_, Some(marked)))) => behind(counted, version, *marked),
            Ok(Some((_, None))) => unmarked(counted, "is damaged"),
            Ok(None) => unmarked(counted, "is missing"),
            Err(_) => unmarked(counted, "cannot be read"),
        };
        let mut kept = self.kept();
        kept.is_untold = found.is_some();
        *self.rollback() = known.or(found);
        match marked {
            Ok(Some((file, Some(_)))) => kept.file = Some(file),
            Err(error) => kept.trouble = Some(error.to_string()),
            Ok(_) if kept.is_untold => {}
            // The new mark exists before anything is counted, so that no crash leaves a count without a mark.
            Ok(_) => kept.start_over(&self.path, counted),
        }
        Ok(())
    }

    /// How far the database went back, until the owner has accepted it.
    pub(crate) fn rolled_back(&self) -> Option<Rollback> {
        self.rollback().clone()
    }

    /// The error that keeps the mark from being written, while it lasts.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.kept().trouble.clone()
    }

    /// Counts a transaction, inside it. Without a mark nothing is counted.
    pub(crate) fn count(&self, transaction: &Transaction<'_>) -> rusqlite::Result<Option<Commit>> {
        let is_untold = {
            let kept = self.kept();
            if kept.file.is_none() && !kept.is_untold {
                return Ok(None);
            }
            kept.is_untold
        };
        if is_untold {
            self.tell(transaction)?;
        }
        let version = newest_version(transaction)?;
        let before = last_counted(transaction)?;
        let commit = Commit::after(before, version, self.clock.now())
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
        transaction
            .prepare_cached("INSERT OR REPLACE INTO meta VALUES (?1, ?2)")?
            .execute((COUNTED, commit.to_bytes().as_slice()))?;
        Ok(Some(commit))
    }

    /// Writes a transaction that is on disk into the mark. The transaction is acknowledged even if this fails.
    pub(crate) fn note(&self, commit: Commit, is_bulk: bool) {
        let mut kept = self.kept();
        if std::mem::take(&mut kept.is_untold) {
            kept.start_over(&self.path, Some(commit));
            return;
        }
        let Some(file) = &kept.file else { return };
        let written = file.write(commit);
        kept.is_dirty = true;
        let pause = SYNC_EVERY.max(kept.sync_took * SYNC_SHARE);
        let outcome = match written {
            Ok(()) if is_bulk && kept.synced.elapsed() < pause => Ok(()),
            Ok(()) => kept.sync(),
            failed => failed,
        };
        kept.trouble = outcome.err().map(|error| error.to_string());
    }

    /// Records the rollback in the database itself, so that nothing written since hides it.
    pub(crate) fn tell(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let Some(rollback) = self.rolled_back() else {
            return Ok(());
        };
        let text = serde_json::to_string(&rollback)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
        transaction
            .execute(
                "INSERT OR REPLACE INTO meta VALUES (?1, ?2)",
                (WENT_BACK, text),
            )
            .map(drop)
    }

    pub(crate) fn accepted(&self, counted: Option<Commit>) -> Result<Option<Rollback>> {
        let made = MarkFile::create(&self.path, counted)?;
        let mut kept = self.kept();
        kept.is_untold = false;
        kept.trouble = None;
        kept.file = Some(made);
        Ok(self.rollback().take())
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rollback(&self) -> MutexGuard<'_, Option<Rollback>> {
        self.rollback.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Marking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Marking")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Drop for Marking {
    fn drop(&mut self) {
        let mut kept = self.kept();
        if kept.is_dirty {
            let _ = kept.sync();
        }
    }
}

impl Kept {
    /// Makes the mark anew.
    fn start_over(&mut self, path: &Path, counted: Option<Commit>) {
        let made = MarkFile::create(path, counted);
        self.trouble = made.as_ref().err().map(ToString::to_string);
        self.file = made.ok();
    }

    fn sync(&mut self) -> Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let began = Moment::now();
        file.sync()?;
        self.synced = Moment::now();
        self.sync_took = began.elapsed();
        self.is_dirty = false;
        Ok(())
    }
}

/// The rollback of a database that has counted less than its mark.
fn behind(counted: Option<Commit>, version: u64, marked: Commit) -> Option<Rollback> {
    let number = counted.map_or(0, |counted| counted.number);
    if number > marked.number || counted == Some(marked) || marked.number == 0 {
        return None;
    }
    Some(Rollback {
        commits: (number < marked.number).then(|| marked.number - number),
        changes: marked.version.checked_sub(version),
        last_kept: counted.map(|counted| counted.at),
        last_lost: Some(marked.at),
        reason: if number < marked.number {
            "the database is older than what was acknowledged".to_owned()
        } else {
            "the database is another one than was written last".to_owned()
        },
    })
}

/// A counted database without a mark cannot prove to be the newest one.
fn unmarked(counted: Option<Commit>, state: &str) -> Option<Rollback> {
    counted.map(|counted| Rollback {
        commits: None,
        changes: None,
        last_kept: Some(counted.at),
        last_lost: None,
        reason: format!(
            "{} {state}, so nothing tells whether the database is the last one",
            super::directory::MARK
        ),
    })
}

fn last_counted(connection: &Connection) -> rusqlite::Result<Option<Commit>> {
    let bytes: Option<Vec<u8>> = meta(connection, COUNTED)?;
    Ok(bytes.as_deref().and_then(Commit::from_bytes))
}

/// The time of the last transaction that counted itself.
pub(crate) fn last_commit_at(connection: &Connection) -> rusqlite::Result<Option<Instant>> {
    Ok(last_counted(connection)?.map(|commit| commit.at))
}

fn known_rollback(connection: &Connection) -> rusqlite::Result<Option<Rollback>> {
    let text: Option<String> = meta(connection, WENT_BACK)?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}

fn meta<T: rusqlite::types::FromSql>(
    connection: &Connection,
    name: &str,
) -> rusqlite::Result<Option<T>> {
    connection
        .prepare_cached("SELECT value FROM meta WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()
}

/// Accepts the database as it is: it no longer records the rollback. [`Marking::accepted`] must follow.
pub(crate) fn accept(transaction: &Transaction<'_>) -> rusqlite::Result<Option<Commit>> {
    transaction.execute("DELETE FROM meta WHERE name = ?1", [WENT_BACK])?;
    last_counted(transaction)
}

/// Removes the count from a copy, so that a directory made of it begins a count of its own.
pub(crate) fn uncount(copy: &Connection) -> rusqlite::Result<()> {
    copy.execute("DELETE FROM meta WHERE name = ?1", [COUNTED])
        .map(drop)
}

struct MarkFile {
    path: PathBuf,
    file: File,
}

impl MarkFile {
    /// The file with the later of its two entries, `None` where both are damaged; `None` for the whole where there is no
    /// file.
    fn open(path: &Path) -> Result<Option<(Self, Option<Commit>)>> {
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io(path, error)),
        };
        let pages = [0, SECOND_PAGE].map(|at| read_page(&file, at));
        let latest = pages
            .into_iter()
            .flatten()
            .max_by_key(|commit| commit.number);
        let path = path.to_owned();
        Ok(Some((Self { path, file }, latest)))
    }

    /// A new file that replaces any before it, with space for both entries.
    fn create(path: &Path, counted: Option<Commit>) -> Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)
            .map_err(StoreError::at(path))?;
        let made = Self {
            path: path.to_owned(),
            file,
        };
        let none = Commit {
            number: 0,
            version: 0,
            at: Instant(0),
            digest: [0; 32],
        };
        let first = page(counted.unwrap_or(none));
        for at in [0, SECOND_PAGE] {
            let written = made.file.write_all_at(&first, at);
            written.map_err(StoreError::at(path))?;
        }
        made.file.sync_all().map_err(StoreError::at(path))?;
        sync_folder(path.parent().unwrap_or(Path::new(".")))?;
        Ok(made)
    }

    fn write(&self, commit: Commit) -> Result<()> {
        let at = (commit.number % 2) * SECOND_PAGE;
        let written = self.file.write_all_at(&page(commit), at);
        written.map_err(StoreError::at(&self.path))
    }

    fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(StoreError::at(&self.path))
    }
}

/// An entry as it is in the file. The whole page is written, so that the disk need not read it first.
fn page(commit: Commit) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PAGE_BYTES);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&commit.to_bytes());
    let sum = Sha256::digest(&bytes);
    bytes.extend_from_slice(&sum);
    bytes.resize(PAGE_BYTES, 0);
    bytes
}

fn read_page(file: &File, at: u64) -> Option<Commit> {
    let mut bytes = [0; MAGIC.len() + COMMIT_BYTES + 32];
    file.read_exact_at(&mut bytes, at).ok()?;
    let (entry, sum) = bytes.split_at(MAGIC.len() + COMMIT_BYTES);
    if Sha256::digest(entry).as_slice() != sum {
        return None;
    }
    Commit::from_bytes(entry.strip_prefix(MAGIC.as_slice())?)
}
