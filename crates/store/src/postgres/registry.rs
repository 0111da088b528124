//! Entries of the registry as rows, and the one transaction that changes several of them together.

use contract::time::Instant;

use super::PostgresStore;
use super::pool::{Row, Tx};
use crate::Result;
use crate::registry::{Change, Entry, EntryKind, Expect, Registry, TokenFor};

/// How many expired entries one change removes at most.
const SWEPT: i64 = 500;

impl Registry for PostgresStore {
    fn entry(&self, kind: EntryKind, key: &str, now: Instant) -> Result<Option<Entry>> {
        let row = self.pool.glance(|tx| {
            tx.query_opt(
                "SELECT key, document, expires_at, revision FROM registry
                 WHERE owner_id = $1 AND kind = $2 AND key = $3 AND (expires_at IS NULL OR expires_at > $4)",
                &[&self.owner, &kind.as_str(), &key, &now.0],
            )
        })?;
        row.map(|row| read_entry(kind, &row)).transpose()
    }

    fn entries(
        &self,
        kind: EntryKind,
        after: Option<&str>,
        limit: usize,
        now: Instant,
    ) -> Result<Vec<Entry>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.pool.query(
            "SELECT key, document, expires_at, revision FROM registry
             WHERE owner_id = $1 AND kind = $2 AND key > $3 AND (expires_at IS NULL OR expires_at > $4)
             ORDER BY key LIMIT $5",
            &[&self.owner, &kind.as_str(), &after.unwrap_or_default(), &now.0, &limit],
        )?;
        rows.iter().map(|row| read_entry(kind, row)).collect()
    }

    fn apply(&self, changes: &[Change<'_>], now: Instant) -> Result<bool> {
        let applied = self.pool.transact_if(|tx| {
            let found = self.lock_entries(tx, changes, now)?;
            if !changes.iter().all(|change| holds(&found, change)) {
                return Ok(None);
            }
            for change in changes {
                // Another node may have put an entry that was absent when they were locked.
                if !self.change(tx, change)? {
                    return Ok(None);
                }
            }
            self.sweep(tx, now)?;
            Ok(Some(()))
        })?;
        Ok(applied.is_some())
    }
}

/// An entry that is there, locked until the transaction ends.
struct Found {
    kind: String,
    key: String,
    revision: u64,
}

impl PostgresStore {
    /// Locks the entries that the changes concern, in one order so that nodes do not wait for each other in a circle. What has
    /// expired goes.
    fn lock_entries(
        &self,
        tx: &Tx<'_>,
        changes: &[Change<'_>],
        now: Instant,
    ) -> Result<Vec<Found>> {
        let concerned = changes.iter().filter_map(Change::entry);
        let (kinds, keys): (Vec<&str>, Vec<&str>) =
            concerned.map(|(kind, key)| (kind.as_str(), key)).unzip();
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let rows = tx.query(
            "SELECT kind, key, revision, coalesce(expires_at <= $4, false) FROM registry
             WHERE owner_id = $1 AND (kind, key) IN (SELECT * FROM unnest($2::text[], $3::text[]))
             ORDER BY kind, key FOR UPDATE",
            &[&self.owner, &kinds, &keys, &now.0],
        )?;
        let mut found = Vec::new();
        for row in &rows {
            let (kind, key): (String, String) = (row.get(0)?, row.get(1)?);
            if row.get(3)? {
                self.remove_entry(tx, &kind, &key)?;
                continue;
            }
            found.push(Found {
                kind,
                key,
                revision: row.get::<i64>(2)?.cast_unsigned(),
            });
        }
        Ok(found)
    }

    /// Makes a change whose expectation held. Returns false if it holds no longer.
    fn change(&self, tx: &Tx<'_>, change: &Change<'_>) -> Result<bool> {
        match change {
            Change::Put {
                kind,
                key,
                document,
                expires_at,
                expect,
            } => {
                let conflict = match expect {
                    Expect::Absent => "DO NOTHING",
                    _ => {
                        "(owner_id, kind, key) DO UPDATE SET document = $4, expires_at = $5, revision = registry.revision + 1"
                    }
                };
                let sql = format!(
                    "INSERT INTO registry (owner_id, kind, key, document, expires_at, revision)
                     VALUES ($1, $2, $3, $4, $5, 1) ON CONFLICT {conflict}"
                );
                let ends = expires_at.map(|at| at.0);
                let put = tx.execute(&sql, &[&self.owner, &kind.as_str(), key, document, &ends])?;
                Ok(put == 1)
            }
            Change::Remove { kind, key, .. } => {
                self.remove_entry(tx, kind.as_str(), key).map(|()| true)
            }
            Change::Approve(approval) => self.insert_approval(tx, approval).map(|()| true),
            Change::Issue { token, of } => {
                let (grant, package) = match of {
                    TokenFor::Grant(id) => (Some(id.as_str()), None),
                    TokenFor::Package(id) => (None, Some(id.as_str())),
                };
                self.insert_token(tx, token, grant, package).map(|()| true)
            }
        }
    }

    fn remove_entry(&self, tx: &Tx<'_>, kind: &str, key: &str) -> Result<()> {
        tx.execute(
            "DELETE FROM registry WHERE owner_id = $1 AND kind = $2 AND key = $3",
            &[&self.owner, &kind, &key],
        )
        .map(drop)
    }

    /// Removes expired entries, but waits for nobody who has one locked.
    fn sweep(&self, tx: &Tx<'_>, now: Instant) -> Result<()> {
        tx.execute(
            "DELETE FROM registry WHERE owner_id = $1 AND (kind, key) IN (
                 SELECT kind, key FROM registry WHERE owner_id = $1 AND expires_at <= $2 LIMIT $3 FOR UPDATE SKIP LOCKED
             )",
            &[&self.owner, &now.0, &SWEPT],
        )
        .map(drop)
    }
}

/// Whether a change finds what it expects.
fn holds(found: &[Found], change: &Change<'_>) -> bool {
    let Some((kind, key)) = change.entry() else {
        return true;
    };
    let mut found = found.iter();
    let found = found.find(|found| found.kind == kind.as_str() && found.key == key);
    change.holds(found.map(|found| found.revision))
}

fn read_entry(kind: EntryKind, row: &Row) -> Result<Entry> {
    Ok(Entry {
        kind,
        key: row.get(0)?,
        document: row.get(1)?,
        expires_at: row.get::<Option<i64>>(2)?.map(Instant),
        revision: row.get::<i64>(3)?.cast_unsigned(),
    })
}
