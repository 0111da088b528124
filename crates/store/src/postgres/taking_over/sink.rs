//! Rows that wait to be sent together, column by column.

use rusqlite::types::Value;

use super::super::pool::{Param, Tx};
use crate::Result;
use crate::tables::{Kind, Table};

/// Rows sent at a time, and after how many bytes fewer.
const ROWS: usize = 2_000;
const BYTES: usize = 4 * 1024 * 1024;

enum Column {
    Integers(Vec<Option<i64>>),
    Texts(Vec<Option<String>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

/// Rows of a table that wait to be sent together.
pub(super) struct Sink {
    table: &'static Table,
    columns: Vec<Column>,
    rows: usize,
    bytes: usize,
    /// How many rows were sent.
    pub(super) sent: u64,
}

impl Sink {
    pub(super) fn new(table: &'static Table) -> Self {
        Self {
            table,
            columns: empty(table),
            rows: 0,
            bytes: 0,
            sent: 0,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows >= ROWS || self.bytes >= BYTES
    }

    /// Takes a row, unless a value is not of its column's kind.
    pub(super) fn push(&mut self, row: Vec<Value>) -> bool {
        if row.len() != self.columns.len() {
            return false;
        }
        for (column, value) in self.columns.iter_mut().zip(row) {
            match (column, value) {
                (Column::Integers(values), Value::Integer(value)) => values.push(Some(value)),
                (Column::Texts(values), Value::Text(text)) if !text.contains('\0') => {
                    self.bytes += text.len();
                    values.push(Some(text));
                }
                (Column::Bytes(values), Value::Blob(bytes)) => values.push(Some(bytes)),
                (Column::Integers(values), Value::Null) => values.push(None),
                (Column::Texts(values), Value::Null) => values.push(None),
                (Column::Bytes(values), Value::Null) => values.push(None),
                _ => return false,
            }
        }
        self.rows += 1;
        true
    }

    /// Sends the rows that wait, and answers how many they were.
    pub(super) fn flush(&mut self, tx: &Tx<'_>, owner: i64) -> Result<u64> {
        if self.rows == 0 {
            return Ok(0);
        }
        let columns = std::mem::replace(&mut self.columns, empty(self.table));
        let arrays: Vec<String> = (2..)
            .zip(&columns)
            .map(|(number, column)| format!("${number}::{}[]", column.sql_type()))
            .collect();
        let names = self.table.names();
        let sql = format!(
            "INSERT INTO {} (owner_id, {names}) SELECT $1, {names}
             FROM unnest({}) WITH ORDINALITY AS taken ({names}, place) ORDER BY place",
            self.table.postgres,
            arrays.join(", ")
        );
        let mut params: Vec<&dyn Param> = vec![&owner];
        params.extend(columns.iter().map(Column::param));
        tx.execute(&sql, &params)?;
        let rows = self.rows as u64;
        (self.rows, self.bytes) = (0, 0);
        self.sent += rows;
        Ok(rows)
    }
}

fn empty(table: &Table) -> Vec<Column> {
    let empty = |(_, kind): &(&str, Kind)| match kind {
        Kind::Integer | Kind::Stream | Kind::Sort => Column::Integers(Vec::new()),
        Kind::Text => Column::Texts(Vec::new()),
        Kind::Bytes => Column::Bytes(Vec::new()),
    };
    table.columns.iter().map(empty).collect()
}

impl Column {
    fn sql_type(&self) -> &'static str {
        match self {
            Self::Integers(_) => "bigint",
            Self::Texts(_) => "text",
            Self::Bytes(_) => "bytea",
        }
    }

    fn param(&self) -> &dyn Param {
        match self {
            Self::Integers(values) => values,
            Self::Texts(values) => values,
            Self::Bytes(values) => values,
        }
    }
}
