//! An open index: what readers see of it, and how changes get into it.

mod copying;
mod layouts;
mod pass;
mod tidying;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tantivy::directory::error::{OpenDirectoryError, OpenReadError, OpenWriteError};
use tantivy::index::{SegmentComponent, SegmentId};
use tantivy::indexer::LogMergePolicy;
use tantivy::{Index, IndexReader, IndexSettings, IndexWriter, ReloadPolicy, TantivyError, Term};

use super::schema::{self, Capacity, Fields, Indexable};
use super::verify::{MergeWhole, Verifier};
use super::view::View;
use super::{IndexChange, tokenizer};
use crate::disk_space;
use crate::index::layout::StreamLayout;
use crate::index::truth::{Mark, RowRange};
use crate::sqlite::directory::create_private;
use crate::{Result, StoreError};

pub(crate) use copying::copy_format;
use layouts::{KnownLayouts, Layouts};
pub(crate) use pass::WINDOW;

/// Raised whenever documents are built differently or an index on disk may be wrong, so that it is rebuilt.
const FORMAT: u32 = 6;
/// What one flush of the engine may hold in memory.
const WRITER_BYTES: usize = 160_000_000;
/// A commit costs some 100 ms, and a crash replays what was not committed: this bounds both.
const COMMIT_EVERY: u64 = 250_000;

/// What an index commit says of itself.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct Bookmark {
    format: u32,
    analyzer: u32,
    store: String,
    version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mark: Mark,
    /// How the documents of each stream are laid out.
    layouts: Layouts,
}

pub(crate) struct OpenIndex {
    folder: PathBuf,
    store: String,
    reader: IndexReader,
    view: Mutex<Arc<View>>,
    index: Index,
    verifier: Arc<Verifier>,
    pub(crate) fields: Fields,
    pub(super) capacity: Capacity,
    /// Locked while the index is brought up to date or rewritten. The changes of one pass come from one state of the
    /// records, so no other pass may interleave.
    pass: Mutex<()>,
    writing: Mutex<Writing>,
    layouts: Mutex<KnownLayouts>,
    /// The last version handed to the writer, as it was when nobody was writing.
    staged: AtomicU64,
    /// The version of the last commit that readers see.
    committed: AtomicU64,
    /// And its mark.
    mark: Mutex<(u64, Mark)>,
    /// A long pass is under way.
    building: AtomicBool,
    /// Another index has replaced it.
    retired: AtomicBool,
}

impl Drop for OpenIndex {
    /// A retired index serves its remaining users, and its folder is removed with the last of them.
    fn drop(&mut self) {
        if self.retired.load(Ordering::Acquire) {
            self.writing().writer = None;
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

struct Writing {
    writer: Option<IndexWriter>,
    /// The segments that this writer was last told to merge.
    merging: Vec<SegmentId>,
    /// The last version handed to the writer, committed or not.
    staged: u64,
    mark: Mark,
    uncommitted: u64,
}

impl OpenIndex {
    /// The index on disk; `None` if anything about it is wrong.
    pub(super) fn existing(
        folder: &Path,
        store_id: [u8; 16],
        needed: Capacity,
    ) -> Result<Option<Self>> {
        let Some((index, bookmark)) = Self::found(folder, store_id, needed) else {
            return Ok(None);
        };
        let verifier = Verifier::new(&index, folder);
        let segments = index.searchable_segment_metas().map_err(failed(folder))?;
        verifier.check_new(&segments)?;
        Ok(Self::around(index, verifier, folder, (store_id, bookmark)).ok())
    }

    /// The index on disk, without checking its content, and what its last commit says.
    pub(super) fn found(
        folder: &Path,
        store_id: [u8; 16],
        needed: Capacity,
    ) -> Option<(Index, Bookmark)> {
        let index = Index::open_in_dir(folder).ok()?;
        let (_, capacity) = Fields::from_schema(&index.schema(), store_id)?;
        let payload = index.load_metas().ok()?.payload?;
        let bookmark: Bookmark = serde_json::from_str(&payload).ok()?;
        let expected = Bookmark {
            version: bookmark.version,
            mark: bookmark.mark.clone(),
            layouts: bookmark.layouts.clone(),
            ..Bookmark::new(&hex(store_id))
        };
        if !capacity.covers(needed) || bookmark != expected {
            return None;
        }
        // The engine treats a missing positions file as an empty one.
        for segment in index.searchable_segments().ok()? {
            segment.open_read(SegmentComponent::Positions).ok()?;
        }
        Some((index, bookmark))
    }

    pub(super) fn fresh(folder: &Path, store_id: [u8; 16], needed: Capacity) -> Result<Self> {
        create_private(folder)?;
        let index = Index::builder()
            .schema(schema::build(needed.roomy()))
            .settings(IndexSettings::default())
            .create_in_dir(folder)
            .map_err(failed(folder))?;
        let verifier = Verifier::new(&index, folder);
        let bookmark = Bookmark::new(&hex(store_id));
        Self::around(index, verifier, folder, (store_id, bookmark))
    }

    fn around(
        index: Index,
        verifier: Arc<Verifier>,
        folder: &Path,
        (store_id, bookmark): ([u8; 16], Bookmark),
    ) -> Result<Self> {
        let version = bookmark.version;
        index
            .tokenizers()
            .register(tokenizer::NAME, tokenizer::WordTokenizer::default());
        let Some((fields, capacity)) = Fields::from_schema(&index.schema(), store_id) else {
            return Err(StoreError::Engine {
                path: folder.to_owned(),
                detail: "the index schema is not ours".to_owned(),
            });
        };
        let reader: IndexReader = index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .try_into()
            .map_err(failed(folder))?;
        let view = View::new(reader.searcher(), None).map_err(failed(folder))?;
        Ok(Self {
            folder: folder.to_owned(),
            store: hex(store_id),
            reader,
            view: Mutex::new(Arc::new(view)),
            index,
            verifier,
            fields,
            capacity,
            pass: Mutex::new(()),
            staged: AtomicU64::new(version),
            building: AtomicBool::new(false),
            writing: Mutex::new(Writing {
                writer: None,
                merging: Vec::new(),
                staged: version,
                mark: bookmark.mark.clone(),
                uncommitted: 0,
            }),
            layouts: Mutex::new(KnownLayouts::of(bookmark.layouts)),
            committed: AtomicU64::new(version),
            mark: Mutex::new((version, bookmark.mark)),
            retired: AtomicBool::new(false),
        })
    }

    pub(crate) fn refuse_damaged(&self) -> Result<()> {
        self.verifier.refuse_damaged()
    }

    /// Marks the index as replaced.
    pub(super) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    pub(crate) fn view(&self) -> Arc<View> {
        let view = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&view)
    }

    /// Makes committed or merged segments visible to readers.
    fn reload(&self) -> Result<()> {
        let segments = self.index.searchable_segment_metas();
        self.verifier
            .check_new(&segments.map_err(failed(&self.folder))?)?;
        let refresh = || -> tantivy::Result<()> {
            self.reader.reload()?;
            let view = View::new(self.reader.searcher(), Some(&self.view()))?;
            *self.view.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(view);
            Ok(())
        };
        refresh().map_err(failed(&self.folder))
    }

    /// The version of the last change that readers see.
    pub(crate) fn committed(&self) -> u64 {
        self.committed.load(Ordering::Acquire)
    }

    /// The same, with its mark.
    pub(crate) fn bookmark(&self) -> (u64, Mark) {
        let mark = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        mark.clone()
    }

    /// Drops what was staged and not committed.
    fn forget(&self, writing: &mut Writing) {
        *writing = Writing {
            writer: None,
            merging: Vec::new(),
            staged: self.committed(),
            mark: self.bookmark().1,
            uncommitted: 0,
        };
        self.staged.store(writing.staged, Ordering::Release);
    }

    /// Indexes records again whose version the index has passed already. `records` reads them while no other change can
    /// reach the index, so that an older form never replaces a newer one.
    /// It returns where the range goes on.
    pub(crate) fn reindex(
        &self,
        range: RowRange,
        layout: Option<&StreamLayout>,
        records: impl FnOnce(&mut dyn FnMut(Indexable<'_>) -> Result<()>) -> Result<Option<u64>>,
    ) -> Result<()> {
        let _pass = self.pass();
        let mut writing = self.writing();
        let next = records(&mut |record| {
            let known = true;
            self.apply(&mut writing, IndexChange::Put { record, known })
        })?;
        let mut layouts = self.layouts().streams.clone();
        layouts::advance(&mut layouts, range, layout, next);
        // Readers hear of it when they can see it.
        self.commit_as(&mut writing, layouts)?;
        layouts::advance(&mut self.layouts().streams, range, layout, next);
        Ok(())
    }

    /// Rewrites every segment that still holds what was deleted, so that nothing of it stays on disk.
    pub(crate) fn expunge(&self) -> Result<()> {
        let _pass = self.pass();
        let mut writing = self.writing();
        if writing.uncommitted > 0 {
            self.commit(&mut writing)?;
        }
        // A merge under way may have taken documents before they were deleted, so its result is checked.
        self.finish_merges(&mut writing)?;
        let mut stale = self
            .index
            .searchable_segment_metas()
            .map_err(failed(&self.folder))?;
        stale.retain(|segment| segment.num_deleted_docs() > 0);
        self.verifier.check_again(&stale)?;
        for segment in stale {
            let writer = self.writer(&mut writing)?;
            let merged = writer.merge(&[segment.id()]).wait();
            merged.map_err(failed(&self.folder))?;
        }
        self.reload()?;
        let writer = self.writer(&mut writing)?;
        let collected = writer.garbage_collect_files().wait();
        let collected = collected.map_err(failed(&self.folder))?;
        if let Some(file) = collected.failed_to_delete_files.first() {
            return Err(StoreError::Engine {
                path: self.folder.join(file),
                detail: "it cannot be removed".to_owned(),
            });
        }
        self.finish_merges(&mut writing)
    }

    /// The damaged files. Nothing is merged meanwhile.
    pub(crate) fn changed_files(&self) -> Result<Vec<PathBuf>> {
        let _pass = self.pass();
        let mut writing = self.writing();
        if writing.uncommitted > 0 {
            self.commit(&mut writing)?;
        }
        self.finish_merges(&mut writing)?;
        let changed = self.index.validate_checksum();
        let changed = changed.map_err(failed(&self.folder))?.into_iter();
        let mut changed: Vec<PathBuf> = changed.map(|file| self.folder.join(file)).collect();
        changed.sort();
        Ok(changed)
    }

    /// Waits for background merges. Nothing may be uncommitted.
    fn finish_merges(&self, writing: &mut Writing) -> Result<()> {
        if let Some(writer) = writing.writer.take() {
            let finished = writer.wait_merging_threads();
            finished.map_err(failed(&self.folder))?;
        }
        self.reload()
    }

    fn apply(&self, writing: &mut Writing, change: IndexChange<'_>) -> Result<()> {
        let writer = self.writer(writing)?;
        match change {
            IndexChange::Put { record, known } => {
                if known {
                    writer.delete_term(Term::from_field_u64(self.fields.row, record.row));
                }
                writer
                    .add_document(self.fields.document(&record))
                    .map_err(failed(&self.folder))?;
            }
            IndexChange::Drop { row } => {
                writer.delete_term(Term::from_field_u64(self.fields.row, row));
            }
            IndexChange::Erase { stream } => {
                writer.delete_term(Term::from_field_u64(self.fields.stream, stream));
            }
        }
        writing.uncommitted += 1;
        Ok(())
    }

    fn commit(&self, writing: &mut Writing) -> Result<()> {
        let layouts = self.layouts().streams.clone();
        self.commit_as(writing, layouts)
    }

    fn commit_as(&self, writing: &mut Writing, layouts: Layouts) -> Result<()> {
        let version = writing.staged;
        let bookmark = Bookmark {
            version,
            mark: writing.mark.clone(),
            layouts,
            ..Bookmark::new(&self.store)
        };
        let payload = serde_json::to_string(&bookmark).map_err(|error| StoreError::Engine {
            path: self.folder.clone(),
            detail: error.to_string(),
        })?;
        let writer = self.writer(writing)?;
        let mut commit = writer.prepare_commit().map_err(failed(&self.folder))?;
        commit.set_payload(&payload);
        commit.commit().map_err(failed(&self.folder))?;
        writing.uncommitted = 0;
        self.reload()?;
        *self.mark.lock().unwrap_or_else(PoisonError::into_inner) = (version, bookmark.mark);
        self.committed.store(version, Ordering::Release);
        Ok(())
    }

    fn writer<'a>(&self, writing: &'a mut Writing) -> Result<&'a mut IndexWriter> {
        if writing.writer.is_none() {
            let writer = self
                .index
                .writer_with_num_threads(1, WRITER_BYTES)
                .map_err(failed(&self.folder))?;
            let mut policy = LogMergePolicy::default();
            policy.set_del_docs_ratio_before_merge(0.3);
            writer.set_merge_policy(Box::new(MergeWhole {
                policy,
                verifier: Arc::clone(&self.verifier),
            }));
            // A new writer numbers its first operation like the last commit. A merge would take a deletion of that number
            // for part of the commit, hence for done in some segments, where it is then lost. This operation uses the
            // number up.
            writer.run([]).map_err(failed(&self.folder))?;
            writing.writer = Some(writer);
            writing.merging.clear();
        }
        writing.writer.as_mut().ok_or_else(|| StoreError::Engine {
            path: self.folder.clone(),
            detail: "the index has no writer".to_owned(),
        })
    }

    fn layouts(&self) -> MutexGuard<'_, KnownLayouts> {
        self.layouts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass(&self) -> MutexGuard<'_, ()> {
        self.pass.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writing(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bookmark {
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    fn new(store: &str) -> Self {
        Self {
            format: FORMAT,
            analyzer: text::ANALYZER_VERSION,
            store: store.to_owned(),
            version: 0,
            mark: None,
            layouts: Layouts::new(),
        }
    }
}

pub(crate) fn hex(bytes: [u8; 16]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The file that an error is about, and the system's error.
fn cause(error: &TantivyError) -> Option<(&Path, &std::io::Error)> {
    match error {
        TantivyError::IoError(cause) => Some((Path::new(""), cause)),
        TantivyError::OpenReadError(OpenReadError::IoError { io_error, filepath })
        | TantivyError::OpenWriteError(OpenWriteError::IoError { io_error, filepath }) => {
            Some((filepath, io_error))
        }
        TantivyError::OpenDirectoryError(OpenDirectoryError::IoError {
            io_error,
            directory_path,
        }) => Some((directory_path, io_error)),
        _ => None,
    }
}

/// Turns an engine error into ours, naming the folder. Only content that cannot be read as it was written is damage: a disk
/// that is full or fails is reported as such, and nothing is thrown away for it.
pub(crate) fn failed(folder: &Path) -> impl Fn(TantivyError) -> StoreError + '_ {
    move |error| {
        let damaged = |detail: String| StoreError::IndexDamaged {
            path: folder.to_owned(),
            detail,
        };
        let Some((path, cause)) = cause(&error) else {
            return match error {
                // Background writers do not say why they ended.
                TantivyError::ErrorInThread(_)
                | TantivyError::SystemError(_)
                | TantivyError::Poisoned
                | TantivyError::LockFailure(..) => disk_space::unable(folder, &error.to_string()),
                other => damaged(other.to_string()),
            };
        };
        match cause.raw_os_error() {
            // Without a system error, the engine found the fault in what it read.
            None => match StoreError::io(folder.join(path), cause.kind().into()) {
                StoreError::Io { .. } => damaged(cause.to_string()),
                full_or_read_only => full_or_read_only,
            },
            Some(_) if cause.kind() == ErrorKind::NotFound => damaged(cause.to_string()),
            Some(code) => {
                StoreError::io(folder.join(path), std::io::Error::from_raw_os_error(code))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tantivy::collector::Count;
    use tantivy::indexer::NoMergePolicy;
    use tantivy::query::TermQuery;
    use tantivy::schema::IndexRecordOption;
    use tantivy::{SegmentMeta, TantivyDocument};

    use super::*;

    /// As many segments of one size as the policy merges into one.
    const SEGMENTS: u64 = 8;

    /// An index of small segments with rows 0, 1, 2, … that waits to be merged. The last commit before it was closed
    /// took one row out of the `touched` segment. Answers it with another row of that segment.
    fn due_to_be_merged(folder: &Path, touched: u64) -> (OpenIndex, u64) {
        let index = OpenIndex::fresh(folder, [0; 16], Capacity::default()).unwrap();
        let mut writer = index
            .index
            .writer_with_num_threads(1, WRITER_BYTES)
            .unwrap();
        writer.set_merge_policy(Box::new(NoMergePolicy));
        for row in 0..SEGMENTS * 4 {
            writer.add_document(row_only(&index, row)).unwrap();
            if row % 4 == 3 {
                writer.commit().unwrap();
            }
        }
        writer.delete_term(Term::from_field_u64(index.fields.row, touched * 4));
        writer.commit().unwrap();
        (index, touched * 4 + 1)
    }

    fn row_only(index: &OpenIndex, row: u64) -> TantivyDocument {
        let mut document = TantivyDocument::default();
        document.add_u64(index.fields.row, row);
        document
    }

    fn is_found(index: &OpenIndex, row: u64) -> bool {
        let term = Term::from_field_u64(index.fields.row, row);
        let query = TermQuery::new(term, IndexRecordOption::Basic);
        index.reader.searcher().search(&query, &Count).unwrap() > 0
    }

    #[test]
    fn at_rest_each_segment_is_larger_than_all_smaller_ones_together() {
        let folder = tempfile::tempdir().unwrap();
        let index = OpenIndex::fresh(folder.path(), [0; 16], Capacity::default()).unwrap();
        let sizes = || {
            let segments = index.index.searchable_segment_metas().unwrap();
            let mut sizes: Vec<u32> = segments.iter().map(SegmentMeta::num_docs).collect();
            sizes.sort_unstable();
            sizes
        };
        let mut row = 0;
        for (added, at_rest) in [
            (5, vec![5]),
            (2, vec![2, 5]),
            (2, vec![4, 5]),
            (1, vec![10]),
            (1, vec![1, 10]),
        ] {
            let mut writing = index.writing();
            for _ in 0..added {
                row += 1;
                let document = row_only(&index, row);
                let writer = index.writer(&mut writing).unwrap();
                writer.add_document(document).unwrap();
            }
            index.commit(&mut writing).unwrap();
            drop(writing);
            index.rest().unwrap();
            assert_eq!(sizes(), at_rest);
        }
        assert!((1..=row).all(|row| is_found(&index, row)));
    }

    #[test]
    fn the_first_deletion_after_a_start_is_not_lost_in_a_merge() {
        for touched in [0, SEGMENTS - 1] {
            let folder = tempfile::tempdir().unwrap();
            let (index, row) = due_to_be_merged(folder.path(), touched);
            let mut writing = index.writing();
            index
                .apply(&mut writing, IndexChange::Drop { row })
                .unwrap();
            // A new segment makes the engine look for merges before anything is committed.
            let writer = index.writer(&mut writing).unwrap();
            writer.add_document(row_only(&index, 1_000)).unwrap();
            index.commit(&mut writing).unwrap();
            index.finish_merges(&mut writing).unwrap();
            assert!(index.index.searchable_segment_ids().unwrap().len() < 8);
            assert!(!is_found(&index, row), "segment {touched}");
        }
    }
}
