//! The lists of a question in one segment: which documents hold what is looked for, and what that scores.

use std::borrow::Cow;
use std::hash::Hasher as _;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use siphasher::sip::SipHasher13;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::InvertedIndexReader;
use tantivy::postings::{BlockSegmentPostings, TermInfo};
use tantivy::query::{EnableScoring, Query};
use tantivy::schema::IndexRecordOption;
use tantivy::{BitSet, DocId, DocSet, TERMINATED, Term};

use super::dictionary::Entry;
use super::phrase::Phrase;
use super::prefix::starting;
use super::question::{Alternative, Lookup, Question, What};
use super::scores::FieldScores;
use super::short::{self, ShortLists};
use super::statistics::{Lengths, saturated};
use super::{Factors, Gate, SearchedField};
use crate::stop;

/// Up to so many documents of short lists are looked at one by one.
const FEW: usize = 256;

/// What a question looks up in one segment. Lists can be opened from it any number of times.
pub(super) struct SegmentLookups<'q> {
    pub(super) gate: &'q Gate<'q>,
    pub(super) wanted: Vec<ClauseLookup<'q>>,
    pub(super) excluded: Vec<ClauseLookup<'q>>,
}

/// Where a clause stands in one segment.
#[derive(Default)]
pub(super) struct ClauseLookup<'q> {
    /// Alternatives that stand in many documents: they are read by blocks, only where that matters.
    pub(super) long: Vec<Ways<'q>>,
    /// The documents of all others.
    pub(super) short: Arc<ShortLists>,
}

/// One alternative of a clause: its places in the fields of the segment.
pub(super) struct Ways<'q> {
    /// What it scores in a document, divided by the document's share.
    pub(super) most: f32,
    pub(super) places: Vec<Place<'q>>,
}

/// Where one alternative stands in one field.
pub(super) struct Place<'q> {
    pub(super) field: &'q SearchedField,
    pub(super) opened: Rc<OpenField<'q>>,
    pub(super) info: &'q TermInfo,
}

impl<'q> SegmentLookups<'q> {
    /// Looks up a question in the segment of this number, with other forms of these clauses, one bit each.
    pub(super) fn new(
        question: &'q Question<'q>,
        number: usize,
        gate: &'q Gate<'q>,
        with_forms: u64,
    ) -> tantivy::Result<Self> {
        let mut looking = Looking {
            question,
            number,
            gate,
            fields: Vec::new(),
        };
        let mut all = |lookups: &'q [Lookup]| {
            let clauses = lookups.iter().enumerate().map(|(clause, lookup)| {
                let with_forms = with_forms >> (clause % 64) & 1 == 1;
                looking.clause(lookup.alternatives(with_forms))
            });
            clauses.collect::<tantivy::Result<Vec<_>>>()
        };
        Ok(Self {
            gate,
            wanted: all(&question.wanted)?,
            excluded: all(&question.excluded)?,
        })
    }

    /// All documents with a wanted clause, in order, where that is known without reading long lists.
    pub(super) fn documents(&self) -> Option<Vec<DocId>> {
        let clauses = self.wanted.iter();
        let short = clauses.clone().map(|clause| clause.short.scored.len());
        if clauses.clone().any(|clause| !clause.long.is_empty()) || short.sum::<usize>() > FEW {
            return None;
        }
        let documents = clauses.flat_map(|clause| &clause.short.scored);
        let documents = documents.map(|one| one.0);
        let mut documents: Vec<DocId> = documents.collect();
        documents.sort_unstable();
        documents.dedup();
        Some(documents)
    }
}

impl ClauseLookup<'_> {
    /// About how many documents have it.
    pub(super) fn size(&self) -> usize {
        let long = self.long.iter().flat_map(|ways| &ways.places);
        let long = long.map(|place| place.info.doc_freq as usize);
        long.sum::<usize>() + self.short.scored.len()
    }
}

/// A question while it is looked up in one segment.
struct Looking<'q> {
    question: &'q Question<'q>,
    number: usize,
    gate: &'q Gate<'q>,
    /// By number.
    fields: Vec<Option<Rc<OpenField<'q>>>>,
}

/// A field of the segment, opened once for all words that are looked up in it.
pub(super) struct OpenField<'q> {
    pub(super) texts: Texts<'q>,
    index: Arc<InvertedIndexReader>,
}

/// The texts of one field in a segment: how long they are, and how that counts.
#[derive(Clone)]
pub(super) struct Texts<'q> {
    pub(super) codes: FieldNormReader,
    lengths: &'q Lengths,
    /// Where the segment or the search has one stream only.
    only: Option<&'q [f32; 256]>,
}

impl<'q> Texts<'q> {
    fn new(
        question: &'q Question<'q>,
        gate: &Gate<'_>,
        number: usize,
        field: &SearchedField,
    ) -> tantivy::Result<Option<Self>> {
        let Some(lengths) = question.statistics.lengths.get(number) else {
            return Ok(None);
        };
        let only = match gate.only_stream() {
            Some(stream) => lengths.of_stream(stream),
            None => lengths.only(),
        };
        Ok(Some(Self {
            codes: gate.segment.reader.get_fieldnorms_reader(field.field)?,
            lengths,
            only: only.map(|one| &*one.terms),
        }))
    }

    /// The average lengths by stream.
    pub(super) fn averages(&self) -> impl Iterator<Item = (u64, f32)> {
        let lengths = self.lengths.by_stream();
        lengths.map(|(stream, length)| (stream, length.average))
    }

    /// What so many occurrences in a document score, as a share of the most; nothing in a stream that is not searched.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "a table of all values of a byte")]
    pub(super) fn share(&self, gate: &Gate<'_>, document: DocId, times: u32) -> f32 {
        let code = usize::from(self.codes.fieldnorm_id(document));
        if let Some(terms) = self.only {
            return saturated(times, terms[code]);
        }
        let stream = gate.segment.columns.streams.first(document);
        let length = stream.and_then(|stream| self.lengths.of_stream(stream));
        length.map_or(0.0, |length| saturated(times, length.terms[code]))
    }
}

impl<'q> Looking<'q> {
    fn clause(&mut self, alternatives: &'q [Alternative]) -> tantivy::Result<ClauseLookup<'q>> {
        let (mut ways, mut others) = (Vec::new(), Vec::new());
        for alternative in alternatives {
            let scored = match &alternative.what {
                What::Word(entries) => {
                    let places = self.places(entries)?;
                    if !places.is_empty() {
                        let most = alternative.weight();
                        ways.push(Ways { most, places });
                    }
                    continue;
                }
                What::Phrase(words) => self.materialised(|looking, _, field| {
                    let found = phrase(looking.question, field, words, looking.gate)?;
                    Ok(Cow::Owned(found))
                })?,
                What::Prefix(documents) => self.materialised(|looking, number, _| {
                    let found = documents.get(&(looking.number, number));
                    Ok(Cow::Borrowed(found.map_or(&[][..], Vec::as_slice)))
                })?,
            };
            others.extend(by_document(scored, alternative.weight()));
        }
        let gate = self.gate;
        let read = short::take_short(&mut ways);
        let short = if others.is_empty() && !read.is_empty() {
            short::scored(&read, gate, || best_of(&read, gate))?
        } else {
            // Phrases and prefixes are clauses of their own, without other words.
            let scored = joined(others, f32::max).collect();
            Arc::new(ShortLists::new(scored, gate.segment.reader.max_doc()))
        };
        Ok(ClauseLookup { long: ways, short })
    }

    /// The documents of all fields with their shares, field by field. How often each has it does not matter.
    fn materialised(
        &mut self,
        documents: impl Fn(&Self, usize, &'q SearchedField) -> tantivy::Result<Cow<'q, [DocId]>>,
    ) -> tantivy::Result<Vec<(DocId, f32)>> {
        let mut scored = Vec::new();
        let fields = &self.question.statistics.searched.fields;
        for (number, field) in fields.iter().enumerate() {
            let Some(opened) = self.field(number, field)? else {
                continue;
            };
            for &document in documents(self, number, field)?.iter() {
                let share = opened.texts.share(self.gate, document, 1);
                let factor = self.gate.factor(&field.factors, document);
                scored.push((document, share * factor));
            }
        }
        Ok(scored)
    }

    fn places(&mut self, entries: &'q [Entry]) -> tantivy::Result<Vec<Place<'q>>> {
        let number = self.number;
        let begin = entries.partition_point(|entry| entry.gate < number);
        let here = entries.iter().skip(begin);
        let mut places = Vec::new();
        for entry in here.take_while(|entry| entry.gate == number) {
            let fields = &self.question.statistics.searched.fields;
            let Some(field) = fields.get(entry.field) else {
                continue;
            };
            let Some(opened) = self.field(entry.field, field)? else {
                continue;
            };
            places.push(Place {
                field,
                opened,
                info: &entry.info,
            });
        }
        Ok(places)
    }

    fn field(
        &mut self,
        number: usize,
        field: &SearchedField,
    ) -> tantivy::Result<Option<Rc<OpenField<'q>>>> {
        if let Some(Some(known)) = self.fields.get(number) {
            return Ok(Some(Rc::clone(known)));
        }
        let Some(texts) = Texts::new(self.question, self.gate, number, field)? else {
            return Ok(None);
        };
        let index = self.gate.segment.reader.inverted_index(field.field)?;
        let opened = Rc::new(OpenField { texts, index });
        if self.fields.len() <= number {
            self.fields.resize(number + 1, None);
        }
        if let Some(known) = self.fields.get_mut(number) {
            *known = Some(Rc::clone(&opened));
        }
        Ok(Some(opened))
    }
}

/// The documents of some alternatives, each with the best of them.
fn best_of(ways: &[Ways<'_>], gate: &Gate<'_>) -> tantivy::Result<Vec<(DocId, f32)>> {
    let mut best = Vec::new();
    for way in ways {
        let mut scored = Vec::new();
        for place in &way.places {
            place.list()?.read_all(gate, |document, share| {
                if share > 0.0 {
                    scored.push((document, share));
                }
            });
        }
        best.extend(by_document(scored, way.most));
    }
    Ok(joined(best, f32::max).collect())
}

/// What a way to write a word scores in the fields of each document together.
fn by_document(shares: Vec<(DocId, f32)>, most: f32) -> impl Iterator<Item = (DocId, f32)> {
    let fields = joined(shares, FieldScores::and);
    fields.map(move |(document, fields)| (document, fields.together() * most))
}

/// One score for each document, in the order of documents. Scores of one are joined in the order in which they come.
fn joined<T: Copy + Default>(
    mut scored: Vec<(DocId, f32)>,
    join: fn(T, f32) -> T,
) -> impl Iterator<Item = (DocId, T)> {
    // Stable, so that fields keep their order.
    scored.sort_by_key(|one| one.0);
    let mut scored = scored.into_iter().peekable();
    std::iter::from_fn(move || {
        let (document, first) = scored.next()?;
        let mut together = join(T::default(), first);
        while let Some((_, score)) = scored.next_if(|next| next.0 == document) {
            together = join(together, score);
        }
        Some((document, together))
    })
}

/// The admitted documents of a phrase in a field.
fn phrase(
    question: &Question<'_>,
    field: &SearchedField,
    words: &[String],
    gate: &Gate<'_>,
) -> tantivy::Result<Vec<DocId>> {
    let terms = words.iter();
    let terms = terms.map(|word| Term::from_field_text(field.field, word));
    let searcher = &question.statistics.searched.view.searcher;
    let scoring = EnableScoring::disabled_from_searcher(searcher);
    let weight = Phrase::new(terms.collect()).weight(scoring)?;
    let mut documents = weight.scorer(gate.segment.reader, 1.0)?;
    let mut found = Vec::new();
    let mut document = documents.doc();
    while document != TERMINATED {
        if gate.admits(document) && gate.factor(&field.factors, document) > 0.0 {
            found.push(document);
        }
        document = documents.advance();
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
    /// Opens the lists.
    pub(super) fn lists(&self) -> tantivy::Result<Vec<List<'_>>> {
        self.places.iter().map(Place::list).collect()
    }
}

impl Place<'_> {
    /// Names the list, and how its field counts.
    pub(super) fn hash_into(&self, hasher: &mut SipHasher13) {
        hasher.write_u32(self.field.field.field_id());
        hasher.write_usize(self.info.postings_range.start);
        match &self.field.factors {
            Factors::Uniform(factor) => hasher.write_u32(factor.to_bits()),
            Factors::ByStream(factors) => {
                for factor in factors {
                    hasher.write_u32(factor.to_bits());
                }
                hasher.write_u8(u8::MAX);
            }
        }
    }

    pub(super) fn list(&self) -> tantivy::Result<List<'_>> {
        Ok(List {
            place: self,
            entries: Box::new(self.postings()?),
            at: 0,
        })
    }

    pub(super) fn postings(&self) -> tantivy::Result<BlockSegmentPostings> {
        let option = IndexRecordOption::WithFreqs;
        Ok(self
            .opened
            .index
            .read_block_postings_from_terminfo(self.info, option)?)
    }

    #[inline]
    fn share(&self, gate: &Gate<'_>, document: DocId, times: u32) -> f32 {
        let share = self.opened.texts.share(gate, document, times);
        match &self.field.factors {
            Factors::Uniform(factor) => share * factor,
            factors @ Factors::ByStream(_) => share * gate.factor(factors, document),
        }
    }
}

/// One list, read forwards.
pub(super) struct List<'l> {
    place: &'l Place<'l>,
    /// More than a kilobyte, so that lists are moved without it.
    entries: Box<BlockSegmentPostings>,
    at: usize,
}

impl List<'_> {
    /// Hands over the documents of some parts of the segment, in order, with their shares of what the word can score, times what
    /// the field counts. A share of nothing means that the document does not show the field.
    pub(super) fn read(
        &mut self,
        gate: &Gate<'_>,
        parts: &[Range<DocId>],
        mut each: impl FnMut(DocId, f32),
    ) {
        for part in parts {
            self.seek(part.start);
            self.read_until(gate, part.end, &mut each);
        }
    }

    /// The next document.
    pub(super) fn next(&self) -> Option<DocId> {
        self.entries.docs().get(self.at).copied()
    }

    /// Hands over all documents with their shares.
    pub(super) fn read_all(&mut self, gate: &Gate<'_>, mut each: impl FnMut(DocId, f32)) {
        self.read_until(gate, TERMINATED, &mut each);
    }

    /// Goes to the first document from `document` on.
    fn seek(&mut self, document: DocId) {
        let next = self.entries.docs().get(self.at);
        if next.is_some_and(|next| *next < document) {
            self.at = self.entries.seek(document);
        }
    }

    #[inline]
    fn read_until(&mut self, gate: &Gate<'_>, end: DocId, each: &mut impl FnMut(DocId, f32)) {
        loop {
            let entries = self.entries.docs().iter().zip(self.entries.freqs());
            for (document, times) in entries.skip(self.at) {
                if *document >= end {
                    return;
                }
                self.at += 1;
                each(*document, self.place.share(gate, *document, *times));
            }
            if self.at == 0 {
                return;
            }
            self.entries.advance();
            self.at = 0;
        }
    }

    /// The share of a document, if it is in the list. Documents are asked for in ascending order.
    pub(super) fn share_of(&mut self, gate: &Gate<'_>, document: DocId) -> Option<f32> {
        self.seek(document);
        let found = self.entries.docs().get(self.at) == Some(&document);
        found.then(|| {
            let times = self.entries.freq(self.at);
            self.place.share(gate, document, times)
        })
    }
}
