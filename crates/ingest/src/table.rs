//! Tables without a declaration: the whole file is looked at, and the declaration follows from what all its rows have in
//! common. What was a guess is said, so that the owner can decide.

mod cells;
mod column;
mod csv_rows;
mod hints;
mod near;
mod place;
mod row_key;
mod seen;
mod told;

use std::collections::HashSet;
use std::io::BufRead;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

pub(crate) use self::cells::{DateOrder, date, iso, number};
use self::csv_rows::CsvRows;
pub(crate) use self::csv_rows::{is_header, unique as unique_names};
pub(crate) use self::hints::{CellHint, TableHints};
pub use self::place::{DeclaredSource, KnownStream, TablePlace, free_key, place, title};
pub(crate) use self::row_key::RowKeys;
use self::seen::Seen;
pub use self::told::{Told, ToldType, WrittenDate};
use crate::error::{ImportError, InputError};
use crate::importers::Outline;
use crate::input::{Format, Input};
use crate::lines::{Lines, MAX_LINE_BYTES};
use crate::sheets::{Headed, Sheet, Sheets};

/// Members of lines that say themselves where they belong.
const ENVELOPE: [&str; 5] = ["key", "data", "stream", "emitted_at", "op"];

/// What the tables of a file were found to be.
#[derive(Debug, Clone)]
pub struct Inferred {
    /// Their declaration, JSON for people.
    pub declaration: String,
    pub tables: Vec<InferredTable>,
    /// What was a guess.
    pub doubts: Vec<String>,
}

/// A table, as people are shown it.
#[derive(Debug, Clone)]
pub struct InferredTable {
    /// The stream it becomes.
    pub stream: String,
    /// What it is called in its file, if that has several.
    pub name: Option<String>,
    pub fields: Vec<InferredField>,
    /// What stands between cells, if they are text.
    pub delimiter: Option<String>,
    /// The first rows, as they stand in the file.
    pub samples: Vec<String>,
}

/// A field, as people are shown it.
#[derive(Debug, Clone)]
pub struct InferredField {
    pub name: String,
    pub kind: String,
    /// What it is good for beside being read.
    pub role: &'static str,
    /// The first value that is not empty, as it stands in the file.
    pub example: String,
}

/// The columns of a table, and the stream it would become.
#[derive(Debug, Clone)]
pub struct TableColumns {
    pub stream: String,
    pub columns: Vec<String>,
}

/// The columns of the tables of a file, or the members of its first row. Nothing if it has none, or if its lines say themselves
/// where they belong. `log` is what was written beside a database and is not yet in it.
pub fn tables(
    input: Input,
    title: &str,
    log: Option<PathBuf>,
) -> Result<Vec<TableColumns>, ImportError> {
    let (name, format) = (input.name().to_owned(), input.format()?);
    let reader = input.into_reader();
    let found = match format {
        Format::Workbook | Format::Database => columns_of_sheets(format, reader, title, log),
        Format::Csv => CsvRows::begin(reader, &Told::default())
            .map(|rows| rows.map(|rows| rows.names).unwrap_or_default())
            .map_err(InputError::from)
            .map(|columns| {
                vec![TableColumns {
                    stream: slug(title),
                    columns,
                }]
            }),
        _ => {
            let mut columns = Vec::new();
            let read = each_object(reader, format, &mut |object| {
                columns = object.keys().cloned().collect();
                false
            });
            read.map(|()| {
                vec![TableColumns {
                    stream: slug(title),
                    columns,
                }]
            })
        }
    };
    let mut found = found.map_err(|error| error.named(&name))?;
    let is_envelope = |name: &String| ENVELOPE.contains(&name.as_str());
    found.retain(|table| !table.columns.iter().all(is_envelope));
    Ok(found)
}

/// Whether a table as text has columns and no rows, so that it tells nothing.
pub fn has_no_rows(input: Input) -> Result<bool, ImportError> {
    let (name, format) = (input.name().to_owned(), input.format()?);
    if format != Format::Csv {
        return Ok(false);
    }
    let looked = CsvRows::begin(input.into_reader(), &Told::default())
        .and_then(|rows| rows.map_or(Ok(None), |mut rows| rows.next()));
    let row = looked.map_err(|error| InputError::from(error).named(&name))?;
    Ok(row.is_none())
}

fn columns_of_sheets(
    format: Format,
    reader: Box<dyn BufRead>,
    title: &str,
    log: Option<PathBuf>,
) -> Result<Vec<TableColumns>, InputError> {
    let sheets = Sheets::open(format, reader, log)?;
    let all = sheets.all();
    let mut tables = Vec::new();
    for (at, (sheet, stream)) in all.iter().zip(stream_names(&all, title)).enumerate() {
        let headed = Headed::find(sheet, sheets.rows(at)?, &Told::default())?;
        let columns = headed.map(|headed| headed.names).unwrap_or_default();
        tables.push(TableColumns { stream, columns });
    }
    Ok(tables)
}

/// The streams of the tables of a file: called after them, or after the file if its only table has no name of its own.
pub(crate) fn stream_names(sheets: &[Sheet], title: &str) -> Vec<String> {
    let mut taken = HashSet::new();
    let is_alone = sheets.len() == 1;
    let names = sheets.iter().map(|sheet| {
        // As programs call the first sheet in any language: Sheet1, Tabelle1, Feuil1.
        let is_numbered = |rest: &str| rest.chars().all(char::is_alphabetic);
        let is_unnamed = sheet.name.strip_suffix('1').is_some_and(is_numbered);
        let name = if is_alone && is_unnamed {
            title
        } else {
            &sheet.name
        };
        let slug = slug(name);
        let numbered = (2..).map(|number| format!("{slug}-{number}"));
        let mut names = std::iter::once(slug.clone()).chain(numbered);
        let free = names.find(|name| taken.insert(name.clone()));
        free.unwrap_or(slug)
    });
    names.collect()
}

/// Looks at all rows of a file. `title` is what people call it, `key` what its connector is called; what is told is not guessed.
/// `log` is what was written beside a database and is not yet in it.
pub fn infer(
    input: Input,
    log: Option<PathBuf>,
    (title, key): (&str, &str),
    told: &Told,
) -> Result<Inferred, ImportError> {
    let (name, format) = (input.name().to_owned(), input.format()?);
    let reader = input.into_reader();
    let inferred = match format {
        Format::Workbook | Format::Database => {
            infer_sheets(format, reader, log, (title, key), told)
        }
        _ => infer_one(format, reader, (title, key), told),
    };
    inferred.map_err(|error| error.named(&name))
}

fn infer_one(
    format: Format,
    reader: Box<dyn BufRead>,
    (title, key): (&str, &str),
    told: &Told,
) -> Result<Inferred, InputError> {
    let mut seen = Seen::default();
    if format == Format::Csv {
        seen.read_csv(reader, told)?;
    } else {
        seen.read_json(reader, format)?;
    }
    if seen.columns.is_empty() || seen.rows == 0 {
        return Err(no_rows());
    }
    seen.check(told)?;
    seen.check_names(told)?;
    seen.check_dates(told)?;
    let (stream, table) = seen.conclude(&slug(title), title, told);
    Ok(Inferred {
        declaration: declaration(title, key, &[stream]),
        tables: vec![table],
        doubts: seen.doubts,
    })
}

fn infer_sheets(
    format: Format,
    reader: Box<dyn BufRead>,
    log: Option<PathBuf>,
    (title, key): (&str, &str),
    told: &Told,
) -> Result<Inferred, InputError> {
    let sheets = Sheets::open(format, reader, log)?;
    let all = sheets.all();
    let (mut streams, mut tables, mut doubts) = (Vec::new(), Vec::new(), Vec::new());
    let mut all_seen = Seen::default();
    for (at, (sheet, stream)) in all.iter().zip(stream_names(&all, title)).enumerate() {
        let mut seen = Seen::default();
        let named = format!("{} '{}'", sheets.kind(), sheet.name);
        seen.read_sheet(sheet, sheets.rows(at)?, sheets.is_typed(), told)?;
        if seen.columns.is_empty() || seen.rows == 0 {
            doubts.push(format!("{named} has no rows and is left out"));
            continue;
        }
        seen.check(told)?;
        seen.written = Some(json!({sheets.kind(): sheet.name, "header": seen.has_header}));
        let title = if all.len() == 1 {
            title.to_owned()
        } else {
            format!("{named} of {title}")
        };
        let (declared, mut table) = seen.conclude(&stream, &title, told);
        table.name = Some(named.clone());
        streams.push(declared);
        tables.push(table);
        let of = if all.len() == 1 {
            String::new()
        } else {
            format!("{named}: ")
        };
        doubts.extend(seen.doubts.drain(..).map(|doubt| format!("{of}{doubt}")));
        all_seen.columns.append(&mut seen.columns);
    }
    if streams.is_empty() {
        return Err(no_rows());
    }
    all_seen.check_names(told)?;
    Ok(Inferred {
        declaration: declaration(title, key, &streams),
        tables,
        doubts,
    })
}

fn no_rows() -> InputError {
    InputError::UnknownFormat("it holds no rows that a declaration could be made of".to_owned())
}

fn declaration(title: &str, connector: &str, streams: &[Value]) -> String {
    let declaration = json!({
        "protocol_version": "0.1.0",
        "source": {"kind": "connector", "id": format!("https://pdpp.local/tables/{connector}")},
        "declaration_version": "1",
        "display": {"name": title},
        "streams": streams,
    });
    format!("{declaration:#}")
}

/// Gives each object to the caller, until it says no. What is no object is passed over.
fn each_object(
    reader: Box<dyn BufRead>,
    format: Format,
    take: &mut dyn FnMut(&Map<String, Value>) -> bool,
) -> Result<(), InputError> {
    let mut give = |bytes: &[u8]| match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => take(&object),
        _ => true,
    };
    if format == Format::Json {
        let mut outline = Outline::new(reader);
        if !outline.enter(b'[')? {
            return Ok(());
        }
        while outline.element()? {
            if outline.take(MAX_LINE_BYTES)? && !give(outline.taken()) {
                return Ok(());
            }
        }
        return Ok(());
    }
    let mut lines = Lines::new(reader, MAX_LINE_BYTES);
    while let Some(line) = lines.read()? {
        if !line.bytes.is_none_or(&mut give) {
            return Ok(());
        }
    }
    Ok(())
}

/// A title as a connector can be called: lower-case letters, digits and dashes.
pub fn slug(title: &str) -> String {
    let mut slug = String::new();
    for c in title.to_lowercase().chars() {
        let c = if c.is_ascii_alphanumeric() { c } else { '-' };
        if c != '-' || !slug.ends_with('-') {
            slug.push(c);
        }
    }
    slug.truncate(28);
    let slug = slug.trim_matches('-');
    if slug.is_empty() {
        "table".to_owned()
    } else {
        slug.to_owned()
    }
}
