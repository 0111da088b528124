//! The rows of the disclosure log, and the ends of its chain.

mod check;
mod cut;

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use contract::id::GrantId;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use self::check::check;
use super::ended::revoke_all;
use super::pending::{Batch, Ended, taken};
use super::{EmbeddedStore, Pending};
use crate::disclosure_log::{Entry, Head, LastUses};
use crate::grants::{ChainCheck, Disclosure, LoggedDisclosure, TokenUse};
use crate::sqlite::tx_error::TxResult;
use crate::{Result, StoreError};

/// How long disclosures wait for other writers: together with the time they are gathered, well under the promised second.
const PATIENCE: Duration = Duration::from_millis(300);
/// How many may wait outside the database before further ones wait for it.
const MOST_PENDING: usize = 50_000;

/// Under which names the end of the chain is noted, and the last entry that was dropped from its beginning.
const END: &str = "disclosures";
const START: &str = "disclosures_dropped";

fn head_to_bytes(head: Head) -> [u8; 40] {
    let mut bytes = [0; 40];
    let (sequence, hash) = bytes.split_at_mut(8);
    sequence.copy_from_slice(&head.sequence.to_be_bytes());
    hash.copy_from_slice(&head.hash);
    bytes
}

fn head_from_bytes(bytes: &[u8]) -> Option<Head> {
    let (sequence, hash) = bytes.split_first_chunk::<8>()?;
    Some(Head {
        sequence: u64::from_be_bytes(*sequence),
        hash: hash.try_into().ok()?,
    })
}

/// What waited outside the database at one moment.
pub(in crate::sqlite) struct Waiting {
    batches: Vec<Batch>,
    ended: Vec<Ended>,
}

impl EmbeddedStore {
    pub(super) fn append_disclosures(
        &self,
        disclosures: &[Disclosure],
        uses: &[TokenUse],
    ) -> Result<()> {
        let mut pending = self.pending();
        let nothing_new = disclosures.is_empty() && uses.is_empty();
        if nothing_new && pending.is_empty() {
            return Ok(());
        }
        let patience = if pending.len() < MOST_PENDING {
            PATIENCE
        } else {
            Duration::MAX
        };
        let written = self.database.transact_within(patience, |transaction| {
            self.append_pending(transaction, &pending)?;
            self.append(transaction, disclosures, uses)
        });
        let written = match written {
            Ok(Some(())) => {
                self.taken(&mut pending);
                return Ok(());
            }
            Ok(None) => None,
            // The file has its room already.
            Err(error) if self.database.cannot_grow(&error) => Some(error),
            Err(error) => return Err(error),
        };
        if nothing_new && pending.unwritten().is_empty() {
            return Ok(());
        }
        let appended = pending.append(disclosures, uses);
        appended.map_err(|error| written.unwrap_or(error))
    }

    /// Forgets outside the database what is in it now.
    fn taken(&self, pending: &mut Pending) {
        if !pending.is_empty() {
            let ended: Vec<_> = pending.ended().cloned().collect();
            pending.clear();
            self.forget_endings(&ended);
        }
    }

    /// Moves waiting disclosures into the database.
    pub(crate) fn settle_disclosures(&self) -> Result<()> {
        let mut pending = self.pending();
        if !pending.is_empty() {
            self.database
                .transact(|transaction| self.append_pending(transaction, &pending))?;
            self.taken(&mut pending);
        }
        Ok(())
    }

    /// Takes what waits here into a copy of the database, which may have some of it.
    pub(in crate::sqlite) fn settle_into(
        &self,
        copy: &mut Connection,
        waiting: &Waiting,
    ) -> Result<()> {
        self.take_waiting(copy, waiting)
            .map_err(|error| error.into_store_error(&self.database))
    }

    fn take_waiting(&self, copy: &mut Connection, waiting: &Waiting) -> TxResult<()> {
        let transaction = copy.transaction()?;
        let taken = taken(&transaction)?;
        for batch in waiting.batches.iter().filter(|batch| batch.is_after(taken)) {
            self.append(&transaction, &batch.disclosures, &batch.uses)?;
        }
        revoke_all(&transaction, waiting.ended.iter())?;
        Ok(transaction.commit()?)
    }

    /// How many disclosures wait outside the database, and how many revocations are in no file.
    pub(in crate::sqlite) fn waiting_outside(&self) -> (u64, u64) {
        let pending = self.pending();
        (pending.len() as u64, pending.unwritten().len() as u64)
    }

    /// What waits outside the database now.
    pub(in crate::sqlite) fn waiting(&self) -> Waiting {
        let pending = self.pending();
        Waiting {
            batches: pending.batches().to_vec(),
            ended: pending.ended().cloned().collect(),
        }
    }

    fn append_pending(&self, transaction: &Transaction<'_>, pending: &Pending) -> TxResult<()> {
        if pending.is_empty() {
            return Ok(());
        }
        for batch in pending.batches() {
            self.append(transaction, &batch.disclosures, &batch.uses)?;
        }
        revoke_all(transaction, pending.ended())?;
        Ok(pending.note_taken(transaction)?)
    }

    fn append(
        &self,
        transaction: &Transaction<'_>,
        disclosures: &[Disclosure],
        uses: &[TokenUse],
    ) -> TxResult<()> {
        let entries = disclosures
            .iter()
            .map(|disclosure| {
                serde_json::to_string(disclosure).map_err(|error| {
                    StoreError::engine(
                        self.path(),
                        format!("a disclosure cannot be written: {error}"),
                    )
                })
            })
            .collect::<Result<Vec<String>>>()?;
        append(transaction, disclosures, &entries)?;
        Ok(note_uses(transaction, disclosures, uses)?)
    }

    pub(super) fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn logged(
        &self,
        grant: Option<&GrantId>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<LoggedDisclosure>> {
        let before = before
            .and_then(|before| i64::try_from(before).ok())
            .unwrap_or(i64::MAX);
        // Locked, so that nothing moves from there into the database between the two reads.
        let pending = self.pending();
        let mut waiting = Vec::new();
        if !pending.is_empty() {
            let head = self.database.read(end)?;
            let until = u64::try_from(before).unwrap_or(0);
            waiting = pending.logged(head.sequence, grant);
            waiting.retain(|entry| entry.sequence < until);
            waiting.truncate(limit);
        }
        let limit = i64::try_from(limit - waiting.len()).unwrap_or(i64::MAX);
        let rows: Vec<(u64, String)> = self.database.read(|connection| match grant {
            None => connection
                .prepare_cached(
                    "SELECT sequence, entry FROM disclosures WHERE sequence < ?1 ORDER BY sequence DESC LIMIT ?2",
                )?
                .query_map(params![before, limit], numbered_entry)?
                .collect(),
            Some(grant) => connection
                .prepare_cached(
                    "SELECT sequence, entry FROM disclosures_by_grant JOIN disclosures USING (sequence)
                     WHERE grant_id = ?3 AND sequence < ?1 ORDER BY sequence DESC LIMIT ?2",
                )?
                .query_map(params![before, limit, grant.as_str()], numbered_entry)?
                .collect(),
        })?;
        for (sequence, entry) in rows {
            let entry = Entry::read(entry.as_bytes()).map_err(|error| StoreError::engine(self.path(), format!(
                    "entry {sequence} of the disclosure log cannot be read ({error}); `pdpp grants verify` checks it"
                )))?;
            if let Entry::Disclosure(disclosure) = entry {
                waiting.push(LoggedDisclosure {
                    sequence,
                    disclosure,
                });
            }
        }
        Ok(waiting)
    }

    pub(super) fn check_chain(&self) -> Result<ChainCheck> {
        // What cannot be written now is told as waiting.
        let _ = self.settle_disclosures();
        let checked = self
            .database
            .snapshot(|connection| Ok(check(connection)?))?;
        let waiting = self.pending().len() as u64;
        Ok(ChainCheck { waiting, ..checked })
    }
}

fn numbered_entry(row: &Row<'_>) -> rusqlite::Result<(u64, String)> {
    Ok((row.get(0)?, row.get(1)?))
}

fn append(
    transaction: &Transaction<'_>,
    disclosures: &[Disclosure],
    entries: &[String],
) -> rusqlite::Result<()> {
    let mut head = end(transaction)?;
    for (disclosure, entry) in disclosures.iter().zip(entries) {
        head = put(transaction, head, entry)?;
        for grant in &disclosure.grant_ids {
            transaction
                .prepare_cached("INSERT OR IGNORE INTO disclosures_by_grant VALUES (?1, ?2)")?
                .execute(params![grant.as_str(), head.sequence])?;
        }
    }
    if entries.is_empty() {
        return Ok(());
    }
    note_head(transaction, END, head)
}

/// The head that the next entry continues. A damaged head is continued from what can be read of it: the break stays visible
/// and nothing goes unlogged.
fn end(connection: &Connection) -> rusqlite::Result<Head> {
    let last: u64 = connection.query_row(
        "SELECT coalesce(max(sequence), 0) FROM disclosures",
        [],
        |row| row.get(0),
    )?;
    let mut head = stored_head(connection, END)?.unwrap_or(Head::EMPTY);
    head.sequence = head.sequence.max(last);
    Ok(head)
}

fn put(transaction: &Transaction<'_>, head: Head, entry: &str) -> rusqlite::Result<Head> {
    let head = head.extended(entry.as_bytes());
    transaction
        .prepare_cached("INSERT INTO disclosures VALUES (?1, ?2, ?3)")?
        .execute(params![head.sequence, entry, head.hash.as_slice()])?;
    Ok(head)
}

fn note_head(transaction: &Connection, name: &str, head: Head) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("INSERT OR REPLACE INTO meta VALUES (?1, ?2)")?
        .execute(params![name, head_to_bytes(head).as_slice()])
        .map(drop)
}

/// The last entry of the chain, and the last one that was dropped from its beginning.
pub(crate) fn ends(connection: &Connection) -> rusqlite::Result<(Head, Head)> {
    let start = stored_head(connection, START)?;
    Ok((end(connection)?, start.unwrap_or(Head::EMPTY)))
}

/// Notes the ends of a chain whose entries were copied.
pub(crate) fn note_ends(copy: &Connection, last: Head, dropped: Head) -> rusqlite::Result<()> {
    if last != Head::EMPTY {
        note_head(copy, END, last)?;
    }
    if dropped != Head::EMPTY {
        note_head(copy, START, dropped)?;
    }
    Ok(())
}

/// Moves `last_used_at` of tokens and grants forward, never back.
fn note_uses(
    transaction: &Transaction<'_>,
    disclosures: &[Disclosure],
    uses: &[TokenUse],
) -> rusqlite::Result<()> {
    let LastUses { tokens, grants } = LastUses::of(disclosures, uses);
    for (table, latest) in [("tokens", tokens), ("grants", grants)] {
        let mut statement = transaction.prepare_cached(&format!(
            "UPDATE {table} SET last_used_at = max(coalesce(last_used_at, ?2), ?2) WHERE id = ?1"
        ))?;
        for (id, at) in latest {
            statement.execute(params![id, at])?;
        }
    }
    Ok(())
}

fn stored_head(connection: &Connection, name: &str) -> rusqlite::Result<Option<Head>> {
    connection
        .prepare_cached("SELECT value FROM meta WHERE name = ?1")?
        .query_row([name], |row| Ok(bytes(row, 0)?.and_then(head_from_bytes)))
        .optional()
        .map(Option::flatten)
}

/// The bytes of a column whatever its type: a tampered value must not end the check early.
fn bytes<'row>(row: &'row Row<'_>, column: usize) -> rusqlite::Result<Option<&'row [u8]>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(bytes),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use contract::id::ClientId;
    use contract::time::Instant;

    use super::*;
    use crate::disk_space::pretended;
    use crate::grants::{Revocable, RevocationReason, Revoked};
    use crate::inspection::Depth;
    use crate::sqlite::directory::PENDING;
    use crate::sqlite::testing::open;
    use crate::{Backup as _, Grants, Inspect as _};

    fn call(number: i64) -> Disclosure {
        Disclosure {
            bytes: None,
            at: Instant(number),
            grant_ids: vec![GrantId::parse("grt_1").unwrap()],
            client_id: ClientId::parse("agent").unwrap(),
            operation: "search".to_owned(),
            records: Vec::new(),
            fields: Vec::new(),
        }
    }

    fn numbers(store: &EmbeddedStore) -> Vec<(u64, i64)> {
        let grant = GrantId::parse("grt_1").unwrap();
        let all = store.disclosures(None, None, 100).unwrap();
        assert_eq!(all, store.disclosures(Some(&grant), None, 100).unwrap());
        let numbers = all
            .iter()
            .map(|entry| (entry.sequence, entry.disclosure.at.0));
        numbers.collect()
    }

    #[test]
    fn what_is_disclosed_while_the_database_is_held_is_durable_all_the_same() {
        // TR-36: disclosures are on disk within a second, also while an erasure rewrites the database.
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        store.log_disclosures(&[call(0)], &[]).unwrap();
        let held = store.database.writer();
        store.log_disclosures(&[call(1), call(2)], &[]).unwrap();
        store.log_disclosures(&[call(3)], &[]).unwrap();
        assert_eq!(numbers(&store), [(4, 3), (3, 2), (2, 1), (1, 0)]);
        let killed = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(folder.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                fs::copy(&path, killed.path().join(path.file_name().unwrap())).unwrap();
            }
        }
        drop(held);
        store.log_disclosures(&[call(4)], &[]).unwrap();
        let all = [(5, 4), (4, 3), (3, 2), (2, 1), (1, 0)];
        assert_eq!(numbers(&store), all);
        assert_eq!(store.check_disclosures().unwrap().broken, None);
        drop(store);
        assert_eq!(numbers(&open(folder.path())), all);

        // A process that is killed meanwhile has lost nothing, and no batch is taken twice.
        let path = killed.path().join(PENDING);
        let left = fs::read(&path).unwrap();
        for _ in 0..2 {
            let store = open(killed.path());
            assert_eq!(numbers(&store), all[1..]);
            let check = store.check_disclosures().unwrap();
            assert_eq!((check.entries, check.broken), (4, None));
            drop(store);
            fs::write(&path, &left).unwrap();
        }
    }

    const ID: &str = "grt_1";

    fn granted(path: &std::path::Path) -> EmbeddedStore {
        let store = open(path);
        let sql =
            "INSERT INTO grants (id, client_id, document, issued_at) VALUES (?1, 'agent', '{}', 0)";
        store.database.writer().execute(sql, [ID]).unwrap();
        store
    }

    fn revoke(store: &EmbeddedStore) -> Result<Revoked> {
        store.revoke(Revocable::Grant(&GrantId::parse(ID).unwrap()), Instant(9))
    }

    fn is_live(store: &EmbeddedStore) -> bool {
        let listed = store.grants().unwrap();
        let found = store.grant(&GrantId::parse(ID).unwrap()).unwrap().unwrap();
        assert_eq!(listed, std::slice::from_ref(&found));
        found.revoked.is_none()
    }

    #[test]
    fn on_a_full_disk_disclosures_and_revocations_are_durable_in_room_that_was_kept_for_them() {
        // TR-33, TR-36: a full disk takes away neither the log of what was disclosed nor revoking.
        let folder = tempfile::tempdir().unwrap();
        let store = granted(folder.path());
        assert!(store.log_room() > 500_000);
        pretended::FREE.set(Some(0));
        pretended::DATABASE_IS_FULL.set(true);
        let length = fs::metadata(folder.path().join(PENDING)).unwrap().len();
        store.log_disclosures(&[call(0)], &[]).unwrap();
        assert_eq!(revoke(&store).unwrap(), Revoked::Now);
        assert!(!is_live(&store));
        assert_eq!(revoke(&store).unwrap(), Revoked::Already(Instant(9)));
        store.log_disclosures(&[call(1)], &[]).unwrap();
        assert_eq!(numbers(&store), [(2, 1), (1, 0)]);
        let check = store.check_disclosures().unwrap();
        assert_eq!((check.entries, check.waiting), (0, 2));
        let inspected = store.inspect(Depth::Glance).unwrap();
        assert_eq!(inspected.waiting, 2);
        assert!(inspected.unwritable.unwrap().contains("has 0 MiB"));
        let grown = fs::metadata(folder.path().join(PENDING)).unwrap().len();
        assert_eq!(grown, length, "it is written over");

        // Still full at the next start, and then no longer.
        drop(store);
        let store = open(folder.path());
        assert!(!is_live(&store));
        assert_eq!(numbers(&store), [(2, 1), (1, 0)]);
        pretended::FREE.set(None);
        pretended::DATABASE_IS_FULL.set(false);
        store.log_disclosures(&[], &[]).unwrap();
        let check = store.check_disclosures().unwrap();
        assert_eq!((check.entries, check.waiting, check.broken), (2, 0, None));
        drop(store);
        fs::remove_file(folder.path().join(PENDING)).unwrap();
        assert!(
            !is_live(&open(folder.path())),
            "the database says so itself"
        );
    }

    #[test]
    fn on_a_full_disk_all_tokens_of_a_family_end_with_what_they_are_for() {
        // TR-09, TR-33: a code that is used twice ends what came of it, whether or not the database can be written.
        let folder = tempfile::tempdir().unwrap();
        let store = granted(folder.path());
        let sql = "INSERT INTO tokens (id, selector, hash, grant_id, issued_at, expires_at, family)
                   VALUES ('t', x'0102030405060708', zeroblob(32), ?1, 0, 100, 'f')";
        store.database.writer().execute(sql, [ID]).unwrap();
        pretended::DATABASE_IS_FULL.set(true);
        let end = |store: &EmbeddedStore| store.revoke(Revocable::Family("f"), Instant(9));
        assert_eq!(end(&store).unwrap(), Revoked::Now);
        assert!(!is_live(&store));
        drop(store);
        pretended::DATABASE_IS_FULL.set(false);
        let store = open(folder.path());
        store.log_disclosures(&[], &[]).unwrap();
        fs::remove_file(folder.path().join(PENDING)).unwrap();
        let ended = store.grant(&GrantId::parse(ID).unwrap()).unwrap().unwrap();
        let reason = RevocationReason::TokensEnded;
        assert_eq!(ended.revoked.map(|ended| ended.reason), Some(reason));
        assert_eq!(
            end(&store).unwrap(),
            Revoked::Unknown,
            "it has ended before"
        );
    }

    #[test]
    fn what_is_revoked_while_the_disk_fails_stays_revoked() {
        // TR-37: the owner meant it, and a disk that comes back must not bring it back.
        let folder = tempfile::tempdir().unwrap();
        let store = granted(folder.path());
        pretended::DATABASE_FAILS.set(true);
        assert_eq!(revoke(&store).unwrap(), Revoked::Now);
        assert!(!is_live(&store));
        *store.pending() = Pending::nowhere(folder.path());
        let token = store.revoke(Revocable::Token("none"), Instant(9));
        assert_eq!(token.unwrap(), Revoked::Unknown);
        drop(store);
        pretended::DATABASE_FAILS.set(false);
        let store = open(folder.path());
        assert!(!is_live(&store));
    }

    #[test]
    fn a_backup_from_a_full_disk_has_what_waits() {
        // TR-33: a revocation does not come undone by restoring.
        let folder = tempfile::tempdir().unwrap();
        let store = granted(folder.path());
        pretended::DATABASE_IS_FULL.set(true);
        store.log_disclosures(&[call(0)], &[]).unwrap();
        revoke(&store).unwrap();
        let mut archive = Vec::new();
        store.backup_beside(&mut archive, &[], None).unwrap();
        pretended::DATABASE_IS_FULL.set(false);
        let copy = tempfile::tempdir().unwrap();
        tar::Archive::new(archive.as_slice())
            .unpack(copy.path())
            .unwrap();
        let copy = open(copy.path());
        assert!(!is_live(&copy));
        assert_eq!(numbers(&copy), [(1, 0)]);
        assert_eq!(copy.check_disclosures().unwrap().broken, None);
    }

    #[test]
    fn what_can_be_written_nowhere_ends_at_once_and_is_said_not_to_last() {
        // TR-33: effective for the running server, and told.
        let folder = tempfile::tempdir().unwrap();
        let store = granted(folder.path());
        store.log_disclosures(&[call(0)], &[]).unwrap();
        pretended::DATABASE_IS_FULL.set(true);
        // Nothing can be written where a folder is.
        *store.pending() = Pending::nowhere(folder.path());
        for _ in 0..2 {
            let refused = revoke(&store).unwrap_err();
            assert!(
                matches!(refused, StoreError::EndedInMemory { .. }),
                "{refused}"
            );
            assert!(!is_live(&store));
        }
        assert_eq!(store.inspect(Depth::Glance).unwrap().ended_in_memory, 1);
        assert!(store.log_disclosures(&[call(1)], &[]).is_err());
        assert_eq!(store.log_room(), 0);
        pretended::DATABASE_IS_FULL.set(false);
        store.log_disclosures(&[], &[]).unwrap();
        assert_eq!(store.inspect(Depth::Glance).unwrap().ended_in_memory, 0);
        drop(store);
        assert!(!is_live(&open(folder.path())));
    }
}
