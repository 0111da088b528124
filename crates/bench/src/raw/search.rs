//! The raw search: BM25 top hits, the records behind them, one snippet each from the engine's own
//! snippet generator.

use std::collections::BTreeSet;
use std::ops::{Bound, Range};

use serde::Deserialize;
use tantivy::collector::{Count, TopDocs};
use tantivy::query::{
    BooleanQuery, ConstScoreQuery, EmptyQuery, Occur, PhraseQuery, Query, RangeQuery, TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::snippet::SnippetGenerator;
use tantivy::{DocAddress, Searcher, Term};

use super::{RawReader, pages};
use crate::BenchError;
use crate::corpus::{Probe, ProbeKind};

/// How many words a prefix may stand for, per text column.
const MOST_PREFIX_WORDS: usize = 64;
const SNIPPET_LENGTH: usize = 240;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawQuery {
    Words(String),
    /// At least one of the words in the subject or the body.
    AnyWord(String),
    /// The words next to each other in the subject or the body.
    Phrase(String),
    /// A word that begins so.
    Prefix(String),
}

impl From<Probe> for RawQuery {
    fn from(probe: Probe) -> Self {
        let words = probe.words.to_owned();
        match probe.kind {
            ProbeKind::Words => Self::Words(words),
            ProbeKind::Phrase => Self::Phrase(words),
            ProbeKind::Prefix => Self::Prefix(words),
        }
    }
}

#[derive(Debug, Clone)]
pub struct RawFilter {
    pub folder: String,
    /// The time of sending, in microseconds since the epoch.
    pub sent_at: Range<i64>,
}

#[derive(Debug, Clone)]
pub struct RawHit {
    pub score: f32,
    pub key: String,
    pub snippet: String,
}

/// The members that a snippet may come from.
#[derive(Deserialize)]
struct Texts<'a> {
    #[serde(borrow)]
    subject: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    body: std::borrow::Cow<'a, str>,
}

impl RawReader {
    /// The best `limit` records for a query, each with one snippet.
    pub fn search(
        &self,
        query: &RawQuery,
        filter: Option<&RawFilter>,
        limit: usize,
    ) -> Result<Vec<RawHit>, BenchError> {
        let searcher = self.index.searcher();
        let words = self.query(&searcher, query)?;
        let filtered = self.filtered(words.box_clone(), filter);
        let top = searcher.search(&*filtered, &TopDocs::with_limit(limit).order_by_score())?;
        let body = snippets(&searcher, &*words, self.columns.body)?;
        let subject = snippets(&searcher, &*words, self.columns.subject)?;
        let mut hits = Vec::with_capacity(top.len());
        for (score, address) in top {
            let record = pages::by_rid(&self.records, rid_of(&searcher, address)?)?;
            let texts: Texts<'_> = serde_json::from_str(&record.data)?;
            let mut snippet = body.snippet(&texts.body);
            if snippet.is_empty() {
                snippet = subject.snippet(&texts.subject);
            }
            hits.push(RawHit {
                score,
                key: record.key,
                snippet: snippet.to_html(),
            });
        }
        Ok(hits)
    }

    pub fn count(&self, filter: &RawFilter) -> Result<u64, BenchError> {
        let query = BooleanQuery::intersection(self.filters(filter));
        Ok(self.index.searcher().search(&query, &Count)? as u64)
    }

    fn filtered(&self, words: Box<dyn Query>, filter: Option<&RawFilter>) -> Box<dyn Query> {
        let Some(filter) = filter else {
            return words;
        };
        let mut clauses = vec![(Occur::Must, words)];
        for query in self.filters(filter) {
            let unscored: Box<dyn Query> = Box::new(ConstScoreQuery::new(query, 0.0));
            clauses.push((Occur::Must, unscored));
        }
        Box::new(BooleanQuery::new(clauses))
    }

    fn filters(&self, filter: &RawFilter) -> Vec<Box<dyn Query>> {
        let folder = Term::from_field_text(self.columns.folder, &filter.folder);
        let instant = |micros| Term::from_field_i64(self.columns.sent_at, micros);
        vec![
            Box::new(TermQuery::new(folder, IndexRecordOption::Basic)),
            Box::new(RangeQuery::new(
                Bound::Included(instant(filter.sent_at.start)),
                Bound::Excluded(instant(filter.sent_at.end)),
            )),
        ]
    }

    fn query(&self, searcher: &Searcher, query: &RawQuery) -> Result<Box<dyn Query>, BenchError> {
        let text_columns = [self.columns.subject, self.columns.body];
        Ok(match query {
            RawQuery::Words(words) => {
                let clauses = self.words(words).into_iter().map(|word| {
                    let terms = text_columns.map(|field| Term::from_field_text(field, &word));
                    any_of(terms)
                });
                let mut clauses: Vec<_> = clauses.collect();
                match clauses.len() {
                    1 => clauses.swap_remove(0),
                    _ => Box::new(BooleanQuery::intersection(clauses)),
                }
            }
            RawQuery::AnyWord(words) => {
                let words = self.words(words);
                let terms = words
                    .iter()
                    .flat_map(|word| text_columns.map(|field| Term::from_field_text(field, word)));
                any_of(terms)
            }
            RawQuery::Phrase(words) => {
                let words = self.words(words);
                let phrases = text_columns.map(|field| -> Box<dyn Query> {
                    let terms = words.iter().map(|word| Term::from_field_text(field, word));
                    Box::new(PhraseQuery::new(terms.collect()))
                });
                Box::new(BooleanQuery::union(phrases.into()))
            }
            RawQuery::Prefix(prefix) => {
                let prefix = self.words(prefix).pop().unwrap_or_default();
                // One union per column: a single union of all words would be pruned word by word,
                // which costs four times as much here.
                let mut columns = Vec::new();
                for field in text_columns {
                    columns.push(any_of(words_with_prefix(searcher, field, &prefix)?));
                }
                Box::new(BooleanQuery::union(columns))
            }
        })
    }

    fn words(&self, text: &str) -> Vec<String> {
        let mut tokenizer = self.tokenizer.clone();
        let mut stream = tokenizer.token_stream(text);
        let mut words = Vec::new();
        stream.process(&mut |token| words.push(token.text.clone()));
        words
    }
}

/// Scored by the sum over the terms that occur.
fn any_of(terms: impl IntoIterator<Item = Term>) -> Box<dyn Query> {
    let queries: Vec<Box<dyn Query>> = terms
        .into_iter()
        .map(|term| -> Box<dyn Query> {
            Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
        })
        .collect();
    if queries.is_empty() {
        return Box::new(EmptyQuery);
    }
    Box::new(BooleanQuery::union(queries))
}

/// The words of a column that begin with a prefix. Expanding them keeps BM25 and tells the snippet
/// generator what to mark; the engine's own prefix query does neither.
fn words_with_prefix(
    searcher: &Searcher,
    field: Field,
    prefix: &str,
) -> Result<Vec<Term>, BenchError> {
    let mut words = BTreeSet::new();
    for segment in searcher.segment_readers() {
        let inverted = segment.inverted_index(field)?;
        let mut stream = inverted
            .terms()
            .range()
            .ge(prefix)
            .into_stream()
            .map_err(tantivy::TantivyError::from)?;
        let mut left = MOST_PREFIX_WORDS;
        while left > 0 && stream.advance() && stream.key().starts_with(prefix.as_bytes()) {
            if let Ok(word) = std::str::from_utf8(stream.key()) {
                words.insert(word.to_owned());
            }
            left -= 1;
        }
    }
    let terms = words.iter().take(MOST_PREFIX_WORDS);
    Ok(terms
        .map(|word| Term::from_field_text(field, word))
        .collect())
}

fn snippets(
    searcher: &Searcher,
    query: &dyn Query,
    field: Field,
) -> Result<SnippetGenerator, BenchError> {
    let mut generator = SnippetGenerator::create(searcher, query, field)?;
    generator.set_max_num_chars(SNIPPET_LENGTH);
    Ok(generator)
}

fn rid_of(searcher: &Searcher, address: DocAddress) -> Result<i64, BenchError> {
    let segment = searcher.segment_reader(address.segment_ord);
    let column = segment.fast_fields().u64("rid")?;
    let rid = column.first(address.doc_id).unwrap_or_default();
    Ok(i64::try_from(rid).unwrap_or_default())
}
