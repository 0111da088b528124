//! The table of a stream: its columns, the conditions that narrow it, and its cells, most of which narrow it further.

use contract::aggregate::Granularity;
use contract::query::{FilterTest, Order};
use contract::record::Record;
use contract::time::Instant;
use jiff::civil::Date;

use super::chosen::Chosen;
use crate::console::address::Address;
use crate::console::format::{label, one_line};
use crate::console::moment::{self, Moment};
use crate::console::stream_shape::{FieldShape, StreamShape};
use crate::console::time_counts::{Days, bound, within};
use crate::console::value::{self, FieldValue, Part};
use crate::console::viewer::Viewer;

const CELL_CHARS: usize = 120;
/// The most fields that have a form for their range.
const RANGES: usize = 4;

pub(super) struct Column {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) about: String,
    pub(super) is_number: bool,
    pub(super) chosen: bool,
    /// Where the order can be turned; empty where the stream is not ordered by it.
    pub(super) turn: String,
    pub(super) sorted: &'static str,
}

/// The order of a table, and the page with the other one.
pub(super) struct Turn {
    pub(super) title: String,
    pub(super) words: &'static str,
    pub(super) address: String,
}

/// A condition, and the page without it.
pub(super) struct Chip {
    pub(super) text: String,
    pub(super) without: String,
}

pub(super) struct RangeForm {
    pub(super) title: String,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) from_value: String,
    pub(super) to_value: String,
    pub(super) kind: &'static str,
}

pub(super) struct Row {
    pub(super) address: String,
    pub(super) cells: Vec<Cell>,
}

pub(super) struct Cell {
    pub(super) text: String,
    pub(super) at: Option<Moment>,
    pub(super) is_number: bool,
    /// Whether it is the beginning of a text.
    pub(super) is_long: bool,
    /// Whether it leads to the record.
    pub(super) leads: bool,
    /// The page with only records that have this value; empty where that cannot be asked.
    pub(super) narrows: String,
}

pub(super) fn columns(viewer: &Viewer, shape: &StreamShape, chosen: &Chosen) -> Vec<Column> {
    let names = chosen.columns.iter();
    let fields = names.filter_map(|name| shape.field(name.as_str()));
    let column = |field: &FieldShape| {
        let is_order = shape.cursor_field.as_deref() == Some(field.name.as_str());
        let (sorted, other) = match chosen.order {
            Order::Ascending => ("ascending", "desc"),
            Order::Descending => ("descending", "asc"),
        };
        let turned = viewer.here.clone().set("order", other).to_string();
        Column {
            turn: if is_order { turned } else { String::new() },
            sorted: if is_order { sorted } else { "" },
            ..plain(field, true)
        }
    };
    fields.map(column).collect()
}

fn plain(field: &FieldShape, chosen: bool) -> Column {
    Column {
        name: field.name.to_string(),
        title: field.title.clone(),
        about: field.about.clone(),
        is_number: field.is_number,
        chosen,
        turn: String::new(),
        sorted: "",
    }
}

/// The order of the table, and where it is turned; nothing where the stream has none. The field need not be a column.
pub(super) fn turn(viewer: &Viewer, shape: &StreamShape, chosen: &Chosen) -> Option<Turn> {
    let name = shape.cursor_field.as_deref()?;
    let field = shape.field(name)?;
    let (words, other) = match (chosen.order, field.is_time) {
        (Order::Ascending, true) => ("earliest first", "desc"),
        (Order::Descending, true) => ("latest first", "asc"),
        (Order::Ascending, false) => ("lowest first", "desc"),
        (Order::Descending, false) => ("highest first", "asc"),
    };
    Some(Turn {
        title: field.title.clone(),
        words,
        address: viewer.here.clone().set("order", other).to_string(),
    })
}

pub(super) fn choices(shape: &StreamShape, chosen: &Chosen) -> Vec<Column> {
    let fields = shape.fields.iter();
    let choice = |field: &FieldShape| plain(field, chosen.columns.contains(&field.name));
    fields.map(choice).collect()
}

pub(super) fn chips(viewer: &Viewer, shape: &StreamShape, chosen: &Chosen) -> Vec<Chip> {
    let mut chips = Vec::new();
    for filter in &chosen.query.filters {
        let name = filter.field.as_str();
        let field = shape.field(name);
        let title = field.map_or_else(|| name.to_owned(), FieldShape::title_as_written);
        let chip = |text: String, param: &str| Chip {
            text: label(&text),
            without: viewer.here.clone().without(&[param]).to_string(),
        };
        match &filter.test {
            FilterTest::Exact(value) => {
                chips.push(chip(
                    format!("{title}: {value}"),
                    &format!("filter[{name}]"),
                ));
            }
            FilterTest::Range(bounds) => chips.extend(bounds.iter().map(|(operator, value)| {
                let word = match operator.as_str() {
                    "gte" => "from",
                    "gt" => "after",
                    "lte" => "up to",
                    "contains" => "contains",
                    _ => "before",
                };
                let shown = Moment::parse(value).map_or_else(|| value.clone(), |at| at.shown);
                chip(
                    format!("{title} {word} {shown}"),
                    &format!("filter[{name}][{operator}]"),
                )
            })),
        }
    }
    chips
}

pub(super) fn ranges(shape: &StreamShape, chosen: &Chosen) -> Vec<RangeForm> {
    let fields = shape.fields.iter().filter(|field| field.range).take(RANGES);
    fields.map(|field| range_form(field, chosen)).collect()
}

fn range_form(field: &FieldShape, chosen: &Chosen) -> RangeForm {
    let value = |wanted: &str| {
        let filters = chosen.query.filters.iter();
        let own = filters.filter(|one| one.field == field.name);
        let mut bounds = own.flat_map(|one| match &one.test {
            FilterTest::Range(bounds) => bounds.as_slice(),
            FilterTest::Exact(_) => &[],
        });
        let bound = bounds.find(|(operator, _)| operator.as_str() == wanted);
        bound.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let upper = if field.is_time { "lt" } else { "lte" };
    let mut values = [value("gte"), value(upper)];
    let mut kind = if field.is_number { "number" } else { "text" };
    if field.is_time {
        // A field for dates takes no time of day: a bound within a day stays as it is written.
        let days = values.each_ref().map(|value| day_typed(field, value));
        if let [Some(from), Some(to)] = days {
            (values, kind) = ([from, to], "date");
        }
    }
    let [from_value, to_value] = values;
    RangeForm {
        title: field.title_as_written(),
        from: format!("filter[{}][gte]", field.name),
        to: format!("filter[{}][{upper}]", field.name),
        from_value,
        to_value,
        kind,
    }
}

/// The day at whose beginning here a bound lies, as it is typed; nothing where it lies within a day.
fn day_typed(field: &FieldShape, value: &str) -> Option<String> {
    if value.is_empty() {
        return Some(String::new());
    }
    let day = match value.parse::<Date>() {
        Ok(day) if value.len() == 10 => day,
        _ => moment::local(Instant::parse(value)?)?.date(),
    };
    let begins = Instant::parse(&bound(field, day))?;
    (Instant::parse(value)? == begins).then(|| day.to_string())
}

/// The parameters that a form of the page keeps: all but those that it has inputs for.
pub(super) fn kept(viewer: &Viewer, ranges: &[RangeForm]) -> Vec<(String, String)> {
    let has_input = |name: &str| {
        let mut ranges = ranges.iter();
        name == "fields" || ranges.any(|range| range.from == name || range.to == name)
    };
    let pairs = viewer.here.pairs().iter();
    let kept = pairs.filter(|(name, _)| name != "cursor" && !has_input(name));
    kept.cloned().collect()
}

pub(super) fn row(viewer: &Viewer, shape: &StreamShape, chosen: &Chosen, record: &Record) -> Row {
    let connection = chosen.query.connection_id.as_deref().unwrap_or_default();
    let members = value::members(record.data.as_deref());
    let names = chosen.columns.iter();
    let fields: Vec<&FieldShape> = names
        .filter_map(|name| shape.field(name.as_str()))
        .collect();
    let title = shape
        .title()
        .filter(|title| fields.iter().any(|field| field.name == title.name));
    // What leads to the record is its title, else the first cell.
    let leading = title
        .or_else(|| fields.first().copied())
        .map(|field| field.name.clone());
    let cell = |field: &FieldShape| {
        let raw = members.get(field.name.as_str());
        let mut shown = raw.and_then(|raw| value::shown(raw, Some(field)));
        if let Some(shown) = shown.as_mut().filter(|_| field.is_money()) {
            value::add_currency(shown, &members);
        }
        let leads = leading.as_ref() == Some(&field.name);
        let exact =
            raw.map(|raw| serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().to_owned()));
        let exact = exact.filter(|text| {
            field.exact && !leads && !field.is_time && text.len() <= 200 && text != "null"
        });
        let param = format!("filter[{}]", field.name);
        Cell {
            narrows: exact
                .map(|text| viewer.here.clone().set(&param, &text).to_string())
                .unwrap_or_default(),
            is_number: field.is_number,
            is_long: field.role.as_deref() == Some("body"),
            leads,
            ..shown.map_or_else(empty, filled)
        }
    };
    Row {
        address: viewer.record(connection, &record.stream, &record.id),
        cells: fields.into_iter().map(cell).collect(),
    }
}

fn empty() -> Cell {
    Cell {
        text: String::new(),
        at: None,
        is_number: false,
        is_long: false,
        leads: false,
        narrows: String::new(),
    }
}

fn filled(value: FieldValue) -> Cell {
    let text = match value {
        FieldValue::One(Part::Time(at)) => {
            return Cell {
                at: Some(at),
                ..empty()
            };
        }
        FieldValue::One(part) => part.into_text(),
        FieldValue::Many(parts) => {
            let parts: Vec<String> = parts.into_iter().map(Part::into_text).collect();
            parts.join(", ")
        }
        FieldValue::Pairs(pairs) => {
            let pairs = pairs
                .into_iter()
                .map(|(name, part)| format!("{name}: {}", part.into_text()));
            pairs.collect::<Vec<_>>().join(" · ")
        }
    };
    Cell {
        text: one_line(&text, CELL_CHARS),
        ..empty()
    }
}

/// The page with only the records of one unit of time.
pub(super) fn narrowed(viewer: &Viewer, time: &FieldShape, day: Date, unit: Granularity) -> String {
    day_of(viewer.here.clone(), time, Days::of(day, unit)).to_string()
}

/// The page of a stream with only the records of these days.
pub(in crate::console) fn day_of(address: Address, time: &FieldShape, days: Days) -> Address {
    let name = &time.name;
    let ranges = ["gte", "gt", "lte", "lt"].map(|operator| format!("filter[{name}][{operator}]"));
    let mut address = address.without(&ranges.each_ref().map(String::as_str));
    if let Some(FilterTest::Range(bounds)) = within(time, days).map(|filter| filter.test) {
        for (operator, value) in bounds {
            address = address.with(format!("filter[{name}][{operator}]"), &value);
        }
    }
    address
}
