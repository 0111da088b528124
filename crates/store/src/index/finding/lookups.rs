//! What a question looks up in one segment: where each of its clauses stands.

use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use tantivy::query::{EnableScoring, Query};
use tantivy::schema::IndexRecordOption;
use tantivy::{BitSet, DocId, DocSet, TERMINATED, Term};

use super::dictionary::Entry;
use super::lists::{OpenField, Place, Texts, Ways};
use super::phrase::Phrase;
use super::prefix::starting;
use super::prepared::SegmentWord;
use super::question::{Alternative, Lookup, Question, What};
use super::scores::FieldScores;
use super::short::{self, ShortLists};
use super::{Gate, SearchedField};
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
    /// What is kept of it.
    pub(super) prepared: Option<&'q SegmentWord>,
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
                looking.clause(lookup, with_forms)
            });
            clauses.collect::<tantivy::Result<Vec<_>>>()
        };
        Ok(Self {
            gate,
            wanted: all(&question.wanted)?,
            excluded: all(&question.excluded)?,
        })
    }

    /// Whether so few documents have a wanted clause that they are looked at one by one.
    pub(super) fn is_small(&self) -> bool {
        let short = self.wanted.iter().map(|clause| clause.short.scored.len());
        self.wanted.iter().all(|clause| clause.long.is_empty()) && short.sum::<usize>() <= FEW
    }

    /// The documents of short lists with a wanted clause, in order.
    pub(super) fn documents(&self) -> Vec<DocId> {
        let documents = self.wanted.iter().flat_map(|clause| &clause.short.scored);
        let mut documents: Vec<DocId> = documents.map(|one| one.0).collect();
        documents.sort_unstable();
        documents.dedup();
        documents
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

impl<'q> Looking<'q> {
    fn clause(
        &mut self,
        lookup: &'q Lookup,
        with_forms: bool,
    ) -> tantivy::Result<ClauseLookup<'q>> {
        let alternatives = lookup.alternatives(with_forms);
        let kept = lookup.prepared(self.number, with_forms);
        if let Some(word) = kept.and_then(OnceLock::get)
            && let Some(short) = word.short()
        {
            return Ok(ClauseLookup {
                long: self.long(alternatives, word)?,
                short,
                prepared: Some(word),
            });
        }
        let mut clause = self.looked_up(alternatives)?;
        if let Some(kept) = kept.filter(|_| !stop::asked()) {
            let word = kept.get_or_init(|| {
                SegmentWord::new(clause.long.iter().map(|way| way.from.clone()).collect())
            });
            word.keep_short(&clause.short);
            clause.prepared = Some(word);
        }
        Ok(clause)
    }

    /// The alternatives that stand in many documents, as they were found before.
    fn long(
        &mut self,
        alternatives: &'q [Alternative],
        word: &SegmentWord,
    ) -> tantivy::Result<Vec<Ways<'q>>> {
        let mut long = Vec::with_capacity(word.long.len());
        for (number, entries) in &word.long {
            if let Some(alternative) = alternatives.get(*number)
                && let What::Word(all) = &alternative.what
            {
                long.push(self.ways((*number, entries.clone()), alternative, all)?);
            }
        }
        Ok(long)
    }

    fn looked_up(&mut self, alternatives: &'q [Alternative]) -> tantivy::Result<ClauseLookup<'q>> {
        let (mut ways, mut others) = (Vec::new(), Vec::new());
        for (number, alternative) in alternatives.iter().enumerate() {
            let scored = match &alternative.what {
                What::Word(entries) => {
                    let begin = entries.partition_point(|entry| entry.gate < self.number);
                    let end = entries.partition_point(|entry| entry.gate <= self.number);
                    if begin < end {
                        ways.push(self.ways((number, begin..end), alternative, entries)?);
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
            Arc::new(ShortLists::new(scored, 0.0, gate.segment.reader.max_doc()))
        };
        Ok(ClauseLookup {
            long: ways,
            short,
            prepared: None,
        })
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

    fn ways(
        &mut self,
        from: (usize, Range<usize>),
        alternative: &Alternative,
        entries: &'q [Entry],
    ) -> tantivy::Result<Ways<'q>> {
        let here = entries.get(from.1.clone()).unwrap_or_default();
        let mut places = Vec::with_capacity(here.len());
        for entry in here {
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
        Ok(Ways {
            from,
            most: alternative.weight(),
            places,
        })
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

/// The documents of some alternatives, each with the best of them, and the most that one scores by another form of a word.
fn best_of(ways: &[Ways<'_>], gate: &Gate<'_>) -> tantivy::Result<(Vec<(DocId, f32)>, f32)> {
    let (mut best, mut most_by_forms) = (Vec::new(), 0.0);
    for way in ways {
        let mut scored = Vec::new();
        for place in &way.places {
            place.list()?.read_all(gate, |document, share| {
                if share > 0.0 {
                    scored.push((document, share));
                }
            });
        }
        for one in by_document(scored, way.most) {
            if !way.is_first() {
                most_by_forms = one.1.max(most_by_forms);
            }
            best.push(one);
        }
    }
    Ok((joined(best, f32::max).collect(), most_by_forms))
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
