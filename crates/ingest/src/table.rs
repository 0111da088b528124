//! Tables without a declaration: the whole file is looked at, and the declaration follows from what all its rows have in
//! common. What was a guess is said, so that the owner can decide.

mod cells;
mod column;
mod csv_rows;
mod hints;
mod row_key;
mod told;

use std::collections::HashMap;
use std::io::BufRead;

use serde_json::{Map, Value, json};

pub(crate) use self::cells::{DateOrder, date, iso, number};
use self::column::{Column, Kind};
use self::csv_rows::CsvRows;
pub(crate) use self::csv_rows::unique as unique_names;
pub(crate) use self::hints::{CellHint, TableHints};
pub(crate) use self::row_key::RowKeys;
pub use self::told::{Told, ToldType, WrittenDate};
use crate::error::{ImportError, InputError};
use crate::importers::Outline;
use crate::input::{Format, Input};
use crate::lines::{Lines, MAX_LINE_BYTES};

/// Columns of JSON that are kept; one with more is no table.
const MOST_COLUMNS: usize = 2_000;
const SAMPLES: usize = 3;
/// The stream of a table.
pub const STREAM: &str = "rows";
/// The field that identifies rows where no column does.
const ROW_ID: &str = "row_id";

/// What a table was found to be.
#[derive(Debug, Clone)]
pub struct Inferred {
    /// Its declaration, JSON for people.
    pub declaration: String,
    /// The same in short.
    pub fields: Vec<InferredField>,
    /// What stands between cells, if they are text.
    pub delimiter: Option<String>,
    /// The first rows, as they stand in the file.
    pub samples: Vec<String>,
    /// What was a guess.
    pub doubts: Vec<String>,
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

/// What was seen of a table.
#[derive(Default)]
struct Seen {
    columns: Vec<Column>,
    by_name: HashMap<String, usize>,
    rows: u64,
    samples: Vec<String>,
    doubts: Vec<String>,
    /// How rows are written, if they are text.
    written: Option<Value>,
}

/// The names of the columns of a table, or of the members of its first row. Nothing if it has none.
pub fn column_names(input: Input) -> Result<Vec<String>, ImportError> {
    let (name, format) = (input.name().to_owned(), input.format()?);
    let reader = input.into_reader();
    let to_error = |error: InputError| error.named(&name);
    if format == Format::Csv {
        let rows =
            CsvRows::begin(reader, &Told::default()).map_err(|error| to_error(error.into()))?;
        return Ok(rows.map(|rows| rows.names).unwrap_or_default());
    }
    let mut names = Vec::new();
    each_object(reader, format, &mut |object| {
        names = object.keys().cloned().collect();
        false
    })
    .map_err(to_error)?;
    Ok(names)
}

/// Looks at a whole table. `title` is what people call it, `key` what its connector is called; what is told is not guessed.
pub fn infer(input: Input, title: &str, key: &str, told: &Told) -> Result<Inferred, ImportError> {
    let (name, format) = (input.name().to_owned(), input.format()?);
    let reader = input.into_reader();
    let mut seen = Seen::default();
    let read = if format == Format::Csv {
        seen.read_csv(reader, told)
    } else {
        seen.read_json(reader, format)
    };
    read.map_err(|error| error.named(&name))?;
    if seen.columns.is_empty() {
        let why = "it holds no rows that a declaration could be made of".to_owned();
        return Err(InputError::UnknownFormat(why).named(&name));
    }
    seen.check(told).map_err(|error| error.named(&name))?;
    Ok(seen.conclude(title, key, told))
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

impl Seen {
    fn read_csv(&mut self, reader: Box<dyn BufRead>, told: &Told) -> Result<(), InputError> {
        let Some(mut rows) = CsvRows::begin(reader, told)? else {
            return Ok(());
        };
        let names = rows.names.iter();
        self.columns = names.map(|name| Column::new(name).told(told)).collect();
        self.doubts.append(&mut rows.doubts);
        self.written = Some(rows.hint());
        while let Some(cells) = rows.next()? {
            if cells.len() != self.columns.len() {
                continue;
            }
            self.rows += 1;
            for (column, cell) in self.columns.iter_mut().zip(&cells) {
                column.add_text(cell);
            }
            if self.samples.len() < SAMPLES {
                let names = self.columns.iter().map(|column| column.name.clone());
                let row: Map<String, Value> =
                    names.zip(cells.into_iter().map(Value::from)).collect();
                self.samples.push(Value::from(row).to_string());
            }
        }
        Ok(())
    }

    fn read_json(&mut self, reader: Box<dyn BufRead>, format: Format) -> Result<(), InputError> {
        let mut too_many = false;
        each_object(reader, format, &mut |object| {
            self.rows += 1;
            for (name, value) in object {
                let next = self.columns.len();
                let at = *self.by_name.entry(name.clone()).or_insert(next);
                if at == next {
                    self.columns.push(Column::new(name));
                }
                if let Some(column) = self.columns.get_mut(at) {
                    column.add_json(value);
                }
            }
            if self.samples.len() < SAMPLES {
                self.samples.push(Value::from(object.clone()).to_string());
            }
            too_many = self.columns.len() > MOST_COLUMNS;
            !too_many
        })?;
        if too_many {
            let why = format!("its rows have more than {MOST_COLUMNS} different members");
            return Err(InputError::UnknownFormat(why));
        }
        // A member that a row goes without is empty there.
        for column in &mut self.columns {
            column.empty = self.rows.saturating_sub(column.filled);
        }
        Ok(())
    }

    /// Whether the table is as the owner says.
    fn check(&self, told: &Told) -> Result<(), InputError> {
        let refused = |why: String| Err(InputError::UnknownFormat(why));
        let column = |name: &str| self.columns.iter().find(|column| column.name == name);
        for (name, told) in &told.types {
            match column(name) {
                None => return refused(format!("it has no column '{name}'")),
                Some(column) if !told.is(column.kind().0) => {
                    let told = told.as_str();
                    return refused(format!("not every cell of '{name}' can be read as {told}"));
                }
                Some(_) => {}
            }
        }
        match told.key.as_deref().map(|name| (name, column(name))) {
            Some((name, None)) => refused(format!("it has no column '{name}'")),
            Some((name, Some(column))) if !column.identifies() => refused(format!(
                "'{name}' identifies no rows: cells of it are empty, equal, or too long for a key"
            )),
            _ => Ok(()),
        }
    }

    fn conclude(mut self, title: &str, connector: &str, told: &Told) -> Inferred {
        let key = told.key.clone().or_else(|| self.key());
        let mut properties = Map::new();
        if key.is_none() {
            let hashed = json!({"type": "string", "x_table": {"hash_of_row": true}});
            properties.insert(ROW_ID.to_owned(), hashed);
            self.doubts.push("no column identifies a row, so a hash of the whole row does; a row that changes comes as a new one".to_owned());
        }
        for column in &self.columns {
            let is_key = key.as_ref() == Some(&column.name);
            properties.insert(column.name.clone(), column.schema(is_key));
            self.doubts.extend(column.kind().1);
        }
        let key = key.unwrap_or_else(|| ROW_ID.to_owned());
        let fields = self.fields(&key);
        let delimiter = self.written.as_ref().and_then(|one| one.get("delimiter"));
        let delimiter = delimiter.and_then(Value::as_str).map(str::to_owned);
        let mut schema = json!({"type": "object", "required": [key], "properties": properties});
        if let Some(members) = schema.as_object_mut() {
            let written = self.written.take().unwrap_or_else(|| json!({}));
            members.insert("x_table".to_owned(), written);
        }
        let mut stream = json!({
            "name": STREAM,
            "description": format!("Rows of {title}."),
            "semantics": "mutable_state",
            "primary_key": [key],
            "schema": schema,
            "query": self.query(&key),
        });
        if let (Some(time), Some(members)) = (self.time(), stream.as_object_mut()) {
            members.insert("cursor_field".to_owned(), time.into());
            members.insert("consent_time_field".to_owned(), time.into());
        }
        let declaration = json!({
            "protocol_version": "0.1.0",
            "source": {"kind": "connector", "id": format!("https://pdpp.local/tables/{connector}")},
            "declaration_version": "1",
            "display": {"name": title},
            "streams": [stream],
        });
        Inferred {
            declaration: format!("{declaration:#}"),
            fields,
            delimiter,
            samples: self.samples,
            doubts: self.doubts,
        }
    }

    /// The fields in short, the key among them.
    fn fields(&self, key: &str) -> Vec<InferredField> {
        let rows: Vec<Value> = self
            .samples
            .iter()
            .filter_map(|row| serde_json::from_str(row).ok())
            .collect();
        let example = |name: &str| {
            let said = rows.iter().filter_map(|row| match row.get(name)? {
                Value::Null => None,
                Value::String(text) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
                value => Some(value.to_string()),
            });
            said.into_iter().next().unwrap_or_default()
        };
        let time = self.time();
        let field = |column: &Column| InferredField {
            name: column.name.clone(),
            kind: column.kind().0.to_string(),
            role: match column.name.as_str() {
                name if name == key => "identifies a row",
                name if Some(name) == time => "time",
                _ if column.kind().0 == Kind::Text => "searched",
                _ => "",
            },
            example: example(&column.name),
        };
        let hash =
            (key == ROW_ID && !self.columns.iter().any(|one| one.name == ROW_ID)).then(|| {
                InferredField {
                    name: ROW_ID.to_owned(),
                    kind: "text".to_owned(),
                    role: "identifies a row",
                    example: "(a hash of it)".to_owned(),
                }
            });
        hash.into_iter()
            .chain(self.columns.iter().map(field))
            .collect()
    }

    /// The column that identifies rows: one that is called so, else the first if all its values differ and there are enough.
    fn key(&mut self) -> Option<String> {
        let mut able = self.columns.iter().filter(|column| column.identifies());
        let named = able.clone().find(|column| is_called_key(&column.name));
        let first = self.columns.first().map(|column| column.name.as_str());
        let enough = self.rows >= 20;
        let key =
            named.or_else(|| able.find(|column| enough && Some(column.name.as_str()) == first))?;
        let name = key.name.clone();
        self.doubts.push(format!(
            "'{name}' identifies a row, because no two have the same"
        ));
        Some(name)
    }

    fn time(&self) -> Option<&str> {
        let times = self.columns.iter();
        let mut times =
            times.filter(|column| matches!(column.kind().0, Kind::Date(_) | Kind::Time(_)));
        times.next().map(|column| column.name.as_str())
    }

    fn query(&self, key: &str) -> Value {
        let named = |wanted: &dyn Fn(&Column) -> bool| -> Vec<&str> {
            let columns = self.columns.iter().filter(|column| wanted(column));
            columns.map(|column| column.name.as_str()).collect()
        };
        let is_number =
            |column: &Column| matches!(column.kind().0, Kind::Integer | Kind::Number(_));
        let is_time = |column: &Column| matches!(column.kind().0, Kind::Date(_) | Kind::Time(_));
        let ranged = named(&|column| is_number(column) || is_time(column));
        let operators: Map<String, Value> = ranged
            .iter()
            .map(|name| ((*name).to_owned(), json!(["gte", "gt", "lte", "lt"])))
            .collect();
        let grouped = named(&|column| column.is_grouped() && column.name != key);
        let searched = named(&|column| column.kind().0 == Kind::Text);
        let mut query = json!({
            "aggregations": {
                "count": true, "sum": named(&is_number), "min": ranged, "max": ranged,
                "group_by": grouped, "count_distinct": grouped, "group_by_time": named(&is_time),
            },
        });
        if let Some(members) = query.as_object_mut() {
            if !operators.is_empty() {
                members.insert("range_filters".to_owned(), operators.into());
            }
            if !searched.is_empty() {
                members.insert("search".to_owned(), json!({"lexical_fields": searched}));
            }
        }
        query
    }
}

fn is_called_key(name: &str) -> bool {
    let lower = name.to_lowercase();
    let words = [
        "id",
        "key",
        "uuid",
        "guid",
        "isbn",
        "nr",
        "no",
        "number",
        "reference",
    ];
    words.iter().any(|word| lower == *word)
        || ["_id", " id", "-id"].iter().any(|end| lower.ends_with(end))
        || name.ends_with("Id")
        || name.ends_with("ID")
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
