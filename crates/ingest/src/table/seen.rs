//! What is seen of a table while all its rows are read, and the stream that follows from it.

use std::collections::HashMap;
use std::io::BufRead;

use serde_json::{Map, Value, json};

use super::column::{Column, Kind};
use super::csv_rows::CsvRows;
use super::{InferredField, InferredTable, Told, WrittenDate, each_object};
use crate::error::InputError;
use crate::input::Format;
use crate::sheets::{Headed, Sheet, SheetRows};

/// Columns of JSON that are kept; one with more is no table.
const MOST_COLUMNS: usize = 2_000;
const SAMPLES: usize = 3;
/// The field that identifies rows where no column does.
const ROW_ID: &str = "row_id";

/// What was seen of a table.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) columns: Vec<Column>,
    by_name: HashMap<String, usize>,
    pub(super) rows: u64,
    samples: Vec<String>,
    pub(super) doubts: Vec<String>,
    /// How rows are written, if they are text or stand in a file of several tables.
    pub(super) written: Option<Value>,
    /// Whether a row names the columns.
    pub(super) has_header: bool,
    /// The columns that identify a row, as the file says.
    key: Vec<String>,
}

impl Seen {
    pub(super) fn read_csv(
        &mut self,
        reader: Box<dyn BufRead>,
        told: &Told,
    ) -> Result<(), InputError> {
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
                self.sample(cells.into_iter());
            }
        }
        Ok(())
    }

    pub(super) fn read_json(
        &mut self,
        reader: Box<dyn BufRead>,
        format: Format,
    ) -> Result<(), InputError> {
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

    pub(super) fn read_sheet(
        &mut self,
        sheet: &Sheet,
        rows: Box<dyn SheetRows>,
        is_typed: bool,
        told: &Told,
    ) -> Result<(), InputError> {
        let Some(mut rows) = Headed::find(sheet, rows, told)? else {
            return Ok(());
        };
        let names = rows.names.iter();
        self.columns = names.map(|name| Column::new(name).told(told)).collect();
        self.doubts.append(&mut rows.doubts);
        self.has_header = rows.has_header;
        self.key.clone_from(&sheet.key);
        while let Some(row) = rows.next_row()? {
            if row.fault.is_some() || row.cells.len() != self.columns.len() {
                continue;
            }
            self.rows += 1;
            for (column, cell) in self.columns.iter_mut().zip(&row.cells) {
                column.add_cell(cell, is_typed);
            }
            if self.samples.len() < SAMPLES {
                self.sample(row.cells.into_iter().map(|cell| cell.text));
            }
        }
        self.doubts.append(&mut rows.left_out());
        Ok(())
    }

    fn sample(&mut self, cells: impl Iterator<Item = String>) {
        let names = self.columns.iter().map(|column| column.name.clone());
        let row: Map<String, Value> = names.zip(cells.map(Value::from)).collect();
        self.samples.push(Value::from(row).to_string());
    }

    /// Whether the columns are there of which the owner says something.
    pub(super) fn check_names(&self, told: &Told) -> Result<(), InputError> {
        let types = told.types.iter().map(|(name, _)| name);
        let mut missing = types
            .chain(&told.key)
            .filter(|name| !self.columns.iter().any(|column| column.name == **name));
        match missing.next() {
            Some(name) => Err(InputError::UnknownFormat(format!(
                "it has no column '{name}'"
            ))),
            None => Ok(()),
        }
    }

    /// Whether dates are written as the owner says.
    pub(super) fn check_dates(&self, told: &Told) -> Result<(), InputError> {
        let Some(WrittenDate(order)) = told.dates else {
            return Ok(());
        };
        let is_so = |column: &Column| matches!(column.kind().0, Kind::Date(Some(one)) | Kind::Time(Some(one)) if one == order);
        if self.columns.iter().any(is_so) {
            return Ok(());
        }
        let order = order.as_str();
        Err(InputError::UnknownFormat(format!(
            "no column holds dates alone that are written {order}"
        )))
    }

    /// Whether the table is as the owner says.
    pub(super) fn check(&self, told: &Told) -> Result<(), InputError> {
        let refused = |why: String| Err(InputError::UnknownFormat(why));
        let column = |name: &str| self.columns.iter().find(|column| column.name == name);
        for (name, told) in &told.types {
            if column(name).is_some_and(|column| !told.is(column.kind().0)) {
                let told = told.as_str();
                return refused(format!("not every cell of '{name}' can be read as {told}"));
            }
        }
        let key = told.key.as_deref().and_then(column);
        match key.filter(|column| !column.identifies()) {
            Some(Column { name, .. }) => refused(format!(
                "'{name}' identifies no rows: cells of it are empty, equal, or too long for a key"
            )),
            None => Ok(()),
        }
    }

    /// The stream that it becomes, and what people are shown of it.
    pub(super) fn conclude(
        &mut self,
        name: &str,
        title: &str,
        told: &Told,
    ) -> (Value, InferredTable) {
        let mut key = self.keys(told);
        let mut properties = Map::new();
        if key.is_empty() {
            let hashed = json!({"type": "string", "x_table": {"hash_of_row": true}});
            properties.insert(ROW_ID.to_owned(), hashed);
            self.doubts.push("no column identifies a row, so a hash of the whole row does; a row that changes comes as a new one".to_owned());
            key.push(ROW_ID.to_owned());
        }
        for column in &self.columns {
            let is_key = key.contains(&column.name);
            properties.insert(column.name.clone(), column.schema(is_key));
            self.doubts.extend(column.kind().1);
        }
        let fields = self.fields(&key);
        let delimiter = self.written.as_ref().and_then(|one| one.get("delimiter"));
        let delimiter = delimiter.and_then(Value::as_str).map(str::to_owned);
        let mut schema = json!({"type": "object", "required": key, "properties": properties});
        if let Some(members) = schema.as_object_mut() {
            let written = self.written.take().unwrap_or_else(|| json!({}));
            members.insert("x_table".to_owned(), written);
        }
        let mut stream = json!({
            "name": name,
            "description": format!("Rows of {title}."),
            "semantics": "mutable_state",
            "primary_key": key,
            "schema": schema,
            "query": self.query(&key),
        });
        if let (Some(time), Some(members)) = (self.time(), stream.as_object_mut()) {
            members.insert("cursor_field".to_owned(), time.into());
            members.insert("consent_time_field".to_owned(), time.into());
        }
        let table = InferredTable {
            stream: name.to_owned(),
            name: None,
            fields,
            delimiter,
            samples: std::mem::take(&mut self.samples),
        };
        (stream, table)
    }

    /// The columns that identify rows: the one that is told, those that the file names, or one that is found.
    fn keys(&mut self, told: &Told) -> Vec<String> {
        let column = |name: &String| self.columns.iter().find(|column| column.name == *name);
        if let Some(told) = told.key.as_ref().filter(|name| column(name).is_some()) {
            return vec![told.clone()];
        }
        let named = |name: &String| column(name).is_some_and(Column::is_part_of_key);
        if !self.key.is_empty() && self.key.iter().all(named) {
            return self.key.clone();
        }
        self.key().into_iter().collect()
    }

    /// The fields in short, the key among them.
    fn fields(&self, key: &[String]) -> Vec<InferredField> {
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
                _ if key.contains(&column.name) => "identifies a row",
                name if Some(name) == time => "time",
                _ if matches!(column.kind().0, Kind::Text | Kind::Texts) => "searched",
                _ => "",
            },
            example: example(&column.name),
        };
        let hash =
            (key == [ROW_ID] && !self.columns.iter().any(|one| one.name == ROW_ID)).then(|| {
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

    fn query(&self, key: &[String]) -> Value {
        let named = |wanted: &dyn Fn(&Column) -> bool| -> Vec<&str> {
            let columns = self.columns.iter().filter(|column| wanted(column));
            columns.map(|column| column.name.as_str()).collect()
        };
        let is_number =
            |column: &Column| matches!(column.kind().0, Kind::Integer | Kind::Number(_));
        let is_time = |column: &Column| matches!(column.kind().0, Kind::Date(_) | Kind::Time(_));
        let ranged = named(&|column| is_number(column) || is_time(column));
        let is_list = |column: &Column| column.kind().0 == Kind::Texts;
        let lists = named(&is_list).into_iter();
        let operators: Map<String, Value> = ranged
            .iter()
            .map(|name| ((*name).to_owned(), json!(["gte", "gt", "lte", "lt"])))
            .chain(lists.map(|name| (name.to_owned(), json!(["contains"]))))
            .collect();
        let is_free = |column: &Column| !key.contains(&column.name);
        let grouped = named(&|one| (one.is_grouped() && is_free(one)) || is_list(one));
        let searched = named(&|column| column.kind().0 == Kind::Text || is_list(column));
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
