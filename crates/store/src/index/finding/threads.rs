//! Conversations: what is said next to a good answer often is the answer, with none of the words of the question, or with some of
//! them where its neighbour has the others. So the best documents lend to their neighbours in the same conversation: a part of
//! their score, and a part of what they cover of the question.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use tantivy::columnar::{Column, StrColumn};
use tantivy::schema::Field;
use tantivy::{DocAddress, DocId};

use super::rank::{Found, NEIGHBOURS};
use super::search::{Search, score};
use super::selection::Coverages;
use super::{Gate, Searched};
use crate::index::engine::Segment;
use crate::stop;

/// What a document lends of its own score to a neighbour that has words of the question, too.
const SHARE: f32 = 0.3;
/// How much a word of the question counts for coverage that a lender beside a document has, and the document has not.
const BESIDE: f32 = 0.5;
/// What it lends to those without any before it, and to those after it: an answer follows its question.
const SILENT_SHARES: [f32; 2] = [0.2, 0.4];
/// After how many hidden documents in a row cancellation is checked.
const LOOK_EVERY: usize = 1024;

/// The columns that say which conversation a record belongs to, and where it stands in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::index) struct ThreadColumns {
    /// The conversation: a column of strings, or of their hashes.
    pub(in crate::index) thread: String,
    pub(in crate::index) is_text: bool,
    /// The order within it.
    pub(in crate::index) order: String,
    pub(in crate::index) is_number: bool,
}

/// The documents of a segment in the order of their conversations, made when first needed.
#[derive(Default)]
pub(in crate::index) struct SegmentThreads(Mutex<ByThread>);

/// By stream and columns.
type ByThread = HashMap<(u64, ThreadColumns), Arc<ThreadDocuments>>;

/// The documents of a stream in a segment by conversation, order and row.
struct ThreadDocuments {
    documents: Box<[DocId]>,
    /// Each conversation, by its number in the segment, with the place of its first document.
    begins: Box<[(i64, usize)]>,
}

impl ThreadDocuments {
    /// The documents of a conversation.
    fn range(&self, local: i64) -> Option<Range<usize>> {
        let at = self.begins.partition_point(|one| one.0 < local);
        let begin = self.begins.get(at).filter(|one| one.0 == local)?.1;
        let next = self.begins.get(at + 1);
        Some(begin..next.map_or(self.documents.len(), |next| next.1))
    }
}

/// Whether documents lend. Where the question says what must occur, or must not, a neighbour cannot stand for it.
pub(super) fn lends(search: &Search<'_>) -> bool {
    let question = search.question;
    let mut gates = question.statistics.searched.gates.iter();
    question.required == 0
        && question.excluded.is_empty()
        && gates.next().is_some_and(|gate| gate.scopes.has_threads())
}

/// The conversation of a document.
#[derive(Clone, PartialEq, Eq, Hash)]
enum ThreadName {
    Text(Vec<u8>),
    Hash(i64),
}

/// A document in its conversation.
#[derive(Clone)]
struct Position {
    scope: usize,
    thread: ThreadName,
    order: i64,
    row: u64,
}

/// What a document gets from lenders beside it.
#[derive(Default)]
struct Loan {
    row: u64,
    /// The clauses that they hold, one bit each.
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
    let mut addresses: Vec<DocAddress> = pairs.iter().map(|pair| pair.neighbour).collect();
    addresses.extend(lenders.iter().map(|lender| lender.address));
    addresses.sort_unstable();
    addresses.dedup();
    // What neighbours hold of the question counts, however little they cover: the cut is for those that nobody lends to.
    let matches = search.matches_among(&mut addresses)?;
    let clauses = |address: &DocAddress| matches.get(address).map_or(0, |found| found.clauses);
    let mut loans: HashMap<DocAddress, Loan> = HashMap::new();
    for pair in &pairs {
        let loan = loans.entry(pair.neighbour).or_default();
        loan.row = pair.row;
        loan.clauses |= clauses(&pair.lender);
    }
    let mut coverages = Coverages::new(search.question);
    let mut scores: HashMap<DocAddress, f32> = HashMap::new();
    for (address, found) in &matches {
        let beside = loans.get(address).map_or(0, |loan| loan.clauses);
        let own = coverages.of(found.clauses);
        let both = coverages.of(found.clauses | beside);
        let coverage = own + BESIDE * (both - own);
        scores.insert(*address, score(found.sum, coverage));
    }
    let score_of = |address: &DocAddress| scores.get(address).copied();
    for pair in &pairs {
        let Some(loan) = loans.get_mut(&pair.neighbour) else {
            continue;
        };
        let lends = score_of(&pair.lender).unwrap_or_default();
        loan.share = loan.share.max(lends * SHARE);
        let silent_share = lends * pair.silent_share;
        if silent_share > loan.silent_share {
            loan.silent_share = silent_share;
            loan.lender = pair.lender_row;
        }
    }
    let found = loans.into_iter().map(|(address, loan)| {
        let (score, lender) = match score_of(&address) {
            Some(own) => (own + loan.share, None),
            None => (loan.silent_share, Some(loan.lender)),
        };
        Found::lent(score, loan.row, address, lender)
    });
    Ok(found.collect())
}

/// Each lender with each document beside it in its conversation.
fn pairs(search: &Search<'_>, lenders: &[Found]) -> tantivy::Result<Vec<Pair>> {
    let mut threads = Threads {
        gates: &search.question.statistics.searched.gates,
        opened: HashMap::new(),
        parts: HashMap::new(),
    };
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

/// For each of some rows, those of the admitted documents right before and right after it in its conversation.
pub(in crate::index) fn neighbours(
    searched: &Searched<'_>,
    row_field: Field,
    rows: &[u64],
) -> tantivy::Result<Vec<[Option<u64>; 2]>> {
    let mut threads = Threads {
        gates: &searched.gates,
        opened: HashMap::new(),
        parts: HashMap::new(),
    };
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        let mut sides = [None, None];
        if let Some(address) = searched.view.address_of(row_field, *row)?
            && let Some(position) = threads.position(address)?
        {
            let found = threads.sides(&position)?;
            sides = found.map(|side| side.first().map(|one| one.0));
        }
        all.push(sides);
    }
    Ok(all)
}

/// The conversation columns of a segment.
struct Columns {
    thread: ThreadColumn,
    order: OrderColumn,
}

enum ThreadColumn {
    Text(StrColumn),
    Hash(Column<i64>),
}

enum OrderColumn {
    Integer(Column<i64>),
    Number(Column<f64>),
}

impl Columns {
    fn open(segment: Segment<'_>, names: &ThreadColumns) -> tantivy::Result<Option<Self>> {
        let columns = segment.reader.fast_fields();
        let thread = if names.is_text {
            columns.str(&names.thread)?.map(ThreadColumn::Text)
        } else {
            columns.column_opt(&names.thread)?.map(ThreadColumn::Hash)
        };
        let order = if names.is_number {
            columns.column_opt(&names.order)?.map(OrderColumn::Number)
        } else {
            columns.column_opt(&names.order)?.map(OrderColumn::Integer)
        };
        Ok(match (thread, order) {
            (Some(thread), Some(order)) => Some(Self { thread, order }),
            _ => None,
        })
    }

    /// The conversation of a document, as a number of this segment.
    fn local(&self, document: DocId) -> Option<i64> {
        match &self.thread {
            ThreadColumn::Text(column) => column.ords().first(document).map(u64::cast_signed),
            ThreadColumn::Hash(column) => column.first(document),
        }
    }

    /// The number that a conversation has in this segment.
    fn local_of(&self, name: &ThreadName) -> tantivy::Result<Option<i64>> {
        Ok(match (&self.thread, name) {
            (ThreadColumn::Text(column), ThreadName::Text(text)) => {
                column.dictionary().term_ord(text)?.map(u64::cast_signed)
            }
            (ThreadColumn::Hash(_), ThreadName::Hash(hash)) => Some(*hash),
            _ => None,
        })
    }

    fn order(&self, document: DocId) -> Option<i64> {
        match &self.order {
            OrderColumn::Integer(column) => column.first(document),
            OrderColumn::Number(column) => column.first(document).map(|number| {
                // Orders like the number: negative ones have all their other bits turned.
                let bits = number.to_bits().cast_signed();
                bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
            }),
        }
    }
}

/// The conversations of one stream in one segment.
struct SegmentThread {
    columns: Columns,
    sorted: Arc<ThreadDocuments>,
}

/// The conversations of everything that is searched, opened as needed.
struct Threads<'s> {
    gates: &'s [Gate<'s>],
    /// By segment and scope.
    opened: HashMap<(usize, usize), Option<SegmentThread>>,
    /// By scope and conversation: the segments that have a part of it, and where.
    parts: HashMap<(usize, ThreadName), Arc<[(usize, Range<usize>)]>>,
}

impl<'s> Threads<'s> {
    fn open(
        &mut self,
        segment: usize,
        scope: usize,
    ) -> tantivy::Result<Option<(&'s Gate<'s>, &SegmentThread)>> {
        let Some(gate) = self.gates.get(segment) else {
            return Ok(None);
        };
        let opened = match self.opened.entry((segment, scope)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let opened = match gate.scopes.threads(scope) {
                    None => None,
                    Some(names) => Columns::open(gate.segment, names)?.map(|columns| {
                        let stream = gate.scopes.stream(scope);
                        let sorted = sorted(gate.segment, stream, names, &columns);
                        SegmentThread { columns, sorted }
                    }),
                };
                place.insert(opened)
            }
        };
        Ok(opened.as_ref().map(|opened| (gate, opened)))
    }

    /// Where a document stands, if it belongs to a conversation.
    fn position(&mut self, address: DocAddress) -> tantivy::Result<Option<Position>> {
        let (segment, document) = (address.segment_ord as usize, address.doc_id);
        let scope = self
            .gates
            .get(segment)
            .and_then(|gate| gate.scope_of(document));
        let Some(scope) = scope else {
            return Ok(None);
        };
        let Some((gate, opened)) = self.open(segment, scope)? else {
            return Ok(None);
        };
        let columns = &opened.columns;
        let (Some(local), Some(order)) = (columns.local(document), columns.order(document)) else {
            return Ok(None);
        };
        let thread = match &columns.thread {
            ThreadColumn::Hash(_) => ThreadName::Hash(local),
            ThreadColumn::Text(column) => {
                let mut text = Vec::new();
                let dictionary = column.dictionary();
                dictionary.ord_to_term(local.cast_unsigned(), &mut text)?;
                ThreadName::Text(text)
            }
        };
        let row = gate.segment.columns.rows.first(document);
        Ok(Some(Position {
            scope,
            thread,
            order,
            row: row.unwrap_or(u64::MAX),
        }))
    }

    /// The parts of a conversation, by segment.
    fn parts(&mut self, position: &Position) -> tantivy::Result<Arc<[(usize, Range<usize>)]>> {
        let name = (position.scope, position.thread.clone());
        if let Some(known) = self.parts.get(&name) {
            return Ok(Arc::clone(known));
        }
        let mut parts = Vec::new();
        for segment in 0..self.gates.len() {
            let Some((_, opened)) = self.open(segment, position.scope)? else {
                continue;
            };
            let local = opened.columns.local_of(&position.thread)?;
            let part = local.and_then(|local| opened.sorted.range(local));
            parts.extend(part.map(|part| (segment, part)));
        }
        let parts: Arc<[_]> = parts.into();
        self.parts.insert(name, Arc::clone(&parts));
        Ok(parts)
    }

    /// The admitted documents next to one in its conversation, on both sides, with their rows; the nearest first.
    fn sides(&mut self, position: &Position) -> tantivy::Result<[Vec<(u64, DocAddress)>; 2]> {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for (segment, part) in &*self.parts(position)? {
            let Some((gate, opened)) = self.open(*segment, position.scope)? else {
                continue;
            };
            let documents = opened.sorted.documents.get(part.clone());
            let documents = documents.unwrap_or_default();
            let here = (position.order, position.row);
            let at = documents.partition_point(|document| opened.place(gate, *document) < here);
            let (earlier, later) = documents.split_at(at);
            before.extend(opened.nearest(gate, position, &mut earlier.iter().rev()));
            after.extend(opened.nearest(gate, position, &mut later.iter()));
        }
        before.sort_unstable_by(|one, other| other.cmp(one));
        after.sort_unstable();
        before.truncate(NEIGHBOURS / 2);
        after.truncate(NEIGHBOURS / 2);
        let named = |side: Vec<(i64, u64, DocAddress)>| {
            let side = side.into_iter();
            side.map(|(_, row, address)| (row, address)).collect()
        };
        Ok([named(before), named(after)])
    }
}

impl SegmentThread {
    /// Order and row of a document.
    fn place(&self, gate: &Gate<'_>, document: DocId) -> (i64, u64) {
        let order = self.columns.order(document).unwrap_or(i64::MAX);
        let row = gate.segment.columns.rows.first(document);
        (order, row.unwrap_or(u64::MAX))
    }

    /// The first admitted documents on one side of a position.
    fn nearest(
        &self,
        gate: &Gate<'_>,
        position: &Position,
        side: &mut dyn Iterator<Item = &DocId>,
    ) -> Vec<(i64, u64, DocAddress)> {
        let mut found = Vec::new();
        for (seen, document) in side.enumerate() {
            let is_stopped = seen % LOOK_EVERY == LOOK_EVERY - 1 && stop::asked();
            if is_stopped || found.len() >= NEIGHBOURS / 2 {
                break;
            }
            let (order, row) = self.place(gate, *document);
            if row != position.row && gate.scope_of(*document) == Some(position.scope) {
                found.push((order, row, DocAddress::new(gate.segment.ordinal, *document)));
            }
        }
        found
    }
}

/// The documents of a stream in a segment, as they are known or as they are found now.
fn sorted(
    segment: Segment<'_>,
    stream: u64,
    names: &ThreadColumns,
    columns: &Columns,
) -> Arc<ThreadDocuments> {
    let kept = &segment.columns.threads.0;
    let key = (stream, names.clone());
    let known = kept
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get(&key)
        .cloned();
    if let Some(known) = known {
        return known;
    }
    let rows = &segment.columns.rows;
    let streams = &segment.columns.streams;
    let mut all: Vec<(i64, i64, u64, DocId)> = Vec::new();
    for document in 0..segment.reader.max_doc() {
        if streams.first(document) != Some(stream) {
            continue;
        }
        if let (Some(thread), Some(order)) = (columns.local(document), columns.order(document)) {
            let row = rows.first(document).unwrap_or(u64::MAX);
            all.push((thread, order, row, document));
        }
    }
    all.sort_unstable();
    let mut begins: Vec<(i64, usize)> = Vec::new();
    for (place, one) in all.iter().enumerate() {
        if begins.last().is_none_or(|last| last.0 != one.0) {
            begins.push((one.0, place));
        }
    }
    let sorted = Arc::new(ThreadDocuments {
        documents: all.into_iter().map(|one| one.3).collect(),
        begins: begins.into(),
    });
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    kept.insert(key, Arc::clone(&sorted));
    sorted
}
