//! Tests on index columns: does a document hold a value within a range?

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use tantivy::columnar::{Column, Dictionary, TermOrdHit};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, SegmentReader, TERMINATED, Term};

use super::document_set::DocumentSet;
use super::engine::{ColumnValue, Segment};
use super::restrict::Rows;

#[derive(Debug, Clone)]
pub(super) enum ColumnTest {
    Integer(String, RangeInclusive<i64>),
    Number(String, RangeInclusive<f64>),
    /// A dictionary column must hold exactly this text; of items, among others.
    Text(String, String),
    /// A dictionary column must hold a text that begins so.
    Prefix(String, String),
    /// A text must have all these words.
    Words(String, String),
    /// The first of these columns that has a value must hold one within the range.
    FirstInteger(Vec<String>, RangeInclusive<i64>),
    /// One of these must pass; they look at one column.
    Any(Vec<ColumnTest>),
    /// Passes where the other does not, so also where there is no value.
    Not(Box<ColumnTest>),
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
    pub(super) fn admits(&self, value_of: &dyn Fn(&str) -> Option<ColumnValue>) -> bool {
        match self {
            Self::Integer(name, values) => matches!(
                value_of(name), Some(ColumnValue::Integer(value)) if values.contains(&value)
            ),
            Self::Number(name, values) => matches!(
                value_of(name), Some(ColumnValue::Number(value)) if values.contains(&value)
            ),
            Self::Text(name, wanted) => match value_of(name) {
                Some(ColumnValue::Text(text)) => text == *wanted,
                Some(ColumnValue::Items(texts)) => texts.contains(wanted),
                _ => false,
            },
            Self::Prefix(name, beginning) => matches!(
                value_of(name), Some(ColumnValue::Text(text)) if text.starts_with(beginning.as_str())
            ),
            Self::Words(name, words) => matches!(
                value_of(name), Some(ColumnValue::Text(text)) if text::has_words(&text, words)
            ),
            Self::FirstInteger(names, values) => {
                let mut found = names.iter().filter_map(|name| match value_of(name) {
                    Some(ColumnValue::Integer(value)) => Some(value),
                    _ => None,
                });
                found.next().is_some_and(|value| values.contains(&value))
            }
            Self::Any(tests) => tests.iter().any(|test| test.admits(value_of)),
            Self::Not(test) => !test.admits(value_of),
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
    /// The values are sorted.
    Integers(Column<i64>, Vec<i64>),
    Ordinals(Column<u64>, Vec<u64>),
    Documents(Arc<DocumentSet>),
    FirstInteger(Vec<Column<i64>>, RangeInclusive<i64>),
    Any(Vec<SegmentTest>),
    Not(Box<SegmentTest>),
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
        found.sort_by_key(SegmentTest::cost);
        Ok(Self {
            tests: found,
            rows: match rows {
                Rows::All => None,
                rows => Some((rows, &segment.columns.rows)),
            },
        })
    }

    /// The same, of these documents only.
    pub(super) fn among(mut self, documents: Arc<DocumentSet>) -> Self {
        // A column's own scan is faster than a look at every bit, so they are tested last.
        self.tests.push(SegmentTest::Documents(documents));
        self
    }

    /// The documents that pass, where nothing else is tested.
    pub(super) fn only_documents(&self) -> Option<&DocumentSet> {
        match (self.tests.as_slice(), self.rows) {
            ([SegmentTest::Documents(documents)], None) => Some(documents),
            _ => None,
        }
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
            first => documents.extend(range.filter(|document| first.pass(*document))),
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
            ColumnTest::Any(tests) => {
                let tests = tests.iter().map(|test| Self::new(segment, test));
                Some(Self::any(tests.collect::<tantivy::Result<_>>()?))
            }
            ColumnTest::Not(test) => Some(Self::Not(Box::new(Self::new(segment, test)?))),
            ColumnTest::Integer(name, values) => columns
                .column_opt(name)?
                .map(|column| Self::Integer(column, values.clone())),
            ColumnTest::FirstInteger(names, values) => {
                let mut found = Vec::new();
                for name in names {
                    found.extend(columns.column_opt(name)?);
                }
                Some(Self::FirstInteger(found, values.clone()))
            }
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
            ColumnTest::Prefix(name, beginning) => match columns.str(name)? {
                None => None,
                Some(column) => ordinals_from(column.dictionary(), beginning)?
                    .map(|ordinals| Self::Ordinal(column.ords().clone(), ordinals)),
            },
            ColumnTest::Words(name, words) => {
                documents_with(segment, name, &text::terms_of(words))?
            }
        };
        // A segment without the column, or without the text, holds no document that passes.
        Ok(found.unwrap_or(Self::Never))
    }

    /// One of several tests; of equalities, a look into a sorted list.
    fn any(tests: Vec<Self>) -> Self {
        let (mut integers, mut ordinals, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let mut columns = (None, None);
        for test in tests {
            match test {
                Self::Never => {}
                Self::Integer(column, values) if values.start() == values.end() => {
                    integers.push(*values.start());
                    columns.0 = Some(column);
                }
                Self::Ordinal(column, values) if values.start() == values.end() => {
                    ordinals.push(*values.start());
                    columns.1 = Some(column);
                }
                test => others.push(test),
            }
        }
        integers.sort_unstable();
        ordinals.sort_unstable();
        others.extend(columns.0.map(|column| Self::Integers(column, integers)));
        others.extend(columns.1.map(|column| Self::Ordinals(column, ordinals)));
        match (others.pop(), others.is_empty()) {
            (None, _) => Self::Never,
            (Some(only), true) => only,
            (Some(last), false) => {
                others.push(last);
                Self::Any(others)
            }
        }
    }

    fn pass(&self, document: DocId) -> bool {
        match self {
            Self::Integer(column, values) => column
                .first(document)
                .is_some_and(|value| values.contains(&value)),
            Self::Number(column, values) => column
                .first(document)
                .is_some_and(|value| values.contains(&value)),
            // Only dictionary columns hold several values in one document.
            Self::Ordinal(column, values) => column
                .values_for_doc(document)
                .any(|value| values.contains(&value)),
            Self::Integers(column, values) => column
                .first(document)
                .is_some_and(|value| values.binary_search(&value).is_ok()),
            Self::Ordinals(column, values) => column
                .values_for_doc(document)
                .any(|value| values.binary_search(&value).is_ok()),
            Self::Documents(documents) => documents.contains(document),
            Self::FirstInteger(columns, values) => columns
                .iter()
                .find_map(|column| column.first(document))
                .is_some_and(|value| values.contains(&value)),
            Self::Any(tests) => tests.iter().any(|test| test.pass(document)),
            Self::Not(test) => !test.pass(document),
            Self::Never => false,
        }
    }

    /// The order in which tests are tried: those that leave least to the others first.
    fn cost(&self) -> u8 {
        let is_equality = match self {
            Self::Integer(_, values) => values.start() == values.end(),
            Self::Number(_, values) => values.start() >= values.end(),
            Self::Ordinal(_, values) => values.start() == values.end(),
            Self::Never | Self::Documents(_) => true,
            Self::Integers(..) | Self::Ordinals(..) | Self::FirstInteger(..) | Self::Any(_) => {
                return 2;
            }
            Self::Not(_) => return 3,
        };
        u8::from(!is_equality)
    }
}

/// The ordinals of the texts that begin so: a dictionary is sorted.
fn ordinals_from(
    dictionary: &Dictionary,
    beginning: &str,
) -> tantivy::Result<Option<RangeInclusive<u64>>> {
    let number = dictionary.num_terms() as u64;
    let first_from = |key: &[u8]| -> tantivy::Result<u64> {
        Ok(match dictionary.term_ord_or_next(key)? {
            TermOrdHit::Exact(ordinal) | TermOrdHit::Next(ordinal) => ordinal.min(number),
        })
    };
    let low = first_from(beginning.as_bytes())?;
    // No byte of a text is 0xff, so this follows every text with the beginning.
    let end = first_from(&[beginning.as_bytes(), &[0xff]].concat())?;
    Ok((low < end).then(|| low..=end - 1))
}

/// The documents of a segment that have all these terms in a text.
fn documents_with(
    segment: &SegmentReader,
    name: &str,
    terms: &[String],
) -> tantivy::Result<Option<SegmentTest>> {
    let field = segment.schema().get_field(name)?;
    let index = segment.inverted_index(field)?;
    let mut common: Option<Vec<DocId>> = None;
    for term in terms {
        let term = Term::from_field_text(field, term);
        let Some(mut postings) = index.read_postings(&term, IndexRecordOption::Basic)? else {
            return Ok(None);
        };
        let mut found = Vec::new();
        match common.take() {
            None => {
                while postings.doc() != TERMINATED {
                    found.push(postings.doc());
                    postings.advance();
                }
            }
            Some(before) => found.extend(before.into_iter().filter(|document| {
                postings.doc() <= *document && postings.seek(*document) == *document
            })),
        }
        common = Some(found);
    }
    Ok(common.map(|common| {
        let mut documents = DocumentSet::new(segment.max_doc());
        for document in common {
            documents.insert(document);
        }
        SegmentTest::Documents(Arc::new(documents))
    }))
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
