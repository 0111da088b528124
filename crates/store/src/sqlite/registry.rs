//! Entries of the registry as rows, and the one transaction that changes several of them together.

use contract::time::Instant;
use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::EmbeddedStore;
use super::grants::{insert_token, refuse_removed};
use crate::Result;
use crate::registry::{Change, Entry, EntryKind, Registry, TokenFor};
use crate::sqlite::tx_error::TxResult;

impl Registry for EmbeddedStore {
    fn entry(&self, kind: EntryKind, key: &str, now: Instant) -> Result<Option<Entry>> {
        self.database.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT key, document, expires_at, revision FROM registry
                     WHERE kind = ?1 AND key = ?2 AND (expires_at IS NULL OR expires_at > ?3)",
                )?
                .query_row(params![kind.as_str(), key, now.0], |row| {
                    read_entry(kind, row)
                })
                .optional()
        })
    }

    fn entries(
        &self,
        kind: EntryKind,
        after: Option<&str>,
        limit: usize,
        now: Instant,
    ) -> Result<Vec<Entry>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.database.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT key, document, expires_at, revision FROM registry
                     WHERE kind = ?1 AND key > ?2 AND (expires_at IS NULL OR expires_at > ?3)
                     ORDER BY key LIMIT ?4",
                )?
                .query_map(
                    params![kind.as_str(), after.unwrap_or_default(), now.0, limit],
                    |row| read_entry(kind, row),
                )?
                .collect()
        })
    }

    fn apply(&self, changes: &[Change<'_>], now: Instant) -> Result<bool> {
        self.database.transact(|transaction| {
            transaction.execute("DELETE FROM registry WHERE expires_at <= ?1", [now.0])?;
            // All expectations first: a refused change must leave no trace of those before it.
            for change in changes {
                if !holds(transaction, change)? {
                    return Ok(false);
                }
            }
            for change in changes {
                self.change(transaction, change)?;
            }
            Ok(true)
        })
    }
}

impl EmbeddedStore {
    fn change(&self, transaction: &Transaction<'_>, change: &Change<'_>) -> TxResult<()> {
        let written = match change {
            Change::Put {
                kind,
                key,
                document,
                expires_at,
                expect: _,
            } => {
                let ends = expires_at.map(|at| at.0);
                transaction
                    .execute(
                        "INSERT INTO registry (kind, key, document, expires_at, revision) VALUES (?1, ?2, ?3, ?4, 1)
                         ON CONFLICT DO UPDATE SET document = ?3, expires_at = ?4, revision = revision + 1",
                        params![kind.as_str(), key, document, ends],
                    )
                    .map(drop)
            }
            Change::Remove { kind, key, .. } => transaction
                .execute(
                    "DELETE FROM registry WHERE kind = ?1 AND key = ?2",
                    params![kind.as_str(), key],
                )
                .map(drop),
            Change::Approve(approval) => {
                refuse_removed(transaction, &approval.grants)?;
                return self.insert_approval(transaction, approval);
            }
            Change::Issue { token, of } => {
                let (grant, package) = match of {
                    TokenFor::Grant(id) => (Some(id.as_str()), None),
                    TokenFor::Package(id) => (None, Some(id.as_str())),
                };
                insert_token(transaction, token, grant, package)
            }
        };
        Ok(written?)
    }
}

/// Whether a change finds what it expects.
fn holds(transaction: &Transaction<'_>, change: &Change<'_>) -> rusqlite::Result<bool> {
    let Some((kind, key)) = change.entry() else {
        return Ok(true);
    };
    Ok(change.holds(revision(transaction, kind, key)?))
}

fn revision(
    transaction: &Transaction<'_>,
    kind: EntryKind,
    key: &str,
) -> rusqlite::Result<Option<u64>> {
    transaction
        .prepare_cached("SELECT revision FROM registry WHERE kind = ?1 AND key = ?2")?
        .query_row(params![kind.as_str(), key], |row| row.get(0))
        .optional()
}

fn read_entry(kind: EntryKind, row: &Row<'_>) -> rusqlite::Result<Entry> {
    Ok(Entry {
        kind,
        key: row.get(0)?,
        document: row.get(1)?,
        expires_at: row.get::<_, Option<i64>>(2)?.map(Instant),
        revision: row.get(3)?,
    })
}
