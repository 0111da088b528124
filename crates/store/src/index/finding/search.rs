//! A question in all segments: which of its matches are looked at, and what they score.
//!
//! Other forms of a word count half, so where many documents have the words themselves, forms cannot bring a document among the
//! best. That is tried first, and then no list of a form is read.

use std::cell::OnceCell;

use tantivy::{DocAddress, DocId};

use super::Gate;
use super::best::Ranked;
use super::levels::MARGIN;
use super::lookups::SegmentLookups;
use super::question::Question;
use super::ranges::{Bounds, Scale};
use super::rank::{CountedBy, Counts, Ranking};
use super::reading::{Reading, choose_first};
use super::selection::{Coverages, Selection};
use super::window::{
    Match, Matches, Negligible, WindowScores, for_each_match, for_each_with_all, matches_of,
};
use crate::index::by_time::Times;
use crate::search::EVERY_WORD;
use crate::stop;

/// Documents that cover less than this share of what the best one covers are no answer.
pub(super) const LEAST_COVERAGE: f32 = 0.3;

/// A second look, at what other forms of words bring.
struct Again {
    /// The best documents so far.
    documents: Vec<DocAddress>,
    /// The clauses whose forms can matter, one bit each.
    forms: u64,
}

impl Again {
    fn within(&self, gate: &Gate<'_>) -> impl Iterator<Item = DocId> {
        let ordinal = gate.segment.ordinal;
        let here = self.documents.iter();
        let here = here.filter(move |one| one.segment_ord == ordinal);
        here.map(|one| one.doc_id)
    }
}

/// A question with what it looks up in each segment.
pub(in crate::index) struct Search<'q> {
    pub(super) question: &'q Question<'q>,
    /// With all other forms of its words. Where they cannot matter, they are not looked up.
    whole: OnceCell<Vec<SegmentLookups<'q>>>,
    /// The times of each segment, where matches are counted by year.
    times: Option<&'q [Times]>,
}

impl<'q> Search<'q> {
    /// `by_year`: the times of each segment, where matches are counted by year.
    pub(in crate::index) fn new(
        question: &'q Question<'q>,
        by_year: Option<&'q Vec<Times>>,
    ) -> Self {
        Self {
            question,
            whole: OnceCell::new(),
            times: by_year.map(Vec::as_slice),
        }
    }

    /// What is looked up in each segment, with other forms of these clauses, one bit each.
    fn look_up(&self, with_forms: u64) -> tantivy::Result<Vec<SegmentLookups<'q>>> {
        let mut segments = Vec::new();
        if self.question.can_match() {
            for (number, gate) in self.question.statistics.searched.gates.iter().enumerate() {
                if stop::asked() {
                    break;
                }
                let lookups = SegmentLookups::new(self.question, number, gate, with_forms)?;
                segments.push(lookups);
            }
        }
        Ok(segments)
    }

    fn whole(&self) -> tantivy::Result<&[SegmentLookups<'q>]> {
        if let Some(known) = self.whole.get() {
            return Ok(known);
        }
        let looked_up = self.look_up(u64::MAX)?;
        Ok(self.whole.get_or_init(|| looked_up))
    }

    /// Looks at the matches that can matter: those that rank best, and all where they are counted.
    pub(super) fn pass(&self, selection: &mut Selection) -> tantivy::Result<()> {
        if selection.count || !self.question.has_forms() {
            self.pass_over(self.whole()?, selection, None)?;
            return Ok(());
        }
        let mut first = selection.clone();
        let exact = self.look_up(0)?;
        let ceilings = self.pass_over(&exact, &mut first, None)?;
        let matter = match first.threshold() {
            Some(threshold) => self.question.forms_that_matter(&ceilings, threshold.score),
            None => u64::MAX,
        };
        if matter == 0 {
            *selection = first;
            return Ok(());
        }
        drop(exact);
        // After a cursor, forms may bring a document onto an earlier page, and the page is less good than it seemed.
        if matter == u64::MAX || selection.is_continued() {
            self.pass_over(self.whole()?, selection, None)?;
        } else {
            // Forms only add to what documents score, so that as much is needed as without them.
            if let Some(threshold) = first.threshold() {
                selection.expect(threshold.score);
            }
            // Whatever else has only the words themselves has been looked at already.
            let again = Again {
                documents: first.addresses().collect(),
                forms: matter,
            };
            self.pass_over(&self.look_up(matter)?, selection, Some(&again))?;
        }
        Ok(())
    }

    /// Returns the most that a document scores by each clause.
    fn pass_over(
        &self,
        segments: &[SegmentLookups<'q>],
        selection: &mut Selection,
        again: Option<&Again>,
    ) -> tantivy::Result<Vec<f32>> {
        let scale = Scale::new(self.question);
        let mut coverages = Coverages::new(self.question);
        let mut scores = WindowScores::new();
        let mut ceilings = vec![0.0_f32; self.question.wanted.len()];
        let (mut reading, mut small) = (Vec::with_capacity(segments.len()), Vec::new());
        for lookups in segments {
            if lookups.is_small() {
                for (ceiling, clause) in ceilings.iter_mut().zip(&lookups.wanted) {
                    *ceiling = ceiling.max(clause.short.most);
                }
                small.push(lookups);
                continue;
            }
            let bounds = Bounds::new(lookups, self.question, scale)?;
            for (ceiling, here) in ceilings.iter_mut().zip(&bounds.ceilings) {
                *ceiling = ceiling.max(*here);
            }
            let mut ranges = Reading::new(bounds, lookups.gate.segment);
            if let Some(again) = again {
                ranges.read_again(again.within(lookups.gate), again.forms);
            }
            reading.push((lookups, ranges));
        }
        // The most promising ranges first: what they hold decides how little of the others must be read.
        if again.is_none() {
            let mut all: Vec<_> = reading.iter_mut().map(|(_, reading)| reading).collect();
            choose_first(&mut all, &mut coverages);
        }
        for _ in ["the first", "the others"] {
            for (lookups, reading) in &mut reading {
                let mut selecting = Selecting {
                    search: self,
                    gate: lookups.gate,
                    coverages: &mut coverages,
                    selection,
                    reading,
                };
                for_each_match(lookups, &mut scores, &mut selecting)?;
                reading.go_on();
            }
        }
        // By now most small segments hold nothing that can matter.
        for lookups in small {
            let is_kept = again.is_some_and(|again| again.within(lookups.gate).next().is_some());
            if is_kept || can_matter(lookups, selection, &mut coverages) {
                matches_of(lookups, &lookups.documents(), &mut |found| {
                    self.look_at(lookups.gate, found, &mut coverages, selection);
                })?;
            }
        }
        Ok(ceilings)
    }

    /// How many admitted documents hold every clause; no more than [`EVERY_WORD`] are counted.
    pub(super) fn with_every_word(&self) -> tantivy::Result<u64> {
        let searched = self.question.statistics.searched;
        let name = self.question.fingerprint();
        let name = name.map(|name| (searched.key, name));
        let kept = &searched.view.families;
        if let Some(known) = name.and_then(|name| kept.with_every_word(name)) {
            return Ok(known);
        }
        // Where enough hold the words themselves, forms make no difference.
        let mut count = 0;
        if self.question.has_forms() {
            count = with_every_word(&self.look_up(0)?)?;
        }
        if count < EVERY_WORD {
            count = with_every_word(self.whole()?)?;
        }
        if let (Some(name), false) = (name, stop::asked()) {
            kept.keep_with_every_word(name, count);
        }
        Ok(count)
    }

    fn look_at(
        &self,
        gate: &Gate<'_>,
        found: Match,
        coverages: &mut Coverages<'_>,
        selection: &mut Selection,
    ) {
        if !self.has_required(found.clauses) {
            return;
        }
        let coverage = coverages.of(found.clauses);
        let score = score(found.sum, coverage);
        // Whether a document is admitted costs most, so it is asked last.
        if coverage < selection.floor {
            return;
        }
        if selection.count {
            let Some(counted_by) = self.counted_by(gate, found.document) else {
                return;
            };
            let counted = selection.by_clauses.entry((counted_by, found.clauses));
            *counted.or_default() += 1;
        } else if !selection.wants(score) || !gate.admits(found.document) {
            return;
        }
        let row = gate.segment.columns.rows.first(found.document);
        let Some(row) = row.filter(|_| selection.wants(score)) else {
            return;
        };
        selection.offer(Ranked {
            score,
            row,
            address: DocAddress::new(gate.segment.ordinal, found.document),
            coverage,
        });
    }

    /// What an admitted document is counted by.
    fn counted_by(&self, gate: &Gate<'_>, document: DocId) -> Option<CountedBy> {
        let scope = gate.scope_of(document)?;
        let times = self
            .times
            .and_then(|times| times.get(gate.segment.ordinal as usize));
        Some((scope, times.and_then(|times| times.year(scope, document))))
    }

    fn has_required(&self, clauses: u64) -> bool {
        clauses & self.question.required == self.question.required
    }

    /// What some admitted documents, in ascending order, hold of the question; `None` where they do not match.
    pub(super) fn matches_among(
        &self,
        documents: &[DocAddress],
    ) -> tantivy::Result<Vec<Option<Match>>> {
        let mut matches = vec![None; documents.len()];
        for lookups in self.whole()? {
            let ordinal = lookups.gate.segment.ordinal;
            let begin = documents.partition_point(|one| one.segment_ord < ordinal);
            let end = documents.partition_point(|one| one.segment_ord <= ordinal);
            let here = documents.get(begin..end).unwrap_or_default();
            if here.is_empty() {
                continue;
            }
            let here: Vec<DocId> = here.iter().map(|one| one.doc_id).collect();
            let mut places = matches.iter_mut().zip(documents).skip(begin);
            matches_of(lookups, &here, &mut |found| {
                let place = places.find(|(_, one)| one.doc_id == found.document);
                if let Some((place, _)) = place.filter(|_| self.has_required(found.clauses)) {
                    *place = Some(found);
                }
            })?;
        }
        Ok(matches)
    }

    /// What an admitted document scores by itself, if it covers so much of the question.
    pub(super) fn score_of(
        &self,
        document: DocAddress,
        floor: f32,
    ) -> tantivy::Result<Option<f32>> {
        let found = self.matches_among(&[document])?.pop().flatten();
        Ok(found.and_then(|found| {
            let coverage = self.question.coverage(found.clauses);
            (coverage >= floor).then(|| score(found.sum, coverage))
        }))
    }

    /// Hands over all documents that match, in no particular order, and returns how many there are.
    pub(in crate::index) fn for_each(
        &self,
        each: &mut dyn FnMut(&Gate<'_>, DocId),
    ) -> tantivy::Result<Ranking> {
        let mut selection = Selection::new(None, 0, true);
        self.pass(&mut selection)?;
        let floor = selection.best_coverage() * LEAST_COVERAGE;
        let mut coverages = Coverages::new(self.question);
        let (mut counts, mut scores) = (Counts::new(), WindowScores::new());
        for lookups in self.whole()? {
            let mut taking = Taking(|found: Match| {
                if self.has_required(found.clauses)
                    && coverages.of(found.clauses) >= floor
                    && let Some(counted_by) = self.counted_by(lookups.gate, found.document)
                {
                    *counts.entry(counted_by).or_default() += 1;
                    each(lookups.gate, found.document);
                }
            });
            for_each_match(lookups, &mut scores, &mut taking)?;
        }
        Ok(Ranking {
            found: Vec::new(),
            counts: Some(counts),
            with_every_word: self.with_every_word()?,
        })
    }
}

/// How many admitted documents hold every clause that is looked up; no more than [`EVERY_WORD`] are counted.
fn with_every_word(segments: &[SegmentLookups<'_>]) -> tantivy::Result<u64> {
    let (mut count, mut scores) = (0, WindowScores::new());
    for lookups in segments {
        for_each_with_all(lookups, &mut scores, &mut |document| {
            count += u64::from(lookups.gate.admits(document));
            count < EVERY_WORD
        })?;
        if count >= EVERY_WORD {
            break;
        }
    }
    Ok(count)
}

/// Whether a document of a small segment can matter.
fn can_matter(
    lookups: &SegmentLookups<'_>,
    selection: &Selection,
    coverages: &mut Coverages<'_>,
) -> bool {
    let Some(threshold) = selection.threshold() else {
        return true;
    };
    let (mut sum, mut clauses) = (0.0, 0);
    for (number, clause) in lookups.wanted.iter().enumerate() {
        sum += f64::from(clause.short.most);
        clauses |= u64::from(clause.short.most > 0.0) << (number % 64);
    }
    score(sum, coverages.of(clauses)) * MARGIN >= threshold.score
}

/// The score of a document: what its clauses score together, times how much of the question they cover.
#[expect(
    clippy::cast_possible_truncation,
    reason = "scores are compared as floats of single precision"
)]
pub(super) fn score(sum: f64, coverage: f32) -> f32 {
    sum as f32 * coverage
}

/// Takes every match.
struct Taking<F>(F);

impl<F: FnMut(Match)> Matches for Taking<F> {
    fn take(&mut self, found: Match) {
        (self.0)(found);
    }
}

/// Selects among the matches of one segment.
struct Selecting<'s, 'q, 'l> {
    search: &'s Search<'q>,
    gate: &'s Gate<'q>,
    coverages: &'s mut Coverages<'q>,
    selection: &'s mut Selection,
    reading: &'s mut Reading<'l>,
}

impl Matches for Selecting<'_, '_, '_> {
    fn next(&mut self, window: usize) -> Option<(usize, u64)> {
        let threshold = self.selection.threshold();
        self.reading.next(window, threshold, self.coverages)
    }

    fn negligible(&mut self) -> Negligible {
        let Some(threshold) = self.selection.threshold() else {
            return Negligible::default();
        };
        let question = self.search.question;
        self.reading.negligible(question, threshold.score)
    }

    fn can_matter(&mut self, sum: f64, clauses: u64) -> bool {
        let most = score(sum, self.coverages.of(clauses)) * MARGIN;
        let threshold = self.selection.threshold();
        threshold.is_none_or(|threshold| most >= threshold.score)
    }

    fn take(&mut self, found: Match) {
        let (search, gate) = (self.search, self.gate);
        search.look_at(gate, found, self.coverages, self.selection);
    }
}
