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
mod rows;
mod text;

use std::collections::HashSet;
use std::io::{self, BufRead};

use contract::declaration::{FieldDeclaration, JsonType};
use contract::json::{self, RecordBody};
use contract::scalar::FieldKind;
pub(crate) use rows::Rows;
use text::Encoding;

use crate::accept::Acceptor;
use crate::error::InputError;
use crate::importer::{Importer, Item};
use crate::lines::MAX_LINE_BYTES;
use crate::rejection::{Given, Rejection, RejectionCode, quoted};
use crate::table::{self, CellHint, RowKeys, TableHints};
use crate::validate::Cells;
use crate::validate::value::{Fault, listed};

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
    columns: Vec<Column<'a>>,
}

/// A column: its name as JSON, and the field it fills.
struct Column<'a> {
    name: String,
    json_name: String,
    field: Option<&'a FieldDeclaration>,
    /// How its cells are written, where the declaration says so.
    hint: Option<CellHint>,
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
        let made = self.keys.as_ref().map(RowKeys::field);
        for (name, why) in keys.chain(required) {
            if !seen.contains(name) && Some(name) != made {
                let name = quoted(name);
                return refused(format!(
                    "has no column {name}, which {why} stream '{stream}'"
                ));
            }
        }
        let column = |name: &String| Column {
            json_name: json_text(name),
            field: rules.field(name),
            hint: rules.field(name).and_then(CellHint::of_field),
            takes_null: rules.takes_null(name),
            name: name.clone(),
        };
        let columns = names.iter().map(column).collect();
        Ok(Some(Table { rows, columns }))
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
        let outcome = match row.rejection() {
            Some(rejection) => Err(rejection),
            None => self
                .record(keys)
                .and_then(|body| acceptor.bare(body, Cells::Columns)),
        };
        Ok(Some(Item::new(row.line, self.rows.text.len(), outcome)))
    }

    fn record(&self, keys: Option<&mut RowKeys>) -> Result<RecordBody, Rejection> {
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
        if let Some(keys) = keys {
            // What ends a cell counts: `ab` and `c` are not `a` and `bc`.
            let cells: Vec<&[u8]> = self.rows.cells().collect();
            let key = keys.key(&cells.join(&0x1f));
            text.push_str(&json_text(keys.field()));
            text.push(':');
            text.push_str(&json_text(&key));
        }
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
        if let Some(hint) = self.hint {
            return self.hinted(hint, cell).map(Some);
        }
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

impl Column<'_> {
    /// The JSON of a cell that is written in a way of its own.
    fn hinted(&self, hint: CellHint, cell: &str) -> Result<String, Rejection> {
        let read = match hint {
            CellHint::Decimal(sign) => table::number(cell, sign),
            CellHint::Date(order) => table::date(cell, order)
                .or_else(|| table::iso(cell))
                .map(|moment| json_text(&moment.text)),
        };
        read.ok_or_else(|| {
            let fault = Fault {
                code: RejectionCode::InvalidFieldValue,
                at: String::new(),
                rule: hint.rule(),
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
