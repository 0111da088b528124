//! Keeping the index in step with declarations: streams whose indexed fields changed are indexed again, a chunk at a time,
//! resumable after every one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rusqlite::OptionalExtension;

use super::EmbeddedStore;
use super::changes::parse_stored;
use super::declared_records::live_rows;
use super::index::{Indexable, OpenIndex};
use crate::catalog::StreamRef;
use crate::{Result, StoreError, stop};

/// Records indexed again between two commits.
const CHUNK: usize = 20_000;
/// The key under which index damage is recorded.
const INDEX_DAMAGE: &str = "index_damage";
/// How often a read is retried when the index is replaced under it.
const ATTEMPTS: usize = 5;

impl EmbeddedStore {
    /// Runs a read of the index. If the index turns out to be damaged, it is rebuilt and the read runs again; if it was
    /// replaced meanwhile, the read just runs again.
    ///
    /// The engine checks little of what it reads, so damage may show as a panic inside it: nothing of ours is left half
    /// done by that, because reads change nothing.
    pub(super) fn with_index<T>(&self, read: impl Fn() -> Result<T>) -> Result<T> {
        for _ in 1..ATTEMPTS {
            let before = self.index.opened();
            match catch_unwind(AssertUnwindSafe(&read)) {
                Ok(Err(StoreError::IndexDamaged { path, .. })) => {
                    // The folder is named where it cannot be read at all, a file where its checksum is wrong.
                    if path.extension().is_some() {
                        self.note_index_damage(&path);
                    }
                    let failed = before.or_else(|| self.index.opened());
                    self.index.discard(failed.as_ref());
                }
                Err(_) => {
                    // Opened by this very read, if it was not open before.
                    let failed = before.or_else(|| self.index.opened());
                    self.index.discard(failed.as_ref());
                }
                Ok(outcome) => return outcome,
            }
        }
        read()
    }

    /// Records which file of the index was damaged: it is rebuilt and answers as before, but the disk has changed
    /// something, which the owner must know.
    pub(super) fn note_index_damage(&self, path: &Path) {
        let noted = self.database.transact(|transaction| {
            let text = format!("{} {}", self.clock.now(), path.display());
            transaction
                .execute(
                    "INSERT OR IGNORE INTO meta VALUES (?1, ?2)",
                    (INDEX_DAMAGE, text),
                )
                .map_err(self.database.failed())
        });
        // A disk that is full as well is reported by other writes.
        drop(noted);
    }

    /// When a file of the index was found damaged, and which one, since the owner last rebuilt it.
    pub(super) fn index_damage(&self) -> Result<Option<(String, PathBuf)>> {
        let text: Option<String> = self.database.read(|connection| {
            connection
                .prepare_cached("SELECT value FROM meta WHERE name = ?1")?
                .query_row([INDEX_DAMAGE], |row| row.get(0))
                .optional()
        })?;
        let parts = text.as_deref().and_then(|text| text.split_once(' '));
        Ok(parts.map(|(at, path)| (at.to_owned(), PathBuf::from(path))))
    }

    pub(super) fn forget_index_damage(&self) -> Result<()> {
        self.database.transact(|transaction| {
            transaction
                .execute("DELETE FROM meta WHERE name = ?1", [INDEX_DAMAGE])
                .map(drop)
                .map_err(self.database.failed())
        })
    }

    /// Indexes some more records of a stream whose declaration changed. Returns whether there may be more.
    pub(super) fn reindex_chunk(&self, open: &OpenIndex) -> Result<bool> {
        let _declarations_stay = self.declaring();
        let next: Option<(i64, i64, i64)> = self.database.read(|connection| {
            connection
                .prepare_cached("SELECT stream_id, next_row, last_row FROM reindexing LIMIT 1")?
                .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .optional()
        })?;
        let Some((stream, next_row, last_row)) = next else {
            return Ok(false);
        };
        let sources = self.sources();
        let mut resume = None;
        open.reindex(|put| {
            let rows = self.database.read(|connection| {
                live_rows(connection, stream, (next_row - 1, last_row), CHUNK)
            })?;
            let full = rows.len() == CHUNK;
            resume = rows.last().filter(|_| full).map(|row| row.number + 1);
            let Some(entry) = sources.by_id(stream) else {
                return Ok(());
            };
            for row in rows {
                put(Indexable {
                    row: row.number.cast_unsigned(),
                    stream: stream.cast_unsigned(),
                    emitted_at: &row.emitted_at,
                    layout: &entry.layout,
                    body: &parse_stored(row.data, self.path())?,
                })?;
            }
            Ok(())
        })?;
        self.note_reindexed(stream, resume)?;
        Ok(true)
    }

    pub(super) fn still_building(&self, open: &OpenIndex) -> StoreError {
        StoreError::IndexBuilding {
            indexed: open.staged().min(self.newest()),
            written: self.newest(),
        }
    }

    /// How many records are indexed as they are declared now, and how many there are.
    pub(super) fn reindexed(&self) -> Result<(u64, u64)> {
        let status = self.status()?;
        let waiting = status.rebuilding.min(status.records);
        Ok((status.records - waiting, status.records))
    }

    /// The same, while there are such streams.
    pub(super) fn reindexed_of(&self, rebuilding: &[StreamRef]) -> Result<Option<(u64, u64)>> {
        let is_any = !rebuilding.is_empty();
        is_any.then(|| self.reindexed()).transpose()
    }

    /// Keeps how far a stream is, or that it is done.
    fn note_reindexed(&self, stream: i64, resume: Option<i64>) -> Result<()> {
        self.database.transact(|transaction| {
            let noted = match resume {
                Some(row) => transaction.execute(
                    "UPDATE reindexing SET next_row = ?2 WHERE stream_id = ?1",
                    [stream, row],
                ),
                None => {
                    transaction.execute("DELETE FROM reindexing WHERE stream_id = ?1", [stream])
                }
            };
            noted.map_err(self.database.failed()).map(drop)
        })
    }

    /// Works off what takes long: first missing changes, then the queue.
    pub(super) fn tend(&self) -> Result<()> {
        self.tended.store(true, Ordering::Release);
        self.with_index(|| {
            let mut open = self.open_index()?;
            // Changes that are only not committed yet are left to the next read, which commits them in a moment.
            if open.staged() < self.newest() {
                open = self.whole_index(&mut |_| {})?;
            }
            loop {
                stop::check()?;
                if !stop::apart(|| self.reindex_chunk(&open))? {
                    return Ok(());
                }
            }
        })
    }

    /// The index with every column of the stream filled: an aggregate must be exact, so it waits for that, unless it takes
    /// long and a background thread does it.
    pub(super) fn index_with_columns(&self, stream: i64) -> Result<Arc<OpenIndex>> {
        let open = self.current_index()?;
        loop {
            let pending: Option<usize> = self.database.read(|connection| {
                connection
                    .prepare_cached(
                        "SELECT max(0, last_row - next_row + 1) FROM reindexing WHERE stream_id = ?1",
                    )?
                    .query_row([stream], |row| row.get(0))
                    .optional()
            })?;
            let Some(pending) = pending else {
                return Ok(open);
            };
            if self.is_tended() && pending > CHUNK {
                let (indexed, written) = self.reindexed()?;
                return Err(StoreError::IndexBuilding { indexed, written });
            }
            stop::check()?;
            stop::apart(|| self.reindex_chunk(&open))?;
        }
    }
}
