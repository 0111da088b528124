//! Words of the index as far as an admitted document has them in a searched field: where each is listed, and in how many such
//! documents it stands. What was read of a segment is kept for as long as the segment stays as it is.

use std::collections::HashMap;
use std::sync::Arc;

use tantivy::index::InvertedIndexReader;
use tantivy::postings::TermInfo;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, Term};

use super::forms::{is_form, near};
use super::prefix::starting;
use super::statistics::Statistics;
use super::{Gate, SearchedField};
use crate::stop;

/// Which words are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Pattern {
    /// This one.
    Word(String),
    /// All that begin so and may be forms of one word.
    Stem(String),
    /// All that are nearly so spelled.
    Near(String),
}

/// A word of one field in one segment.
pub(super) struct Listed {
    word: Box<str>,
    info: TermInfo,
    /// In how many admitted documents, by stream.
    counts: Box<[(u64, u64)]>,
}

/// In how many documents something stands, by stream and by number of the field.
#[derive(Default)]
pub(super) struct Frequencies(Vec<(u64, usize, u64)>);

impl Frequencies {
    pub(super) fn add(&mut self, field: usize, counts: &[(u64, u64)]) {
        for (stream, count) in counts {
            let mut known = self.0.iter_mut();
            match known.find(|one| (one.0, one.1) == (*stream, field)) {
                Some(known) => known.2 += count,
                None => self.0.push((*stream, field, *count)),
            }
        }
    }

    /// In how many documents it stands: of each stream, those of the field that has it most often. Fields of different streams
    /// are not mixed, for which of them share a place in the index depends on fields that may not be seen.
    pub(super) fn documents(mut self) -> u64 {
        self.0.sort_unstable();
        let streams = self.0.chunk_by(|one, other| one.0 == other.0);
        streams
            .filter_map(|stream| stream.iter().map(|one| one.2).max())
            .sum()
    }
}

/// How many of some documents, which are admitted and show a field, belong to each stream.
pub(super) fn by_stream(
    gate: &Gate<'_>,
    documents: impl Iterator<Item = DocId>,
    counts: &mut Vec<(u64, u64)>,
) {
    let streams = &gate.segment.columns.streams;
    let only = gate.only_stream();
    for document in documents {
        let stream = only.or_else(|| streams.first(document)).unwrap_or_default();
        match counts.iter_mut().find(|one| one.0 == stream) {
            Some(known) => known.1 += 1,
            None => counts.push((stream, 1)),
        }
    }
}

/// Where a word is listed.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// The number of the segment.
    pub(super) gate: usize,
    /// The number of the searched field.
    pub(super) field: usize,
    pub(super) info: TermInfo,
}

/// A word of everything that is searched.
pub(super) struct Known {
    pub(super) word: String,
    /// In how many admitted documents it stands.
    pub(super) frequency: u64,
    /// By segment, then by field.
    pub(super) entries: Arc<[Entry]>,
}

impl Statistics<'_> {
    /// The words of a pattern, in no particular order; none when the search is stopped.
    pub(super) fn words(&self, pattern: &Pattern) -> tantivy::Result<Vec<Known>> {
        let fields = &self.searched.fields;
        let mut by_word: HashMap<&str, usize> = HashMap::new();
        let mut known: Vec<(&str, Vec<Entry>, Frequencies)> = Vec::new();
        let mut lists = Vec::with_capacity(self.searched.gates.len() * fields.len());
        for (gate, opened) in self.searched.gates.iter().enumerate() {
            for (field, searched) in fields.iter().enumerate() {
                let Some(list) = self.listed(opened, searched, pattern)? else {
                    return Ok(Vec::new());
                };
                lists.push((gate, field, list));
            }
        }
        for (gate, field, list) in &lists {
            for listed in list.iter() {
                let at = *by_word.entry(&listed.word).or_insert_with(|| {
                    known.push((&listed.word, Vec::new(), Frequencies::default()));
                    known.len() - 1
                });
                if let Some((_, entries, frequencies)) = known.get_mut(at) {
                    frequencies.add(*field, &listed.counts);
                    entries.push(Entry {
                        gate: *gate,
                        field: *field,
                        info: listed.info.clone(),
                    });
                }
            }
        }
        let known = known.into_iter().map(|(word, entries, frequencies)| Known {
            word: word.to_owned(),
            frequency: frequencies.documents(),
            entries: entries.into(),
        });
        Ok(known.collect())
    }

    /// The words of one field in one segment; `None` when the search is stopped.
    fn listed(
        &self,
        gate: &Gate<'_>,
        field: &SearchedField,
        pattern: &Pattern,
    ) -> tantivy::Result<Option<Arc<[Listed]>>> {
        let figures = &gate.segment.columns.figures;
        let name = (field.field.field_id(), pattern.clone());
        if let Some(known) = figures.words(self.searched.key, &name) {
            return Ok(Some(known));
        }
        let index = gate.segment.reader.inverted_index(field.field)?;
        let mut found = Vec::new();
        let is_whole = each_word(&index, field, pattern, &mut |word, info| {
            let Some(counts) = count_entries(gate, field, &index, info)? else {
                return Ok(false);
            };
            if !counts.is_empty() {
                found.push(Listed {
                    word: word.into(),
                    info: info.clone(),
                    counts: counts.into(),
                });
            }
            Ok(!stop::asked())
        })?;
        let found: Arc<[Listed]> = found.into();
        if is_whole {
            figures.keep_words(self.searched.key, name, Arc::clone(&found));
        }
        Ok(is_whole.then_some(found))
    }
}

/// Takes a word of a segment and where its documents are listed; returns whether to go on.
type EachWord<'e> = &'e mut dyn FnMut(&str, &TermInfo) -> tantivy::Result<bool>;

/// Hands over the words of a pattern, and tells whether it came to the end.
fn each_word(
    index: &InvertedIndexReader,
    field: &SearchedField,
    pattern: &Pattern,
    each: EachWord<'_>,
) -> tantivy::Result<bool> {
    let mut take = |word: &[u8], info: &TermInfo| match std::str::from_utf8(word) {
        Ok(word) => each(word, info),
        Err(_) => Ok(true),
    };
    match pattern {
        Pattern::Word(word) => {
            let info = index.get_term_info(&Term::from_field_text(field.field, word))?;
            return info.map_or(Ok(true), |info| take(word.as_bytes(), &info));
        }
        Pattern::Stem(stem) => {
            let mut words = starting(index, stem)?;
            while words.advance() {
                if is_form(stem, words.key()) && !take(words.key(), words.value())? {
                    return Ok(false);
                }
            }
        }
        Pattern::Near(word) => {
            let mut words = index.terms().search(near(word)).into_stream()?;
            while words.advance() {
                if !take(words.key(), words.value())? {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

/// How many entries of a word's list are admitted documents that show the field, by stream; `None` when the search is stopped.
fn count_entries(
    gate: &Gate<'_>,
    field: &SearchedField,
    index: &InvertedIndexReader,
    info: &TermInfo,
) -> tantivy::Result<Option<Vec<(u64, u64)>>> {
    let is_whole = gate.is_open && field.is_everywhere() && !gate.segment.reader.has_deletes();
    if let (Some(only), true) = (gate.only_stream(), is_whole) {
        return Ok(Some(vec![(only, u64::from(info.doc_freq))]));
    }
    let mut list = index.read_block_postings_from_terminfo(info, IndexRecordOption::Basic)?;
    let mut counts = Vec::new();
    while !list.docs().is_empty() {
        if stop::asked() {
            return Ok(None);
        }
        let admitted = list.docs().iter().copied().filter(|document| {
            is_whole || gate.admits(*document) && gate.factor(&field.factors, *document) > 0.0
        });
        by_stream(gate, admitted, &mut counts);
        list.advance();
    }
    Ok(Some(counts))
}
