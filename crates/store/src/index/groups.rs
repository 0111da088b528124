//! Splitting an aggregate into groups: by value, by calendar bucket, or not at all.

mod counts;

use std::collections::HashMap;

use contract::scalar::FieldKind;
use contract::time::Instant;
use tantivy::columnar::{Column, StrColumn};
use tantivy::{DocAddress, Searcher, SegmentReader};

use self::counts::{Counts, index, merge_texts};
use super::buckets::Buckets;
use super::documents::Documents;
use super::engine::Segment;
use super::layout::SlotKind;
use super::restrict::{column_of, unsupported};
use super::sources::StreamEntry;
use super::tally::{FinishedGroup, Measure, Tally, Values};
use crate::Result;
use crate::search::{GroupKey, Grouping};

/// Buckets up to this many are kept in an array; more in a map.
const DENSE_BUCKETS: i64 = 1 << 20;

/// What the records of a group share, before it gets its name.
enum By {
    Nothing,
    Strings(String),
    /// The items of an array, of this kind: a record is in the group of each.
    Items(String, FieldKind),
    Integers(String, FieldKind),
    Numbers(String),
    Time(String, Buckets),
}

pub(super) struct Groups<'m> {
    by: By,
    measure: &'m Measure,
    /// Groups named by text. Each segment numbers its texts on its own, so they are brought together at the end.
    texts: Vec<(StrColumn, Counts)>,
    numbers: HashMap<i64, (u64, Tally)>,
    /// Records without a value; all records, when nothing splits them.
    rest: (u64, Tally),
    /// How often a record was counted beyond the first of its groups.
    repeated: u64,
}

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
            repeated: 0,
        })
    }

    /// Adds one segment: `scan` calls back with its documents, block by block.
    pub(super) fn add_segment(
        &mut self,
        segment: Segment<'_>,
        scan: impl FnOnce(&mut dyn FnMut(&Documents<'_>)),
    ) -> tantivy::Result<()> {
        let keys = self.by.on(segment.reader)?;
        let mut pass = Pass {
            counts: Counts::sized(keys.group_count()),
            keys,
            values: self.measure.on(segment.reader)?,
            ordinal: segment.ordinal,
            start: self.measure.start(),
            plain: self.measure.is_count(),
            scratch: Scratch::default(),
        };
        scan(&mut |documents| pass.add(&self.by, documents));
        let Pass {
            keys, mut counts, ..
        } = pass;
        counts.settle();
        self.repeated += counts.repeated;
        self.rest.0 += counts.count(0);
        if let Some(tally) = counts.tallies.first() {
            self.rest.1.merge(*tally);
        }
        match keys {
            Keys::None => {}
            Keys::Strings(column) => self.texts.push((column, counts)),
            Keys::Integers { numbers, .. } | Keys::Numbers { numbers, .. } => {
                for (value, group) in numbers {
                    self.take(value, &counts, group);
                }
            }
            Keys::Buckets { first, last, .. } => {
                for (group, value) in (1..).zip(first..=last) {
                    self.take(value, &counts, group);
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, value: i64, counts: &Counts, group: usize) {
        let count = counts.count(group);
        if count == 0 {
            return;
        }
        let start = self.measure.start();
        let (total, tally) = self.numbers.entry(value).or_insert((0, start));
        *total += count;
        if let Some(more) = counts.tallies.get(group) {
            tally.merge(*more);
        }
    }

    /// How often records with several values were counted beyond their first group.
    pub(super) fn repeated(&self) -> u64 {
        self.repeated
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
        prune: &dyn Fn(&mut Vec<FinishedGroup>),
    ) -> tantivy::Result<Vec<FinishedGroup>> {
        let mut groups: Vec<FinishedGroup> = Vec::new();
        let (count, tally) = self.rest;
        if count > 0 || matches!(self.by, By::Nothing) {
            groups.push(FinishedGroup::new(GroupKey::Missing, count, &tally));
        }
        for (value, (count, tally)) in &self.numbers {
            groups.push(FinishedGroup::new(self.by.name(*value), *count, tally));
        }
        let start = self.measure.start();
        merge_texts(&self.texts, &mut |text, count, tallies| {
            let mut tally = start;
            for more in tallies {
                tally.merge(*more);
            }
            groups.push(FinishedGroup::new(self.by.text_key(text), count, &tally));
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
            Self::Strings(name) | Self::Items(name, _) => {
                columns.str(name)?.map_or(Keys::None, Keys::Strings)
            }
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
                        Keys::Buckets {
                            column,
                            first,
                            last,
                        }
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
            Self::Time(_, buckets) => buckets.bucket_at(value),
            _ => value,
        }
    }

    /// The key of a group that is identified by a number.
    fn name(&self, value: i64) -> GroupKey {
        match self {
            Self::Time(_, buckets) => GroupKey::Text(buckets.label(value)),
            Self::Integers(_, FieldKind::Boolean) => GroupKey::Boolean(value != 0),
            Self::Numbers(_) => GroupKey::Number(f64::from_bits(value.cast_unsigned())),
            Self::Integers(..) | Self::Strings(_) | Self::Items(..) | Self::Nothing => {
                GroupKey::Integer(value)
            }
        }
    }

    /// The key of a group that is identified by a text of a dictionary.
    fn text_key(&self, text: &[u8]) -> GroupKey {
        let text = String::from_utf8_lossy(text);
        let key = match self {
            Self::Items(_, FieldKind::Boolean) => text.parse().ok().map(GroupKey::Boolean),
            Self::Items(_, FieldKind::Integer) => text.parse().ok().map(GroupKey::Integer),
            Self::Items(_, FieldKind::Number) => text.parse().ok().map(GroupKey::Number),
            Self::Items(_, FieldKind::Date | FieldKind::DateTime) => {
                let moment = text.parse().ok().map(Instant);
                moment.map(|moment| GroupKey::Text(moment.to_string()))
            }
            _ => None,
        };
        key.unwrap_or_else(|| GroupKey::Text(text.into_owned()))
    }
}

/// The groups of one segment: which group in [`Counts`] a document belongs to. Group 0 is for documents without a value.
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
        last: i64,
    },
}

impl Keys {
    /// How many groups are needed, as far as it is known before the documents are read.
    fn group_count(&self) -> usize {
        match self {
            Self::None | Self::Integers { .. } | Self::Numbers { .. } => 1,
            Self::Strings(column) => column.num_terms() + 1,
            Self::Buckets { first, last, .. } => index((last - first).cast_unsigned()) + 2,
        }
    }
}

/// Buffers that live from block to block.
#[derive(Default)]
struct Scratch {
    group_of: Vec<usize>,
    /// Further groups of documents, by the turn of the document.
    further: Vec<(usize, usize)>,
    ordinals: Vec<u64>,
    integers: Vec<i64>,
    numbers: Vec<f64>,
}

struct Pass {
    ordinal: u32,
    keys: Keys,
    values: Values,
    counts: Counts,
    start: Tally,
    plain: bool,
    scratch: Scratch,
}

impl Pass {
    fn add(&mut self, by: &By, documents: &Documents<'_>) {
        self.counts.documents += documents.len() as u64;
        if !self.plain {
            self.scratch.group_of.clear();
            self.scratch.group_of.resize(documents.end(), 0);
            self.scratch.further.clear();
        }
        self.count(by, documents);
        if !self.plain {
            self.counts
                .tallies
                .resize(self.counts.lanes.len(), self.start);
            self.tally(documents);
        }
    }

    /// Counts every document in its group, and documents that are not counted in group 0, which is reckoned anew in the end; where there is more to do than counting, the group of each document is kept.
    fn count(&mut self, by: &By, documents: &Documents<'_>) {
        let Scratch {
            group_of,
            further,
            ordinals,
            integers,
            numbers: floats,
        } = &mut self.scratch;
        let counts = &mut self.counts;
        let plain = self.plain;
        let mut put = |turn: usize, group: usize, counts: &mut Counts| {
            counts.add(turn, group);
            if !plain && let Some(kept) = group_of.get_mut(turn) {
                *kept = group;
            }
        };
        match &mut self.keys {
            Keys::None => {}
            Keys::Strings(column) => {
                let mut last = None;
                documents.values_around(column.ords(), ordinals, |turn, ordinal, is_counted| {
                    let group = (index(ordinal) + 1) * usize::from(is_counted);
                    if last == Some(turn) {
                        counts.add(turn, group);
                        counts.repeated += 1;
                        further.push((turn, group));
                    } else {
                        put(turn, group, counts);
                    }
                    last = Some(turn);
                });
            }
            Keys::Buckets { column, first, .. } => {
                documents.values_around(column, integers, |turn, value, is_counted| {
                    let bucket = (by.value(value) - *first).cast_unsigned();
                    put(turn, (index(bucket) + 1) * usize::from(is_counted), counts);
                });
            }
            Keys::Integers { column, numbers } => {
                documents.values(column, integers, |turn, value| {
                    let group = number(numbers, by.value(value));
                    counts.grow(group + 1);
                    put(turn, group, counts);
                });
            }
            Keys::Numbers { column, numbers } => documents.values(column, floats, |turn, value| {
                let group = number(numbers, value.to_bits().cast_signed());
                counts.grow(group + 1);
                put(turn, group, counts);
            }),
        }
    }

    fn tally(&mut self, documents: &Documents<'_>) {
        let Scratch {
            group_of,
            further,
            integers,
            numbers,
            ..
        } = &mut self.scratch;
        let tallies = &mut self.counts.tallies;
        let at = |turn: usize| DocAddress::new(self.ordinal, documents.at(turn));
        let groups = |turn: usize| {
            let first = group_of.get(turn).copied().unwrap_or(0);
            let from = further.partition_point(|(one, _)| *one < turn);
            let more = further.iter().skip(from);
            let more = more.take_while(move |(one, _)| *one == turn);
            std::iter::once(first).chain(more.map(|(_, group)| *group))
        };
        match &self.values {
            Values::None => {}
            Values::Integers(column) => documents.values(column, integers, |turn, value| {
                for group in groups(turn) {
                    if let Some(tally) = tallies.get_mut(group) {
                        tally.add_integer(value, at(turn));
                    }
                }
            }),
            Values::Numbers(column) => documents.values(column, numbers, |turn, value| {
                for group in groups(turn) {
                    if let Some(tally) = tallies.get_mut(group) {
                        tally.add_number(value, at(turn));
                    }
                }
            }),
        }
    }
}

/// The group of a value, the next free one when it is new.
fn number(numbers: &mut HashMap<i64, usize>, value: i64) -> usize {
    let next = numbers.len() + 1;
    *numbers.entry(value).or_insert(next)
}

fn by_values(entry: &StreamEntry, field: &contract::id::FieldName) -> Result<By> {
    if let Some(column) = column_of(&entry.layout, field, SlotKind::Strings) {
        return Ok(By::Strings(column));
    }
    if let Some(slot) = entry.layout.slot(field, SlotKind::Items) {
        let column = super::engine::slot_name(SlotKind::Items, slot.number);
        return Ok(By::Items(column, slot.field_kind));
    }
    if let Some(slot) = entry.layout.slot(field, SlotKind::Integer) {
        let column = super::engine::slot_name(SlotKind::Integer, slot.number);
        return Ok(By::Integers(column, slot.field_kind));
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
