//! Conversations: which documents stand next to another in its conversation.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hasher as _;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use siphasher::sip::SipHasher13;
use tantivy::columnar::{Column, StrColumn};
use tantivy::schema::Field;
use tantivy::{DocAddress, DocId};

use super::rank::NEIGHBOURS;
use super::{Gate, Searched};
use crate::index::engine::Segment;
use crate::stop;

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

/// The documents of a stream in a segment by conversation, order and row. Only every so many know their order here: looking at columns
/// for each step of a search would take longer than everything else.
struct ThreadDocuments {
    documents: Box<[DocId]>,
    /// The orders of the first document and of each [`SAMPLED`]th after it.
    orders: Box<[i64]>,
    /// The conversations, in order.
    names: Box<[ThreadName]>,
    /// The place of the first document of each, and the end.
    begins: Box<[u32]>,
    /// Of a column of strings: the name of each.
    by_ordinal: Box<[ThreadName]>,
}

/// Of how many documents one knows its order without its column.
const SAMPLED: usize = 4;

impl ThreadDocuments {
    fn new(segment: Segment<'_>, stream: u64, columns: &Columns) -> tantivy::Result<Self> {
        let by_ordinal = columns.names()?;
        let rows = &segment.columns.rows;
        let streams = &segment.columns.streams;
        let mut all: Vec<(ThreadName, i64, u64, DocId)> = Vec::new();
        for document in 0..segment.reader.max_doc() {
            if streams.first(document) != Some(stream) {
                continue;
            }
            let name = columns.name(&by_ordinal, document);
            if let (Some(name), Some(order)) = (name, columns.order(document)) {
                let row = rows.first(document).unwrap_or(u64::MAX);
                all.push((name, order, row, document));
            }
        }
        all.sort_unstable();
        let (mut names, mut begins) = (Vec::new(), Vec::new());
        for (place, one) in (0..).zip(&all) {
            if names.last() != Some(&one.0) {
                names.push(one.0);
                begins.push(place);
            }
        }
        begins.push(all.len().try_into().unwrap_or(u32::MAX));
        Ok(Self {
            orders: all.iter().step_by(SAMPLED).map(|one| one.1).collect(),
            documents: all.into_iter().map(|one| one.3).collect(),
            names: names.into(),
            begins: begins.into(),
            by_ordinal,
        })
    }

    /// The places of the documents of a conversation.
    fn range(&self, name: ThreadName) -> Option<Range<usize>> {
        let at = self.names.binary_search(&name).ok()?;
        let place = |at: usize| self.begins.get(at).map(|place| *place as usize);
        Some(place(at)?..place(at + 1)?)
    }

    /// The places of a part, among which a document of this order would stand.
    fn around(&self, part: Range<usize>, order: i64) -> Range<usize> {
        let first = part.start.div_ceil(SAMPLED);
        let sampled = self.orders.get(first..part.end.div_ceil(SAMPLED));
        let sampled = sampled.unwrap_or_default();
        let before = sampled.partition_point(|known| *known < order);
        let until = sampled.partition_point(|known| *known <= order);
        let place = |at: usize| (first + at) * SAMPLED;
        let begin = before.checked_sub(1).map_or(part.start, place);
        let end = if until < sampled.len() {
            place(until)
        } else {
            part.end
        };
        begin..end
    }
}

/// The conversation of a document, as a hash: texts are looked up in no dictionary. Two of one hash would be one conversation.
type ThreadName = i64;

/// A document in its conversation.
pub(super) struct Position {
    address: DocAddress,
    scope: usize,
    thread: ThreadName,
    order: i64,
    row: u64,
}

/// A document beside another, with its order and row.
type Beside = (i64, u64, DocAddress);

/// Where the documents of a conversation stand: by segment, their places.
type Parts = Arc<[(usize, Range<usize>)]>;

/// For each of some rows, those of the admitted documents right before and right after it in its conversation.
pub(in crate::index) fn neighbours(
    searched: &Searched<'_>,
    row_field: Field,
    rows: &[u64],
) -> tantivy::Result<Vec<[Option<u64>; 2]>> {
    let mut threads = Threads::new(&searched.gates);
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

    /// The names of all conversations in a column of strings.
    fn names(&self) -> tantivy::Result<Box<[ThreadName]>> {
        let mut names = Vec::new();
        if let ThreadColumn::Text(column) = &self.thread {
            let mut texts = column.dictionary().stream()?;
            while texts.advance() {
                let mut hasher = SipHasher13::new();
                hasher.write(texts.key());
                names.push(hasher.finish().cast_signed());
            }
        }
        Ok(names.into())
    }

    /// The conversation of a document.
    fn name(&self, by_ordinal: &[ThreadName], document: DocId) -> Option<ThreadName> {
        match &self.thread {
            ThreadColumn::Text(column) => {
                let ordinal = column.ords().first(document)?;
                by_ordinal.get(usize::try_from(ordinal).ok()?).copied()
            }
            ThreadColumn::Hash(column) => column.first(document),
        }
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
pub(super) struct Threads<'s> {
    gates: &'s [Gate<'s>],
    /// By scope and segment.
    by_scope: HashMap<usize, Vec<Option<SegmentThread>>>,
    /// By scope and conversation: the segments that have a part of it, and where.
    parts: HashMap<(usize, ThreadName), Parts>,
}

impl<'s> Threads<'s> {
    pub(super) fn new(gates: &'s [Gate<'s>]) -> Self {
        Self {
            gates,
            by_scope: HashMap::new(),
            parts: HashMap::new(),
        }
    }

    /// The conversations of a scope in each segment.
    fn open(&mut self, scope: usize) -> tantivy::Result<&[Option<SegmentThread>]> {
        match self.by_scope.entry(scope) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => {
                let opened = self
                    .gates
                    .iter()
                    .map(|gate| SegmentThread::open(gate, scope));
                Ok(place.insert(opened.collect::<tantivy::Result<_>>()?))
            }
        }
    }

    /// Where a document stands, if it belongs to a conversation.
    pub(super) fn position(&mut self, address: DocAddress) -> tantivy::Result<Option<Position>> {
        let (segment, document) = (address.segment_ord as usize, address.doc_id);
        let gates = self.gates;
        let Some((gate, scope)) = gates
            .get(segment)
            .and_then(|gate| Some((gate, gate.scope_of(document)?)))
        else {
            return Ok(None);
        };
        let Some(Some(opened)) = self.open(scope)?.get(segment) else {
            return Ok(None);
        };
        let thread = opened.columns.name(&opened.sorted.by_ordinal, document);
        let (Some(thread), Some(order)) = (thread, opened.columns.order(document)) else {
            return Ok(None);
        };
        Ok(Some(Position {
            address,
            scope,
            thread,
            order,
            row: row(gate, document),
        }))
    }

    /// The parts of a conversation, by segment.
    fn parts(&mut self, position: &Position) -> tantivy::Result<Parts> {
        let name = (position.scope, position.thread);
        if let Some(known) = self.parts.get(&name) {
            return Ok(Arc::clone(known));
        }
        let opened = self.open(position.scope)?.iter().enumerate();
        let parts = opened.filter_map(|(segment, opened)| {
            let part = opened.as_ref()?.sorted.range(position.thread)?;
            Some((segment, part))
        });
        let parts: Parts = parts.collect();
        self.parts.insert(name, Arc::clone(&parts));
        Ok(parts)
    }

    /// The admitted documents next to one in its conversation, on both sides, with their rows; the nearest first.
    pub(super) fn sides(
        &mut self,
        position: &Position,
    ) -> tantivy::Result<[Vec<(u64, DocAddress)>; 2]> {
        let (mut before, mut after) = (Nearest::new(true), Nearest::new(false));
        let parts = self.parts(position)?;
        let gates = self.gates;
        let opened = self.open(position.scope)?;
        // Mostly the others are in the same segment, and then all other parts are further away.
        let own = position.address.segment_ord as usize;
        let (here, elsewhere): (Vec<_>, Vec<_>) = parts.iter().partition(|part| part.0 == own);
        for (segment, part) in here.into_iter().chain(elsewhere) {
            if let (Some(gate), Some(Some(opened))) = (gates.get(*segment), opened.get(*segment)) {
                let at = opened.place_of(gate, part.clone(), position);
                let documents = |part| opened.sorted.documents.get(part).unwrap_or_default();
                let earlier = documents(part.start..at).iter().rev();
                before.take(opened, gate, position, &mut earlier.copied());
                let later = documents(at..part.end).iter();
                after.take(opened, gate, position, &mut later.copied());
            }
        }
        Ok([before, after].map(|side| {
            let side = side.nearest.into_iter();
            side.map(|(_, row, address)| (row, address)).collect()
        }))
    }
}

/// The documents on one side of another, the nearest first.
struct Nearest {
    is_before: bool,
    nearest: Vec<Beside>,
}

impl Nearest {
    fn new(is_before: bool) -> Self {
        Self {
            is_before,
            nearest: Vec::with_capacity(NEIGHBOURS / 2 + 1),
        }
    }

    /// Whether one is nearer than another. Of one order, rows decide.
    fn is_nearer(&self, one: &Beside, other: &Beside) -> bool {
        let (one, other) = ((one.0, one.1), (other.0, other.1));
        if self.is_before {
            one > other
        } else {
            one < other
        }
    }

    /// Takes those of one part, of which the nearest come first.
    fn take(
        &mut self,
        opened: &SegmentThread,
        gate: &Gate<'_>,
        position: &Position,
        side: &mut dyn Iterator<Item = DocId>,
    ) {
        let mut taken = 0;
        for (seen, document) in side.enumerate() {
            let is_stopped = seen % LOOK_EVERY == LOOK_EVERY - 1 && stop::asked();
            if is_stopped || taken >= NEIGHBOURS / 2 {
                return;
            }
            let address = DocAddress::new(gate.segment.ordinal, document);
            if address == position.address {
                continue;
            }
            let order = opened.columns.order(document).unwrap_or(i64::MAX);
            let furthest = self.nearest.get(NEIGHBOURS / 2 - 1);
            let distance = |order: i64| order.abs_diff(position.order);
            if furthest.is_some_and(|furthest| distance(order) > distance(furthest.0)) {
                return;
            }
            if gate.scope_of(document) == Some(position.scope) {
                let beside = (order, row(gate, document), address);
                let at = self
                    .nearest
                    .partition_point(|known| self.is_nearer(known, &beside));
                self.nearest.insert(at, beside);
                self.nearest.truncate(NEIGHBOURS / 2);
                taken += 1;
            }
        }
    }
}

fn row(gate: &Gate<'_>, document: DocId) -> u64 {
    let row = gate.segment.columns.rows.first(document);
    row.unwrap_or(u64::MAX)
}

impl SegmentThread {
    fn open(gate: &Gate<'_>, scope: usize) -> tantivy::Result<Option<Self>> {
        let Some(names) = gate.scopes.threads(scope) else {
            return Ok(None);
        };
        let Some(columns) = Columns::open(gate.segment, names)? else {
            return Ok(None);
        };
        let stream = gate.scopes.stream(scope);
        let sorted = sorted(gate.segment, stream, names, &columns)?;
        Ok(Some(Self { columns, sorted }))
    }

    /// Where a document stands, or would stand, in a part of its conversation.
    fn place_of(&self, gate: &Gate<'_>, part: Range<usize>, position: &Position) -> usize {
        let around = self.sorted.around(part, position.order);
        let documents = self.sorted.documents.get(around.clone());
        let before = |document: &DocId| {
            let order = self.columns.order(*document).unwrap_or(i64::MAX);
            let by_order = order.cmp(&position.order);
            by_order
                .then_with(|| row(gate, *document).cmp(&position.row))
                .is_lt()
        };
        around.start + documents.unwrap_or_default().partition_point(before)
    }
}

/// The documents of a stream in a segment, as they are known or as they are found now.
fn sorted(
    segment: Segment<'_>,
    stream: u64,
    names: &ThreadColumns,
    columns: &Columns,
) -> tantivy::Result<Arc<ThreadDocuments>> {
    let kept = &segment.columns.threads.0;
    let key = (stream, names.clone());
    let known = kept
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get(&key)
        .cloned();
    if let Some(known) = known {
        return Ok(known);
    }
    let sorted = Arc::new(ThreadDocuments::new(segment, stream, columns)?);
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    kept.insert(key, Arc::clone(&sorted));
    Ok(sorted)
}
