//! One word in several fields: how its lists are walked when scores add up over the fields.
//!
//! What a document scores in a field depends on two small numbers only: how often the word occurs there, and how long
//! the field is. So for a given threshold there is a least number of occurrences per length, and most entries of a list
//! are passed over with one comparison of integers.
//!
//! Before that, the documents in which the word stands out are tried (see `shortlist.rs`). They usually set a threshold
//! that nothing else can exceed, and then no list is walked at all.

use std::sync::Arc;

use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::InvertedIndexReader;
use tantivy::postings::{BlockSegmentPostings, TermInfo};
use tantivy::query::{Bm25StatisticsProvider, Bm25Weight, EnableScoring, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, SegmentReader, Term};

use super::index::{View, limit};

/// Entries of one block of a list, at most.
const BLOCK: usize = 128;

pub(super) struct FieldWord {
    term: Term,
    weight: Bm25Weight,
    /// The highest score any document has in this field.
    pub(super) ceiling: f32,
}

impl FieldWord {
    pub(super) fn new(view: &View, term: &Term) -> tantivy::Result<Self> {
        let statistics: &dyn Bm25StatisticsProvider = &view.searcher;
        let documents = statistics.doc_freq(term)?;
        let all = statistics.total_num_docs()?;
        let words = statistics.total_num_tokens(term.field())?;
        #[expect(clippy::cast_precision_loss, reason = "as the engine computes it")]
        let average = words as f32 / all as f32;
        let weight = Bm25Weight::for_one_term_without_explain(documents, all, average);
        let ceiling = view.ceiling(term, || highest_score(view, term))?;
        Ok(Self {
            term: term.clone(),
            weight,
            ceiling,
        })
    }

    /// The word in one segment, if it occurs there.
    pub(super) fn on(&self, segment: &SegmentReader) -> tantivy::Result<Option<SegmentWord<'_>>> {
        let field = self.term.field();
        let index = segment.inverted_index(field)?;
        let Some(info) = index.get_term_info(&self.term)? else {
            return Ok(None);
        };
        Ok(Some(SegmentWord {
            field,
            weight: &self.weight,
            lengths: segment.get_fieldnorms_reader(field)?,
            index,
            info,
        }))
    }
}

/// A word in one field of one segment.
pub(super) struct SegmentWord<'a> {
    pub(super) field: Field,
    pub(super) info: TermInfo,
    weight: &'a Bm25Weight,
    lengths: FieldNormReader,
    index: Arc<InvertedIndexReader>,
}

impl SegmentWord<'_> {
    /// The word's list.
    pub(super) fn list(&self) -> tantivy::Result<WordList<'_>> {
        let option = IndexRecordOption::WithFreqs;
        let entries = self
            .index
            .read_block_postings_from_terminfo(&self.info, option)?;
        Ok(WordList {
            entries,
            lengths: &self.lengths,
            weight: self.weight,
        })
    }

    /// What a document of some length scores.
    pub(super) fn score(&self, length: u8, occurs: u32) -> f32 {
        self.weight.score(length, occurs)
    }
}

/// The engine finds this by skipping nearly everything.
fn highest_score(view: &View, term: &Term) -> tantivy::Result<f32> {
    let query = TermQuery::new(term.clone(), IndexRecordOption::WithFreqs);
    let weight = query.weight(EnableScoring::enabled_from_searcher(&view.searcher))?;
    let mut highest = 0.0;
    for segment in view.segments() {
        weight.for_each_pruning(highest, segment.reader, &mut |_, score| {
            highest = score.max(highest);
            highest
        })?;
    }
    Ok(highest)
}

/// The entries of a word in one field of one segment.
pub(super) struct WordList<'a> {
    entries: BlockSegmentPostings,
    lengths: &'a FieldNormReader,
    weight: &'a Bm25Weight,
}

impl WordList<'_> {
    /// What a document scores in this field, if it holds the word. Documents are asked for in ascending order.
    pub(super) fn score_of(&mut self, document: DocId) -> Option<f32> {
        let at = self.entries.seek(document);
        (self.entries.doc(at) == document).then(|| {
            let length = self.lengths.fieldnorm_id(document);
            self.weight.score(length, self.entries.freq(at))
        })
    }

    /// Hands over every document that scores more than a threshold, which the caller raises as it goes.
    #[expect(
        clippy::indexing_slicing,
        reason = "the count is taken modulo the block"
    )]
    pub(super) fn for_each_above(
        mut self,
        threshold: f32,
        each: &mut dyn FnMut(DocId, f32) -> f32,
    ) {
        let mut floor = Floor::new(self.weight);
        let mut threshold = threshold;
        let mut passing = [0_u8; BLOCK];
        loop {
            let (documents, occurrences) = (self.entries.docs(), self.entries.freqs());
            if documents.is_empty() {
                return;
            }
            floor.raise(threshold);
            // Without branches: which entries pass is as good as random, and a wrong guess of the processor costs more
            // than the rest of the work.
            let mut count = 0;
            for (index, (document, occurs)) in (0_u8..).zip(documents.iter().zip(occurrences)) {
                let length = self.lengths.fieldnorm_id(*document);
                passing[count % BLOCK] = index;
                count += usize::from(*occurs >= floor.at(length));
            }
            for index in passing.iter().take(count).map(|index| usize::from(*index)) {
                let document = self.entries.doc(index);
                let length = self.lengths.fieldnorm_id(document);
                let score = self.weight.score(length, self.entries.freq(index));
                if score > threshold {
                    threshold = each(document, score);
                }
            }
            self.entries.advance();
        }
    }
}

/// The least occurrences a document needs to exceed a threshold, by length of the field. Never too high.
struct Floor {
    threshold: f32,
    most: f32,
    /// How much longer fields dampen occurrences: `score = most * occurrences / (occurrences + damping)`.
    damping: [f32; 256],
    least: [u32; 256],
}

impl Floor {
    fn new(weight: &Bm25Weight) -> Self {
        let most = limit(weight);
        let damping = std::array::from_fn(|length| {
            let once = weight.score(u8::try_from(length).unwrap_or(u8::MAX), 1);
            most / once - 1.0
        });
        Self {
            threshold: f32::MIN,
            most,
            damping,
            least: [0; 256],
        }
    }

    fn raise(&mut self, threshold: f32) {
        if threshold <= self.threshold || threshold <= 0.0 {
            return;
        }
        self.threshold = threshold;
        // One part in a thousand for rounding: what passes here is scored exactly afterwards.
        let share = threshold * 0.999 / (self.most - threshold).max(f32::MIN_POSITIVE);
        for (least, damping) in self.least.iter_mut().zip(&self.damping) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the cast saturates, and the product is not negative"
            )]
            let occurrences = (share * damping) as u32;
            *least = occurrences;
        }
    }

    #[expect(clippy::indexing_slicing, reason = "there is one for every length")]
    fn at(&self, length: u8) -> u32 {
        self.least[usize::from(length)]
    }
}
