//! The best documents of a ranking while it is made.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use tantivy::DocAddress;

use super::rank::{AfterScore, Found};

/// A document with its own score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ranked {
    pub(super) score: f32,
    pub(super) row: u64,
    pub(super) address: DocAddress,
    pub(super) coverage: f32,
}

impl Eq for Ranked {}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = self.score.total_cmp(&other.score);
        by_score.then(other.row.cmp(&self.row))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A larger score is needed, or the same one and a smaller row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Threshold {
    pub(super) score: f32,
    pub(super) row: u64,
}

impl Threshold {
    /// What one of both asks for.
    pub(super) fn easier(self, other: Self) -> Self {
        match self.score.total_cmp(&other.score) {
            Ordering::Less => self,
            Ordering::Greater => other,
            Ordering::Equal => Self {
                row: self.row.max(other.row),
                ..self
            },
        }
    }
}

/// The best documents so far, after some place in the order.
#[derive(Clone)]
pub(super) struct Best {
    pub(super) most: usize,
    pub(super) after: Option<AfterScore>,
    /// Whether rows order equal scores. Otherwise all that equal the worst are kept until their names are known.
    by_row: bool,
    pub(super) worst_first: BinaryHeap<Reverse<Ranked>>,
    /// More documents with the score of the worst.
    tied: Vec<Ranked>,
    /// Documents with the score of the last hit, of which only names tell whether they follow it.
    at_cursor: Vec<Ranked>,
}

impl Best {
    pub(super) fn new(most: usize, after: Option<AfterScore>, by_row: bool) -> Self {
        Self {
            most,
            after,
            by_row,
            worst_first: BinaryHeap::new(),
            tied: Vec::new(),
            at_cursor: Vec::new(),
        }
    }

    /// What a document needs to be among them, once there are enough.
    pub(super) fn threshold(&self) -> Option<Threshold> {
        if self.most == 0 {
            return Some(Threshold {
                score: f32::MAX,
                row: 0,
            });
        }
        let worst = self.worst_first.peek().filter(|_| self.is_full())?;
        Some(Threshold {
            score: worst.0.score,
            row: if self.by_row { worst.0.row } else { u64::MAX },
        })
    }

    pub(super) fn is_full(&self) -> bool {
        self.worst_first.len() >= self.most
    }

    /// Whether a document with this score can be among them.
    pub(super) fn wants(&self, score: f32) -> bool {
        let worst = self.worst_first.peek().filter(|_| self.is_full());
        self.most > 0
            && self.after.is_none_or(|after| score <= after.score)
            && worst.is_none_or(|worst| score >= worst.0.score)
    }

    pub(super) fn offer(&mut self, ranked: Ranked) {
        if !self.wants(ranked.score) {
            return;
        }
        if let Some(after) = self.after
            && ranked.score.total_cmp(&after.score).is_eq()
        {
            if !self.by_row {
                self.at_cursor.push(ranked);
                return;
            }
            if ranked.row <= after.row {
                return;
            }
        }
        if !self.is_full() {
            self.worst_first.push(Reverse(ranked));
            return;
        }
        let Some(mut worst) = self.worst_first.peek_mut() else {
            return;
        };
        let displaced = if ranked > worst.0 {
            std::mem::replace(&mut *worst, Reverse(ranked)).0
        } else {
            ranked
        };
        drop(worst);
        if self.by_row {
            return;
        }
        let worst = self.worst_first.peek().map(|worst| worst.0.score);
        if worst == Some(displaced.score) {
            self.tied.push(displaced);
        } else {
            self.tied.clear();
        }
    }

    /// All that were kept.
    pub(super) fn all(&self) -> impl Iterator<Item = &Ranked> {
        let all = self.worst_first.iter().map(|one| &one.0);
        all.chain(&self.tied).chain(&self.at_cursor)
    }

    /// Those that cover enough.
    pub(super) fn into_found(self, floor: f32) -> Vec<Found> {
        let all = self.all().filter(|one| one.coverage >= floor);
        all.map(|one| Found::new(one.score, one.row, one.address))
            .collect()
    }
}
