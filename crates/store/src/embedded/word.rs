//! One word in several fields: how its lists are walked when scores add up over the fields.
//!
//! What a document scores in a field depends on two small numbers only: how often the word occurs there, and how long
//! the field is. So for a given threshold there is a least number of occurrences per length, and most entries of a list
//! are passed over with one comparison of integers.
//!
//! Before that, the documents in which the word stands out are tried (see `index/strong.rs`). They usually set a
//! threshold that nothing else can exceed, and then no list is walked at all.

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::BlockSegmentPostings;
use tantivy::query::{Bm25StatisticsProvider, Bm25Weight, EnableScoring, Query, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, SegmentReader, Term};

use super::index::{COMMON, Segment, StrongList, View, each};

/// Entries of one block of a list, at most.
const BLOCK: usize = 128;

/// A word in one field.
pub(super) struct FieldWord {
    term: Term,
    /// How many documents hold it.
    documents: u64,
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
            documents,
            weight,
            ceiling,
        })
    }

    /// The word's list in one segment, if it occurs there.
    pub(super) fn list(&self, segment: &SegmentReader) -> tantivy::Result<Option<WordList<'_>>> {
        let index = segment.inverted_index(self.term.field())?;
        let Some(info) = index.get_term_info(&self.term)? else {
            return Ok(None);
        };
        let entries =
            index.read_block_postings_from_terminfo(&info, IndexRecordOption::WithFreqs)?;
        Ok(Some(WordList {
            entries,
            lengths: segment.get_fieldnorms_reader(self.term.field())?,
            weight: &self.weight,
        }))
    }

    /// Where the word stands out in a segment.
    fn strong(&self, segment: Segment<'_>) -> tantivy::Result<Option<StrongList>> {
        if self.documents < u64::from(COMMON) {
            return Ok(None);
        }
        let field = self.term.field();
        let index = segment.reader.inverted_index(field)?;
        match index.get_term_info(&self.term)? {
            Some(info) => segment.columns.strong.find(field, &info),
            None => Ok(None),
        }
    }

    /// Every document of a segment that holds the word, if there are any.
    fn whole(&self, segment: &SegmentReader) -> tantivy::Result<StrongList> {
        let mut list = StrongList::default();
        let index = segment.inverted_index(self.term.field())?;
        let option = IndexRecordOption::WithFreqs;
        if let Some(entries) = index.read_block_postings(&self.term, option)? {
            each(entries, &mut |document, occurs| {
                list.noted.push((document, occurs));
            });
        }
        Ok(list)
    }

    /// Documents with their scores in place of the occurrences.
    fn scored(
        &self,
        list: StrongList,
        segment: &SegmentReader,
    ) -> tantivy::Result<Vec<(DocId, f32)>> {
        if list.noted.is_empty() {
            return Ok(Vec::new());
        }
        let lengths = segment.get_fieldnorms_reader(self.term.field())?;
        let noted = list.noted.into_iter().map(|(document, occurs)| {
            let length = lengths.fieldnorm_id(document);
            (document, self.weight.score(length, occurs))
        });
        Ok(noted.collect())
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

/// The documents of a segment in which a word stands out in any of its fields.
#[derive(Default)]
pub(super) struct Shortlist {
    /// In ascending order.
    pub(super) documents: Vec<DocId>,
    /// What they score in each field, as far as it is known.
    scores: Vec<Option<f32>>,
    /// The highest score of any other document, by field.
    pub(super) left: Vec<f32>,
}

impl Shortlist {
    /// The shortlist of a segment, or one without documents when the word is not common in any field there.
    pub(super) fn new(words: &[FieldWord], segment: Segment<'_>) -> tantivy::Result<Self> {
        let mut strong = Vec::with_capacity(words.len());
        for word in words {
            strong.push(word.strong(segment)?);
        }
        let mut shortlist = Self::default();
        if strong.iter().all(Option::is_none) {
            shortlist.left = words.iter().map(|word| word.ceiling).collect();
            return Ok(shortlist);
        }
        let mut scored = Vec::with_capacity(words.len());
        for (word, strong) in words.iter().zip(strong) {
            let list = match strong {
                Some(list) => list,
                None => word.whole(segment.reader)?,
            };
            let left = list.left.iter();
            let left = left.map(|(length, occurs)| word.weight.score(*length, *occurs));
            shortlist.left.push(left.fold(0.0, f32::max));
            scored.push(word.scored(list, segment.reader)?);
        }
        shortlist.unite(scored.iter().map(Vec::as_slice).collect());
        Ok(shortlist)
    }

    /// Adds the documents of several lists, each of them once.
    fn unite(&mut self, mut lists: Vec<&[(DocId, f32)]>) {
        let first = |lists: &[&[(DocId, f32)]]| {
            let heads = lists.iter().filter_map(|list| list.first());
            heads.map(|(document, _)| *document).min()
        };
        while let Some(document) = first(&lists) {
            self.documents.push(document);
            for list in &mut lists {
                let head = list.split_first().filter(|(head, _)| head.0 == document);
                self.scores.push(head.map(|(head, _)| head.1));
                *list = head.map_or(*list, |(_, rest)| rest);
            }
        }
    }

    /// The documents with their scores by field.
    pub(super) fn iter(&self) -> impl Iterator<Item = (DocId, &[Option<f32>])> {
        let scores = self.scores.chunks_exact(self.left.len().max(1));
        self.documents.iter().copied().zip(scores)
    }

    /// The highest sum a document can have whose scores are known in part.
    pub(super) fn reach(&self, scores: &[Option<f32>]) -> f32 {
        let all = scores.iter().zip(&self.left);
        all.map(|(known, left)| known.unwrap_or(*left)).sum()
    }

    /// Whether a document was on the list.
    pub(super) fn holds(&self, document: DocId) -> bool {
        self.documents.binary_search(&document).is_ok()
    }
}

/// The entries of a word in one field of one segment.
pub(super) struct WordList<'a> {
    entries: BlockSegmentPostings,
    lengths: FieldNormReader,
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
            for (place, (document, occurs)) in (0_u8..).zip(documents.iter().zip(occurrences)) {
                let length = self.lengths.fieldnorm_id(*document);
                passing[count % BLOCK] = place;
                count += usize::from(*occurs >= floor.at(length));
            }
            for place in passing.iter().take(count).map(|place| usize::from(*place)) {
                let document = self.entries.doc(place);
                let length = self.lengths.fieldnorm_id(document);
                let score = self.weight.score(length, self.entries.freq(place));
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
        let most = weight.max_score();
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

    fn at(&self, length: u8) -> u32 {
        self.least[usize::from(length)]
    }
}
