//! The lists of a question in one segment: which documents hold what is looked for, and what that scores.

use std::sync::Arc;

use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::InvertedIndexReader;
use tantivy::postings::{BlockSegmentPostings, TermInfo};
use tantivy::query::{Bm25Weight, EnableScoring, Query};
use tantivy::schema::IndexRecordOption;
use tantivy::{BitSet, DocId, DocSet, TERMINATED, Term};

use super::phrase::Phrase;
use super::prefix::starting;
use super::question::{Alternative, Lookup, Question, What};
use super::{Factors, Gate, SearchedField};
use crate::stop;

/// What a question looks up in one segment. Lists can be opened from it any number of times.
pub(super) struct SegmentLookups<'q> {
    pub(super) gate: &'q Gate<'q>,
    pub(super) wanted: Vec<Vec<Ways<'q>>>,
    pub(super) excluded: Vec<Vec<Ways<'q>>>,
}

/// One alternative of a clause: its places in the fields of the segment.
pub(super) struct Ways<'q> {
    pub(super) factor: f32,
    places: Vec<Place<'q>>,
}

/// Where one alternative stands in one field.
struct Place<'q> {
    factors: &'q Factors,
    weight: &'q Bm25Weight,
    lengths: FieldNormReader,
    entries: Entries,
}

enum Entries {
    /// The index's own list of a word.
    Listed(Arc<InvertedIndexReader>, TermInfo),
    /// Documents with their scores.
    Scored(Arc<[(DocId, f32)]>),
}

impl<'q> SegmentLookups<'q> {
    /// For each wanted clause, the most that a document of the segment can score by it.
    pub(super) fn ceilings(&self) -> Vec<f32> {
        let clauses = self.wanted.iter();
        let ceilings = clauses.map(|ways| ways.iter().map(Ways::ceiling).fold(0.0, f32::max));
        ceilings.collect()
    }

    pub(super) fn new(question: &'q Question<'q>, gate: &'q Gate<'q>) -> tantivy::Result<Self> {
        Ok(Self {
            gate,
            wanted: all_ways(question, &question.wanted, gate)?,
            excluded: all_ways(question, &question.excluded, gate)?,
        })
    }
}

fn all_ways<'q>(
    question: &'q Question<'q>,
    lookups: &'q [Lookup],
    gate: &'q Gate<'q>,
) -> tantivy::Result<Vec<Vec<Ways<'q>>>> {
    let mut clauses = Vec::with_capacity(lookups.len());
    for lookup in lookups {
        let mut ways = Vec::with_capacity(lookup.alternatives.len());
        for alternative in &lookup.alternatives {
            let places = places(question, alternative, gate)?;
            if !places.is_empty() {
                ways.push(Ways {
                    factor: alternative.factor,
                    places,
                });
            }
        }
        clauses.push(ways);
    }
    Ok(clauses)
}

fn places<'q>(
    question: &'q Question<'q>,
    alternative: &'q Alternative,
    gate: &'q Gate<'q>,
) -> tantivy::Result<Vec<Place<'q>>> {
    let reader = gate.segment.reader;
    let mut places = Vec::new();
    let fields = &question.statistics.searched.fields;
    for (field, weight) in fields.iter().zip(&alternative.weights) {
        let lengths = || reader.get_fieldnorms_reader(field.field);
        let entries = match &alternative.what {
            What::Word(word) => {
                let index = reader.inverted_index(field.field)?;
                let info = index.get_term_info(&Term::from_field_text(field.field, word))?;
                info.map(|info| Entries::Listed(index, info))
            }
            What::Phrase(words) => scored(phrase(question, field, words, gate)?),
            What::Prefix(start) => {
                let documents = beginning(gate, field, start)?;
                let lengths = lengths()?;
                let score = |document: DocId| {
                    let score = weight.score(lengths.fieldnorm_id(document), 1);
                    (document, score * gate.factor(&field.factors, document))
                };
                scored(documents.into_iter().map(score).collect())
            }
        };
        if let Some(entries) = entries {
            places.push(Place {
                factors: &field.factors,
                weight,
                lengths: lengths()?,
                entries,
            });
        }
    }
    Ok(places)
}

fn scored(documents: Vec<(DocId, f32)>) -> Option<Entries> {
    (!documents.is_empty()).then(|| Entries::Scored(documents.into()))
}

/// The documents of a phrase in a field, with the engine's score from our figures.
fn phrase(
    question: &Question<'_>,
    field: &SearchedField,
    words: &[String],
    gate: &Gate<'_>,
) -> tantivy::Result<Vec<(DocId, f32)>> {
    let terms = words.iter();
    let terms = terms.map(|word| Term::from_field_text(field.field, word));
    let searcher = &question.statistics.searched.view.searcher;
    let scoring = EnableScoring::enabled_from_statistics_provider(question.statistics, searcher);
    let weight = Phrase::new(terms.collect()).weight(scoring)?;
    let mut scorer = weight.scorer(gate.segment.reader, 1.0)?;
    let mut found = Vec::new();
    let mut document = scorer.doc();
    while document != TERMINATED {
        if gate.admits(document) {
            let factor = gate.factor(&field.factors, document);
            if factor > 0.0 {
                found.push((document, factor * scorer.score()));
            }
        }
        document = scorer.advance();
    }
    Ok(found)
}

/// The admitted documents that hold a word of a field that begins so.
pub(super) fn beginning(
    gate: &Gate<'_>,
    field: &SearchedField,
    start: &str,
) -> tantivy::Result<Vec<DocId>> {
    let reader = gate.segment.reader;
    let index = reader.inverted_index(field.field)?;
    let mut documents = BitSet::with_max_value(reader.max_doc());
    let mut words = starting(&index, start)?;
    while words.advance() && !stop::asked() {
        let option = IndexRecordOption::Basic;
        let mut list = index.read_block_postings_from_terminfo(words.value(), option)?;
        while !list.docs().is_empty() {
            for document in list.docs() {
                documents.insert(*document);
            }
            list.advance();
        }
    }
    let mut found = Vec::new();
    let mut set = tantivy::query::BitSetDocSet::from(documents);
    while set.doc() != TERMINATED {
        let document = set.doc();
        if gate.admits(document) && gate.factor(&field.factors, document) > 0.0 {
            found.push(document);
        }
        set.advance();
    }
    Ok(found)
}

impl Ways<'_> {
    /// The most that a document can score this way.
    fn ceiling(&self) -> f32 {
        let places = self.places.iter().map(Place::ceiling);
        self.factor * places.sum::<f32>()
    }

    /// Opens the lists.
    pub(super) fn lists(&self) -> tantivy::Result<Vec<List<'_>>> {
        self.places.iter().map(Place::list).collect()
    }
}

impl Place<'_> {
    /// The limit of scores as occurrences grow.
    fn ceiling(&self) -> f32 {
        if let Entries::Scored(documents) = &self.entries {
            return documents.iter().map(|one| one.1).fold(0.0, f32::max);
        }
        let factor = match self.factors {
            Factors::Uniform(factor) => *factor,
            Factors::ByStream(factors) => factors.iter().copied().fold(0.0, f32::max),
        };
        factor * self.weight.score(0, u32::MAX)
    }

    fn list(&self) -> tantivy::Result<List<'_>> {
        let entries = match &self.entries {
            Entries::Listed(index, info) => Cursor::Listed {
                entries: index
                    .read_block_postings_from_terminfo(info, IndexRecordOption::WithFreqs)?,
                at: 0,
            },
            Entries::Scored(documents) => Cursor::Scored(documents),
        };
        Ok(List {
            place: self,
            entries,
        })
    }
}

/// One list, read from its beginning.
pub(super) struct List<'l> {
    place: &'l Place<'l>,
    entries: Cursor<'l>,
}

#[expect(
    clippy::large_enum_variant,
    reason = "nearly all lists are of the large kind"
)]
enum Cursor<'l> {
    Listed {
        entries: BlockSegmentPostings,
        at: usize,
    },
    Scored(&'l [(DocId, f32)]),
}

impl List<'_> {
    /// The next document.
    pub(super) fn next(&self) -> DocId {
        match &self.entries {
            Cursor::Listed { entries, at } => {
                entries.docs().get(*at).copied().unwrap_or(TERMINATED)
            }
            Cursor::Scored(rest) => rest.first().map_or(TERMINATED, |one| one.0),
        }
    }

    /// Hands over the documents before `end` with their scores. A score of nothing means that the document does not show the
    /// field.
    #[inline]
    pub(super) fn read_until(
        &mut self,
        gate: &Gate<'_>,
        end: DocId,
        mut each: impl FnMut(DocId, f32),
    ) {
        let place = self.place;
        match &mut self.entries {
            Cursor::Listed { entries, at } => loop {
                let documents = entries.docs().iter().zip(entries.freqs()).skip(*at);
                for (document, times) in documents {
                    if *document >= end {
                        return;
                    }
                    *at += 1;
                    each(*document, place.score(gate, *document, *times));
                }
                if *at == 0 {
                    return;
                }
                entries.advance();
                *at = 0;
            },
            Cursor::Scored(rest) => {
                while let Some(((document, score), after)) = rest.split_first() {
                    if *document >= end {
                        return;
                    }
                    each(*document, *score);
                    *rest = after;
                }
            }
        }
    }

    /// What a document scores here, if it is in the list. Documents are asked for in ascending order.
    pub(super) fn score_of(&mut self, gate: &Gate<'_>, document: DocId) -> Option<f32> {
        let place = self.place;
        match &mut self.entries {
            Cursor::Listed { entries, at } => {
                if entries.docs().get(*at).is_none_or(|next| *next > document) {
                    return None;
                }
                *at = entries.seek(document);
                let found = entries.docs().get(*at) == Some(&document);
                found.then(|| place.score(gate, document, entries.freq(*at)))
            }
            Cursor::Scored(rest) => {
                let before = rest.partition_point(|one| one.0 < document);
                *rest = rest.get(before..).unwrap_or_default();
                rest.first()
                    .filter(|one| one.0 == document)
                    .map(|one| one.1)
            }
        }
    }
}

impl Place<'_> {
    #[inline]
    fn score(&self, gate: &Gate<'_>, document: DocId, times: u32) -> f32 {
        let score = self
            .weight
            .score(self.lengths.fieldnorm_id(document), times);
        match self.factors {
            Factors::Uniform(factor) => score * factor,
            Factors::ByStream(_) => score * gate.factor(self.factors, document),
        }
    }
}
