//! Tables of exports whose columns are known by name: the header is found behind whatever stands before it, and a cell is asked for by its
//! column.

use super::Rows;
use super::pieces::malformed;
use crate::lines::MAX_LINE_BYTES;
use crate::rejection::Rejection;

/// Rows among which the header is looked for.
const HEADER_WITHIN: usize = 10;

pub(crate) struct NamedRow<'r> {
    header: &'r [String],
    cells: Vec<String>,
}

impl NamedRow<'_> {
    /// What stands in a column, if anything does.
    pub(crate) fn get(&self, column: &str) -> Option<String> {
        let at = self.header.iter().position(|name| name.trim() == column)?;
        let text = self.cells.get(at)?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }
}

/// Whether a table with these columns begins here.
pub(crate) fn has_columns(head: &[u8], columns: &[&str]) -> bool {
    header_of(head, columns).is_some()
}

fn header_of(table: &[u8], columns: &[&str]) -> Option<(Vec<String>, usize)> {
    let mut rows = Rows::with_delimiter(table, MAX_LINE_BYTES, b',').ok()?;
    for before in 0..HEADER_WITHIN {
        let cells = rows.next_cells().ok()??;
        if columns
            .iter()
            .all(|column| cells.iter().any(|cell| cell.trim() == *column))
        {
            return Some((cells, before));
        }
    }
    None
}

/// Goes over the rows of a table with these columns.
pub(crate) fn each_row(
    table: &[u8],
    columns: &[&str],
    mut take: impl FnMut(&NamedRow<'_>),
) -> Result<(), Rejection> {
    let (header, before) = header_of(table, columns)
        .ok_or_else(|| malformed(format!("it has no columns {}", columns.join(", "))))?;
    let mut rows = Rows::with_delimiter(table, MAX_LINE_BYTES, b',')
        .map_err(|error| malformed(error.to_string()))?;
    for _ in 0..=before {
        let _ = rows.next_cells();
    }
    while let Ok(Some(cells)) = rows.next_cells() {
        take(&NamedRow {
            header: &header,
            cells,
        });
    }
    Ok(())
}
