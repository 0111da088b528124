//! Tables as text: a header row with the names of fields, then one bare record per row. What stands between cells and what
//! the bytes mean is found by looking at the beginning.
//!
//! A cell becomes what its field is declared to be. Numbers must be written as JSON writes them and keep their digits;
//! booleans are `true` or `false` in any case; objects and arrays are JSON; everything else, and every column the
//! stream does not declare, is a text. An empty cell is null where the field may be null; otherwise the record goes
//! without the field.
//!
//! A row whose quotes do not fit is refused whole: where its cells end would be a guess.

mod delimiter;
mod quotes;
mod text;

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{self, BufRead};

use contract::declaration::{FieldDeclaration, JsonType};
use contract::json::{self, RecordBody};
use contract::scalar::FieldKind;
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use quotes::{Misquoted, Quotes};
use text::{Encoding, Text};

use crate::accept::Acceptor;
use crate::error::InputError;
use crate::importer::{Importer, Item};
use crate::lines::MAX_LINE_BYTES;
use crate::rejection::{Given, Rejection, RejectionCode, quoted};
use crate::validate::Cells;
use crate::validate::value::{Fault, listed};

pub struct CsvImporter<'a, R> {
    /// The file, until its beginning was looked at.
    reader: Option<R>,
    limit: usize,
    acceptor: &'a Acceptor<'a>,
    table: Option<Table<'a, R>>,
}

struct Table<'a, R> {
    rows: Rows<R>,
    columns: Vec<Column<'a>>,
}

/// A column: its name as JSON, and the field it fills.
struct Column<'a> {
    name: String,
    json_name: String,
    field: Option<&'a FieldDeclaration>,
    takes_null: bool,
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
        let mut rows = Rows::new(reader, self.limit, |name| rules.field(name).is_some())?;
        let Some(row) = rows.read()? else {
            return Ok(None);
        };
        let names = rows.names(&row)?;
        let refused = |why: String| {
            Err(InputError::Header(format!(
                "{why}; {}",
                rows.describe(&names)
            )))
        };
        let mut seen = HashSet::new();
        for (at, name) in names.iter().enumerate() {
            if name.is_empty() {
                return refused(format!("gives column {} no name", at + 1));
            }
            if !seen.insert(name.as_str()) {
                return refused(format!("names the column {} twice", quoted(name)));
            }
        }
        let stream = &rules.declaration.name;
        let keys = rules.declaration.primary_key.iter();
        let keys = keys.map(|name| (name.as_str(), "is the primary key of"));
        let required = rules.required().iter();
        let required = required.map(|name| (name.as_str(), "is required by"));
        for (name, why) in keys.chain(required) {
            if !seen.contains(name) {
                let name = quoted(name);
                return refused(format!(
                    "has no column {name}, which {why} stream '{stream}'"
                ));
            }
        }
        let column = |name: &String| Column {
            json_name: json_text(name),
            field: rules.field(name),
            takes_null: rules.takes_null(name),
            name: name.clone(),
        };
        let columns = names.iter().map(column).collect();
        Ok(Some(Table { rows, columns }))
    }
}

impl<R: BufRead> Table<'_, R> {
    fn next_item(&mut self, acceptor: &Acceptor<'_>) -> io::Result<Option<Item>> {
        let Some(row) = self.rows.read()? else {
            return Ok(None);
        };
        let outcome = if let Some(misquoted) = row.misquoted {
            Err(misquoted.rejection())
        } else if row.too_long {
            let message = format!(
                "the row is longer than {} MiB; a quote may be left open",
                MAX_LINE_BYTES >> 20
            );
            Err(Rejection::new(RejectionCode::LineTooLong, message))
        } else {
            let record = self.record();
            record.and_then(|body| acceptor.bare(body, Cells::Columns))
        };
        Ok(Some(Item::new(row.line, self.rows.text.len(), outcome)))
    }

    fn record(&self) -> Result<RecordBody, Rejection> {
        let columns = &self.columns;
        if self.rows.cells().count() != columns.len() {
            let message = format!(
                "the row has {} cells and the header {}",
                self.rows.cells().count(),
                columns.len()
            );
            return Err(Rejection::new(RejectionCode::MalformedCsv, message));
        }
        let encoding = self.rows.input.encoding;
        let mut text = String::from("{");
        for (column, cell) in columns.iter().zip(self.rows.cells()) {
            let Some(decoded) = encoding.decode(cell) else {
                return Err(column.undecodable(encoding, cell));
            };
            let Some(value) = column.value(&decoded)? else {
                continue;
            };
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(&column.json_name);
            text.push(':');
            text.push_str(&value);
        }
        text.push('}');
        RecordBody::parse(text)
            .map_err(|error| Rejection::new(RejectionCode::MalformedCsv, error.to_string()))
    }
}

impl<R: BufRead> Importer for CsvImporter<'_, R> {
    fn next_item(&mut self) -> Result<Option<Item>, InputError> {
        if self.table.is_none() {
            self.table = self.begin()?;
        }
        match &mut self.table {
            Some(table) => Ok(table.next_item(self.acceptor)?),
            None => Ok(None),
        }
    }

    fn note(&self) -> Option<String> {
        let encoding = self.table.as_ref()?.rows.input.encoding;
        let assumed = encoding == Encoding::Windows1252;
        assumed.then(|| "the file is not UTF-8; its letters are read as Windows-1252".to_owned())
    }
}

impl Column<'_> {
    /// Why a cell is refused that is no text of the file's encoding.
    fn undecodable(&self, encoding: Encoding, cell: &[u8]) -> Rejection {
        let fault = Fault {
            code: RejectionCode::InvalidUtf8,
            at: String::new(),
            rule: format!("is not {}", encoding.name()),
            value: Some(Given::text(&String::from_utf8_lossy(cell))),
        };
        Cells::Columns.rejection(&self.name, fault)
    }

    /// The JSON of a cell, or nothing where the record goes without the field.
    fn value(&self, cell: &str) -> Result<Option<String>, Rejection> {
        if cell.is_empty() {
            return Ok(self.takes_null.then(|| "null".to_owned()));
        }
        let Some(field) = self.field else {
            return Ok(Some(json_text(cell)));
        };
        let read = match field.kind {
            FieldKind::Integer | FieldKind::Number => {
                json::is_number(cell).then(|| cell.to_owned())
            }
            FieldKind::Boolean => ["true", "false"]
                .into_iter()
                .find(|word| cell.eq_ignore_ascii_case(word))
                .map(str::to_owned),
            FieldKind::Text | FieldKind::Date | FieldKind::DateTime => Some(json_text(cell)),
            FieldKind::Object | FieldKind::Array => is_json(cell).then(|| cell.to_owned()),
            // Several types: a text wherever a text may stand, else JSON.
            FieldKind::Mixed => {
                if field.types.is_empty() || field.types.contains(&JsonType::String) {
                    Some(json_text(cell))
                } else {
                    is_json(cell).then(|| cell.to_owned())
                }
            }
        };
        read.map(Some).ok_or_else(|| {
            let fault = Fault {
                code: RejectionCode::InvalidFieldType,
                at: String::new(),
                rule: format!("must be {}", listed(&field.types)),
                value: Some(Given::text(cell)),
            };
            Cells::Columns.rejection(&self.name, fault)
        })
    }
}

fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn is_json(cell: &str) -> bool {
    // Within an object, so that the one check there is for records serves any value.
    RecordBody::parse(format!("{{\"cell\":{cell}}}")).is_ok_and(|body| body.members().len() == 1)
}

/// Splits bytes into rows and cells, holding one row at a time.
struct Rows<R> {
    input: Text<R>,
    delimiter: u8,
    engine: Reader,
    limit: usize,
    quotes: Quotes,
    /// Line ends consumed so far.
    line_ends: u64,
    room: Vec<u8>,
    room_ends: [usize; 64],
    text: Vec<u8>,
    ends: Vec<usize>,
}

/// A row that was read: where it began, whether its cells were too much to hold, and what is wrong with its quotes.
struct Row {
    line: u64,
    too_long: bool,
    misquoted: Option<Misquoted>,
}

impl<R: BufRead> Rows<R> {
    fn new(reader: R, limit: usize, is_known: impl Fn(&str) -> bool) -> io::Result<Self> {
        let mut input = Text::begin(reader)?;
        let found = delimiter::find(input.head(), input.encoding, is_known);
        input.consume(found.said_in);
        let delimiter = found.delimiter;
        Ok(Self {
            input,
            delimiter,
            engine: ReaderBuilder::new().delimiter(delimiter).build(),
            limit,
            quotes: Quotes::new(delimiter),
            line_ends: u64::from(found.said_in > 0),
            room: vec![0; 16 * 1024],
            room_ends: [0; 64],
            text: Vec::new(),
            ends: Vec::new(),
        })
    }

    fn names(&self, header: &Row) -> Result<Vec<String>, InputError> {
        if header.too_long {
            return Err(InputError::Header("is too long".to_owned()));
        }
        if let Some(misquoted) = header.misquoted {
            return Err(InputError::Header(misquoted.in_header()));
        }
        let cells = self.cells().map(|cell| self.input.encoding.decode(cell));
        let names: Option<Vec<String>> = cells.map(|cell| cell.map(Cow::into_owned)).collect();
        names.ok_or_else(|| InputError::Header(format!("is not {}", self.input.encoding.name())))
    }

    /// How the table was read, so that a wrong guess can be noticed.
    fn describe(&self, names: &[String]) -> String {
        const SHOWN: usize = 12;
        let mut columns: Vec<String> = names.iter().take(SHOWN).map(|name| quoted(name)).collect();
        if let Some(more) = names.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            columns.push(format!("and {more} more"));
        }
        format!(
            "it was read as {} with {} between the cells, and its columns are {}",
            self.input.encoding.name(),
            delimiter::described(self.delimiter),
            columns.join(", ")
        )
    }

    fn cells(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(self.ends.iter().copied())
            .map(|(start, end)| self.text.get(start..end).unwrap_or_default())
    }

    fn read(&mut self) -> io::Result<Option<Row>> {
        self.skip_blank_lines()?;
        let line = self.line_ends + 1;
        self.quotes.begin_row();
        let mut too_long = false;
        let (mut written, mut fields) = (0, 0);
        self.text.clear();
        self.text.shrink_to(1024 * 1024);
        self.ends.clear();
        loop {
            let input = self.input.fill_buf()?;
            let (state, consumed, bytes, ends) =
                self.engine
                    .read_record(input, &mut self.room, &mut self.room_ends);
            let consumed_part = input.get(..consumed).unwrap_or_default();
            self.line_ends = self.quotes.follow(consumed_part, self.line_ends);
            self.input.consume(consumed);
            written += bytes;
            fields += ends;
            too_long |= written > self.limit || fields > self.limit / 8;
            if !too_long {
                self.text.extend(self.room.get(..bytes).unwrap_or_default());
                self.ends
                    .extend(self.room_ends.get(..ends).unwrap_or_default());
            }
            match state {
                ReadRecordResult::Record => {
                    // Of a row that is too long there is a part, which may end within a character.
                    if !too_long {
                        self.input.encoding = self.input.encoding.decided_by(&self.text);
                    }
                    return Ok(Some(Row {
                        line,
                        too_long,
                        misquoted: self.quotes.misquoted(self.line_ends),
                    }));
                }
                ReadRecordResult::End => return Ok(None),
                ReadRecordResult::InputEmpty
                | ReadRecordResult::OutputFull
                | ReadRecordResult::OutputEndsFull => {}
            }
        }
    }

    /// Steps over line ends, so that a row is known to begin where the next byte is.
    fn skip_blank_lines(&mut self) -> io::Result<()> {
        loop {
            let input = self.input.fill_buf()?;
            match input.first() {
                Some(b'\n') => self.line_ends += 1,
                Some(b'\r') => {}
                _ => return Ok(()),
            }
            self.input.consume(1);
        }
    }
}
