//! What one clause of a question can score in the ranges of a segment.

use std::sync::Arc;

use tantivy::DocId;

use super::levels::{
    BANDS, LEVELS, Levels, MARGIN, RANGE, RANGES, WordLevels, window_of, windows, word_levels,
};
use super::lists::Ways;
use super::lookups::{ClauseLookup, SegmentLookups};
use super::ranges::Scale;
use super::short::ShortLists;

/// The word itself, and all forms of it together.
const WAYS: usize = 2;
/// By how much 256 steps would be more than 255.
const A_LEVEL: f32 = 256.0 / LEVELS;

/// Ranges in which a clause scores so much at least: for each of its parts the band, if it has such ranges.
#[derive(Debug, Clone, Copy)]
pub(super) struct InBands {
    ways: [Option<usize>; WAYS],
    short: Option<usize>,
}

impl InBands {
    /// The same band of all parts.
    pub(super) fn of_all(band: usize) -> Self {
        Self {
            ways: [Some(band); WAYS],
            short: Some(band),
        }
    }
}

/// What the ranges of a window are bounded with, clause by clause. Plain loops over whole numbers, which become vector
/// instructions.
pub(super) struct Chunk {
    clause: [u16; RANGES],
    sums: [u16; RANGES],
    /// The share of the question; all bits are the whole.
    covered: [u16; RANGES],
    /// All bits, or none where something that must occur does not.
    possible: [u16; RANGES],
}

impl Default for Chunk {
    fn default() -> Self {
        Self {
            clause: [0; RANGES],
            sums: [0; RANGES],
            covered: [0; RANGES],
            possible: [u16::MAX; RANGES],
        }
    }
}

impl Chunk {
    pub(super) fn bounds(&self) -> [u16; RANGES] {
        let mut bounds = [0; RANGES];
        let sums = self.sums.iter().zip(&self.covered).zip(&self.possible);
        for (bound, ((sum, covered), possible)) in bounds.iter_mut().zip(sums) {
            let rounded = u16::from(*sum > 0);
            *bound = product(*sum, *covered).saturating_add(rounded) & possible;
        }
        bounds
    }
}

/// The product of a number and a part of one, rounded down.
#[inline]
fn product(number: u16, part: u16) -> u16 {
    ((u32::from(number) * u32::from(part)) >> 16) as u16
}

/// What a level scores, rounded up; no level is nothing.
#[inline]
fn steps(level: u8, most: u16) -> u16 {
    product(u16::from(level) << 8, most) + u16::from(level > 0)
}

/// A way to write a clause that stands in many documents.
struct WayBounds {
    word: Arc<WordLevels>,
    /// What a share of one scores.
    most: f32,
    /// What the highest level is worth.
    steps: u16,
}

/// What a clause can score in the ranges of a segment.
pub(super) struct ClauseBounds<'q> {
    ways: Vec<WayBounds>,
    /// What each level of its only list scores, where it has but one: thousands of ranges are bounded.
    only: Option<Box<[f32; 256]>>,
    /// How many of these, 1 or 0, are the word itself. It may also stand in short lists.
    own: usize,
    short: &'q ShortLists,
    /// By window, the ranges with a document of few in short lists, one bit each.
    few: Vec<u64>,
    short_steps: u16,
    scale: Scale,
    /// Its share of the question.
    share: u16,
}

impl<'q> ClauseBounds<'q> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of the question, rounded up to a part of 65,535"
    )]
    pub(super) fn new(
        lookups: &SegmentLookups<'_>,
        clause: &'q ClauseLookup<'_>,
        share: f32,
        scale: Scale,
    ) -> tantivy::Result<Self> {
        let (word, forms) = clause.long.split_at(clause.long.len().min(1));
        let mut ways = Vec::with_capacity(WAYS);
        for (same, of_forms) in [(word, false), (forms, true)] {
            let Some(first) = same.first() else {
                continue;
            };
            let find = || word_levels(lookups.gate, same);
            let (word, ratio) = match clause.prepared {
                Some(prepared) => prepared.levels(of_forms, find)?,
                None => find()?,
            };
            // Only what is computed in the same way as a score is exact.
            let is_exact = same.len() == 1 && ratio <= 1.0;
            let most = if is_exact {
                first.most
            } else {
                first.most * ratio * MARGIN
            };
            ways.push(WayBounds {
                steps: scale.up(most * word.levels.most() * A_LEVEL),
                word,
                most,
            });
        }
        let only = match ways.as_slice() {
            [only] if clause.short.scored.is_empty() => Some(only.word.levels.times(only.most)),
            _ => None,
        };
        Ok(Self {
            only,
            ways,
            own: usize::from(word.first().is_some_and(Ways::is_first)),
            few: ranges_of(&clause.short, lookups.gate.segment.reader.max_doc()),
            short: &clause.short,
            short_steps: scale.up(clause.short.most * A_LEVEL),
            scale,
            share: (share * f32::from(u16::MAX) * MARGIN).ceil() as u16,
        })
    }

    /// Adds the ranges that are in some bands to those of all windows, one bit each.
    pub(super) fn add_ranges(&self, bands: &InBands, ranges: &mut [u64]) {
        let ways = self.ways.iter().zip(bands.ways);
        let ways = ways.filter_map(|(way, band)| Some(way.word.levels.band(band?)));
        let short = bands.short.map(|band| match &self.short.levels {
            Some(levels) => levels.band(band),
            None => &self.few,
        });
        for part in ways.chain(short) {
            for (all, one) in ranges.iter_mut().zip(part) {
                *all |= one;
            }
        }
    }

    /// Adds the ranges of all windows in which anything but the word itself scores so much, one bit each.
    pub(super) fn add_forms(&self, score: f32, ranges: &mut [u64]) {
        let mut bands = self.from(score.max(f32::MIN_POSITIVE));
        for band in bands.ways.iter_mut().take(self.own) {
            *band = None;
        }
        self.add_ranges(&bands, ranges);
    }

    /// The most that anything but the word itself scores.
    pub(super) fn most_by_forms(&self) -> f32 {
        let ways = self.ways.iter().skip(self.own);
        let ways = ways.map(|way| way.word.levels.best() * way.most);
        ways.fold(self.short.most_by_forms, f32::max)
    }

    /// What anything but the word itself scores in a range.
    pub(super) fn forms_in_range(&self, range: usize) -> f32 {
        let ways = self.ways.iter().skip(self.own);
        let ways = ways.map(|way| way.word.levels.in_range(range) * way.most);
        ways.fold(self.short.in_range(range), f32::max)
    }

    /// The bands with all ranges in which it scores so much.
    pub(super) fn from(&self, score: f32) -> InBands {
        // A little less, for the quotient is rounded.
        let score = score / MARGIN;
        let way = |number: usize| {
            let way = self.ways.get(number)?;
            way.word.levels.band_from(score / way.most)
        };
        InBands {
            ways: std::array::from_fn(way),
            short: match &self.short.levels {
                Some(levels) => levels.band_from(score),
                None => (self.short.most >= score).then_some(0),
            },
        }
    }

    /// What it scores at least in the bands of its best part, in ascending order.
    pub(super) fn values(&self) -> Vec<f32> {
        let ways = self.ways.iter().map(|way| (&way.word.levels, way.most));
        let short = self.short.levels.iter().map(|levels| (levels, 1.0));
        let best = |one: &(&Levels, f32)| one.0.best() * one.1;
        let parts = ways.chain(short);
        let best = parts.max_by(|one, other| best(one).total_cmp(&best(other)));
        let mut values = vec![f32::MIN_POSITIVE];
        if let Some((levels, most)) = best {
            values.extend((1..BANDS).map(|band| levels.least_of(band) * most));
        }
        values
    }

    /// The most it scores anywhere.
    pub(super) fn ceiling(&self) -> f32 {
        let ways = self.ways.iter();
        let ways = ways.map(|way| way.word.levels.best() * way.most);
        ways.fold(self.short.most, f32::max)
    }

    /// The most it scores in a window.
    pub(super) fn in_window(&self, window: usize) -> f32 {
        let ways = self.ways.iter();
        let ways = ways.map(|way| way.word.levels.best_in_window(window) * way.most);
        ways.fold(self.short.best_in_window(window), f32::max)
    }

    #[inline]
    pub(super) fn in_range(&self, range: usize) -> f32 {
        if let (Some(scores), [way]) = (&self.only, self.ways.as_slice()) {
            let level = usize::from(way.word.levels.level(range));
            return scores.get(level).copied().unwrap_or(way.most);
        }
        let ways = self.ways.iter();
        let ways = ways.map(|way| way.word.levels.in_range(range) * way.most);
        ways.fold(self.short.in_range(range), f32::max)
    }

    /// Adds what the clause can score in the ranges of a window.
    pub(super) fn add_to(&self, chunk: &mut Chunk, window: usize, is_required: bool) {
        chunk.clause.fill(0);
        for way in &self.ways {
            raise(
                &mut chunk.clause,
                way.word.levels.of_window(window),
                way.steps,
            );
        }
        match &self.short.levels {
            Some(levels) => raise(
                &mut chunk.clause,
                levels.of_window(window),
                self.short_steps,
            ),
            None => {
                for (document, score) in self.short.in_window(window) {
                    let range = (document / RANGE) as usize % RANGES;
                    if let Some(known) = chunk.clause.get_mut(range) {
                        *known = self.scale.up(*score).max(*known);
                    }
                }
            }
        }
        let sums = chunk.sums.iter_mut().zip(&mut chunk.covered);
        for (bound, (sum, covered)) in chunk.clause.iter().zip(sums) {
            *sum = sum.saturating_add(*bound);
            let share = if *bound > 0 { self.share } else { 0 };
            *covered = covered.saturating_add(share);
        }
        if is_required {
            for (bound, possible) in chunk.clause.iter().zip(&mut chunk.possible) {
                *possible = if *bound > 0 { *possible } else { 0 };
            }
        }
    }
}

/// By window, the ranges with documents of short lists, one bit each, where there are too few to know the best of each range.
fn ranges_of(short: &ShortLists, documents: DocId) -> Vec<u64> {
    if short.scored.is_empty() || short.levels.is_some() {
        return Vec::new();
    }
    let mut ranges = vec![0; windows(documents)];
    for (document, _) in &short.scored {
        if let Some(bits) = ranges.get_mut(window_of(*document)) {
            *bits |= 1 << ((document / RANGE) as usize % RANGES);
        }
    }
    ranges
}

/// Raises bounds to those of levels.
fn raise(bounds: &mut [u16; RANGES], levels: &[u8], most: u16) {
    for (known, level) in bounds.iter_mut().zip(levels) {
        *known = steps(*level, most).max(*known);
    }
}
