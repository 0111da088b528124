//! The schema as text: an index that names every stream and connection, or all that one stream accepts.

mod next;
mod row;

use std::fmt::Write as _;

use super::{Read, Row, Scope};
use crate::answer::schema::capability::{Capabilities, legend};
use crate::answer::schema::document::{Connection, Connector, Document, Stream};
use crate::answer::schema::{ELSEWHERE, FullSchema};
use crate::answer::size;
use crate::budget;
use crate::text::lines::Lines;
use crate::text::plain;

/// How much the index says of each stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// A line per stream.
    Rows,
    /// A line per connector, with labels.
    Names,
    /// A line per connector.
    Ids,
    /// The same in as few words as possible: not even which stream is in which connection.
    Bare,
}

pub(super) fn index(read: &Read, scope: &Scope<'_>) -> String {
    let (document, handles) = (&read.document, read.handles.as_str());
    if document.rows().next().is_none() {
        return nothing(scope, handles);
    }
    // Names are never left out, so where they alone are larger they are the measure.
    let names: usize = document.rows().map(|(_, row)| row.name.len() + 1).sum();
    let most = budget::SCHEMA_TEXT.max(names * 3 / 2);
    for (depth, most) in [
        (Depth::Rows, budget::SCHEMA_TEXT),
        (Depth::Names, budget::SCHEMA_TEXT),
        (Depth::Ids, most),
    ] {
        let written = indexed(document, scope, handles, depth);
        if written.len() <= most {
            return written;
        }
    }
    indexed(document, scope, handles, Depth::Bare)
}

fn indexed(document: &Document, scope: &Scope<'_>, handles: &str, depth: Depth) -> String {
    let mut text = format!(
        "schema index: {}, {}, {}; complete: every stream and connection of this {} is named, fields are not.{handles}",
        counted(document.connectors.len(), "connector"),
        counted(document.rows().count(), "stream"),
        counted(document.connections().len(), "connection"),
        if scope.connection.is_some() {
            "connection"
        } else {
            "grant"
        },
    );
    let first = next::schema_call(document, scope);
    let _ = write!(
        text,
        " First: schema(stream) for fields, filters and aggregates, as {first}."
    );
    match depth {
        Depth::Rows => {}
        Depth::Names | Depth::Ids => text.push_str(" Streams stand by name only, because there are many."),
        Depth::Bare => text.push_str(
            " Names only, because there are very many, as connector_key: streams @ connections; schema(stream) tells which of the connections have it.",
        ),
    }
    push_scope(&mut text, scope);
    for connector in &document.connectors {
        match depth {
            Depth::Rows => rows(&mut text, connector),
            _ => names(&mut text, connector, depth),
        }
    }
    let _ = write!(text, "\nnext: {first}");
    text
}

/// A line per stream, which says where it can be read from.
fn rows(text: &mut String, connector: &Connector) {
    for row in &connector.streams {
        let key = plain::quoted(&connector.key, budget::PREVIEW);
        let _ = write!(
            text,
            "\nstream name={} connector_key={key}{} connections={}",
            plain::exact(&row.name),
            row::label(connector),
            listed(&row.connections, true)
        );
        if let Some(count) = row.record_count {
            let _ = write!(text, " record_count={count}");
        }
    }
}

/// A line per connector with all its streams, and one for those whose connections are others.
fn names(text: &mut String, connector: &Connector, depth: Depth) {
    let key = plain::quoted(&connector.key, budget::PREVIEW);
    let joined = |rows: &mut dyn Iterator<Item = &Stream>| {
        let names: Vec<String> = rows.map(|row| word(&row.name)).collect();
        names.join("|")
    };
    let streams = joined(&mut connector.streams.iter());
    if depth == Depth::Bare {
        let connections = listed(&connector.connections(), false);
        let key = word(&connector.key);
        let _ = write!(text, "\n{key}: {streams} @ {connections}");
        return;
    }
    let labels = depth == Depth::Names;
    let _ = write!(
        text,
        "\nstream_index connector_key={key} stream_count={} streams={streams} connections={}",
        connector.streams.len(),
        listed(&connector.shared, labels)
    );
    for (connections, rows) in connector.groups() {
        if connections != connector.shared {
            let streams = joined(&mut rows.into_iter());
            let connections = listed(connections, labels);
            let _ = write!(
                text,
                "\nof these connector_key={key} streams={streams} connections={connections}"
            );
        }
    }
}

/// All that one stream accepts, a block for each source.
pub(super) fn scoped(read: &Read, scope: &Scope<'_>, rows: &[Row<'_>]) -> String {
    let handles = read.handles.as_str();
    let Some(first) = rows.first() else {
        return nothing(scope, handles);
    };
    let connections = read.document.connections().len();
    let last = format!(
        "next: {}",
        next::calls(first, connections > 1 || scope.connection.is_some())
    );
    let mut shortened = 0;
    loop {
        let completeness = match shortened {
            0 => "complete: every field and connection is listed".to_owned(),
            some => format!("every source is listed, {some} of them without all that it accepts"),
        };
        let mut head = format!(
            "schema of stream {}: {}, {}; {completeness}.{handles}",
            plain::quoted(scope.stream.unwrap_or_default(), budget::PREVIEW),
            counted(rows.len(), "source"),
            counted(connections, "connection"),
        );
        if connections > 1 {
            head.push_str(" Reads need one connection_id of these.");
        }
        push_scope(&mut head, scope);
        let mut lines = Lines::new(budget::SCHEMA_TEXT, head);
        lines.reserve(last.len());
        let short = write_rows(&mut lines, rows);
        lines.release(last.len());
        lines.require(&last);
        // The first line says how many rows were shortened, which is known only now.
        if short <= shortened {
            return lines.finish();
        }
        shortened = short;
    }
}

/// Legend and rows; gives back how many were shortened. Each row has its place kept, the first ones are told in full.
fn write_rows(lines: &mut Lines, rows: &[Row<'_>]) -> usize {
    let accepts: Vec<&Capabilities> = rows.iter().map(|row| &row.accepts).collect();
    let meanings = legend(&accepts).into_iter();
    let meanings: Vec<String> = meanings
        .map(|(name, meaning)| format!("{name} = {meaning}"))
        .collect();
    let explained = format!("field_capability_legend: {}", meanings.join("; "));
    for depth in [row::Depth::Whole, row::Depth::Once] {
        let told = rows.iter().flat_map(|row| row.lines(depth));
        let told: Vec<String> = [explained.clone()].into_iter().chain(told).collect();
        if lines.offer_all(&told) {
            return 0;
        }
    }
    let all =
        |place: row::Place| -> Vec<String> { rows.iter().map(|row| row.place(place)).collect() };
    // With less than half of the room left, fields would not be told of anyway.
    let mut places = all(row::Place::Whole);
    if length(&places) > lines.room() / 2 {
        places = all(row::Place::Brief);
    }
    if length(&places) > lines.room() {
        lines.require("sources, each as connector_key @ connections; schema with one connection_id tells its fields:");
        places = all(row::Place::Bare);
    }
    let mut left = lines.room().saturating_sub(length(&places));
    let mut is_explained = false;
    let mut shortened = 0;
    for (row, place) in rows.iter().zip(&places) {
        let mut told = row.lines(row::Depth::Once);
        if !is_explained {
            told.insert(0, explained.clone());
        }
        let fits = |told: &[String]| length(told) <= left + place.len() + 1;
        let is_whole = fits(&told);
        if !is_whole {
            shortened += 1;
            told = row.short(left);
            if !fits(&told) {
                told = vec![place.clone()];
            }
        }
        is_explained |= is_whole;
        left = (left + place.len() + 1).saturating_sub(length(&told));
        for line in &told {
            lines.require(line);
        }
    }
    shortened
}

/// The bytes of these lines, each with its end.
fn length(lines: &[String]) -> usize {
    lines.iter().map(|line| line.len() + 1).sum()
}

/// One stream in full: what it accepts, and as many JSON Schemas of fields as there is room for once sent.
pub(super) fn full(read: &Read, scope: &Scope<'_>, full: &FullSchema, room: usize) -> String {
    let ceiling = room.min(budget::FULL_SCHEMA_TEXT);
    let text = full_within(read, scope, full, ceiling);
    // Quotes cost twice when sent, and JSON Schema is full of them.
    if size(&text) <= ceiling {
        text
    } else {
        full_within(read, scope, full, ceiling / 2)
    }
}

fn full_within(read: &Read, scope: &Scope<'_>, full: &FullSchema, ceiling: usize) -> String {
    let (document, handles) = (&read.document, &read.handles);
    let rows = read.rows();
    let Some(first) = rows.first() else {
        return nothing(scope, handles);
    };
    let connections = document.connections().len();
    let mut head = format!(
        "full schema of stream {}: {}, {}.{handles}",
        plain::quoted(scope.stream.unwrap_or_default(), budget::PREVIEW),
        counted(rows.len(), "source"),
        counted(connections, "connection"),
    );
    // Which of the two it is, is known when everything else has its place.
    let (here, there) = (
        " Complete: all JSON Schema is below.",
        " Complete in structuredContent.data.",
    );
    let place = head.len();
    if full.omitted.is_empty() {
        head.push_str(there);
    } else {
        let _ = write!(
            head,
            " json_schemas_omitted={} from structuredContent because they are large; {}.",
            full.omitted.len(),
            ELSEWHERE
        );
    }
    push_scope(&mut head, scope);
    let last = format!(
        "next: {}",
        next::calls(first, connections > 1 || scope.connection.is_some())
    );
    let mut lines = Lines::new(ceiling, head);
    lines.reserve(last.len());
    let note = "json_schemas_not_shown=000000 here; structuredContent.data.connectors[].streams[].field_capabilities holds them";
    lines.reserve(note.len());
    write_rows(&mut lines, &rows);
    let mut not_shown = 0_usize;
    for (name, schema) in rows.iter().flat_map(|row| row.stream.json_schemas()) {
        let line = format!("json_schema {} {}", word(name), plain::json(&schema.json()));
        if !lines.offer(&line) {
            not_shown += 1;
        }
    }
    lines.release(note.len());
    if not_shown > 0 {
        lines.require(&note.replace("000000", &not_shown.to_string()));
    }
    lines.release(last.len());
    lines.require(&last);
    let mut text = lines.finish();
    if not_shown == 0 && full.omitted.is_empty() {
        text.replace_range(place..place + there.len(), here);
    }
    text
}

fn nothing(scope: &Scope<'_>, handles: &str) -> String {
    let what = match (scope.stream, scope.connection) {
        (None, None) => "0 connectors, 0 streams: this grant lets nothing be read",
        (Some(_), None) => "0 streams: this grant has no stream of that name",
        (None, Some(_)) => "0 streams: this grant has no connection of that id",
        (Some(_), Some(_)) => "0 streams: this grant has no such stream in that connection",
    };
    let mut text = format!("schema: {what}.{handles}");
    push_scope(&mut text, scope);
    text.push_str(match (scope.stream, scope.connection) {
        (None, None) => "\nnext: ask the person to grant a stream",
        _ => "\nnext: schema {}",
    });
    text
}

fn push_scope(text: &mut String, scope: &Scope<'_>) {
    if let Some(stream) = scope.stream {
        let _ = write!(text, "\nschema_scope stream={}", plain::exact(stream));
    }
    if let Some(connection) = scope.connection {
        let start = if scope.stream.is_some() {
            " "
        } else {
            "\nschema_scope "
        };
        let _ = write!(text, "{start}connection_id={}", plain::exact(connection));
    }
}

fn listed(connections: &[Connection], labels: bool) -> String {
    if connections.is_empty() {
        return "not_told".to_owned();
    }
    let each = connections.iter().map(|one| match &one.label {
        Some(label) if labels => {
            format!("{} {}", word(&one.id), plain::quoted(label, budget::LABEL))
        }
        _ => word(&one.id),
    });
    each.collect::<Vec<_>>().join("|")
}

/// A name in a list: as it is where no character of it is ours, else as a JSON string.
fn word(name: &str) -> String {
    let is_word = !name.is_empty()
        && name
            .chars()
            .all(|character| character.is_alphanumeric() || "_-.:@/$+".contains(character));
    if is_word {
        name.to_owned()
    } else {
        plain::exact(name)
    }
}

fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}
