//! What one look at all matches of a question gathers: the best, and figures about all.

use std::collections::HashMap;

use tantivy::DocAddress;

use super::best::{Best, Ranked, Threshold};
use super::question::Question;
use super::rank::{CountedBy, Counts, NEIGHBOURS, Page};

/// The coverage of each set of clauses, computed once.
pub(super) struct Coverages<'q> {
    question: &'q Question<'q>,
    known: HashMap<u64, f32>,
    /// Those of questions with few clauses, by their bits.
    all: Vec<f32>,
    last: (u64, f32),
}

/// Up to so many clauses, every set of them is computed at once.
const FEW: usize = 9;

impl<'q> Coverages<'q> {
    pub(super) fn new(question: &'q Question<'q>) -> Self {
        let clauses = question.wanted.len();
        let sets = if clauses <= FEW { 1_u64 << clauses } else { 0 };
        Self {
            question,
            known: HashMap::new(),
            all: (0..sets).map(|set| question.coverage(set)).collect(),
            last: (0, 0.0),
        }
    }

    #[inline]
    pub(super) fn of(&mut self, clauses: u64) -> f32 {
        let at = usize::try_from(clauses).unwrap_or(usize::MAX);
        if let Some(known) = self.all.get(at) {
            return *known;
        }
        if self.last.0 != clauses {
            let coverage = self.known.entry(clauses);
            let coverage = *coverage.or_insert_with(|| self.question.coverage(clauses));
            self.last = (clauses, coverage);
        }
        self.last.1
    }
}

/// What one look at all matches gathers.
#[derive(Clone)]
pub(super) struct Selection {
    /// The best of all, which may lend to neighbours.
    pub(super) lenders: Best,
    /// The best that come after the previous page.
    pub(super) page: Best,
    /// The best of all.
    pub(super) first: Best,
    pub(super) count: bool,
    /// Coverage below which nothing matters.
    pub(super) floor: f32,
    /// The score below which nothing matters, where that is known before.
    pub(super) at_least: Option<f32>,
    threshold: Option<Threshold>,
    /// How many match, by what they are counted by and by their clauses.
    pub(super) by_clauses: HashMap<(CountedBy, u64), u64>,
}

impl Selection {
    pub(super) fn new(page: Option<&Page>, lenders: usize, by_row: bool) -> Self {
        // On the first page only lenders, and those they lend to, can pass the best by themselves. Later, those that were lent to
        // may hold places of others.
        let more = match page {
            Some(page) if page.after.is_some() => lenders * (1 + NEIGHBOURS),
            _ => 0,
        };
        let most = page.map_or(0, |page| page.limit.saturating_add(more));
        Self {
            lenders: Best::new(lenders, None, by_row),
            page: Best::new(most, page.and_then(|page| page.after), by_row),
            first: Best::new(1, None, by_row),
            count: page.is_some_and(|page| page.count),
            floor: 0.0,
            at_least: None,
            threshold: None,
            by_clauses: HashMap::new(),
        }
    }

    /// Whether it goes on after an earlier page.
    pub(super) fn is_continued(&self) -> bool {
        self.page.after.is_some()
    }

    pub(super) fn wants(&self, score: f32) -> bool {
        self.page.wants(score) || self.lenders.wants(score) || self.first.wants(score)
    }

    /// What a document needs so that it still matters, if that is known.
    #[inline]
    pub(super) fn threshold(&self) -> Option<Threshold> {
        self.threshold
    }

    /// Begins anew with a score below which nothing matters.
    pub(super) fn expect(&mut self, score: f32) {
        self.at_least = Some(score);
        self.threshold = self.current_threshold();
    }

    fn current_threshold(&self) -> Option<Threshold> {
        if self.count {
            return None;
        }
        let known = self.at_least.map(|score| Threshold {
            score,
            row: u64::MAX,
        });
        let [page, lenders, first] = [&self.page, &self.lenders, &self.first].map(Best::threshold);
        let (Some(page), Some(lenders), Some(first)) = (page, lenders, first) else {
            return known;
        };
        let now = page.easier(lenders).easier(first);
        Some(known.filter(|known| known.score > now.score).unwrap_or(now))
    }

    pub(super) fn offer(&mut self, ranked: Ranked) {
        self.page.offer(ranked);
        self.lenders.offer(ranked);
        self.first.offer(ranked);
        self.threshold = self.current_threshold();
    }

    /// All documents that were kept.
    pub(super) fn addresses(&self) -> impl Iterator<Item = DocAddress> {
        let all = [&self.page, &self.lenders, &self.first].into_iter();
        all.flat_map(Best::all).map(|one| one.address)
    }

    /// What the best document covers.
    pub(super) fn best_coverage(&self) -> f32 {
        let best = self.first.all().max_by(|one, other| {
            let by_score = one.score.total_cmp(&other.score);
            by_score.then(one.coverage.total_cmp(&other.coverage))
        });
        best.map_or(0.0, |best| best.coverage)
    }

    /// How many cover enough.
    pub(super) fn counts(&self, coverages: &mut Coverages<'_>, floor: f32) -> Counts {
        let mut counts = Counts::new();
        for ((counted_by, clauses), count) in &self.by_clauses {
            if coverages.of(*clauses) >= floor {
                *counts.entry(*counted_by).or_default() += count;
            }
        }
        counts
    }

    /// Whether documents that cover too little took the place of others.
    pub(super) fn is_spoiled(&self, floor: f32) -> bool {
        let spoiled = |best: &Best| {
            best.is_full() && best.worst_first.iter().any(|one| one.0.coverage < floor)
        };
        spoiled(&self.page) || spoiled(&self.lenders)
    }
}
