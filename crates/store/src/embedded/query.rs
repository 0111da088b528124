//! A search expression as an engine query over the slots that may match.

use std::collections::BTreeSet;

use tantivy::query::{BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{Searcher, Term};
use text::{Clause, Expression};

use super::excluded::Excluded;
use super::index::View;
use super::phrase::Phrase;
use super::prefix::{AnyWord, Expansions, starting};
use super::restrict::Restriction;

/// Prefixes with up to this many words are ranked by those words; beyond, every match of the prefix counts the same.
const RANKED_EXPANSIONS: usize = 128;

/// How an expression is looked up.
pub(super) enum Plan {
    /// One word, as it stands in each of the fields that hold it; never empty.
    Word(Vec<Term>),
    /// Anything else.
    Query(Box<dyn Query>),
}

impl Plan {
    /// The plan as one query.
    pub(super) fn query(&self) -> Box<dyn Query> {
        match self {
            Self::Word(terms) => union(terms.iter().cloned().map(word).collect()),
            Self::Query(query) => query.box_clone(),
        }
    }
}

/// The fields of an index that are searched, and which documents may match.
#[derive(Clone, Copy)]
pub(super) struct SearchedFields<'a> {
    pub(super) fields: &'a [Field],
    pub(super) restrictions: &'a [Restriction],
}

/// The plan for an expression over some fields of what the restrictions admit, or `None` when nothing can match.
pub(super) fn plan(
    expression: &Expression,
    within: SearchedFields<'_>,
    view: &View,
    expansions: &mut Expansions,
) -> tantivy::Result<Option<Plan>> {
    if let ([clause], []) = (expression.all.as_slice(), expression.none.as_slice())
        && let ([only], false) = (clause.terms.as_slice(), clause.prefix)
    {
        let mut terms = Vec::with_capacity(within.fields.len());
        for field in within.fields {
            let term = Term::from_field_text(*field, only);
            if view.searcher.doc_freq(&term)? > 0 {
                terms.push(term);
            }
        }
        return Ok((!terms.is_empty()).then_some(Plan::Word(terms)));
    }
    let query = build(expression, within, view, expansions)?;
    Ok(query.map(Plan::Query))
}

/// All positive clauses must match, each in any of the fields; no negative clause may match in any of them.
fn build(
    expression: &Expression,
    within: SearchedFields<'_>,
    view: &View,
    expansions: &mut Expansions,
) -> tantivy::Result<Option<Box<dyn Query>>> {
    let mut must = Vec::with_capacity(expression.all.len());
    for clause in &expression.all {
        let alternatives = alternatives(clause, within, view, expansions)?;
        if alternatives.is_empty() {
            return Ok(None);
        }
        must.push(alternatives);
    }
    let mut must_not = Vec::new();
    for clause in &expression.none {
        must_not.extend(alternatives(clause, within, view, expansions)?);
    }
    // The engine skips whole blocks only on flat unions and flat intersections of words, so nothing is nested needlessly.
    let flat = must.len() == 1 && must_not.is_empty();
    let query: Box<dyn Query> = match must.pop() {
        None => return Ok(None),
        Some(only) if flat => union(only),
        Some(last) => {
            must.push(last);
            let positive = must.into_iter().map(|any| (Occur::Must, union(any)));
            let negative = must_not
                .into_iter()
                .map(|query| (Occur::MustNot, Box::new(Excluded(query)) as Box<dyn Query>));
            Box::new(BooleanQuery::new(positive.chain(negative).collect()))
        }
    };
    Ok(Some(query))
}

fn union(mut alternatives: Vec<Box<dyn Query>>) -> Box<dyn Query> {
    if alternatives.len() == 1
        && let Some(only) = alternatives.pop()
    {
        return only;
    }
    Box::new(BooleanQuery::union(alternatives))
}

/// The ways a clause can match: once per field that holds its words at all.
fn alternatives(
    clause: &Clause,
    within: SearchedFields<'_>,
    view: &View,
    expansions: &mut Expansions,
) -> tantivy::Result<Vec<Box<dyn Query>>> {
    let searcher = &view.searcher;
    let mut found: Vec<Box<dyn Query>> = Vec::new();
    for &field in within.fields {
        let mut terms: Vec<Term> = clause
            .terms
            .iter()
            .map(|term| Term::from_field_text(field, term))
            .collect();
        let whole_words = terms.len() - usize::from(clause.prefix);
        let mut present = true;
        for term in terms.iter().take(whole_words) {
            present = present && searcher.doc_freq(term)? > 0;
        }
        if !present {
            continue;
        }
        match (terms.len(), clause.prefix) {
            (0, _) => {}
            (1, false) => found.extend(terms.pop().map(word)),
            (1, true) => {
                for start in &clause.terms {
                    found.extend(prefix(start, field, searcher)?);
                }
            }
            (_, false) => found.push(Box::new(Phrase::new(terms))),
            (_, true) => {
                terms.pop();
                let start = clause.terms.last().map_or("", String::as_str);
                let words = expansions.expand(&terms, start, view, within.restrictions)?;
                found.extend(words.iter().map(|word| {
                    let mut phrase = terms.clone();
                    phrase.push(Term::from_field_text(field, word));
                    Box::new(Phrase::new(phrase)) as Box<dyn Query>
                }));
            }
        }
    }
    Ok(found)
}

fn word(term: Term) -> Box<dyn Query> {
    Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
}

fn prefix(start: &str, field: Field, searcher: &Searcher) -> tantivy::Result<Vec<Box<dyn Query>>> {
    let mut words: BTreeSet<Vec<u8>> = BTreeSet::new();
    for segment in searcher.segment_readers() {
        let index = segment.inverted_index(field)?;
        let mut stream = starting(&index, start)?;
        while words.len() <= RANKED_EXPANSIONS && stream.advance() {
            words.insert(stream.key().to_vec());
        }
    }
    if words.len() > RANKED_EXPANSIONS {
        let start = start.to_owned();
        return Ok(vec![Box::new(AnyWord { field, start })]);
    }
    let words: Vec<_> = words
        .iter()
        .filter_map(|bytes| std::str::from_utf8(bytes).ok())
        .map(|text| word(Term::from_field_text(field, text)))
        .collect();
    // One union per field: skipping blocks over a hundred lists at once costs more than it saves.
    Ok(if words.is_empty() {
        Vec::new()
    } else {
        vec![union(words)]
    })
}
