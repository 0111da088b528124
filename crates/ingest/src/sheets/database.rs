//! The tables of a SQLite database.

use std::collections::VecDeque;
use std::io::BufRead;
use std::path::PathBuf;
use std::rc::Rc;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use super::{Cell, MOST_COLUMNS, MOST_SHEETS, Sheet, SheetRow, SheetRows, counted};
use crate::database_copy::{DatabaseCopy, damaged};
use crate::error::InputError;

/// Rows that are read at once.
const PAGE: usize = 500;
/// The longest text of a cell, in bytes. Longer ones are not even read: a damaged database can claim any length.
const LONGEST_CELL: usize = 16 << 20;
/// Names by which a row's number can be asked for, unless a column has the name.
const NUMBERS: [&str; 3] = ["rowid", "_rowid_", "oid"];
/// How tables are called that belong to an index for searching, behind the name of that.
const OF_INDEX: [&str; 11] = [
    "content", "data", "idx", "docsize", "config", "segments", "segdir", "stat", "node", "parent",
    "rowid",
];

pub(crate) struct Database {
    copy: Rc<DatabaseCopy>,
    sheets: Vec<Sheet>,
}

impl Database {
    pub(super) fn open(reader: Box<dyn BufRead>, log: Option<PathBuf>) -> Result<Self, InputError> {
        let copy = DatabaseCopy::open(reader, log)?;
        let sheets = tables(&copy.connection).map_err(|error| damaged(&error))?;
        let copy = Rc::new(copy);
        Ok(Self { copy, sheets })
    }

    pub(super) fn sheets(&self) -> &[Sheet] {
        &self.sheets
    }

    pub(super) fn rows(&self, at: usize) -> DatabaseRows {
        let sheet = self.sheets.get(at).cloned().unwrap_or_default();
        let columns = sheet.columns.unwrap_or_default();
        let is_free = |name: &&str| !columns.iter().any(|one| one.eq_ignore_ascii_case(name));
        let mut numbers = NUMBERS.iter().copied().filter(is_free);
        let table = quoted(&sheet.name);
        let connection = &self.copy.connection;
        let number = numbers.find(|number| {
            let asked = format!("SELECT {number} FROM {table} LIMIT 0");
            connection.prepare(&asked).is_ok()
        });
        let cells: Vec<String> = columns.iter().map(|name| cell_of(name)).collect();
        let cells = cells.join(", ");
        let sql = match number {
            Some(number) => format!(
                "SELECT {number}, {cells} FROM {table} WHERE {number} > ?1 ORDER BY {number} LIMIT ?2"
            ),
            None => format!("SELECT 0, {cells} FROM {table} LIMIT ?2 OFFSET ?1"),
        };
        DatabaseRows {
            copy: Rc::clone(&self.copy),
            sql,
            is_numbered: number.is_some(),
            after: if number.is_some() { i64::MIN } else { 0 },
            is_done: columns.is_empty(),
            count: 0,
            ready: VecDeque::new(),
            binary: 0,
        }
    }
}

/// What is read of a column: not what is binary, and not what is too long to be held.
fn cell_of(name: &str) -> String {
    let name = quoted(name);
    format!(
        "CASE WHEN typeof({name}) = 'blob' THEN x'' WHEN octet_length({name}) > {LONGEST_CELL} THEN x'00' ELSE {name} END"
    )
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The tables that hold rows of their own: no views, which could be anything, and nothing that SQLite keeps for itself.
fn tables(connection: &Connection) -> rusqlite::Result<Vec<Sheet>> {
    let mut statement = connection.prepare(
        "SELECT name, coalesce(sql, '') FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid",
    )?;
    let found = statement.query_map((), |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    let found: Vec<(String, String)> = found.collect::<rusqlite::Result<_>>()?;
    let is_virtual = |sql: &str| {
        let begin = sql.get(..20).unwrap_or_default();
        begin.eq_ignore_ascii_case("CREATE VIRTUAL TABLE")
    };
    let indexes: Vec<&str> = found
        .iter()
        .filter(|(_, sql)| is_virtual(sql))
        .map(|(name, _)| name.as_str())
        .collect();
    let is_of_index = |name: &str| {
        indexes.iter().any(|index| {
            let rest = name.strip_prefix(index).and_then(|it| it.strip_prefix('_'));
            rest.is_some_and(|rest| OF_INDEX.contains(&rest))
        })
    };
    let own = found
        .iter()
        .filter(|(name, sql)| !is_virtual(sql) && !is_of_index(name));
    let mut sheets = Vec::new();
    for (name, _) in own.take(MOST_SHEETS) {
        let (columns, key) = columns_of(connection, name)?;
        if columns.len() <= MOST_COLUMNS {
            sheets.push(Sheet {
                name: name.clone(),
                columns: Some(columns),
                key,
            });
        }
    }
    Ok(sheets)
}

/// The columns of a table, and those of its primary key in their order.
fn columns_of(
    connection: &Connection,
    table: &str,
) -> rusqlite::Result<(Vec<String>, Vec<String>)> {
    let mut statement = connection
        .prepare("SELECT name, pk FROM pragma_table_xinfo(?1) WHERE hidden <> 1 ORDER BY cid")?;
    let found = statement.query_map([table], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
    })?;
    let found: Vec<(String, i64)> = found.collect::<rusqlite::Result<_>>()?;
    let mut key: Vec<&(String, i64)> = found.iter().filter(|(_, place)| *place > 0).collect();
    key.sort_by_key(|(_, place)| *place);
    let key = key.iter().map(|(name, _)| name.clone()).collect();
    let columns = found.iter().map(|(name, _)| name.clone());
    Ok((columns.collect(), key))
}

pub(crate) struct DatabaseRows {
    copy: Rc<DatabaseCopy>,
    sql: String,
    /// Whether rows have numbers to go on from. Where not, they are counted.
    is_numbered: bool,
    after: i64,
    is_done: bool,
    count: u64,
    ready: VecDeque<SheetRow>,
    /// Cells that were left out because they are no text.
    binary: u64,
}

impl DatabaseRows {
    fn read_page(&mut self) -> rusqlite::Result<()> {
        let copy = Rc::clone(&self.copy);
        let mut statement = copy.connection.prepare_cached(&self.sql)?;
        let mut rows = statement.query((self.after, i64::try_from(PAGE).unwrap_or(i64::MAX)))?;
        let mut read = 0;
        while let Some(row) = rows.next()? {
            read += 1;
            self.after = if self.is_numbered {
                row.get(0)?
            } else {
                self.after + 1
            };
            self.count += 1;
            let row = self.row(row)?;
            self.ready.push_back(row);
        }
        self.is_done = read < PAGE;
        Ok(())
    }

    fn row(&mut self, row: &Row<'_>) -> rusqlite::Result<SheetRow> {
        let mut found = SheetRow {
            number: self.count,
            ..SheetRow::default()
        };
        let width = row.as_ref().column_count();
        for at in 1..width {
            let (text, is_number) = match row.get_ref(at)? {
                ValueRef::Null => (String::new(), false),
                ValueRef::Integer(number) => (number.to_string(), true),
                ValueRef::Real(number) => (number.to_string(), number.is_finite()),
                ValueRef::Text(bytes) => (String::from_utf8_lossy(bytes).into_owned(), false),
                ValueRef::Blob([]) => {
                    self.binary += 1;
                    (String::new(), false)
                }
                ValueRef::Blob(_) => {
                    found.fault = Some("a cell of the row is longer than 16 MiB");
                    (String::new(), false)
                }
            };
            found.cells.push(Cell { text, is_number });
        }
        Ok(found)
    }
}

impl SheetRows for DatabaseRows {
    fn next_row(&mut self) -> Result<Option<SheetRow>, InputError> {
        if self.ready.is_empty() && !self.is_done {
            self.read_page().map_err(|error| damaged(&error))?;
        }
        Ok(self.ready.pop_front())
    }

    fn left_out(&self) -> Vec<String> {
        let one = "is binary data and counts as empty";
        let several = "are binary data and count as empty";
        counted(self.binary, one, several).into_iter().collect()
    }
}
