//! Segments of an index become fewer: those that hold deleted documents are rewritten, small ones are merged, because a search looks
//! at every segment and small writes leave many.

use std::sync::TryLockError;

use tantivy::SegmentMeta;
use tantivy::index::SegmentId;

use super::{OpenIndex, Writing, failed};
use crate::{Result, StoreError};

/// No more documents are copied at a time. Larger segments are few, and the engine merges them as more are written.
const MOST_DOCUMENTS: u32 = 250_000;

impl OpenIndex {
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
            return Err(StoreError::engine(
                self.folder.join(file),
                "it cannot be removed",
            ));
        }
        self.finish_merges(&mut writing)
    }

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

    /// Waits for background merges. Nothing may be uncommitted.
    pub(super) fn finish_merges(&self, writing: &mut Writing) -> Result<()> {
        if let Some(writer) = writing.writer.take() {
            let finished = writer.wait_merging_threads();
            finished.map_err(failed(&self.folder))?;
        }
        self.reload()
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tantivy::collector::Count;
    use tantivy::indexer::NoMergePolicy;
    use tantivy::query::TermQuery;
    use tantivy::schema::IndexRecordOption;
    use tantivy::{TantivyDocument, Term};

    use super::super::WRITER_BYTES;
    use super::*;
    use crate::index::engine::IndexChange;
    use crate::index::engine::schema::Capacity;

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
