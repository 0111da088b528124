//! The embedded store: `SQLite` for the truth, tantivy for the derived index, plain files for blobs.
//!
//! Every acknowledged change has a version, counted over the whole store. A batch is one transaction; the index follows
//! from memory while things go well and from the records when they did not.

mod aggregate;
mod backup;
mod blobs;
mod buckets;
mod by_time;
mod catalog;
mod changes;
mod column_test;
mod commit_mark;
mod declared_records;
mod deleted_by_owner;
mod digest;
pub mod directory;
pub(crate) mod disk_space;
mod documents;
mod erase;
mod extent;
mod finding;
mod grants;
mod groups;
mod index;
mod indexed_record;
mod inspect;
mod kept_clock;
mod layout;
mod meaning;
mod migrations;
mod passing_keys;
mod records;
mod registry;
mod remembered;
pub mod restore;
mod restrict;
mod search;
mod searched_fields;
mod select;
mod sources;
mod sqlite;
mod tally;
mod thinning;
mod truncated;
mod unreadable;
mod upkeep;
mod walk;
mod write;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use contract::time::Clock;
use rusqlite::OptionalExtension;

use self::directory::DataDirectory;
use self::disk_space::Reserve;
use self::extent::Extents;
use self::grants::{Endings, Pending};
use self::index::{OpenIndex, SearchIndex};
use self::kept_clock::KeptClock;
use self::meaning::MeaningState;
use self::passing_keys::PassingKeys;
use self::sources::Sources;
use self::sqlite::Database;
use crate::catalog::StreamRef;
use crate::keeping::{CountedTime, Dropped, Grown, KeepRules, Keeping, Retention};
use crate::search::{IndexStatus, Part, SearchRequest};
use crate::{Result, StoreError};

pub use self::digest::record_digest;
pub use self::index::tokenizer::WordTokenizer;
pub use self::meaning::VectorScan;

#[derive(Clone)]
pub struct OpenOptions {
    /// Who opens it, for the message to the next one who tries (`pdpp import`).
    pub holder: String,
    pub clock: Arc<dyn Clock>,
}

/// A data directory, opened by this process alone.
pub struct EmbeddedStore {
    directory: DataDirectory,
    database: Database,
    index: SearchIndex,
    sources: RwLock<Arc<Sources>>,
    /// Held while a declaration changes or a stream is indexed for one, so that neither misses the other.
    declaring: Mutex<()>,
    /// The version of the last acknowledged change.
    newest: AtomicU64,
    extents: Extents,
    passing_keys: PassingKeys,
    pending: Mutex<Pending>,
    endings: RwLock<Endings>,
    /// A background thread works off everything that takes long, so no read does.
    tended: AtomicBool,
    clock: Arc<KeptClock>,
    meaning: MeaningState,
    /// Parts of finding that are not at work, where it is measured what they bring.
    left_out: Vec<Part>,
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
        let sources = load_sources(&database)?;
        let newest = database.read(newest_version)?;
        let pending = Pending::open_beside(&directory, &database)?;
        let meaning = MeaningState::new(
            directory.join(directory::MODEL),
            directory.join(directory::VECTORS),
            store_id,
        );
        let store = Self {
            index: SearchIndex::new(directory.join(directory::INDEX), store_id, newest),
            directory,
            database,
            sources: RwLock::new(Arc::new(sources)),
            declaring: Mutex::new(()),
            newest: AtomicU64::new(newest),
            extents: Extents::default(),
            passing_keys: PassingKeys::default(),
            endings: RwLock::new(Endings::of(pending.ended().cloned())),
            pending: Mutex::new(pending),
            tended: AtomicBool::new(false),
            clock,
            meaning,
            left_out: Vec::new(),
            _reserve: Reserve::keep(path),
        };
        store.tidy()?;
        Ok(store)
    }

    /// The same store, which finds without some parts; for measuring.
    #[must_use]
    pub fn without(mut self, parts: &[Part]) -> Self {
        self.left_out = parts.to_vec();
        self
    }

    /// The request without the parts of finding that are left out, if any are.
    fn measured_request(&self, request: &SearchRequest) -> Option<SearchRequest> {
        if self.left_out.is_empty() {
            return None;
        }
        let mut request = request.clone();
        for scope in &mut request.scopes {
            let is_left_out = |part| self.left_out.contains(&part);
            scope.author.take_if(|_| is_left_out(Part::Authors));
            scope.conversation.take_if(|_| is_left_out(Part::Lending));
        }
        Some(request)
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
        Arc::clone(&self.sources.read().unwrap_or_else(PoisonError::into_inner))
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

    fn reload_sources(&self) -> Result<()> {
        let sources = load_sources(&self.database)?;
        *self.sources.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(sources);
        Ok(())
    }

    /// The version of the last acknowledged change.
    fn newest(&self) -> u64 {
        self.newest.load(Ordering::Acquire)
    }

    /// The index with everything acknowledged so far.
    ///
    /// Where a background thread works off what takes long, a read does not wait for that.
    fn current_index(&self) -> Result<Arc<OpenIndex>> {
        let open = self.open_index()?;
        if self.is_tended() && open.is_far_behind(self.newest()) {
            return Err(self.still_building(&open));
        }
        self.bring_up_to_date(&open, &mut |_| {})?;
        Ok(open)
    }

    /// The index, holding everything acknowledged so far, however long that takes.
    fn whole_index(&self, progress: &mut dyn FnMut(u64)) -> Result<Arc<OpenIndex>> {
        let open = self.open_index()?;
        self.bring_up_to_date(&open, progress)?;
        Ok(open)
    }

    fn open_index(&self) -> Result<Arc<OpenIndex>> {
        let open = self.index.open(self.sources().capacity())?;
        if let Some(path) = self.index.take_damaged() {
            self.note_index_damage(&path);
        }
        open.refuse_damaged()?;
        Ok(open)
    }

    fn bring_up_to_date(&self, open: &OpenIndex, progress: &mut dyn FnMut(u64)) -> Result<()> {
        if open.committed() >= self.newest() {
            return Ok(());
        }
        self.database.snapshot(|connection| {
            let source = changes::Replay {
                connection,
                store: self,
            };
            open.catch_up(&source, progress)
        })
    }

    fn is_tended(&self) -> bool {
        self.tended.load(Ordering::Acquire)
    }

    /// How far the index is, without bringing it any further.
    fn status(&self) -> Result<IndexStatus> {
        let rebuilding = self.database.read(|connection| {
            connection.query_row(
                "SELECT count(*) FROM reindexing JOIN records USING (stream_id)
                 WHERE data IS NOT NULL AND row_id BETWEEN next_row AND last_row",
                [],
                |row| row.get(0),
            )
        })?;
        let written = self.newest();
        let indexed = self.index.committed(self.sources().capacity());
        let opened = self.index.opened();
        let (taken, building) = match &opened {
            Some(open) => (open.staged(), open.is_far_behind(written)),
            None => (indexed, written.saturating_sub(indexed) > index::WINDOW),
        };
        Ok(IndexStatus {
            written,
            indexed,
            taken: taken.min(written),
            building,
            rebuilding,
            records: self.database.read(inspect::kept)?,
        })
    }

    /// Streams whose newly declared fields are not fully indexed yet.
    fn rebuilding_streams(&self, sources: &Sources) -> Result<Vec<StreamRef>> {
        let ids: Vec<i64> = self.database.read(|connection| {
            connection
                .prepare_cached("SELECT stream_id FROM reindexing")?
                .query_map([], |row| row.get(0))?
                .collect()
        })?;
        Ok(ids
            .into_iter()
            .filter_map(|id| sources.by_id(id).map(|entry| entry.stream.clone()))
            .collect())
    }
}

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

fn load_sources(database: &Database) -> Result<Sources> {
    database.read_with(|connection| Sources::load(connection, database.path()))
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
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|error| StoreError::Engine {
            path: "/dev/urandom".into(),
            detail: error.to_string(),
        })?;
        transaction
            .execute(
                "INSERT OR REPLACE INTO meta VALUES ('store_id', ?1)",
                [id.as_slice()],
            )
            .map_err(database.failed())?;
        Ok(id)
    })
}

/// The version of the last acknowledged change, as the database knows it.
fn newest_version(connection: &rusqlite::Connection) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT value FROM meta WHERE name = 'version'")?
        .query_row([], |row| row.get(0))
        .optional()
        .map(Option::unwrap_or_default)
}

fn set_newest_version(connection: &rusqlite::Connection, version: u64) -> rusqlite::Result<()> {
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
        let options = OpenOptions {
            holder: "a test".to_owned(),
            clock: Arc::new(Instant(0)),
        };
        EmbeddedStore::open(path, options).unwrap()
    }
}
