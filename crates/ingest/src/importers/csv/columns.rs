//! The columns of a table and the fields they fill.
//!
//! A cell becomes what its field is declared to be. Numbers must be written as JSON writes them and keep their digits;
//! booleans are `true` or `false` in any case; objects and arrays are JSON; everything else, and every column the
//! stream does not declare, is a text. An empty cell is null where the field may be null; otherwise the record goes
//! without the field.

use std::collections::HashSet;

use contract::declaration::{FieldDeclaration, JsonType};
use contract::json::{self, RecordBody};
use contract::scalar::FieldKind;

use super::text::Encoding;
use crate::rejection::{Given, Rejection, RejectionCode, quoted};
use crate::table::{self, CellHint, RowKeys};
use crate::validate::value::{Fault, listed};
use crate::validate::{Cells, StreamRules};

pub(crate) struct Columns<'a>(Vec<Column<'a>>);

/// A column: its name as JSON, and the field it fills.
struct Column<'a> {
    name: String,
    json_name: String,
    field: Option<&'a FieldDeclaration>,
    /// How its cells are written, where the declaration says so.
    hint: Option<CellHint>,
    takes_null: bool,
}

impl<'a> Columns<'a> {
    /// The columns of these names, or why a header cannot name them so. `made` is the field that a hash of the row fills.
    pub(crate) fn new(
        rules: &StreamRules<'a>,
        names: &[String],
        made: Option<&str>,
    ) -> Result<Self, String> {
        let mut seen = HashSet::new();
        for (at, name) in names.iter().enumerate() {
            if name.is_empty() {
                return Err(format!("gives column {} no name", at + 1));
            }
            if !seen.insert(name.as_str()) {
                return Err(format!("names the column {} twice", quoted(name)));
            }
        }
        let stream = &rules.declaration.name;
        let keys = rules.declaration.primary_key.iter();
        let keys = keys.map(|name| (name.as_str(), "is the primary key of"));
        let required = rules.required().iter();
        let required = required.map(|name| (name.as_str(), "is required by"));
        for (name, why) in keys.chain(required) {
            if !seen.contains(name) && Some(name) != made {
                let name = quoted(name);
                return Err(format!(
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
        Ok(Self(names.iter().map(column).collect()))
    }

    /// How many empty cells stand beyond the last column.
    pub(crate) fn blank_end(&self, cells: &[&[u8]]) -> Option<usize> {
        let beyond = cells.get(self.0.len()..)?;
        let is_blank = beyond.iter().all(|cell| cell.is_empty());
        is_blank.then_some(beyond.len())
    }

    /// The record that a row is.
    pub(crate) fn record(
        &self,
        cells: &[&[u8]],
        encoding: Encoding,
        keys: Option<&mut RowKeys>,
    ) -> Result<RecordBody, Rejection> {
        let Self(columns) = self;
        if cells.len() != columns.len() {
            let message = format!(
                "the row has {} cells and the header {}",
                cells.len(),
                columns.len()
            );
            return Err(Rejection::new(RejectionCode::MalformedCsv, message));
        }
        let mut text = String::from("{");
        if let Some(keys) = keys {
            // What ends a cell counts: `ab` and `c` are not `a` and `bc`.
            let key = keys.key(&cells.join(&0x1f));
            text.push_str(&json_text(keys.field()));
            text.push(':');
            text.push_str(&json_text(&key));
        }
        for (column, cell) in columns.iter().zip(cells) {
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
