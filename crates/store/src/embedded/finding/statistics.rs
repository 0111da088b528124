//! The figures that order hits: how many documents there are, how long their fields are, and how many hold a word. They count
//! admitted documents and searched fields only, and are kept for as long as a segment stays as it is.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::InvertedIndexReader;
use tantivy::postings::TermInfo;
use tantivy::query::Bm25StatisticsProvider;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, Term};

use super::{Gate, Searched, SearchedField};
use crate::stop;

/// For how many kinds of searches figures of a segment are kept, and for how many words each.
const KEPT_SEARCHES: usize = 32;
const KEPT_WORDS: usize = 8192;
/// After how many documents cancellation is checked.
const LOOK_EVERY: DocId = 65_536;

/// The figures of one segment, by the key of what is searched.
#[derive(Default)]
pub(in crate::embedded) struct SegmentFigures(Mutex<HashMap<u64, Figures>>);

/// What is known of the part of a segment that a search may see.
#[derive(Default)]
struct Figures {
    sizes: Option<Sizes>,
    /// By number of the field and word.
    frequencies: HashMap<(u32, String), u32>,
}

/// How many documents there are, and for each searched field the words in it and the documents that have it.
#[derive(Clone, Default)]
struct Sizes {
    documents: u64,
    fields: Vec<(u64, u64)>,
}

impl SegmentFigures {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Figures>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sizes(&self, key: u64) -> Option<Sizes> {
        self.lock().get(&key)?.sizes.clone()
    }

    fn frequency(&self, key: u64, word: &(u32, String)) -> Option<u32> {
        self.lock().get(&key)?.frequencies.get(word).copied()
    }

    fn keep(&self, key: u64, keep: impl FnOnce(&mut Figures)) {
        let mut kept = self.lock();
        if kept.len() >= KEPT_SEARCHES && !kept.contains_key(&key) {
            kept.clear();
        }
        let figures = kept.entry(key).or_default();
        if figures.frequencies.len() >= KEPT_WORDS {
            figures.frequencies.clear();
        }
        keep(figures);
    }
}

/// The figures of everything that is searched.
pub(in crate::embedded) struct Statistics<'s> {
    pub(super) searched: &'s Searched<'s>,
    /// Admitted documents.
    pub(super) documents: u64,
    /// The average length of each searched field, of those documents that have it.
    averages: Vec<f32>,
}

impl<'s> Statistics<'s> {
    pub(in crate::embedded) fn new(searched: &'s Searched<'s>) -> tantivy::Result<Self> {
        let mut all = Sizes {
            documents: 0,
            fields: vec![(0, 0); searched.fields.len()],
        };
        for gate in &searched.gates {
            let figures = &gate.segment.columns.figures;
            let known = figures.sizes(searched.key);
            let sizes = if let Some(sizes) = known {
                sizes
            } else {
                let Some(sizes) = sizes(gate, &searched.fields)? else {
                    break;
                };
                figures.keep(searched.key, |kept| kept.sizes = Some(sizes.clone()));
                sizes
            };
            all.documents += sizes.documents;
            for (sum, here) in all.fields.iter_mut().zip(sizes.fields) {
                *sum = (sum.0 + here.0, sum.1 + here.1);
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "an average")]
        let average = |(words, documents): &(u64, u64)| match documents {
            0 => 1.0,
            _ => *words as f32 / *documents as f32,
        };
        Ok(Self {
            searched,
            documents: all.documents,
            averages: all.fields.iter().map(average).collect(),
        })
    }

    /// The average length of a searched field.
    pub(super) fn average(&self, field: usize) -> f32 {
        self.averages.get(field).copied().unwrap_or(1.0)
    }

    /// In how many admitted documents a word stands, in the field that has it most often.
    pub(super) fn frequency(&self, word: &str) -> tantivy::Result<u64> {
        let mut most = 0;
        for field in &self.searched.fields {
            let Some(frequency) = self.frequency_in(field, word)? else {
                break;
            };
            most = most.max(frequency);
        }
        Ok(most)
    }

    /// `None` when the search is stopped.
    fn frequency_in(&self, field: &SearchedField, word: &str) -> tantivy::Result<Option<u64>> {
        let term = Term::from_field_text(field.field, word);
        let name = (field.field.field_id(), word.to_owned());
        let mut sum = 0;
        for gate in &self.searched.gates {
            let figures = &gate.segment.columns.figures;
            let known = figures.frequency(self.searched.key, &name);
            let count = if let Some(count) = known {
                count
            } else {
                let Some(count) = count(gate, field, &term)? else {
                    return Ok(None);
                };
                figures.keep(self.searched.key, |kept| {
                    kept.frequencies.insert(name.clone(), count);
                });
                count
            };
            sum += u64::from(count);
        }
        Ok(Some(sum))
    }

    /// How rare something is that so many documents have.
    pub(super) fn rarity(&self, frequency: u64) -> f32 {
        let frequency = frequency.min(self.documents);
        #[expect(clippy::cast_precision_loss, reason = "a ratio of counts")]
        let (without, with) = ((self.documents - frequency) as f32, frequency as f32);
        (1.0 + (without + 0.5) / (with + 0.5)).ln()
    }
}

/// The same figures for the engine's own scores of phrases.
impl Bm25StatisticsProvider for Statistics<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        let at = self
            .searched
            .fields
            .iter()
            .position(|one| one.field == field);
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the engine divides it by the number of documents again"
        )]
        let words = (self.average(at.unwrap_or(usize::MAX)) * self.documents as f32) as u64;
        Ok(words.max(1))
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.documents)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let word = term.serialized_value_bytes();
        Ok(match std::str::from_utf8(word) {
            Ok(word) => self.frequency(word)?.min(self.documents),
            Err(_) => 0,
        })
    }
}

/// Reads the lengths of all admitted documents of a segment; `None` when the search is stopped.
fn sizes(gate: &Gate<'_>, fields: &[SearchedField]) -> tantivy::Result<Option<Sizes>> {
    let reader = gate.segment.reader;
    let mut lengths = Vec::with_capacity(fields.len());
    for field in fields {
        lengths.push(reader.get_fieldnorms_reader(field.field)?);
    }
    let mut sizes = Sizes {
        documents: 0,
        fields: vec![(0, 0); fields.len()],
    };
    if gate.is_open && !reader.has_deletes() && fields.iter().all(SearchedField::is_everywhere) {
        sizes.documents = u64::from(reader.max_doc());
        for (sum, lengths) in sizes.fields.iter_mut().zip(&lengths) {
            for document in 0..reader.max_doc() {
                let length = lengths.fieldnorm(document);
                *sum = (sum.0 + u64::from(length), sum.1 + u64::from(length > 0));
            }
        }
        return Ok(Some(sizes));
    }
    for document in 0..reader.max_doc() {
        if document % LOOK_EVERY == 0 && stop::asked() {
            return Ok(None);
        }
        if !gate.admits(document) {
            continue;
        }
        sizes.documents += 1;
        for ((sum, field), lengths) in sizes.fields.iter_mut().zip(fields).zip(&lengths) {
            let length = length(gate, field, lengths, document);
            *sum = (sum.0 + u64::from(length), sum.1 + u64::from(length > 0));
        }
    }
    Ok(Some(sizes))
}

fn length(
    gate: &Gate<'_>,
    field: &SearchedField,
    lengths: &FieldNormReader,
    document: DocId,
) -> u32 {
    let length = lengths.fieldnorm(document);
    if length > 0 && gate.factor(&field.factors, document) > 0.0 {
        length
    } else {
        0
    }
}

/// In how many admitted documents of a segment a word stands in a field.
fn count(gate: &Gate<'_>, field: &SearchedField, term: &Term) -> tantivy::Result<Option<u32>> {
    let index = gate.segment.reader.inverted_index(field.field)?;
    match index.get_term_info(term)? {
        Some(info) => count_entries(gate, field, &index, &info),
        None => Ok(Some(0)),
    }
}

/// How many entries of a word's list are admitted documents that show the field; `None` when the search is stopped.
pub(super) fn count_entries(
    gate: &Gate<'_>,
    field: &SearchedField,
    index: &InvertedIndexReader,
    info: &TermInfo,
) -> tantivy::Result<Option<u32>> {
    if gate.is_open && field.is_everywhere() && !gate.segment.reader.has_deletes() {
        return Ok(Some(info.doc_freq));
    }
    let mut list = index.read_block_postings_from_terminfo(info, IndexRecordOption::Basic)?;
    let mut count = 0;
    while !list.docs().is_empty() {
        if stop::asked() {
            return Ok(None);
        }
        let admitted = list.docs().iter().filter(|document| {
            gate.admits(**document) && gate.factor(&field.factors, **document) > 0.0
        });
        count += u32::try_from(admitted.count()).unwrap_or(u32::MAX);
        list.advance();
    }
    Ok(Some(count))
}
