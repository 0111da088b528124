//! The nodes of the database. Each is registered with the version its index has on disk, and says every second that it lives.
//!
//! Times are the database's, so that clocks of nodes need not agree. An erasure is finished when every registered node has
//! rewritten what still held it; one that is away keeps it open until it is back or forgotten.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant as Moment};

use contract::time::Instant;

use super::pool::{Pool, Tx};
use super::{PostgresOptions, PostgresStore, random, schema};
use crate::disk_space;
use crate::index::engine::hex;
use crate::nodes::{Node, NodeState, Nodes};
use crate::search::Search as _;
use crate::{Result, StoreError};

/// The time of the database in microseconds.
pub(super) const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
/// How long a node may be silent before it counts as away.
const SILENCE: i64 = 10_000_000;
/// How often a node says that it lives.
const BETWEEN_BEATS: Duration = Duration::from_secs(1);

/// This node among the others.
pub(super) struct Membership {
    /// Another one for every start.
    pub(super) session: String,
    folder: String,
    beaten: Mutex<Option<Moment>>,
    /// The index had everything once, so what is missing now is replayed in a moment.
    caught_up: AtomicBool,
}

/// What a node hears when it says that it lives.
struct Heard {
    erasures_begun: i64,
    erased_to: i64,
    /// A copy of an index may hold something that was erased.
    is_copied: bool,
    /// Bytes of blobs are there that were erased.
    is_marked: bool,
}

/// What [`Heard`] is made of.
const HEARD: &str = "owners.erasures_begun, node_indexes.erased_to, EXISTS (
    SELECT 1 FROM snapshots WHERE snapshots.owner_id = owners.id AND snapshots.erased_to < owners.erasures_begun
), EXISTS (SELECT 1 FROM blobs WHERE blobs.owner_id = owners.id AND state = 'deleting')";

impl Membership {
    pub(super) fn register(
        pool: &Pool,
        options: &PostgresOptions,
        owner: i64,
        folder: String,
    ) -> Result<Self> {
        let member = Self {
            session: hex(random()?),
            folder,
            beaten: Mutex::default(),
            caught_up: AtomicBool::new(false),
        };
        pool.transact(|tx| member.enter(tx, &options.node, owner))?;
        Ok(member)
    }

    /// Takes the name, unless a node with another folder runs under it.
    fn enter(&self, tx: &Tx<'_>, node: &str, owner: i64) -> Result<()> {
        let sql = format!(
            "SELECT folder, left_at IS NULL AND seen_at > {NOW} - $2 FROM nodes WHERE id = $1 FOR UPDATE"
        );
        let known = tx.query_opt(&sql, &[&node, &SILENCE])?;
        if let Some(row) = known
            && row.get::<&str>(0)? != self.folder
        {
            if row.get(1)? {
                return Err(StoreError::NodeRuns(node.to_owned()));
            }
            // Its disk may hold what other owners erased.
            let others = "SELECT 1 FROM node_indexes WHERE node = $1 AND owner_id <> $2 LIMIT 1";
            if !tx.query(others, &[&node, &owner])?.is_empty() {
                return Err(StoreError::NodeOfOthers(node.to_owned()));
            }
            tx.execute("DELETE FROM node_indexes WHERE node = $1", &[&node])?;
        }
        let sql = format!(
            "INSERT INTO nodes (id, build, format, seen_at, folder, session) VALUES ($1, $2, $3, {NOW}, $4, $5)
             ON CONFLICT (id) DO UPDATE SET build = $2, format = $3, seen_at = {NOW}, folder = $4, session = $5, left_at = NULL"
        );
        let build = env!("CARGO_PKG_VERSION");
        tx.execute(
            &sql,
            &[
                &node,
                &build,
                &schema::newest(),
                &self.folder,
                &self.session,
            ],
        )?;
        // Nothing is known yet of what its index holds.
        tx.execute(
            "INSERT INTO node_indexes (node, owner_id, version, erased_to) VALUES ($1, $2, 0, 0) ON CONFLICT DO NOTHING",
            &[&node, &owner],
        )
        .map(drop)
    }

    /// Whether it is time to say again that this node lives.
    fn is_due(&self) -> bool {
        let mut beaten = self.beaten.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = beaten.is_none_or(|last| last.elapsed() >= BETWEEN_BEATS);
        if is_due {
            *beaten = Some(Moment::now());
        }
        is_due
    }
}

impl PostgresStore {
    fn beat(&self) -> Result<Heard> {
        let version = self.index.committed().cast_signed();
        let node = &self.options.node;
        self.pool.transact(|tx| {
            let sql = format!(
                "WITH seen AS (
                     UPDATE nodes SET seen_at = {NOW}, left_at = NULL WHERE id = $1 AND session = $2 RETURNING id
                 )
                 UPDATE node_indexes SET version = $4 FROM owners, seen
                 WHERE node = seen.id AND owner_id = $3 AND owners.id = $3 RETURNING {HEARD}"
            );
            let member = &self.member;
            let heard = tx.query_opt(&sql, &[node, &member.session, &self.owner, &version])?;
            let heard = match heard {
                Some(row) => row,
                None => self.enter_again(tx, node)?,
            };
            Ok(Heard {
                erasures_begun: heard.get(0)?,
                erased_to: heard.get(1)?,
                is_copied: heard.get(2)?,
                is_marked: heard.get(3)?,
            })
        })
    }

    /// A node that was forgotten while it runs is a new one. One whose name another took is none.
    fn enter_again(&self, tx: &Tx<'_>, node: &str) -> Result<super::pool::Row> {
        let sql = "SELECT 1 FROM nodes WHERE id = $1 AND session <> $2";
        if !tx.query(sql, &[&node, &self.member.session])?.is_empty() {
            return Err(StoreError::NodeRuns(node.to_owned()));
        }
        self.member.enter(tx, node, self.owner)?;
        let sql = format!(
            "SELECT {HEARD} FROM owners JOIN node_indexes ON owner_id = id WHERE id = $1 AND node = $2"
        );
        tx.query_one(&sql, &[&self.owner, &node])
    }

    /// Removes what was erased from the disk of this node, and says so.
    pub(super) fn finish_erasing(&self) -> Result<()> {
        // Another erasure may begin meanwhile, which this one does not finish.
        let begun: i64 = self.pool.read(|tx| {
            let sql = "SELECT erasures_begun FROM owners WHERE id = $1";
            tx.query_one(sql, &[&self.owner])?.get(0)
        })?;
        self.without_copying(|| {
            self.index.expunge()?;
            self.index.rewrite_vectors()
        })?;
        self.erase_snapshots(begun)?;
        self.pool.transact(|tx| {
            tx.execute(
                "UPDATE node_indexes SET erased_to = greatest(erased_to, $3) WHERE node = $1 AND owner_id = $2",
                &[&self.options.node, &self.owner, &begun],
            )?;
            self.count_finished(tx)
        })
    }

    /// An erasure is finished when no registered node and no copy of an index holds anything of it, and no blob has its bytes.
    fn count_finished(&self, tx: &Tx<'_>) -> Result<()> {
        tx.execute(
            "UPDATE owners SET erasures_finished = greatest(erasures_finished, (
                 SELECT least(erasures_begun, min(erased_to), (SELECT min(erased_to) FROM snapshots WHERE owner_id = $1))
                 FROM node_indexes WHERE owner_id = $1
             )) WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM blobs WHERE owner_id = $1 AND state = 'deleting')",
            &[&self.owner],
        )
        .map(drop)
    }

    /// Whether another node that runs has not come so far, as it says.
    pub(super) fn is_any_late(&self, version: i64) -> Result<bool> {
        let sql = format!(
            "SELECT 1 FROM nodes JOIN node_indexes ON node = id
             WHERE owner_id = $1 AND id <> $2 AND version < $3 AND left_at IS NULL AND seen_at > {NOW} - $4 LIMIT 1"
        );
        let node = &self.options.node;
        let late = self
            .pool
            .query(&sql, &[&self.owner, node, &version, &SILENCE])?;
        Ok(!late.is_empty())
    }

    /// The names of nodes whose disks may hold bytes of what was erased.
    pub(super) fn nodes_holding_erased(&self) -> Result<Vec<String>> {
        let rows = self.pool.query(
            "SELECT node FROM node_indexes JOIN owners ON id = owner_id
                 WHERE owner_id = $1 AND erased_to < erasures_begun ORDER BY node",
            &[&self.owner],
        )?;
        rows.iter().map(|row| row.get(0)).collect()
    }
}

impl Nodes for PostgresStore {
    fn nodes(&self) -> Result<Vec<Node>> {
        let sql = format!(
            "SELECT nodes.id, build, seen_at, left_at IS NOT NULL, seen_at > {NOW} - $2,
                 owners.version - node_indexes.version, erased_to < erasures_begun
             FROM nodes JOIN node_indexes ON node = nodes.id JOIN owners ON owners.id = owner_id
             WHERE owner_id = $1 ORDER BY nodes.id"
        );
        let rows = self.pool.query(&sql, &[&self.owner, &SILENCE])?;
        let nodes = rows.iter().map(|row| {
            let name: String = row.get(0)?;
            Ok(Node {
                is_this: name == self.options.node,
                name,
                build: row.get(1)?,
                seen_at: Instant(row.get(2)?),
                state: match (row.get(3)?, row.get(4)?) {
                    (true, _) => NodeState::Stopped,
                    (false, true) => NodeState::Running,
                    (false, false) => NodeState::Away,
                },
                behind: row.get::<i64>(5)?.max(0).cast_unsigned(),
                holds_erased: row.get(6)?,
            })
        });
        nodes.collect()
    }

    fn forget_node(&self, name: &str) -> Result<()> {
        self.pool.transact(|tx| {
            let sql = format!(
                "SELECT left_at IS NULL AND seen_at > {NOW} - $2 FROM nodes JOIN node_indexes ON node = id
                 WHERE id = $1 AND owner_id = $3 FOR UPDATE OF nodes"
            );
            let Some(row) = tx.query_opt(&sql, &[&name, &SILENCE, &self.owner])? else {
                return Err(StoreError::UnknownNode(name.to_owned()));
            };
            if row.get(0)? {
                return Err(StoreError::NodeNotStopped(name.to_owned()));
            }
            let own = "DELETE FROM node_indexes WHERE node = $1 AND owner_id = $2";
            tx.execute(own, &[&name, &self.owner])?;
            let alone = "DELETE FROM nodes WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM node_indexes WHERE node = $1)";
            tx.execute(alone, &[&name])?;
            self.count_finished(tx)
        })
    }

    fn tend_node(&self) -> Result<()> {
        if !self.member.is_due() {
            return Ok(());
        }
        let heard = self.beat()?;
        if heard.erased_to < heard.erasures_begun {
            self.finish_erasing()?;
        } else if heard.is_copied {
            self.erase_snapshots(heard.erasures_begun)?;
        }
        if heard.is_marked {
            // What is left is for the next time: meanwhile nobody would hear of this node.
            self.sweep_marked(BETWEEN_BEATS)?;
        }
        if heard.is_copied || heard.is_marked {
            self.pool.transact(|tx| self.count_finished(tx))?;
        }
        Ok(())
    }

    fn exchange_calls(&self, made: &[(String, u64)]) -> Result<Vec<(String, u64)>> {
        self.tell_calls(made)
    }

    fn share_index(&self) -> Result<()> {
        self.keep_due_snapshot()
    }

    fn leave(&self) -> Result<()> {
        let sql = format!("UPDATE nodes SET left_at = {NOW} WHERE id = $1 AND session = $2");
        self.pool
            .transact(|tx| tx.execute(&sql, &[&self.options.node, &self.member.session]))
            .map(drop)
    }

    /// It also writes: only a primary takes that.
    fn check_ready(&self) -> Result<()> {
        self.pool.glance(|tx| schema::require(tx, self.place()))?;
        self.beat()?;
        // Without room the index stays behind.
        disk_space::require(&self.options.data_dir, 0)?;
        if self.member.caught_up.load(Ordering::Acquire) {
            return Ok(());
        }
        let status = self.index.index_status()?;
        if status.taken < status.written {
            return Err(StoreError::IndexBuilding {
                indexed: status.taken,
                written: status.written,
            });
        }
        self.member.caught_up.store(true, Ordering::Release);
        Ok(())
    }
}
