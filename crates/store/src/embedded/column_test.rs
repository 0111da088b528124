//! Tests on index columns: does a document hold a value within a range?

use std::ops::{Range, RangeInclusive};

use tantivy::columnar::Column;
use tantivy::{DocId, SegmentReader};

use super::index::{ColumnValue, Segment};
use super::restrict::Rows;

#[derive(Debug, Clone)]
pub(super) enum ColumnTest {
    Integer(String, RangeInclusive<i64>),
    Number(String, RangeInclusive<f64>),
    /// A dictionary column must hold exactly this text.
    Text(String, String),
    Never,
}

impl ColumnTest {
    /// A test for integers; an empty range never passes.
    pub(super) fn integers(name: String, values: RangeInclusive<i64>) -> Self {
        if values.is_empty() {
            Self::Never
        } else {
            Self::Integer(name, values)
        }
    }

    /// A test for numbers; an empty range never passes.
    pub(super) fn numbers(name: String, values: RangeInclusive<f64>) -> Self {
        if values.is_empty() {
            Self::Never
        } else {
            Self::Number(name, values)
        }
    }

    /// Whether a record passes that has these values in its columns.
    pub(super) fn admits(&self, value_of: impl Fn(&str) -> Option<ColumnValue>) -> bool {
        match self {
            Self::Integer(name, values) => matches!(
                value_of(name), Some(ColumnValue::Integer(value)) if values.contains(&value)
            ),
            Self::Number(name, values) => matches!(
                value_of(name), Some(ColumnValue::Number(value)) if values.contains(&value)
            ),
            Self::Text(name, wanted) => matches!(
                value_of(name), Some(ColumnValue::Text(text)) if text == *wanted
            ),
            Self::Never => false,
        }
    }
}

/// The tests of a restriction on the columns of one segment. All must pass.
pub(super) struct SegmentTests<'a> {
    tests: Vec<SegmentTest>,
    rows: Option<(&'a Rows, &'a Column<u64>)>,
}

enum SegmentTest {
    Integer(Column<i64>, RangeInclusive<i64>),
    Number(Column<f64>, RangeInclusive<f64>),
    Ordinal(Column<u64>, RangeInclusive<u64>),
    Never,
}

impl<'a> SegmentTests<'a> {
    pub(super) fn new(
        segment: Segment<'a>,
        tests: &[ColumnTest],
        rows: &'a Rows,
    ) -> tantivy::Result<Self> {
        let mut found = Vec::with_capacity(tests.len());
        for test in tests {
            found.push(SegmentTest::new(segment.reader, test)?);
        }
        // The first one drives the scan, and an equality is the most selective.
        found.sort_by_key(|test| !test.is_equality());
        Ok(Self {
            tests: found,
            rows: match rows {
                Rows::All => None,
                rows => Some((rows, &segment.columns.rows)),
            },
        })
    }

    /// Whether there is nothing to test.
    pub(super) fn pass_all(&self) -> bool {
        self.tests.is_empty() && self.rows.is_none()
    }

    pub(super) fn pass(&self, document: DocId) -> bool {
        self.tests.iter().all(|test| test.pass(document)) && self.has_row(document)
    }

    pub(super) fn retain(&self, documents: &mut Vec<DocId>) {
        if !self.pass_all() {
            documents.retain(|document| self.pass(*document));
        }
    }

    /// Adds the documents of a range that pass.
    pub(super) fn fill(&self, range: Range<DocId>, documents: &mut Vec<DocId>) {
        let Some((first, rest)) = self.tests.split_first() else {
            documents.extend(range.filter(|document| self.has_row(*document)));
            return;
        };
        match first {
            SegmentTest::Integer(column, values) => scan(column, values, range, documents),
            SegmentTest::Number(column, values) => scan(column, values, range, documents),
            SegmentTest::Ordinal(column, values) => scan(column, values, range, documents),
            SegmentTest::Never => return,
        }
        if !rest.is_empty() || self.rows.is_some() {
            documents.retain(|document| {
                rest.iter().all(|test| test.pass(*document)) && self.has_row(*document)
            });
        }
    }

    fn has_row(&self, document: DocId) -> bool {
        self.rows.as_ref().is_none_or(|(rows, column)| {
            column.first(document).is_some_and(|row| rows.contains(row))
        })
    }
}

impl SegmentTest {
    fn new(segment: &SegmentReader, test: &ColumnTest) -> tantivy::Result<Self> {
        let columns = segment.fast_fields();
        let found = match test {
            ColumnTest::Never => None,
            ColumnTest::Integer(name, values) => columns
                .column_opt(name)?
                .map(|column| Self::Integer(column, values.clone())),
            ColumnTest::Number(name, values) => columns
                .column_opt(name)?
                .map(|column| Self::Number(column, values.clone())),
            ColumnTest::Text(name, wanted) => match columns.str(name)? {
                None => None,
                Some(column) => column
                    .dictionary()
                    .term_ord(wanted.as_bytes())?
                    .map(|ordinal| Self::Ordinal(column.ords().clone(), ordinal..=ordinal)),
            },
        };
        // A segment without the column, or without the text, holds no document that passes.
        Ok(found.unwrap_or(Self::Never))
    }

    fn pass(&self, document: DocId) -> bool {
        match self {
            Self::Integer(column, values) => column
                .first(document)
                .is_some_and(|value| values.contains(&value)),
            Self::Number(column, values) => column
                .first(document)
                .is_some_and(|value| values.contains(&value)),
            Self::Ordinal(column, values) => column
                .first(document)
                .is_some_and(|value| values.contains(&value)),
            Self::Never => false,
        }
    }

    fn is_equality(&self) -> bool {
        match self {
            Self::Integer(_, values) => values.start() == values.end(),
            Self::Number(_, values) => values.start() >= values.end(),
            Self::Ordinal(..) | Self::Never => true,
        }
    }
}

/// Adds the documents of a range whose value lies within bounds. The bounds are clamped to what the column can hold: it
/// treats anything below its smallest value as that value.
fn scan<T: Copy + PartialOrd + std::fmt::Debug + Send + Sync + 'static>(
    column: &Column<T>,
    values: &RangeInclusive<T>,
    range: Range<DocId>,
    documents: &mut Vec<DocId>,
) {
    let (smallest, largest) = (column.min_value(), column.max_value());
    let low = if *values.start() < smallest {
        smallest
    } else {
        *values.start()
    };
    let high = if *values.end() > largest {
        largest
    } else {
        *values.end()
    };
    if low <= high {
        column.get_docids_for_value_range(low..=high, range, documents);
    }
}
