//! The lists of words in one segment: which documents hold a word, and what that scores.

use std::hash::Hasher as _;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use siphasher::sip::SipHasher13;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::InvertedIndexReader;
use tantivy::postings::{BlockSegmentPostings, TermInfo};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, TERMINATED};

use super::question::Question;
use super::statistics::{Lengths, saturated};
use super::{Factors, Gate, SearchedField};

/// One alternative of a clause: its places in the fields of the segment.
pub(super) struct Ways<'q> {
    /// Its number, and which of its entries are of the segment.
    pub(super) from: (usize, Range<usize>),
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

/// A field of the segment, opened once for all words that are looked up in it.
pub(super) struct OpenField<'q> {
    pub(super) texts: Texts<'q>,
    pub(super) index: Arc<InvertedIndexReader>,
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
    pub(super) fn new(
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

impl Ways<'_> {
    /// Whether it is the first alternative: the word itself, where others are forms of it.
    pub(super) fn is_first(&self) -> bool {
        self.from.0 == 0
    }

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
            let documents = self.entries.docs().get(self.at..).unwrap_or_default();
            let times = self.entries.freqs().get(self.at..).unwrap_or_default();
            for (document, times) in documents.iter().zip(times) {
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
