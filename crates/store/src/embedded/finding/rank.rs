//! The order of the documents that answer a question: how well each does, and which part of that order is wanted.
//!
//! Equal scores are ordered by row, that is by when a record first came. Where a scope admits only some records of a stream,
//! a record may have come before it was admitted, and the order must not show that; then they are ordered by name.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};

use tantivy::{DocAddress, DocId};

use super::Gate;
use super::best::Ranked;
use super::lists::SegmentLookups;
use super::question::Question;
use super::ranges::{Bounds, MARGIN};
use super::reading::{Reading, choose_first};
use super::selection::{Coverages, Selection};
use super::threads::{lend, lends};
use super::window::{
    Match, Matches, Negligible, WindowScores, for_each_match, for_each_with_all, matches_of,
};
use crate::catalog::StreamRef;
use crate::search::EVERY_WORD;
use crate::stop;

/// Documents that cover less than this share of what the best one covers are no answer.
const LEAST_COVERAGE: f32 = 0.3;
/// How many of the best documents lend to their neighbours.
const LENDERS: usize = 200;
/// How many neighbours one document lends to at most.
pub(super) const NEIGHBOURS: usize = 4;

/// Where the previous page of a ranking ended.
#[derive(Debug, Clone, Copy)]
pub(in crate::embedded) struct AfterScore {
    pub(in crate::embedded) score: f32,
    pub(in crate::embedded) row: u64,
}

/// Which part of a ranking is wanted, and what besides.
#[derive(Debug, Clone, Copy)]
pub(in crate::embedded) struct Page {
    pub(in crate::embedded) limit: usize,
    pub(in crate::embedded) after: Option<AfterScore>,
    /// Whether all that match are counted.
    pub(in crate::embedded) count: bool,
    /// What is written may have changed the score of the last hit; then the page goes on after the score it has now.
    pub(in crate::embedded) moved: bool,
}

/// The stream of a record and its key in ordering form.
pub(in crate::embedded) type Name = (StreamRef, String);

/// What orders equal scores; the smaller comes first.
pub(in crate::embedded) enum Ties<'t> {
    /// The row.
    Rows,
    /// The name, looked up by row; a record that is gone has none.
    Names(&'t dyn Fn(&[u64]) -> Vec<Option<Name>>),
}

/// A document of a ranking.
#[derive(Debug, Clone)]
pub(in crate::embedded) struct Found {
    pub(in crate::embedded) score: f32,
    pub(in crate::embedded) row: u64,
    /// Known where it orders equal scores.
    name: Option<Name>,
    pub(in crate::embedded) address: DocAddress,
    /// For a document that holds nothing of the question: the row of the neighbour it owes its place to.
    pub(in crate::embedded) near: Option<u64>,
}

impl Found {
    pub(super) fn new(score: f32, row: u64, address: DocAddress) -> Self {
        Self {
            score,
            row,
            name: None,
            address,
            near: None,
        }
    }

    /// A record that was found without looking for its document.
    pub(in crate::embedded) fn by_row(score: f32, row: u64) -> Self {
        Self::new(score, row, DocAddress::new(0, 0))
    }

    /// A document that has a share from a neighbour; `lender` is named where it has nothing else.
    pub(super) fn lent(score: f32, row: u64, address: DocAddress, lender: Option<u64>) -> Self {
        Self {
            near: lender,
            ..Self::new(score, row, address)
        }
    }
}

/// The order of documents, and figures about all of them.
#[derive(Default)]
pub(in crate::embedded) struct Ranking {
    /// Best first.
    pub(in crate::embedded) found: Vec<Found>,
    /// How many match, by the number of their scope, if that was asked.
    pub(in crate::embedded) by_scope: Option<BTreeMap<usize, u64>>,
    /// How many hold every word.
    pub(in crate::embedded) with_every_word: u64,
}

/// A question with what it looks up in each segment.
pub(in crate::embedded) struct Search<'q> {
    pub(super) question: &'q Question<'q>,
    pub(super) segments: Vec<SegmentLookups<'q>>,
}

impl<'q> Search<'q> {
    pub(in crate::embedded) fn new(question: &'q Question<'q>) -> tantivy::Result<Self> {
        let mut segments = Vec::new();
        if question.can_match() {
            for (number, gate) in question.statistics.searched.gates.iter().enumerate() {
                if stop::asked() {
                    break;
                }
                segments.push(SegmentLookups::new(question, number, gate)?);
            }
        }
        Ok(Self { question, segments })
    }

    /// Looks at the matches that can matter: those that rank best, and all where they are counted.
    fn pass(&self, selection: &mut Selection) -> tantivy::Result<()> {
        let mut coverages = Coverages::new(self.question);
        let mut scores = WindowScores::new();
        let mut reading = Vec::with_capacity(self.segments.len());
        for lookups in &self.segments {
            if let Some(documents) = lookups.documents() {
                matches_of(lookups, &documents, &mut |found| {
                    self.look_at(lookups.gate, found, &mut coverages, selection);
                })?;
                continue;
            }
            let bounds = Bounds::new(lookups, self.question)?;
            reading.push((lookups, Reading::new(bounds)));
        }
        // The most promising ranges first: what they hold decides how little of the others must be read.
        choose_first(reading.iter_mut().map(|(_, reading)| reading));
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
        Ok(())
    }

    /// How many admitted documents hold every clause; no more than [`EVERY_WORD`] are counted.
    fn with_every_word(&self) -> tantivy::Result<u64> {
        let (mut count, mut scores) = (0, WindowScores::new());
        for lookups in &self.segments {
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
            let Some(within) = gate.scope_of(found.document) else {
                return;
            };
            let counted = selection.by_clauses.entry((within, found.clauses));
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

    fn has_required(&self, clauses: u64) -> bool {
        clauses & self.question.required == self.question.required
    }

    /// What some admitted documents score by themselves.
    pub(super) fn scores_of(
        &self,
        floor: f32,
        documents: &mut [DocAddress],
    ) -> tantivy::Result<HashMap<DocAddress, f32>> {
        documents.sort_unstable();
        let mut coverages = Coverages::new(self.question);
        let mut scores = HashMap::new();
        for lookups in &self.segments {
            let ordinal = lookups.gate.segment.ordinal;
            let here = documents.iter().filter(|one| one.segment_ord == ordinal);
            let here: Vec<DocId> = here.map(|one| one.doc_id).collect();
            if here.is_empty() {
                continue;
            }
            matches_of(lookups, &here, &mut |found| {
                let coverage = coverages.of(found.clauses);
                if self.has_required(found.clauses) && coverage >= floor {
                    let address = DocAddress::new(ordinal, found.document);
                    scores.insert(address, score(found.sum, coverage));
                }
            })?;
        }
        Ok(scores)
    }

    /// Hands over all documents that match, in no particular order, and returns how many there are.
    pub(in crate::embedded) fn for_each(
        &self,
        each: &mut dyn FnMut(&Gate<'_>, DocId),
    ) -> tantivy::Result<Ranking> {
        let mut selection = Selection::new(None, 0, true);
        self.pass(&mut selection)?;
        let floor = selection.best_coverage() * LEAST_COVERAGE;
        let mut coverages = Coverages::new(self.question);
        let (mut by_scope, mut scores) = (BTreeMap::new(), WindowScores::new());
        for lookups in &self.segments {
            let mut taking = Taking(|found: Match| {
                if self.has_required(found.clauses)
                    && coverages.of(found.clauses) >= floor
                    && let Some(scope) = lookups.gate.scope_of(found.document)
                {
                    *by_scope.entry(scope).or_default() += 1;
                    each(lookups.gate, found.document);
                }
            });
            for_each_match(lookups, &mut scores, &mut taking)?;
        }
        Ok(Ranking {
            found: Vec::new(),
            by_scope: Some(by_scope),
            with_every_word: self.with_every_word()?,
        })
    }
}

/// The score of a document: what its clauses score together, times how much of the question they cover.
#[expect(
    clippy::cast_possible_truncation,
    reason = "scores are compared as floats of single precision"
)]
fn score(sum: f64, coverage: f32) -> f32 {
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
struct Selecting<'s, 'q> {
    search: &'s Search<'q>,
    gate: &'s Gate<'q>,
    coverages: &'s mut Coverages<'q>,
    selection: &'s mut Selection,
    reading: &'s mut Reading,
}

impl Matches for Selecting<'_, '_> {
    fn ranges(&mut self, window: usize) -> u64 {
        let threshold = self.selection.threshold().unwrap_or(0.0);
        self.reading.ranges(window, threshold)
    }

    fn negligible(&mut self) -> Negligible {
        let Some(threshold) = self.selection.threshold() else {
            return Negligible::default();
        };
        self.reading.negligible(self.search.question, threshold)
    }

    fn can_matter(&mut self, sum: f64, clauses: u64) -> bool {
        let most = score(sum, self.coverages.of(clauses)) * MARGIN;
        let threshold = self.selection.threshold();
        threshold.is_none_or(|threshold| most >= threshold)
    }

    fn take(&mut self, found: Match) {
        let (search, gate) = (self.search, self.gate);
        search.look_at(gate, found, self.coverages, self.selection);
    }
}

/// One page of a ranking.
pub(in crate::embedded) fn rank(
    search: &Search<'_>,
    page: &Page,
    ties: &Ties<'_>,
) -> tantivy::Result<Ranking> {
    let lenders = if lends(search) { LENDERS } else { 0 };
    let mut page = *page;
    if page.moved {
        page.after = current(search, page.after, lenders, ties)?;
    }
    let (selection, floor) = select(search, &page, lenders, ties)?;
    let by_scope = page
        .count
        .then(|| selection.by_scope(&mut Coverages::new(search.question), floor));
    let mut found = placed(search, selection, floor, ties)?;
    if let Some(after) = page.after {
        retain_following(&mut found, after, ties);
    }
    found.truncate(page.limit);
    Ok(Ranking {
        found,
        by_scope,
        with_every_word: search.with_every_word()?,
    })
}

/// The best documents, and the coverage they need at least.
fn select(
    search: &Search<'_>,
    page: &Page,
    lenders: usize,
    ties: &Ties<'_>,
) -> tantivy::Result<(Selection, f32)> {
    let by_row = matches!(ties, Ties::Rows);
    let mut selection = Selection::new(Some(page), lenders, by_row);
    search.pass(&mut selection)?;
    let floor = selection.best_coverage() * LEAST_COVERAGE;
    if selection.is_spoiled(floor) {
        selection = Selection::new(Some(page), lenders, by_row);
        selection.floor = floor;
        search.pass(&mut selection)?;
    }
    Ok((selection, floor))
}

/// The chosen documents with what neighbours lent them, best first.
fn placed(
    search: &Search<'_>,
    selection: Selection,
    floor: f32,
    ties: &Ties<'_>,
) -> tantivy::Result<Vec<Found>> {
    let most = selection.lenders.most;
    let mut found = selection.page.into_found(floor);
    let mut lenders = selection.lenders.into_found(floor);
    if !lenders.is_empty() {
        arrange(&mut lenders, ties);
        lenders.truncate(most);
        let lent = lend(search, &lenders, floor)?;
        let changed: HashSet<u64> = lent.iter().map(|one| one.row).collect();
        found.retain(|one| !changed.contains(&one.row));
        found.extend(lent);
    }
    arrange(&mut found, ties);
    Ok(found)
}

/// Puts documents into their order. Names are looked up for those only that share a score.
pub(in crate::embedded) fn arrange(found: &mut [Found], ties: &Ties<'_>) {
    found.sort_unstable_by(|one, other| {
        let by_score = other.score.total_cmp(&one.score);
        by_score.then(one.row.cmp(&other.row))
    });
    let Ties::Names(names_of) = ties else {
        return;
    };
    for equal in found.chunk_by_mut(|one, other| one.score.total_cmp(&other.score).is_eq()) {
        if equal.len() < 2 {
            continue;
        }
        let rows: Vec<u64> = equal.iter().map(|one| one.row).collect();
        for (one, name) in equal.iter_mut().zip(names_of(&rows)) {
            one.name = name;
        }
        equal.sort_by(|one, other| one.name.cmp(&other.name));
    }
}

/// Keeps what comes after the last hit of the previous page.
pub(in crate::embedded) fn retain_following(
    found: &mut Vec<Found>,
    after: AfterScore,
    ties: &Ties<'_>,
) {
    let last = match ties {
        Ties::Rows => None,
        Ties::Names(names_of) => names_of(&[after.row]).pop().flatten(),
    };
    found.retain(|one| match one.score.total_cmp(&after.score) {
        Ordering::Less => true,
        Ordering::Greater => false,
        Ordering::Equal => match ties {
            Ties::Rows => one.row > after.row,
            Ties::Names(names_of) => {
                let looked_up = || names_of(&[one.row]).pop().flatten();
                let name = one.name.clone().or_else(looked_up);
                one.row != after.row && name > last
            }
        },
    });
}

/// Where the last hit of the previous page stands now. Without this, a score that has moved a little would lose hits or show
/// them twice.
fn current(
    search: &Search<'_>,
    after: Option<AfterScore>,
    lenders: usize,
    ties: &Ties<'_>,
) -> tantivy::Result<Option<AfterScore>> {
    let Some(last) = after else {
        return Ok(None);
    };
    let view = search.question.statistics.searched.view;
    let address = view.address_of(search.question.row_field, last.row)?;
    // One that is not admitted any more must not tell what it says now.
    let gates = &search.question.statistics.searched.gates;
    let admits = |address: &DocAddress| {
        let gate = gates.get(address.segment_ord as usize);
        gate.is_some_and(|gate| gate.admits(address.doc_id))
    };
    let Some(address) = address.filter(admits) else {
        return Ok(after);
    };
    let none = Page {
        limit: 0,
        after: None,
        count: false,
        moved: false,
    };
    let (selection, floor) = select(search, &none, lenders, ties)?;
    let mut lent = placed(search, selection, floor, ties)?.into_iter();
    let score = match lent.find(|one| one.row == last.row) {
        Some(lent) => Some(lent.score),
        None => search.scores_of(floor, &mut [address])?.remove(&address),
    };
    Ok(Some(AfterScore {
        score: score.unwrap_or(last.score),
        ..last
    }))
}
