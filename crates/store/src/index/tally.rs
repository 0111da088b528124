//! What an aggregate adds up per group.

use contract::scalar::FieldKind;
use tantivy::columnar::Column;
use tantivy::{DocAddress, SegmentReader};

use super::engine::ColumnValue;
use super::layout::SlotKind;
use super::restrict::{column_of, unsupported};
use super::sources::StreamEntry;
use crate::Result;
use crate::search::{GroupKey, Metric, Value};

/// The metric and the column it looks at.
pub(super) enum Measure {
    Count,
    SumInteger(String),
    /// A sum over numbers.
    SumNumber(String),
    /// The smallest or largest integer or instant.
    BestInteger(String, Side),
    /// The smallest or largest number.
    BestNumber(String, Side),
    /// Distinct values: the grouping does the work, groups are counted in the end.
    Distinct(contract::id::FieldName),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Smallest,
    Largest,
}

impl Measure {
    pub(super) fn new(metric: &Metric, entry: &StreamEntry) -> Result<Self> {
        let (field, side) = match metric {
            Metric::Count => return Ok(Self::Count),
            Metric::CountDistinct(field) => return Ok(Self::Distinct(field.clone())),
            Metric::Sum(field) => (field, None),
            Metric::Min(field) => (field, Some(Side::Smallest)),
            Metric::Max(field) => (field, Some(Side::Largest)),
        };
        let integer = column_of(&entry.layout, field, SlotKind::Integer);
        let number = column_of(&entry.layout, field, SlotKind::Number);
        let summable = entry
            .layout
            .slot(field, SlotKind::Integer)
            .is_none_or(|slot| slot.field_kind == FieldKind::Integer);
        match (integer, number, side) {
            (Some(column), _, Some(side)) => Ok(Self::BestInteger(column, side)),
            (_, Some(column), Some(side)) => Ok(Self::BestNumber(column, side)),
            (Some(column), _, None) if summable => Ok(Self::SumInteger(column)),
            (_, Some(column), None) => Ok(Self::SumNumber(column)),
            _ => Err(unsupported(entry, field, "has no values to compute with")),
        }
    }

    pub(super) fn on(&self, segment: &SegmentReader) -> tantivy::Result<Values> {
        let columns = segment.fast_fields();
        let values = match self {
            Self::Count | Self::Distinct(_) => None,
            Self::SumInteger(name) | Self::BestInteger(name, _) => {
                columns.column_opt(name)?.map(Values::Integers)
            }
            Self::SumNumber(name) | Self::BestNumber(name, _) => {
                columns.column_opt(name)?.map(Values::Numbers)
            }
        };
        Ok(values.unwrap_or(Values::None))
    }

    pub(super) fn start(&self) -> Tally {
        match self {
            Self::Count | Self::Distinct(_) => Tally::Count,
            Self::SumInteger(_) => Tally::SumInteger(0),
            Self::SumNumber(_) => Tally::SumNumber(0.0, 0.0),
            Self::BestInteger(_, side) | Self::BestNumber(_, side) => Tally::Best(*side, None),
        }
    }

    /// Whether a record, by what its columns hold, has this smallest or largest value.
    pub(super) fn has(&self, best: i64, value_of: impl Fn(&str) -> Option<ColumnValue>) -> bool {
        let (Self::BestInteger(name, _) | Self::BestNumber(name, _)) = self else {
            return false;
        };
        match value_of(name) {
            Some(ColumnValue::Integer(value)) => value == best,
            Some(ColumnValue::Number(value)) => ordered(value) == best,
            Some(ColumnValue::Text(_) | ColumnValue::Items(_)) | None => false,
        }
    }

    /// Whether there is more to do than counting.
    pub(super) fn is_count(&self) -> bool {
        matches!(self, Self::Count | Self::Distinct(_))
    }
}

pub(super) enum Values {
    None,
    Integers(Column<i64>),
    Numbers(Column<f64>),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Tally {
    Count,
    SumInteger(i128),
    /// Sum and what rounding has lost so far, so that the order of adding does not show in the result.
    SumNumber(f64, f64),
    /// The best value, as an integer that orders alike, and where it stands.
    Best(Side, Option<(i64, DocAddress)>),
}

impl Tally {
    pub(super) fn add_integer(&mut self, value: i64, at: DocAddress) {
        match self {
            Self::SumInteger(sum) => *sum += i128::from(value),
            Self::Best(side, best) => offer(*side, best, (value, at)),
            Self::Count | Self::SumNumber(..) => {}
        }
    }

    pub(super) fn add_number(&mut self, value: f64, at: DocAddress) {
        match self {
            Self::SumNumber(sum, lost) => add_carefully(sum, lost, value),
            Self::Best(side, best) => offer(*side, best, (ordered(value), at)),
            Self::Count | Self::SumInteger(_) => {}
        }
    }

    /// Adds what was tallied elsewhere for the same group.
    pub(super) fn merge(&mut self, other: Self) {
        match (self, other) {
            (Self::SumInteger(sum), Self::SumInteger(more)) => *sum += more,
            (Self::SumNumber(sum, lost), Self::SumNumber(more, also_lost)) => {
                add_carefully(sum, lost, more);
                *lost += also_lost;
            }
            (Self::Best(side, best), Self::Best(_, Some(other))) => offer(*side, best, other),
            _ => {}
        }
    }

    pub(super) fn total(&self) -> Total {
        match *self {
            Self::Count | Self::Best(_, None) => Total::Nothing,
            Self::SumInteger(sum) => Total::Integer(sum),
            Self::SumNumber(sum, lost) => Total::Number(sum + lost),
            Self::Best(_, Some((value, at))) => Total::At(value, at),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Total {
    Nothing,
    Integer(i128),
    Number(f64),
    /// The best value, as an integer that orders alike, and the record that holds it.
    At(i64, DocAddress),
}

impl Total {
    pub(super) fn into_number(self) -> Value {
        match self {
            Self::Integer(value) => Value::Integer(value),
            Self::Number(value) => Value::Number(value),
            Self::Nothing | Self::At(..) => Value::None,
        }
    }
}

/// One group: its key, how many records, and their total.
pub(super) struct FinishedGroup {
    pub(super) key: GroupKey,
    pub(super) count: u64,
    pub(super) total: Total,
}

impl FinishedGroup {
    pub(super) fn new(key: GroupKey, count: u64, tally: &Tally) -> Self {
        let total = tally.total();
        Self { key, count, total }
    }
}

/// Of equal values the first record stays, so that the answer is stable.
fn offer(side: Side, best: &mut Option<(i64, DocAddress)>, candidate: (i64, DocAddress)) {
    let better = best.is_none_or(|(value, _)| match side {
        Side::Smallest => candidate.0 < value,
        Side::Largest => candidate.0 > value,
    });
    if better {
        *best = Some(candidate);
    }
}

/// Neumaier's compensated addition.
fn add_carefully(sum: &mut f64, lost: &mut f64, value: f64) {
    let total = *sum + value;
    // Beyond the largest number nothing is left to compensate; the difference would be no number at all.
    if total.is_finite() {
        *lost += if sum.abs() >= value.abs() {
            (*sum - total) + value
        } else {
            (value - total) + *sum
        };
    }
    *sum = total;
}

/// An integer that orders like the float.
fn ordered(value: f64) -> i64 {
    let bits = value.to_bits().cast_signed();
    bits ^ (((bits >> 63).cast_unsigned()) >> 1).cast_signed()
}
