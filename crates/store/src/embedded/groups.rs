//! Splitting an aggregate into groups: by value, by calendar bucket, or not at all.

use std::collections::HashMap;

use contract::scalar::FieldKind;
use tantivy::columnar::{Column, StrColumn};
use tantivy::{DocAddress, DocId, Searcher, SegmentReader};

use super::buckets::Buckets;
use super::layout::SlotKind;
use super::restrict::{column_of, unsupported};
use super::sources::StreamEntry;
use super::tally::{Measure, Outcome, Tally, Values};
use crate::Result;
use crate::search::{GroupKey, Grouping};

/// Buckets up to this many are kept in an array; more in a map.
const DENSE_BUCKETS: i64 = 1 << 20;

/// What the records of a group share, before it gets its name.
enum By {
    Nothing,
    Strings(String),
    Integers(String, FieldKind),
    Numbers(String),
    Time(String, Buckets),
}

/// All groups so far.
pub(super) struct Groups<'m> {
    by: By,
    measure: &'m Measure,
    /// Groups named by text. Each segment numbers its texts on its own, so they are brought together at the end.
    texts: Vec<(StrColumn, Counts)>,
    /// Groups named by a number.
    numbers: HashMap<i64, (u64, Tally)>,
    /// Records without a value; all records, when nothing splits them.
    rest: (u64, Tally),
}

/// One group: its name, how many records, and what they add up to.
pub(super) type Finished = (GroupKey, u64, Outcome);

impl<'m> Groups<'m> {
    pub(super) fn new(
        grouping: Option<&Grouping>,
        entry: &StreamEntry,
        searcher: &Searcher,
        measure: &'m Measure,
    ) -> Result<Self> {
        let by = match (grouping, measure) {
            (Some(_), Measure::Distinct(field)) => {
                return Err(unsupported(
                    entry,
                    field,
                    "cannot be counted distinctly per group",
                ));
            }
            (Some(Grouping::Values { field, .. }), _) | (None, Measure::Distinct(field)) => {
                by_values(entry, field)?
            }
            (
                Some(Grouping::Time {
                    field,
                    granularity,
                    zone,
                    ..
                }),
                _,
            ) => {
                let column = column_of(&entry.layout, field, SlotKind::Integer)
                    .ok_or_else(|| unsupported(entry, field, "holds no time to group by"))?;
                let (first, last) = value_range(searcher, &column);
                By::Time(column, Buckets::new(*granularity, zone, first, last))
            }
            (None, _) => By::Nothing,
        };
        Ok(Self {
            by,
            measure,
            texts: Vec::new(),
            numbers: HashMap::new(),
            rest: (0, measure.start()),
        })
    }

    /// Adds one segment: `scan` calls back with blocks of documents.
    pub(super) fn add_segment(
        &mut self,
        segment: &SegmentReader,
        ordinal: u32,
        scan: impl FnOnce(&mut dyn FnMut(&[DocId])),
    ) -> tantivy::Result<()> {
        let mut pass = Pass {
            ordinal,
            keys: self.by.on(segment)?,
            values: self.measure.on(segment)?,
            counts: Counts::default(),
            start: self.measure.start(),
            plain: self.measure.is_count(),
            block: Block::default(),
        };
        scan(&mut |documents| pass.add(&self.by, documents));
        let Pass { keys, counts, .. } = pass;
        self.rest.0 += counts.counts.first().copied().unwrap_or(0);
        if let Some(tally) = counts.tallies.first() {
            self.rest.1.merge(*tally);
        }
        match keys {
            Keys::None => {}
            Keys::Strings(column) => self.texts.push((column, counts)),
            Keys::Integers { numbers, .. } | Keys::Numbers { numbers, .. } => {
                for (value, place) in numbers {
                    self.take(value, &counts, place);
                }
            }
            Keys::Buckets { first, .. } => {
                for (place, value) in (1..counts.counts.len()).zip(first..) {
                    self.take(value, &counts, place);
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, value: i64, counts: &Counts, place: usize) {
        let count = counts.counts.get(place).copied().unwrap_or(0);
        if count == 0 {
            return;
        }
        let start = self.measure.start();
        let (total, tally) = self.numbers.entry(value).or_insert((0, start));
        *total += count;
        if let Some(more) = counts.tallies.get(place) {
            tally.merge(*more);
        }
    }

    /// How many groups there are, records without a value aside.
    pub(super) fn distinct(self) -> tantivy::Result<u64> {
        let mut distinct = self.numbers.len() as u64;
        merge_texts(&self.texts, &mut |_, _, _| distinct += 1)?;
        Ok(distinct)
    }

    /// The groups. `prune` is called from time to time and may drop groups that will not be asked for.
    pub(super) fn finish(
        self,
        prune: &dyn Fn(&mut Vec<Finished>),
    ) -> tantivy::Result<Vec<Finished>> {
        let mut groups: Vec<Finished> = Vec::new();
        let (count, tally) = self.rest;
        if count > 0 || matches!(self.by, By::Nothing) {
            groups.push((GroupKey::Missing, count, tally.outcome()));
        }
        for (value, (count, tally)) in &self.numbers {
            groups.push((self.by.name(*value), *count, tally.outcome()));
        }
        let start = self.measure.start();
        merge_texts(&self.texts, &mut |text, count, tallies| {
            let mut tally = start;
            for more in tallies {
                tally.merge(*more);
            }
            let text = String::from_utf8_lossy(text).into_owned();
            groups.push((GroupKey::Text(text), count, tally.outcome()));
            prune(&mut groups);
        })?;
        Ok(groups)
    }
}

impl By {
    /// The column that tells groups apart in one segment.
    fn on(&self, segment: &SegmentReader) -> tantivy::Result<Keys> {
        let columns = segment.fast_fields();
        let integers = |name: &str| columns.column_opt::<i64>(name);
        Ok(match self {
            Self::Nothing => Keys::None,
            Self::Strings(name) => columns.str(name)?.map_or(Keys::None, Keys::Strings),
            Self::Integers(name, _) => {
                integers(name)?.map_or(Keys::None, |column| Keys::Integers {
                    column,
                    numbers: HashMap::new(),
                })
            }
            Self::Numbers(name) => {
                columns
                    .column_opt(name)?
                    .map_or(Keys::None, |column| Keys::Numbers {
                        column,
                        numbers: HashMap::new(),
                    })
            }
            Self::Time(name, buckets) => {
                let (first, last) = buckets.range;
                integers(name)?.map_or(Keys::None, |column| {
                    if last.saturating_sub(first) < DENSE_BUCKETS {
                        Keys::Buckets { column, first }
                    } else {
                        let numbers = HashMap::new();
                        Keys::Integers { column, numbers }
                    }
                })
            }
        })
    }

    /// The bucket of an instant, where instants are grouped; else the value itself.
    fn value(&self, value: i64) -> i64 {
        match self {
            Self::Time(_, buckets) => buckets.of(value),
            _ => value,
        }
    }

    /// The name of a group that is told apart by a number.
    fn name(&self, value: i64) -> GroupKey {
        match self {
            Self::Time(_, buckets) => GroupKey::Text(buckets.label(value)),
            Self::Integers(_, FieldKind::Boolean) => GroupKey::Boolean(value != 0),
            Self::Numbers(_) => GroupKey::Number(f64::from_bits(value.cast_unsigned())),
            Self::Integers(..) | Self::Strings(_) | Self::Nothing => GroupKey::Integer(value),
        }
    }
}

/// The groups of one segment: which place in [`Counts`] a document belongs to. Place 0 is for documents without a value.
enum Keys {
    None,
    Strings(StrColumn),
    Integers {
        column: Column<i64>,
        numbers: HashMap<i64, usize>,
    },
    Numbers {
        column: Column<f64>,
        numbers: HashMap<i64, usize>,
    },
    Buckets {
        column: Column<i64>,
        first: i64,
    },
}

/// Counts and tallies by place. No tallies are kept where only counts matter.
#[derive(Default)]
struct Counts {
    counts: Vec<u64>,
    tallies: Vec<Tally>,
}

/// Scratch space for one block of documents.
#[derive(Default)]
struct Block {
    places: Vec<usize>,
    ordinals: Vec<Option<u64>>,
    integers: Vec<Option<i64>>,
    numbers: Vec<Option<f64>>,
}

/// The pass over one segment.
struct Pass {
    ordinal: u32,
    keys: Keys,
    values: Values,
    counts: Counts,
    start: Tally,
    plain: bool,
    block: Block,
}

impl Pass {
    fn add(&mut self, by: &By, documents: &[DocId]) {
        self.assign(by, documents);
        let highest = self.block.places.iter().copied().max().unwrap_or(0);
        if self.counts.counts.len() <= highest {
            self.counts.counts.resize(highest + 1, 0);
        }
        for place in &self.block.places {
            self.counts.counts[*place] += 1;
        }
        if !self.plain {
            if self.counts.tallies.len() <= highest {
                self.counts.tallies.resize(highest + 1, self.start);
            }
            self.tally(documents);
        }
    }

    /// Finds the place of every document.
    fn assign(&mut self, by: &By, documents: &[DocId]) {
        let block = &mut self.block;
        block.places.clear();
        match &mut self.keys {
            Keys::None => block.places.resize(documents.len(), 0),
            Keys::Strings(column) => {
                load(column.ords(), documents, &mut block.ordinals);
                let place = |ordinal: &Option<u64>| ordinal.map_or(0, |ordinal| index(ordinal) + 1);
                block.places.extend(block.ordinals.iter().map(place));
            }
            Keys::Integers { column, numbers } => {
                load(column, documents, &mut block.integers);
                for value in &block.integers {
                    block
                        .places
                        .push(value.map_or(0, |value| number(numbers, by.value(value))));
                }
            }
            Keys::Numbers { column, numbers } => {
                load(column, documents, &mut block.numbers);
                for value in &block.numbers {
                    // Zero has two forms that are equal.
                    let bits = value.map(|value| {
                        if value == 0.0 {
                            0
                        } else {
                            value.to_bits().cast_signed()
                        }
                    });
                    block
                        .places
                        .push(bits.map_or(0, |bits| number(numbers, bits)));
                }
            }
            Keys::Buckets { column, first } => {
                load(column, documents, &mut block.integers);
                let place = |value: &Option<i64>| {
                    value.map_or(0, |value| {
                        index((by.value(value) - *first).cast_unsigned()) + 1
                    })
                };
                block.places.extend(block.integers.iter().map(place));
            }
        }
    }

    fn tally(&mut self, documents: &[DocId]) {
        let block = &mut self.block;
        let at = |document: &DocId| DocAddress::new(self.ordinal, *document);
        match &self.values {
            Values::None => {}
            Values::Integers(column) => {
                load(column, documents, &mut block.integers);
                for ((document, place), value) in
                    documents.iter().zip(&block.places).zip(&block.integers)
                {
                    if let Some(value) = value {
                        self.counts.tallies[*place].add_integer(*value, at(document));
                    }
                }
            }
            Values::Numbers(column) => {
                load(column, documents, &mut block.numbers);
                for ((document, place), value) in
                    documents.iter().zip(&block.places).zip(&block.numbers)
                {
                    if let Some(value) = value {
                        self.counts.tallies[*place].add_number(*value, at(document));
                    }
                }
            }
        }
    }
}

/// Reads a block of a column. The column leaves missing values as they were, so they are cleared first.
fn load<T: PartialOrd + Copy + std::fmt::Debug + Send + Sync + 'static>(
    column: &Column<T>,
    documents: &[DocId],
    values: &mut Vec<Option<T>>,
) {
    values.clear();
    values.resize(documents.len(), None);
    column.first_vals(documents, values);
}

/// The place of a value, the next free one when it is new.
fn number(numbers: &mut HashMap<i64, usize>, value: i64) -> usize {
    let next = numbers.len() + 1;
    *numbers.entry(value).or_insert(next)
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX - 1)
}

fn by_values(entry: &StreamEntry, field: &contract::id::FieldName) -> Result<By> {
    if let Some(column) = column_of(&entry.layout, field, SlotKind::Strings) {
        return Ok(By::Strings(column));
    }
    if let Some(place) = entry.layout.place(field, SlotKind::Integer) {
        let column = super::index::slot_name(SlotKind::Integer, place.slot);
        return Ok(By::Integers(column, place.field_kind));
    }
    column_of(&entry.layout, field, SlotKind::Number)
        .map(By::Numbers)
        .ok_or_else(|| unsupported(entry, field, "is not declared for grouping"))
}

/// The smallest and the largest value any document has in a column.
fn value_range(searcher: &Searcher, name: &str) -> (i64, i64) {
    let columns = searcher
        .segment_readers()
        .iter()
        .filter_map(|segment| segment.fast_fields().column_opt::<i64>(name).ok().flatten());
    let ranges = columns.map(|column| (column.min_value(), column.max_value()));
    ranges
        .reduce(|(first, last), (min, max)| (first.min(min), last.max(max)))
        .unwrap_or((0, 0))
}

/// Walks the texts of all segments in one order and hands over each with its total and its tallies.
fn merge_texts(
    segments: &[(StrColumn, Counts)],
    each: &mut dyn FnMut(&[u8], u64, &[Tally]),
) -> tantivy::Result<()> {
    let mut streams = Vec::with_capacity(segments.len());
    for (column, counts) in segments {
        let mut stream = column.dictionary().stream()?;
        if stream.advance() {
            streams.push((stream, counts));
        }
    }
    let mut text = Vec::new();
    let mut tallies = Vec::new();
    while let Some(first) = streams.iter().map(|(stream, _)| stream.key()).min() {
        text.clear();
        text.extend_from_slice(first);
        tallies.clear();
        let mut count = 0;
        streams.retain_mut(|(stream, counts)| {
            if stream.key() != text.as_slice() {
                return true;
            }
            let place = index(stream.term_ord()) + 1;
            count += counts.counts.get(place).copied().unwrap_or(0);
            tallies.extend(counts.tallies.get(place));
            stream.advance()
        });
        if count > 0 {
            each(&text, count, &tallies);
        }
    }
    Ok(())
}
