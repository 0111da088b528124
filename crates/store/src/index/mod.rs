//! The index over the records, and everything that is answered from it.
//!
//! The records are the truth, behind a small port ([`Truth`]); which database holds them is not known here. The index follows
//! them by version, and can always be derived anew.

mod aggregate;
pub(crate) mod answering;
mod buckets;
mod by_time;
mod column_test;
mod document_set;
mod documents;
pub(crate) mod engine;
mod extent;
mod finding;
mod groups;
mod head;
mod indexed_record;
mod inspect;
pub(crate) mod layout;
mod meaning;
mod passing_keys;
mod remembered;
mod replay;
mod restrict;
mod search;
mod searched_fields;
mod select;
pub(crate) mod sources;
mod tally;
pub(crate) mod truth;
mod upkeep;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use contract::json::RecordBody;
use contract::time::Clock;

use self::engine::{IndexChange, OpenIndex, SearchIndex};
use self::extent::Extents;
use self::meaning::MeaningState;
use self::passing_keys::PassingKeys;
use self::replay::Replay;
use self::sources::Sources;
use self::truth::{Mark, Truth};
use crate::catalog::StreamRef;
use crate::search::{IndexStatus, Part, SearchRequest};
use crate::{Result, StoreError};

pub use self::engine::tokenizer::WordTokenizer;
pub use self::meaning::VectorScan;

/// The folders of what is derived, and what ties it to its records.
pub(crate) struct Folders {
    pub(crate) index: PathBuf,
    pub(crate) model: PathBuf,
    pub(crate) vectors: PathBuf,
    pub(crate) store_id: [u8; 16],
}

/// The index of a store's records, with what is remembered beside it.
pub(crate) struct RecordIndex {
    truth: Arc<dyn Truth>,
    clock: Arc<dyn Clock>,
    index: SearchIndex,
    extents: Extents,
    passing_keys: PassingKeys,
    /// A background thread works off everything that takes long, so no read does.
    tended: AtomicBool,
    /// The version of the last change when the background thread last looked.
    at_rest: AtomicU64,
    meaning: MeaningState,
    /// Parts of finding that are not at work, where it is measured what they bring.
    left_out: Vec<Part>,
}

impl RecordIndex {
    pub(crate) fn new(
        truth: Arc<dyn Truth>,
        clock: Arc<dyn Clock>,
        folders: Folders,
    ) -> Result<Self> {
        let (newest, _) = truth.head()?;
        Ok(Self {
            index: SearchIndex::new(folders.index, folders.store_id, newest),
            meaning: MeaningState::new(folders.model, folders.vectors, folders.store_id),
            truth,
            clock,
            extents: Extents::default(),
            passing_keys: PassingKeys::default(),
            tended: AtomicBool::new(false),
            at_rest: AtomicU64::new(0),
            left_out: Vec::new(),
        })
    }

    /// Finds without some parts from now on; for measuring.
    pub(crate) fn leave_out(&mut self, parts: &[Part]) {
        self.left_out = parts.to_vec();
    }

    /// The request without the parts of finding that are left out, if any are.
    fn measured_request(&self, request: &SearchRequest) -> Option<SearchRequest> {
        if self.left_out.is_empty() {
            return None;
        }
        let mut request = request.clone();
        for scope in &mut request.scopes {
            let is_left_out = |part| self.left_out.contains(&part);
            scope.author.take_if(|_| is_left_out(Part::Authors));
            scope.conversation.take_if(|_| is_left_out(Part::Lending));
        }
        Some(request)
    }

    /// Removes the folders that a killed process left behind.
    pub(crate) fn sweep(&self) {
        self.index.sweep();
    }

    pub(crate) fn bytes_on_disk(&self) -> u64 {
        self.index.bytes_on_disk().max(self.meaning.bytes_on_disk())
    }

    /// Up to which version the index is on disk, if it was opened.
    pub(crate) fn committed(&self) -> u64 {
        self.index.opened().map_or(0, |open| open.committed())
    }

    /// Brings the index up to date, and answers up to which version it is on disk.
    pub(crate) fn committed_whole(&self) -> Result<u64> {
        self.with_index(|| Ok(self.whole_index(&mut |_| {})?.committed()))
    }

    /// Rewrites what still holds erased records, so that nothing of them stays on disk.
    pub(crate) fn expunge(&self) -> Result<()> {
        self.with_index(|| self.whole_index(&mut |_| {})?.expunge())?;
        self.index.await_retired()
    }

    /// Puts a copy of the index, brought up to date, into a folder of the same disk. Answers up to which version it is.
    pub(crate) fn copy_to(&self, folder: &Path) -> Result<(u64, Mark)> {
        self.with_index(|| self.whole_index(&mut |_| {})?.copy_to(folder))
    }

    /// How many records the index holds.
    pub(crate) fn indexed_records(&self) -> Result<u64> {
        self.with_index(|| Ok(self.current_index()?.view().searcher.num_docs()))
    }

    /// Where the records are, for messages.
    fn path(&self) -> &Path {
        self.truth.place()
    }

    fn sources(&self) -> Arc<Sources> {
        self.truth.sources()
    }

    /// The version of the last acknowledged change, as it is now.
    fn newest(&self) -> Result<u64> {
        Ok(self.truth.head()?.0)
    }

    /// Hands a batch to the index right after it was acknowledged. A failure here is caught up later: the records are safe.
    pub(crate) fn stage<'a>(
        &self,
        before: (u64, Mark),
        newest: (u64, Mark),
        changes: impl Iterator<Item = IndexChange<'a>>,
    ) {
        if let Ok(open) = self.adapted_index() {
            open.stage(before, newest, changes);
        }
    }

    /// The index with everything acknowledged so far.
    ///
    /// Where a background thread works off what takes long, a read does not wait for that.
    pub(crate) fn current_index(&self) -> Result<Arc<OpenIndex>> {
        let (newest, mark) = self.head()?;
        let open = self.open_index()?;
        if self.is_tended() && open.is_far_behind(newest) {
            return Err(still_building(&open, newest));
        }
        self.bring_up_to_date(&open, (newest, mark), &mut |_| {})?;
        Ok(open)
    }

    /// The index, holding everything acknowledged so far, however long that takes.
    pub(crate) fn whole_index(&self, progress: &mut dyn FnMut(u64)) -> Result<Arc<OpenIndex>> {
        let newest = self.head()?;
        let open = self.open_index()?;
        self.bring_up_to_date(&open, newest, progress)?;
        Ok(open)
    }

    fn open_index(&self) -> Result<Arc<OpenIndex>> {
        let open = self.adapted_index()?;
        if let Some(path) = self.index.take_damaged() {
            self.note_index_damage(&path);
        }
        open.refuse_damaged()?;
        Ok(open)
    }

    /// The index, which knows of streams that are declared otherwise than it has them.
    fn adapted_index(&self) -> Result<Arc<OpenIndex>> {
        let sources = self.sources();
        let open = self.index.open(sources.capacity())?;
        open.adapt(&sources, |stream| self.truth.row_range(stream))?;
        Ok(open)
    }

    fn bring_up_to_date(
        &self,
        open: &OpenIndex,
        (newest, mark): (u64, Mark),
        progress: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let (committed, known) = open.bookmark();
        let is_current = committed == newest;
        if is_current && mark.is_some() && known != mark {
            return Err(engine::rewritten());
        }
        // A write of this process may be newer than what was asked for. Where history can be rewritten, that has to be seen.
        if is_current || (committed > newest && known.is_none()) {
            return Ok(());
        }
        self.truth.on_snapshot(&mut |snapshot| {
            let source = Replay {
                snapshot,
                truth: &*self.truth,
            };
            open.catch_up(&source, progress)
        })
    }

    fn is_tended(&self) -> bool {
        self.tended.load(Ordering::Acquire)
    }

    /// How far the index is, without bringing it any further.
    fn status(&self) -> Result<IndexStatus> {
        let written = self.newest()?;
        let sources = self.sources();
        let indexed = self.index.committed(sources.capacity());
        let opened = self.index.opened();
        let (taken, building) = match &opened {
            Some(open) => (open.staged(), open.is_far_behind(written)),
            None => (indexed, written.saturating_sub(indexed) > engine::WINDOW),
        };
        let mut rebuilding = 0;
        for range in self.reindexing()? {
            rebuilding += self.truth.live_between(range)?;
        }
        Ok(IndexStatus {
            written,
            indexed,
            taken: taken.min(written),
            building,
            rebuilding,
            records: self.truth.live_records()?,
        })
    }

    /// Streams whose newly declared fields are not fully indexed yet.
    fn rebuilding_streams(&self, sources: &Sources) -> Result<Vec<StreamRef>> {
        let waiting = self.reindexing()?.into_iter();
        let streams = waiting.filter_map(|range| sources.by_id(range.stream));
        Ok(streams.map(|entry| entry.stream.clone()).collect())
    }
}

fn still_building(open: &OpenIndex, newest: u64) -> StoreError {
    StoreError::IndexBuilding {
        indexed: open.staged().min(newest),
        written: newest,
    }
}

/// Content as it was stored, which was checked when it was written.
pub(crate) fn parse_stored(data: String, place: &Path) -> Result<RecordBody> {
    RecordBody::parse(data).map_err(|error| {
        StoreError::corrupt(
            place,
            format!("a stored record is not JSON any more ({})", error.message),
        )
    })
}
