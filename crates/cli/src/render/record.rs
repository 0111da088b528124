//! A record: its handle, and its fields one below the other.

use contract::handle::RecordHandle;
use contract::record::{Expanded, Record, own_time};
use contract::schema::ExpandCapability;
use contract::wire::OrderedMap;
use serde_json::value::RawValue;

use super::value::Value;
use super::wrap::{padded, width, wrap_hanging};
use super::{Lines as _, heading, indented_command, one_line};
use crate::moment;
use crate::output::visible;
use crate::reading::CommandLine;
use crate::style::Style;

const NAME_CHARS: usize = 24;

pub(crate) struct RecordView<'a> {
    pub(crate) line: &'a CommandLine,
    pub(crate) style: Style,
    /// Characters per value.
    pub(crate) chars: usize,
    /// Whether texts keep their lines.
    pub(crate) keep_lines: bool,
    /// The relationships of the stream, where some are cut.
    pub(crate) relations: Vec<ExpandCapability>,
    /// The fields that the stream declares as the time of its records.
    pub(crate) times: [Option<String>; 2],
}

pub(crate) fn has_more_related(record: &Record) -> bool {
    let mut related = record.expanded.iter().flat_map(OrderedMap::iter);
    related.any(|(_, related)| matches!(related, Expanded::Many(list) if list.has_more))
}

/// The handle of a record, where its server says enough for one.
pub(crate) fn handle_of(
    connection: Option<&str>,
    stream: Option<&str>,
    key: Option<&str>,
) -> Option<RecordHandle> {
    RecordHandle::new(connection, stream?, key?).ok()
}

fn connection_of(record: &Record) -> Option<&str> {
    record.connection_id.as_deref()
}

/// The field that the key of a record stands in, as far as the record shows it.
fn key_field(record: &Record) -> Option<String> {
    let data = record.data.as_deref()?;
    let fields: OrderedMap<serde_json::Value> = serde_json::from_str(data.get()).ok()?;
    let mut same = fields
        .iter()
        .filter(|(_, value)| value.as_str() == Some(&record.id));
    // Where several hold it, which of them is the key is not known.
    same.next()
        .filter(|_| same.next().is_none())
        .map(|(name, _)| name.to_owned())
}

/// The command that lists a record no handle can be written for: by its key, where the field of it is known.
pub(crate) fn list_command(
    line: &CommandLine,
    connection: Option<&str>,
    stream: &str,
    key: Option<(&str, &str)>,
) -> CommandLine {
    line.another("query")
        .argument(stream)
        .option("connection-id", connection)
        .option("filter", key.map(|(field, key)| format!("{field}={key}")))
}

/// Why nothing can be fetched, and what can be done instead.
pub(crate) fn explain_missing_handle(key: &str, list: &CommandLine, style: Style) -> String {
    let by = match list.values("filter").next() {
        Some(_) => "it is listed by its key",
        None => "it is listed in its stream, and by a filter on its key field",
    };
    let why = format!(
        "there is no id for the key '{}', so fetch and read cannot name it; {by}:",
        visible(key)
    );
    let mut text = format!("  {}\n", wrap_hanging(&why, 2, 4, style));
    text.push_command("    ", list, style);
    text
}

pub(crate) fn record(record: &Record, view: &RecordView<'_>) -> String {
    let (line, style) = (view.line, view.style);
    let handle = handle_of(
        connection_of(record),
        Some(&record.stream),
        Some(&record.id),
    );
    let mut text = record_heading(record, handle.as_ref(), view);
    if handle.is_none() {
        let field = key_field(record);
        let key = field.as_deref().map(|field| (field, record.id.as_str()));
        let list = list_command(line, connection_of(record), &record.stream, key);
        text.push_str(&explain_missing_handle(&record.id, &list, style));
    }
    if record.deleted {
        let when = record.deleted_at.as_deref().unwrap_or(&record.emitted_at);
        let when = moment::to_local(when).unwrap_or_else(|| visible(when));
        text.push_line(format_args!("  deleted {when}"));
        return text;
    }
    let fields: OrderedMap<Box<RawValue>> = record
        .data
        .as_deref()
        .and_then(|data| serde_json::from_str(data.get()).ok())
        .unwrap_or_default();
    let widest = fields.iter().map(|(name, _)| width(&visible(name)));
    let name_width = widest.max().unwrap_or(0).min(NAME_CHARS);
    for (name, value) in fields.iter() {
        let shown = Value::new(value, view.chars, view.keep_lines);
        text.push_str(&field(name, &shown, name_width, style));
        if let (Some(handle), Some((at, all))) = (&handle, shown.cut) {
            text.push_line(format_args!("    {at} of {all} characters; the rest:"));
            let rest = if shown.is_text {
                let read = line.for_record("read", handle).argument(name);
                indented_command("    ", &read.option("offset-chars", Some(at)), style)
            } else {
                let whole = line
                    .for_record("fetch", handle)
                    .option("fields", Some(name));
                indented_command("    ", &whole.with_json(), style)
            };
            text.push_str(&rest);
        }
    }
    for (name, related) in record.expanded.iter().flat_map(OrderedMap::iter) {
        text.push_str(&relation(name, related, record, view));
    }
    text
}

/// The time of a record is its own. When it was emitted or imported stands apart, and says so.
fn record_heading(record: &Record, handle: Option<&RecordHandle>, view: &RecordView<'_>) -> String {
    let id = handle.map_or_else(|| record.id.clone(), ToString::to_string);
    let id = visible(&id);
    let label = record.display_name.as_deref().map(one_line);
    let shown = |at: &str| moment::to_local(at).unwrap_or_else(|| one_line(at));
    let own = time_of(record, &view.times).map(|at| shown(&at));
    let emitted = Some(record.emitted_at.as_str()).filter(|at| !at.is_empty());
    let emitted = emitted.map(shown).filter(|at| own.as_ref() != Some(at));
    let emitted = emitted.map(|at| format!("(emitted or imported {at})"));
    let beside = [label, own, emitted].into_iter().flatten();
    heading(&id, &beside.collect::<Vec<_>>(), view.style)
}

fn time_of(record: &Record, times: &[Option<String>; 2]) -> Option<String> {
    let data = record.data.as_deref()?;
    let fields: OrderedMap<&RawValue> = serde_json::from_str(data.get()).ok()?;
    let declared = times.each_ref().map(Option::as_deref);
    let (_, at) = own_time(declared, |name| {
        let (_, value) = fields.iter().find(|(known, _)| *known == name)?;
        serde_json::from_str(value.get()).ok()
    })?;
    Some(at)
}

fn field(name: &str, value: &Value, columns: usize, style: Style) -> String {
    let name = visible(name);
    match value.lines.as_slice() {
        [] => format!("  {}\n", style.dim(&name)),
        [line] => {
            let at = 2 + columns.max(width(&name)) + 2;
            let name = style.dim(&padded(&name, columns));
            format!("  {name}  {}\n", wrap_hanging(line, at, columns + 4, style))
        }
        lines => {
            let mut text = format!("  {}\n", style.dim(&name));
            for line in lines {
                let line = wrap_hanging(line, 4, 4, style);
                text.push_str(format!("    {line}").trim_end());
                text.push('\n');
            }
            text
        }
    }
}

/// Related records by their handles, each of which can be fetched; where there are more, how to list them all.
fn relation(name: &str, related: &Expanded, parent: &Record, view: &RecordView<'_>) -> String {
    let (line, style) = (view.line, view.style);
    let (children, has_more): (Vec<&Record>, bool) = match related {
        Expanded::None => (Vec::new(), false),
        Expanded::One(child) => (vec![child], false),
        Expanded::Many(list) => (list.data.iter().collect(), list.has_more),
    };
    let mut text = format!("  {}\n", style.dim(&format!("{}:", visible(name))));
    if children.is_empty() {
        text.push_str("    none\n");
    }
    for child in &children {
        let connection = child.connection_id.as_deref();
        match handle_of(connection, Some(&child.stream), Some(&child.id)) {
            Some(handle) => {
                text.push_command("    ", &line.for_record("fetch", &handle), style);
            }
            None => text.push_line(format_args!("    {}", visible(&child.id))),
        }
    }
    if has_more {
        let known = view.relations.iter().find(|one| one.name == name);
        match known.and_then(|known| all_related(known, parent, line)) {
            Some(all) => {
                text.push_str("    and more; all of them:\n");
                text.push_command("    ", &all, style);
            }
            None => text.push_str("    and more, which the server does not say how to list\n"),
        }
    }
    text
}

/// The command that lists the records of a relationship page by page.
fn all_related(
    relation: &ExpandCapability,
    parent: &Record,
    line: &CommandLine,
) -> Option<CommandLine> {
    let stream = relation
        .stream
        .as_ref()
        .or(relation.target_stream.as_ref())?;
    let field = relation.foreign_key.as_ref();
    let field = field.or(relation.child_parent_key_field.as_ref())?;
    Some(
        line.another("query")
            .argument(stream)
            .option("connection-id", parent.connection_id.as_ref())
            .option("filter", Some(format!("{field}={}", parent.id))),
    )
}
