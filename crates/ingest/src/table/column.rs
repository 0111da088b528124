//! What is seen of one column while a whole table is read: which ways of reading fit all its cells.

use std::collections::HashSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Value, json};

use super::cells::{self, DateOrder};
use super::near::NearWays;
use super::told::{Told, ToldType};
use crate::sheets::Cell;

/// Values that are remembered to see whether all differ, or only few are there.
const REMEMBERED: usize = 2_000_000;
/// A text that says one of a few things is worth counting by.
const FEW: usize = 500;
const LONGEST_KEY: usize = 64;

pub(super) struct Column {
    pub(super) name: String,
    /// How many cells hold something, and how many nothing.
    pub(super) filled: u64,
    pub(super) empty: u64,
    /// The ways to read texts that fit all of them so far, the best first.
    ways: Vec<Way>,
    /// Those that fit all but a few.
    near: NearWays,
    /// Whether a day comes with a time.
    has_time: bool,
    /// The kinds of JSON values, where they are not just cells.
    json: Vec<Json>,
    values: Option<HashSet<u64>>,
    repeats: bool,
    pub(super) longest: usize,
    /// Whether the owner says what it holds.
    is_told: bool,
}

/// A way to read a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Boolean,
    Iso,
    Integer,
    Date(DateOrder),
    Decimal(char),
}

const WAYS: [Way; 8] = [
    Way::Boolean,
    Way::Iso,
    Way::Integer,
    Way::Date(DateOrder::DayMonthYear),
    Way::Date(DateOrder::MonthDayYear),
    Way::Date(DateOrder::YearMonthDay),
    Way::Decimal('.'),
    Way::Decimal(','),
];

/// Only this order writes a day in digits alone.
const COMPACT: Way = Way::Date(DateOrder::YearMonthDay);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Json {
    Text,
    Number,
    Boolean,
    /// An array of texts, by which rows can be filtered and grouped.
    Texts,
    /// An array that says nothing of its items.
    EmptyArray,
    Array,
    Object,
}

impl Json {
    fn is_array(self) -> bool {
        matches!(self, Self::Texts | Self::EmptyArray | Self::Array)
    }
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Integer,
    Number(Option<char>),
    Boolean,
    Date(Option<DateOrder>),
    Time(Option<DateOrder>),
    Texts,
    Array,
    Object,
    Mixed,
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => formatter.write_str("text"),
            Self::Integer => formatter.write_str("integer"),
            Self::Number(Some(sign)) => write!(formatter, "number with '{sign}'"),
            Self::Number(None) => formatter.write_str("number"),
            Self::Boolean => formatter.write_str("boolean"),
            Self::Date(Some(order)) => write!(formatter, "date, {}", order.as_str()),
            Self::Date(None) => formatter.write_str("date"),
            Self::Time(Some(order)) => write!(formatter, "time, {}", order.as_str()),
            Self::Time(None) => formatter.write_str("time"),
            Self::Texts => formatter.write_str("array of texts"),
            Self::Array => formatter.write_str("array"),
            Self::Object => formatter.write_str("object"),
            Self::Mixed => formatter.write_str("of several types"),
        }
    }
}

impl Way {
    /// The type of the values that it makes.
    pub(super) fn told(self) -> ToldType {
        match self {
            Self::Boolean => ToldType::Boolean,
            Self::Integer => ToldType::Integer,
            Self::Decimal(_) => ToldType::Number,
            Self::Iso | Self::Date(_) => ToldType::Date,
        }
    }

    /// Its place among all ways: the lower, the better.
    pub(super) fn rank(self) -> Option<usize> {
        WAYS.iter().position(|way| *way == self)
    }

    /// Whether both differ in an order of dates or a decimal sign at most.
    pub(super) fn is_like(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }

    /// Whether a text can be read like this; with a time, if it is a day with one.
    pub(super) fn fits(self, cell: &str) -> Option<bool> {
        let plain = |fits: bool| fits.then_some(false);
        match self {
            Self::Boolean => plain(
                ["true", "false"]
                    .iter()
                    .any(|word| cell.eq_ignore_ascii_case(word)),
            ),
            Self::Integer => plain(is_integer(cell)),
            Self::Decimal(sign) => {
                plain(!has_leading_zero(cell) && cells::number(cell, sign).is_some())
            }
            Self::Iso => cells::iso(cell).map(|moment| moment.has_time),
            Self::Date(order) => cells::date(cell, order).map(|moment| moment.has_time),
        }
    }
}

impl Column {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            filled: 0,
            empty: 0,
            ways: WAYS.to_vec(),
            near: NearWays::default(),
            has_time: false,
            json: Vec::new(),
            values: Some(HashSet::new()),
            repeats: false,
            longest: 0,
            is_told: false,
        }
    }

    /// The same, read only in ways that fit what is said of the table.
    pub(super) fn told(mut self, told: &Told) -> Self {
        let wanted = told.type_of(&self.name);
        self.is_told = wanted.is_some();
        self.ways.retain(|way| {
            let is_told = match way {
                Way::Decimal(sign) => told.decimal.is_none_or(|told| told == *sign),
                Way::Date(order) => told.dates.is_none_or(|told| told.0 == *order),
                Way::Boolean | Way::Iso | Way::Integer => true,
            };
            is_told && wanted.is_none_or(|wanted| way.told() == wanted)
        });
        self
    }

    pub(super) fn add_text(&mut self, cell: &str) {
        if cell.is_empty() {
            self.empty += 1;
            return;
        }
        self.filled += 1;
        self.longest = self.longest.max(cell.chars().count());
        self.remember(cell);
        let mut has_time = self.near.see(cell, self.filled);
        let near = &mut self.near;
        self.ways.retain(|way| {
            let fits = way.fits(cell);
            has_time |= fits == Some(true);
            if fits.is_none() {
                near.miss(*way, cell);
            }
            fits.is_some()
        });
        self.has_time |= has_time;
    }

    /// Adds a cell of a file that keeps numbers as numbers. Where `is_typed`, a text of digits is a text, as with JSON.
    pub(super) fn add_cell(&mut self, cell: &Cell, is_typed: bool) {
        let is_filled = !cell.text.is_empty();
        if cell.is_number {
            self.ways
                .retain(|way| matches!(way, Way::Integer | Way::Decimal('.')));
        } else if is_filled && is_typed && !self.is_told {
            self.ways
                .retain(|way| !matches!(way, Way::Integer | Way::Decimal(_)));
        }
        self.add_text(&cell.text);
    }

    pub(super) fn add_json(&mut self, value: &Value) {
        let kind = match value {
            Value::Null => return,
            Value::String(text) => {
                self.add_text(text);
                if text.is_empty() {
                    // A text, and no date.
                    self.ways.clear();
                }
                Json::Text
            }
            Value::Number(number) => {
                self.add_text(&number.to_string());
                Json::Number
            }
            Value::Bool(_) => Json::Boolean,
            Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_string) => {
                Json::Texts
            }
            Value::Array(items) if items.is_empty() => Json::EmptyArray,
            Value::Array(_) => Json::Array,
            Value::Object(_) => Json::Object,
        };
        if !matches!(kind, Json::Text | Json::Number) {
            self.filled += 1;
        }
        if !self.json.contains(&kind) {
            self.json.push(kind);
        }
    }

    fn remember(&mut self, cell: &str) {
        let Some(values) = &mut self.values else {
            return;
        };
        let mut hasher = DefaultHasher::new();
        cell.hash(&mut hasher);
        self.repeats |= !values.insert(hasher.finish());
        if values.len() > REMEMBERED || (self.repeats && values.len() > FEW) {
            self.values = None;
        }
    }

    /// Whether every row has another value, and one that can be a key.
    pub(super) fn identifies(&self) -> bool {
        let plain = matches!(self.kind().0, Kind::Text | Kind::Integer);
        plain && self.is_part_of_key() && !self.repeats && self.values.is_some()
    }

    /// Whether it can identify rows together with others, or because the file says so.
    pub(super) fn is_part_of_key(&self) -> bool {
        use Kind::{Date, Integer, Text, Time};
        let plain = matches!(self.kind().0, Text | Integer | Date(None) | Time(None));
        plain && self.empty == 0 && self.longest <= LONGEST_KEY
    }

    /// Whether it says one of a few things, again and again.
    pub(super) fn is_grouped(&self) -> bool {
        let few = self
            .values
            .as_ref()
            .is_some_and(|values| values.len() <= FEW);
        self.kind().0 == Kind::Text && few && self.longest <= LONGEST_KEY
    }

    /// What it holds, and what is not certain about that.
    pub(super) fn kind(&self) -> (Kind, Option<String>) {
        let best = self.ways.first().copied();
        let kind = match self.json.as_slice() {
            _ if self.filled == 0 => Kind::Text,
            [] => return self.cell_kind(),
            // JSON has numbers of its own: a text of digits is a text.
            [Json::Text] if best == Some(Way::Iso) => self.moment(None),
            [Json::Text] => Kind::Text,
            [Json::Number] if best == Some(Way::Integer) => Kind::Integer,
            [Json::Number] => Kind::Number(None),
            [Json::Boolean] => Kind::Boolean,
            kinds if kinds.iter().copied().all(Json::is_array) => {
                if kinds.contains(&Json::Array) || !kinds.contains(&Json::Texts) {
                    Kind::Array
                } else {
                    Kind::Texts
                }
            }
            [Json::Object] => Kind::Object,
            _ => Kind::Mixed,
        };
        (kind, None)
    }

    fn cell_kind(&self) -> (Kind, Option<String>) {
        let name = &self.name;
        if let Some(best) = self.ways.first().copied() {
            let alike = self.ways.iter().filter(|way| way.is_like(best));
            return self.read(best, alike.count() == 1);
        }
        let most = self.near.most(self.filled).filter(|_| self.is_told);
        let Some(most) = most else {
            return (Kind::Text, self.near.almost(name, self.filled));
        };
        let (kind, doubt) = self.read(most, self.near.is_certain());
        let refused = self.near.refused(name, self.filled);
        let doubts: Vec<String> = doubt.into_iter().chain(refused).collect();
        (kind, Some(doubts.join("; ")))
    }

    /// What it holds if it is read like this.
    fn read(&self, best: Way, is_certain: bool) -> (Kind, Option<String>) {
        let name = &self.name;
        match best {
            Way::Boolean => (Kind::Boolean, None),
            // Eight digits are a day only where the column says so.
            Way::Integer if self.ways.contains(&COMPACT) && is_called_day(name) => {
                (self.moment(Some(DateOrder::YearMonthDay)), None)
            }
            Way::Integer => (Kind::Integer, None),
            Way::Iso => (self.moment(None), None),
            Way::Date(order) => {
                let order_name = order.as_str();
                let doubt = format!(
                    "'{name}': no date tells the order of day and month; {order_name} is assumed"
                );
                (self.moment(Some(order)), (!is_certain).then_some(doubt))
            }
            Way::Decimal(sign) => {
                let doubt =
                    format!("'{name}': no number tells its decimal sign; '{sign}' is assumed");
                (Kind::Number(Some(sign)), (!is_certain).then_some(doubt))
            }
        }
    }

    fn moment(&self, order: Option<DateOrder>) -> Kind {
        if self.has_time {
            Kind::Time(order)
        } else {
            Kind::Date(order)
        }
    }

    /// Its property in the schema.
    pub(super) fn schema(&self, is_key: bool) -> Value {
        let kind = self.kind().0;
        let name = match kind {
            Kind::Text | Kind::Date(_) | Kind::Time(_) => "string",
            Kind::Integer => "integer",
            Kind::Number(_) => "number",
            Kind::Boolean => "boolean",
            Kind::Texts | Kind::Array => "array",
            Kind::Object => "object",
            Kind::Mixed => return json!({}),
        };
        let mut schema = if is_key {
            json!({"type": name})
        } else {
            json!({"type": [name, "null"]})
        };
        let mut set = |member: &str, value: Value| {
            if let Some(members) = schema.as_object_mut() {
                members.insert(member.to_owned(), value);
            }
        };
        match kind {
            Kind::Date(_) => set("format", "date".into()),
            Kind::Time(_) => set("format", "date-time".into()),
            Kind::Texts => set("items", json!({"type": "string"})),
            _ => {}
        }
        match kind {
            Kind::Date(Some(order)) | Kind::Time(Some(order)) => {
                set("x_table", json!({"date": order.as_str()}));
            }
            Kind::Number(Some(sign)) => set("x_table", json!({"decimal": sign.to_string()})),
            _ => {}
        }
        schema
    }
}

/// Whether a column is called after what it holds, if that is a day.
fn is_called_day(name: &str) -> bool {
    let lower = name.to_lowercase();
    [
        "date",
        "datum",
        "data",
        "fecha",
        "dato",
        "buchungstag",
        "päivä",
    ]
    .iter()
    .any(|word| lower.contains(word))
}

/// A number such as ids and codes are written, which loses its zeros if it is read as one.
fn has_leading_zero(cell: &str) -> bool {
    let digits = cell.trim().trim_start_matches('-');
    digits.len() > 1
        && digits.starts_with('0')
        && digits.as_bytes().get(1).is_some_and(u8::is_ascii_digit)
}

fn is_integer(cell: &str) -> bool {
    cell.parse::<i64>().is_ok() && !has_leading_zero(cell) && !cell.starts_with('+')
}
