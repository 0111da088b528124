//! The search engine as it comes: one text field, its default words, BM25 over any of them.

use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, Query, TermQuery};
use tantivy::schema::{FAST, Field, IndexRecordOption, Schema, TEXT};
use tantivy::tokenizer::TextAnalyzer;
use tantivy::{Index, IndexReader, Term, doc};

use super::import::SearchedText;
use crate::BenchError;

/// Memory of the one indexing thread, in bytes.
const WRITER_MEMORY: usize = 64 << 20;

/// An index in memory.
pub(super) struct RawIndex {
    reader: IndexReader,
    words: Field,
    tokenizer: TextAnalyzer,
    ids: Vec<String>,
}

impl RawIndex {
    pub(super) fn build(texts: Vec<SearchedText>) -> Result<Self, BenchError> {
        let mut schema = Schema::builder();
        let words = schema.add_text_field("words", TEXT);
        let number = schema.add_u64_field("number", FAST);
        let index = Index::create_in_ram(schema.build());
        let mut writer = index.writer_with_num_threads(1, WRITER_MEMORY)?;
        let mut ids = Vec::with_capacity(texts.len());
        for document in texts {
            writer.add_document(doc!(words => document.text, number => ids.len() as u64))?;
            ids.push(document.id);
        }
        writer.commit()?;
        Ok(Self {
            reader: index.reader()?,
            words,
            tokenizer: index.tokenizer_for_field(words)?,
            ids,
        })
    }

    /// The ids of the best documents that have any of the words.
    pub(super) fn search(&mut self, words: &str, limit: usize) -> Result<Vec<String>, BenchError> {
        let mut terms: Vec<Box<dyn Query>> = Vec::new();
        self.tokenizer.token_stream(words).process(&mut |token| {
            let term = Term::from_field_text(self.words, &token.text);
            let query = TermQuery::new(term, IndexRecordOption::WithFreqs);
            terms.push(Box::new(query));
        });
        let searcher = self.reader.searcher();
        let top = TopDocs::with_limit(limit).order_by_score();
        let top = searcher.search(&BooleanQuery::union(terms), &top)?;
        let mut found = Vec::with_capacity(top.len());
        for (_, address) in top {
            let segment = searcher.segment_reader(address.segment_ord);
            let numbers = segment.fast_fields().u64("number")?;
            let number = numbers.first(address.doc_id).unwrap_or_default();
            let id = self.ids.get(usize::try_from(number).unwrap_or(usize::MAX));
            found.extend(id.cloned());
        }
        Ok(found)
    }
}
