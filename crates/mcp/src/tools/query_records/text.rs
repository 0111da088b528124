//! The text of a page of records, under its budget: one line that says it all, then records, then bare ids, then what is
//! not shown and how to see it.

use std::fmt::Write as _;

use contract::page::FieldRoles;

use super::{CutRelation, ListRequest, Listed, WayOn};
use crate::answer::{About, Content, Fields, Record};
use crate::budget;
use crate::identity::Identity;
use crate::ladder::Read;
use crate::text::lines::Lines;
use crate::text::{paging, plain, several};
use crate::tool_call::ToolCall;

/// The fields that say what a record is, by their usual names, for a server that does not say which they are: what it is called, by
/// whom, when.
const LEADING: [&str; 18] = [
    "title",
    "subject",
    "name",
    "summary",
    "author",
    "from",
    "sender",
    "sender_name",
    "user",
    "merchant",
    "sent_at",
    "authored_at",
    "date",
    "created_at",
    "occurred_at",
    "starts_at",
    "start",
    "updated_at",
];

/// What the mandatory last lines may take when a first line is already too long.
const TAIL: usize = 360;
/// A first line longer than this leaves room for few words.
const LONG_FIRST_LINE: usize = 900;
const WARNINGS: usize = 200;
/// A printed call longer than this is told in words instead.
const CALL: usize = 240;
/// How a cut says so.
const INCOMPLETE: &str = " incomplete size=";
const LEAST_PAYLOAD: usize = 144;

/// A record whose line is tried in several widths.
struct Row<'a> {
    record: &'a Record<'a>,
    /// The fields that say what it is.
    leading: &'a [&'a str],
    /// What is shown of it, where it is an object.
    fields: Option<Fields<'a>>,
    /// Relations with more records than were sent.
    related: Vec<CutRelation<'a>>,
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

pub(super) fn write(asked: &ListRequest<'_>, listed: &Listed<'_>) -> String {
    let leading = leading(listed);
    let rows: Vec<Row<'_>> = listed
        .page
        .data
        .iter()
        .map(|record| Row {
            record,
            leading: &leading,
            fields: record.displayed(),
            related: asked.cut_relations(record),
        })
        .collect();
    let first = first_line(asked, listed, &rows);
    let is_long = first.len() > LONG_FIRST_LINE;
    let mut tail = Vec::new();
    if let Some(warnings) = paging::page_warnings(&listed.page) {
        let most = if is_long { WARNINGS / 4 } else { WARNINGS };
        tail.push(format!("warnings={}", plain::cut(&warnings, most)));
    }
    // Where ids and cursors take all the room, structured content alone says so.
    let over_budget = listed.over_budget.filter(|_| !is_long);
    tail.extend(over_budget.map(|over| over.to_string()));
    tail.push(last_line(asked, listed, &rows, is_long));
    // Room for what is not shown is kept only where something is not.
    let (mut lines, mut shown) = lines_before_tail(&rows, &first, &tail, "");
    if shown < rows.len() {
        let longest_call = if is_long { 0 } else { CALL };
        let unshown = unshown_line(asked, rows.len(), rows.len(), longest_call);
        (lines, shown) = lines_before_tail(&rows, &first, &tail, &unshown);
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

/// The fields that the server says, else those usually named so.
fn leading<'a>(listed: &'a Listed<'_>) -> Vec<&'a str> {
    let roles = listed.page.meta.as_ref();
    match roles.and_then(|meta| meta.roles.as_ref()) {
        Some(FieldRoles {
            title,
            author,
            time,
        }) => [title, author, time]
            .into_iter()
            .filter_map(Option::as_deref)
            .collect(),
        None => LEADING.to_vec(),
    }
}

/// The lines before the tail, and how many rows are among them.
fn lines_before_tail(
    rows: &[Row<'_>],
    first: &str,
    tail: &[String],
    unshown: &str,
) -> (Lines, usize) {
    let ceiling = (budget::LIST_TEXT - 1).max(first.len() + TAIL);
    let mut lines = Lines::new(ceiling, first);
    for line in tail.iter().map(String::as_str).chain([unshown]) {
        lines.reserve(line.len());
    }
    let shown = write_rows(rows, &mut lines);
    (lines, shown)
}

/// What this is, whether it is all, the first handle, where a clipping host still shows it, the way on.
fn first_line(asked: &ListRequest<'_>, listed: &Listed<'_>, rows: &[Row<'_>]) -> String {
    let stream = plain::quoted(asked.stream(), budget::LABEL);
    let mut line = format!("records from stream {stream}: {} record(s).", rows.len());
    line.push_str(&paging::extent(&listed.page));
    if let Some(shortened) = listed.shortened {
        line.push_str(&shortened.to_string());
    }
    let mut living = rows.iter().filter(|row| !row.record.deleted);
    if let Some(identity) = living.find_map(|row| row.record.identity.as_ref()) {
        line.push_str(" first_fetch_");
        line.push_str(&named(identity));
    }
    line.push_str(&paging::way_on(&listed.page));
    line
}

fn last_line(
    asked: &ListRequest<'_>,
    listed: &Listed<'_>,
    rows: &[Row<'_>],
    is_short: bool,
) -> String {
    let has_ids = rows.iter().any(|row| row.record.identity.is_some());
    let page = &listed.page;
    let (has_cursor, has_more) = (page.next_cursor().is_some(), page.has_more());
    let has_bookmark = page.next_changes_since.as_option().is_some();
    if is_short {
        let steps = [
            has_ids.then_some("call fetch with an id as-is"),
            has_cursor.then_some("pass next_cursor as cursor"),
            (has_more && !has_cursor).then_some("for more repeat this call with one connection_id"),
            has_bookmark.then_some("after the last page pass next_changes_since as changes_since"),
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
    if has_cursor {
        line.push_str(" For the next page repeat this call with next_cursor as cursor.");
    } else if has_more && !has_bookmark {
        let connections = rows.iter().filter_map(|row| row.record.connection);
        let repeat = ToolCall::repeat("query_records", asked.args);
        line.push_str(&several::way_on(
            repeat,
            asked.connection(),
            connections,
            CALL,
        ));
    }
    if has_bookmark {
        // The bookmark lies behind all pages: who goes on with it now passes over those that follow.
        line.push_str(if has_cursor {
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

fn unshown_line(
    asked: &ListRequest<'_>,
    hidden: usize,
    limit: usize,
    longest_call: usize,
) -> String {
    let call = ToolCall::repeat("query_records", asked.args).with("limit", limit);
    let call = call.to_string();
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
        .find_map(|(share, (with_call, led), most)| {
            let line = row_line(place, row, share, with_call, led);
            (line.len() <= most).then_some((line, led))
        });
        // The first line names the first record whole; where its id leaves no room to stand twice, that is its place.
        let named_above = || {
            let record = row.record;
            let is_named = place == 0 && record.identity.is_some() && !record.deleted;
            let size = record.size();
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
    match &row.record.identity {
        Some(identity) if identity.separate_connection().is_none() && !row.record.deleted => {
            plain::token(&identity.id).into_owned()
        }
        _ => String::new(),
    }
}

/// A record within its share of bytes, or as short as it gets.
fn row_line(place: usize, row: &Row<'_>, share: usize, with_call: bool, led: Spelling) -> String {
    let mut line = format!("{}.", place + 1);
    let record = row.record;
    if let Some(identity) = &record.identity {
        line.push(' ');
        line.push_str(&named(identity));
    } else if let Some(key) = record.id {
        // A key that no handle can carry, such as "..".
        let key = plain::token(key);
        // Writing to a String cannot fail.
        let _ = write!(line, " ref={key} (cannot be fetched)");
    }
    if record.deleted {
        line.push_str(" deleted");
        if let Some(time) = record.deleted_at {
            line.push_str(" deleted_at=");
            line.push_str(&plain::token(time));
        }
        return line;
    }
    let Some(fields) = &row.fields else {
        let written = record.other.as_deref().unwrap_or_default();
        line.push(' ');
        line.push_str(&plain::quoted(written, LEAST_PAYLOAD));
        if written.len() > LEAST_PAYLOAD {
            line.push_str(INCOMPLETE);
            line.push_str(&written.len().to_string());
        }
        return line;
    };
    let about = About {
        leading: row.leading,
        key: record.id,
    };
    let related = more_related(row, led);
    let width = share
        .saturating_sub(line.len() + related.len() + 2)
        .max(LEAST_PAYLOAD);
    let mut shown = fields.shown(about, width);
    let mut way_on = String::new();
    if !shown.cut.is_empty() {
        way_on = incomplete(row, fields, &shown.cut, with_call);
        // What says that it is cut takes its place from what is shown, unless the whole is no longer than both.
        let narrower = width.saturating_sub(way_on.len()).max(LEAST_PAYLOAD);
        shown = fields.shown(about, narrower + way_on.len());
        if shown.cut.is_empty() {
            way_on.clear();
        } else {
            shown = fields.shown(about, narrower);
            way_on = incomplete(row, fields, &shown.cut, with_call);
        }
    }
    format!("{line} {}{way_on}{related}", shown.text)
}

/// Which relations hold more than was sent, and how to read on there.
fn more_related(row: &Row<'_>, led: Spelling) -> String {
    let mut written = String::new();
    for cut in &row.related {
        let name = plain::quoted(&cut.relation.name, budget::LABEL);
        // Writing to a String cannot fail.
        let _ = write!(written, "; {name} has_more=true ({} sent), ", cut.sent);
        let _ = match (&cut.way_on, led) {
            (WayOn::None(why), _) => write!(written, "{why}"),
            (WayOn::List(call) | WayOn::Larger(call), Spelling::Whole) => {
                write!(written, "continue with {call}")
            }
            (WayOn::List(call), Spelling::Again) => {
                let filter = call.filter().unwrap_or_default();
                write!(written, "continue likewise with \"filter\":{filter}")
            }
            (WayOn::Larger(_), Spelling::Again) => {
                write!(written, "continue likewise with this id")
            }
            (_, Spelling::Words) => write!(
                written,
                "continue with fetch, this id and \"expand\":[{name}]"
            ),
        };
    }
    written
}

/// The size of the whole, and the call that reads the largest part that was cut. Where ids are so long that the call does
/// not fit, it is told in words: the id stands on the same line.
fn incomplete(row: &Row<'_>, fields: &Fields<'_>, cut: &[String], with_call: bool) -> String {
    let size = row.record.size();
    let way_on = match &row.record.identity {
        Some(identity) if with_call => {
            format!("continue with {}", largest(identity, row, fields, cut))
        }
        Some(_) => "fetch this id".to_owned(),
        None => "continue with query_records and fewer fields".to_owned(),
    };
    format!("{INCOMPLETE}{size} bytes, {way_on}")
}

fn largest(identity: &Identity, row: &Row<'_>, fields: &Fields<'_>, cut: &[String]) -> ToolCall {
    let values = cut
        .iter()
        .filter_map(|name| Some((name, fields.get(name)?)));
    // Texts can be read in windows, so they are the better offer.
    let largest = values.max_by_key(|(_, value)| (value.content() == Content::Text, value.size()));
    let read = largest
        .filter(|(name, _)| *name != "expanded")
        .map(|(name, value)| Read::field(identity, name, value));
    if let Some(Read::Call(call)) = read {
        return call;
    }
    // Where related records are cut, the record alone would not show them.
    let relations = row.record.related.iter().map(|related| related.relation);
    let relations: Vec<&str> = relations.collect();
    let is_cut = cut.iter().any(|name| name == "expanded");
    ToolCall::fetch(identity).with_some("expand", is_cut.then_some(relations.as_slice()))
}

/// The id with what must be passed beside it.
fn named(identity: &Identity) -> String {
    let id = plain::token(&identity.id);
    match identity.separate_connection() {
        Some(connection) => format!("id={id} connection_id={}", plain::token(connection)),
        None => format!("id={id}"),
    }
}
