//! Finding the records that answer a question best: any of its words may occur, in any searched field, as asked for, in
//! another form or nearly so spelled.
//!
//! Everything that decides which hits there are and in which order comes from documents that the search may see: how many
//! there are, how long their fields are, which words they hold and how often. Nothing else in the index can change an
//! answer. Sums are made in one order, that of clauses and fields, so that a score does not depend on segments either.

mod best;
mod clause_bounds;
mod dictionary;
mod forms;
mod lending;
mod levels;
mod lists;
mod lookups;
mod phrase;
mod prefix;
mod prepared;
mod question;
mod ranges;
mod rank;
mod reading;
mod rows;
mod scores;
mod search;
mod selection;
mod short;
mod statistics;
mod threads;
mod window;

use std::hash::Hasher;

use siphasher::sip::SipHasher13;
use tantivy::DocId;
use tantivy::schema::Field;

use super::engine::{Segment, View};
use super::restrict::{Restriction, SegmentScopes};

pub(super) use forms::Families;
pub(super) use levels::SegmentRanges;
pub(super) use question::{AskedWords, Question};
pub(super) use rank::{
    AfterScore, Counts, Found, Name, Page, Ranking, Ties, arrange, rank, retain_following,
};
pub(super) use rows::{RowSet, listed_rows};
pub(super) use search::Search;
pub(super) use short::SegmentShortLists;
pub(super) use statistics::{SegmentFigures, Statistics};
pub(super) use threads::{SegmentThreads, ThreadColumns, neighbours};

/// How much more the name of an author counts than other words.
pub(super) const AUTHOR_FACTOR: f32 = 2.0;

/// A field that is searched.
pub(super) struct SearchedField {
    pub(super) field: Field,
    pub(super) factors: Factors,
}

impl SearchedField {
    /// Whether every stream that has the field shows it.
    fn is_everywhere(&self) -> bool {
        match &self.factors {
            Factors::Uniform(factor) => *factor > 0.0,
            Factors::ByStream(_) => false,
        }
    }
}

/// How much the words of a field count.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Factors {
    /// The same in every stream.
    Uniform(f32),
    /// By the number of the stream. Where a stream does not show the field, nothing.
    ByStream(Vec<f32>),
}

impl Factors {
    fn largest(&self) -> f32 {
        match self {
            Self::Uniform(factor) => *factor,
            Self::ByStream(factors) => factors.iter().copied().fold(0.0, f32::max),
        }
    }
}

/// What a search may look at: documents and fields.
pub(super) struct Searched<'a> {
    pub(super) view: &'a View,
    pub(super) gates: Vec<Gate<'a>>,
    pub(super) fields: Vec<SearchedField>,
    /// Names these documents and fields, for figures that are kept.
    key: u64,
}

impl<'a> Searched<'a> {
    pub(super) fn new(
        view: &'a View,
        restrictions: &'a [Restriction],
        by_stream: &'a [Option<usize>],
        fields: Vec<SearchedField>,
    ) -> tantivy::Result<Self> {
        let mut hasher = SipHasher13::new();
        for restriction in restrictions {
            restriction.hash_into(&mut hasher);
        }
        for field in &fields {
            hasher.write_u32(field.field.field_id());
            hasher.write(format!("{:?}", field.factors).as_bytes());
        }
        let mut gates = Vec::new();
        for segment in view.segments() {
            gates.push(Gate::new(segment, restrictions, by_stream)?);
        }
        Ok(Self {
            view,
            gates,
            fields,
            key: hasher.finish(),
        })
    }
}

/// What decides on the documents of one segment.
pub(super) struct Gate<'a> {
    pub(super) segment: Segment<'a>,
    scopes: SegmentScopes<'a>,
    /// Every document that is not deleted is admitted.
    is_open: bool,
}

impl<'a> Gate<'a> {
    fn new(
        segment: Segment<'a>,
        restrictions: &'a [Restriction],
        by_stream: &'a [Option<usize>],
    ) -> tantivy::Result<Self> {
        let streams = &segment.columns.streams;
        let is_whole = |stream: u64| {
            let at = usize::try_from(stream).ok();
            let scope = at.and_then(|at| by_stream.get(at).copied().flatten());
            scope
                .and_then(|scope| restrictions.get(scope))
                .is_some_and(Restriction::is_whole_stream)
        };
        Ok(Self {
            segment,
            scopes: SegmentScopes::new(segment, restrictions, by_stream)?,
            is_open: (streams.min_value()..=streams.max_value()).all(is_whole),
        })
    }

    /// The stream of all documents of the segment, where they have one.
    fn only_stream(&self) -> Option<u64> {
        let streams = &self.segment.columns.streams;
        (streams.min_value() == streams.max_value()).then(|| streams.min_value())
    }

    /// Whether the document is alive and lies in a scope.
    fn admits(&self, document: DocId) -> bool {
        if self.is_open {
            return !self.segment.reader.is_deleted(document);
        }
        self.scope_of(document).is_some()
    }

    /// The restriction that admits a document, if it is alive.
    pub(super) fn scope_of(&self, document: DocId) -> Option<usize> {
        let alive = !self.segment.reader.is_deleted(document);
        alive.then(|| self.scopes.scope_of(document)).flatten()
    }

    /// How much a field of a document counts.
    fn factor(&self, factors: &Factors, document: DocId) -> f32 {
        match factors {
            Factors::Uniform(factor) => *factor,
            Factors::ByStream(factors) => {
                let stream = self.segment.columns.streams.first(document);
                let at = stream.and_then(|stream| usize::try_from(stream).ok());
                at.and_then(|at| factors.get(at).copied()).unwrap_or(0.0)
            }
        }
    }
}
