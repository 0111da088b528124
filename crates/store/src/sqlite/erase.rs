//! Erasing for good: a removed connection, and what stands behind tombstones. Nothing of it stays in database pages,
//! the log, the index or the blob folder.
//!
//! The rows go in one transaction, which also notes that an erasure is under way. What is left of them on disk goes in
//! [`STEPS`], each of which can be done again; only then the note goes. So whatever is cut short, by a crash or by a
//! full disk, is finished at the next start.

use contract::id::ConnectionId;
use rusqlite::{OptionalExtension, Transaction, params};

use super::{EmbeddedStore, newest_version, set_newest_version};
use crate::catalog::Removed;
use crate::disk_space;
use crate::records::Purged;
use crate::{Result, StoreError};

/// What makes erased content disappear from the disk, in this order.
const STEPS: [fn(&EmbeddedStore) -> Result<()>; 4] = [
    EmbeddedStore::sweep_blobs,
    EmbeddedStore::rewrite_database,
    EmbeddedStore::rewrite_index,
    |store| store.index.rewrite_vectors(),
];

impl EmbeddedStore {
    pub(super) fn erase_connection(&self, id: &ConnectionId) -> Result<Removed> {
        // An unknown connection is reported before a lack of disk space.
        self.sources().connection(id)?;
        self.require_room_to_erase()?;
        let removed = self.erase_rows_of(id)?;
        self.finish_erasing().map_err(|error| self.left(&error))?;
        Ok(removed)
    }

    pub(super) fn purge_tombstones(&self) -> Result<Purged> {
        self.require_room_to_erase()?;
        let purged = self.purge_rows()?;
        self.finish_erasing().map_err(|error| self.left(&error))?;
        Ok(purged)
    }

    fn erase_rows_of(&self, id: &ConnectionId) -> Result<Removed> {
        let erase = |transaction: &Transaction<'_>| {
            self.sources().connection(id)?;
            super::grants::forget_connection(transaction, id, self.clock.now())?;
            Ok(erase_rows(transaction, id)?)
        };
        let (removed, version) = self
            .database
            .transact_then(erase, || self.truth.reload_sources())?;
        self.truth.acknowledge(version);
        Ok(removed)
    }

    fn purge_rows(&self) -> Result<Purged> {
        // The index learns of deletions from the tombstones, so only tombstones that it has seen are removed.
        let indexed = self.index.committed_whole()?;
        self.database
            .transact(|transaction| Ok(purge_rows(transaction, indexed)?))
    }

    /// Finishes an erasure that was interrupted. If it cannot be finished now either, it is left for the next start.
    pub(super) fn resume_erasing(&self) -> Result<()> {
        let (begun, finished) = self.database.read(erasures)?;
        if finished < begun {
            let _ = self.finish_erasing();
        }
        Ok(())
    }

    fn finish_erasing(&self) -> Result<()> {
        // Another erasure may begin meanwhile, which this one does not finish.
        let (begun, _) = self.database.read(erasures)?;
        self.require_room_to_erase()?;
        STEPS.into_iter().try_for_each(|step| step(self))?;
        self.database.transact(|transaction| {
            transaction.execute(
                "INSERT INTO meta VALUES ('erasures_finished', ?1)
                 ON CONFLICT DO UPDATE SET value = max(value, ?1)",
                [begun],
            )?;
            Ok(())
        })
    }

    /// The disk space that the steps need: the database is written a second time, then each segment of the index, then
    /// the vectors.
    pub(super) fn room_to_erase(&self) -> Result<u64> {
        let database: u64 = self.database.read(|connection| {
            connection.query_row(
                "SELECT (page_count - freelist_count) * (page_size + 24)
                 FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
                [],
                |row| row.get(0),
            )
        })?;
        Ok(database.max(self.index.bytes_on_disk()))
    }

    fn require_room_to_erase(&self) -> Result<()> {
        disk_space::require(self.path(), self.room_to_erase()?)
    }

    /// Rewrites the database and empties the log.
    ///
    /// Overwriting freed content (`secure_delete`) is not enough: cells that moved between pages leave copies behind.
    fn rewrite_database(&self) -> Result<()> {
        let writer = self.database.writer();
        let held: bool = writer
            .execute_batch("VACUUM")
            .and_then(|()| {
                writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
            })
            .map_err(self.database.failed())?;
        if held {
            return Err(StoreError::engine(
                self.database.path(),
                "somebody still reads what it was before, perhaps a backup",
            ));
        }
        Ok(())
    }

    fn rewrite_index(&self) -> Result<()> {
        self.index.expunge()
    }

    fn left(&self, error: &StoreError) -> StoreError {
        StoreError::TracesLeft {
            path: self.path().to_owned(),
            detail: error.to_string(),
        }
    }
}

/// Notes that an erasure is under way. They are counted, so that finishing one does not finish another.
fn note(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction
        .execute(
            "INSERT INTO meta VALUES ('erasures_begun', 1) ON CONFLICT DO UPDATE SET value = value + 1",
            [],
        )
        .map(drop)
}

/// How many erasures were begun, and up to which of them all are finished.
pub(super) fn erasures(connection: &rusqlite::Connection) -> rusqlite::Result<(u64, u64)> {
    let count = |name: &str| -> rusqlite::Result<u64> {
        let sql = "SELECT value FROM meta WHERE name = ?1";
        let found = connection.query_row(sql, [name], |row| row.get(0));
        found.optional().map(Option::unwrap_or_default)
    };
    Ok((count("erasures_begun")?, count("erasures_finished")?))
}

/// Removes a connection's rows and leaves an order for the index. Returns what was removed, and the version.
fn erase_rows(
    transaction: &Transaction<'_>,
    id: &ConnectionId,
) -> rusqlite::Result<(Removed, u64)> {
    note(transaction)?;
    let version = newest_version(transaction)? + 1;
    let records = transaction.query_row(
        "SELECT coalesce(sum(live_records), 0) FROM streams WHERE connection_id = ?1",
        [id.as_str()],
        |row| row.get(0),
    )?;
    transaction.execute(
        "INSERT INTO erasures SELECT ?2, id FROM streams WHERE connection_id = ?1",
        params![id.as_str(), version],
    )?;
    for table in [
        "records",
        "versions",
        "redated",
        "deleted_by_owner",
        "blob_bindings",
    ] {
        transaction.execute(
            &format!("DELETE FROM {table} WHERE stream_id IN (SELECT id FROM streams WHERE connection_id = ?1)"),
            [id.as_str()],
        )?;
    }
    transaction.execute("DELETE FROM connections WHERE id = ?1", [id.as_str()])?;
    set_newest_version(transaction, version)?;
    let blobs = forget_orphans(transaction)?;
    Ok((Removed { records, blobs }, version))
}

/// Removes tombstones up to a version with their history, and closes the feed to bookmarks that would need them.
fn purge_rows(transaction: &Transaction<'_>, upto: u64) -> rusqlite::Result<Purged> {
    note(transaction)?;
    let gone = "FROM records WHERE data IS NULL AND version <= ?1";
    // Up to the stream's own last change: a reader that has come that far has seen every tombstone.
    transaction.execute(
        &format!("UPDATE streams SET purged_to = last_version WHERE id IN (SELECT DISTINCT stream_id {gone})"),
        [upto],
    )?;
    transaction.execute(
        &format!(
            "DELETE FROM blob_bindings WHERE (stream_id, key) IN (SELECT stream_id, key {gone})"
        ),
        [upto],
    )?;
    for table in ["versions", "redated"] {
        transaction.execute(
            &format!("DELETE FROM {table} WHERE row_id IN (SELECT row_id {gone})"),
            [upto],
        )?;
    }
    let tombstones = transaction.execute(&format!("DELETE {gone}"), [upto])? as u64;
    let blobs = forget_orphans(transaction)?;
    Ok(Purged { tombstones, blobs })
}

/// Forgets blobs that nothing refers to any more, and counts them. Their files are swept.
fn forget_orphans(transaction: &Transaction<'_>) -> rusqlite::Result<u64> {
    let sql = "DELETE FROM blobs WHERE id NOT IN (SELECT blob_id FROM blob_bindings)";
    Ok(transaction.execute(sql, [])? as u64)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io;
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use contract::declaration::Declaration;
    use contract::id::{FieldName, StreamName};
    use contract::json::RecordBody;
    use contract::key::RecordKey;
    use tempfile::TempDir;

    use super::super::testing::open;
    use super::*;
    use crate::catalog::{NewConnection, StreamRef};
    use crate::inspection::Depth;
    use crate::records::{Change, ChangeOp};
    use crate::search::{Scope, SearchRequest};
    use crate::{Backup as _, Blobs, Catalog, Inspect, Records, Search};

    const MAIL: &str = include_str!("../../tests/conformance/mail.json");

    fn messages(id: &ConnectionId) -> StreamRef {
        StreamRef {
            connection: id.clone(),
            stream: StreamName::parse("messages").unwrap(),
        }
    }

    fn change(key: &str, op: ChangeOp) -> Change {
        Change {
            stream: StreamName::parse("messages").unwrap(),
            key: RecordKey::single(key).unwrap(),
            emitted_at: "2026-05-01T00:00:00Z".to_owned(),
            op,
        }
    }

    fn message(key: &str, subject: &str) -> Change {
        let text = format!("{{\"id\":\"{key}\",\"subject\":\"{subject}\"}}");
        change(key, ChangeOp::Upsert(RecordBody::parse(text).unwrap()))
    }

    /// A store with two connections: `work`, all of which is about a zyzzyva, and `home`, of which only what is deleted is.
    fn filled(folder: &Path) -> (EmbeddedStore, [ConnectionId; 2]) {
        let store = open(folder);
        let declaration = Declaration::parse(MAIL).unwrap();
        store.declare(&declaration).unwrap();
        let ids = ["work", "home"].map(|id| {
            let id = ConnectionId::parse(id).unwrap();
            let new = NewConnection {
                connector: declaration.connector_key().clone(),
                name: "Mail".to_owned(),
                id: Some(id.clone()),
            };
            store.add_connection(new).unwrap();
            id
        });
        let [work, home] = &ids;
        let long = format!("zyzzyva {}", "filler ".repeat(4_000));
        for id in &ids {
            for at in 0..20 {
                let batch = vec![
                    message(&format!("gone{at}"), "zyzzyva"),
                    message(&format!("long{at}"), &long),
                ];
                store.write(id, batch).unwrap();
            }
        }
        store.write(home, vec![message("kept", "quokka")]).unwrap();
        for (id, key, bytes) in [(work, "gone0", "of work"), (home, "gone0", "of home")] {
            let key = RecordKey::single(key).unwrap();
            let bytes = format!("a zyzzyva {bytes}");
            store
                .put_blob(&messages(id), &key, "text/plain", &mut bytes.as_bytes())
                .unwrap();
        }
        store.settle_index().unwrap();
        let names = (0..20).flat_map(|at| [format!("gone{at}"), format!("long{at}")]);
        let deletions = names.map(|key| change(&key, ChangeOp::Delete));
        store.write(home, deletions.collect()).unwrap();
        store.settle_index().unwrap();
        (store, ids)
    }

    /// Overlooks a file that has gone since it was listed: the index merges segments when it likes.
    fn still_there<T>(read: io::Result<T>) -> Option<T> {
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            read => Some(read.unwrap()),
        }
    }

    /// What a process would leave that is killed now: everything written is in the files, also what was not synced.
    fn killed_now(folder: &Path) -> TempDir {
        let copy = tempfile::tempdir().unwrap();
        copy_folder(folder, copy.path());
        copy
    }

    fn copy_folder(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            let target = to.join(path.file_name().unwrap());
            if path.is_dir() {
                copy_folder(&path, &target);
            } else {
                still_there(fs::copy(&path, &target));
            }
        }
    }

    /// The files below a folder that hold the word, as far as it can be seen in their bytes.
    fn holding(folder: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(holding(&path));
            } else if still_there(fs::read(&path))
                .is_some_and(|bytes| bytes.windows(7).any(|at| at == b"zyzzyva"))
            {
                found.push(path);
            }
        }
        found
    }

    fn hits(store: &EmbeddedStore, id: &ConnectionId, word: &str) -> usize {
        let fields = vec![FieldName::parse("subject").unwrap()];
        let request = SearchRequest {
            expression: text::Expression::parse(word),
            scopes: vec![Scope::whole(messages(id), fields)],
            limit: 1_000,
            count: true,
            ..SearchRequest::default()
        };
        store.search(&request).unwrap().hits.len()
    }

    /// Asserts that opening what a killed process left finishes the erasure.
    fn assert_finished(killed: &TempDir, home: &ConnectionId, step: usize) {
        let store = open(killed.path());
        let (begun, finished) = store.database.read(erasures).unwrap();
        assert_eq!((begun, finished), (2, 2), "killed after step {step}");
        assert_eq!(holding(killed.path()), Vec::<PathBuf>::new(), "{step}");
        let index = store.index.current_index().unwrap();
        let searcher = &index.view().searcher;
        assert!(
            searcher
                .segment_readers()
                .iter()
                .all(|segment| segment.num_deleted_docs() == 0),
            "killed after step {step}"
        );
        assert_eq!(searcher.num_docs(), 1, "killed after step {step}");
        assert_eq!(hits(&store, home, "quokka"), 1);
        assert_eq!(hits(&store, home, "zyzzyva"), 0);
    }

    #[test]
    fn an_erasure_that_is_cut_short_anywhere_is_finished_at_the_next_start() {
        let folder = tempfile::tempdir().unwrap();
        let (store, [work, home]) = filled(folder.path());
        assert!(!holding(folder.path()).is_empty());
        assert_eq!(store.erase_rows_of(&work).unwrap().blobs, 1);
        assert_eq!(store.purge_rows().unwrap().tombstones, 40);
        let mut killed = vec![killed_now(folder.path())];
        for step in STEPS {
            step(&store).unwrap();
            killed.push(killed_now(folder.path()));
        }
        // Nothing is left to do but to note it.
        assert_eq!(holding(folder.path()), Vec::<PathBuf>::new());
        for (step, killed) in killed.iter().enumerate() {
            assert_finished(killed, &home, step);
        }
    }

    #[test]
    fn an_erasure_whose_old_pages_are_still_read_says_so_and_is_finished_later() {
        let folder = tempfile::tempdir().unwrap();
        let (store, [work, home]) = filled(folder.path());
        store.purge().unwrap();
        let reader = rusqlite::Connection::open(store.database.path()).unwrap();
        reader
            .execute_batch("BEGIN; SELECT count(*) FROM records")
            .unwrap();
        store
            .database
            .writer()
            .busy_timeout(Duration::ZERO)
            .unwrap();
        let error = store.remove_connection(&work).unwrap_err();
        assert!(matches!(error, StoreError::TracesLeft { .. }), "{error}");
        assert!(error.to_string().contains("pdpp purge"), "{error}");
        assert!(store.connection(&work).is_none());
        assert!(!holding(folder.path()).is_empty());
        assert!(store.inspect(Depth::Glance).unwrap().traces_left);
        drop(reader);
        drop(store);
        let store = open(folder.path());
        assert_eq!(holding(folder.path()), Vec::<PathBuf>::new());
        assert_eq!(hits(&store, &home, "quokka"), 1);
        assert!(!store.inspect(Depth::Glance).unwrap().traces_left);
    }

    #[test]
    fn without_room_nothing_is_erased_and_no_start_tries_in_vain() {
        // TR-33: room is checked first, and the figure is told; what was begun is finished when there is room.
        let folder = tempfile::tempdir().unwrap();
        let (store, [work, home]) = filled(folder.path());
        let pretend = |free: Option<u64>| disk_space::pretended::FREE.set(free);
        pretend(Some(15 * 1024 * 1024));
        for refused in [
            store.purge().map(drop).unwrap_err(),
            store.remove_connection(&work).map(drop).unwrap_err(),
        ] {
            assert!(matches!(refused, StoreError::NoRoom { .. }), "{refused}");
            let words = refused.to_string();
            assert!(
                words.contains("MiB") && words.contains("the disk has 15 MiB"),
                "{words}"
            );
        }
        assert_eq!(hits(&store, &work, "zyzzyva"), 40, "nothing was begun");
        assert!(!store.inspect(Depth::Glance).unwrap().traces_left);
        // One that was begun and cut short waits until there is room, and takes nothing down.
        pretend(None);
        store.erase_rows_of(&work).unwrap();
        drop(store);
        pretend(Some(15 * 1024 * 1024));
        for _ in 0..2 {
            let before = holding(folder.path());
            let store = open(folder.path());
            assert!(store.inspect(Depth::Glance).unwrap().traces_left);
            assert_eq!(hits(&store, &home, "quokka"), 1);
            drop(store);
            assert_eq!(holding(folder.path()), before);
        }
        pretend(None);
        let store = open(folder.path());
        assert!(!store.inspect(Depth::Glance).unwrap().traces_left);
        assert_eq!(hits(&store, &home, "quokka"), 1);
    }

    #[test]
    fn without_room_records_are_refused_with_the_figure_and_all_else_goes_on() {
        // TR-33: reads go on, writes are refused with the figure needed, nothing is discarded.
        let folder = tempfile::tempdir().unwrap();
        let (store, [work, home]) = filled(folder.path());
        disk_space::pretended::FREE.set(Some(1024));
        let refused = store.write(&home, vec![message("new", "x")]).unwrap_err();
        assert!(
            matches!(refused, StoreError::NoRoom { needed, free: 1024, .. } if needed > 16 * 1024 * 1024),
            "{refused}"
        );
        assert_eq!(hits(&store, &work, "zyzzyva"), 40);
        // For a backup another folder helps, and none for the data.
        let to = tempfile::tempdir().unwrap();
        let told = store.backup_beside(&mut Vec::new(), &[], Some(to.path()));
        let told = told.unwrap_err().to_string();
        assert!(
            told.starts_with("a backup needs 18 MiB of room in"),
            "{told}"
        );
        assert!(told.contains(&to.path().display().to_string()), "{told}");
        assert!(told.contains("Make room there, or name a file"), "{told}");
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
        // A name is a small change, as a revocation is.
        store.rename_connection(&work, "Other").unwrap();
        assert!(folder.path().join("index/1").exists());
        drop(store);
        let store = open(folder.path());
        assert_eq!(hits(&store, &work, "zyzzyva"), 40);
        disk_space::pretended::FREE.set(None);
        store.write(&home, vec![message("new", "x")]).unwrap();
    }

    #[test]
    fn a_purge_takes_only_deletions_that_the_index_has_seen() {
        let folder = tempfile::tempdir().unwrap();
        let (store, [_, home]) = filled(folder.path());
        let indexed = store.index.current_index().unwrap().committed();
        let deletion = change("kept", ChangeOp::Delete);
        store.write(&home, vec![deletion]).unwrap();
        let purge = |upto| {
            let purge = |transaction: &Transaction<'_>| Ok(purge_rows(transaction, upto)?);
            store.database.transact(purge).unwrap().tombstones
        };
        assert_eq!(purge(indexed), 40);
        assert_eq!(store.purge().unwrap().tombstones, 1);
        assert_eq!(hits(&store, &home, "quokka"), 0);
    }
}
