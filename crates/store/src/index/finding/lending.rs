//! What is said next to a good answer often is the answer, with none of the words of the question, or with some of them where its
//! neighbour has the others. So the best documents lend to their neighbours in the same conversation: a part of their score, and a
//! part of what they cover of the question.

use tantivy::DocAddress;

use super::rank::{Found, NEIGHBOURS};
use super::search::{Search, score};
use super::selection::Coverages;
use super::threads::Threads;
use crate::stop;

/// What a document lends of its own score to a neighbour that has words of the question, too.
const SHARE: f32 = 0.3;
/// How much a word of the question counts for coverage that a lender beside a document has, and the document has not.
const BESIDE: f32 = 0.5;
/// What it lends to those without any before it, and to those after it: an answer follows its question.
const SILENT_SHARES: [f32; 2] = [0.2, 0.4];

/// Whether documents lend. Where the question says what must occur, or must not, a neighbour cannot stand for it.
pub(super) fn lends(search: &Search<'_>) -> bool {
    let question = search.question;
    let mut gates = question.statistics.searched.gates.iter();
    question.required == 0
        && question.excluded.is_empty()
        && gates.next().is_some_and(|gate| gate.scopes.has_threads())
}

/// What a document gets from lenders beside it.
#[derive(Default)]
struct Loan {
    /// Its row. Documents without one are beside no lender.
    row: Option<u64>,
    /// The clauses that the lenders hold, one bit each.
    clauses: u64,
    /// A share of what the best of them scores.
    share: f32,
    /// Instead, if it has no word of the question; and from which row.
    silent_share: f32,
    lender: u64,
}

/// A lender and a document beside it.
struct Pair {
    lender: DocAddress,
    lender_row: u64,
    neighbour: DocAddress,
    row: u64,
    silent_share: f32,
}

/// The neighbours of the lenders, with what they score in the end.
pub(super) fn lend(search: &Search<'_>, lenders: &[Found]) -> tantivy::Result<Vec<Found>> {
    let pairs = pairs(search, lenders)?;
    let mut documents: Vec<DocAddress> = pairs.iter().map(|pair| pair.neighbour).collect();
    documents.extend(lenders.iter().map(|lender| lender.address));
    documents.sort_unstable();
    documents.dedup();
    // What neighbours hold of the question counts, however little they cover: the cut is for those that nobody lends to.
    let matches = search.matches_among(&documents)?;
    let place_of = |address: &DocAddress| documents.binary_search(address).unwrap_or(usize::MAX);
    let places: Vec<[usize; 2]> = pairs
        .iter()
        .map(|pair| [&pair.lender, &pair.neighbour].map(place_of))
        .collect();
    let mut loans: Vec<Loan> = documents.iter().map(|_| Loan::default()).collect();
    for (pair, [lender, neighbour]) in pairs.iter().zip(&places) {
        if let Some(loan) = loans.get_mut(*neighbour) {
            loan.row = Some(pair.row);
            let held = matches.get(*lender).copied().flatten();
            loan.clauses |= held.map_or(0, |held| held.clauses);
        }
    }
    let mut coverages = Coverages::new(search.question);
    let own_scores = matches.iter().zip(&loans).map(|(held, loan)| {
        held.map(|held| {
            let own = coverages.of(held.clauses);
            let both = coverages.of(held.clauses | loan.clauses);
            score(held.sum, own + BESIDE * (both - own))
        })
    });
    let scores: Vec<Option<f32>> = own_scores.collect();
    for (pair, [lender, neighbour]) in pairs.iter().zip(&places) {
        let Some(loan) = loans.get_mut(*neighbour) else {
            continue;
        };
        let lends = scores.get(*lender).copied().flatten().unwrap_or_default();
        loan.share = loan.share.max(lends * SHARE);
        let silent_share = lends * pair.silent_share;
        if silent_share > loan.silent_share {
            loan.silent_share = silent_share;
            loan.lender = pair.lender_row;
        }
    }
    let found = documents.iter().zip(loans).zip(scores);
    let found = found.filter_map(|((address, loan), score)| {
        let (score, lender) = match score {
            Some(own) => (own + loan.share, None),
            None => (loan.silent_share, Some(loan.lender)),
        };
        Some(Found::lent(score, loan.row?, *address, lender))
    });
    Ok(found.collect())
}

/// Each lender with each document beside it in its conversation.
fn pairs(search: &Search<'_>, lenders: &[Found]) -> tantivy::Result<Vec<Pair>> {
    let mut threads = Threads::new(&search.question.statistics.searched.gates);
    let mut pairs = Vec::with_capacity(lenders.len() * NEIGHBOURS);
    for lender in lenders {
        if stop::asked() {
            break;
        }
        let Some(position) = threads.position(lender.address)? else {
            continue;
        };
        for (side, silent_share) in threads.sides(&position)?.into_iter().zip(SILENT_SHARES) {
            pairs.extend(side.into_iter().map(|(row, neighbour)| Pair {
                lender: lender.address,
                lender_row: lender.row,
                neighbour,
                row,
                silent_share,
            }));
        }
    }
    Ok(pairs)
}
