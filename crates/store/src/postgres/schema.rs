//! The tables, and how a database gets them: numbered changes, all missing ones in one transaction.
//!
//! Nodes that start together take turns by an advisory lock. The database also keeps the oldest format that a node must know
//! to use it, so that an older node refuses rather than misreads.

use std::path::Path;

use super::address::Address;
use super::pool::{Pool, Tx};
use crate::{Result, StoreError};

/// Every format ever released; the position plus one is its number.
const MIGRATIONS: &[&str] = &[
    include_str!("schema/0001.sql"),
    include_str!("schema/0002.sql"),
    include_str!("schema/0003.sql"),
    include_str!("schema/0004.sql"),
    include_str!("schema/0005.sql"),
    include_str!("schema/0006.sql"),
    include_str!("schema/0007.sql"),
    include_str!("schema/0008.sql"),
    include_str!("schema/0009.sql"),
];

/// The oldest format that nodes must know to use the newest. It rises with a change that removes something.
const MIN_READER: i64 = 1;

/// Any number that other programs are unlikely to lock.
const LOCK: i64 = 0x7064_7070_0001;

/// Says whose tables these are.
const APPLICATION: &str = "pdpp";

pub(super) struct Format {
    version: i64,
    min_reader: i64,
}

/// The newest format that this release knows.
pub(super) fn newest() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// Brings the database to the newest format, or says why it cannot.
pub(super) fn migrate(pool: &Pool) -> Result<()> {
    // Most starts find everything in place and need no lock.
    let found = pool.read(|tx| format(tx, pool.place()))?;
    if found.is_some_and(|found| found.version >= newest()) {
        return Ok(());
    }
    pool.transact(|tx| {
        tx.query("SELECT pg_advisory_xact_lock($1)", &[&LOCK])?;
        let found = format(tx, pool.place())?;
        if found.is_none() {
            refuse_foreign(tx, pool.place())?;
            tx.batch(
                "CREATE TABLE schema_version (application text NOT NULL, version bigint NOT NULL, min_reader bigint NOT NULL)",
            )?;
            tx.execute(
                "INSERT INTO schema_version VALUES ($1, 0, 0)",
                &[&APPLICATION],
            )?;
        }
        let done = found.map_or(0, |found| usize::try_from(found.version).unwrap_or(0));
        for sql in MIGRATIONS.iter().skip(done) {
            tx.batch(sql)?;
        }
        tx.execute(
            "UPDATE schema_version SET version = greatest(version, $1), min_reader = greatest(min_reader, $2)",
            &[&newest(), &MIN_READER],
        )?;
        Ok(())
    })
}

/// The format of a database, and the oldest one that a node must know to use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migrated {
    pub format: i64,
    pub oldest: i64,
}

/// Brings a database to the newest format. Where that is to be finished, no earlier release uses it from then on, which is
/// refused while a node of one is registered.
pub fn migrate_at(url: &str, ca: Option<&Path>, finish: bool) -> Result<Migrated> {
    let pool = Pool::open(Address::parse(url, ca)?)?;
    migrate(&pool)?;
    pool.transact(|tx| {
        tx.query("SELECT pg_advisory_xact_lock($1)", &[&LOCK])?;
        if finish {
            let older = tx.query(
                "SELECT id FROM nodes WHERE format < $1 ORDER BY id",
                &[&newest()],
            )?;
            let older: Vec<String> = older.iter().map(|row| row.get(0)).collect::<Result<_>>()?;
            if !older.is_empty() {
                return Err(StoreError::OlderNodes(older.join(", ")));
            }
            let sql = "UPDATE schema_version SET min_reader = greatest(min_reader, $1)";
            tx.execute(sql, &[&newest()])?;
        }
        let found = format(tx, pool.place())?;
        found
            .map(|found| Migrated {
                format: found.version,
                oldest: found.min_reader,
            })
            .ok_or(StoreError::Stopped)
    })
}

/// The format of the database, if it has one. One that this release must not use is refused.
pub(super) fn format(tx: &Tx<'_>, place: &str) -> Result<Option<Format>> {
    let foreign = |reason: &str| StoreError::ForeignDatabase {
        place: place.to_owned(),
        reason: reason.to_owned(),
    };
    let columns = tx.query(
        "SELECT column_name::text FROM information_schema.columns
         WHERE table_schema = current_schema() AND table_name = 'schema_version'",
        &[],
    )?;
    if columns.is_empty() {
        return Ok(None);
    }
    let names: Vec<String> = columns
        .iter()
        .map(|row| row.get(0))
        .collect::<Result<_>>()?;
    if !["application", "version", "min_reader"]
        .iter()
        .all(|name| names.iter().any(|found| found == name))
    {
        return Err(foreign("its table schema_version is of another program"));
    }
    let rows = tx.query(
        "SELECT application, version, min_reader FROM schema_version",
        &[],
    )?;
    let [row] = rows.as_slice() else {
        return Err(foreign("its table schema_version does not have one row"));
    };
    if row.get::<&str>(0)? != APPLICATION {
        return Err(foreign("its tables are of another program"));
    }
    let found = Format {
        version: row.get(1)?,
        min_reader: row.get(2)?,
    };
    if found.min_reader > newest() {
        return Err(StoreError::NewerDatabase {
            place: place.to_owned(),
            found: found.min_reader,
            supported: newest(),
        });
    }
    Ok(Some(found))
}

/// Refuses a database that this release must not use, or that has lost its tables.
pub(super) fn require(tx: &Tx<'_>, place: &str) -> Result<()> {
    let found = format(tx, place)?;
    found.map(drop).ok_or_else(|| StoreError::ForeignDatabase {
        place: place.to_owned(),
        reason: "it has no table schema_version".to_owned(),
    })
}

/// A database in which another program has tables of its own is left alone.
fn refuse_foreign(tx: &Tx<'_>, place: &str) -> Result<()> {
    let tables = tx.query(
        "SELECT table_name::text FROM information_schema.tables
         WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' ORDER BY table_name LIMIT 1",
        &[],
    )?;
    match tables.first() {
        None => Ok(()),
        Some(row) => Err(StoreError::ForeignDatabase {
            place: place.to_owned(),
            reason: format!(
                "it has a table {:?} of another program",
                row.get::<&str>(0)?
            ),
        }),
    }
}
