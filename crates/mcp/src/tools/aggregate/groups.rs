//! The text of grouped figures: as many groups as fit, and the call that leads to the others.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::{Figure, Filters, label, scalar};
use crate::args::{can_be_listed, is_filter_name};
use crate::budget;
use crate::evidence::envelope;
use crate::evidence::lines::Lines;
use crate::evidence::payload::is_scalar;
use crate::evidence::plain;

/// How long a key may be: whole where all of them fit, else ever shorter. What is shorter than the last is never cut.
const WIDTHS: [usize; 5] = [usize::MAX, 640, 320, 160, budget::LABEL];

/// A group on its line.
struct Line {
    text: String,
    is_cut: bool,
}

/// Writes the groups, in the order they came. What leads on filters only by what the server takes.
pub(super) fn text(figure: &Figure<'_>, groups: &[Value], filters: Filters) -> String {
    // A group takes four bytes at least, so no more than this can ever be shown.
    let most = budget::GROUPS_TEXT / 4;
    let keys: Vec<String> = groups.iter().take(most).map(key).collect();
    let least = |width: usize| keys.iter().map(|key| key.len().min(width)).sum::<usize>();
    let mut written = Vec::new();
    for width in WIDTHS {
        // What cannot fit need not be written to find out.
        if width > budget::LABEL && least(width) > budget::GROUPS_TEXT {
            continue;
        }
        let line = |(place, group)| line(place, group, &keys, width);
        written = groups.iter().take(most).enumerate().map(line).collect();
        if written.len() == groups.len()
            && let Some(text) = fitting(figure, (groups, filters), &written)
        {
            return text;
        }
    }
    // Without groups there is always room.
    (0..=written.len())
        .rev()
        .find_map(|shown| fitting(figure, (groups, filters), written.get(..shown)?))
        .unwrap_or_default()
}

/// The text with these lines. What stands around them depends on how many there are, so it is measured with them.
fn fitting(
    figure: &Figure<'_>,
    (groups, filters): (&[Value], Filters),
    written: &[Line],
) -> Option<String> {
    let cut = written.iter().filter(|line| line.is_cut).count();
    let head = head(figure, groups.len(), (written.len(), cut));
    let tail = next(figure, (groups, filters), (written.len(), cut));
    let mut lines = Lines::new(budget::GROUPS_TEXT, head);
    lines.reserve(tail.len());
    if let Some(warnings) = envelope::warnings(figure.envelope) {
        lines.offer(&format!("warnings: {warnings}"));
    }
    let kept: Vec<String> = written.iter().map(|line| line.text.clone()).collect();
    if !lines.offer_all(&kept) && !kept.is_empty() {
        return None;
    }
    lines.require(&tail);
    Some(lines.finish())
}

/// The key as it would stand whole: a text unquoted, anything else as JSON.
fn key(group: &Value) -> String {
    match group.get("key") {
        Some(Value::String(text)) => text.clone(),
        Some(other) => plain::json(other),
        None => Value::Null.to_string(),
    }
}

/// `"inbox"=603`, or with a value of its own `"inbox" value=12.5 count=603`. A key that is cut says so, how long it is and
/// where it stands in structured content, which also tells it from another that begins alike.
fn line(place: usize, group: &Value, keys: &[String], width: usize) -> Line {
    let whole = keys.get(place).map_or("", String::as_str);
    let is_text = group.get("key").is_some_and(Value::is_string);
    let quoted = |text: &str| {
        if is_text {
            plain::exact(text)
        } else {
            text.to_owned()
        }
    };
    let mut shown = quoted(whole);
    let is_cut = shown.len() > width.saturating_add(2);
    if is_cut {
        let mut room = width;
        // Escaping makes texts longer; what is bounded is what is printed.
        while shown.len() > width + 2 && room >= 8 {
            shown = quoted(&told_apart(place, keys, room));
            room = room * 3 / 4;
        }
    }
    let count = group.get("count");
    let mut text = match (group.get("value"), count) {
        (Some(value), Some(count)) => {
            format!("{shown} value={} count={}", scalar(value), scalar(count))
        }
        (Some(value), None) => format!("{shown} value={}", scalar(value)),
        (None, Some(count)) => format!("{shown}={}", scalar(count)),
        (None, None) => format!("{shown}=unknown"),
    };
    if is_cut {
        // Writing to a String cannot fail.
        let _ = write!(text, " (groups[{place}].key cut, {} bytes)", whole.len());
    }
    Line { text, is_cut }
}

/// So many bytes of a key: its beginning, and where others begin alike also the place where they part.
fn told_apart(place: usize, keys: &[String], room: usize) -> String {
    let whole = keys.get(place).map_or("", String::as_str);
    let alike = |other: &String| {
        let pairs = whole.bytes().zip(other.bytes());
        pairs.take_while(|(ours, theirs)| ours == theirs).count()
    };
    let others = keys.iter().enumerate().filter(|(other, _)| *other != place);
    let shared = others.map(|(_, other)| alike(other));
    // Of those that would be shown alike, the first to part from this one.
    let parted = shared
        .filter(|shared| shared + '…'.len_utf8() >= room / 2)
        .min();
    let Some(from) = parted else {
        return plain::cut(whole, room).into_owned();
    };
    let from = whole.floor_char_boundary(from);
    let begin = plain::cut(whole, room / 2);
    let part = plain::cut(whole.get(from..).unwrap_or_default(), room / 2);
    format!("{begin}{part}")
}

fn head(figure: &Figure<'_>, all: usize, (shown, cut): (usize, usize)) -> String {
    let noun = if all == 1 { "group" } else { "groups" };
    let mut head = format!("{}{}: {all} {noun}", figure.name(), dimension(figure));
    let others = figure.whole("other_count");
    // Writing to a String cannot fail.
    if shown < all {
        let _ = write!(head, ", groups_not_shown={}", all - shown);
    }
    if cut > 0 {
        let _ = write!(head, ", keys_cut={cut}");
    }
    match others {
        Some(0) if shown == all && cut == 0 => head.push_str(", complete; other_count=0"),
        Some(others) => {
            let _ = write!(head, "; other_count={others}");
        }
        None => head.push_str("; whether there are more is not told"),
    }
    let _ = write!(head, ";{}", figure.facts());
    head.trim_end_matches(';').to_owned()
}

/// What makes a group, with the unit and time zone that were applied.
fn dimension(figure: &Figure<'_>) -> String {
    let mut written = String::new();
    for name in ["group_by", "group_by_time"] {
        if let Some(field) = figure.args.text(name) {
            let _ = write!(written, " {name}={}", label(field));
        }
    }
    if figure.args.has("group_by_time") {
        let told = |name: &str| figure.body.get(name).and_then(Value::as_str);
        if let Some(unit) = told("granularity").or_else(|| figure.args.text("granularity")) {
            let _ = write!(written, " granularity={}", label(unit));
        }
        if let Some(zone) = time_zone(figure) {
            let _ = write!(written, " time_zone={}", label(zone));
        }
    }
    written
}

fn time_zone<'a>(figure: &Figure<'a>) -> Option<&'a str> {
    let told = |name: &str| figure.body.get(name).and_then(Value::as_str);
    told("effective_time_zone")
        .or_else(|| told("time_zone"))
        .or_else(|| figure.args.text("time_zone"))
}

/// The last line: how to see the groups that are not here, else the records behind the first group.
fn next(
    figure: &Figure<'_>,
    (groups, filters): (&[Value], Filters),
    (shown, cut): (usize, usize),
) -> String {
    let later = |from| later(figure, from).filter(|_| filters.range);
    let long = if cut > 0 {
        values(figure, filters)
    } else if shown < groups.len() {
        later(groups.get(shown)).unwrap_or_else(|| values(figure, filters))
    } else if figure.whole("other_count").is_some_and(|others| others > 0) {
        let larger = larger(figure);
        larger
            .or_else(|| later(groups.last()))
            .unwrap_or_else(|| values(figure, filters))
    } else {
        let first = first(figure, groups).filter(|_| filters.exact);
        format!("next: {}", figure.records(first))
    };
    // What was asked may be longer than all there is room for; the caller still has it.
    if long.len() <= budget::GROUPS_TEXT / 3 {
        long
    } else if figure.args.has("filter") {
        "next: repeat the call with limit=100 or a narrower filter; query_records with the same filter lists the records"
            .to_owned()
    } else {
        "next: repeat the call with limit=100; query_records with the same stream lists the records"
            .to_owned()
    }
}

/// The same call with the largest answer, where it was not that already.
fn larger(figure: &Figure<'_>) -> Option<String> {
    let is_largest = figure.args.whole("limit").unwrap_or_default() >= budget::MAX_LIMIT;
    (!is_largest).then(|| {
        let mut args = figure.args.given().clone();
        args.insert("limit".to_owned(), json!(budget::MAX_LIMIT));
        called(args)
    })
}

/// The same call from this calendar unit on. Keys carry no offset, so this is exact in UTC only.
fn later(figure: &Figure<'_>, from: Option<&Value>) -> Option<String> {
    let field = figure.args.text("group_by_time")?;
    let start = from?.get("key")?.as_str()?;
    if !is_filter_name(field) {
        return None;
    }
    if time_zone(figure).is_some_and(|zone| zone != "UTC") {
        return None;
    }
    let mut args = figure.args.given().clone();
    let filter = args.entry("filter").or_insert_with(|| json!({}));
    let mut range = match filter.get(field) {
        Some(Value::Object(range)) => range.clone(),
        Some(_) => return None,
        None => Map::new(),
    };
    range.remove("gt");
    range.insert("gte".to_owned(), json!(start));
    filter[field] = Value::Object(range);
    Some(called(args))
}

/// The grouped values record by record.
fn values(figure: &Figure<'_>, filters: Filters) -> String {
    let mut args = Map::new();
    for name in ["stream", "connection_id", "filter"] {
        if let Some(value) = figure.args.given().get(name) {
            args.insert(name.to_owned(), value.clone());
        }
    }
    let field = ["group_by", "group_by_time"]
        .into_iter()
        .find_map(|name| figure.args.text(name));
    if let Some(field) = field.filter(|field| can_be_listed(field)) {
        args.insert("fields".to_owned(), json!([field]));
    }
    args.insert("limit".to_owned(), json!(budget::MAX_LIMIT));
    let call = plain::json(&Value::Object(args));
    let narrower = if filters == Filters::default() {
        ""
    } else {
        "narrow with filter, or "
    };
    format!("next: {narrower}query_records {call} for the values themselves")
}

fn called(args: Map<String, Value>) -> String {
    format!("next: aggregate {}", plain::json(&Value::Object(args)))
}

/// The first group as a filter, where its key can stand in one.
fn first<'a>(figure: &Figure<'a>, groups: &'a [Value]) -> Option<(&'a str, &'a Value)> {
    let field = figure.args.text("group_by")?;
    let key = groups.first()?.get("key")?;
    let is_named = is_scalar(key) && !key.is_null() && is_filter_name(field);
    is_named.then_some((field, key))
}
