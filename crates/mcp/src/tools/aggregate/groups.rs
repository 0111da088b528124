//! The text of grouped figures: as many groups as fit, and the call that leads to the others.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::{Figure, label, scalar};
use crate::budget;
use crate::evidence::envelope;
use crate::evidence::lines::Lines;
use crate::evidence::plain;

/// Writes the groups, in the order they came.
pub(super) fn text(figure: &Figure<'_>, groups: &[Value]) -> String {
    // A group takes four bytes at least, so no more than this can ever be shown.
    let most = budget::GROUPS_TEXT / 4;
    let written: Vec<String> = groups.iter().take(most).map(group).collect();
    let warnings = envelope::warnings(figure.envelope).map(|codes| format!("warnings: {codes}"));
    let mut shown = written.len();
    // What stands around the groups depends on how many are shown, so it is measured with them.
    loop {
        let head = head(figure, groups.len(), shown);
        let tail = next(figure, groups, shown);
        let mut lines = Lines::new(budget::GROUPS_TEXT, head);
        lines.reserve(tail.len());
        if let Some(warnings) = &warnings {
            lines.offer(warnings);
        }
        let kept = written.get(..shown).unwrap_or_default();
        if lines.offer_all(kept) || shown == 0 {
            lines.require(&tail);
            return lines.finish();
        }
        shown -= 1;
    }
}

/// `"inbox"=603`, or with a value of its own `"inbox" value=12.5 count=603`.
fn group(group: &Value) -> String {
    let key = scalar(group.get("key").unwrap_or(&Value::Null));
    let count = group.get("count");
    match (group.get("value"), count) {
        (Some(value), Some(count)) => {
            format!("{key} value={} count={}", scalar(value), scalar(count))
        }
        (Some(value), None) => format!("{key} value={}", scalar(value)),
        (None, Some(count)) => format!("{key}={}", scalar(count)),
        (None, None) => format!("{key}=unknown"),
    }
}

fn head(figure: &Figure<'_>, all: usize, shown: usize) -> String {
    let noun = if all == 1 { "group" } else { "groups" };
    let mut head = format!("{}{}: {all} {noun}", figure.name(), dimension(figure));
    let others = figure.whole("other_count");
    // Writing to a String cannot fail.
    if shown < all {
        let _ = write!(head, ", groups_not_shown={}", all - shown);
    }
    match others {
        Some(0) if shown == all => head.push_str(", complete; other_count=0"),
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
fn next(figure: &Figure<'_>, groups: &[Value], shown: usize) -> String {
    let long = if shown < groups.len() {
        later(figure, groups.get(shown)).unwrap_or_else(|| values(figure))
    } else if figure.whole("other_count").is_some_and(|others| others > 0) {
        more(figure, groups)
    } else {
        format!("next: {}", figure.records(first(figure, groups)))
    };
    // A filter may be longer than all there is room for; the caller still has it.
    if long.len() <= budget::GROUPS_TEXT / 3 {
        long
    } else {
        "next: repeat the call with limit=100 or a narrower filter; query_records with the same filter lists the records"
            .to_owned()
    }
}

/// A larger answer, or where it is already the largest, one that begins later or lists the values themselves.
fn more(figure: &Figure<'_>, groups: &[Value]) -> String {
    if figure.args.whole("limit").unwrap_or_default() < budget::MAX_LIMIT {
        let mut args = figure.args.given().clone();
        args.insert("limit".to_owned(), json!(budget::MAX_LIMIT));
        return called(args);
    }
    later(figure, groups.last()).unwrap_or_else(|| values(figure))
}

/// The same call from this calendar unit on. Keys carry no offset, so this is exact in UTC only.
fn later(figure: &Figure<'_>, from: Option<&Value>) -> Option<String> {
    let field = figure.args.text("group_by_time")?;
    let start = from?.get("key")?.as_str()?;
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
fn values(figure: &Figure<'_>) -> String {
    let mut args = Map::new();
    for name in ["stream", "connection_id", "filter"] {
        if let Some(value) = figure.args.given().get(name) {
            args.insert(name.to_owned(), value.clone());
        }
    }
    let field = ["group_by", "group_by_time"]
        .into_iter()
        .find_map(|name| figure.args.text(name));
    if let Some(field) = field {
        args.insert("fields".to_owned(), json!([field]));
    }
    args.insert("limit".to_owned(), json!(budget::MAX_LIMIT));
    let call = plain::json(&Value::Object(args));
    format!("next: narrow with filter, or query_records {call} for the values themselves")
}

fn called(args: Map<String, Value>) -> String {
    format!("next: aggregate {}", plain::json(&Value::Object(args)))
}

/// The first group as a filter, where its key can stand in one.
fn first<'a>(figure: &Figure<'a>, groups: &'a [Value]) -> Option<(&'a str, &'a Value)> {
    let field = figure.args.text("group_by")?;
    let key = groups.first()?.get("key")?;
    let is_scalar = matches!(key, Value::String(_) | Value::Number(_) | Value::Bool(_));
    is_scalar.then_some((field, key))
}
