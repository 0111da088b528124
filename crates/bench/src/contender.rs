//! What both sides of the bench can be asked. Each answers with the number of things it found, so
//! that unequal work is noticed; the raw side is implemented here.

use std::ops::Range;

use crate::BenchError;
use crate::corpus::{FOLDERS, Probe};
use crate::raw::{RawAggregate, RawFilter, RawPosition, RawQuery, RawReader};

pub(crate) const TOP: usize = 10;
pub(crate) const PAGE: u32 = 50;
/// The far page, unless the corpus is too small for it.
pub(crate) const FAR_PAGE: u64 = 1_000;
pub(crate) const CHANGES: u32 = 100;

/// The filter of the filtered reads: one folder, one year.
#[derive(Debug, Clone)]
pub struct Window {
    pub folder: &'static str,
    /// Only sent in this time, in microseconds since the epoch.
    pub sent_at: Range<i64>,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            folder: FOLDERS[1],
            // The year 2019.
            sent_at: 1_546_300_800_000_000..1_577_836_800_000_000,
        }
    }
}

/// A page of the records, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageDepth {
    /// Page 1.
    First,
    /// Page 1,000, or the last full one.
    Far,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// How many records the filter lets through.
    CountFiltered,
    /// The sum of `size_bytes`.
    Sum,
    GroupByFolder,
    GroupByAuthor,
    /// Records per month of `sent_at`.
    Months,
    DistinctAuthors,
}

/// One side of the bench, opened for reading.
pub trait Contender {
    /// Searches the best ten with an excerpt each; returns the number of hits.
    fn search(&mut self, probe: Probe, window: Option<&Window>) -> Result<u64, BenchError>;
    /// Searches the best ten that have any of the words, as a person asks, with an excerpt each; returns the number of hits.
    fn find(&mut self, words: &str) -> Result<u64, BenchError>;
    /// Reads one page of 50 records by its cursor; returns the number of records.
    fn page(&mut self, depth: PageDepth) -> Result<u64, BenchError>;
    /// Computes; returns the number, or the number of groups.
    fn answer(&mut self, question: Question, window: &Window) -> Result<u64, BenchError>;
    /// Reads 100 changes from the middle of the feed; returns the number of changes.
    fn changes(&mut self) -> Result<u64, BenchError>;
}

#[derive(Debug)]
pub(crate) struct RawContender {
    reader: RawReader,
    far: Option<RawPosition>,
    middle: i64,
}

impl RawContender {
    /// Walks to the far page once, so that reading it starts from a known cursor.
    pub(crate) fn new(reader: RawReader, records: u64) -> Result<Self, BenchError> {
        let pages = records / u64::from(PAGE);
        let far = reader.position_of_page(FAR_PAGE.min(pages), PAGE)?;
        Ok(Self {
            reader,
            far,
            middle: i64::try_from(records / 2).unwrap_or(0),
        })
    }
}

impl Contender for RawContender {
    fn search(&mut self, probe: Probe, window: Option<&Window>) -> Result<u64, BenchError> {
        let filter = window.map(raw_filter);
        let hits = self.reader.search(&probe.into(), filter.as_ref(), TOP)?;
        Ok(hits.len() as u64)
    }

    fn find(&mut self, words: &str) -> Result<u64, BenchError> {
        let query = RawQuery::AnyWord(words.to_owned());
        Ok(self.reader.search(&query, None, TOP)?.len() as u64)
    }

    fn page(&mut self, depth: PageDepth) -> Result<u64, BenchError> {
        let after = match depth {
            PageDepth::First => None,
            PageDepth::Far => self.far.as_ref(),
        };
        Ok(self.reader.page(after, PAGE)?.len() as u64)
    }

    fn answer(&mut self, question: Question, window: &Window) -> Result<u64, BenchError> {
        let aggregate = match question {
            Question::CountFiltered => return self.reader.count(&raw_filter(window)),
            Question::Sum => RawAggregate::Sum("size_bytes"),
            Question::GroupByFolder => RawAggregate::GroupBy("folder"),
            Question::GroupByAuthor => RawAggregate::GroupBy("author"),
            Question::Months => RawAggregate::Months("sent_at"),
            Question::DistinctAuthors => RawAggregate::Distinct("author"),
        };
        let groups = self.reader.aggregate(aggregate)?;
        Ok(match groups.as_slice() {
            [(group, value)] if group.is_empty() => rounded(*value),
            groups => groups.len() as u64,
        })
    }

    fn changes(&mut self) -> Result<u64, BenchError> {
        Ok(self.reader.changes(self.middle, CHANGES)?.len() as u64)
    }
}

fn raw_filter(window: &Window) -> RawFilter {
    RawFilter {
        folder: window.folder.to_owned(),
        sent_at: window.sent_at.clone(),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sums and counts of the corpus are whole, positive and far below 2^52"
)]
fn rounded(value: f64) -> u64 {
    value.round() as u64
}
