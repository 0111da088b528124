//! Files that hold several tables: workbooks (xlsx), whose sheets are tables, and SQLite databases. Both give rows of cells that
//! are texts, as a table that is a text has them, so that everything after is the same.

mod database;
mod header;
mod workbook;

use std::io::BufRead;
use std::path::PathBuf;

use self::database::Database;
pub(crate) use self::header::Headed;
use self::workbook::Workbook;
use crate::error::InputError;
use crate::input::Format;

/// Tables of one file that are read.
const MOST_SHEETS: usize = 1_000;
/// Columns of one; a row that has more is refused.
const MOST_COLUMNS: usize = 2_000;

/// A table of a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sheet {
    pub(crate) name: String,
    /// The names of its columns, where the file tells them.
    pub(crate) columns: Option<Vec<String>>,
    /// The columns that identify a row, where the file tells them.
    pub(crate) key: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) text: String,
    /// Whether it is kept as a number, so that its text is one with a point before the fraction.
    pub(crate) is_number: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SheetRow {
    /// From 1; the number that people see beside it in a workbook.
    pub(crate) number: u64,
    pub(crate) cells: Vec<Cell>,
    /// Why the row cannot be read, if it cannot.
    pub(crate) fault: Option<&'static str>,
}

impl SheetRow {
    fn is_empty(&self) -> bool {
        self.fault.is_none() && self.cells.iter().all(|cell| cell.text.is_empty())
    }
}

/// The rows of one table.
pub(crate) trait SheetRows {
    fn next_row(&mut self) -> Result<Option<SheetRow>, InputError>;

    /// What was left out of the rows so far, for the owner.
    fn left_out(&self) -> Vec<String>;
}

/// A file with tables that is open.
pub(crate) enum Sheets {
    Workbook(Workbook),
    Database(Database),
}

impl Sheets {
    /// Opens a file. `log` is what SQLite wrote beside a database and did not yet put into it.
    pub(crate) fn open(
        format: Format,
        reader: Box<dyn BufRead>,
        log: Option<PathBuf>,
    ) -> Result<Self, InputError> {
        if format == Format::Workbook {
            return Workbook::open(reader).map(Self::Workbook);
        }
        Database::open(reader, log).map(Self::Database)
    }

    pub(crate) fn all(&self) -> Vec<Sheet> {
        match self {
            Self::Workbook(workbook) => workbook.sheets(),
            Self::Database(database) => database.sheets().to_vec(),
        }
    }

    pub(crate) fn rows(&self, at: usize) -> Result<Box<dyn SheetRows>, InputError> {
        match self {
            Self::Workbook(workbook) => Ok(Box::new(workbook.rows(at)?)),
            Self::Database(database) => Ok(Box::new(database.rows(at))),
        }
    }

    /// What such a table is called, also in a declaration.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Workbook(_) => "sheet",
            Self::Database(_) => "table",
        }
    }

    /// Whether texts stay texts, because the file keeps numbers as numbers. In a workbook people type numbers as texts.
    pub(crate) fn is_typed(&self) -> bool {
        matches!(self, Self::Database(_))
    }
}

/// Whether a file is a workbook.
pub(crate) fn is_workbook(head: &[u8], name: &str) -> bool {
    let has = |what: &str| head.windows(what.len()).any(|at| at == what.as_bytes());
    let is_called = ["xlsx", "xlsm"].iter().any(|one| ends(name, one));
    head.starts_with(b"PK\x03\x04")
        && (is_called || has("xl/workbook.xml") || has("xl/worksheets/"))
}

/// Why a file that looks like a workbook is none that is read.
pub(crate) fn near_miss(head: &[u8], name: &str) -> Option<&'static str> {
    let has = |what: &str| head.windows(what.len()).any(|at| at == what.as_bytes());
    if head.starts_with(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1") {
        return Some(
            "it is a file of an old office program, or one with a password; save it as xlsx or docx, without a password",
        );
    }
    if has("mimetypeapplication/vnd.oasis.opendocument.spreadsheet") {
        return Some("spreadsheets in the form ods are not read; save it as xlsx or csv");
    }
    let is_called = ["xlsx", "xlsm", "xls", "xlsb", "ods"]
        .iter()
        .any(|one| ends(name, one));
    is_called.then_some("it is no workbook in the form xlsx; save it as one, or as csv")
}

/// So many cells, and what is the matter with them.
fn counted(count: u64, one: &str, several: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 cell {one}")),
        count => Some(format!("{count} cells {several}")),
    }
}

fn ends(name: &str, ending: &str) -> bool {
    crate::exports::has_ending(name, ending)
}
