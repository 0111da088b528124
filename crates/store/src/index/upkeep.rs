//! Keeping the index in step with declarations: streams whose indexed fields changed are indexed again, a chunk at a time,
//! resumable after every one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::engine::{self, Indexable, OpenIndex};
use super::truth::RowRange;
use super::{RecordIndex, parse_stored};
use crate::catalog::StreamRef;
use crate::{Result, StoreError, stop};

/// Records indexed again between two commits.
const CHUNK: usize = 20_000;
/// How often a read is retried when the index is replaced under it.
const ATTEMPTS: usize = 5;

impl RecordIndex {
    /// Runs a read of the index. If the index turns out to be damaged, it is rebuilt and the read runs again; if it was
    /// replaced meanwhile, the read just runs again.
    ///
    /// The engine checks little of what it reads, so damage may show as a panic inside it: nothing of ours is left half
    /// done by that, because reads change nothing.
    pub(crate) fn with_index<T>(&self, read: impl Fn() -> Result<T>) -> Result<T> {
        let read = || self.with_head(&read);
        for _ in 1..ATTEMPTS {
            let before = self.index.opened();
            match catch_unwind(AssertUnwindSafe(&read)) {
                Ok(Err(error)) if engine::is_rewritten(&error) => {
                    // Vectors followed the same history.
                    self.forget_vectors()?;
                    let failed = before.or_else(|| self.index.opened());
                    self.index.discard(failed.as_ref());
                }
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
        // A disk that is full as well is reported by other writes.
        let _ = self.index.note_damage(&self.clock.now().to_string(), path);
    }

    /// Indexes some more records of a stream whose declaration changed. Returns whether there may be more.
    pub(super) fn reindex_chunk(&self, open: &OpenIndex) -> Result<bool> {
        let Some(range) = open.next_to_reindex() else {
            return Ok(false);
        };
        let sources = self.sources();
        let entry = sources.by_id(range.stream);
        open.reindex(range, entry.map(|entry| &*entry.layout), |put| {
            let rows = self.truth.live_rows(range, CHUNK)?;
            let next = rows.last().filter(|_| rows.len() == CHUNK);
            let next = next.map(|row| row.row + 1);
            let Some(entry) = entry else {
                return Ok(None);
            };
            for row in rows {
                put(Indexable {
                    row: row.row,
                    stream: range.stream.cast_unsigned(),
                    emitted_at: &row.emitted_at,
                    layout: &entry.layout,
                    body: &parse_stored(row.data, self.path())?,
                })?;
            }
            Ok(next)
        })?;
        Ok(true)
    }

    /// The rows of streams that are not indexed as they are declared now. A stream that is not looked at yet is not among
    /// them before the index is opened.
    pub(super) fn reindexing(&self) -> Result<Vec<RowRange>> {
        let open = self.adapted_index()?;
        Ok(open.reindexing())
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

    /// Works off what takes long: first missing changes, then the queue. Where nothing was written since the last time, it then
    /// merges what many small writes left.
    pub(super) fn tend(&self) -> Result<()> {
        self.tended.store(true, Ordering::Release);
        self.with_index(|| {
            let mut open = self.open_index()?;
            // Changes that are only not committed yet are left to the next read, which commits them in a moment.
            if open.staged() < self.newest()? {
                open = self.whole_index(&mut |_| {})?;
            }
            loop {
                stop::check()?;
                if !stop::apart(|| self.reindex_chunk(&open))? {
                    break;
                }
            }
            let newest = self.newest()?;
            if self.at_rest.swap(newest, Ordering::Relaxed) == newest {
                open.tidy()?;
            }
            Ok(())
        })
    }

    /// The index with every column of the stream filled: an aggregate must be exact, so it waits for that, unless it takes
    /// long and a background thread does it.
    pub(super) fn index_with_columns(&self, stream: i64) -> Result<Arc<OpenIndex>> {
        let open = self.current_index()?;
        loop {
            let waiting = open.reindexing().into_iter();
            let mut waiting = waiting.filter(|range| range.stream == stream);
            let pending = waiting
                .next()
                .map(|range| range.last.saturating_sub(range.first) + 1);
            let Some(pending) = pending else {
                return Ok(open);
            };
            if self.is_tended() && pending > CHUNK as u64 {
                let (indexed, written) = self.reindexed()?;
                return Err(StoreError::IndexBuilding { indexed, written });
            }
            stop::check()?;
            stop::apart(|| self.reindex_chunk(&open))?;
        }
    }
}
