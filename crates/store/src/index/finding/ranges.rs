//! The most that documents can score, window by window and range by range. Where that is less than what is on the page already,
//! nothing need be read: with this a common word costs little more than a rare one.

use super::clause_bounds::{Chunk, ClauseBounds, InBands};
use super::levels::{BANDS, LOOSE, MARGIN, RANGES, windows};
use super::lookups::SegmentLookups;
use super::question::Question;
use super::selection::Coverages;

/// Up to so many ranges of a window are bounded one by one.
const FEW: u32 = 12;

/// What a range holds of the strongest clause and of the next.
type Case = (Option<InBands>, Option<InBands>);

/// The most that documents of a segment can score.
pub(super) struct Bounds<'q> {
    clauses: Vec<ClauseBounds<'q>>,
    scale: Scale,
    required: u64,
    /// Where only documents matter that have another form of one of these clauses, one bit each.
    forms: u64,
    /// The clause that can score most, and the next.
    strongest: (usize, Option<usize>),
    windows: usize,
    /// By clause, in any window.
    pub(super) ceilings: Vec<f32>,
}

/// What a step of a bound is worth. Whole numbers of two bytes are bounded eight at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    steps: f32,
}

/// All clauses together have so many steps at most; what is left is for rounding up.
const STEPS: f32 = 60_000.0;

impl Scale {
    pub(super) fn new(question: &Question<'_>) -> Self {
        let most = question.most_score() * LOOSE;
        Self {
            steps: STEPS / most.max(f32::MIN_POSITIVE),
        }
    }

    /// A score as steps, rounded up.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float that is too large becomes the largest number"
    )]
    pub(super) fn up(self, score: f32) -> u16 {
        (score * self.steps).ceil() as u16
    }

    /// The steps that a bound has at least, so that a document can score so much.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float that is too large becomes the largest number"
    )]
    fn least(self, score: f32) -> u16 {
        (score * self.steps / MARGIN).floor() as u16
    }
}

/// What a document must score to matter.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Needed {
    pub(super) score: f32,
    /// Whether it must score more, because the order of equal scores puts it behind.
    pub(super) is_more: bool,
}

impl Needed {
    pub(super) fn is_met_by(self, most: f32) -> bool {
        most > 0.0 && (most > self.score || most >= self.score && !self.is_more)
    }
}

impl<'q> Bounds<'q> {
    pub(super) fn new(
        lookups: &'q SegmentLookups<'_>,
        question: &Question<'_>,
        scale: Scale,
    ) -> tantivy::Result<Self> {
        let mut clauses = Vec::with_capacity(lookups.wanted.len());
        for (number, clause) in lookups.wanted.iter().enumerate() {
            let share = question.coverage(1 << (number % 64));
            clauses.push(ClauseBounds::new(lookups, clause, share, scale)?);
        }
        let ceilings: Vec<f32> = clauses.iter().map(ClauseBounds::ceiling).collect();
        let mut by_ceiling: Vec<usize> = (0..clauses.len()).collect();
        by_ceiling.sort_by(|one, other| {
            let ceiling = |number: &usize| ceilings.get(*number).copied().unwrap_or(0.0);
            ceiling(other).total_cmp(&ceiling(one))
        });
        Ok(Self {
            windows: windows(lookups.gate.segment.reader.max_doc()),
            strongest: (
                by_ceiling.first().copied().unwrap_or(0),
                by_ceiling.get(1).copied(),
            ),
            ceilings,
            clauses,
            scale,
            required: question.required,
            forms: 0,
        })
    }

    /// How many windows the segment has.
    pub(super) fn windows(&self) -> usize {
        self.windows
    }

    /// What documents of a window can score, exact where one clause decides: to be compared with scores.
    pub(super) fn in_window(&self, window: usize, coverages: &mut Coverages<'_>) -> f32 {
        self.together(coverages, |_, clause| clause.in_window(window))
    }

    /// From now on only documents matter that have another form of one of these clauses, one bit each.
    pub(super) fn keep_to_forms(&mut self, forms: u64) {
        self.forms = forms;
    }

    pub(super) fn is_kept_to_forms(&self) -> bool {
        self.forms != 0
    }

    /// The clauses of which a document must have another form.
    fn by_forms(&self) -> impl Iterator<Item = (usize, &ClauseBounds<'q>)> {
        let clauses = self.clauses.iter().enumerate();
        clauses.filter(|(number, _)| self.forms >> (number % 64) & 1 == 1)
    }

    /// By window, the ranges with documents that may score so much, one bit each, and some that cannot. All windows are looked at
    /// together: of most of them nothing is left.
    pub(super) fn possible(&self, score: f32, coverages: &mut Coverages<'_>) -> Vec<u64> {
        if self.is_kept_to_forms() {
            return self.possible_with_forms(score, coverages);
        }
        let (first, second) = self.strongest;
        let first = self.clauses.get(first);
        let second = second.and_then(|second| self.clauses.get(second));
        let mut possible = vec![0; self.windows];
        let (mut one, mut other) = (possible.clone(), possible.clone());
        let gather = |clause: Option<&ClauseBounds<'_>>,
                      bands: &Option<InBands>,
                      ranges: &mut [u64]| {
            match (clause, bands) {
                (Some(clause), Some(bands)) => {
                    ranges.fill(0);
                    clause.add_ranges(bands, ranges);
                }
                _ => ranges.fill(u64::MAX),
            }
        };
        for (in_first, in_second) in self.cases(score, coverages) {
            gather(first, &in_first, &mut one);
            gather(second, &in_second, &mut other);
            let both = one.iter().zip(&other);
            for (all, (one, other)) in possible.iter_mut().zip(both) {
                *all |= one & other;
            }
        }
        possible
    }

    /// The same for documents that have another form of a clause: in its range both the form and the strongest other clause must
    /// be as good as the rest leaves to be scored.
    fn possible_with_forms(&self, score: f32, coverages: &mut Coverages<'_>) -> Vec<u64> {
        let ceiling = |number: usize| self.ceilings.get(number).copied().unwrap_or(0.0);
        let numbers = (0..self.clauses.len()).filter(|number| ceiling(*number) > 0.0);
        let all = numbers.fold(0, |all, number| all | 1_u64 << (number % 64));
        let needed = score / coverages.of(all).max(f32::MIN_POSITIVE) / MARGIN;
        let mut possible = vec![0; self.windows];
        let (mut one, mut other) = (possible.clone(), possible.clone());
        for (number, clause) in self.by_forms() {
            let others = (0..self.clauses.len()).filter(|other| *other != number);
            let by_others: f32 = others.clone().map(ceiling).sum();
            one.fill(0);
            clause.add_forms(needed - by_others, &mut one);
            let strongest = others.max_by(|one, other| ceiling(*one).total_cmp(&ceiling(*other)));
            if let Some((strongest, clause_beside)) =
                strongest.and_then(|number| Some((number, self.clauses.get(number)?)))
            {
                let rest = by_others - ceiling(strongest) + clause.most_by_forms();
                if needed > rest {
                    other.fill(0);
                    clause_beside.add_ranges(&clause_beside.from(needed - rest), &mut other);
                    for (one, other) in one.iter_mut().zip(&other) {
                        *one &= other;
                    }
                }
            }
            for (all, one) in possible.iter_mut().zip(&one) {
                *all |= one;
            }
        }
        possible
    }

    /// Those of some ranges of a window with documents that can score so much.
    pub(super) fn ranges(
        &self,
        window: usize,
        mut bits: u64,
        needed: Needed,
        coverages: &mut Coverages<'_>,
    ) -> u64 {
        if bits.count_ones() > FEW {
            // A range without anything of the question has no steps at all.
            let least = self.scale.least(needed.score).max(1);
            for (at, bound) in self.coarse(window).iter().enumerate() {
                bits &= !(u64::from(*bound < least) << at);
            }
        }
        self.above(window, bits, needed, coverages)
    }

    /// The same, range by range.
    fn above(
        &self,
        window: usize,
        mut bits: u64,
        needed: Needed,
        coverages: &mut Coverages<'_>,
    ) -> u64 {
        let mut left = bits;
        while left != 0 {
            let at = left.trailing_zeros() as usize;
            left &= left - 1;
            let bound = if self.forms == 0 {
                self.in_range(window * RANGES + at, coverages)
            } else {
                self.with_forms_in_range(window * RANGES + at, coverages)
            };
            if !needed.is_met_by(bound) {
                bits &= !(1 << at);
            }
        }
        bits
    }

    /// By window, the ranges in which the two strongest clauses are as good as this band, one bit each.
    pub(super) fn strong(&self, band: usize) -> Vec<u64> {
        let (first, second) = self.strongest;
        let numbers = [Some(first), second].into_iter().flatten();
        let clauses = numbers.filter_map(|number| self.clauses.get(number));
        let mut strong = vec![u64::MAX; self.windows];
        let mut ranges = vec![0; self.windows];
        for clause in clauses {
            ranges.fill(0);
            clause.add_ranges(&InBands::of_all(band), &mut ranges);
            for (all, one) in strong.iter_mut().zip(&ranges) {
                *all &= one;
            }
        }
        strong
    }

    /// What a range must hold of the strongest clause and of the next, if anything, so that a document there can score so much: one
    /// of some cases.
    fn cases(&self, score: f32, coverages: &mut Coverages<'_>) -> Vec<Case> {
        if score <= 0.0 {
            return vec![(None, None)];
        }
        let (first, second) = self.strongest;
        let ceiling = |number: usize| self.ceilings.get(number).copied().unwrap_or(0.0);
        let bit = |number: usize| 1_u64 << (number % 64);
        let numbers = (0..self.clauses.len()).filter(|number| ceiling(*number) > 0.0);
        let all = numbers.map(bit).fold(0, |all, one| all | one);
        let rest = (0..self.clauses.len()).filter(|number| *number != first);
        let rest = rest.filter(|number| Some(*number) != second);
        let rest: f32 = rest.map(ceiling).sum();
        let Some(strongest) = self.clauses.get(first) else {
            return vec![(None, None)];
        };
        let mut cases = Vec::with_capacity(BANDS + 1);
        let mut add = |without: u64, most: f32, second: Option<InBands>| {
            let clauses = all & !without;
            let others = clauses & !bit(first);
            let needed = score / MARGIN;
            if others & self.required == self.required
                && (most + rest) * coverages.of(others) >= needed
            {
                cases.push((None, second));
                return;
            }
            let least = needed / coverages.of(clauses).max(f32::MIN_POSITIVE) - rest - most;
            if least <= ceiling(first) && clauses & self.required == self.required {
                let first = strongest.from(least.max(f32::MIN_POSITIVE));
                cases.push((Some(first), second));
            }
        };
        add(second.map_or(0, bit), 0.0, None);
        if let Some(number) = second
            && let Some(second) = self.clauses.get(number)
        {
            let values = second.values();
            for (at, value) in values.iter().enumerate() {
                let next = values.get(at + 1).copied().unwrap_or(ceiling(number));
                add(0, next, Some(second.from(*value)));
            }
        }
        cases
    }

    /// The range of a window in which documents can score most, as a bit.
    pub(super) fn best_range(&self, window: usize) -> u64 {
        let bounds = self.coarse(window);
        let best = bounds.iter().copied().fold(0, u16::max);
        let at = bounds.iter().position(|bound| *bound == best);
        at.map_or(0, |at| 1 << at)
    }

    /// What documents of a range can score.
    pub(super) fn in_range(&self, range: usize, coverages: &mut Coverages<'_>) -> f32 {
        self.together(coverages, |_, clause| clause.in_range(range))
    }

    /// What documents of a range can score that have another form of a clause.
    fn with_forms_in_range(&self, range: usize, coverages: &mut Coverages<'_>) -> f32 {
        let most = self.by_forms().map(|(by_form, clause)| {
            let score = clause.forms_in_range(range);
            if score <= 0.0 {
                return 0.0;
            }
            self.together(coverages, |number, clause| {
                if number == by_form {
                    score
                } else {
                    clause.in_range(range)
                }
            })
        });
        most.fold(0.0, f32::max)
    }

    /// The bound of clauses of which each scores so much: as a document is scored.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "scores are compared as floats of single precision"
    )]
    #[inline]
    fn together(
        &self,
        coverages: &mut Coverages<'_>,
        score_of: impl Fn(usize, &ClauseBounds<'q>) -> f32,
    ) -> f32 {
        let (mut sum, mut mask) = (0.0, 0);
        for (number, clause) in self.clauses.iter().enumerate() {
            let score = score_of(number, clause);
            sum += f64::from(score);
            mask |= u64::from(score > 0.0) << (number % 64);
        }
        if mask & self.required == self.required {
            sum as f32 * coverages.of(mask)
        } else {
            0.0
        }
    }

    /// What documents of the ranges of a window can score, in steps that are rounded up.
    fn coarse(&self, window: usize) -> [u16; RANGES] {
        let mut chunk = Chunk::default();
        for (number, clause) in self.clauses.iter().enumerate() {
            let is_required = self.required >> (number % 64) & 1 == 1;
            clause.add_to(&mut chunk, window, is_required);
        }
        chunk.bounds()
    }
}
