//! The rows of a table as text, where nothing tells how it is written: delimiter, lines before the header, and the header are
//! found by looking at the first rows.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead, Cursor, Read};

use serde_json::{Value, json};

use super::{Told, cells};
use crate::importers::Rows;
use crate::lines::MAX_LINE_BYTES;

const HEAD_BYTES: u64 = 64 * 1024;
/// Rows that are compared to find the delimiter.
const COMPARED: usize = 100;
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

pub(super) struct CsvRows {
    rows: Rows<Box<dyn BufRead>>,
    pub(super) names: Vec<String>,
    pub(super) doubts: Vec<String>,
    delimiter: u8,
    has_header: bool,
    /// How many empty cells end each row.
    blank_end: usize,
    /// The first row, if it is no header.
    first: Option<Vec<String>>,
}

impl CsvRows {
    /// Finds out how a table is written. Nothing if it has no rows.
    pub(super) fn begin(mut reader: Box<dyn BufRead>, told: &Told) -> io::Result<Option<Self>> {
        let mut head = Vec::new();
        (&mut reader).take(HEAD_BYTES).read_to_end(&mut head)?;
        let is_whole = (head.len() as u64) < HEAD_BYTES;
        let told_delimiter = told.delimiter.and_then(|sign| u8::try_from(sign).ok());
        let delimiters = told_delimiter.map_or(DELIMITERS.to_vec(), |told| vec![told]);
        let Some((delimiter, width)) = layout(&head, is_whole, &delimiters)? else {
            return Ok(None);
        };
        let whole: Box<dyn BufRead> = Box::new(Cursor::new(head).chain(reader));
        let mut rows = Rows::with_delimiter(whole, MAX_LINE_BYTES, delimiter)?;
        let Some((before, header, first)) = header_of(&mut rows, width, told)? else {
            return Ok(None);
        };
        let mut doubts = Vec::new();
        if before > 0 {
            let rows = if before == 1 {
                "row before the header is"
            } else {
                "rows before the header are"
            };
            doubts.push(format!("{before} {rows} passed over"));
        }
        let has_header = told.header.unwrap_or_else(|| is_header(&header));
        let names = if has_header {
            unique(&header)
        } else {
            if told.header.is_none() {
                doubts.push("no row names the columns, so they are numbered".to_owned());
            }
            (1..=header.len())
                .map(|at| format!("column_{at}"))
                .collect()
        };
        if has_header && names != header {
            doubts
                .push("columns without a name, or with one of another, are named anew".to_owned());
        }
        Ok(Some(Self {
            rows,
            blank_end: width - names.len(),
            names,
            doubts,
            delimiter,
            has_header,
            first: first.or_else(|| (!has_header).then_some(header)),
        }))
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Vec<String>>> {
        let row = match self.first.take() {
            Some(first) => Some(first),
            None => self.rows.next_cells()?,
        };
        Ok(row.map(|mut cells| {
            let width = self.names.len();
            if cells.len() == width + self.blank_end
                && cells.iter().skip(width).all(String::is_empty)
            {
                cells.truncate(width);
            }
            cells
        }))
    }

    /// What importers must know of it.
    pub(super) fn hint(&self) -> Value {
        json!({"delimiter": char::from(self.delimiter).to_string(), "header": self.has_header})
    }
}

/// How many rows stand before the header, the header or the first row if there is none, and a row below it that was read.
type Found = (usize, Vec<String>, Option<Vec<String>>);

fn header_of<R: BufRead>(
    rows: &mut Rows<R>,
    width: usize,
    told: &Told,
) -> io::Result<Option<Found>> {
    let (mut before, mut above) = (0, Vec::new());
    let first = loop {
        match rows.next_cells()? {
            None => return Ok(None),
            Some(cells) if cells.len() == width => break cells,
            Some(cells) => above = cells,
        }
        before += 1;
    };
    // Some banks end each row with a delimiter, but not the header.
    let is_shorter = (2..width).contains(&above.len());
    let ends_blank = is_shorter && first.iter().skip(above.len()).all(String::is_empty);
    if told.header.is_none() && ends_blank && is_header(&above) && !is_header(&first) {
        return Ok(Some((before - 1, above, Some(first))));
    }
    Ok(Some((before, first, None)))
}

/// The delimiter that gives most rows the same number of cells, more than one if possible, and that number.
fn layout(head: &[u8], is_whole: bool, delimiters: &[u8]) -> io::Result<Option<(u8, usize)>> {
    let mut best: Option<(usize, u8, usize)> = None;
    for delimiter in delimiters.iter().copied() {
        let mut rows = Rows::with_delimiter(Cursor::new(head), MAX_LINE_BYTES, delimiter)?;
        let mut widths = Vec::new();
        while let Some(cells) = rows.next_cells()? {
            widths.push(cells.len());
            if widths.len() > COMPARED {
                break;
            }
        }
        // The last one may be cut, unless it is a header with a long row below it.
        if !is_whole && widths.len() > 1 {
            widths.pop();
        }
        let mut counted = widths.clone();
        counted.sort_unstable();
        counted.dedup();
        let alike = |width: usize| widths.iter().filter(|one| **one == width).count();
        let width = counted
            .into_iter()
            .max_by_key(|width| (alike(*width) * (*width).min(8), *width));
        if let Some(width) = width {
            let score = alike(width) * if width > 1 { 100 + width.min(50) } else { 1 };
            if best.is_none_or(|(most, ..)| score > most) {
                best = Some((score, delimiter, width));
            }
        }
    }
    Ok(best.map(|(_, delimiter, width)| (delimiter, width)))
}

/// Whether a row names columns: no cell of it is a number or a date, and most say something.
pub(crate) fn is_header(cells: &[String]) -> bool {
    let is_value = |cell: &String| {
        cells::iso(cell).is_some()
            || cells::number(cell, '.').is_some()
            || cells::number(cell, ',').is_some()
            || cells::DateOrder::ALL
                .iter()
                .any(|order| cells::date(cell, *order).is_some())
    };
    let filled = cells.iter().filter(|cell| !cell.is_empty()).count();
    !cells.iter().any(is_value) && 2 * filled > cells.len()
}

/// Names for columns that have none, or that of another.
pub(crate) fn unique(header: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut taken = HashSet::new();
    // Where counting goes on for a name that comes again: a made-up table may have it a million times.
    let mut counts: HashMap<String, usize> = HashMap::new();
    for (at, cell) in header.iter().enumerate() {
        let given: String = cell
            .trim()
            .chars()
            .filter(|c| !c.is_control())
            .take(100)
            .collect();
        let given = if given.is_empty() {
            format!("column_{}", at + 1)
        } else {
            given
        };
        let mut name = given.clone();
        while !taken.insert(name.clone()) {
            let count = counts.entry(given.clone()).or_insert(2);
            name = format!("{given}_{count}");
            *count += 1;
        }
        names.push(name);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_gets_a_name_of_its_own_however_many_there_are() {
        let header = ["a", "a_2", "", "a", "a", "column_3"].map(str::to_owned);
        let names = ["a", "a_2", "column_3", "a_3", "a_4", "column_3_2"];
        assert_eq!(unique(&header), names);
        let many = unique(&vec!["x".to_owned(); 200_000]);
        assert_eq!(many.last().unwrap(), "x_200000");
    }
}
