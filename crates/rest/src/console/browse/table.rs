//! The table of a stream: its columns, the conditions that narrow it, and its cells, most of which narrow it further.

use contract::aggregate::Granularity;
use contract::query::{FilterTest, Order};
use contract::record::Record;
use jiff::civil::Date;

use super::after;
use super::chosen::Chosen;
use crate::console::address::Address;
use crate::console::format::{label, one_line};
use crate::console::moment::Moment;
use crate::console::stream_shape::{FieldShape, StreamShape};
use crate::console::time_counts::{Days, within};
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
    let value = |field: &FieldShape, wanted: &str| {
        let filters = chosen.query.filters.iter();
        let mut bounds = filters
            .filter(|one| one.field == field.name)
            .flat_map(|one| match &one.test {
                FilterTest::Range(bounds) => bounds.as_slice(),
                FilterTest::Exact(_) => &[],
            });
        let bound = bounds.find(|(operator, _)| operator.as_str() == wanted);
        let text = bound.map(|(_, value)| value.clone()).unwrap_or_default();
        // A field for dates takes no time of day.
        if field.is_time {
            text.chars().take(10).collect()
        } else {
            text
        }
    };
    let fields = shape.fields.iter().filter(|field| field.range).take(RANGES);
    let form = |field: &FieldShape| {
        let upper = if field.is_time { "lt" } else { "lte" };
        RangeForm {
            title: field.title_as_written(),
            from: format!("filter[{}][gte]", field.name),
            to: format!("filter[{}][{upper}]", field.name),
            from_value: value(field, "gte"),
            to_value: value(field, upper),
            kind: match (field.is_time, field.is_number) {
                (true, _) => "date",
                (false, true) => "number",
                _ => "text",
            },
        }
    };
    fields.map(form).collect()
}

/// The parameters that a form of the page keeps.
pub(super) fn kept(viewer: &Viewer) -> Vec<(String, String)> {
    let pairs = viewer.here.pairs().iter();
    let is_range = |name: &str| name.starts_with("filter[") && name.contains("][");
    let kept = pairs.filter(|(name, _)| name != "cursor" && name != "fields" && !is_range(name));
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
        let shown = raw.and_then(|raw| value::shown(raw, Some(field)));
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
    let days = Days {
        from: day,
        until: after(day, unit).unwrap_or(day),
    };
    day_of(viewer.here.clone(), time, days).to_string()
}

/// The page of a stream with only the records of these days.
pub(in crate::console) fn day_of(address: Address, time: &FieldShape, days: Days) -> Address {
    let name = &time.name;
    let ranges = ["gte", "gt", "lte", "lt"].map(|operator| format!("filter[{name}][{operator}]"));
    let mut address = address.without(&ranges.each_ref().map(String::as_str));
    if let FilterTest::Range(bounds) = within(time, days).test {
        for (operator, value) in bounds {
            address = address.with(format!("filter[{name}][{operator}]"), &value);
        }
    }
    address
}
