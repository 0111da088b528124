//! A phrase as something to leave out.
//!
//! The engine asks an excluded scorer for documents that lie before the one it stands on, which its phrase scorers do not
//! expect. Behind this wrapper they are only ever asked to go forward.

use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, Term};

/// Matches what the query inside matches.
#[derive(Debug)]
pub(super) struct Excluded(pub(super) Box<dyn Query>);

impl Clone for Excluded {
    fn clone(&self) -> Self {
        Self(self.0.box_clone())
    }
}

impl Query for Excluded {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(ExcludedWeight(self.0.weight(scoring)?)))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.0.query_terms(visitor);
    }
}

struct ExcludedWeight(Box<dyn Weight>);

impl Weight for ExcludedWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        Ok(Box::new(Forward(self.0.scorer(reader, boost)?)))
    }

    fn explain(&self, reader: &SegmentReader, document: DocId) -> tantivy::Result<Explanation> {
        self.0.explain(reader, document)
    }
}

/// Keeps the engine's default way to look ahead, which never asks for an earlier document.
struct Forward(Box<dyn Scorer>);

impl DocSet for Forward {
    fn advance(&mut self) -> DocId {
        self.0.advance()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        self.0.seek(target)
    }

    fn doc(&self) -> DocId {
        self.0.doc()
    }

    fn size_hint(&self) -> u32 {
        self.0.size_hint()
    }
}

impl Scorer for Forward {
    fn score(&mut self) -> Score {
        self.0.score()
    }
}
