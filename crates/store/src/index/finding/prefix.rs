//! Words that begin alike: which there are, and how many of them a phrase looks for.

use std::sync::Arc;

use tantivy::index::InvertedIndexReader;
use tantivy::postings::SegmentPostings;
use tantivy::query::{EnableScoring, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::termdict::TermStreamer;
use tantivy::{DocId, DocSet, TERMINATED, Term};

use super::phrase::Phrase;
use super::{Searched, SearchedField};
use crate::stop;

/// The most words that the last prefix of one phrase may expand to.
const PER_PHRASE: usize = 256;
/// The most words that all prefixes of phrases in one search may expand to.
const PER_SEARCH: usize = 1024;

/// How many words prefixes of phrases may still expand to, and whether there were more.
pub(super) struct Expansions {
    left: usize,
    pub(super) cut: bool,
}

impl Default for Expansions {
    fn default() -> Self {
        Self {
            left: PER_SEARCH,
            cut: false,
        }
    }
}

impl Expansions {
    /// The words with this prefix, in order, that occur in an admitted document together with the words before them. Only
    /// admitted documents count, so that neither the words nor whether there were too many reveals anything else.
    pub(super) fn expand(
        &mut self,
        before: &[Term],
        start: &str,
        searched: &Searched<'_>,
        field: &SearchedField,
    ) -> tantivy::Result<Vec<String>> {
        let query: Box<dyn Query> = match before {
            [] => return Ok(Vec::new()),
            [only] => Box::new(TermQuery::new(only.clone(), IndexRecordOption::Basic)),
            several => Box::new(Phrase::new(several.to_vec())),
        };
        let scoring = EnableScoring::disabled_from_searcher(&searched.view.searcher);
        let weight = query.weight(scoring)?;
        let mut admitted: Vec<Vec<DocId>> = Vec::with_capacity(searched.gates.len());
        for gate in &searched.gates {
            let mut here = Vec::new();
            if !stop::asked() {
                weight.for_each_no_score(gate.segment.reader, &mut |documents| {
                    here.extend(documents.iter().filter(|document| {
                        gate.admits(**document) && gate.factor(&field.factors, **document) > 0.0
                    }));
                })?;
            }
            admitted.push(here);
        }
        let limit = PER_PHRASE.min(self.left);
        let mut words = Vec::new();
        let indexes = indexes(searched, field.field)?;
        Words::new(&indexes, start)?.for_each(&mut |word, postings_by_segment| {
            let occurs = postings_by_segment.iter().any(|(segment, postings)| {
                let documents = admitted.get(*segment).map_or(&[][..], Vec::as_slice);
                meets(documents, postings.clone())
            });
            if occurs {
                self.cut |= words.len() == limit;
                words.extend(std::str::from_utf8(word).ok().map(str::to_owned));
            }
            words.len() <= limit
        })?;
        words.truncate(limit);
        self.left -= words.len();
        Ok(words)
    }
}
/// Whether two ascending lists have a document in common.
fn meets(documents: &[DocId], mut postings: SegmentPostings) -> bool {
    let mut rest = documents;
    while postings.doc() != TERMINATED {
        let document = postings.doc();
        (_, rest) = rest.split_at(rest.partition_point(|one| *one < document));
        match rest.first() {
            None => return false,
            Some(first) if *first == document => return true,
            Some(first) => postings.seek(*first),
        };
    }
    false
}

fn indexes(
    searched: &Searched<'_>,
    field: Field,
) -> tantivy::Result<Vec<Arc<InvertedIndexReader>>> {
    let gates = searched.gates.iter();
    gates
        .map(|gate| gate.segment.reader.inverted_index(field))
        .collect()
}

/// The words of all segments that begin alike, in one order.
struct Words<'a> {
    parts: Vec<(usize, &'a InvertedIndexReader, TermStreamer<'a>)>,
}

/// Takes a word and its postings in every segment that has it; returns whether to go on.
type EachWord<'a> = dyn FnMut(&[u8], &[(usize, SegmentPostings)]) -> bool + 'a;

impl<'a> Words<'a> {
    fn new(indexes: &'a [Arc<InvertedIndexReader>], start: &str) -> tantivy::Result<Self> {
        let mut parts = Vec::with_capacity(indexes.len());
        for (segment, index) in indexes.iter().enumerate() {
            let mut stream = starting(index, start)?;
            if stream.advance() {
                parts.push((segment, &**index, stream));
            }
        }
        Ok(Self { parts })
    }

    fn for_each(mut self, each: &mut EachWord<'_>) -> tantivy::Result<()> {
        let mut word = Vec::new();
        while let Some(first) = self.parts.iter().map(|(.., stream)| stream.key()).min() {
            if stop::asked() {
                return Ok(());
            }
            word.clear();
            word.extend_from_slice(first);
            let mut postings_by_segment = Vec::new();
            for (segment, index, stream) in &mut self.parts {
                if stream.key() == word.as_slice() {
                    let option = IndexRecordOption::Basic;
                    let postings = index.read_postings_from_terminfo(stream.value(), option)?;
                    postings_by_segment.push((*segment, postings));
                }
            }
            self.parts
                .retain_mut(|(.., stream)| stream.key() != word.as_slice() || stream.advance());
            if !each(&word, &postings_by_segment) {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// The words of a segment that begin so.
pub(super) fn starting<'a>(
    index: &'a InvertedIndexReader,
    start: &str,
) -> tantivy::Result<TermStreamer<'a>> {
    let mut range = index.terms().range().ge(start.as_bytes());
    if let Some(end) = after_prefix(start.as_bytes()) {
        range = range.lt(end);
    }
    Ok(range.into_stream()?)
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
