//! An open index: what readers see of it, and how changes get into it.

mod copying;
mod layouts;
mod merging;
mod pass;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contract::id::hex;
use serde::{Deserialize, Serialize};
use tantivy::index::{SegmentComponent, SegmentId};
use tantivy::indexer::LogMergePolicy;
use tantivy::{Index, IndexReader, IndexSettings, IndexWriter, ReloadPolicy, Term};

use super::failure::failed;
use super::schema::{self, Capacity, Fields, Indexable};
use super::verify::{MergeWhole, Verifier};
use super::view::View;
use super::{IndexChange, tokenizer};
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
            return Err(StoreError::engine(folder, "the index schema is not ours"));
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
            layouts: Mutex::new(KnownLayouts::new(bookmark.layouts)),
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
        let payload = serde_json::to_string(&bookmark)
            .map_err(|error| StoreError::engine(&self.folder, error))?;
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
        writing
            .writer
            .as_mut()
            .ok_or_else(|| StoreError::engine(&self.folder, "the index has no writer"))
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
