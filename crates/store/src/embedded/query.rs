//! A search expression as an engine query over the slots that may match.

use std::collections::BTreeSet;
use std::ops::Bound;

use tantivy::query::{
    BooleanQuery, ConstScoreQuery, Occur, PhrasePrefixQuery, PhraseQuery, Query, RangeQuery,
    TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{Searcher, SegmentReader, Term};
use text::{Clause, Expression};

use super::excluded::Excluded;

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

/// The plan for an expression over some fields, or `None` when nothing can match.
pub(super) fn plan(
    expression: &Expression,
    fields: &[Field],
    searcher: &Searcher,
) -> tantivy::Result<Option<Plan>> {
    let ([clause], []) = (expression.all.as_slice(), expression.none.as_slice()) else {
        return Ok(build(expression, fields, searcher)?.map(Plan::Query));
    };
    let ([only], false) = (clause.terms.as_slice(), clause.prefix) else {
        return Ok(build(expression, fields, searcher)?.map(Plan::Query));
    };
    let mut terms = Vec::with_capacity(fields.len());
    for field in fields {
        let term = Term::from_field_text(*field, only);
        if searcher.doc_freq(&term)? > 0 {
            terms.push(term);
        }
    }
    Ok((!terms.is_empty()).then_some(Plan::Word(terms)))
}

/// All positive clauses must match, each in any of the fields; no negative clause may match in any of them.
fn build(
    expression: &Expression,
    fields: &[Field],
    searcher: &Searcher,
) -> tantivy::Result<Option<Box<dyn Query>>> {
    let mut must = Vec::with_capacity(expression.all.len());
    for clause in &expression.all {
        let alternatives = alternatives(clause, fields, searcher)?;
        if alternatives.is_empty() {
            return Ok(None);
        }
        must.push(alternatives);
    }
    let mut must_not = Vec::new();
    for clause in &expression.none {
        must_not.extend(alternatives(clause, fields, searcher)?);
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
    fields: &[Field],
    searcher: &Searcher,
) -> tantivy::Result<Vec<Box<dyn Query>>> {
    let mut found: Vec<Box<dyn Query>> = Vec::new();
    for &field in fields {
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
            (1, true) => found.extend(prefix(&clause.terms[0], field, searcher)?),
            (_, false) => found.push(Box::new(PhraseQuery::new(terms))),
            (last, true) => {
                let widest = widest_expansion(&clause.terms[last - 1], field, searcher)?;
                if widest > 0 {
                    let mut query = PhrasePrefixQuery::new(terms);
                    // The engine reserves room for as many words as it may look at, so it gets the true number.
                    query.set_max_expansions(widest);
                    found.push(Box::new(query));
                }
            }
        }
    }
    Ok(found)
}

fn word(term: Term) -> Box<dyn Query> {
    Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
}

fn prefix(start: &str, field: Field, searcher: &Searcher) -> tantivy::Result<Vec<Box<dyn Query>>> {
    let end = after_prefix(start.as_bytes());
    let mut words: BTreeSet<Vec<u8>> = BTreeSet::new();
    for segment in searcher.segment_readers() {
        each_word(segment, field, start, &mut |word| {
            words.insert(word.to_vec());
            words.len() <= RANKED_EXPANSIONS
        })?;
    }
    if words.len() <= RANKED_EXPANSIONS {
        let words: Vec<_> = words
            .iter()
            .filter_map(|bytes| std::str::from_utf8(bytes).ok())
            .map(|text| word(Term::from_field_text(field, text)))
            .collect();
        // One union per field: skipping blocks over a hundred lists at once costs more than it saves.
        return Ok(if words.is_empty() {
            Vec::new()
        } else {
            vec![union(words)]
        });
    }
    let lower = Bound::Included(Term::from_field_text(field, start));
    let upper = end.map_or(Bound::Unbounded, |end| {
        let mut term = Term::from_field_text(field, "");
        term.append_bytes(&end);
        Bound::Excluded(term)
    });
    let all = ConstScoreQuery::new(Box::new(RangeQuery::new(lower, upper)), 1.0);
    Ok(vec![Box::new(all)])
}

/// The most words any segment has that start so.
fn widest_expansion(start: &str, field: Field, searcher: &Searcher) -> tantivy::Result<u32> {
    let mut widest = 0;
    for segment in searcher.segment_readers() {
        let mut words = 0;
        each_word(segment, field, start, &mut |_| {
            words += 1;
            true
        })?;
        widest = widest.max(words);
    }
    Ok(widest)
}

/// Hands over the words of a segment that start so, until told to stop.
fn each_word(
    segment: &SegmentReader,
    field: Field,
    start: &str,
    each: &mut dyn FnMut(&[u8]) -> bool,
) -> tantivy::Result<()> {
    let index = segment.inverted_index(field)?;
    let mut range = index.terms().range().ge(start.as_bytes());
    if let Some(end) = after_prefix(start.as_bytes()) {
        range = range.lt(end);
    }
    let mut stream = range.into_stream()?;
    while stream.advance() && each(stream.key()) {}
    Ok(())
}

/// The smallest bytes after everything that starts so.
fn after_prefix(start: &[u8]) -> Option<Vec<u8>> {
    let mut end = start.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}
