//! The embedded store: `SQLite` for the truth, tantivy for the derived index, plain files for blobs.
//!
//! Every acknowledged change has a version, counted over the whole store. A batch is one transaction; the index follows
//! from memory while things go well and from the records when they did not.

pub(crate) mod backup;
pub(crate) mod blobs;
mod catalog;
mod changes;
mod commit_mark;
pub(crate) mod database;
mod declared_records;
mod deleted_by_owner;
pub(crate) mod digest;
pub mod directory;
mod erase;
pub(crate) mod grants;
pub(crate) mod inspect;
pub(crate) mod kept_clock;
mod migrations;
mod records;
mod registry;
pub mod restore;
mod sources;
mod thinning;
mod truncated;
mod truth;
pub(crate) mod tx_error;
mod unreadable;
pub(crate) mod walk;
mod write;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use contract::time::Clock;
use rusqlite::OptionalExtension;

use self::database::Database;
use self::directory::DataDirectory;
use self::grants::{Endings, Pending};
use self::kept_clock::KeptClock;
use self::truth::SqliteTruth;
use crate::disk_space::{self, Reserve};
use crate::index::answering::answers_with_index;
use crate::index::sources::Sources;
use crate::index::truth::Truth;
use crate::index::{Folders, RecordIndex};
use crate::keeping::{CountedTime, Dropped, Grown, KeepRules, Keeping, Retention};
use crate::nodes::Nodes;
use crate::search::Part;
use crate::{Result, StoreError};

#[derive(Clone)]
pub struct OpenOptions {
    /// Who opens it, for the message to the next one who tries (`pdpp import`).
    pub holder: String,
    pub clock: Arc<dyn Clock>,
}

impl OpenOptions {
    pub fn new(holder: impl Into<String>, clock: Arc<dyn Clock>) -> Self {
        let holder = holder.into();
        Self { holder, clock }
    }
}

/// A data directory, opened by this process alone.
pub struct EmbeddedStore {
    directory: DataDirectory,
    pub(crate) database: Arc<Database>,
    truth: Arc<SqliteTruth>,
    index: RecordIndex,
    /// Held while a declaration changes, from the comparison with the one before.
    declaring: Mutex<()>,
    pending: Mutex<Pending>,
    endings: RwLock<Endings>,
    clock: Arc<KeptClock>,
    /// Dropped last: the database frees space when it is closed.
    _reserve: Reserve,
}

impl EmbeddedStore {
    /// Opens the directory, creating it if need be.
    pub fn open(path: &Path, options: OpenOptions) -> Result<Self> {
        let directory = DataDirectory::open(path, &options.holder)?;
        disk_space::give_back(path);
        let clock = KeptClock::open(directory.join(directory::TIME), options.clock)?;
        let clock = Arc::new(clock);
        let database = Database::open(
            &directory.join(directory::DATABASE),
            Arc::<KeptClock>::clone(&clock),
        )?;
        if clock.is_lost()
            && let Some(last) = database.read(commit_mark::last_commit_at)?
        {
            clock.resume_after(last);
        }
        let store_id = store_id(&database)?;
        let database = Arc::new(database);
        let truth = SqliteTruth::load(directory.path().to_owned(), Arc::clone(&database))?;
        let truth = Arc::new(truth);
        let pending = Pending::open_beside(&directory, &database)?;
        let folders = Folders {
            index: directory.join(directory::INDEX),
            model: directory.join(directory::MODEL),
            vectors: directory.join(directory::VECTORS),
            store_id,
        };
        let truth_of_index: Arc<dyn Truth> = Arc::<SqliteTruth>::clone(&truth);
        let index = RecordIndex::new(truth_of_index, Arc::<KeptClock>::clone(&clock), folders)?;
        let store = Self {
            index,
            directory,
            database,
            truth,
            declaring: Mutex::new(()),
            endings: RwLock::new(Endings::new(pending.ended().cloned())),
            pending: Mutex::new(pending),
            clock,
            _reserve: Reserve::keep(path),
        };
        store.tidy()?;
        Ok(store)
    }

    /// The same store, which finds without some parts; for measuring.
    #[must_use]
    pub fn without(mut self, parts: &[Part]) -> Self {
        self.index.leave_out(parts);
        self
    }

    /// Removes what a killed process left behind, and finishes its work.
    fn tidy(&self) -> Result<()> {
        self.directory.sweep();
        self.index.sweep();
        // A blob that cannot be moved now can be read where it is.
        let _ = self.settle_arrived();
        // A row without a digest is read as before.
        let _ = self.fill_digests();
        // Disclosures that cannot be written now stay where they are, durable, and are written with the next.
        let _ = self.settle_disclosures();
        self.resume_erasing()
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The clock of the store: the one given when it was opened, but never earlier than it has been.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::<KeptClock>::clone(&self.clock)
    }

    /// The key that seals cursors; made on first use.
    pub fn sealing_key(&self) -> Result<[u8; 32]> {
        self.directory.sealing_key()
    }

    /// The sources as they are now; a stable view for one operation.
    fn sources(&self) -> Arc<Sources> {
        self.truth.sources()
    }

    /// What has ended although the database does not say so.
    fn endings(&self) -> RwLockReadGuard<'_, Endings> {
        self.endings.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn endings_mut(&self) -> RwLockWriteGuard<'_, Endings> {
        self.endings.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn declaring(&self) -> MutexGuard<'_, ()> {
        self.declaring
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

answers_with_index!(EmbeddedStore);

impl Nodes for EmbeddedStore {}

impl Keeping for EmbeddedStore {
    fn time(&self) -> CountedTime {
        self.clock.time()
    }

    fn reset_time(&self) -> Result<CountedTime> {
        self.clock.reset()
    }

    fn grown(&self) -> Result<Grown> {
        self.database.read(|connection| {
            connection.query_row(
                "SELECT log.*, versions.* FROM
                 (SELECT count(*), coalesce(sum(octet_length(entry)), 0) FROM disclosures) AS log,
                 (SELECT count(*), coalesce(sum(octet_length(data)), 0) FROM versions) AS versions",
                [],
                |row| {
                    Ok(Grown {
                        log_entries: row.get(0)?,
                        log_bytes: row.get(1)?,
                        versions: row.get(2)?,
                        version_bytes: row.get(3)?,
                    })
                },
            )
        })
    }

    fn drop_old(&self, rules: KeepRules) -> Result<Dropped> {
        let now = self.clock.now();
        Ok(Dropped {
            log_entries: self.drop_log(Retention {
                keep: rules.log,
                now,
            })?,
            versions: self.thin_versions(Retention {
                keep: rules.versions,
                now,
            })?,
        })
    }
}

/// Reads the store's identity, given at creation: it ties the index and its hashes to these records.
fn store_id(database: &Database) -> Result<[u8; 16]> {
    let found: Option<Vec<u8>> = database.read(|connection| {
        let sql = "SELECT value FROM meta WHERE name = 'store_id'";
        connection.query_row(sql, [], |row| row.get(0)).optional()
    })?;
    if let Some(id) = found.and_then(|bytes| <[u8; 16]>::try_from(bytes).ok()) {
        return Ok(id);
    }
    database.transact(|transaction| {
        let id = random()?;
        transaction.execute(
            "INSERT OR REPLACE INTO meta VALUES ('store_id', ?1)",
            [id.as_slice()],
        )?;
        Ok(id)
    })
}

pub(crate) fn random() -> Result<[u8; 16]> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| StoreError::engine("/dev/urandom", error))?;
    Ok(bytes)
}

/// The version of the last acknowledged change, as the database knows it.
pub(crate) fn newest_version(connection: &rusqlite::Connection) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT value FROM meta WHERE name = 'version'")?
        .query_row([], |row| row.get(0))
        .optional()
        .map(Option::unwrap_or_default)
}

pub(crate) fn set_newest_version(
    connection: &rusqlite::Connection,
    version: u64,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO meta VALUES ('version', ?1)")?
        .execute([version])
        .map(drop)
}

/// What unit tests of this module share.
#[cfg(test)]
mod testing {
    use super::{Arc, EmbeddedStore, OpenOptions, Path};
    use contract::time::Instant;

    pub(super) fn open(path: &Path) -> EmbeddedStore {
        let options = OpenOptions::new("a test", Arc::new(Instant(0)));
        EmbeddedStore::open(path, options).unwrap()
    }
}
