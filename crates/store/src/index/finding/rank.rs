//! The order of the documents that answer a question: how well each does, and which part of that order is wanted.
//!
//! Equal scores are ordered by row, that is by when a record first came. Where a scope admits only some records of a stream,
//! a record may have come before it was admitted, and the order must not show that; then they are ordered by name.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};

use tantivy::DocAddress;

use super::lending::{lend, lends};
use super::search::{LEAST_COVERAGE, Search};
use super::selection::{Coverages, Selection};
use crate::catalog::StreamRef;

/// How many of the best documents lend to their neighbours.
const LENDERS: usize = 200;
/// How many neighbours one document lends to at most.
pub(super) const NEIGHBOURS: usize = 4;

/// Where the previous page of a ranking ended.
#[derive(Debug, Clone, Copy)]
pub(in crate::index) struct AfterScore {
    pub(in crate::index) score: f32,
    pub(in crate::index) row: u64,
}

/// Which part of a ranking is wanted, and what besides.
#[derive(Debug, Clone, Copy)]
pub(in crate::index) struct Page {
    pub(in crate::index) limit: usize,
    pub(in crate::index) after: Option<AfterScore>,
    /// Whether all that match are counted.
    pub(in crate::index) count: bool,
    /// What is written may have changed the score of the last hit; then the page goes on after the score it has now.
    pub(in crate::index) moved: bool,
}

/// The stream of a record and its key in ordering form.
pub(in crate::index) type Name = (StreamRef, String);

/// What orders equal scores; the smaller comes first.
pub(in crate::index) enum Ties<'t> {
    /// The row.
    Rows,
    /// The name, looked up by row; a record that is gone has none.
    Names(&'t dyn Fn(&[u64]) -> Vec<Option<Name>>),
}

/// A document of a ranking.
#[derive(Debug, Clone)]
pub(in crate::index) struct Found {
    pub(in crate::index) score: f32,
    pub(in crate::index) row: u64,
    /// Known where it orders equal scores.
    name: Option<Name>,
    pub(in crate::index) address: DocAddress,
    /// For a document that holds nothing of the question: the row of the neighbour it owes its place to.
    pub(in crate::index) near: Option<u64>,
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
    pub(in crate::index) fn by_row(score: f32, row: u64) -> Self {
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

/// The number of a document's scope, and its year, where it has a time and years are counted.
pub(in crate::index) type CountedBy = (usize, Option<i16>);
pub(in crate::index) type Counts = BTreeMap<CountedBy, u64>;

/// The order of documents, and figures about all of them.
#[derive(Default)]
pub(in crate::index) struct Ranking {
    /// Best first.
    pub(in crate::index) found: Vec<Found>,
    /// How many match, if that was asked.
    pub(in crate::index) counts: Option<Counts>,
    /// How many hold every word.
    pub(in crate::index) with_every_word: u64,
}

/// One page of a ranking.
pub(in crate::index) fn rank(
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
    let counts = page
        .count
        .then(|| selection.counts(&mut Coverages::new(search.question), floor));
    let mut found = placed(search, selection, floor, ties)?;
    if let Some(after) = page.after {
        retain_following(&mut found, after, ties);
    }
    found.truncate(page.limit);
    Ok(Ranking {
        found,
        counts,
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
        let lent = lend(search, &lenders)?;
        let changed: HashSet<u64> = lent.iter().map(|one| one.row).collect();
        found.retain(|one| !changed.contains(&one.row));
        found.extend(lent);
    }
    arrange(&mut found, ties);
    Ok(found)
}

/// Puts documents into their order. Names are looked up for those only that share a score.
pub(in crate::index) fn arrange(found: &mut [Found], ties: &Ties<'_>) {
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
pub(in crate::index) fn retain_following(
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
        None => search.score_of(address, floor)?,
    };
    Ok(Some(AfterScore {
        score: score.unwrap_or(last.score),
        ..last
    }))
}
