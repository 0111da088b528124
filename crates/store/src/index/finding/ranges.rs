//! The most that documents can score, range by range. Where that is less than what is on the page already, a range need not be
//! read: with this a common word costs little more than a rare one.
//!
//! The bounds hold for all documents, admitted or not. They decide what is read, never what is found.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tantivy::DocId;

use super::lists::{ClauseLookup, Place, SegmentLookups};
use super::question::Question;
use super::short::ShortLists;
use crate::stop;

/// How many documents a range has, and a window how many ranges.
pub(super) const RANGE: DocId = 32;
pub(super) const RANGES: usize = 64;
/// The steps of a score that is kept in a byte, and by how much 256 of them would be more.
const LEVELS: f32 = 255.0;
const A_LEVEL: f32 = 256.0 / LEVELS;
/// Of how many lists a segment keeps the best scores.
const KEPT_LISTS: usize = 1024;
/// Bounds for another average length are loose; from this factor on they are made anew.
const LOOSE: f32 = 1.2;
/// A little more, for sums of floats round.
pub(super) const MARGIN: f32 = 1.0001;

/// The best scores in the long lists of a segment, by number of the field and where the list begins.
#[derive(Default)]
pub(in crate::index) struct SegmentRanges(Mutex<HashMap<(u32, usize), Arc<Levels>>>);

/// The best score of each range, as a share of what a word can score at most.
struct Levels {
    /// By stream, the average lengths that they were computed with.
    averages: Vec<(u64, f32)>,
    /// In steps of 1/255, rounded up.
    by_range: Box<[u8]>,
}

/// The most that documents of a segment can score, in steps of [`Scale`].
pub(super) struct Bounds {
    /// By range: times coverage, that is to be compared with scores.
    pub(super) by_range: Vec<u16>,
    /// The largest of each [`RANGES`].
    pub(super) by_window: Vec<u16>,
    /// By clause, in any range; as a score.
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
    fn up(self, score: f32) -> u16 {
        (score * self.steps).ceil() as u16
    }

    /// The steps that a bound has at least, so that a document can score so much.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float that is too large becomes the largest number"
    )]
    pub(super) fn least(self, score: f32) -> u16 {
        (score * self.steps / MARGIN).floor() as u16
    }

    fn score(self, steps: u16) -> f32 {
        f32::from(steps) / self.steps
    }
}

impl Bounds {
    pub(super) fn new(
        lookups: &SegmentLookups<'_>,
        question: &Question<'_>,
        scale: Scale,
    ) -> tantivy::Result<Self> {
        let documents = lookups.gate.segment.reader.max_doc();
        let ranges = documents.div_ceil(RANGE) as usize;
        let mut clauses = Vec::with_capacity(lookups.wanted.len());
        for (number, clause) in lookups.wanted.iter().enumerate() {
            let (share, is_required) = (
                question.coverage(1 << (number % 64)),
                question.required >> (number % 64) & 1 == 1,
            );
            let bounds = ClauseBounds::new(lookups, clause, scale)?;
            clauses.push(bounds.counting(share, is_required));
        }
        let mut by_range = vec![0; ranges];
        let mut chunk = Chunk::default();
        for (number, bounds) in by_range.chunks_mut(CHUNK).enumerate() {
            chunk.clear();
            for clause in &mut clauses {
                clause.add_to(&mut chunk, number * CHUNK, bounds.len());
            }
            chunk.write_to(bounds);
        }
        let windows = by_range.chunks(RANGES);
        let largest = |bounds: &[u16]| bounds.iter().copied().fold(0, u16::max);
        let ceilings = clauses.iter().map(|clause| scale.score(clause.ceiling));
        Ok(Self {
            ceilings: ceilings.collect(),
            by_window: windows.map(largest).collect(),
            by_range,
        })
    }
}

/// How many ranges are bounded together: few enough for the processor's nearest cache.
const CHUNK: usize = 8 * RANGES;

/// What ranges are bounded with, clause by clause. Plain loops over whole numbers, which become vector instructions.
struct Chunk {
    /// Of one way to write a word: the best field, and all of them together.
    best: [u16; CHUNK],
    all: [u16; CHUNK],
    clause: [u16; CHUNK],
    sums: [u16; CHUNK],
    /// The share of the question; all bits are the whole.
    covered: [u16; CHUNK],
    /// All bits, or none where something that must occur does not.
    possible: [u16; CHUNK],
}

impl Default for Chunk {
    fn default() -> Self {
        Self {
            best: [0; CHUNK],
            all: [0; CHUNK],
            clause: [0; CHUNK],
            sums: [0; CHUNK],
            covered: [0; CHUNK],
            possible: [0; CHUNK],
        }
    }
}

impl Chunk {
    fn clear(&mut self) {
        self.sums.fill(0);
        self.covered.fill(0);
        self.possible.fill(u16::MAX);
    }

    fn write_to(&self, bounds: &mut [u16]) {
        let sums = self.sums.iter().zip(&self.covered).zip(&self.possible);
        for (bound, ((sum, covered), possible)) in bounds.iter_mut().zip(sums) {
            let rounded = u16::from(*sum > 0);
            *bound = product(*sum, *covered).saturating_add(rounded) & possible;
        }
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

/// What a clause can score in the ranges of a segment.
struct ClauseBounds<'q> {
    /// For each way to write it that stands in many documents, its levels by field and what the highest level is worth.
    ways: Vec<Vec<(Arc<Levels>, u16)>>,
    short: &'q ShortLists,
    short_most: u16,
    scale: Scale,
    /// How many of the short lists' documents were looked at.
    seen: usize,
    share: u16,
    is_required: bool,
    ceiling: u16,
}

impl<'q> ClauseBounds<'q> {
    fn new(
        lookups: &SegmentLookups<'_>,
        clause: &'q ClauseLookup<'_>,
        scale: Scale,
    ) -> tantivy::Result<Self> {
        let mut ways = Vec::with_capacity(clause.long.len());
        for way in &clause.long {
            let mut places = Vec::with_capacity(way.places.len());
            for place in &way.places {
                let (levels, ratio) = levels(lookups, place)?;
                let most = place.most * place.field.factors.largest();
                places.push((levels, scale.up(most * way.factor * ratio * A_LEVEL)));
            }
            ways.push(places);
        }
        Ok(Self {
            ways,
            short: &clause.short,
            short_most: scale.up(clause.short.most * A_LEVEL),
            scale,
            seen: 0,
            share: 0,
            is_required: false,
            ceiling: 0,
        })
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of the question, rounded up to a part of 65,535"
    )]
    fn counting(self, share: f32, is_required: bool) -> Self {
        Self {
            share: (share * f32::from(u16::MAX) * MARGIN).ceil() as u16,
            is_required,
            ..self
        }
    }

    /// Adds what the clause can score in `count` ranges from `first` on. Chunks are asked for in order.
    fn add_to(&mut self, chunk: &mut Chunk, first: usize, count: usize) {
        chunk.clause.fill(0);
        for places in &self.ways {
            bound_way(places, first, chunk);
        }
        self.bound_short(first, count, &mut chunk.clause);
        let mut ceiling = self.ceiling;
        let sums = chunk.sums.iter_mut().zip(&mut chunk.covered);
        for (bound, (sum, covered)) in chunk.clause.iter().zip(sums) {
            *sum = sum.saturating_add(*bound);
            let share = if *bound > 0 { self.share } else { 0 };
            *covered = covered.saturating_add(share);
            ceiling = ceiling.max(*bound);
        }
        self.ceiling = ceiling;
        if self.is_required {
            for (bound, possible) in chunk.clause.iter().zip(&mut chunk.possible) {
                *possible = if *bound > 0 { *possible } else { 0 };
            }
        }
    }

    fn bound_short(&mut self, first: usize, count: usize, bounds: &mut [u16; CHUNK]) {
        if let Some(levels) = &self.short.by_range {
            let levels = levels.get(first..).unwrap_or_default();
            raise(bounds, levels, self.short_most);
            return;
        }
        let left = self.short.scored.get(self.seen..).unwrap_or_default();
        for (document, score) in left {
            let range = (document / RANGE) as usize;
            if range >= first + count {
                break;
            }
            self.seen += 1;
            if let Some(known) = bounds.get_mut(range - first) {
                *known = self.scale.up(*score).max(*known);
            }
        }
    }
}

/// Raises the bounds of a clause to what one way to write it can score.
fn bound_way(places: &[(Arc<Levels>, u16)], first: usize, chunk: &mut Chunk) {
    if let [(only, most)] = places {
        raise(&mut chunk.clause, only.since(first), *most);
        return;
    }
    chunk.best.fill(0);
    chunk.all.fill(0);
    for (levels, most) in places {
        let known = chunk.best.iter_mut().zip(&mut chunk.all);
        for ((best, all), level) in known.zip(levels.since(first)) {
            let score = steps(*level, *most);
            *best = score.max(*best);
            *all = all.saturating_add(score);
        }
    }
    let fields = chunk.best.iter().zip(&chunk.all);
    for (known, (best, all)) in chunk.clause.iter_mut().zip(fields) {
        // Half of what other fields add counts; see `FieldScores`.
        let others = (all - best).div_ceil(2);
        *known = best.saturating_add(others).max(*known);
    }
}

/// Raises bounds to those of levels.
fn raise(bounds: &mut [u16; CHUNK], levels: &[u8], most: u16) {
    for (known, level) in bounds.iter_mut().zip(levels) {
        *known = steps(*level, most).max(*known);
    }
}

/// The best scores of a list, computed when first needed, and how many times larger averages have become since. With `n`
/// occurrences in a field of length `l` the share is `n / (n + a + b * l / average)`: a larger average makes it larger by no more
/// than that ratio.
fn levels(lookups: &SegmentLookups<'_>, place: &Place<'_>) -> tantivy::Result<(Arc<Levels>, f32)> {
    let segment = lookups.gate.segment;
    let kept = &segment.columns.ranges.0;
    let name = (
        place.field.field.field_id(),
        place.info.postings_range.start,
    );
    let known = (kept.lock().unwrap_or_else(PoisonError::into_inner))
        .get(&name)
        .cloned();
    let averages = place.texts.averages();
    if let Some(known) = known {
        let ratio = known.ratio(&averages);
        if ratio <= LOOSE {
            return Ok((known, ratio));
        }
    }
    let ranges = segment.reader.max_doc().div_ceil(RANGE) as usize;
    let mut by_range = vec![0_u8; ranges].into_boxed_slice();
    let mut list = place.postings()?;
    while !list.docs().is_empty() {
        if stop::asked() {
            // Nothing is found any more, whatever the bounds.
            break;
        }
        let entries = list.docs().iter().zip(list.freqs());
        let shares = entries.map(|(document, times)| {
            let share = place.texts.share(lookups.gate, *document, *times);
            (*document, share)
        });
        raise_levels(&mut by_range, shares);
        list.advance();
    }
    let levels = Arc::new(Levels { averages, by_range });
    if !stop::asked() {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_LISTS {
            // Any one: which words come next is not known.
            let any = kept.keys().next().copied();
            any.map(|any| kept.remove(&any));
        }
        kept.insert(name, Arc::clone(&levels));
    }
    Ok((levels, 1.0))
}

/// The best share of each range, in steps of a byte.
pub(super) fn levels_of(shares: impl Iterator<Item = (DocId, f32)>, ranges: usize) -> Box<[u8]> {
    let mut by_range = vec![0_u8; ranges].into_boxed_slice();
    raise_levels(&mut by_range, shares);
    by_range
}

fn raise_levels(by_range: &mut [u8], shares: impl Iterator<Item = (DocId, f32)>) {
    for (document, share) in shares {
        if let Some(best) = by_range.get_mut((document / RANGE) as usize) {
            *best = level(share).max(*best);
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded up to one of 255 steps"
)]
fn level(share: f32) -> u8 {
    (share * LEVELS * MARGIN).ceil().min(LEVELS) as u8
}

impl Levels {
    fn since(&self, first: usize) -> &[u8] {
        self.by_range.get(first..).unwrap_or_default()
    }

    /// How many times larger the averages are than those the levels were computed with, at most and at least once. Where a
    /// stream was not known, without limit.
    fn ratio(&self, averages: &[(u64, f32)]) -> f32 {
        let ratios = averages.iter().map(|(stream, average)| {
            let known = self.averages.iter().find(|one| one.0 == *stream);
            known.map_or(f32::INFINITY, |one| average / one.1)
        });
        ratios.fold(1.0, f32::max)
    }
}
