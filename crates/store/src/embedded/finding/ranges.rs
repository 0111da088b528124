//! The most that documents can score, range by range. Where that is less than what is on the page already, a range need not be
//! read: with this a common word costs little more than a rare one.
//!
//! The bounds hold for all documents, admitted or not. They decide what is read, never what is found.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tantivy::DocId;

use super::Factors;
use super::lists::{ClauseLookup, Place, SegmentLookups};
use super::question::Question;
use super::scores::FieldScores;
use crate::stop;

/// How many documents a range has.
pub(super) const RANGE: DocId = 32;
/// Of how many lists a segment keeps the best scores.
const KEPT_LISTS: usize = 1024;
/// Bounds for another average length are loose; from this factor on they are made anew.
const LOOSE: f32 = 1.2;
/// A little more, for sums of floats round.
pub(super) const MARGIN: f32 = 1.0001;

/// The best scores in the long lists of a segment, by number of the field and where the list begins.
#[derive(Default)]
pub(in crate::embedded) struct SegmentRanges(Mutex<HashMap<(u32, usize), Arc<Levels>>>);

/// The best score of each range, as a share of what a word can score at most.
struct Levels {
    /// By stream, the average lengths that they were computed with.
    averages: Vec<(u64, f32)>,
    /// In steps of 1/255, rounded up.
    by_range: Box<[u8]>,
}

/// The most that documents of a segment can score.
pub(super) struct Bounds {
    /// By range: times coverage, that is to be compared with scores.
    pub(super) by_range: Vec<f32>,
    /// By clause, in any range.
    pub(super) ceilings: Vec<f32>,
}

impl Bounds {
    pub(super) fn new(
        lookups: &SegmentLookups<'_>,
        question: &Question<'_>,
    ) -> tantivy::Result<Self> {
        let documents = lookups.gate.segment.reader.max_doc();
        let ranges = documents.div_ceil(RANGE) as usize;
        let mut sums = vec![0.0_f32; ranges];
        let mut shares = vec![0.0_f32; ranges];
        let mut clause_bounds = vec![0.0_f32; ranges];
        let mut ceilings = Vec::with_capacity(lookups.wanted.len());
        for (number, clause) in lookups.wanted.iter().enumerate() {
            clause_bounds.fill(0.0);
            bound_clause(lookups, clause, &mut clause_bounds)?;
            let share = question.coverage(1 << (number % 64));
            let is_required = question.required >> (number % 64) & 1 == 1;
            ceilings.push(clause_bounds.iter().copied().fold(0.0, f32::max));
            let without = if is_required { f32::NEG_INFINITY } else { 0.0 };
            for ((bound, sum), covered) in clause_bounds.iter().zip(&mut sums).zip(&mut shares) {
                let (more, covers) = if *bound > 0.0 {
                    (*bound, share)
                } else {
                    (without, 0.0)
                };
                *sum += more;
                *covered += covers;
            }
        }
        for (sum, covered) in sums.iter_mut().zip(&shares) {
            let can_match = *covered > 0.0 && sum.is_finite();
            *sum = if can_match {
                *sum * covered * MARGIN
            } else {
                0.0
            };
        }
        Ok(Self {
            by_range: sums,
            ceilings,
        })
    }
}

/// What a clause can score in each range: its best alternative.
#[expect(clippy::indexing_slicing, reason = "a table of all values of a byte")]
fn bound_clause(
    lookups: &SegmentLookups<'_>,
    clause: &ClauseLookup<'_>,
    bounds: &mut [f32],
) -> tantivy::Result<()> {
    let mut sums = Vec::new();
    for ways in &clause.long {
        sums.clear();
        sums.resize(bounds.len(), FieldScores::default());
        for place in &ways.places {
            let (levels, scores) = bound_place(lookups, place, ways.factor)?;
            for (sum, level) in sums.iter_mut().zip(&levels.by_range) {
                *sum = sum.and(scores[usize::from(*level)]);
            }
        }
        for (known, sum) in bounds.iter_mut().zip(&sums) {
            *known = known.max(sum.together());
        }
    }
    for (document, score) in &clause.short {
        if let Some(known) = bounds.get_mut((document / RANGE) as usize) {
            *known = known.max(*score);
        }
    }
    Ok(())
}

/// The levels of a word in a field, and what each level can score.
fn bound_place(
    lookups: &SegmentLookups<'_>,
    place: &Place<'_>,
    factor: f32,
) -> tantivy::Result<(Arc<Levels>, [f32; 256])> {
    let (levels, ratio) = levels(lookups, place)?;
    let most = most(place) * factor;
    let mut scores = [0.0_f32; 256];
    for (level, score) in (0..=u8::MAX).zip(&mut scores) {
        *score = most * stretched(f32::from(level) / 255.0, ratio);
    }
    Ok((levels, scores))
}

/// The limit of scores as occurrences grow.
fn most(place: &Place<'_>) -> f32 {
    let factor = match &place.field.factors {
        Factors::Uniform(factor) => *factor,
        Factors::ByStream(factors) => factors.iter().copied().fold(0.0, f32::max),
    };
    factor * place.most
}

/// A share of the most, where the average length is so many times that of the one it was computed with. With `n` occurrences in
/// a field of length `l` the share is `n / (n + a + b * l / average)`; a larger average makes `n / (a + b * l / average)` larger,
/// by no more than the ratio.
fn stretched(share: f32, ratio: f32) -> f32 {
    if share >= 1.0 {
        return 1.0;
    }
    let odds = share / (1.0 - share) * ratio;
    odds / (1.0 + odds)
}

/// The best scores of a list, computed when first needed, and how many times larger averages have become since.
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
        for (document, times) in list.docs().iter().zip(list.freqs()) {
            let level = level(place.texts.share(lookups.gate, *document, *times));
            if let Some(best) = by_range.get_mut((document / RANGE) as usize) {
                *best = level.max(*best);
            }
        }
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

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded up to one of 255 steps"
)]
fn level(share: f32) -> u8 {
    (share * 255.0 * MARGIN).ceil().min(255.0) as u8
}

impl Levels {
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
