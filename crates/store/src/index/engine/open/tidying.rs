//! Merging what is small beside the rest: a search looks at every segment, and small writes leave many.

use std::sync::TryLockError;

use tantivy::SegmentMeta;
use tantivy::index::SegmentId;

use super::{OpenIndex, failed};
use crate::Result;

/// No more documents are copied at a time. Larger segments are few, and the engine merges them as more are written.
const MOST_DOCUMENTS: u32 = 250_000;

impl OpenIndex {
    /// Waits for background merges, so that the folder is at rest, and merges what is small beside the rest: a search looks at
    /// every segment.
    pub(crate) fn rest(&self) -> Result<()> {
        let _pass = self.pass();
        let mut writing = self.writing();
        if writing.uncommitted > 0 {
            return Ok(());
        }
        self.finish_merges(&mut writing)?;
        let segments = self.index.searchable_segment_metas();
        let small = small(segments.map_err(failed(&self.folder))?);
        if small.len() > 1 {
            self.verifier.check_again(&small)?;
            let ids: Vec<_> = small.iter().map(SegmentMeta::id).collect();
            let merged = self.writer(&mut writing)?.merge(&ids).wait();
            merged.map_err(failed(&self.folder))?;
            self.finish_merges(&mut writing)?;
        }
        Ok(())
    }

    /// Begins to merge small segments in a thread of the engine, and shows readers what was merged before. Whoever reads or writes
    /// comes first: nothing is begun while they hold the index, and what takes long is done without holding it.
    pub(crate) fn tidy(&self) -> Result<()> {
        let failed = failed(&self.folder);
        let segments = self.index.searchable_segment_metas().map_err(&failed)?;
        let mut chosen = bounded(small(segments.clone()));
        // The engine works at these already, or could not merge them.
        let begun = self.writing().merging.clone();
        if ids(&chosen).any(|id| begun.contains(&id)) {
            chosen.clear();
        }
        // Both read files whole.
        self.verifier.check_new(&segments)?;
        if !chosen.is_empty() {
            self.verifier.check_again(&chosen)?;
        }
        let _pass = match self.pass.try_lock() {
            Ok(pass) => pass,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        let mut writing = self.writing();
        let now = self.index.searchable_segment_metas().map_err(&failed)?;
        if writing.uncommitted > 0 || !ids(&now).eq(ids(&segments)) {
            return Ok(());
        }
        let view = self.view();
        let shown: Vec<_> = view.segments().map(|one| one.reader.segment_id()).collect();
        if !ids(&now).all(|id| shown.contains(&id)) {
            self.reload()?;
        }
        if !chosen.is_empty() {
            let chosen: Vec<SegmentId> = ids(&chosen).collect();
            drop(self.writer(&mut writing)?.merge(&chosen));
            writing.merging = chosen;
        }
        Ok(())
    }
}

/// The segments that are left when each of the others is larger than all smaller ones together. Merging these whenever the index
/// is at rest copies a document no more often than the number of documents has binary digits.
fn small(mut segments: Vec<SegmentMeta>) -> Vec<SegmentMeta> {
    segments.sort_by_key(SegmentMeta::num_docs);
    let (mut smaller, mut count) = (0, 0);
    for (number, segment) in segments.iter().enumerate() {
        if segment.num_docs() <= smaller {
            count = number + 1;
        }
        smaller += segment.num_docs();
    }
    segments.truncate(count);
    segments
}

fn ids(segments: &[SegmentMeta]) -> impl Iterator<Item = SegmentId> {
    segments.iter().map(SegmentMeta::id)
}

/// The first of some segments, which are ordered by size, that are few enough to be merged at once.
fn bounded(mut segments: Vec<SegmentMeta>) -> Vec<SegmentMeta> {
    let mut documents = 0;
    segments.retain(|segment| {
        documents += segment.num_docs();
        documents <= MOST_DOCUMENTS
    });
    if segments.len() < 2 {
        segments.clear();
    }
    segments
}
