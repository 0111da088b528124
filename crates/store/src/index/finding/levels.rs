//! The best scores of a word, range by range of a segment: which parts of its lists need not be read.
//!
//! They are kept as shares of what the word can score, so that they hold for as long as the segment does, however rare the word
//! becomes. They hold for all documents, admitted or not: they decide what is read, never what is found.

use std::collections::HashMap;
use std::hash::Hasher as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use siphasher::sip::SipHasher13;
use tantivy::DocId;

use super::Gate;
use super::lists::{List, Ways};
use super::scores::{FieldScores, SIZE, Scores};
use crate::index::engine::Segment;
use crate::stop;

/// How many documents a range has, and a window how many ranges.
pub(super) const RANGE: DocId = 32;
pub(super) const RANGES: usize = 64;
/// How many documents a window has.
pub(super) const WINDOW: DocId = 2048;
/// The steps of a share that is kept in a byte.
pub(super) const LEVELS: f32 = 255.0;
/// Of how many words a segment keeps the best scores.
const KEPT_WORDS: usize = 1024;
/// Bounds for another average length are loose; from this factor on they are made anew.
pub(super) const LOOSE: f32 = 1.2;
/// In how many steps a factor of two is divided.
const STEPS_OF_TWO: f32 = 4.0;
/// A little more, for sums of floats round.
pub(super) const MARGIN: f32 = 1.0001;

/// What is known of the ranges of a segment.
#[derive(Default)]
pub(in crate::index) struct SegmentRanges {
    by_word: Mutex<HashMap<u64, Arc<WordLevels>>>,
    first_rows: OnceLock<Box<[u64]>>,
}

impl SegmentRanges {
    /// The smallest row of each window.
    pub(super) fn first_rows(&self, segment: Segment<'_>) -> &[u64] {
        self.first_rows.get_or_init(|| {
            let rows = &segment.columns.rows;
            let mut first = vec![u64::MAX; windows(segment.reader.max_doc())];
            for document in 0..segment.reader.max_doc() {
                if let (Some(known), Some(row)) =
                    (first.get_mut(window_of(document)), rows.first(document))
                {
                    *known = row.min(*known);
                }
            }
            first.into_boxed_slice()
        })
    }
}

/// How many windows so many documents have.
pub(super) fn windows(documents: DocId) -> usize {
    (documents as usize).div_ceil(SIZE)
}

pub(super) fn window_of(document: DocId) -> usize {
    document as usize / SIZE
}

/// How many sets of ranges are kept by how good the ranges are.
pub(super) const BANDS: usize = 4;
/// Each set has at most this part of the ranges of the one before; the first has all that hold anything.
const BAND_PART: usize = 4;

/// The best of each range, in steps of a byte, and of each window.
pub(super) struct Levels {
    by_range: Box<[u8]>,
    by_window: Box<[f32]>,
    /// The largest value up to each level: the bound is exact where most documents are, and equal scores are known as such.
    exact: Box<[f32; 256]>,
    /// No value is larger.
    most: f32,
    /// From which level on a range is in each band.
    band_from: [u8; BANDS],
    /// By band and window, the ranges of the band, one bit each.
    bands: [Box<[u64]>; BANDS],
}

/// Levels while documents are still added.
pub(super) struct LevelsBuilder {
    by_range: Box<[u8]>,
    exact: Box<[f32; 256]>,
    most: f32,
    /// What a value is multiplied with to be a level.
    steps: f32,
}

impl LevelsBuilder {
    /// For so many documents, none of which has a larger value than `most`.
    pub(super) fn new(documents: DocId, most: f32) -> Self {
        let most = most.max(f32::MIN_POSITIVE);
        Self {
            by_range: vec![0; documents.div_ceil(RANGE) as usize].into(),
            exact: Box::new([0.0; 256]),
            most,
            steps: LEVELS * MARGIN / most,
        }
    }

    #[inline]
    pub(super) fn raise(&mut self, document: DocId, value: f32) {
        let level = level(value * self.steps);
        if let Some(best) = self.by_range.get_mut((document / RANGE) as usize) {
            *best = level.max(*best);
        }
        if let Some(exact) = self.exact.get_mut(usize::from(level)) {
            *exact = value.max(*exact);
        }
    }

    pub(super) fn finish(mut self) -> Levels {
        let mut most = 0.0_f32;
        for exact in self.exact.iter_mut() {
            most = most.max(*exact);
            *exact = most;
        }
        let windows = self.by_range.chunks(RANGES);
        let by_window = windows.map(|ranges| {
            let level = ranges.iter().copied().max().unwrap_or(0);
            self.exact.get(usize::from(level)).copied().unwrap_or(most)
        });
        let band_levels = band_levels(&self.by_range);
        Levels {
            by_window: by_window.collect(),
            bands: band_levels.map(|from| band(&self.by_range, from)),
            band_from: band_levels,
            by_range: self.by_range,
            exact: self.exact,
            most: self.most,
        }
    }
}

impl Levels {
    /// What the highest level is worth.
    pub(super) fn most(&self) -> f32 {
        self.most
    }

    /// The levels of the ranges of a window.
    pub(super) fn of_window(&self, window: usize) -> &[u8] {
        self.by_range.get(window * RANGES..).unwrap_or_default()
    }

    /// The level of a range.
    #[inline]
    pub(super) fn level(&self, range: usize) -> u8 {
        self.by_range.get(range).copied().unwrap_or(0)
    }

    /// The best value of a range.
    pub(super) fn in_range(&self, range: usize) -> f32 {
        self.value(self.level(range))
    }

    /// What each level is worth, times a factor.
    pub(super) fn times(&self, factor: f32) -> Box<[f32; 256]> {
        let mut values = self.exact.clone();
        for value in values.iter_mut() {
            *value *= factor;
        }
        values
    }

    /// The best value of a window.
    pub(super) fn best_in_window(&self, window: usize) -> f32 {
        self.by_window.get(window).copied().unwrap_or(0.0)
    }

    /// By window, the ranges that are in a band, one bit each.
    pub(super) fn band(&self, band: usize) -> &[u64] {
        self.bands.get(band).map_or(&[], |ranges| ranges)
    }

    /// The smallest band with all ranges that have so large a value; `None` where none has.
    pub(super) fn band_from(&self, value: f32) -> Option<usize> {
        let level = self.exact.partition_point(|exact| *exact < value);
        let is_below = |from: &u8| usize::from(*from) <= level.max(1);
        (level < self.exact.len()).then(|| self.band_from.iter().rposition(is_below))?
    }

    /// A value that ranges outside a band do not reach.
    pub(super) fn least_of(&self, band: usize) -> f32 {
        let from = self.band_from.get(band).copied().unwrap_or(0);
        let below = usize::from(from).saturating_sub(1);
        let below = self.exact.get(below).copied().unwrap_or(0.0);
        below.next_up()
    }

    /// The largest value.
    pub(super) fn best(&self) -> f32 {
        self.exact.last().copied().unwrap_or(0.0)
    }

    /// How many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.by_range.len() + self.by_window.len() * size_of::<(f32, [u64; BANDS])>() + 1024
    }

    fn value(&self, level: u8) -> f32 {
        let value = self.exact.get(usize::from(level));
        value.copied().unwrap_or(self.most)
    }
}

/// The level from which on each band has few enough ranges.
fn band_levels(by_range: &[u8]) -> [u8; BANDS] {
    let mut counts = [0_usize; 256];
    for level in by_range {
        if let Some(count) = counts.get_mut(usize::from(*level)) {
            *count += 1;
        }
    }
    let mut most: usize = counts.iter().skip(1).sum();
    let mut levels = [1; BANDS];
    for from in levels.iter_mut().skip(1) {
        most /= BAND_PART;
        let (mut level, mut count) = (u8::MAX, 0);
        for (number, here) in (1_u8..=u8::MAX).zip(counts.iter().skip(1)).rev() {
            count += here;
            if count > most {
                break;
            }
            level = number;
        }
        *from = level;
    }
    levels
}

/// By window, the ranges from a level on, one bit each.
fn band(by_range: &[u8], from: u8) -> Box<[u64]> {
    let windows = by_range.chunks(RANGES).map(|ranges| {
        let bits = ranges.iter().enumerate();
        bits.fold(0, |bits, (at, level)| {
            bits | u64::from(*level >= from) << at
        })
    });
    windows.collect()
}

/// Rounded up, so that something is never nothing.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded up to one of 255 steps"
)]
fn level(steps: f32) -> u8 {
    steps.ceil().min(LEVELS) as u8
}

/// The best of some ways to write a word, in all fields together.
pub(super) struct WordLevels {
    pub(super) levels: Levels,
    /// By place and stream, the average lengths that they were computed with.
    averages: Vec<Vec<(u64, f32)>>,
}

impl WordLevels {
    /// How many times larger the averages are than those the levels were computed with, at most and at least once. Where a
    /// stream was not known, without limit.
    fn ratio(&self, averages: &[Vec<(u64, f32)>]) -> f32 {
        let places = averages.iter().zip(&self.averages);
        let ratios = places.flat_map(|(now, known)| {
            now.iter().map(|(stream, average)| {
                let known = known.iter().find(|one| one.0 == *stream);
                known.map_or(f32::INFINITY, |one| average / one.1)
            })
        });
        ratios.fold(1.0, f32::max)
    }
}

/// The best scores of some ways to write a word, divided by what the first of them scores at most, and how many times larger they may
/// have become since they were computed. With `n` occurrences in a field of length `l` the share is `n / (n + a + b * l / average)`: a
/// larger average makes it larger by no more than the ratio of the averages.
pub(super) fn word_levels(
    gate: &Gate<'_>,
    ways: &[Ways<'_>],
) -> tantivy::Result<(Arc<WordLevels>, f32)> {
    let name = name(ways);
    let kept = &gate.segment.columns.ranges.by_word;
    let known = (kept.lock().unwrap_or_else(PoisonError::into_inner))
        .get(&name)
        .cloned();
    let places = ways.iter().flat_map(|way| &way.places);
    let averages: Vec<_> = places
        .map(|place| place.opened.texts.averages().collect::<Vec<_>>())
        .collect();
    if let Some(known) = known {
        let ratio = known.ratio(&averages);
        if ratio <= LOOSE {
            return Ok((known, ratio));
        }
    }
    let levels = computed(gate, ways)?;
    let levels = Arc::new(WordLevels { levels, averages });
    if !stop::asked() {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_WORDS {
            // Any one: which words come next is not known.
            let any = kept.keys().next().copied();
            any.map(|any| kept.remove(&any));
        }
        kept.insert(name, Arc::clone(&levels));
    }
    Ok((levels, 1.0))
}

/// Names the lists of some ways to write a word, and how the ways count beside the first.
fn name(ways: &[Ways<'_>]) -> u64 {
    let mut name = SipHasher13::new();
    for way in ways {
        name.write_u32(beside_first(ways, way).to_bits());
        for place in &way.places {
            place.hash_into(&mut name);
        }
    }
    name.finish()
}

/// How much a way counts beside the first, rounded up: every write changes it a little, and levels should stay.
fn beside_first(ways: &[Ways<'_>], way: &Ways<'_>) -> f32 {
    match ways {
        [_] | [] => 1.0,
        [first, ..] => {
            let times = way.most / first.most.max(f32::MIN_POSITIVE);
            ((times.log2() * STEPS_OF_TWO).ceil() / STEPS_OF_TWO).exp2() * MARGIN
        }
    }
}

/// Reads all lists of some ways to write a word. Where the search is stopped nothing is found any more, whatever the bounds.
fn computed(gate: &Gate<'_>, ways: &[Ways<'_>]) -> tantivy::Result<Levels> {
    let most = ways.iter().map(|way| {
        let factors = way.places.iter().map(|place| place.field.factors.largest());
        let fields = factors.fold(FieldScores::default(), FieldScores::and);
        fields.together() * beside_first(ways, way)
    });
    let documents = gate.segment.reader.max_doc();
    let mut levels = LevelsBuilder::new(documents, most.fold(0.0, f32::max));
    for way in ways {
        read_way(gate, way, beside_first(ways, way), &mut levels)?;
    }
    Ok(levels.finish())
}

/// Raises levels to what a way to write a word scores.
fn read_way(
    gate: &Gate<'_>,
    way: &Ways<'_>,
    factor: f32,
    levels: &mut LevelsBuilder,
) -> tantivy::Result<()> {
    let mut lists = way.lists()?;
    if let [only] = lists.as_mut_slice() {
        only.read_all(gate, |document, share| {
            if share > 0.0 {
                levels.raise(document, share * factor);
            }
        });
        return Ok(());
    }
    let mut shares = Scores::<FieldScores>::new();
    // Windows without a document of the word are left out.
    while let Some(next) = lists.iter().filter_map(List::next).min()
        && !stop::asked()
    {
        let begin = next - next % WINDOW;
        let window = begin..begin.saturating_add(WINDOW);
        for list in &mut lists {
            list.read(gate, std::slice::from_ref(&window), |document, share| {
                if share > 0.0 {
                    shares.change((document - begin) as usize, |fields| fields.and(share));
                }
            });
        }
        shares.drain(|place, fields| {
            let document = begin + DocId::try_from(place).unwrap_or(0);
            levels.raise(document, fields.together() * factor);
        });
    }
    Ok(())
}
