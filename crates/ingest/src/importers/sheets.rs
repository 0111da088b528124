//! Files of several tables, each of which goes into a stream of its own: the one that its declaration says, or that is called like it.

use std::io::BufRead as _;

use contract::declaration::{Declaration, StreamDeclaration};

use super::csv::{Columns, Encoding};
use crate::accept::Acceptor;
use crate::database_copy::{LogKeeper, is_log};
use crate::error::InputError;
use crate::exports::Companions;
use crate::importer::{Importer, Item};
use crate::importers::names_only;
use crate::input::{FileContents, Format, Input};
use crate::rejection::{Rejection, RejectionCode};
use crate::sheets::{Headed, Sheet, SheetRow, Sheets};
use crate::table::{RowKeys, TableHints, stream_names};
use crate::validate::StreamRules;

pub struct SheetsImporter<'a> {
    input: Option<Input>,
    acceptor: &'a Acceptor<'a>,
    declaration: &'a Declaration,
    companions: &'a Companions,
    open: Option<Sheets>,
    /// The tables that are still to be read, the last one first.
    left: Vec<(usize, Sheet, &'a StreamDeclaration)>,
    current: Option<Current<'a>>,
    /// Whether a row says in which table it stands.
    names_sheets: bool,
    /// Whether it is what was written beside a database.
    is_log: bool,
    notes: Vec<String>,
}

/// The table that is read.
struct Current<'a> {
    /// What it is called, for people.
    name: String,
    stream: &'a StreamDeclaration,
    rows: Headed,
    columns: Columns<'a>,
    keys: Option<RowKeys>,
}

impl<'a> SheetsImporter<'a> {
    pub fn new(
        input: Input,
        acceptor: &'a Acceptor<'a>,
        declaration: &'a Declaration,
        companions: &'a Companions,
    ) -> Self {
        Self {
            input: Some(input),
            acceptor,
            declaration,
            companions,
            open: None,
            left: Vec::new(),
            current: None,
            names_sheets: false,
            is_log: false,
            notes: Vec::new(),
        }
    }

    fn begin(&mut self, input: Input) -> Result<(), InputError> {
        let (path, title) = (input.path().to_owned(), input.stem().to_owned());
        let format = match input.contents() {
            FileContents::Format { format, .. } => *format,
            FileContents::Left(_) | FileContents::Unknown(_) => Format::Workbook,
        };
        let mut reader = input.into_reader();
        if is_log(reader.fill_buf()?) {
            self.is_log = true;
            LogKeeper::new(reader, path, self.companions).next_item()?;
            return Ok(());
        }
        let log = self.companions.file(&format!("{path}-wal"));
        let sheets = Sheets::open(format, reader, log)?;
        let all = sheets.all();
        let names = stream_names(&all, &title);
        self.names_sheets = all.len() > 1;
        let mut undeclared = Vec::new();
        let mut found = Vec::new();
        for (at, (sheet, name)) in all.iter().zip(&names).enumerate() {
            match self.stream_of(sheet, name, all.len() == 1) {
                Some(stream) => found.push((at, sheet.clone(), stream)),
                None if sheets.rows(at)?.next_row()?.is_none() => {}
                None => undeclared.push(format!("'{}'", sheet.name)),
            }
        }
        let kind = sheets.kind();
        if found.is_empty() {
            let streams = self.declaration.streams.iter();
            let streams: Vec<&str> = streams.map(|stream| stream.name.as_str()).collect();
            return Err(InputError::UnknownFormat(format!(
                "no {kind} of it belongs to a stream of this connection, which has {}; it has {}",
                streams.join(", "),
                undeclared.join(", ")
            )));
        }
        if !undeclared.is_empty() {
            let names = undeclared.join(", ");
            self.notes.push(format!(
                "no stream is declared for {kind} {names}, so it is left out"
            ));
        }
        found.reverse();
        self.left = found;
        self.open = Some(sheets);
        Ok(())
    }

    /// The stream of a table: the one that says so, the one that is called like it, or the only one there is.
    fn stream_of(
        &self,
        sheet: &Sheet,
        name: &str,
        is_alone: bool,
    ) -> Option<&'a StreamDeclaration> {
        let streams = &self.declaration.streams;
        let said = streams.iter().find(|stream| {
            let hints = TableHints::of_stream(stream);
            hints.and_then(|hints| hints.sheet).as_ref() == Some(&sheet.name)
        });
        let called = || streams.iter().find(|stream| stream.name.as_str() == name);
        let found = said.or_else(called);
        let chosen = self.acceptor.rules().ok().map(|rules| rules.declaration);
        match chosen {
            Some(chosen) if is_alone => Some(chosen),
            Some(chosen) if self.acceptor.is_prescribed() => {
                found.filter(|found| found.name == chosen.name)
            }
            _ => found,
        }
    }

    /// Goes on to the next table. Says no at the end.
    fn next_sheet(&mut self) -> Result<bool, InputError> {
        let (Some(sheets), Some((at, sheet, stream))) = (&self.open, self.left.pop()) else {
            return Ok(false);
        };
        let hints = TableHints::of_stream(stream);
        let keys = RowKeys::of_stream(stream);
        let made = keys.as_ref().map(RowKeys::field);
        let fields = stream.fields.iter().map(|field| field.name.as_str());
        let declared: Vec<&str> = fields.filter(|name| made != Some(name)).collect();
        let name = format!("{} '{}'", sheets.kind(), sheet.name);
        let rows = sheets.rows(at)?;
        let headed = Headed::declared(&sheet, rows, hints.as_ref(), &declared);
        let Some(rows) = headed.map_err(|error| self.named(error, &name))? else {
            self.notes.push(format!("{name} is empty"));
            return Ok(true);
        };
        let rules = StreamRules::new(stream);
        let columns = Columns::new(&rules, &rows.names, made);
        let columns = columns.map_err(|why| self.named(InputError::Header(why), &name))?;
        self.current = Some(Current {
            name,
            stream,
            rows,
            columns,
            keys,
        });
        Ok(true)
    }

    /// The error of a header, with the table it stands in.
    fn named(&self, error: InputError, sheet: &str) -> InputError {
        match error {
            InputError::Header(why) if self.names_sheets => {
                InputError::Header(format!("of {sheet} {why}"))
            }
            other => other,
        }
    }
}

impl Current<'_> {
    fn item(&mut self, row: &SheetRow, acceptor: &Acceptor<'_>, names_sheet: bool) -> Item {
        let cells: Vec<&[u8]> = row.cells.iter().map(|cell| cell.text.as_bytes()).collect();
        let bytes = cells.iter().map(|cell| cell.len() + 1).sum();
        let record = match row.fault {
            Some(fault) => Err(Rejection::new(RejectionCode::MalformedCsv, fault)),
            None => self
                .columns
                .record(&cells, Encoding::Utf8, self.keys.as_mut()),
        };
        let stream = self.stream.name.as_str();
        let outcome = record.and_then(|body| acceptor.row(stream, body));
        let outcome = outcome.map_err(|mut rejection| {
            if names_sheet {
                rejection.message = format!("{}: {}", self.name, rejection.message);
            }
            rejection
        });
        Item::new(row.number, bytes, outcome)
    }
}

impl Importer for SheetsImporter<'_> {
    fn next_item(&mut self) -> Result<Option<Item>, InputError> {
        if let Some(input) = self.input.take() {
            self.begin(input)?;
        }
        loop {
            if let Some(current) = &mut self.current {
                if let Some(row) = current.rows.next_row()? {
                    return Ok(Some(current.item(&row, self.acceptor, self.names_sheets)));
                }
                let of = current.name.as_str();
                let left_out = current.rows.left_out().into_iter();
                self.notes
                    .extend(left_out.map(|what| format!("{of}: {what}")));
                self.current = None;
            }
            if !self.next_sheet()? {
                return Ok(None);
            }
        }
    }

    fn note(&self) -> Option<String> {
        if self.is_log {
            return Some(names_only());
        }
        (!self.notes.is_empty()).then(|| self.notes.join("; "))
    }
}
