//! The content ladder: for each record, which of its fields hold more than was shown, and the call that reads them. It is the
//! only place of structured content where calls stand.
//!
//! It is built from what a record really holds (or, in a search, from proven windows), never from guesses.

use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::answer::{Blob, Content, FieldValue, Fields, Hit};
use crate::args::can_be_listed;
use crate::budget;
use crate::identity::Identity;
use crate::text::plain;
use crate::tool_call::ToolCall;

/// Fields of each kind that are listed of a record; the longest texts come first.
const WINDOWS: usize = 5;
const JSON_FIELDS: usize = 8;
const BINARY_FIELDS: usize = 5;
/// Said of a field that no tool reads on in.
const UNREADABLE: &str =
    "no tool reads a field of this name further; the owner's pdpp export has it whole";

#[skip_serializing_none]
#[derive(Debug, Serialize)]
pub(crate) struct Ladder {
    kind: &'static str,
    read_tool: &'static str,
    pub(crate) records: Vec<Rung>,
    pub(crate) records_not_listed: Option<usize>,
}

#[skip_serializing_none]
#[derive(Debug, Default, Serialize)]
pub(crate) struct Rung {
    pub(crate) id: String,
    pub(crate) connection_id: Option<String>,
    pub(crate) evidence_preview: Option<String>,
    pub(crate) field_windows: Vec<FieldWindow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) json_fields: Vec<JsonField>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) binary_fields: Vec<BinaryField>,
    pub(crate) fields_not_listed: Option<usize>,
    /// Relations with more records than were sent.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "by_relation")]
    pub(crate) expanded: Vec<(String, MoreRelated)>,
}

/// A text field, and the call that reads it.
#[skip_serializing_none]
#[derive(Debug, Serialize)]
pub(crate) struct FieldWindow {
    pub(crate) field_path: String,
    pub(crate) size_chars: Option<usize>,
    pub(crate) preview_status: Option<&'static str>,
    #[serde(flatten)]
    pub(crate) read: Read,
}

#[derive(Debug, Serialize)]
pub(crate) struct JsonField {
    pub(crate) field_path: String,
    size_bytes: usize,
    preview_text: String,
    preview_status: &'static str,
    #[serde(flatten)]
    read: Read,
}

/// What is known of bytes, never the bytes.
#[derive(Debug, Serialize)]
pub(crate) struct BinaryField {
    pub(crate) field_path: String,
    preview_status: &'static str,
    #[serde(flatten)]
    about: About,
    #[serde(flatten)]
    read: Read,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum About {
    Blob {
        #[serde(skip_serializing_if = "Option::is_none")]
        blob_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        size_bytes: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        filename: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        export: Option<String>,
    },
    Base64 {
        encoding: &'static str,
        size_chars: usize,
    },
}

/// The call that reads a field on, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Read {
    #[serde(rename = "read")]
    Call(ToolCall),
    CannotBeRead(&'static str),
}

#[derive(Debug, Serialize)]
pub(crate) struct MoreRelated {
    pub(crate) has_more: bool,
    pub(crate) next: Next,
}

/// How to go on: a call, or what there is instead.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Next {
    Call(ToolCall),
    Words(&'static str),
}

impl Read {
    /// The call that reads a field to its end: windows of a text, a document for what is short or JSON. None where no tool
    /// takes the name, or only one that would show the beginning again.
    pub(crate) fn field(identity: &Identity, field: &str, value: FieldValue<'_>) -> Self {
        if is_readable(field) {
            // A document tells of the other ways to read JSON, so that it is the better one.
            let by_window = value.content() == Content::Text || !can_be_listed(field);
            return Self::Call(if by_window {
                ToolCall::read_from_start(identity, field)
            } else {
                ToolCall::fetch_field(identity, field)
            });
        }
        let is_short = field.len() + value.size() + 5 <= budget::FETCH_JSON_CHARS;
        if is_short && can_be_listed(field) {
            return Self::Call(ToolCall::fetch_field(identity, field));
        }
        Self::UNREADABLE
    }

    pub(crate) const UNREADABLE: Self = Self::CannotBeRead(UNREADABLE);

    pub(crate) fn call(&self) -> Option<&ToolCall> {
        match self {
            Self::Call(call) => Some(call),
            Self::CannotBeRead(_) => None,
        }
    }

    pub(crate) fn into_next(self) -> Next {
        match self {
            Self::Call(call) => Next::Call(call),
            Self::CannotBeRead(why) => Next::Words(why),
        }
    }
}

impl Ladder {
    pub(crate) fn new(kind: &'static str, records: Vec<Rung>) -> Self {
        Self {
            kind,
            read_tool: "read_record_field",
            records,
            records_not_listed: None,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Longer {
    pub(crate) than_chars: usize,
    pub(crate) than_bytes: usize,
}

impl Rung {
    /// Identity alone. None where no call names the record.
    pub(crate) fn new(identity: &Identity) -> Option<Self> {
        identity.handle.as_ref()?;
        Some(Self {
            id: identity.id.clone(),
            connection_id: identity.separate_connection().map(str::to_owned),
            ..Self::default()
        })
    }

    /// A hit of a search: the fields the server proved, or found by meaning.
    pub(crate) fn proven(hit: &Hit) -> Option<Self> {
        let mut rung = Self::new(&hit.identity)?;
        rung.evidence_preview = hit.evidence_preview().map(str::to_owned);
        let window = |excerpt: &crate::answer::Excerpt| {
            Some(FieldWindow {
                field_path: excerpt.field.clone(),
                size_chars: None,
                preview_status: None,
                read: Read::Call(excerpt.read.clone()?),
            })
        };
        let shown = hit.excerpts.iter().chain(&hit.meant);
        rung.field_windows = shown.filter_map(window).collect();
        Some(rung)
    }

    /// A record whose payload is at hand: its fields that are long enough.
    pub(crate) fn of_fields(
        identity: &Identity,
        fields: &Fields<'_>,
        longer: Longer,
    ) -> Option<Self> {
        let mut rung = Self::new(identity)?;
        let mut texts: Vec<(&str, FieldValue<'_>)> = Vec::new();
        let mut left_out = 0;
        for (name, value) in fields.iter() {
            match value.content() {
                Content::Text if value.chars() > longer.than_chars => texts.push((name, value)),
                Content::Json if value.size() <= longer.than_bytes => {}
                Content::Json if rung.json_fields.len() < JSON_FIELDS => {
                    rung.json_fields.push(JsonField::new(identity, name, value));
                }
                Content::Binary if rung.binary_fields.len() < BINARY_FIELDS => {
                    rung.binary_fields
                        .push(BinaryField::new(identity, name, value));
                }
                Content::Json | Content::Binary => left_out += 1,
                Content::Text | Content::Small => {}
            }
        }
        texts.sort_by_key(|(_, value)| std::cmp::Reverse(value.text().map_or(0, str::len)));
        left_out += texts.len().saturating_sub(WINDOWS);
        let listed = texts.iter().take(WINDOWS);
        rung.field_windows = listed
            .map(|(name, value)| FieldWindow::new(identity, name, *value))
            .collect();
        rung.fields_not_listed = (left_out > 0).then_some(left_out);
        Some(rung)
    }

    pub(crate) fn listed(&self) -> impl Iterator<Item = &str> {
        let windows = self
            .field_windows
            .iter()
            .map(|field| field.field_path.as_str());
        let json = self
            .json_fields
            .iter()
            .map(|field| field.field_path.as_str());
        let binary = self
            .binary_fields
            .iter()
            .map(|field| field.field_path.as_str());
        windows.chain(json).chain(binary)
    }
}

impl FieldWindow {
    fn new(identity: &Identity, name: &str, value: FieldValue<'_>) -> Self {
        let size = value.chars();
        let read = Read::field(identity, name, value);
        let is_complete = size <= budget::WINDOW_CHARS && read.call().is_some();
        Self {
            field_path: name.to_owned(),
            size_chars: Some(size),
            preview_status: Some(status(is_complete)),
            read,
        }
    }
}

impl JsonField {
    fn new(identity: &Identity, name: &str, value: FieldValue<'_>) -> Self {
        let written = value.json();
        let preview = plain::cut(&written, budget::PREVIEW);
        Self {
            field_path: name.to_owned(),
            size_bytes: written.len(),
            preview_status: status(preview.len() == written.len()),
            preview_text: preview.into_owned(),
            read: Read::field(identity, name, value),
        }
    }
}

impl BinaryField {
    fn new(identity: &Identity, name: &str, value: FieldValue<'_>) -> Self {
        let about = match value.blob() {
            Some(blob) => About::blob(identity, &blob),
            None => About::Base64 {
                encoding: "base64",
                size_chars: value.text().map_or(0, str::len),
            },
        };
        let read = if is_readable(name) {
            Read::Call(ToolCall::read_field(identity, name))
        } else {
            Read::UNREADABLE
        };
        Self {
            field_path: name.to_owned(),
            preview_status: "binary-only",
            about,
            read,
        }
    }
}

impl About {
    fn blob(identity: &Identity, blob: &Blob<'_>) -> Self {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Self::Blob {
            blob_id: owned(blob.id),
            mime_type: owned(blob.media_type),
            size_bytes: blob.size_bytes,
            filename: owned(blob.filename),
            digest: owned(blob.digest),
            export: blob.id.map(|id| export(identity, id)),
        }
    }
}

fn status(is_complete: bool) -> &'static str {
    if is_complete { "complete" } else { "truncated" }
}

/// How the bytes themselves are got, outside of the tools.
pub(crate) fn export(identity: &Identity, blob_id: &str) -> String {
    let route = contract::upstream::Get::v1(["blobs", blob_id])
        .with("connection_id", identity.connection());
    format!("GET {}", route.target())
}

/// Whether `read_record_field` takes this name.
pub(crate) fn is_readable(field: &str) -> bool {
    contract::segment::guard(field).is_ok()
}

fn by_relation<S: serde::Serializer>(
    relations: &[(String, MoreRelated)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(relations.iter().map(|(name, more)| (name, more)))
}

#[cfg(test)]
mod tests {
    use contract::handle::RecordHandle;
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::answer::fields_of;

    fn rung(data: &Value) -> Value {
        let identity = Identity::new(RecordHandle::new(Some("c1"), "mail", "m1").unwrap());
        let all = Longer {
            than_chars: 0,
            than_bytes: 0,
        };
        let rung = Rung::of_fields(&identity, &fields_of(data), all).unwrap();
        serde_json::to_value(rung).unwrap()
    }

    #[test]
    fn a_ladder_offers_what_the_record_holds_and_nothing_else() {
        let data = json!({"id":"m1","n":3,"empty":"","body":"x".repeat(5_000),"profile":{"id":"p","url":"u"},
            "attachment":{"object":"blob_ref","blob_id":"b1","mime_type":"image/png","size_bytes":81_234},
            "raw":"QUJDREVGR0hJSktM".repeat(40)});
        let entry = rung(&data);
        assert_eq!(entry["id"], "c1/mail:m1");
        assert_eq!(entry["field_windows"][0]["field_path"], "body");
        assert_eq!(entry["field_windows"][0]["size_chars"], 5_000);
        assert_eq!(entry["field_windows"][0]["preview_status"], "truncated");
        assert_eq!(entry["json_fields"][0]["field_path"], "profile");
        let binary = entry["binary_fields"].as_array().unwrap();
        assert_eq!(binary.len(), 2);
        let written = entry.to_string();
        assert!(!written.contains("QUJDREVG"), "no bytes in a ladder");
        assert!(written.contains("GET /v1/blobs/b1?connection_id=c1"));
        assert!(!written.contains("\"empty\"") && !written.contains("\"n\""));
    }

    #[test]
    fn a_call_that_would_be_refused_or_go_in_circles_is_not_offered() {
        // HD-04, LG-04
        let long = json!("word ".repeat(400));
        let data = json!({"a/b": long, "c..d": {"x": long}, "e,f": {"x": 1}, "g,h": long, "i/j": "short", "k/l,m": "short"});
        let entry = rung(&data);
        let lists = ["field_windows", "json_fields"];
        let fields = lists
            .iter()
            .flat_map(|list| entry[list].as_array().unwrap());
        let mut reads = Map::new();
        for field in fields {
            let name = field["field_path"].as_str().unwrap().to_owned();
            assert_eq!(field["read"].is_null(), field["cannot_be_read"].is_string());
            reads.insert(name, field["read"].clone());
        }
        for name in ["a/b", "c..d", "k/l,m"] {
            assert_eq!(reads[name], Value::Null, "{name}");
        }
        for name in ["e,f", "g,h"] {
            assert_eq!(reads[name]["tool"], "read_record_field", "{name}");
        }
        assert_eq!(reads["i/j"]["args"]["fields"], json!(["i/j"]));
    }

    // TR-29: it was offered as a text to be read in windows.
    #[test]
    fn bytes_written_as_text_are_offered_as_bytes() {
        let varied = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ".repeat(10);
        let line = format!("{}\r\n", &varied[..76]);
        let data = json!({
            "padded": format!("{varied}AA=="),
            "unpadded": format!("{}-_", &varied[..400]),
            "of_one_word": "YWFh".repeat(100),
            "in_lines": line.repeat(6),
            "inline": format!("data:image/png;base64,{varied}"),
            "prose": "words of prose ".repeat(40),
        });
        let entry = rung(&data);
        let names = |list: &str| {
            let fields = entry[list].as_array().unwrap().iter();
            let mut names: Vec<&str> = fields
                .map(|one| one["field_path"].as_str().unwrap())
                .collect();
            names.sort_unstable();
            names
        };
        assert_eq!(names("field_windows"), ["prose"]);
        let binary = ["in_lines", "inline", "of_one_word", "padded", "unpadded"];
        assert_eq!(names("binary_fields"), binary);
        for field in entry["binary_fields"].as_array().unwrap() {
            assert_eq!(field["encoding"], "base64");
            assert!(field["read"].is_object());
        }
    }

    #[test]
    fn what_was_shown_whole_is_not_listed() {
        let identity = Identity::new(RecordHandle::new(Some("c1"), "mail", "m1").unwrap());
        let longer = Longer {
            than_chars: 8,
            than_bytes: 12,
        };
        let data = json!({"title": "8 chars.", "body": "9 chars..", "o": {"a": 12345}, "p": {"a": 1_234_567}});
        let rung = Rung::of_fields(&identity, &fields_of(&data), longer).unwrap();
        assert_eq!(rung.listed().collect::<Vec<_>>(), ["body", "p"]);
        let blob = json!({"object": "blob_ref", "blob_id": "b1"});
        let each = |n: usize| {
            [
                (format!("o{n}"), data["p"].clone()),
                (format!("b{n}"), blob.clone()),
            ]
        };
        let many: Map<String, Value> = (0..12).flat_map(each).collect();
        let rung = Rung::of_fields(&identity, &fields_of(&json!(many)), longer).unwrap();
        assert_eq!(rung.json_fields.len(), JSON_FIELDS);
        assert_eq!(rung.binary_fields.len(), BINARY_FIELDS);
        assert_eq!(
            rung.fields_not_listed,
            Some(24 - JSON_FIELDS - BINARY_FIELDS)
        );
    }
}
