//! What is read of the segments, and in which order: the ranges in which documents can score most come first, and ranges in
//! which none can matter any more are left out.

use std::cmp::Reverse;

use tantivy::DocId;

use super::best::Threshold;
use super::levels::{BANDS, MARGIN, RANGE, RANGES, window_of};
use super::question::Question;
use super::ranges::{Bounds, Needed};
use super::selection::Coverages;
use super::window::Negligible;
use crate::index::engine::Segment;

/// How many ranges are read first, and among how many they are chosen at most.
const PROMISING: usize = 64;
const CONSIDERED: usize = 4096;
/// With so many, no other segment is looked at.
const ENOUGH: usize = 2 * PROMISING;
/// From this factor on a larger score is worth another look at all windows.
const WORTH_LOOKING: f32 = 1.1;

/// What is still to be read of a segment.
pub(super) struct Reading<'q> {
    bounds: Bounds<'q>,
    /// The smallest row of each window.
    first_rows: &'q [u64],
    /// The clauses with the most that a document can score by each, the least first.
    by_ceiling: Vec<(usize, f32)>,
    negligible: Negligible,
    is_first: bool,
    /// For each window, the ranges that are read first. After that all others are.
    first: Vec<u64>,
    /// The ranges that are read after that, once this is known.
    others: Option<Others>,
}

/// For each window, the ranges that may hold documents from a score on, and are not among the first.
struct Others {
    score: f32,
    by_window: Vec<u64>,
}

impl<'q> Reading<'q> {
    pub(super) fn new(bounds: Bounds<'q>, segment: Segment<'q>) -> Self {
        let ceilings = bounds.ceilings.iter().copied();
        let mut by_ceiling: Vec<_> = ceilings.enumerate().collect();
        by_ceiling.sort_by(|one, other| one.1.total_cmp(&other.1));
        Self {
            first: vec![0; bounds.windows()],
            first_rows: segment.columns.ranges.first_rows(segment),
            bounds,
            by_ceiling,
            negligible: Negligible::default(),
            is_first: true,
            others: None,
        }
    }

    /// Goes on to the other ranges.
    pub(super) fn go_on(&mut self) {
        self.is_first = false;
    }

    /// The next window, from this one on, with documents that can matter, and its ranges with such documents.
    pub(super) fn next(
        &mut self,
        from: usize,
        threshold: Option<Threshold>,
        coverages: &mut Coverages<'_>,
    ) -> Option<(usize, u64)> {
        let score = threshold.map_or(0.0, |threshold| threshold.score);
        let is_known = |known: &Others| score <= known.score * WORTH_LOOKING;
        if !self.is_first && !self.others.as_ref().is_some_and(is_known) {
            let mut by_window = self.bounds.possible(score, coverages);
            for (ranges, first) in by_window.iter_mut().zip(&self.first) {
                *ranges &= !first;
            }
            self.others = Some(Others { score, by_window });
        }
        let ranges = match &self.others {
            Some(others) => &others.by_window,
            None => &self.first,
        };
        for (window, ranges) in ranges.iter().enumerate().skip(from) {
            if *ranges != 0 {
                let ranges = self.mattering(window, *ranges, threshold, coverages);
                if ranges != 0 {
                    return Some((window, ranges));
                }
            }
        }
        None
    }

    /// Those of some ranges of a window with documents that can matter.
    fn mattering(
        &self,
        window: usize,
        ranges: u64,
        threshold: Option<Threshold>,
        coverages: &mut Coverages<'_>,
    ) -> u64 {
        if self.is_first && self.bounds.is_kept_to_forms() {
            return ranges;
        }
        let needed = threshold.map_or(Needed::default(), |threshold| Needed {
            score: threshold.score,
            is_more: (self.first_rows.get(window)).is_some_and(|row| *row > threshold.row),
        });
        // Of one or two ranges the bounds are as soon computed as that of their window.
        let is_few = ranges.count_ones() <= 2;
        if !is_few && !needed.is_met_by(self.bounds.in_window(window, coverages)) {
            return 0;
        }
        self.bounds.ranges(window, ranges, needed, coverages)
    }

    /// Reads first where these documents are, and after that only where another form of a clause, one bit each, can matter.
    pub(super) fn read_again(&mut self, documents: impl Iterator<Item = DocId>, forms: u64) {
        for document in documents {
            if let Some(first) = self.first.get_mut(window_of(document)) {
                *first |= 1 << ((document / RANGE) as usize % RANGES);
            }
        }
        self.bounds.keep_to_forms(forms);
    }

    /// Adds the ranges in which the strongest clauses are as good as a band.
    fn strong(
        &self,
        segment: usize,
        band: usize,
        coverages: &mut Coverages<'_>,
        found: &mut Vec<Promising>,
    ) {
        let strong = self.bounds.strong(band).into_iter();
        for (window, (mut left, row)) in strong.zip(self.first_rows).enumerate() {
            while left != 0 && found.len() < CONSIDERED {
                let at = left.trailing_zeros() as usize;
                left &= left - 1;
                found.push(Promising {
                    most: self.bounds.in_range(window * RANGES + at, coverages),
                    row: *row,
                    segment,
                    window,
                    range: 1 << at,
                });
            }
        }
    }

    /// Adds the windows that hold anything.
    fn best_windows(
        &self,
        segment: usize,
        coverages: &mut Coverages<'_>,
        found: &mut Vec<Promising>,
    ) {
        for (window, row) in self.first_rows.iter().enumerate() {
            let most = self.bounds.in_window(window, coverages);
            if most > 0.0 {
                found.push(Promising {
                    most,
                    row: *row,
                    segment,
                    window,
                    range: 0,
                });
            }
        }
    }

    /// Adds clauses, the least first, for as long as all of them together cannot make a document matter.
    pub(super) fn negligible(&mut self, question: &Question<'_>, threshold: f32) -> Negligible {
        let (mut clauses, mut ceiling) = (0, 0.0);
        // One clause at least is read.
        let all_but_one = self.by_ceiling.len().saturating_sub(1);
        for (known, (number, most)) in self.by_ceiling.iter().take(all_but_one).enumerate() {
            clauses |= 1_u64 << (number % 64);
            ceiling += most;
            if ceiling * question.coverage(clauses) * MARGIN >= threshold {
                break;
            }
            if known == self.negligible.by_ceiling.len() {
                self.negligible.clauses = clauses;
                self.negligible.by_ceiling.push((*number, *most));
            }
        }
        self.negligible.clone()
    }
}

/// A range that may be read first.
#[derive(Debug, Clone, Copy)]
struct Promising {
    most: f32,
    row: u64,
    segment: usize,
    window: usize,
    /// One bit for the range; none where it is still to be found.
    range: u64,
}

/// Chooses, of all segments, ranges in which documents can score most. They are read before the others.
pub(super) fn choose_first(segments: &mut [&mut Reading<'_>], coverages: &mut Coverages<'_>) {
    let mut chosen = Vec::new();
    // The largest segments have enough of them, mostly, and then no lists of the others need be opened.
    segments.sort_by_key(|reading| Reverse(reading.first.len()));
    for band in (0..BANDS).rev() {
        chosen.clear();
        for (number, reading) in segments.iter().enumerate() {
            if chosen.len() < ENOUGH {
                reading.strong(number, band, coverages, &mut chosen);
            }
        }
        if chosen.len() >= PROMISING {
            break;
        }
    }
    if chosen.len() < PROMISING {
        for (number, reading) in segments.iter().enumerate() {
            reading.best_windows(number, coverages, &mut chosen);
        }
    }
    if chosen.len() > PROMISING {
        // Of equal scores the smaller row comes first.
        chosen.select_nth_unstable_by(PROMISING, |one, other| {
            let by_score = other.most.total_cmp(&one.most);
            by_score.then(one.row.cmp(&other.row))
        });
        chosen.truncate(PROMISING);
    }
    for one in chosen {
        if let Some(reading) = segments.get_mut(one.segment)
            && let Some(first) = reading.first.get_mut(one.window)
        {
            *first |= match one.range {
                0 => reading.bounds.best_range(one.window),
                range => range,
            };
        }
    }
}
