//! What a table of which nothing is declared was found to be, as a review shows it.

use ingest::table::{Inferred, InferredField, InferredTable};

use super::report::SHOWN;
use crate::console::format::{label, one_line};

/// How many fields of a table are shown.
const FIELDS: usize = 100;
/// The longest example, in characters.
const EXAMPLE_CHARS: usize = 80;

pub(super) struct InferredRow {
    pub(super) tables: Vec<TableRow>,
    pub(super) more_tables: usize,
    /// What was a guess.
    pub(super) doubts: Vec<String>,
    pub(super) more_doubts: usize,
}

pub(super) struct TableRow {
    pub(super) stream: String,
    /// The sheet or table it comes from; empty where the file has only one.
    pub(super) source: String,
    pub(super) fields: Vec<FieldRow>,
    pub(super) more_fields: usize,
}

pub(super) struct FieldRow {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) role: &'static str,
    pub(super) example: String,
}

impl From<&Inferred> for InferredRow {
    fn from(inferred: &Inferred) -> Self {
        let (tables, doubts) = (&inferred.tables, &inferred.doubts);
        Self {
            tables: tables.iter().take(SHOWN).map(TableRow::from).collect(),
            more_tables: tables.len().saturating_sub(SHOWN),
            doubts: doubts.iter().take(SHOWN).map(|line| label(line)).collect(),
            more_doubts: doubts.len().saturating_sub(SHOWN),
        }
    }
}

impl From<&InferredTable> for TableRow {
    fn from(table: &InferredTable) -> Self {
        let row = |field: &InferredField| FieldRow {
            name: label(&field.name),
            kind: label(&field.kind),
            role: field.role,
            example: one_line(&field.example, EXAMPLE_CHARS),
        };
        Self {
            stream: label(&table.stream),
            source: table.name.as_deref().map(label).unwrap_or_default(),
            fields: table.fields.iter().take(FIELDS).map(row).collect(),
            more_fields: table.fields.len().saturating_sub(FIELDS),
        }
    }
}
