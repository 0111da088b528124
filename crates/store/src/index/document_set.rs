//! The documents of a segment that pass the rules of a grant, as bits. A segment never changes, so they are found once and kept
//! with it: every search and count under the rules asks for them. Which documents are deleted is not in them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use tantivy::DocId;

use super::column_test::SegmentTests;
use crate::stop;

/// For how many rules documents of a segment are kept.
const KEPT: usize = 16;
/// Documents that are tested together.
const BLOCK: DocId = 65_536;

/// A set of documents, sixty-four to a word.
#[derive(Debug, Default)]
pub(super) struct DocumentSet(Vec<u64>);

impl DocumentSet {
    pub(super) fn new(documents: DocId) -> Self {
        Self(vec![0; documents.div_ceil(64) as usize])
    }

    pub(super) fn insert(&mut self, document: DocId) {
        if let Some(word) = self.0.get_mut((document / 64) as usize) {
            *word |= 1 << (document % 64);
        }
    }

    pub(super) fn contains(&self, document: DocId) -> bool {
        let word = self.0.get((document / 64) as usize);
        word.is_some_and(|word| word >> (document % 64) & 1 == 1)
    }

    /// The words that hold a range, which begins at one of them.
    pub(super) fn words(&self, range: &Range<DocId>) -> &[u64] {
        let words = (range.start / 64) as usize..range.end.div_ceil(64) as usize;
        self.0.get(words).unwrap_or_default()
    }
}

/// Hands over the bits that are set, in order.
pub(super) fn for_each_bit(words: &[u64], mut each: impl FnMut(usize)) {
    for (at, word) in words.iter().enumerate() {
        let mut left = *word;
        while left != 0 {
            each(at * 64 + left.trailing_zeros() as usize);
            left &= left - 1;
        }
    }
}

/// The documents of one segment that pass, by the digest of the rules.
#[derive(Default)]
pub(crate) struct SegmentAdmitted(Mutex<HashMap<u128, Arc<DocumentSet>>>);

impl SegmentAdmitted {
    /// The documents that pass all tests; `tests` makes these for the segment.
    pub(super) fn get<'t>(
        &self,
        rules: u128,
        documents: DocId,
        tests: impl FnOnce() -> tantivy::Result<SegmentTests<'t>>,
    ) -> tantivy::Result<Arc<DocumentSet>> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(set) = known().get(&rules) {
            return Ok(Arc::clone(set));
        }
        let (mut set, tests) = (DocumentSet::new(documents), tests()?);
        let (mut passing, mut start) = (Vec::new(), 0);
        while start < documents {
            // Whoever asked for the stop does not look at what is missing, and it is not kept.
            if stop::asked() {
                return Ok(Arc::new(set));
            }
            let end = documents.min(start.saturating_add(BLOCK));
            passing.clear();
            tests.fill(start..end, &mut passing);
            for document in &passing {
                set.insert(*document);
            }
            start = end;
        }
        let set = Arc::new(set);
        let mut known = known();
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(rules, Arc::clone(&set));
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_of_a_range_are_those_that_were_set() {
        let mut set = DocumentSet::new(200);
        let documents = [0, 63, 64, 130, 199];
        for document in documents {
            set.insert(document);
        }
        set.insert(1_000);
        let found: Vec<DocId> = (0..300).filter(|one| set.contains(*one)).collect();
        assert_eq!(found, documents);
        let mut bits = Vec::new();
        for_each_bit(set.words(&(64..200)), |bit| bits.push(bit + 64));
        assert_eq!(bits, [64, 130, 199]);
    }
}
