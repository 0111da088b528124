//! Tables of exports whose columns are known by name: the header is found behind whatever stands before it, and a cell is asked for by its
//! column.

use super::Rows;
use super::pieces::{Made, malformed};
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

/// Goes over the rows of a table with these columns. A row that cannot be read is refused, and the others are taken.
pub(crate) fn each_row(
    table: &[u8],
    columns: &[&str],
    made: &mut Made,
    mut take: impl FnMut(&NamedRow<'_>, &mut Made),
) -> Result<(), Rejection> {
    let unreadable = |error: std::io::Error| malformed(error.to_string());
    let (header, before) = header_of(table, columns)
        .ok_or_else(|| malformed(format!("it has no columns {}", columns.join(", "))))?;
    let mut rows = Rows::with_delimiter(table, MAX_LINE_BYTES, b',').map_err(unreadable)?;
    for _ in 0..=before {
        rows.next_cells().map_err(unreadable)?;
    }
    while let Some((line, cells)) = rows.next_texts().map_err(unreadable)? {
        made.go_to_line(line);
        match cells {
            Ok(cells) => {
                let header = &header;
                take(&NamedRow { header, cells }, made);
            }
            Err(rejection) => made.refuse(rejection),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_cannot_be_read_is_named_and_the_others_are_taken() {
        let table =
            b"Notes:\n\nName,Since\nNoor,2024\n\"Ida\" L,2025\nZoe,2026\n\"open,2027\nlost,2028\n";
        let mut made = Made::default();
        let mut taken = Vec::new();
        each_row(table, &["Name", "Since"], &mut made, |row, _| {
            taken.extend(row.get("Name"));
        })
        .unwrap();
        assert_eq!(taken, ["Noor", "Zoe"]);
        let refused: Vec<(u64, String)> = made.refused().collect();
        assert_eq!(refused.len(), 2);
        assert!(
            refused[0]
                .1
                .contains("goes on after its closing quote in line 5"),
            "{refused:?}"
        );
        assert!(
            refused[1].1.contains("opened in line 7 is never closed"),
            "{refused:?}"
        );
        assert_eq!((refused[0].0, refused[1].0), (5, 7));
    }
}
