//! Scopes as tests on index columns: which documents may count at all. Search and aggregates decide by the same code.

use std::collections::HashSet;
use std::ops::Bound;

use contract::id::FieldName;
use contract::scalar::Scalar;
use contract::time::{Instant, TimeRange};
use rusqlite::OptionalExtension;
use tantivy::columnar::Column;
use tantivy::{DocId, SegmentReader};

use super::EmbeddedStore;
use super::index::{Fields, ROW, STREAM, integer_of, slot_name};
use super::layout::{SlotKind, StreamLayout};
use super::sources::StreamEntry;
use crate::search::{Filter, Scope, Test};
use crate::{Result, StoreError};

/// A scope whose names have become columns and numbers.
pub(super) struct Restriction {
    pub(super) stream: u64,
    tests: Vec<ColumnTest>,
    rows: Option<HashSet<u64>>,
}

/// What a column must hold.
enum ColumnTest {
    Integer(String, i64, i64),
    Number(String, Bound<f64>, Bound<f64>),
    Text(String, String),
    Never,
}

impl EmbeddedStore {
    /// Resolves a scope against the stream's layout.
    pub(super) fn restriction(
        &self,
        entry: &StreamEntry,
        scope: &Scope,
        fields: &Fields,
    ) -> Result<Restriction> {
        let mut tests = Vec::new();
        if let Some((field, range)) = &scope.time {
            tests.push(time_test(entry, field, *range)?);
        }
        for filter in &scope.filters {
            tests.push(filter_test(entry, filter, fields)?);
        }
        let rows = match &scope.keys {
            None => None,
            Some(keys) => Some(self.database.read(|connection| {
                let mut statement = connection.prepare_cached(
                    "SELECT row_id FROM records WHERE stream_id = ?1 AND key = ?2",
                )?;
                let mut rows = HashSet::new();
                for key in keys {
                    let row: Option<i64> = statement
                        .query_row((entry.id, key.ordering_form()), |row| row.get(0))
                        .optional()?;
                    rows.extend(row.map(i64::cast_unsigned));
                }
                Ok(rows)
            })?),
        };
        Ok(Restriction {
            stream: entry.id.cast_unsigned(),
            tests,
            rows,
        })
    }
}

impl Restriction {
    /// Whether every record of the stream passes.
    pub(super) fn is_whole_stream(&self) -> bool {
        self.tests.is_empty() && self.rows.is_none()
    }

    /// The tests as they apply to one segment.
    pub(super) fn on(&self, segment: &SegmentReader) -> tantivy::Result<SegmentTests<'_>> {
        let columns = segment.fast_fields();
        let mut tests = Vec::with_capacity(self.tests.len());
        for test in &self.tests {
            let applied = match test {
                ColumnTest::Never => None,
                ColumnTest::Integer(name, low, high) => columns
                    .column_opt::<i64>(name)?
                    .map(|column| SegmentTest::Integer(column, *low, *high)),
                ColumnTest::Number(name, low, high) => columns
                    .column_opt::<f64>(name)?
                    .map(|column| SegmentTest::Number(column, *low, *high)),
                ColumnTest::Text(name, value) => match columns.str(name)? {
                    None => None,
                    Some(column) => column
                        .dictionary()
                        .term_ord(value.as_bytes())?
                        .map(|ordinal| SegmentTest::Ordinal(column.ords().clone(), ordinal)),
                },
            };
            tests.push(applied.unwrap_or(SegmentTest::Never));
        }
        let rows = match &self.rows {
            None => None,
            Some(rows) => Some((rows, columns.u64(ROW)?)),
        };
        Ok(SegmentTests { tests, rows })
    }
}

/// The tests of a restriction on the columns of one segment.
pub(super) struct SegmentTests<'a> {
    tests: Vec<SegmentTest>,
    rows: Option<(&'a HashSet<u64>, Column<u64>)>,
}

enum SegmentTest {
    Integer(Column<i64>, i64, i64),
    Number(Column<f64>, Bound<f64>, Bound<f64>),
    Ordinal(Column<u64>, u64),
    Never,
}

impl SegmentTests<'_> {
    /// Whether one document passes.
    pub(super) fn pass(&self, document: DocId) -> bool {
        self.tests.iter().all(|test| match test {
            SegmentTest::Integer(column, low, high) => column
                .first(document)
                .is_some_and(|value| *low <= value && value <= *high),
            SegmentTest::Number(column, low, high) => column
                .first(document)
                .is_some_and(|value| (*low, *high).contains_value(value)),
            SegmentTest::Ordinal(column, wanted) => column.first(document) == Some(*wanted),
            SegmentTest::Never => false,
        }) && self.rows.as_ref().is_none_or(|(rows, column)| {
            column
                .first(document)
                .is_some_and(|row| rows.contains(&row))
        })
    }

    /// Keeps the documents that pass.
    pub(super) fn retain(&self, documents: &mut Vec<DocId>) {
        if !self.tests.is_empty() || self.rows.is_some() {
            documents.retain(|document| self.pass(*document));
        }
    }
}

/// `RangeBounds` is not implemented for references to bounds of plain floats in a tuple by value.
trait ContainsValue {
    fn contains_value(&self, value: f64) -> bool;
}

impl ContainsValue for (Bound<f64>, Bound<f64>) {
    fn contains_value(&self, value: f64) -> bool {
        std::ops::RangeBounds::contains(self, &value)
    }
}

/// Which restriction a document of a segment falls under, for searches over many streams.
pub(super) struct SegmentScopes<'a> {
    streams: Option<Column<u64>>,
    /// Indexed by stream id.
    by_stream: &'a [Option<usize>],
    tests: Vec<SegmentTests<'a>>,
}

/// Restrictions findable by stream id.
pub(super) fn by_stream(restrictions: &[Restriction]) -> Vec<Option<usize>> {
    let length = restrictions
        .iter()
        .map(|one| one.stream + 1)
        .max()
        .unwrap_or(0);
    let mut by_stream = vec![None; usize::try_from(length).unwrap_or(0)];
    for (at, restriction) in restrictions.iter().enumerate() {
        if let Some(place) = usize::try_from(restriction.stream)
            .ok()
            .and_then(|stream| by_stream.get_mut(stream))
        {
            *place = Some(at);
        }
    }
    by_stream
}

impl<'a> SegmentScopes<'a> {
    pub(super) fn new(
        segment: &SegmentReader,
        restrictions: &'a [Restriction],
        by_stream: &'a [Option<usize>],
    ) -> tantivy::Result<Self> {
        let streams = segment.fast_fields().u64(STREAM)?;
        let tests = restrictions
            .iter()
            .map(|restriction| restriction.on(segment))
            .collect::<tantivy::Result<Vec<_>>>()?;
        // A segment that holds one stream, admitted whole, needs no look at its documents.
        let uniform = restrictions.len() == 1
            && restrictions[0].is_whole_stream()
            && streams.min_value() == restrictions[0].stream
            && streams.max_value() == restrictions[0].stream;
        Ok(Self {
            streams: (!uniform).then_some(streams),
            by_stream,
            tests,
        })
    }

    /// Whether the document lies in any scope and passes its tests.
    pub(super) fn admit(&self, document: DocId) -> bool {
        let Some(streams) = &self.streams else {
            return true;
        };
        let scope = streams
            .first(document)
            .and_then(|stream| usize::try_from(stream).ok())
            .and_then(|stream| self.by_stream.get(stream).copied().flatten());
        scope
            .and_then(|at| self.tests.get(at))
            .is_some_and(|tests| tests.pass(document))
    }
}

fn time_test(entry: &StreamEntry, field: &FieldName, range: TimeRange) -> Result<ColumnTest> {
    let name = column(
        entry,
        field,
        SlotKind::Integer,
        "holds no time to restrict by",
    )?;
    let low = range.since.map_or(i64::MIN, |Instant(since)| since);
    // `until` is exclusive.
    let high = range
        .until
        .map_or(i64::MAX, |Instant(until)| until.saturating_sub(1));
    Ok(if range.until == Some(Instant(i64::MIN)) {
        ColumnTest::Never
    } else {
        ColumnTest::Integer(name, low, high)
    })
}

fn filter_test(entry: &StreamEntry, filter: &Filter, fields: &Fields) -> Result<ColumnTest> {
    let field = &filter.field;
    match &filter.test {
        Test::Equals(Scalar::Text(value)) => {
            if let Some(name) = column_of(&entry.layout, field, SlotKind::Strings) {
                return Ok(ColumnTest::Text(name, value.clone()));
            }
            let name = column(entry, field, SlotKind::Hash, "cannot be filtered by a text")?;
            let hash = fields.hash(value);
            Ok(ColumnTest::Integer(name, hash, hash))
        }
        Test::Equals(Scalar::Number(value)) => {
            let name = column(
                entry,
                field,
                SlotKind::Number,
                "cannot be filtered by a number",
            )?;
            Ok(ColumnTest::Number(
                name,
                Bound::Included(*value),
                Bound::Included(*value),
            ))
        }
        Test::Equals(scalar) => integer_test(
            entry,
            field,
            (Bound::Included(scalar), Bound::Included(scalar)),
        ),
        Test::Range(low, high) => {
            let number = |bound: &Scalar| matches!(bound, Scalar::Number(_));
            if bound_is(low, number) || bound_is(high, number) {
                let name = column(
                    entry,
                    field,
                    SlotKind::Number,
                    "cannot be filtered by a number",
                )?;
                return Ok(ColumnTest::Number(
                    name,
                    float_bound(low),
                    float_bound(high),
                ));
            }
            integer_test(entry, field, (low.as_ref(), high.as_ref()))
        }
    }
}

fn integer_test(
    entry: &StreamEntry,
    field: &FieldName,
    (low, high): (Bound<&Scalar>, Bound<&Scalar>),
) -> Result<ColumnTest> {
    let name = column(
        entry,
        field,
        SlotKind::Integer,
        "cannot be filtered like this",
    )?;
    let value = |scalar: &Scalar| {
        integer_of(scalar)
            .ok_or_else(|| unsupported(entry, field, "cannot be compared with this value"))
    };
    let low = match low {
        Bound::Unbounded => Some(i64::MIN),
        Bound::Included(scalar) => Some(value(scalar)?),
        Bound::Excluded(scalar) => value(scalar)?.checked_add(1),
    };
    let high = match high {
        Bound::Unbounded => Some(i64::MAX),
        Bound::Included(scalar) => Some(value(scalar)?),
        Bound::Excluded(scalar) => value(scalar)?.checked_sub(1),
    };
    Ok(match (low, high) {
        (Some(low), Some(high)) => ColumnTest::Integer(name, low, high),
        _ => ColumnTest::Never,
    })
}

fn bound_is(bound: &Bound<Scalar>, test: impl Fn(&Scalar) -> bool) -> bool {
    match bound {
        Bound::Included(scalar) | Bound::Excluded(scalar) => test(scalar),
        Bound::Unbounded => false,
    }
}

fn float_bound(bound: &Bound<Scalar>) -> Bound<f64> {
    let float = |scalar: &Scalar| match scalar {
        Scalar::Number(value) => *value,
        other => {
            #[expect(
                clippy::cast_precision_loss,
                reason = "the column holds floats, so the bound is one"
            )]
            let value = integer_of(other).unwrap_or(0) as f64;
            value
        }
    };
    match bound {
        Bound::Included(scalar) => Bound::Included(float(scalar)),
        Bound::Excluded(scalar) => Bound::Excluded(float(scalar)),
        Bound::Unbounded => Bound::Unbounded,
    }
}

/// The column of a field, if it has one of this kind.
pub(super) fn column_of(
    layout: &StreamLayout,
    field: &FieldName,
    kind: SlotKind,
) -> Option<String> {
    layout
        .place(field, kind)
        .map(|place| slot_name(kind, place.slot))
}

pub(super) fn column(
    entry: &StreamEntry,
    field: &FieldName,
    kind: SlotKind,
    problem: &str,
) -> Result<String> {
    column_of(&entry.layout, field, kind).ok_or_else(|| unsupported(entry, field, problem))
}

pub(super) fn unsupported(entry: &StreamEntry, field: &FieldName, problem: &str) -> StoreError {
    StoreError::Unsupported {
        stream: entry.stream.stream.clone(),
        field: field.to_string(),
        problem: problem.to_owned(),
    }
}
