//! A phrase search that can be cancelled.
//!
//! The engine looks for the next document with a phrase in one step, however many it has to try. Here it tries one after
//! the other, and cancellation is checked from time to time.

use tantivy::query::{EnableScoring, Explanation, PhraseQuery, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SeekDangerResult, SegmentReader, TERMINATED, Term};

use crate::stop;

/// After how many documents cancellation is checked.
const LOOK_EVERY: u32 = 256;

/// Words at neighbouring positions.
#[derive(Debug, Clone)]
pub(super) struct Phrase(PhraseQuery);

impl Phrase {
    /// A phrase of two words or more.
    pub(super) fn new(terms: Vec<Term>) -> Self {
        Self(PhraseQuery::new(terms))
    }
}

impl Query for Phrase {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(PhraseWeight(self.0.weight(scoring)?)))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.0.query_terms(visitor);
    }
}

struct PhraseWeight(Box<dyn Weight>);

impl Weight for PhraseWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let (found, inner) = self.0.scorer_danger(reader, 0, boost)?;
        let mut steps = Steps {
            inner,
            document: 0,
            tried: 0,
        };
        if let SeekDangerResult::SeekLowerBound(next) = found {
            steps.go_to(next);
        }
        Ok(Box::new(steps))
    }

    fn explain(&self, reader: &SegmentReader, document: DocId) -> tantivy::Result<Explanation> {
        self.0.explain(reader, document)
    }
}

/// The documents of a phrase, found step by step.
struct Steps {
    inner: Box<dyn Scorer>,
    document: DocId,
    tried: u32,
}

impl Steps {
    /// Goes to the first document of the phrase from this one on.
    fn go_to(&mut self, mut target: DocId) -> DocId {
        self.document = loop {
            if target >= TERMINATED || self.is_stopped() {
                break TERMINATED;
            }
            match self.inner.seek_danger(target) {
                SeekDangerResult::Found => break target,
                SeekDangerResult::SeekLowerBound(next) => target = next,
            }
        };
        self.document
    }

    fn is_stopped(&mut self) -> bool {
        self.tried = self.tried.wrapping_add(1);
        self.tried.is_multiple_of(LOOK_EVERY) && stop::asked()
    }
}

impl DocSet for Steps {
    fn advance(&mut self) -> DocId {
        match self.document {
            TERMINATED => TERMINATED,
            document => self.go_to(document + 1),
        }
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if target <= self.document {
            return self.document;
        }
        self.go_to(target)
    }

    fn seek_danger(&mut self, target: DocId) -> SeekDangerResult {
        if target >= TERMINATED || self.is_stopped() {
            self.document = TERMINATED;
        }
        if target < self.document {
            return SeekDangerResult::SeekLowerBound(self.document);
        }
        if target == self.document && target < TERMINATED {
            return SeekDangerResult::Found;
        }
        if self.document == TERMINATED {
            return SeekDangerResult::SeekLowerBound(TERMINATED);
        }
        let found = self.inner.seek_danger(target);
        if found == SeekDangerResult::Found {
            self.document = target;
        }
        found
    }

    fn doc(&self) -> DocId {
        self.document
    }

    fn size_hint(&self) -> u32 {
        self.inner.size_hint()
    }

    fn cost(&self) -> u64 {
        self.inner.cost()
    }
}

impl Scorer for Steps {
    fn score(&mut self) -> Score {
        self.inner.score()
    }
}
