//! The text of grouped figures: as many groups as fit, and the call that leads to the others.

use std::fmt::Write as _;

use super::{Counted, Filters, label, scalar};
use crate::answer::Group;
use crate::args::{can_be_listed, is_filter_name};
use crate::budget;
use crate::text::lines::Lines;
use crate::text::{paging, plain};
use crate::tool_call::ToolCall;

/// How long a key may be: whole where all of them fit, else ever shorter. What is shorter than the last is never cut.
const WIDTHS: [usize; 5] = [usize::MAX, 640, 320, 160, budget::LABEL];

struct Line {
    text: String,
    is_cut: bool,
}

/// Writes the groups, in the order they came. What leads on filters only by what the server takes.
pub(super) fn text(figure: &Counted<'_>, groups: &[Group<'_>], filters: Filters) -> String {
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
            && figure.figure.omitted == 0
            && let Some(text) = fitting(figure, groups, filters, &written)
        {
            return text;
        }
    }
    // Without groups there is always room.
    (0..=written.len())
        .rev()
        .find_map(|shown| fitting(figure, groups, filters, written.get(..shown)?))
        .unwrap_or_default()
}

/// The text with these lines. What stands around them depends on how many there are, so it is measured with them.
fn fitting(
    figure: &Counted<'_>,
    groups: &[Group<'_>],
    filters: Filters,
    written: &[Line],
) -> Option<String> {
    let cut = written.iter().filter(|line| line.is_cut).count();
    let all = groups.len() + figure.figure.omitted;
    let head = head(figure, all, written.len(), cut);
    let tail = next(figure, groups, filters, written.len(), cut);
    let mut lines = Lines::new(budget::GROUPS_TEXT, head);
    lines.reserve(tail.len());
    if let Some(warnings) = paging::page_warnings(&figure.figure.page) {
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
fn key(group: &Group<'_>) -> String {
    match group.key.text() {
        Some(text) => text.to_owned(),
        None => plain::json(&group.key.json()).into_owned(),
    }
}

/// `"inbox"=603`, or with a value of its own `"inbox" value=12.5 count=603`. A key that is cut says so, how long it is and
/// where it stands in structured content, which also tells it from another that begins alike.
fn line(place: usize, group: &Group<'_>, keys: &[String], width: usize) -> Line {
    let whole = keys.get(place).map_or("", String::as_str);
    let is_text = group.key.text().is_some();
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
    let mut text = match (group.value, group.count) {
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

fn head(figure: &Counted<'_>, all: usize, shown: usize, cut: usize) -> String {
    let noun = if all == 1 { "group" } else { "groups" };
    let mut head = format!("{}{}: {all} {noun}", figure.name(), dimension(figure));
    let others = figure.figure.other_count;
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
            // Zero needs no unit.
            let unit = if others > 0 {
                " (records in other groups)"
            } else {
                ""
            };
            let _ = write!(head, "; other_count={others}{unit}");
        }
        None => head.push_str("; whether there are more is not told"),
    }
    let _ = write!(head, ";{}", figure.facts());
    head.trim_end_matches(';').to_owned()
}

/// What makes a group, with the unit and time zone that were applied.
fn dimension(figure: &Counted<'_>) -> String {
    let mut written = String::new();
    let args = figure.args;
    for (name, field) in [
        ("group_by", &args.group_by),
        ("group_by_time", &args.group_by_time),
    ] {
        if let Some(field) = field {
            let _ = write!(written, " {name}={}", label(field));
        }
    }
    if args.group_by_time.is_some() {
        let asked = args.granularity.map(|unit| unit.0.as_str());
        if let Some(unit) = figure.figure.granularity.or(asked) {
            let _ = write!(written, " granularity={}", label(unit));
        }
        if let Some(zone) = time_zone(figure) {
            let _ = write!(written, " time_zone={}", label(zone));
        }
    }
    written
}

fn time_zone<'a>(figure: &'a Counted<'_>) -> Option<&'a str> {
    figure.figure.time_zone.or(figure.args.time_zone.as_deref())
}

/// The last line: how to see the groups that are not here, else the records behind the first group.
fn next(
    figure: &Counted<'_>,
    groups: &[Group<'_>],
    filters: Filters,
    shown: usize,
    cut: usize,
) -> String {
    let later = |from| later(figure, from).filter(|_| filters.range);
    let long = if cut > 0 {
        values(figure, filters)
    } else if shown < groups.len() + figure.figure.omitted {
        let from = groups.get(shown).or(groups.last());
        later(from).unwrap_or_else(|| values(figure, filters))
    } else if figure.figure.other_count.is_some_and(|others| others > 0) {
        // By time some have as many as there can be where the caller names no limit.
        let is_full = groups.len() as u64 >= budget::MAX_LIMIT;
        let larger = larger(figure).filter(|_| !is_full);
        larger
            .or_else(|| later(groups.last()))
            .unwrap_or_else(|| values(figure, filters))
    } else {
        let first = first(figure, groups).filter(|_| filters.exact || filters.contains);
        format!("next: {}", figure.records(first, filters.contains))
    };
    // What was asked may be longer than all there is room for; the caller still has it.
    if long.len() <= budget::GROUPS_TEXT / 3 {
        long
    } else if figure.args.filter.is_some() {
        "next: repeat the call with limit=100 or a narrower filter; query_records with the same filter lists the records"
            .to_owned()
    } else {
        "next: repeat the call with limit=100; query_records with the same stream lists the records"
            .to_owned()
    }
}

/// The same call with the largest answer, where it was not that already.
fn larger(figure: &Counted<'_>) -> Option<String> {
    let limit = figure.args.limit.map_or(0, |limit| limit.0);
    let repeat = ToolCall::repeat("aggregate", figure.args);
    (limit < budget::MAX_LIMIT)
        .then(|| format!("next: {}", repeat.with("limit", budget::MAX_LIMIT)))
}

/// The same call from this calendar unit on. Keys carry no offset, so this is exact in UTC only.
fn later(figure: &Counted<'_>, from: Option<&Group<'_>>) -> Option<String> {
    let field = figure.args.group_by_time.as_deref()?;
    let start = from?.key.text()?;
    if !is_filter_name(field) || time_zone(figure).is_some_and(|zone| zone != "UTC") {
        return None;
    }
    let filter = figure.args.filter.clone().unwrap_or_default();
    let filter = filter.from(field, start)?;
    let call = ToolCall::repeat("aggregate", figure.args).with("filter", filter);
    Some(format!("next: {call}"))
}

/// The grouped values record by record.
fn values(figure: &Counted<'_>, filters: Filters) -> String {
    let args = figure.args;
    let field = args.group_by.as_ref().or(args.group_by_time.as_ref());
    let field = field.filter(|field| can_be_listed(field));
    let call = figure
        .listing()
        .with_some("filter", args.filter.clone())
        .with_some("fields", field.map(std::slice::from_ref))
        .with("limit", budget::MAX_LIMIT);
    let narrower = if filters == Filters::default() {
        ""
    } else {
        "narrow with filter, or "
    };
    format!("next: {narrower}{call} for the values themselves")
}

/// The first group as a filter, where its key can stand in one.
fn first<'a>(figure: &'a Counted<'_>, groups: &'a [Group<'a>]) -> Option<(&'a str, &'a Group<'a>)> {
    let field = figure.args.group_by.as_deref()?;
    let group = groups.first()?;
    let is_named = group.key.is_scalar() && group.key.kind() != "null" && is_filter_name(field);
    is_named.then_some((field, group))
}
