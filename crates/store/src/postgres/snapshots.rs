//! Copies of the index, from which a node that is new starts: it takes one over and replays what is missing.
//!
//! One node at a time makes them, under a lease whose epoch fences off whoever held it before. A copy has a row before it has
//! bytes, so an erasure sees it from its beginning, and its bytes go before its row does.

use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant as Moment};

use contract::id::BlobId;
use serde::{Deserialize, Serialize};

use super::PostgresStore;
use super::nodes::NOW;
use super::objects::Objects;
use super::pool::{Pool, Row, Tx};
use crate::blobs::receive;
use crate::index::engine::{copy_format, hex};
use crate::sqlite::directory::{create_private, prepare_copy};
use crate::{Result, StoreError};

/// How long a lease holds unless it is renewed, in microseconds. Each file renews it.
const LEASE: i64 = 300_000_000;
/// How often it is seen whether a copy is due.
const BETWEEN_LOOKS: Duration = Duration::from_mins(1);
/// A copy is due when so many changes are not in the last one, and a part of all of them: it takes as long as the index is large.
const CHANGES: u64 = 100_000;
const PART: u64 = 4;
/// The first format of the database whose nodes know that an erasure has to wait for copies.
const KNOWN_SINCE: i64 = 4;
/// How often a copy is looked for that was not replaced while it was fetched.
const ATTEMPTS: usize = 3;
/// Where a copy lies until it is whole.
const FETCHED: &str = ".fetched";

/// What this node knows of its own copying.
#[derive(Default)]
pub(super) struct Copying {
    /// Held while a copy is made, whose links keep what the index lets go.
    at_work: Mutex<()>,
    /// An erasure waits for it.
    hurry: AtomicBool,
    looked: Mutex<Option<Moment>>,
}

/// The files of a copy, by the hashes of their bytes.
#[derive(Serialize, Deserialize)]
struct Manifest {
    files: Vec<CopiedFile>,
}

#[derive(Serialize, Deserialize)]
struct CopiedFile {
    name: String,
    id: String,
}

fn prefix(id: &str) -> String {
    format!("snapshots/{id}/")
}

impl PostgresStore {
    /// Keeps a copy of the index for new nodes, if that is due and no other node is about to.
    pub(super) fn keep_due_snapshot(&self) -> Result<()> {
        {
            let mut looked = lock(&self.copying.looked);
            if looked.is_some_and(|last| last.elapsed() < BETWEEN_LOOKS) {
                return Ok(());
            }
            *looked = Some(Moment::now());
        }
        let sql = "SELECT version, (SELECT max(version) FROM snapshots WHERE owner_id = $1 AND format = $2 AND state = 'kept')
             FROM owners WHERE id = $1";
        let row = self.pool.query_one(sql, &[&self.owner, &copy_format()])?;
        let newest = row.get::<i64>(0)?.cast_unsigned();
        let copied = row.get::<Option<i64>>(1)?.unwrap_or(0).cast_unsigned();
        if newest.saturating_sub(copied) >= CHANGES.max(copied / PART) {
            self.keep_snapshot()?;
        }
        Ok(())
    }

    /// Keeps a copy of the index for new nodes now. Answers whether there is one: another node may be about to make one, or a
    /// node may run that does not know of them.
    pub fn keep_snapshot(&self) -> Result<bool> {
        let _at_work = lock(&self.copying.at_work);
        let id = hex(super::random()?);
        let Some(epoch) = self.begin_snapshot(&id)? else {
            return Ok(false);
        };
        let kept = self.write_snapshot(&id, epoch);
        if !matches!(kept, Ok(true)) {
            self.remove_snapshot(&id)?;
        }
        // Whoever wrote under an earlier epoch was fenced off, and what this one replaces is of no use any more.
        let replaced = if matches!(kept, Ok(true)) {
            format!("OR format <= {}", copy_format())
        } else {
            String::new()
        };
        self.sweep_snapshots(&format!("epoch < {epoch} AND (state <> 'kept' {replaced})"))?;
        self.remove_left_copies()?;
        kept
    }

    /// Takes the lease and notes that a copy is being made, with the erasures that this index holds nothing of.
    fn begin_snapshot(&self, id: &str) -> Result<Option<i64>> {
        self.pool.transact(|tx| {
            let old = "SELECT 1 FROM nodes JOIN node_indexes ON node = nodes.id WHERE owner_id = $1 AND format < $2 LIMIT 1";
            if !tx.query(old, &[&self.owner, &KNOWN_SINCE])?.is_empty() {
                return Ok(None);
            }
            let Some(epoch) = self.lease(tx)? else {
                return Ok(None);
            };
            let begun = tx.execute(
                "INSERT INTO snapshots (owner_id, id, format, version, mark, manifest, erased_to, epoch)
                 SELECT $1, $2, $3, 0, '', '', erased_to, $4 FROM node_indexes WHERE owner_id = $1 AND node = $5",
                &[&self.owner, &id, &copy_format(), &epoch, &self.options.node],
            )?;
            Ok((begun == 1).then_some(epoch))
        })
    }

    fn lease_name(&self) -> String {
        format!("snapshots of {}", self.owner)
    }

    /// The epoch of the lease, which is another one for every copy; `None` while another node has it.
    fn lease(&self, tx: &Tx<'_>) -> Result<Option<i64>> {
        let sql = format!(
            "INSERT INTO leases (name, holder, until, epoch) VALUES ($1, $2, {NOW} + $3, 1)
             ON CONFLICT (name) DO UPDATE SET holder = $2, until = {NOW} + $3, epoch = leases.epoch + 1
             WHERE leases.holder = $2 OR leases.until < {NOW} RETURNING epoch"
        );
        let session = &self.member.session;
        let row = tx.query_opt(&sql, &[&self.lease_name(), session, &LEASE])?;
        row.map(|row| row.get(0)).transpose()
    }

    /// Whether the lease is still that of this copy; then for some time more.
    fn renew(&self, tx: &Tx<'_>, epoch: i64) -> Result<bool> {
        let sql = format!("UPDATE leases SET until = {NOW} + $3 WHERE name = $1 AND epoch = $2");
        let renewed = tx.execute(&sql, &[&self.lease_name(), &epoch, &LEASE])?;
        Ok(renewed == 1)
    }

    /// Writes the files and then what names them. Answers whether it was not fenced off meanwhile.
    fn write_snapshot(&self, id: &str, epoch: i64) -> Result<bool> {
        let folder = prepare_copy(&self.options.data_dir, None, 0)?;
        let (version, mark) = self.index.copy_to(folder.path())?;
        let Some(mark) = mark else {
            return Ok(false);
        };
        let mut manifest = Manifest { files: Vec::new() };
        for entry in fs::read_dir(folder.path()).map_err(StoreError::at(folder.path()))? {
            let path = entry.map_err(StoreError::at(folder.path()))?.path();
            let name = crate::sqlite::blobs::name_of(&path);
            let mut file = File::open(&path).map_err(StoreError::at(&path))?;
            let received = self.objects.receive(&mut file)?;
            manifest.files.push(CopiedFile {
                name: name.clone(),
                id: received.id.to_string(),
            });
            self.objects
                .put(&format!("{}{name}", prefix(id)), &received)?;
            let is_hurried = self.copying.hurry.load(Ordering::Acquire);
            if is_hurried || !self.pool.transact(|tx| self.renew(tx, epoch))? {
                return Ok(false);
            }
        }
        let manifest = serde_json::to_string(&manifest)
            .map_err(|error| StoreError::engine(self.objects.place(id), error))?;
        self.pool.transact(|tx| {
            if !self.renew(tx, epoch)? {
                return Ok(false);
            }
            let kept = tx.execute(
                "UPDATE snapshots SET state = 'kept', version = $3, mark = decode($4, 'hex'), manifest = $5
                 WHERE owner_id = $1 AND id = $2 AND state = 'writing'",
                &[&self.owner, &id, &version.cast_signed(), &mark, &manifest],
            )?;
            Ok(kept == 1)
        })
    }

    /// Removes the bytes of a copy and then its row.
    fn remove_snapshot(&self, id: &str) -> Result<()> {
        self.pool.transact(|tx| {
            let sql = "UPDATE snapshots SET state = 'removing' WHERE owner_id = $1 AND id = $2";
            tx.execute(sql, &[&self.owner, &id])
        })?;
        self.objects.remove_all(&prefix(id))?;
        self.pool.transact(|tx| {
            let sql = "DELETE FROM snapshots WHERE owner_id = $1 AND id = $2";
            tx.execute(sql, &[&self.owner, &id]).map(drop)
        })
    }

    /// Removes the copies that a condition names.
    fn sweep_snapshots(&self, condition: &str) -> Result<()> {
        let sql = format!("SELECT id FROM snapshots WHERE owner_id = $1 AND {condition}");
        let found = self.pool.query(&sql, &[&self.owner])?;
        for row in &found {
            self.remove_snapshot(row.get(0)?)?;
        }
        Ok(())
    }

    /// Removes bytes of copies that have no row, which a node that was killed may have left.
    fn remove_left_copies(&self) -> Result<()> {
        for listed in self.objects.list("snapshots/")? {
            let id = listed.name.split('/').nth(1).unwrap_or_default();
            if listed.is_left && !self.has_snapshot(id)? {
                self.objects.remove_all(&prefix(id))?;
            }
        }
        Ok(())
    }

    fn has_snapshot(&self, id: &str) -> Result<bool> {
        let sql = "SELECT 1 FROM snapshots WHERE owner_id = $1 AND id = $2";
        let found = self.pool.query(sql, &[&self.owner, &id])?;
        Ok(!found.is_empty())
    }

    /// Runs something while no copy of this node holds what its index lets go.
    pub(super) fn without_copying<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.copying.hurry.store(true, Ordering::Release);
        let at_work = lock(&self.copying.at_work);
        self.copying.hurry.store(false, Ordering::Release);
        let outcome = work();
        drop(at_work);
        outcome
    }

    /// Removes copies that may hold something of the erasures up to this one. One that another node is writing goes when that
    /// node has noticed, or has lost its lease.
    pub(super) fn erase_snapshots(&self, begun: i64) -> Result<()> {
        let condition = format!(
            "erased_to < {begun} AND (state <> 'writing' OR NOT EXISTS (
                 SELECT 1 FROM leases WHERE name = 'snapshots of ' || owner_id AND leases.epoch = snapshots.epoch AND until > {NOW}
             ))"
        );
        self.sweep_snapshots(&condition)
    }
}

/// Fetches a copy into the folder of a node's index, if there is none yet. What goes wrong is no harm: the node then derives its
/// index from the records.
pub(super) fn fetch(pool: &Pool, owner: i64, objects: &dyn Objects, root: &Path) {
    let fetched = root.join(FETCHED);
    let _ = fs::remove_dir_all(&fetched);
    let has_index = fs::read_dir(root).is_ok_and(|mut entries| entries.next().is_some());
    for _ in 0..ATTEMPTS {
        if has_index {
            return;
        }
        match newest(pool, owner) {
            Ok(Some(row)) => {
                if fetch_one(&row, objects, &fetched).is_ok()
                    && fs::rename(&fetched, root.join("1")).is_ok()
                {
                    return;
                }
            }
            Ok(None) | Err(_) => break,
        }
    }
    let _ = fs::remove_dir_all(&fetched);
}

/// The newest copy that follows the history as it is, and missed no deletion that cannot be replayed any more.
fn newest(pool: &Pool, owner: i64) -> Result<Option<Row>> {
    let sql = "SELECT snapshots.id, manifest FROM snapshots JOIN owners ON owners.id = owner_id
         WHERE owner_id = $1 AND format = $2 AND state = 'kept' AND snapshots.version BETWEEN purged_to AND owners.version
           AND mark = (
               SELECT mark FROM marks WHERE marks.owner_id = $1 AND marks.version >= snapshots.version ORDER BY version LIMIT 1
           )
         ORDER BY snapshots.version DESC LIMIT 1";
    pool.query_opt(sql, &[&owner, &copy_format()])
}

fn fetch_one(row: &Row, objects: &dyn Objects, folder: &Path) -> Result<()> {
    let (id, manifest): (&str, &str) = (row.get(0)?, row.get(1)?);
    let broken = |what: String| StoreError::corrupt(objects.place(&prefix(id)), what);
    let manifest: Manifest =
        serde_json::from_str(manifest).map_err(|error| broken(error.to_string()))?;
    create_private(folder)?;
    for file in &manifest.files {
        // A name leads nowhere else.
        if file.name.contains('/') || file.name.contains("..") {
            return Err(broken(format!("{:?} is no name of a file", file.name)));
        }
        let Some((_, mut bytes)) = objects.open(&format!("{}{}", prefix(id), file.name))? else {
            return Err(broken(format!("{:?} is missing", file.name)));
        };
        let received = receive(folder, &mut bytes)?;
        if BlobId::parse(&file.id).ok().as_ref() != Some(&received.id) {
            return Err(broken(format!("{:?} is not what was written", file.name)));
        }
        let path = folder.join(&file.name);
        received
            .file
            .persist(&path)
            .map_err(|error| StoreError::io(&path, error.error))?;
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
