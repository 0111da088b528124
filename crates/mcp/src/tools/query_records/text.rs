//! The text of a page of records, under its budget: one line that says it all, then records, then bare ids, then what is
//! not shown and how to see it.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt::Write as _;

use contract::numeral;
use serde_json::{Map, Value, json};

use super::{Asked, Relation, WayOn, own_members, payload};
use crate::budget;
use crate::evidence::envelope::{self, Paging};
use crate::evidence::identity::{Identity, connection_of, text};
use crate::evidence::ladder::{self, Content};
use crate::evidence::lines::Lines;
use crate::evidence::{compact, fan_in, oversize, plain};

/// What the mandatory last lines may take when a first line is already too long.
const TAIL: usize = 360;
/// A first line longer than this leaves room for few words.
const LONG_FIRST_LINE: usize = 900;
const WARNINGS: usize = 200;
/// A printed call longer than this is told in words instead.
const CALL: usize = 240;
/// How a cut says so.
const INCOMPLETE: &str = " incomplete size=";
/// A payload is not shown in less.
const LEAST_PAYLOAD: usize = 144;

/// A record with its name, where it has one. Its line is tried in several widths, so what they share is kept.
struct Row<'a> {
    record: &'a Value,
    identity: Option<Identity>,
    /// What is shown of it, where it is an object.
    members: Option<Cow<'a, Map<String, Value>>>,
    /// The size of its payload, once that was asked for.
    size: OnceCell<usize>,
    /// Relations with more records than were sent, how many were, and the way on.
    related: Vec<(&'a Relation, usize, WayOn)>,
}

/// How a way on is written: it is spelt out once, and after that what differs is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spelling {
    Whole,
    /// The same call was spelt out before.
    Again,
    /// Where even one call does not fit.
    Words,
}

impl Row<'_> {
    fn size(&self) -> usize {
        *self
            .size
            .get_or_init(|| payload(self.record).map_or(0, oversize::size_of_members))
    }
}

pub(super) fn write(asked: &Asked<'_>, body: &Value) -> String {
    let rows: Vec<Row<'_>> = envelope::records(body)
        .iter()
        .map(|record| Row {
            record,
            identity: asked.identity(record),
            members: displayed(record),
            size: OnceCell::new(),
            related: asked.cut_relations(record),
        })
        .collect();
    let paging = Paging::of(body);
    let first = first_line(asked, &rows, &paging);
    let is_long = first.len() > LONG_FIRST_LINE;
    let mut tail = Vec::new();
    if let Some(warnings) = envelope::warnings(body) {
        let most = if is_long { WARNINGS / 4 } else { WARNINGS };
        tail.push(format!("warnings={}", plain::cut(&warnings, most)));
    }
    tail.push(last_line(asked, &rows, &paging, is_long));
    // Room for what is not shown is kept only where something is not.
    let (mut lines, mut shown) = written(&rows, &first, &tail, "");
    if shown < rows.len() {
        let longest_call = if is_long { 0 } else { CALL };
        let unshown = unshown_line(asked, rows.len(), rows.len(), longest_call);
        (lines, shown) = written(&rows, &first, &tail, &unshown);
        // Shorter rows may have made room for every id.
        if shown < rows.len() {
            let hidden = rows.len() - shown;
            lines.require(&unshown_line(asked, hidden, shown.max(1), longest_call));
        }
    }
    for line in &tail {
        lines.require(line);
    }
    lines.finish()
}

/// The lines before the tail, and how many rows are among them.
fn written(rows: &[Row<'_>], first: &str, tail: &[String], unshown: &str) -> (Lines, usize) {
    let ceiling = (budget::LIST_TEXT - 1).max(first.len() + TAIL);
    let mut lines = Lines::new(ceiling, first);
    for line in tail.iter().map(String::as_str).chain([unshown]) {
        lines.reserve(line.len());
    }
    let shown = write_rows(rows, &mut lines);
    (lines, shown)
}

/// What this is, whether it is all, the first handle, where a clipping host still shows it, the way on.
fn first_line(asked: &Asked<'_>, rows: &[Row<'_>], paging: &Paging) -> String {
    let stream = plain::quoted(asked.stream, budget::LABEL);
    let mut line = format!("records from stream {stream}: {} record(s).", rows.len());
    line.push_str(&paging.extent());
    let mut living = rows.iter().filter(|row| !is_deleted(row.record));
    if let Some(identity) = living.find_map(|row| row.identity.as_ref()) {
        line.push_str(" first_fetch_");
        line.push_str(&named(identity));
    }
    line.push_str(&paging.way_on());
    line
}

fn last_line(asked: &Asked<'_>, rows: &[Row<'_>], paging: &Paging, is_short: bool) -> String {
    let has_ids = rows.iter().any(|row| row.identity.is_some());
    if is_short {
        let steps = [
            has_ids.then_some("call fetch with an id as-is"),
            paging
                .next_cursor
                .as_ref()
                .map(|_| "pass next_cursor as cursor"),
            (paging.has_more == Some(true) && paging.next_cursor.is_none())
                .then_some("for more repeat this call with one connection_id"),
            paging
                .next_changes_since
                .as_ref()
                .map(|_| "after the last page pass next_changes_since as changes_since"),
        ];
        let steps: Vec<&str> = steps.into_iter().flatten().collect();
        return format!("Next: {}", steps.join("; "));
    }
    let mut line = String::from("Next:");
    if has_ids {
        line.push_str(
            " call fetch with an id as-is for a whole record, adding connection_id only when it is shown separately.",
        );
    }
    if paging.next_cursor.is_some() {
        line.push_str(" For the next page repeat this call with next_cursor as cursor.");
    } else if paging.has_more == Some(true) && paging.next_changes_since.is_none() {
        let connections = rows.iter().filter_map(|row| connection_of(row.record));
        let given = ("query_records", asked.args.given());
        line.push_str(&fan_in::way_on(given, connections, CALL));
    }
    if paging.next_changes_since.is_some() {
        // The bookmark lies behind all pages: who goes on with it now passes over those that follow.
        line.push_str(if paging.next_cursor.is_some() {
            " After the last page pass its next_changes_since as changes_since to see later changes."
        } else {
            " To see later changes pass next_changes_since as changes_since."
        });
    }
    if line.ends_with(':') {
        line.push_str(" widen the filter, or call schema with this stream to see what it holds.");
    }
    line
}

fn unshown_line(asked: &Asked<'_>, hidden: usize, limit: usize, longest_call: usize) -> String {
    let mut args = asked.args.given().clone();
    args.insert("limit".to_owned(), json!(limit));
    let call = compact::call("query_records", &args);
    if call.len() <= longest_call {
        format!("rows_not_shown={hidden} page through them with {call}")
    } else {
        format!(
            "rows_not_shown={hidden} page through them by repeating this call, same cursor, with \"limit\":{limit}"
        )
    }
}

/// Records while the ids of those behind them still fit, then bare ids. Gives how many were shown, from the first on.
fn write_rows(rows: &[Row<'_>], lines: &mut Lines) -> usize {
    let ids: Vec<String> = rows.iter().map(bare_id).collect();
    let for_ids = lines.room() * 2 / 5;
    let mut shown = 0;
    // The call that reads on is spelt out once; after that its words are enough, and leave room for what they are about.
    let (mut is_spelt, mut is_led) = (false, false);
    for (place, row) in rows.iter().enumerate() {
        let behind: usize = ids.iter().skip(place + 1).map(|id| id.len() + 1).sum();
        let kept = (behind + 10).min(for_ids) * usize::from(behind > 0);
        let allowed = lines.room().saturating_sub(kept);
        let share = allowed / (rows.len() - place);
        // Something of the first row comes before bare ids of others.
        let last_resort = if place == 0 { lines.room() } else { allowed };
        let led = if is_led {
            Spelling::Again
        } else {
            Spelling::Whole
        };
        let line = [
            (share, (!is_spelt, led), allowed),
            (0, (!is_spelt, led), allowed),
            (0, (false, led), allowed),
            (0, (false, Spelling::Words), last_resort),
        ]
        .into_iter()
        .map(|(share, spelling, most)| (row_line(place, row, share, spelling), spelling, most))
        .find_map(|(line, (_, led), most)| (line.len() <= most).then_some((line, led)));
        // The first line names the first record whole; where its id leaves no room to stand twice, that is its place.
        let named_above = || {
            let is_named = place == 0 && row.identity.is_some() && !is_deleted(row.record);
            let size = row.size();
            is_named
                .then(|| format!("1. first_fetch_id{INCOMPLETE}{size} bytes, continue with fetch"))
                .map(|line| (line, Spelling::Words))
        };
        let Some((line, led)) = line.or_else(named_above) else {
            break;
        };
        is_led |= led == Spelling::Whole && !row.related.is_empty();
        is_spelt |= line.contains(INCOMPLETE);
        lines.require(&line);
        shown = place + 1;
    }
    let waiting: Vec<String> = ids
        .into_iter()
        .skip(shown)
        .take_while(|id| !id.is_empty())
        .collect();
    shown + lines.offer_words("More ids:", &waiting)
}

/// The id as a word; nothing for rows that cannot be fetched by it alone.
fn bare_id(row: &Row<'_>) -> String {
    match &row.identity {
        Some(identity) if identity.separate_connection().is_none() && !is_deleted(row.record) => {
            plain::token(&identity.id).into_owned()
        }
        _ => String::new(),
    }
}

/// A record within its share of bytes, or as short as it gets.
fn row_line(
    place: usize,
    row: &Row<'_>,
    share: usize,
    (with_call, led): (bool, Spelling),
) -> String {
    let mut line = format!("{}.", place + 1);
    if let Some(identity) = &row.identity {
        line.push(' ');
        line.push_str(&named(identity));
    } else if let Some(key) = text(row.record, "id") {
        // A key that no handle can carry, such as "..".
        let key = plain::token(key);
        // Writing to a String cannot fail.
        let _ = write!(line, " ref={key} (cannot be fetched)");
    }
    if is_deleted(row.record) {
        line.push_str(" deleted");
        if let Some(time) = text(row.record, "deleted_at") {
            line.push_str(" deleted_at=");
            line.push_str(&plain::token(time));
        }
        return line;
    }
    let Some(members) = &row.members else {
        let written = numeral::write(row.record);
        line.push(' ');
        line.push_str(&plain::quoted(&written, LEAST_PAYLOAD));
        if written.len() > LEAST_PAYLOAD {
            line.push_str(INCOMPLETE);
            line.push_str(&written.len().to_string());
        }
        return line;
    };
    let related = more_related(row, led);
    let width = share
        .saturating_sub(line.len() + related.len() + 2)
        .max(LEAST_PAYLOAD);
    let mut shown = compact::payload(members, width);
    let mut way_on = String::new();
    if !shown.cut.is_empty() {
        way_on = incomplete(row, members, &shown.cut, with_call);
        // What says that it is cut takes its place from what is shown, unless the whole is no longer than both.
        let narrower = width.saturating_sub(way_on.len()).max(LEAST_PAYLOAD);
        shown = compact::payload(members, narrower + way_on.len());
        if shown.cut.is_empty() {
            way_on.clear();
        } else {
            shown = compact::payload(members, narrower);
            way_on = incomplete(row, members, &shown.cut, with_call);
        }
    }
    format!("{line} {}{way_on}{related}", shown.text)
}

/// Which relations hold more than was sent, and how to read on there.
fn more_related(row: &Row<'_>, led: Spelling) -> String {
    let mut written = String::new();
    for (relation, count, way_on) in &row.related {
        let name = plain::quoted(&relation.name, budget::LABEL);
        // Writing to a String cannot fail.
        let _ = write!(written, "; {name} has_more=true ({count} sent), ");
        let call = match way_on {
            WayOn::List(call) | WayOn::Larger(call) => compact::call_of(call),
            WayOn::None(_) => None,
        };
        match (way_on, led, call) {
            (WayOn::None(why), ..) => written.push_str(why),
            (_, Spelling::Whole, Some(call)) => {
                let _ = write!(written, "continue with {call}");
            }
            (WayOn::List(call), Spelling::Again, _) => {
                let filter = call.pointer("/args/filter").map(plain::json);
                let filter = filter.unwrap_or_default();
                let _ = write!(written, "continue likewise with \"filter\":{filter}");
            }
            (WayOn::Larger(_), Spelling::Again, _) => {
                written.push_str("continue likewise with this id");
            }
            _ => {
                let _ = write!(
                    written,
                    "continue with fetch, this id and \"expand\":[{name}]"
                );
            }
        }
    }
    written
}

/// The size of the whole, and the call that reads the largest part that was cut. Where ids are so long that the call does
/// not fit, it is told in words: the id stands on the same line.
fn incomplete(
    row: &Row<'_>,
    members: &Map<String, Value>,
    cut: &[String],
    with_call: bool,
) -> String {
    let size = row.size();
    let way_on = match &row.identity {
        Some(identity) if with_call => {
            let largest = cut
                .iter()
                .filter_map(|name| Some((name, members.get(name)?)))
                .max_by_key(|(_, value)| (rank(value), oversize::size(value)));
            let read = largest
                .filter(|(name, _)| *name != "expanded")
                .and_then(|(name, value)| ladder::field_read(identity, name, value))
                .and_then(|read| compact::call_of(&read));
            read.unwrap_or_else(|| {
                let mut args = identity.args();
                // Where related records are cut, the record alone would not show them.
                let expanded = row.record.get("expanded").and_then(Value::as_object);
                let relations = expanded.filter(|_| cut.iter().any(|name| name == "expanded"));
                if let Some(relations) = relations {
                    let names: Vec<&String> = relations.keys().collect();
                    args.insert("expand".to_owned(), json!(names));
                }
                compact::call("fetch", &args)
            })
        }
        Some(_) => "fetch and this id".to_owned(),
        None => "query_records and fewer fields".to_owned(),
    };
    format!("{INCOMPLETE}{size} bytes, continue with {way_on}")
}

/// Texts can be read in windows, so they are the better offer.
fn rank(value: &Value) -> u8 {
    u8::from(Content::of(value) == Content::Text)
}

/// The payload, with the payloads of related records beside it.
fn displayed(record: &Value) -> Option<Cow<'_, Map<String, Value>>> {
    let mut members = own_members(record)?;
    let Some(Value::Object(expanded)) = record.get("expanded") else {
        return Some(members);
    };
    let related: Map<String, Value> = expanded
        .iter()
        .map(|(relation, value)| (relation.clone(), related(value)))
        .collect();
    let related = Value::Object(related);
    members.to_mut().insert("expanded".to_owned(), related);
    Some(members)
}

/// Related records without their envelopes.
fn related(value: &Value) -> Value {
    let bare = |record: &Value| match record.get("data") {
        Some(data @ Value::Object(_)) => data.clone(),
        _ => record.clone(),
    };
    match (value, value.get("data")) {
        (Value::Array(records), _) | (_, Some(Value::Array(records))) => {
            records.iter().map(bare).collect()
        }
        (record, _) => bare(record),
    }
}

/// The id with what must be passed beside it.
fn named(identity: &Identity) -> String {
    let id = plain::token(&identity.id);
    match identity.separate_connection() {
        Some(connection) => format!("id={id} connection_id={}", plain::token(connection)),
        None => format!("id={id}"),
    }
}

fn is_deleted(record: &Value) -> bool {
    record.get("deleted") == Some(&Value::Bool(true))
}
