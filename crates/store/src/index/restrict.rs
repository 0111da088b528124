//! Scopes as tests on index columns: which documents may count at all. Search and aggregates decide by the same code.

use std::collections::HashSet;
use std::hash::Hasher;
use std::ops::{Bound, RangeInclusive};
use std::sync::Arc;

use contract::id::FieldName;
use contract::scalar::{FieldKind, Scalar};
use contract::time::{Instant, TimeRange};
use siphasher::sip128::{Hasher128 as _, SipHasher13};
use tantivy::DocId;
use tantivy::columnar::Column;

use super::RecordIndex;
use super::column_test::{ColumnTest, SegmentTests};
use super::engine::{
    ColumnValue, Fields, Segment, dictionary_form, integer_of, item_form, slot_name,
};
use super::finding::ThreadColumns;
use super::layout::{SlotKind, StreamLayout};
use super::sources::StreamEntry;
use crate::catalog::StreamRef;
use crate::search::{Filter, Scope, Test};
use crate::{Result, StoreError, stop};

/// A scope resolved to columns and numbers.
pub(super) struct Restriction {
    pub(super) stream: u64,
    tests: Vec<ColumnTest>,
    /// The rules of the grant, and their digest.
    rules: Option<(Vec<ColumnTest>, u128)>,
    rows: Rows,
    /// The columns that say when a record happened, the first with a value decides.
    pub(super) times: Vec<String>,
    /// The columns of conversations, where the stream has them.
    pub(super) threads: Option<ThreadColumns>,
}

/// Which records may pass, by their rows.
#[derive(Debug)]
pub(super) enum Rows {
    All,
    Only(HashSet<u64>),
    Except(HashSet<u64>),
}

impl Rows {
    pub(super) fn contains(&self, row: u64) -> bool {
        match self {
            Self::All => true,
            Self::Only(rows) => rows.contains(&row),
            Self::Except(rows) => !rows.contains(&row),
        }
    }

    fn without(self, left_out: &HashSet<u64>) -> Self {
        match self {
            _ if left_out.is_empty() => self,
            Self::All => Self::Except(left_out.clone()),
            Self::Only(rows) => Self::Only(&rows - left_out),
            Self::Except(rows) => Self::Except(&rows | left_out),
        }
    }
}

impl RecordIndex {
    /// Runs something again if declarations changed meanwhile. A field may have moved to another column, and an exception
    /// that is looked for in the old one would not be found.
    pub(super) fn with_one_layout<'s, T>(
        &self,
        scopes: impl IntoIterator<Item = &'s Scope>,
        run: impl Fn() -> Result<T>,
    ) -> Result<T> {
        let mut scopes = scopes.into_iter();
        let excepts = scopes.any(|scope| !scope.rules.except.is_empty());
        loop {
            let before = self.sources();
            let outcome = run();
            if !excepts || Arc::ptr_eq(&before, &self.sources()) {
                return outcome;
            }
            stop::check()?;
        }
    }

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
        let times = time_columns(&entry.layout, &scope.times);
        if !scope.period.is_open() {
            let within = integers_of(scope.period);
            tests.push(ColumnTest::FirstInteger(times.clone(), within));
        }
        for filter in &scope.filters {
            tests.push(filter_test(entry, filter, fields)?);
        }
        let mut rules = Vec::new();
        for filter in &scope.rules.only {
            rules.push(filter_test(entry, filter, fields)?);
        }
        for filter in &scope.rules.except {
            let test = filter_test(entry, filter, fields)?;
            rules.push(ColumnTest::Not(Box::new(test)));
        }
        let rows = match &scope.keys {
            None => Rows::All,
            Some(keys) => Rows::Only(self.truth.rows_of(entry.id, keys)?),
        };
        Ok(Restriction {
            stream: entry.id.cast_unsigned(),
            tests,
            rules: (!rules.is_empty()).then(|| {
                let digest = digest(&rules);
                (rules, digest)
            }),
            rows,
            times,
            threads: thread_columns(&entry.layout, scope),
        })
    }
}

impl Restriction {
    pub(super) fn is_whole_stream(&self) -> bool {
        self.tests.is_empty() && self.rules.is_none() && matches!(self.rows, Rows::All)
    }

    /// The restriction, unless an exception is looked for in columns that are still being filled: records without their
    /// column would pass, so none does.
    pub(super) fn unless_unfilled(self, scope: &Scope, rebuilding: &[StreamRef]) -> Self {
        if scope.rules.except.is_empty() || !rebuilding.contains(&scope.stream) {
            return self;
        }
        Self {
            tests: vec![ColumnTest::Never],
            rules: None,
            ..self
        }
    }

    /// The same without some records.
    pub(super) fn without(self, left_out: &HashSet<u64>) -> Self {
        Self {
            rows: self.rows.without(left_out),
            ..self
        }
    }

    /// Adds what decides on records to a digest.
    pub(super) fn hash_into(&self, hasher: &mut impl Hasher) {
        hasher.write_u64(self.stream);
        hasher.write(format!("{:?}", self.tests).as_bytes());
        if let Some((_, digest)) = &self.rules {
            hasher.write_u128(*digest);
        }
        let (kind, rows) = match &self.rows {
            Rows::All => return,
            Rows::Only(rows) => (1, rows),
            Rows::Except(rows) => (2, rows),
        };
        hasher.write_u8(kind);
        let mut rows: Vec<u64> = rows.iter().copied().collect();
        rows.sort_unstable();
        for row in rows {
            hasher.write_u64(row);
        }
    }

    /// Whether a record with this row and these column values passes.
    pub(super) fn admits(&self, row: u64, value_of: impl Fn(&str) -> Option<ColumnValue>) -> bool {
        let rules = self.rules.iter().flat_map(|(rules, _)| rules);
        let mut tests = self.tests.iter().chain(rules);
        self.rows.contains(row) && tests.all(|test| test.admits(&value_of))
    }

    pub(super) fn on<'a>(&'a self, segment: Segment<'a>) -> tantivy::Result<SegmentTests<'a>> {
        let tests = SegmentTests::new(segment, &self.tests, &self.rows)?;
        let Some((rules, digest)) = &self.rules else {
            return Ok(tests);
        };
        let by_rules = || SegmentTests::new(segment, rules, &Rows::All);
        let (admitted, documents) = (&segment.columns.admitted, segment.reader.max_doc());
        Ok(tests.among(admitted.get(*digest, documents, by_rules)?))
    }
}

/// Names rules. Two that differ must not share what is kept for one of them, so it is long enough never to meet another.
fn digest(rules: &[ColumnTest]) -> u128 {
    let mut hasher = SipHasher13::new();
    hasher.write(format!("{rules:?}").as_bytes());
    hasher.finish128().as_u128()
}

/// Which restriction a document of a segment falls under, for searches over many streams.
pub(super) struct SegmentScopes<'a> {
    streams: Option<&'a Column<u64>>,
    /// Indexed by stream id.
    by_stream: &'a [Option<usize>],
    restrictions: &'a [Restriction],
    tests: Vec<SegmentTests<'a>>,
}

pub(super) fn by_stream(restrictions: &[Restriction]) -> Vec<Option<usize>> {
    let length = restrictions
        .iter()
        .map(|one| one.stream + 1)
        .max()
        .unwrap_or(0);
    let mut by_stream = vec![None; usize::try_from(length).unwrap_or(0)];
    for (at, restriction) in restrictions.iter().enumerate() {
        if let Some(entry) = usize::try_from(restriction.stream)
            .ok()
            .and_then(|stream| by_stream.get_mut(stream))
        {
            *entry = Some(at);
        }
    }
    by_stream
}

impl<'a> SegmentScopes<'a> {
    pub(super) fn new(
        segment: Segment<'a>,
        restrictions: &'a [Restriction],
        by_stream: &'a [Option<usize>],
    ) -> tantivy::Result<Self> {
        let streams = &segment.columns.streams;
        let tests = restrictions
            .iter()
            .map(|restriction| restriction.on(segment))
            .collect::<tantivy::Result<Vec<_>>>()?;
        // A segment that holds one stream, admitted whole, needs no check of its documents.
        let uniform = matches!(restrictions, [only] if only.is_whole_stream()
            && streams.min_value() == only.stream
            && streams.max_value() == only.stream);
        Ok(Self {
            streams: (!uniform).then_some(streams),
            by_stream,
            restrictions,
            tests,
        })
    }

    pub(super) fn threads(&self, scope: usize) -> Option<&'a ThreadColumns> {
        self.restrictions.get(scope)?.threads.as_ref()
    }

    /// Whether any restriction has conversations.
    pub(super) fn has_threads(&self) -> bool {
        self.restrictions.iter().any(|one| one.threads.is_some())
    }

    pub(super) fn stream(&self, scope: usize) -> u64 {
        self.restrictions.get(scope).map_or(0, |one| one.stream)
    }

    /// The restriction that a document lies in and whose tests it passes.
    pub(super) fn scope_of(&self, document: DocId) -> Option<usize> {
        let Some(streams) = self.streams else {
            return Some(0);
        };
        let stream = usize::try_from(streams.first(document)?).ok()?;
        let scope = self.by_stream.get(stream).copied().flatten()?;
        self.tests.get(scope)?.pass(document).then_some(scope)
    }
}

/// The columns of those fields that hold times.
fn time_columns(layout: &StreamLayout, fields: &[FieldName]) -> Vec<String> {
    let slots = fields
        .iter()
        .filter_map(|field| layout.slot(field, SlotKind::Integer))
        .filter(|slot| matches!(slot.field_kind, FieldKind::Date | FieldKind::DateTime));
    slots
        .map(|slot| slot_name(slot.kind, slot.number))
        .collect()
}

fn thread_columns(layout: &StreamLayout, scope: &Scope) -> Option<ThreadColumns> {
    let conversation = scope.conversation.as_ref()?;
    let text = column_of(layout, &conversation.thread, SlotKind::Strings);
    let is_text = text.is_some();
    let thread = text.or_else(|| column_of(layout, &conversation.thread, SlotKind::Hash))?;
    let integer = column_of(layout, &conversation.order, SlotKind::Integer);
    let is_number = integer.is_none();
    let order = integer.or_else(|| column_of(layout, &conversation.order, SlotKind::Number))?;
    Some(ThreadColumns {
        thread,
        is_text,
        order,
        is_number,
    })
}

fn time_test(entry: &StreamEntry, field: &FieldName, range: TimeRange) -> Result<ColumnTest> {
    let name = column(
        entry,
        field,
        SlotKind::Integer,
        "holds no time to restrict by",
    )?;
    Ok(ColumnTest::integers(name, integers_of(range)))
}

/// The values of a time column that lie within a range; `until` does not.
fn integers_of(range: TimeRange) -> RangeInclusive<i64> {
    let low = range.since.map_or(i64::MIN, |Instant(since)| since);
    match range.until {
        None => low..=i64::MAX,
        Some(Instant(until)) => match until.checked_sub(1) {
            Some(high) => low..=high,
            // Nothing is before the first moment.
            None => RangeInclusive::new(i64::MAX, i64::MIN),
        },
    }
}

fn filter_test(entry: &StreamEntry, filter: &Filter, fields: &Fields) -> Result<ColumnTest> {
    let field = &filter.field;
    match &filter.test {
        Test::OneOf(values) => {
            let equals = |value: &Scalar| {
                let filter = Filter {
                    field: field.clone(),
                    test: Test::Equals(value.clone()),
                };
                filter_test(entry, &filter, fields)
            };
            let tests = values.iter().map(equals).collect::<Result<_>>()?;
            Ok(ColumnTest::Any(tests))
        }
        Test::Prefix(beginning) => {
            let name = column(
                entry,
                field,
                SlotKind::Strings,
                "has no dictionary of texts",
            )?;
            Ok(ColumnTest::Prefix(name, beginning.clone()))
        }
        Test::Words(words) => {
            let name = column(entry, field, SlotKind::Text, "has no indexed words")?;
            Ok(ColumnTest::Words(name, words.clone()))
        }
        Test::Contains(values) => {
            let name = column(entry, field, SlotKind::Items, "has no items to filter by")?;
            let tests = values.iter().map(item_form);
            let tests = tests.map(|item| ColumnTest::Text(name.clone(), item));
            Ok(ColumnTest::Any(tests.collect()))
        }
        Test::Equals(Scalar::Text(value)) => {
            if let Some(name) = column_of(&entry.layout, field, SlotKind::Strings) {
                return Ok(ColumnTest::Text(name, dictionary_form(value).into_owned()));
            }
            let name = column(entry, field, SlotKind::Hash, "cannot be filtered by a text")?;
            let hash = fields.hash(value);
            Ok(ColumnTest::Integer(name, hash..=hash))
        }
        Test::Equals(Scalar::Number(value)) => {
            let name = column(
                entry,
                field,
                SlotKind::Number,
                "cannot be filtered by a number",
            )?;
            Ok(ColumnTest::numbers(name, *value + 0.0..=*value + 0.0))
        }
        Test::Equals(scalar) => integer_test(
            entry,
            field,
            Bound::Included(scalar),
            Bound::Included(scalar),
        ),
        Test::Range(low, high) => range_test(entry, field, low, high),
    }
}

fn range_test(
    entry: &StreamEntry,
    field: &FieldName,
    low: &Bound<Scalar>,
    high: &Bound<Scalar>,
) -> Result<ColumnTest> {
    let number = |bound: &Scalar| matches!(bound, Scalar::Number(_));
    if bound_is(low, number) || bound_is(high, number) {
        let name = column(
            entry,
            field,
            SlotKind::Number,
            "cannot be filtered by a number",
        )?;
        return Ok(ColumnTest::numbers(name, float_range(low, high)));
    }
    integer_test(entry, field, low.as_ref(), high.as_ref())
}

fn integer_test(
    entry: &StreamEntry,
    field: &FieldName,
    low: Bound<&Scalar>,
    high: Bound<&Scalar>,
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
        (Some(low), Some(high)) => ColumnTest::integers(name, low..=high),
        _ => ColumnTest::Never,
    })
}

fn bound_is(bound: &Bound<Scalar>, test: impl Fn(&Scalar) -> bool) -> bool {
    match bound {
        Bound::Included(scalar) | Bound::Excluded(scalar) => test(scalar),
        Bound::Unbounded => false,
    }
}

/// The floats between two bounds. There is a next float on either side, so every range has ends that belong to it.
fn float_range(low: &Bound<Scalar>, high: &Bound<Scalar>) -> RangeInclusive<f64> {
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
    let low = match low {
        Bound::Included(scalar) => float(scalar),
        Bound::Excluded(scalar) => float(scalar).next_up(),
        Bound::Unbounded => f64::NEG_INFINITY,
    };
    let high = match high {
        Bound::Included(scalar) => float(scalar),
        Bound::Excluded(scalar) => float(scalar).next_down(),
        Bound::Unbounded => f64::INFINITY,
    };
    // The column knows one zero only.
    low + 0.0..=high + 0.0
}

pub(super) fn column_of(
    layout: &StreamLayout,
    field: &FieldName,
    kind: SlotKind,
) -> Option<String> {
    layout
        .slot(field, kind)
        .map(|slot| slot_name(kind, slot.number))
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
