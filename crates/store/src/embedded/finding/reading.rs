//! What is read of the segments, and in which order: the ranges in which documents can score most come first, and ranges in
//! which none can matter any more are left out.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::question::Question;
use super::ranges::{Bounds, MARGIN};
use super::window::Negligible;

/// How many ranges are read first.
const PROMISING: usize = 256;
/// Ranges in a window.
const RANGES: usize = 64;

/// What is still to be read of a segment.
pub(super) struct Reading {
    /// The most that documents of each range can score.
    bounds: Vec<f32>,
    /// The clauses with the most that a document can score by each, the least first.
    by_ceiling: Vec<(usize, f32)>,
    negligible: Negligible,
    /// For each window, the ranges that are read first. After that all others are.
    only: Option<Vec<u64>>,
}

impl Reading {
    pub(super) fn new(bounds: Bounds) -> Self {
        let mut by_ceiling: Vec<_> = bounds.ceilings.into_iter().enumerate().collect();
        by_ceiling.sort_by(|one, other| one.1.total_cmp(&other.1));
        Self {
            bounds: bounds.by_range,
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
                *bound = 0.0;
            }
        }
    }

    /// The ranges of a window with documents that can score so much.
    pub(super) fn ranges(&self, window: usize, threshold: f32) -> u64 {
        let (mut bits, begin) = (0, window * RANGES);
        let bounds = self.bounds.iter().skip(begin).take(RANGES);
        for (at, bound) in bounds.enumerate() {
            bits |= u64::from(*bound > 0.0 && *bound >= threshold) << at;
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

/// Chooses, of all segments, the ranges in which documents can score most. They are read before the others.
pub(super) fn choose_first<'r>(segments: impl Iterator<Item = &'r mut Reading>) {
    let mut segments: Vec<_> = segments.collect();
    let mut worst_first = BinaryHeap::with_capacity(PROMISING + 1);
    let mut least = 0.0;
    for (segment, reading) in segments.iter().enumerate() {
        for (range, bound) in reading.bounds.iter().enumerate() {
            if *bound <= least {
                continue;
            }
            // The bits of positive floats order as they do.
            worst_first.push((Reverse(bound.to_bits()), segment, range));
            if worst_first.len() > PROMISING {
                worst_first.pop();
                let worst = worst_first.peek().map(|one| f32::from_bits(one.0.0));
                least = worst.unwrap_or(0.0);
            }
        }
    }
    for reading in &mut segments {
        let windows = reading.bounds.len().div_ceil(RANGES);
        reading.only = Some(vec![0; windows]);
    }
    for (_, segment, range) in worst_first {
        let only = segments.get_mut(segment).and_then(|one| one.only.as_mut());
        if let Some(window) = only.and_then(|only| only.get_mut(range / RANGES)) {
            *window |= 1 << (range % RANGES);
        }
    }
}
