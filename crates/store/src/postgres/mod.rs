//! The store of several nodes: PostgreSQL holds the truth, and each node derives its index from it.
//!
//! Every row belongs to an owner; a store serves one of them. A change of records locks the owner's row, so one version
//! number counts all changes of an owner in the order of their commits.

mod address;
mod backup;
mod blobs;
mod by_row;
mod calls;
mod catalog;
mod connection;
mod declared_records;
mod erase;
mod failure;
mod grants;
mod inspect;
mod keeping;
mod nodes;
mod objects;
mod pool;
mod purge;
mod queue;
mod records;
mod registry;
mod replay;
mod row;
mod schema;
mod sealing;
mod snapshots;
mod sort;
mod sources;
mod statistics;
mod taking_over;
mod thinning;
mod together;
mod truth;
mod waiting;
mod walk;
mod write;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use contract::time::{Clock, Instant};

use self::address::Address;
use self::calls::Told;
use self::nodes::Membership;
pub use self::objects::BlobPlace;
use self::objects::Objects;
use self::pool::{Pool, Tx};
use self::queue::Queue;
pub use self::schema::{Migrated, migrate_at};
use self::sealing::{SealingKeys, sealing_keys};
use self::snapshots::Copying;
use self::sources::KnownSources;
use self::statistics::Measured;
pub use self::taking_over::TakenOver;
use self::truth::PostgresTruth;
use crate::index::answering::answers_with_index;
use crate::index::engine::hex;
use crate::index::truth::Truth;
use crate::index::{Folders, RecordIndex};
use crate::sqlite::directory::{self, DataDirectory};
use crate::sqlite::kept_clock::KeptClock;
use crate::sqlite::random;
use crate::{Result, StoreError};

#[derive(Clone)]
pub struct PostgresOptions {
    /// Where the database is (`postgres://…`). It may hold a password, so it is never printed.
    pub url: String,
    /// The authority that signed the server's certificate, in PEM form; without one, those that the machine trusts.
    pub ca: Option<PathBuf>,
    /// Whose data this store serves: the host name under which it is published.
    pub owner: String,
    /// Whether an owner who is not there yet is added although there are others.
    pub add_owner: bool,
    /// Where this node keeps its index.
    pub data_dir: PathBuf,
    /// Where all nodes keep blobs.
    pub blobs: BlobPlace,
    /// The name of this node among all.
    pub node: String,
    /// Who opens it, for the message to the next one who tries (`pdpp serve`).
    pub holder: String,
    pub clock: Arc<dyn Clock>,
    /// What all nodes share and nobody else knows; keys are derived from it.
    pub secret: [u8; 32],
    /// The secret that was in use before, or will be next: what other nodes sealed with it opens here too.
    pub other_secret: Option<[u8; 32]>,
}

/// One owner's data in a database that several nodes use.
pub struct PostgresStore {
    pool: Arc<Pool>,
    owner: i64,
    store_id: [u8; 16],
    sealing_keys: SealingKeys,
    sources: Arc<KnownSources>,
    truth: Arc<PostgresTruth>,
    index: RecordIndex,
    clock: Arc<KeptClock>,
    options: PostgresOptions,
    member: Membership,
    objects: Box<dyn Objects>,
    copying: Copying,
    queue: Queue,
    told: Told,
    measured: Measured,
    _directory: DataDirectory,
}

answers_with_index!(PostgresStore);

/// The owner's row, locked until the transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The version of the last change.
    pub(crate) version: u64,
    /// Another number for every state of declarations and connections, and a larger one for every later state.
    pub(crate) catalog: u64,
}

impl PostgresStore {
    /// Connects, brings the tables to the newest format, and finds the owner or adds it.
    pub fn open(options: PostgresOptions) -> Result<Self> {
        let address = Address::parse(&options.url, options.ca.as_deref())?;
        let node = format!("node {:?} of {}", options.node, address.place);
        let (directory, folder) =
            DataDirectory::open_for_node(&options.data_dir, &options.holder, &node)?;
        let pool = Arc::new(Pool::open(address)?);
        schema::migrate(&pool)?;
        let FoundOwner {
            id: owner,
            store_id,
            kept_key,
        } = find_or_add_owner(&pool, &options)?;
        let known = (owner, store_id, kept_key.as_deref());
        let sealing_keys = sealing_keys(&pool, known, &options)?;
        let member = Membership::register(&pool, &options, owner, folder)?;
        let (kept, own) = (hex(store_id), directory.path());
        let objects = objects::open(&options.blobs, &kept, own, &pool.waiting)?;
        snapshots::fetch(&pool, owner, &*objects, &directory.join(directory::INDEX));
        let sources = Arc::new(KnownSources::of(owner));
        sources.current(&pool)?;
        let file = directory.join(directory::TIME);
        let clock = KeptClock::open(file, Arc::clone(&options.clock))?;
        let sql = "SELECT latest_at FROM owners WHERE id = $1";
        clock.catch_up_with(Instant(
            pool.read(|tx| tx.query_one(sql, &[&owner])?.get(0))?,
        ));
        let clock = Arc::new(clock);
        let truth = PostgresTruth::new(Arc::clone(&pool), owner, Arc::clone(&sources));
        let truth = Arc::new(truth);
        let folders = Folders {
            index: directory.join(directory::INDEX),
            model: directory.join(directory::MODEL),
            vectors: directory.join(directory::VECTORS),
            store_id,
        };
        let truth_of_index: Arc<dyn Truth> = Arc::<PostgresTruth>::clone(&truth);
        let index = RecordIndex::new(truth_of_index, Arc::<KeptClock>::clone(&clock), folders)?;
        directory.sweep();
        index.sweep();
        Ok(Self {
            pool,
            owner,
            store_id,
            sealing_keys,
            sources,
            truth,
            index,
            clock,
            options,
            member,
            objects,
            copying: Copying::default(),
            queue: Queue::default(),
            told: Told::default(),
            measured: Measured::default(),
            _directory: directory,
        })
    }

    /// The servers and the database, for people.
    pub fn place(&self) -> &str {
        self.pool.place()
    }

    /// How often this node has asked the database so far; for measuring.
    pub fn round_trips(&self) -> u64 {
        self.pool.round_trips.load(Ordering::Relaxed)
    }

    /// Asks the database for nothing, which takes as long as anything at least takes; for measuring.
    pub fn ask_nothing(&self) -> Result<()> {
        self.pool.query("SELECT 1", &[]).map(drop)
    }

    /// Bytes of the records of all owners in the database, with their history and all that finds them; for measuring.
    pub fn bytes_in_database(&self) -> Result<u64> {
        let sql = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
             WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND (relname ~ '^records_[0-9]+$' OR relname IN ('versions', 'marks'))";
        let row = self.pool.query_one(sql, &[])?;
        Ok(row.get::<i64>(0)?.cast_unsigned())
    }

    /// What ties indexes and hashes to this owner's records.
    pub fn store_id(&self) -> [u8; 16] {
        self.store_id
    }

    /// The clock of the store: the one given when it was opened, but never earlier than any node has seen.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::<KeptClock>::clone(&self.clock)
    }

    /// The key that seals cursors: the same on every node, another for every owner.
    pub fn sealing_key(&self) -> [u8; 32] {
        self.sealing_keys.key
    }

    /// The key whose seals are good too, while the secret is replaced on one node after the other.
    pub fn other_sealing_key(&self) -> Option<[u8; 32]> {
        self.sealing_keys.other
    }

    /// Changes something while no other node writes this owner's records, declarations or connections.
    pub(crate) fn transact_locked<T>(
        &self,
        work: impl FnOnce(&Tx<'_>, Owner) -> Result<T>,
    ) -> Result<T> {
        self.pool.transact(|tx| {
            let owner = self.lock_owner(tx)?;
            work(tx, owner)
        })
    }

    /// Counts a change up to this version and marks it, within the transaction that has the owner locked. A bookmark is a
    /// version with its mark: where the mark is missing, history was rewritten.
    pub(crate) fn advance(&self, tx: &Tx<'_>, version: u64) -> Result<[u8; 16]> {
        let mark = random()?;
        tx.execute(
            "WITH counted AS (
                 UPDATE owners SET version = $2, marked = $2, last_mark = $3, latest_at = greatest(latest_at, $4) WHERE id = $1
             )
             INSERT INTO marks (owner_id, version, mark) VALUES ($1, $2, $3)",
            &[
                &self.owner,
                &version.cast_signed(),
                &mark.as_slice(),
                &self.clock.now().0,
            ],
        )?;
        Ok(mark)
    }

    /// A statement of its own: what follows sees everything that was committed before the lock was free. The lock leaves the
    /// key alone, so rows that only refer to the owner are inserted meanwhile.
    fn lock_owner(&self, tx: &Tx<'_>) -> Result<Owner> {
        let row = tx.query_one(
            "SELECT version, catalog FROM owners WHERE id = $1 FOR NO KEY UPDATE",
            &[&self.owner],
        )?;
        Ok(Owner {
            version: row.get::<i64>(0)?.cast_unsigned(),
            catalog: row.get::<i64>(1)?.cast_unsigned(),
        })
    }
}

struct FoundOwner {
    id: i64,
    store_id: [u8; 16],
    /// The key of the directory that moved here, as the database keeps it.
    kept_key: Option<Vec<u8>>,
}

fn find_or_add_owner(pool: &Pool, options: &PostgresOptions) -> Result<FoundOwner> {
    let host = options.owner.as_str();
    let id = random()?;
    let find = "SELECT id, store_id, sealing_key FROM owners WHERE host = $1";
    let row = pool.query_opt(find, &[&host])?;
    let row = match row {
        Some(row) => row,
        None => pool.transact(|tx| {
            if !options.add_owner {
                refuse_beside_others(tx, pool.place(), host)?;
            }
            tx.execute(
                "WITH added AS (
                     INSERT INTO owners (host, store_id) VALUES ($1, $2) ON CONFLICT (host) DO NOTHING RETURNING id
                 )
                 INSERT INTO chains (owner_id, hash, dropped_hash) SELECT id, $3, $3 FROM added",
                &[&host, &id.as_slice(), &[0_u8; 32].as_slice()],
            )?;
            tx.query_one(find, &[&host])
        })?,
    };
    let store_id: &[u8] = row.get(1)?;
    let damaged = |_| StoreError::Database {
        place: pool.place().to_owned(),
        detail: format!("the store id of {host:?} is damaged"),
    };
    Ok(FoundOwner {
        id: row.get(0)?,
        store_id: store_id.try_into().map_err(damaged)?,
        kept_key: row.get(2)?,
    })
}

/// A new address must not look as if all data were gone.
fn refuse_beside_others(tx: &Tx<'_>, place: &str, owner: &str) -> Result<()> {
    let found = tx.query("SELECT host FROM owners ORDER BY id LIMIT 4", &[])?;
    if found.is_empty() {
        return Ok(());
    }
    let mut others: Vec<&str> = found
        .iter()
        .take(3)
        .map(|row| row.get(0))
        .collect::<Result<_>>()?;
    if found.len() > others.len() {
        others.push("others");
    }
    Err(StoreError::UnknownOwner {
        place: place.to_owned(),
        owner: owner.to_owned(),
        others: others.join(", "),
    })
}

#[cfg(test)]
mod tests;
