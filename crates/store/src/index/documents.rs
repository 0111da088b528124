//! The documents of one stream in one segment, block by block, and how columns are read for a block.
//!
//! A stream that fills its segment is read as runs, which the columns decode in one go; tests on columns are driven by
//! the columns' own range scans. Both are what makes an aggregate cost what the engine's own costs.

use std::ops::Range;

use tantivy::columnar::{Column, ColumnIndex, ColumnValues};
use tantivy::postings::SegmentPostings;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, SegmentReader, TERMINATED, Term};

use super::column_test::SegmentTests;
use super::document_set::for_each_bit;
use super::engine::{OpenIndex, Segment};
use super::restrict::Restriction;
use crate::stop;

/// Documents looked at together: enough to amortise the overhead of a column, few enough to stay in cache.
const BLOCK: u32 = 4096;

/// Some documents of a segment, ascending.
#[derive(Debug, Clone)]
pub(super) enum Documents<'a> {
    Run(Range<DocId>),
    /// Those of a run whose bits are set, and how many these are. Whole runs are decoded faster than single documents.
    Sieved(Range<DocId>, &'a [u64], usize),
    List(&'a [DocId]),
}

impl Documents<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Run(range) => range.len(),
            Self::Sieved(_, _, count) => *count,
            Self::List(list) => list.len(),
        }
    }

    /// The indexes of all documents are less.
    pub(super) fn end(&self) -> usize {
        match self {
            Self::Run(range) | Self::Sieved(range, ..) => range.len(),
            Self::List(list) => list.len(),
        }
    }

    pub(super) fn at(&self, index: usize) -> DocId {
        match self {
            Self::Run(range) | Self::Sieved(range, ..) => range
                .start
                .saturating_add(u32::try_from(index).unwrap_or(u32::MAX)),
            Self::List(list) => list.get(index).copied().unwrap_or(TERMINATED),
        }
    }

    /// Hands over the values that these documents have in a column, each with the index of its document, in their order.
    pub(super) fn values<
        T: Copy + PartialOrd + Default + Send + Sync + std::fmt::Debug + 'static,
    >(
        &self,
        column: &Column<T>,
        buffer: &mut Vec<T>,
        mut each: impl FnMut(usize, T),
    ) {
        self.values_around(column, buffer, |index, value, is_one_of_these| {
            if is_one_of_these {
                each(index, value);
            }
        });
    }

    /// The same, and maybe values of documents between these, marked so: to leave them out by arithmetic takes less than a branch
    /// that nobody can foresee.
    pub(super) fn values_around<
        T: Copy + PartialOrd + Default + Send + Sync + std::fmt::Debug + 'static,
    >(
        &self,
        column: &Column<T>,
        buffer: &mut Vec<T>,
        mut each: impl FnMut(usize, T, bool),
    ) {
        if matches!(column.index, ColumnIndex::Full) {
            buffer.resize(self.end(), T::default());
            match self {
                Self::Run(range) | Self::Sieved(range, ..) => {
                    column.values.get_range(u64::from(range.start), buffer);
                }
                Self::List(list) => column.values.get_vals(list, buffer),
            }
            if let Self::Sieved(_, words, _) = self {
                for (at, (values, word)) in buffer.chunks(64).zip(*words).enumerate() {
                    for (bit, value) in values.iter().enumerate() {
                        each(at * 64 + bit, *value, word >> bit & 1 == 1);
                    }
                }
                return;
            }
            for (index, value) in buffer.iter().enumerate() {
                each(index, *value, true);
            }
            return;
        }
        let mut values = |index| {
            for value in column.values_for_doc(self.at(index)) {
                each(index, value, true);
            }
        };
        match self {
            Self::Sieved(_, words, _) => for_each_bit(words, values),
            Self::Run(_) | Self::List(_) => (0..self.len()).for_each(&mut values),
        }
    }
}

/// The documents that a restriction admits, deleted ones left out.
pub(super) struct Blocks<'a> {
    segment: &'a SegmentReader,
    tests: SegmentTests<'a>,
    /// The documents of the stream, unless it has the whole segment.
    postings: Option<SegmentPostings>,
    whole_segment: bool,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(
        open: &OpenIndex,
        segment: Segment<'a>,
        restriction: &'a Restriction,
    ) -> tantivy::Result<Self> {
        let term = Term::from_field_u64(open.fields.stream, restriction.stream);
        let index = segment.reader.inverted_index(open.fields.stream)?;
        let whole_segment = index.doc_freq(&term)? == segment.reader.max_doc();
        Ok(Self {
            segment: segment.reader,
            tests: restriction.on(segment)?,
            postings: if whole_segment {
                None
            } else {
                index.read_postings(&term, IndexRecordOption::Basic)?
            },
            whole_segment,
        })
    }

    /// Calls back with every block, unless the work is asked to stop; returns how many documents there were.
    pub(super) fn for_each(self, each: &mut dyn FnMut(&Documents<'_>)) -> u64 {
        if self.whole_segment {
            self.for_each_in_segment(each)
        } else {
            self.for_each_posting(each)
        }
    }

    fn for_each_in_segment(self, each: &mut dyn FnMut(&Documents<'_>)) -> u64 {
        let mut total = 0;
        let mut list = Vec::new();
        let all = self.tests.pass_all() && self.segment.alive_bitset().is_none();
        let mut start = 0;
        while start < self.segment.max_doc() && !stop::asked() {
            let run = start..self.segment.max_doc().min(start.saturating_add(BLOCK));
            start = run.end;
            if all {
                total += run.len() as u64;
                each(&Documents::Run(run));
                continue;
            }
            if let Some(sieved) = self.sieved(&run) {
                total += sieved.len() as u64;
                each(&sieved);
                continue;
            }
            list.clear();
            self.tests.fill(run, &mut list);
            total += self.hand_over(&mut list, each);
        }
        total
    }

    /// The documents of a run by their bits, where nothing but these decides and many of them are set.
    fn sieved(&self, run: &Range<DocId>) -> Option<Documents<'_>> {
        if self.segment.alive_bitset().is_some() {
            return None;
        }
        let words = self.tests.only_documents()?.words(run);
        let count = words.iter().map(|word| word.count_ones() as usize).sum();
        (count > run.len() / 8).then(|| Documents::Sieved(run.clone(), words, count))
    }

    fn for_each_posting(mut self, each: &mut dyn FnMut(&Documents<'_>)) -> u64 {
        let mut total = 0;
        let mut list = Vec::new();
        let Some(mut postings) = self.postings.take() else {
            return 0;
        };
        while postings.doc() != TERMINATED && !stop::asked() {
            list.clear();
            while list.len() < BLOCK as usize && postings.doc() != TERMINATED {
                list.push(postings.doc());
                postings.advance();
            }
            self.tests.retain(&mut list);
            total += self.hand_over(&mut list, each);
        }
        total
    }

    fn hand_over(&self, list: &mut Vec<DocId>, each: &mut dyn FnMut(&Documents<'_>)) -> u64 {
        if let Some(alive) = self.segment.alive_bitset() {
            list.retain(|document| alive.is_alive(*document));
        }
        each(&Documents::List(list));
        list.len() as u64
    }
}
