//! Tables of exports whose columns are known by name: the header is found behind whatever stands before it, and a cell is asked for by its
//! column.

use serde_json::{Map, Value};

use super::Rows;
use super::pieces::{malformed, parse_json};
use crate::lines::MAX_LINE_BYTES;
use crate::rejection::{Rejection, quoted};

/// Rows among which the header is looked for.
pub(super) const HEADER_WITHIN: usize = 10;

/// A row of a table that falls into pieces, see [`Cut::Named`](super::pieces::Cut::Named).
pub(crate) struct NamedRow(Map<String, Value>);

impl NamedRow {
    pub(crate) fn read(piece: &[u8]) -> Result<Self, Rejection> {
        Ok(match parse_json(piece)? {
            Value::Object(cells) => Self(cells),
            _ => Self(Map::new()),
        })
    }

    /// What stands in a column, if anything does.
    pub(crate) fn get(&self, column: &str) -> Option<String> {
        let text = self.0.get(column)?.as_str()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The time that stands in a column, if anything does. What cannot be read as one refuses the row.
    pub(crate) fn time(
        &self,
        column: &str,
        read: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<String>, Rejection> {
        let Some(text) = self.get(column) else {
            return Ok(None);
        };
        let unread = || malformed(format!("'{column}' is no time: {}", quoted(&text)));
        read(&text).map(Some).ok_or_else(unread)
    }

    /// Whether its table has these columns.
    pub(crate) fn has(&self, columns: &[&str]) -> bool {
        columns.iter().all(|column| self.0.contains_key(*column))
    }

    /// How many columns its table has.
    pub(crate) fn width(&self) -> usize {
        self.0.len()
    }
}

/// Whether a row is a header with these columns, among others.
pub(crate) fn names_all(cells: &[String], columns: &[&str]) -> bool {
    let mut columns = columns.iter();
    columns.all(|column| cells.iter().any(|cell| cell.trim() == *column))
}

/// Whether a table with these columns begins here.
pub(crate) fn has_columns(head: &[u8], columns: &[&str]) -> bool {
    let Ok(mut rows) = Rows::with_delimiter(head, MAX_LINE_BYTES, b',') else {
        return false;
    };
    let rows = std::iter::from_fn(|| rows.next_cells().ok().flatten());
    let mut first = rows.take(HEADER_WITHIN);
    first.any(|cells| names_all(&cells, columns))
}
