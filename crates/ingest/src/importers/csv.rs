//! Tables as text: a header row with the names of fields, then one bare record per row. What stands between cells and what
//! the bytes mean is found by looking at the beginning.
//!
//! A row whose quotes do not fit is refused whole: where its cells end would be a guess.

mod columns;
mod delimiter;
mod quotes;
mod rows;
mod text;

use std::io::{self, BufRead};

pub(crate) use columns::Columns;
pub(crate) use rows::Rows;
pub(crate) use text::{Encoding, Text};

use crate::accept::Acceptor;
use crate::error::InputError;
use crate::importer::{Importer, Item};
use crate::lines::MAX_LINE_BYTES;
use crate::table::{RowKeys, TableHints};
use crate::validate::Cells;

pub struct CsvImporter<'a, R> {
    /// The file, until its beginning was looked at.
    reader: Option<R>,
    limit: usize,
    acceptor: &'a Acceptor<'a>,
    keys: Option<RowKeys>,
    table: Option<Table<'a, R>>,
}

struct Table<'a, R> {
    rows: Rows<R>,
    columns: Columns<'a>,
    /// How many empty cells end each row, as some banks write them: as many as the first one has.
    blank_end: Option<usize>,
}

impl<'a, R: BufRead> CsvImporter<'a, R> {
    pub fn new(reader: R, acceptor: &'a Acceptor<'a>) -> Self {
        Self::with_limit(reader, acceptor, MAX_LINE_BYTES)
    }

    pub fn with_limit(reader: R, acceptor: &'a Acceptor<'a>, limit: usize) -> Self {
        Self {
            reader: Some(reader),
            limit,
            acceptor,
            keys: RowKeys::for_stream(acceptor),
            table: None,
        }
    }

    /// Finds out how the table is written and reads its header. Nothing if the file is empty.
    fn begin(&mut self) -> Result<Option<Table<'a, R>>, InputError> {
        let rules = self.acceptor.rules().map_err(|rejection| {
            InputError::Header(format!("has no stream: {}", rejection.message))
        })?;
        let Some(reader) = self.reader.take() else {
            return Ok(None);
        };
        let is_known = |name: &str| rules.field(name).is_some();
        let hints = TableHints::of_stream(rules.declaration);
        let mut rows = match hints.as_ref().and_then(|hints| hints.delimiter) {
            Some(delimiter) => Rows::with_delimiter(reader, self.limit, delimiter)?,
            None => Rows::new(reader, self.limit, is_known)?,
        };
        let names = match &hints {
            Some(hints) => rows.hinted_names(hints, rules)?,
            None => rows.first_names()?,
        };
        let Some(names) = names else {
            return Ok(None);
        };
        let refused = |why: String| {
            Err(InputError::Header(format!(
                "{why}; {}",
                rows.describe(&names)
            )))
        };
        let made = self.keys.as_ref().map(RowKeys::field);
        let columns = match Columns::new(rules, &names, made) {
            Ok(columns) => columns,
            Err(why) => return refused(why),
        };
        Ok(Some(Table {
            rows,
            columns,
            blank_end: None,
        }))
    }
}

impl<R: BufRead> Table<'_, R> {
    fn next_item(
        &mut self,
        acceptor: &Acceptor<'_>,
        keys: Option<&mut RowKeys>,
    ) -> io::Result<Option<Item>> {
        let Some(row) = self.rows.read()? else {
            return Ok(None);
        };
        let outcome = if let Some(rejection) = row.rejection() {
            Err(rejection)
        } else {
            let mut cells: Vec<&[u8]> = self.rows.cells().collect();
            let blank = self.columns.blank_end(&cells);
            let blank_end = *self.blank_end.get_or_insert(blank.unwrap_or_default());
            if blank == Some(blank_end) {
                cells.truncate(cells.len() - blank_end);
            }
            let encoding = self.rows.input.encoding;
            let record = self.columns.record(&cells, encoding, keys);
            record.and_then(|body| acceptor.bare(body, Cells::Columns))
        };
        Ok(Some(Item::new(row.line, self.rows.text.len(), outcome)))
    }
}

impl<R: BufRead> Importer for CsvImporter<'_, R> {
    fn next_item(&mut self) -> Result<Option<Item>, InputError> {
        if self.table.is_none() {
            self.table = self.begin()?;
        }
        match &mut self.table {
            Some(table) => Ok(table.next_item(self.acceptor, self.keys.as_mut())?),
            None => Ok(None),
        }
    }

    fn note(&self) -> Option<String> {
        let encoding = self.table.as_ref()?.rows.input.encoding;
        let assumed = encoding == Encoding::Windows1252;
        assumed.then(|| "the file is not UTF-8; its letters are read as Windows-1252".to_owned())
    }
}
