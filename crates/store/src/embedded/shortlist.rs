//! The documents in which a common word stands out, tried before its lists are walked.
//!
//! A segment notes them in tiers (see `index/impact_lists`), the best first, and with all they need to be scored. After each
//! tier it is known how much any other document can score at most; as soon as that is too little, the segment is
//! settled. Usually that takes some dozens of documents where the lists have a hundred thousand.

use tantivy::DocId;

use super::index::{ImpactList, Occurrence, Segment};
use super::word::{FieldWord, SegmentWord};

/// One word in the fields of one segment, with what was read of it so far.
pub(super) struct Shortlist<'a> {
    fields: Vec<Impact<'a>>,
    /// The documents handed over, in ascending order.
    tried: Vec<DocId>,
}

/// What is known of the word in one field.
struct Impact<'a> {
    /// `None` when it does not occur.
    word: Option<SegmentWord<'a>>,
    /// The tiers not read yet, if the word is common in the segment.
    tiers: Option<ImpactList<'a>>,
    /// The highest score of any document not handed over.
    left: f32,
}

impl<'a> Shortlist<'a> {
    /// A shortlist of which nothing is read yet.
    pub(super) fn new(words: &'a [FieldWord], segment: Segment<'a>) -> tantivy::Result<Self> {
        let mut fields = Vec::with_capacity(words.len());
        for field in words {
            let word = field.on(segment.reader)?;
            let tiers = match &word {
                Some(word) => segment.columns.strong.find(word.field, &word.info)?,
                None => None,
            };
            fields.push(Impact {
                left: word.as_ref().map_or(0.0, |_| field.ceiling),
                word,
                tiers,
            });
        }
        let tried = Vec::new();
        Ok(Self { fields, tried })
    }

    pub(super) fn fields(&self) -> usize {
        self.fields.len()
    }

    pub(super) fn word(&self, field: usize) -> Option<&SegmentWord<'a>> {
        self.fields.get(field).and_then(|field| field.word.as_ref())
    }

    /// The most that a document not handed over can score in the fields from one on.
    pub(super) fn left_from(&self, field: usize) -> f32 {
        let fields = self.fields.iter().skip(field);
        fields.map(|field| field.left).sum()
    }

    /// Whether a document was handed over.
    pub(super) fn tried(&self, document: DocId) -> bool {
        self.tried.binary_search(&document).is_ok()
    }

    /// Reads the next tier of every field and hands over the documents found, the best first. `None` when the word is
    /// not common, or when there is no more to read.
    #[expect(
        clippy::stable_sort_primitive,
        reason = "the stable sort merges sorted lists that stand behind one another, and these are such"
    )]
    pub(super) fn next_documents(&mut self) -> tantivy::Result<Option<Vec<(DocId, f32)>>> {
        if self.fields.iter().all(|field| field.tiers.is_none()) {
            return Ok(None);
        }
        let mut documents = Vec::new();
        for at in 0..self.fields.len() {
            let Some(mut tiers) = self.fields.get(at).and_then(|field| field.tiers) else {
                continue;
            };
            let left = tiers.next_tier(&mut |document, occurrences| {
                documents.push((document, self.score(occurrences)));
            })?;
            let Some(field) = self.fields.get_mut(at) else {
                continue;
            };
            field.tiers = (!tiers.is_empty()).then_some(tiers);
            if let (Some(left), Some(word)) = (left, &field.word) {
                let left = left
                    .iter()
                    .map(|(length, times)| word.score(*length, *times));
                field.left = left.fold(0.0, f32::max);
            }
        }
        documents.sort_by_key(|one| one.0);
        documents.dedup_by_key(|one| one.0);
        documents.retain(|one| !self.tried(one.0));
        self.tried.extend(documents.iter().map(|one| one.0));
        self.tried.sort();
        documents.sort_unstable_by(|one, other| other.1.total_cmp(&one.1));
        Ok(Some(documents))
    }

    /// What a document with these occurrences scores in the fields that are searched.
    fn score(&self, occurrences: &[Occurrence]) -> f32 {
        let mut scores = self.fields.iter().filter_map(|field| {
            let word = field.word.as_ref()?;
            let mut occurrences = occurrences.iter();
            let here = occurrences.find(|one| one.field == word.field.field_id())?;
            Some(word.score(here.length, here.times))
        });
        // In the order in which a turn adds them up: sums of floats depend on it.
        let first = scores.next().unwrap_or_default();
        first + scores.sum::<f32>()
    }
}
