//! The documents in which a common word stands out, tried before its lists are walked.
//!
//! A segment notes them in tiers (see `index/strong.rs`), the best first. After each tier it is known how much any
//! other document can score at most; as soon as that is too little, the segment is settled. Usually that takes some
//! hundred documents where the lists have a hundred thousand.

use tantivy::DocId;

use super::index::{Noted, Segment, StrongList, Tier, each};
use super::word::{FieldWord, SegmentWord, WordList};

/// One word in the fields of one segment, with what was read of it so far.
pub(super) struct Shortlist<'a> {
    fields: Vec<Strong<'a>>,
    /// The documents handed over, in ascending order.
    tried: Vec<DocId>,
}

/// What is known of the word in one field.
struct Strong<'a> {
    /// `None` when it does not occur.
    word: Option<SegmentWord<'a>>,
    /// The tiers not read yet, if the word is common.
    tiers: Option<StrongList<'a>>,
    /// Documents in ascending order with their scores.
    known: Vec<(DocId, f32)>,
    /// The highest score of any other document.
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
            fields.push(Strong {
                left: word.as_ref().map_or(0.0, |_| field.ceiling),
                word,
                tiers,
                known: Vec::new(),
            });
        }
        let tried = Vec::new();
        Ok(Self { fields, tried })
    }

    /// How many fields there are.
    pub(super) fn fields(&self) -> usize {
        self.fields.len()
    }

    /// The word in one of the fields.
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

    /// Reads on and hands over the documents found, in ascending order. `None` when the word is not common, or when
    /// there is no more to read.
    #[expect(
        clippy::stable_sort_primitive,
        reason = "the stable sort merges sorted lists that stand behind one another, and these are such"
    )]
    pub(super) fn next_documents(&mut self) -> tantivy::Result<Option<Vec<DocId>>> {
        let tiers = self.fields.iter().filter_map(|field| field.tiers);
        if tiers.filter(|tiers| !tiers.is_empty()).count() == 0 {
            return Ok(None);
        }
        let mut documents = Vec::new();
        for field in &mut self.fields {
            field.read_on(&mut documents)?;
        }
        documents.sort();
        documents.dedup();
        documents.retain(|document| !self.tried(*document));
        self.tried.extend(&documents);
        self.tried.sort();
        Ok(Some(documents))
    }

    /// Scores documents of the shortlist.
    pub(super) fn scorer(&self) -> Scorer<'_> {
        let fields = self.fields.iter().map(|field| FieldScorer {
            field,
            known: &field.known,
            list: None,
        });
        Scorer {
            scores: vec![None; self.fields.len()],
            fields: fields.collect(),
        }
    }
}

impl Strong<'_> {
    /// Reads the next tier, or all there is of a word that is not common here.
    fn read_on(&mut self, documents: &mut Vec<DocId>) -> tantivy::Result<()> {
        let Some(word) = &self.word else {
            return Ok(());
        };
        let tier = match &mut self.tiers {
            Some(tiers) => tiers.next_tier()?,
            None if self.left > 0.0 => {
                let mut whole = Tier::default();
                each(word.list()?.entries, &mut |document, occurs| {
                    whole.noted.push(Noted {
                        document,
                        occurs,
                        length: word.length_in(document),
                    });
                });
                Some(whole)
            }
            None => None,
        };
        let Some(tier) = tier else {
            return Ok(());
        };
        for noted in tier.noted {
            documents.push(noted.document);
            let score = word.score(noted.length, noted.occurs);
            self.known.push((noted.document, score));
        }
        self.known.sort_by_key(|(document, _)| *document);
        let left = tier.left.iter();
        let left = left.map(|(length, occurs)| word.score(*length, *occurs));
        self.left = left.fold(0.0, f32::max);
        Ok(())
    }
}

/// Scores documents in ascending order.
pub(super) struct Scorer<'s> {
    fields: Vec<FieldScorer<'s>>,
    scores: Vec<Option<f32>>,
}

struct FieldScorer<'s> {
    field: &'s Strong<'s>,
    /// From the last document on.
    known: &'s [(DocId, f32)],
    /// Opened when a document needs it.
    list: Option<WordList<'s>>,
}

impl Scorer<'_> {
    /// The most that a document can score.
    pub(super) fn reach(&mut self, document: DocId) -> f32 {
        let fields = self.fields.iter_mut();
        let most = fields.map(|field| field.known(document).unwrap_or(field.field.left));
        most.sum()
    }

    /// What a document scores.
    pub(super) fn score(&mut self, document: DocId) -> tantivy::Result<f32> {
        for (field, score) in self.fields.iter_mut().zip(&mut self.scores) {
            *score = match field.known(document) {
                None => field.look_up(document)?,
                known => known,
            };
        }
        // In the order in which a turn adds them up: sums of floats depend on it.
        let mut scores = self.scores.iter().filter_map(|score| *score);
        let first = scores.next().unwrap_or_default();
        Ok(first + scores.sum::<f32>())
    }
}

impl FieldScorer<'_> {
    fn known(&mut self, document: DocId) -> Option<f32> {
        while let [(before, _), rest @ ..] = self.known
            && *before < document
        {
            self.known = rest;
        }
        let first = self.known.first();
        first.filter(|one| one.0 == document).map(|one| one.1)
    }

    fn look_up(&mut self, document: DocId) -> tantivy::Result<Option<f32>> {
        let Some(word) = &self.field.word else {
            return Ok(None);
        };
        // Nothing is left of a word that was read whole.
        if self.field.left <= 0.0 {
            return Ok(None);
        }
        let list = match &mut self.list {
            Some(list) => list,
            closed => closed.insert(word.list()?),
        };
        Ok(list.score_of(document))
    }
}
