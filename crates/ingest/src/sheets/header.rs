//! Rows below the names of their columns.

use std::collections::VecDeque;

use super::{Cell, Sheet, SheetRow, SheetRows};
use crate::error::InputError;
use crate::table::{TableHints, Told, is_header, unique_names};

/// Rows among which the header is looked for.
const HEADER_WITHIN: usize = 100;

/// A table whose columns have names.
pub(crate) struct Headed {
    pub(crate) names: Vec<String>,
    pub(crate) has_header: bool,
    /// What was a guess.
    pub(crate) doubts: Vec<String>,
    /// Where the first column stands.
    from: usize,
    /// Rows that were looked at.
    ready: VecDeque<SheetRow>,
    rows: Box<dyn SheetRows>,
}

impl Headed {
    /// Finds the row that names the columns. Nothing if there are no rows.
    pub(crate) fn find(
        sheet: &Sheet,
        mut rows: Box<dyn SheetRows>,
        told: &Told,
    ) -> Result<Option<Self>, InputError> {
        if let Some(names) = &sheet.columns {
            return Ok(Some(Self::columns(rows, names)));
        }
        let mut ready = first_rows(&mut *rows)?;
        let Some(most) = ready.iter().map(|row| filled(&row.cells)).max() else {
            return Ok(None);
        };
        // A title above the table fills fewer cells than most of its rows.
        let at = ready
            .iter()
            .position(|row| 5 * filled(&row.cells) >= 3 * most);
        let at = at.unwrap_or_default();
        let header = ready
            .get(at)
            .map(|row| texts(&row.cells))
            .unwrap_or_default();
        let (from, header) = trimmed(&header);
        let has_header = told.header.unwrap_or_else(|| is_header(&header));
        if !has_header {
            let mut table = Self::unnamed(rows, ready);
            let doubt = "no row names the columns, so they are numbered";
            let is_guess = told.header.is_none();
            table.doubts.extend(is_guess.then(|| doubt.to_owned()));
            return Ok(Some(table));
        }
        let before = ready.drain(..=at).count() - 1;
        let names = unique_names(&header);
        let renamed = names != header;
        let mut table = Self::named(rows, ready, from, names);
        if before > 0 {
            let rows = if before == 1 {
                "row before the header is"
            } else {
                "rows before the header are"
            };
            let doubt = format!("{before} {rows} passed over");
            table.doubts.push(doubt);
        }
        if renamed {
            let doubt = "columns without a name, or with one of another, are named anew";
            table.doubts.push(doubt.to_owned());
        }
        Ok(Some(table))
    }

    /// Finds the row that names most of the declared columns. Nothing if there are no rows.
    pub(crate) fn declared(
        sheet: &Sheet,
        mut rows: Box<dyn SheetRows>,
        hints: Option<&TableHints>,
        declared: &[&str],
    ) -> Result<Option<Self>, InputError> {
        if let Some(names) = &sheet.columns {
            return Ok(Some(Self::columns(rows, names)));
        }
        let mut ready = first_rows(&mut *rows)?;
        if ready.is_empty() {
            return Ok(None);
        }
        if hints.is_some_and(|hints| !hints.has_header) {
            let mut table = Self::unnamed(rows, ready);
            table.names = declared.iter().map(|name| (*name).to_owned()).collect();
            return Ok(Some(table));
        }
        let found = ready.iter().enumerate().find_map(|(at, row)| {
            let (from, header) = trimmed(&texts(&row.cells));
            let names = unique_names(&header);
            let known = names
                .iter()
                .filter(|name| declared.contains(&name.as_str()));
            (2 * known.count() > declared.len()).then_some((at, from, names))
        });
        let Some((at, from, names)) = found else {
            return Err(InputError::Header(format!(
                "is not among the first {HEADER_WITHIN} rows, or names other columns"
            )));
        };
        ready.drain(..=at);
        Ok(Some(Self::named(rows, ready, from, names)))
    }

    /// A table whose columns are named outside its rows.
    fn columns(rows: Box<dyn SheetRows>, names: &[String]) -> Self {
        Self::named(rows, VecDeque::new(), 0, unique_names(names))
    }

    fn named(
        rows: Box<dyn SheetRows>,
        ready: VecDeque<SheetRow>,
        from: usize,
        names: Vec<String>,
    ) -> Self {
        Self {
            names,
            has_header: true,
            doubts: Vec::new(),
            from,
            ready,
            rows,
        }
    }

    fn unnamed(rows: Box<dyn SheetRows>, ready: VecDeque<SheetRow>) -> Self {
        let from = ready.iter().filter_map(|row| {
            let mut cells = row.cells.iter();
            cells.position(|cell| !cell.text.is_empty())
        });
        let from = from.min().unwrap_or_default();
        let width = ready.iter().map(|row| row.cells.len()).max();
        let width = width.unwrap_or_default().saturating_sub(from);
        let names = (1..=width).map(|at| format!("column_{at}")).collect();
        let mut table = Self::named(rows, ready, from, names);
        table.has_header = false;
        table
    }

    /// The next row that is not empty, with a cell for each column and those beyond that are filled.
    pub(crate) fn next_row(&mut self) -> Result<Option<SheetRow>, InputError> {
        loop {
            let mut row = match self.ready.pop_front() {
                Some(row) => row,
                None => match self.rows.next_row()? {
                    Some(row) => row,
                    None => return Ok(None),
                },
            };
            if row.is_empty() {
                continue;
            }
            let before = row.cells.drain(..self.from.min(row.cells.len()));
            if filled(before.as_slice()) > 0 {
                let fault = "a cell of the row stands left of the first column of the table";
                row.fault = row.fault.or(Some(fault));
            }
            drop(before);
            row.cells
                .resize(row.cells.len().max(self.names.len()), Cell::default());
            return Ok(Some(row));
        }
    }

    /// What was left out of the rows so far.
    pub(crate) fn left_out(&self) -> Vec<String> {
        self.rows.left_out()
    }
}

fn first_rows(rows: &mut dyn SheetRows) -> Result<VecDeque<SheetRow>, InputError> {
    let mut first = VecDeque::new();
    while first.len() < HEADER_WITHIN
        && let Some(row) = rows.next_row()?
    {
        if !row.is_empty() {
            first.push_back(row);
        }
    }
    Ok(first)
}

fn filled(cells: &[Cell]) -> usize {
    cells.iter().filter(|cell| !cell.text.is_empty()).count()
}

fn texts(cells: &[Cell]) -> Vec<String> {
    cells.iter().map(|cell| cell.text.clone()).collect()
}

/// A row without the empty cells around it, and how many stood before.
fn trimmed(cells: &[String]) -> (usize, Vec<String>) {
    let is_filled = |cell: &String| !cell.is_empty();
    let from = cells.iter().position(is_filled).unwrap_or_default();
    let to = cells.iter().rposition(is_filled).map_or(from, |to| to + 1);
    (from, cells.get(from..to).unwrap_or_default().to_vec())
}
