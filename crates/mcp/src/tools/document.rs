//! The document `fetch` gives: what of a record stands in `text`, what in `metadata`, and what is said of the rest.
//!
//! Every field of the record is accounted for: shown, listed with the call that reads it, or named as left out. The text
//! is written twice, into both channels, so its room is what the whole result leaves for it.

use contract::handle::{RECORD_URI, RecordHandle};
use serde::{Serialize, Serializer};
use serde_with::skip_serializing_none;

use super::expanded::RelationContent;
use crate::answer::{Content, FieldValue, Fields, Payload, size};
use crate::args::can_be_listed;
use crate::budget;
use crate::identity::{Addresses, Identity};
use crate::ladder::{self, Ladder, Longer, Next, Read, Rung};
use crate::text::plain;
use crate::tool_call::ToolCall;

/// The fields that may be a record's own text, best first.
const BODIES: [&str; 5] = ["text", "content", "body", "message", "summary"];
/// Longer scalars are read in windows instead of being shown beside the text.
const SCALAR: usize = 1_024;
const NAMES: usize = 2_048;
const FIELDS_PER_CALL: usize = 32;
/// Longer addresses are not passed on.
const URL: usize = 2_048;
/// What the result holds besides the document.
const AROUND: usize = 4_096;
/// Every field that is not shown is listed, however short it is.
const ALL: Longer = Longer {
    than_chars: 0,
    than_bytes: 0,
};

pub(super) struct FetchRequest<'a> {
    /// The id as the caller wrote it.
    pub(super) given: &'a str,
    pub(super) handle: &'a RecordHandle,
    pub(super) related: Vec<RelationContent>,
    pub(super) warnings: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Document<'a> {
    id: &'a str,
    title: String,
    text: String,
    url: String,
    metadata: Metadata<'a>,
}

#[skip_serializing_none]
#[derive(Debug, Serialize)]
struct Metadata<'a> {
    stream: &'a str,
    record_id: &'a str,
    connection_id: Option<String>,
    #[serde(flatten, serialize_with = "as_members")]
    source: Vec<(&'a str, Label<'a>)>,
    warnings: Option<&'a str>,
    #[serde(skip_serializing_if = "Fields::is_empty")]
    fields: Fields<'static>,
    fields_left_out: Option<LeftOut<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_members")]
    other: Vec<(&'a str, FieldValue<'a>)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    other_left_out: Vec<&'a str>,
    #[serde(
        skip_serializing_if = "<[_]>::is_empty",
        serialize_with = "by_relation"
    )]
    expanded: &'a [RelationContent],
    content_ladder: Option<Ladder>,
    content_ladder_left_out: Option<&'static str>,
    #[serde(skip_serializing_if = "Fields::is_empty")]
    cite: Fields<'static>,
    text_field: Option<&'a str>,
    text_complete: bool,
    text_total_chars: usize,
    next: Option<Next>,
}

/// A member of the envelope: texts bounded, anything else as it is.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Label<'a> {
    Text(String),
    Other(FieldValue<'a>),
}

/// The fields that stand nowhere else, and the call that shows them.
#[skip_serializing_none]
#[derive(Debug, Serialize)]
struct LeftOut<'a> {
    count: usize,
    names: Vec<&'a str>,
    note: Option<&'static str>,
    /// Those that no argument can carry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cannot_be_named: Vec<&'a str>,
    read: Option<ToolCall>,
}

impl<'a> Document<'a> {
    pub(super) fn new(
        payload: &'a Payload,
        asked: &'a FetchRequest<'_>,
        identity: &'a Identity,
        provider: Option<&str>,
    ) -> Self {
        let body = body(payload);
        let mut shown: Vec<&str> = body.map(|(name, _)| name).into_iter().collect();
        let fields = scalars(&payload.data, &shown, budget::FETCH_FIELDS);
        // What stands whole beside the text needs no call that reads it.
        let unshown = payload.data.only(|name, _| fields.get(name).is_none());
        let rung = Rung::of_fields(identity, &unshown, ALL);
        shown.extend(fields.names());
        shown.extend(rung.iter().flat_map(Rung::listed));
        let left_out = LeftOut::new(&payload.data, &shown, identity);
        let other = others(payload, body);
        let mut document = Self {
            id: if asked.given.starts_with(RECORD_URI) {
                &identity.id
            } else {
                asked.given
            },
            title: label(&payload.title(identity), budget::PREVIEW),
            text: String::new(),
            url: url(payload, identity, provider),
            metadata: Metadata {
                stream: asked.handle.stream(),
                record_id: asked.handle.record(),
                connection_id: identity.connection().map(str::to_owned),
                source: source(payload),
                warnings: asked.warnings.as_deref(),
                other_left_out: unsaid(payload, &other, body),
                other,
                expanded: &asked.related,
                content_ladder: rung.map(|rung| Ladder::new("record", vec![rung])),
                content_ladder_left_out: None,
                cite: payload.cite.clone(),
                text_field: body.map(|(name, _)| name),
                text_complete: false,
                text_total_chars: 0,
                next: None,
                fields: fields.clone(),
                fields_left_out: left_out,
            },
        };
        if document.cost() > budget::RESULT / 2 {
            document.forget_ladder();
        }
        let room = budget::RESULT.saturating_sub(document.cost() + AROUND);
        let text = if let Some((field, text)) = body {
            Text::of_field(field, text, identity, room)
        } else {
            let left_out = document.metadata.fields_left_out.as_ref();
            let read = left_out.and_then(|left_out| left_out.read.clone());
            Text::of_record(payload, identity, &unshown, read)
        };
        document.finish(text);
        document
    }

    /// The bytes of the document in both channels: as JSON, and as JSON inside a JSON string.
    fn cost(&self) -> usize {
        let written = self.json();
        written.len() + size(&written)
    }

    /// The document as compact JSON, the mirror that stands in text.
    pub(super) fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// An entry may be as large as the names and ids of a server make it; then only its absence is told.
    fn forget_ladder(&mut self) {
        self.metadata.content_ladder = None;
        self.metadata.expanded = &[];
        self.metadata.content_ladder_left_out = Some(
            "left out: too large; call fetch with fields, or read_record_field, for single fields",
        );
    }

    fn finish(&mut self, text: Text) {
        self.text = text.shown;
        let metadata = &mut self.metadata;
        metadata.text_complete = text.next.is_none();
        metadata.text_total_chars = text.total_chars;
        metadata.next = text.next;
        // A ladder speaks of windows; the field that stands whole in `text` is complete, however long it is.
        let rungs = metadata
            .content_ladder
            .iter_mut()
            .flat_map(|ladder| &mut ladder.records);
        for window in rungs.flat_map(|rung| &mut rung.field_windows) {
            if metadata.text_complete && metadata.text_field == Some(window.field_path.as_str()) {
                window.preview_status = Some("complete");
            }
        }
    }
}

fn url(payload: &Payload, identity: &Identity, provider: Option<&str>) -> String {
    let citation = payload.addresses.citation.as_ref();
    let addresses = Addresses {
        citation: citation.filter(|url| url.len() <= URL).cloned(),
        own: None,
    };
    identity.url(&addresses, provider)
}

/// Where it comes from (FE-04). The key is told once; the stream is the one that was asked.
fn source(payload: &Payload) -> Vec<(&str, Label<'_>)> {
    let told = [
        "object",
        "id",
        "record_id",
        "record_key",
        "stream",
        "connection_id",
    ];
    let members = payload.envelope().filter(|(name, _)| !told.contains(name));
    members
        .filter(|(_, value)| value.kind() != "null")
        .map(|(name, value)| match value.text() {
            Some(text) => (name, Label::Text(label(text, budget::PREVIEW))),
            None => (name, Label::Other(value)),
        })
        .collect()
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
fn body(payload: &Payload) -> Option<(&'static str, &str)> {
    [&payload.data, &payload.extras]
        .into_iter()
        .find_map(|fields| {
            BODIES.iter().find_map(|name| {
                let value = fields.get(name)?;
                let text = fields.text(name)?;
                (value.content() == Content::Text).then_some((*name, text))
            })
        })
}

/// Scalars in the order of the record, as many as fit.
fn scalars(data: &Fields<'_>, shown: &[&str], bytes: usize) -> Fields<'static> {
    let kept = fitting(data, shown, bytes);
    data.only(|name, _| kept.contains(&name))
}

fn fitting<'a>(data: &'a Fields<'_>, shown: &[&str], bytes: usize) -> Vec<&'a str> {
    let mut used = 2;
    let is_shown_here = |name: &str, value: FieldValue<'_>| {
        value.is_scalar() && value.content() != Content::Binary && !shown.contains(&name)
    };
    let mut kept = Vec::new();
    for (name, value) in data
        .iter()
        .filter(|(name, value)| is_shown_here(name, *value))
    {
        let size = size(&name) + value.size() + 2;
        if size <= SCALAR && used + size <= bytes {
            used += size;
            kept.push(name);
        }
    }
    kept
}

/// What the server put beside the payload: scalars only, and not what stands elsewhere already.
fn others<'a>(payload: &'a Payload, body: Option<(&str, &str)>) -> Vec<(&'a str, FieldValue<'a>)> {
    let shown: Vec<&str> = body.map(|(name, _)| name).into_iter().collect();
    let named = |fields: &'a Fields<'_>, bytes: usize| {
        let names = fitting(fields, &shown, bytes).into_iter();
        names.filter_map(|name| Some((name, fields.get(name)?)))
    };
    let mut other: Vec<(&str, FieldValue<'_>)> = named(&payload.extras, SCALAR).collect();
    let used: usize = other
        .iter()
        .map(|(name, value)| name.len() + value.size() + 4)
        .sum();
    let more = named(&payload.metadata, SCALAR.saturating_sub(used));
    for (name, value) in more {
        if other.iter().all(|(known, _)| *known != name) {
            other.push((name, value));
        }
    }
    other
}

/// The names of what stands beside the payload and is not shown.
fn unsaid<'a>(
    payload: &'a Payload,
    other: &[(&str, FieldValue<'_>)],
    body: Option<(&str, &str)>,
) -> Vec<&'a str> {
    let is_shown = |name: &str| {
        let is_body = body.is_some_and(|(body, _)| body == name);
        is_body || name == "metadata" || other.iter().any(|(known, _)| *known == name)
    };
    let names = payload.extras.names();
    names
        .filter(|name| !is_shown(name) && name.len() <= budget::LABEL)
        .take(FIELDS_PER_CALL)
        .collect()
}

impl<'a> LeftOut<'a> {
    fn new(data: &'a Fields<'_>, shown: &[&str], identity: &Identity) -> Option<Self> {
        let missing: Vec<&str> = data.names().filter(|name| !shown.contains(name)).collect();
        if missing.is_empty() {
            return None;
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
        // A name that cannot be asked for would make the call a refusal.
        let (callable, cannot_be_named): (Vec<&str>, Vec<&str>) =
            names.iter().partition(|name| can_be_listed(name));
        let asked = callable.get(..FIELDS_PER_CALL).unwrap_or(&callable);
        Some(Self {
            count: missing.len(),
            note: (names.len() < missing.len()).then_some(
                "not every name is listed; call schema with this stream for all of them",
            ),
            read: (!asked.is_empty()).then(|| ToolCall::fetch(identity).with("fields", asked)),
            cannot_be_named,
            names,
        })
    }
}

/// The bytes that one character of the text takes in both channels.
fn cost_of(character: char) -> usize {
    match character {
        '"' | '\\' => 2 + 4,
        '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2 + 3,
        control if control < ' ' => 6 + 7,
        other => 2 * other.len_utf8(),
    }
}

/// The text of the document, and what it leaves out.
struct Text {
    shown: String,
    total_chars: usize,
    next: Option<Next>,
}

impl Text {
    /// The field, whole or up to where the room ends.
    fn of_field(field: &str, text: &str, identity: &Identity, room: usize) -> Self {
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
            Next::Call(ToolCall::read_window(identity, field, kept, limit))
        });
        Self {
            shown: text.get(..bytes).unwrap_or_default().to_owned(),
            total_chars: text.chars().count(),
            next,
        }
    }

    /// A record without a text of its own: its JSON, or the beginning of it. `left_out` is the call for fields that stand
    /// nowhere yet.
    fn of_record(
        payload: &Payload,
        identity: &Identity,
        unshown: &Fields<'_>,
        left_out: Option<ToolCall>,
    ) -> Self {
        let shown = payload.data.json_without_bytes();
        let total_chars = shown.chars().count();
        if total_chars <= budget::FETCH_JSON_CHARS {
            return Self {
                shown,
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
        let fields = if unshown.is_empty() {
            &payload.data
        } else {
            unshown
        };
        Self {
            shown: cut,
            total_chars,
            next: Some(way_on(fields, identity, left_out)),
        }
    }
}

/// The call that tells how to get bytes the JSON leaves out, where it does.
fn bytes_call(payload: &Payload, identity: &Identity) -> Option<Next> {
    let mut fields = payload.data.iter();
    let (name, _) = fields.find(|(_, value)| value.holds_bytes())?;
    Some(if ladder::is_readable(name) {
        Next::Call(ToolCall::read_from_start(identity, name))
    } else {
        Read::UNREADABLE.into_next()
    })
}

/// The call that shows most of a record that was cut: its largest field, or the fields that stand nowhere yet.
fn way_on(fields: &Fields<'_>, identity: &Identity, left_out: Option<ToolCall>) -> Next {
    let readable = fields.iter().filter(|(name, value)| {
        ladder::is_readable(name) && matches!(value.content(), Content::Text | Content::Json)
    });
    let sized = readable.map(|(name, value)| (value.into_text().len(), name));
    let largest = sized.max_by_key(|(size, _)| *size);
    match (largest, left_out) {
        (Some((size, _)), Some(read)) if size < budget::FETCH_JSON_CHARS / 2 => Next::Call(read),
        (Some((_, name)), _) => Next::Call(ToolCall::read_from_start(identity, name)),
        (None, Some(read)) => Next::Call(read),
        (None, None) => Read::UNREADABLE.into_next(),
    }
}

fn as_members<S: Serializer, V: Serialize>(
    members: &[(&str, V)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(members.iter().map(|(name, value)| (name, value)))
}

fn by_relation<S: Serializer>(
    relations: &&[RelationContent],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(relations.iter().map(|one| (&one.relation, one)))
}
