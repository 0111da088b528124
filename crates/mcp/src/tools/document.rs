//! The document `fetch` gives: what of a record stands in `text`, what in `metadata`, and what is said of the rest.
//!
//! Every field of the record is accounted for: shown, listed with the call that reads it, or named as left out. The text
//! is written twice, into both channels, so its room is what the whole result leaves for it.

use contract::handle::{RECORD_URI, RecordHandle};
use contract::numeral;
use serde_json::{Map, Value, json};

use crate::args::can_be_listed;
use crate::budget;
use crate::evidence::identity::{Identity, connection_of, title};
use crate::evidence::ladder::{self, Content};
use crate::evidence::payload::{Payload, is_bytes, is_scalar, without_bytes};
use crate::evidence::{oversize, plain};

/// The fields that may be a record's own text, best first.
const BODIES: [&str; 5] = ["text", "content", "body", "message", "summary"];
/// Longer scalars are read in windows instead of being shown beside the text.
const SCALAR: usize = 1_024;
/// Names of fields that are left out.
const NAMES: usize = 2_048;
/// Fields asked for by one continuation.
const FIELDS_PER_CALL: usize = 32;
/// Longer addresses are not passed on.
const URL: usize = 2_048;
/// What the result holds besides the document.
const AROUND: usize = 4_096;

/// What was asked for.
pub(super) struct Asked<'a> {
    /// The id as the caller wrote it.
    pub(super) given: &'a str,
    pub(super) handle: &'a RecordHandle,
    /// Related records, written.
    pub(super) related: Map<String, Value>,
    pub(super) warnings: Option<String>,
}

/// The document.
pub(super) fn of(payload: &Payload, asked: &Asked<'_>, provider: Option<&str>) -> Value {
    let identity = identity(payload, asked.handle);
    let mut face = payload.face();
    if payload
        .citation_url
        .as_ref()
        .is_some_and(|url| url.len() > URL)
        && let Value::Object(face) = &mut face
    {
        face.remove("citation_url");
    }
    let id = if asked.given.starts_with(RECORD_URI) {
        identity.id.as_str()
    } else {
        asked.given
    };
    let body = body(payload);
    let mut metadata = source(payload, asked);
    let mut shown: Vec<&str> = body.map(|(name, _)| name).into_iter().collect();
    let fields = scalars(&payload.data, &shown, budget::FETCH_FIELDS);
    // What stands whole beside the text needs no call that reads it.
    let mut unshown = payload.data.clone();
    unshown.retain(|name, _| !fields.contains_key(name));
    let ladder = ladder::record(&identity, &unshown);
    shown.extend(fields.keys().map(String::as_str));
    shown.extend(ladder.iter().flat_map(listed));
    let left_out = left_out(&payload.data, &shown, &identity);
    insert_some(&mut metadata, "fields", &fields);
    insert_some(&mut metadata, "fields_left_out", &left_out);
    let other = others(payload, body);
    insert_some(&mut metadata, "other", &other);
    let unsaid = unsaid(payload, &other, body);
    if !unsaid.is_empty() {
        metadata.insert("other_left_out".to_owned(), json!(unsaid));
    }
    insert_some(&mut metadata, "expanded", &asked.related);
    if let Some(entry) = ladder {
        let ladder = ladder::ladder("record", vec![entry]);
        metadata.insert("content_ladder".to_owned(), ladder);
    }
    let mut document = json!({
        "id": id,
        "title": label(&title(&face, &identity), budget::PREVIEW),
        "text": "",
        "url": identity.url(&face, provider),
        "metadata": metadata
    });
    if cost(&document) > budget::RESULT / 2 {
        forget_ladder(&mut document);
    }
    let room = budget::RESULT.saturating_sub(cost(&document) + AROUND);
    let text = match body {
        Some((field, text)) => Text::of_field(field, text, &identity, room),
        None => Text::of_record(payload, &identity, (&unshown, left_out.get("read"))),
    };
    text.write(&mut document);
    document
}

/// The record by the best name there is: with the connection the server names, if it was left open.
pub(super) fn identity(payload: &Payload, handle: &RecordHandle) -> Identity {
    let face = Value::Object(payload.envelope.clone());
    let named = connection_of(&face).filter(|_| handle.connection().is_none());
    let adopted = handle.clone().with_connection(named);
    Identity::of(adopted.unwrap_or_else(|_| handle.clone()))
}

/// Which record it is and where it comes from (FE-04).
fn source(payload: &Payload, asked: &Asked<'_>) -> Map<String, Value> {
    let mut metadata = Map::new();
    let handle = asked.handle;
    metadata.insert("stream".to_owned(), json!(handle.stream()));
    metadata.insert("record_id".to_owned(), json!(handle.record()));
    if let Some(connection) = handle.connection() {
        metadata.insert("connection_id".to_owned(), json!(connection));
    }
    for (name, value) in &payload.envelope {
        // The key is told once; the stream is the one that was asked.
        if matches!(
            name.as_str(),
            "object" | "id" | "record_id" | "record_key" | "stream"
        ) {
            continue;
        }
        let value = match value {
            // A handle is exact or worth nothing.
            Value::String(text) if name != "connection_id" => json!(label(text, budget::PREVIEW)),
            other => other.clone(),
        };
        if !value.is_null() {
            metadata.insert(name.clone(), value);
        }
    }
    if let Some(warnings) = &asked.warnings {
        metadata.insert("warnings".to_owned(), json!(warnings));
    }
    metadata
}

/// A name or title: as it is, unless it is long or would steer a display.
pub(super) fn label(text: &str, bytes: usize) -> String {
    if text.chars().any(plain::is_steering) {
        plain::line(text, bytes)
    } else {
        plain::cut(text, bytes).into_owned()
    }
}

/// The record's own text and the field it stands in.
fn body(payload: &Payload) -> Option<(&str, &str)> {
    [&payload.data, &payload.extras]
        .into_iter()
        .find_map(|place| {
            BODIES.iter().find_map(|name| {
                let text = place.get(*name)?.as_str()?;
                let is_text = !text.trim().is_empty() && !is_bytes(text);
                is_text.then_some((*name, text))
            })
        })
}

/// Scalars in the order of the record, as many as fit.
fn scalars(data: &Map<String, Value>, shown: &[&str], bytes: usize) -> Map<String, Value> {
    let mut kept = Map::new();
    let mut used = 2;
    for (name, value) in data {
        let is_text_of_bytes = value.as_str().is_some_and(is_bytes);
        if !is_scalar(value) || is_text_of_bytes || shown.contains(&name.as_str()) {
            continue;
        }
        let size = json!(name).to_string().len() + oversize::size(value) + 2;
        if size <= SCALAR && used + size <= bytes {
            used += size;
            kept.insert(name.clone(), value.clone());
        }
    }
    kept
}

/// What the server put beside the payload: scalars only, and not what stands elsewhere already.
fn others(payload: &Payload, body: Option<(&str, &str)>) -> Map<String, Value> {
    let shown: Vec<&str> = body.map(|(name, _)| name).into_iter().collect();
    let mut other = scalars(&payload.extras, &shown, SCALAR);
    if let Some(Value::Object(about)) = payload.extras.get("metadata") {
        let room = SCALAR.saturating_sub(oversize::size_of_members(&other));
        for (name, value) in scalars(about, &[], room) {
            other.entry(name).or_insert(value);
        }
    }
    other
}

/// The names of what stands beside the payload and is not shown.
fn unsaid<'a>(
    payload: &'a Payload,
    other: &Map<String, Value>,
    body: Option<(&str, &str)>,
) -> Vec<&'a str> {
    let is_shown = |name: &str| {
        other.contains_key(name) || name == "metadata" || body.is_some_and(|(body, _)| body == name)
    };
    let names = payload.extras.keys().map(String::as_str);
    names
        .filter(|name| !is_shown(name) && name.len() <= budget::LABEL)
        .take(FIELDS_PER_CALL)
        .collect()
}

/// The fields a ladder entry lists.
fn listed(entry: &Value) -> Vec<&str> {
    let lists = ["field_windows", "json_fields", "binary_fields"];
    let fields = lists.iter().filter_map(|list| entry.get(list)?.as_array());
    fields
        .flatten()
        .filter_map(|field| field.get("field_path")?.as_str())
        .collect()
}

/// The fields that stand nowhere else, and the call that shows them.
fn left_out(data: &Map<String, Value>, shown: &[&str], identity: &Identity) -> Map<String, Value> {
    let missing: Vec<&str> = data
        .keys()
        .map(String::as_str)
        .filter(|name| !shown.contains(name))
        .collect();
    let mut left = Map::new();
    if missing.is_empty() {
        return left;
    }
    let mut room = NAMES;
    let names: Vec<&str> = missing
        .iter()
        .copied()
        .take_while(|name| {
            let fits = name.len() + 3 <= room;
            room = room.saturating_sub(name.len() + 3);
            fits
        })
        .collect();
    left.insert("count".to_owned(), json!(missing.len()));
    left.insert("names".to_owned(), json!(names));
    if names.len() < missing.len() {
        let note = "not every name is listed; call schema with this stream for all of them";
        left.insert("note".to_owned(), json!(note));
    }
    // A name that cannot be asked for would make the call a refusal.
    let (names, unsayable): (Vec<&str>, Vec<&str>) =
        names.into_iter().partition(|name| can_be_listed(name));
    if !unsayable.is_empty() {
        left.insert("cannot_be_named".to_owned(), json!(unsayable));
    }
    if !names.is_empty() {
        let asked: Vec<&str> = names.into_iter().take(FIELDS_PER_CALL).collect();
        let mut args = identity.args();
        args.insert("fields".to_owned(), json!(asked));
        let read = json!({"tool": "fetch", "args": args});
        left.insert("read".to_owned(), read);
    }
    left
}

fn insert_some(metadata: &mut Map<String, Value>, name: &str, part: &Map<String, Value>) {
    if !part.is_empty() {
        metadata.insert(name.to_owned(), Value::Object(part.clone()));
    }
}

/// An entry may be as large as the names and ids of a server make it; then only its absence is told.
fn forget_ladder(document: &mut Value) {
    if let Some(Value::Object(metadata)) = document.get_mut("metadata") {
        metadata.remove("content_ladder");
        metadata.remove("expanded");
        let note =
            "left out: too large; call fetch with fields, or read_record_field, for single fields";
        metadata.insert("content_ladder_left_out".to_owned(), json!(note));
    }
}

/// The bytes of a document in both channels: as JSON, and as JSON inside a JSON string.
fn cost(document: &Value) -> usize {
    let written = numeral::write(document);
    let mirrored = json!(written).to_string();
    written.len() + mirrored.len()
}

/// The same for one character of the text.
fn cost_of(character: char) -> usize {
    match character {
        '"' | '\\' => 2 + 4,
        '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2 + 3,
        control if control < ' ' => 6 + 7,
        other => 2 * other.len_utf8(),
    }
}

/// The text of the document, and what it leaves out.
struct Text<'a> {
    shown: String,
    field: Option<&'a str>,
    total_chars: usize,
    next: Option<Value>,
}

impl<'a> Text<'a> {
    /// The field, whole or up to where the room ends.
    fn of_field(field: &'a str, text: &str, identity: &Identity, room: usize) -> Self {
        let mut left = room;
        let mut kept = 0;
        let mut bytes = 0;
        for character in text.chars().take(budget::FETCH_TEXT_CHARS) {
            let Some(rest) = left.checked_sub(cost_of(character)) else {
                break;
            };
            left = rest;
            kept += 1;
            bytes += character.len_utf8();
        }
        let next = (bytes < text.len()).then(|| {
            let limit = budget::WINDOW_CHARS as u64;
            ladder::window_read(identity, field, kept, limit)
        });
        Self {
            shown: text.get(..bytes).unwrap_or_default().to_owned(),
            field: Some(field),
            total_chars: text.chars().count(),
            next,
        }
    }

    /// A record without a text of its own: its JSON, or the beginning of it.
    fn of_record(payload: &Payload, identity: &Identity, rest: Rest<'_>) -> Self {
        let shown = numeral::write(&without_bytes(&Value::Object(payload.data.clone())));
        let total_chars = shown.chars().count();
        if total_chars <= budget::FETCH_JSON_CHARS {
            return Self {
                shown,
                field: None,
                total_chars,
                next: bytes_call(payload, identity),
            };
        }
        let pointer = format!(
            "… (cut; {total_chars} characters in all; metadata says how to read each field)"
        );
        let kept = budget::FETCH_JSON_CHARS - pointer.chars().count();
        let mut cut: String = shown.chars().take(kept).collect();
        cut.push_str(&pointer);
        Self {
            shown: cut,
            field: None,
            total_chars,
            next: Some(way_on(payload, identity, rest)),
        }
    }

    fn write(self, document: &mut Value) {
        let Value::Object(document) = document else {
            return;
        };
        document.insert("text".to_owned(), Value::String(self.shown));
        let Some(Value::Object(metadata)) = document.get_mut("metadata") else {
            return;
        };
        if let Some(field) = self.field {
            metadata.insert("text_field".to_owned(), json!(field));
            if self.next.is_none() {
                mark_complete(metadata, field);
            }
        }
        metadata.insert("text_complete".to_owned(), json!(self.next.is_none()));
        metadata.insert("text_total_chars".to_owned(), json!(self.total_chars));
        if let Some(next) = self.next {
            metadata.insert("next".to_owned(), next);
        }
    }
}

/// The call that tells how to get bytes the JSON leaves out, where it does.
fn bytes_call(payload: &Payload, identity: &Identity) -> Option<Value> {
    let mut fields = payload.data.iter();
    let (name, _) = fields.find(|(_, value)| without_bytes(value) != **value)?;
    Some(if ladder::is_readable(name) {
        ladder::window_read(identity, name, 0, budget::WINDOW_CHARS as u64)
    } else {
        json!(ladder::UNREADABLE)
    })
}

/// A ladder speaks of windows; the field that stands whole in `text` is complete, however long it is.
fn mark_complete(metadata: &mut Map<String, Value>, field: &str) {
    let windows = metadata
        .get_mut("content_ladder")
        .and_then(|ladder| ladder.pointer_mut("/records/0/field_windows"))
        .and_then(Value::as_array_mut);
    for window in windows.into_iter().flatten() {
        if window.get("field_path").and_then(Value::as_str) == Some(field) {
            window["preview_status"] = json!("complete");
        }
    }
}

/// The fields that do not stand whole beside the text, and the call for those that stand nowhere.
type Rest<'a> = (&'a Map<String, Value>, Option<&'a Value>);

/// The call that shows most of a record that was cut: its largest field, or the fields that stand nowhere yet.
fn way_on(payload: &Payload, identity: &Identity, (unshown, left_out): Rest<'_>) -> Value {
    let fields = if unshown.is_empty() {
        &payload.data
    } else {
        unshown
    };
    let readable = fields.iter().filter(|(name, value)| {
        ladder::is_readable(name) && matches!(Content::of(value), Content::Text | Content::Json)
    });
    let sized = readable.map(|(name, value)| (oversize::size(&without_bytes(value)), name));
    let largest = sized.max_by_key(|(size, _)| *size);
    match (largest, left_out) {
        (Some((size, _)), Some(read)) if size < budget::FETCH_JSON_CHARS / 2 => read.clone(),
        (Some((_, name)), _) => ladder::window_read(identity, name, 0, budget::WINDOW_CHARS as u64),
        (None, Some(read)) => read.clone(),
        (None, None) => json!(ladder::UNREADABLE),
    }
}
