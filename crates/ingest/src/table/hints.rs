//! What a declaration says of how a table is written: members `x_table` of a stream's schema and of its properties. The
//! inference writes them, people may, and the importers of tables read them.

use contract::declaration::{FieldDeclaration, StreamDeclaration};
use serde::Deserialize;
use serde_json::Value;

use super::cells::DateOrder;
use crate::rejection::quoted;

/// How the rows of a stream are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableHints {
    pub(crate) delimiter: Option<u8>,
    /// Whether a row names the columns. It need not be the first.
    pub(crate) has_header: bool,
    /// What the table is called in a file of several.
    pub(crate) sheet: Option<String>,
    /// The field that a hash of the row fills.
    pub(crate) hashed: Option<String>,
}

/// How the cells of a column are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CellHint {
    Decimal(char),
    Date(DateOrder),
}

#[derive(Deserialize, Default)]
struct StreamHint {
    delimiter: Option<String>,
    header: Option<bool>,
    #[serde(alias = "table")]
    sheet: Option<String>,
}

#[derive(Deserialize, Default)]
struct FieldHint {
    decimal: Option<String>,
    date: Option<String>,
    #[serde(default)]
    hash_of_row: bool,
}

impl TableHints {
    /// The hints of a stream, if it has any.
    pub(crate) fn of_stream(stream: &StreamDeclaration) -> Option<Self> {
        let schema: Value = serde_json::from_str(&stream.schema).ok()?;
        let hint = StreamHint::deserialize(schema.get("x_table")?).unwrap_or_default();
        let delimiter = hint.delimiter.as_deref().map(str::as_bytes);
        let hashed = stream.primary_key.first().filter(|name| {
            let field = stream.field(name.as_str());
            field
                .and_then(field_hint)
                .is_some_and(|hint| hint.hash_of_row)
        });
        Some(Self {
            delimiter: delimiter.and_then(|bytes| bytes.first()).copied(),
            has_header: hint.header.unwrap_or(true),
            sheet: hint.sheet,
            hashed: hashed.map(ToString::to_string),
        })
    }
}

impl CellHint {
    pub(crate) fn of_field(field: &FieldDeclaration) -> Option<Self> {
        let hint = field_hint(field)?;
        let order = hint.date.as_deref().and_then(DateOrder::named);
        let decimal = hint.decimal.and_then(|sign| sign.chars().next());
        order.map(Self::Date).or(decimal.map(Self::Decimal))
    }

    /// The rule that a cell breaks which cannot be read like this.
    pub(crate) fn rule(self) -> String {
        match self {
            Self::Decimal(sign) => {
                format!(
                    "must be a number with {} before its fraction",
                    quoted(&sign.to_string())
                )
            }
            Self::Date(order) => format!("must be a date written {}", order.as_str()),
        }
    }
}

fn field_hint(field: &FieldDeclaration) -> Option<FieldHint> {
    let schema: Value = serde_json::from_str(&field.schema).ok()?;
    FieldHint::deserialize(schema.get("x_table")?).ok()
}
