//! Merging what is small beside the rest while nothing is written: a search looks at every segment, and small writes leave many.

use std::sync::TryLockError;

use tantivy::SegmentMeta;
use tantivy::index::SegmentId;

use super::merging::small;
use super::{OpenIndex, failed};
use crate::Result;

/// No more documents are copied at a time. Larger segments are few, and the engine merges them as more are written.
const MOST_DOCUMENTS: u32 = 250_000;

impl OpenIndex {
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
