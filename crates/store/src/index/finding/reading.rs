//! What is read of the segments, and in which order: the ranges in which documents can score most come first, and ranges in
//! which none can matter any more are left out.

use super::question::Question;
use super::ranges::{Bounds, MARGIN, RANGES, Scale};
use super::window::Negligible;

/// Of how many windows the best range is read first.
const PROMISING: usize = 128;

/// What is still to be read of a segment.
pub(super) struct Reading {
    /// The most that documents of each range can score, and those of each window.
    bounds: Vec<u16>,
    by_window: Vec<u16>,
    scale: Scale,
    /// The clauses with the most that a document can score by each, the least first.
    by_ceiling: Vec<(usize, f32)>,
    negligible: Negligible,
    /// For each window, the ranges that are read first. After that all others are.
    only: Option<Vec<u64>>,
}

impl Reading {
    pub(super) fn new(bounds: Bounds, scale: Scale) -> Self {
        let mut by_ceiling: Vec<_> = bounds.ceilings.into_iter().enumerate().collect();
        by_ceiling.sort_by(|one, other| one.1.total_cmp(&other.1));
        Self {
            bounds: bounds.by_range,
            by_window: bounds.by_window,
            scale,
            by_ceiling,
            negligible: Negligible::default(),
            only: None,
        }
    }

    /// Goes on to the other ranges.
    pub(super) fn go_on(&mut self) {
        let Some(first) = self.only.take() else {
            return;
        };
        for (range, bound) in self.bounds.iter_mut().enumerate() {
            let window = first.get(range / RANGES).copied().unwrap_or(0);
            if window >> (range % RANGES) & 1 == 1 {
                *bound = 0;
            }
        }
    }

    /// The ranges of a window with documents that can score so much.
    pub(super) fn ranges(&self, window: usize, threshold: f32) -> u64 {
        // A range without anything of the question has no steps at all.
        let least = self.scale.least(threshold).max(1);
        let most = self.by_window.get(window).copied().unwrap_or(0);
        if most < least {
            return 0;
        }
        let (mut bits, begin) = (0, window * RANGES);
        let bounds = self.bounds.iter().skip(begin).take(RANGES);
        for (at, bound) in bounds.enumerate() {
            bits |= u64::from(*bound >= least) << at;
        }
        match &self.only {
            Some(only) => bits & only.get(window).copied().unwrap_or(0),
            None => bits,
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

/// Chooses, of all segments, ranges in which documents can score most. They are read before the others.
pub(super) fn choose_first<'r>(segments: impl Iterator<Item = &'r mut Reading>) {
    let mut segments: Vec<_> = segments.collect();
    let mut windows = Vec::new();
    for (segment, reading) in segments.iter_mut().enumerate() {
        let here = reading.by_window.iter().enumerate();
        let here = here.filter(|(_, most)| **most > 0);
        windows.extend(here.map(|(window, most)| (*most, segment, window)));
        reading.only = Some(vec![0; reading.by_window.len()]);
    }
    if windows.len() > PROMISING {
        windows.select_nth_unstable_by(PROMISING, |one, other| other.cmp(one));
        windows.truncate(PROMISING);
    }
    for (most, segment, window) in windows {
        let Some(reading) = segments.get_mut(segment) else {
            continue;
        };
        let bounds = reading.bounds.chunks(RANGES).nth(window);
        let best = bounds.and_then(|bounds| bounds.iter().position(|bound| *bound == most));
        let only = reading.only.as_mut().and_then(|only| only.get_mut(window));
        if let (Some(best), Some(only)) = (best, only) {
            *only |= 1 << best;
        }
    }
}
