//! The content ladder: for each record, which of its fields hold more than was shown, and the call that reads them.
//!
//! It is built from what a record really holds (or, in a search, from proven windows), never from guesses.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use contract::numeral;
use serde_json::{Map, Value, json};

use super::identity::Identity;
use super::payload::is_bytes;
use super::plain;
use crate::args::can_be_listed;
use crate::budget;

/// Texts offered per record; the longest come first.
const WINDOWS: usize = 5;
const JSON_FIELDS: usize = 8;
const BINARY_FIELDS: usize = 5;
/// Said of a field that no tool reads on in.
pub(crate) const UNREADABLE: &str =
    "no tool reads a field of this name further; the owner's pdpp export has it whole";
/// Shorter texts are never taken for base64.
const BASE64_FROM: usize = 256;
/// Longer numbers are read in windows, like other JSON.
const NUMBER: usize = 80;

/// What a field holds, as far as reading on is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Text,
    Json,
    /// A reference to bytes, or bytes written as base64.
    Binary,
    /// Null, numbers, booleans, empty texts: shown whole wherever they are shown.
    Small,
}

impl Content {
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            value if numeral::digits(value).is_some_and(|digits| digits.len() <= NUMBER) => {
                Self::Small
            }
            Value::String(text) if text.is_empty() => Self::Small,
            Value::String(text) if is_bytes(text) => Self::Binary,
            Value::String(_) => Self::Text,
            Value::Object(object) if is_blob(object) => Self::Binary,
            Value::Object(_) | Value::Array(_) => Self::Json,
            Value::Null | Value::Bool(_) | Value::Number(_) => Self::Small,
        }
    }
}

/// A ladder of one kind over some records.
pub(crate) fn ladder(kind: &str, records: Vec<Value>) -> Value {
    let mut ladder = json!({"kind": kind, "read_tool": "read_record_field"});
    ladder["records"] = Value::Array(records);
    ladder
}

/// A call: the tool and its arguments.
pub(crate) fn call(tool: &str, args: Map<String, Value>) -> Value {
    let mut call = Map::with_capacity(2);
    call.insert("tool".to_owned(), Value::String(tool.to_owned()));
    call.insert("args".to_owned(), Value::Object(args));
    Value::Object(call)
}

/// The entry of a record whose payload is at hand.
pub(crate) fn record(identity: &Identity, data: &Map<String, Value>) -> Option<Value> {
    let mut entry = head(identity)?;
    let mut fields: Vec<(&String, &Value)> = data.iter().collect();
    fields.sort_by_key(|(_, value)| std::cmp::Reverse(value.as_str().map_or(0, str::len)));
    let of = |wanted: Content, most: usize, write: &dyn Fn(&str, &Value) -> Value| {
        let fields = fields
            .iter()
            .filter(|(_, value)| Content::of(value) == wanted);
        let written: Vec<Value> = fields
            .clone()
            .take(most)
            .map(|(name, value)| write(name, value))
            .collect();
        (written, fields.count())
    };
    let (windows, texts) = of(Content::Text, WINDOWS, &|name, value| {
        text_field(identity, name, value)
    });
    let (json_fields, jsons) = of(Content::Json, JSON_FIELDS, &|name, value| {
        json_field(identity, name, value)
    });
    let (binary_fields, binaries) = of(Content::Binary, BINARY_FIELDS, &|name, value| {
        binary_field(identity, name, value)
    });
    let left_out =
        texts + jsons + binaries - windows.len() - json_fields.len() - binary_fields.len();
    entry.insert("field_windows".to_owned(), Value::Array(windows));
    for (name, fields) in [
        ("json_fields", json_fields),
        ("binary_fields", binary_fields),
    ] {
        if !fields.is_empty() {
            entry.insert(name.to_owned(), Value::Array(fields));
        }
    }
    if left_out > 0 {
        entry.insert("fields_not_listed".to_owned(), json!(left_out));
    }
    Some(Value::Object(entry))
}

/// Identity alone, with room for what a search proved.
pub(crate) fn head(identity: &Identity) -> Option<Map<String, Value>> {
    let handle = identity.handle.as_ref()?;
    let mut entry = Map::new();
    entry.insert("id".to_owned(), json!(identity.id));
    entry.insert("connection_id".to_owned(), json!(handle.connection()));
    entry.insert("stream".to_owned(), json!(handle.stream()));
    entry.insert("record_id".to_owned(), json!(handle.record()));
    Some(entry)
}

/// The call that reads a text field from some offset.
pub(crate) fn window_read(identity: &Identity, field: &str, offset: u64, limit: u64) -> Value {
    let mut args = identity.args();
    args.insert("field_path".to_owned(), json!(field));
    args.insert("offset_chars".to_owned(), json!(offset));
    args.insert("limit_chars".to_owned(), json!(limit));
    call("read_record_field", args)
}

/// The call that fetches a record with one field only, or where its name cannot be asked for, with all of them.
pub(crate) fn projected_fetch(identity: &Identity, field: &str) -> Value {
    let mut args = identity.args();
    if can_be_listed(field) {
        args.insert("fields".to_owned(), json!([field]));
    }
    call("fetch", args)
}

/// The call that reads a field to its end: windows of a text, a document for what is short or JSON. Nothing where no tool
/// takes the name, or only one that would show the beginning again.
pub(crate) fn field_read(identity: &Identity, field: &str, value: &Value) -> Option<Value> {
    let windows = || window_read(identity, field, 0, budget::WINDOW_CHARS as u64);
    let is_text = Content::of(value) == Content::Text;
    if is_readable(field) {
        // A document tells of the other ways to read JSON, so that it is the better one.
        let by_window = is_text || !can_be_listed(field);
        return Some(if by_window {
            windows()
        } else {
            projected_fetch(identity, field)
        });
    }
    let is_short = json!({ field: value }).to_string().len() <= budget::FETCH_JSON_CHARS;
    (is_short && can_be_listed(field)).then(|| projected_fetch(identity, field))
}

/// The call as a member of an entry, or why there is none.
fn insert_read(entry: &mut Map<String, Value>, read: Option<Value>) {
    match read {
        Some(read) => entry.insert("read".to_owned(), read),
        None => entry.insert("cannot_be_read".to_owned(), json!(UNREADABLE)),
    };
}

fn text_field(identity: &Identity, name: &str, text: &Value) -> Value {
    let size = text.as_str().map_or(0, |text| text.chars().count());
    let read = field_read(identity, name, text);
    let status = if size > budget::WINDOW_CHARS || read.is_none() {
        "truncated"
    } else {
        "complete"
    };
    let mut entry = Map::with_capacity(4);
    entry.insert("field_path".to_owned(), json!(name));
    entry.insert("size_chars".to_owned(), json!(size));
    entry.insert("preview_status".to_owned(), json!(status));
    insert_read(&mut entry, read);
    Value::Object(entry)
}

fn json_field(identity: &Identity, name: &str, value: &Value) -> Value {
    let written = numeral::write(value);
    let preview = plain::cut(&written, budget::PREVIEW);
    let status = if preview.len() < written.len() {
        "truncated"
    } else {
        "complete"
    };
    let mut entry = Map::with_capacity(5);
    entry.insert("field_path".to_owned(), json!(name));
    entry.insert("size_bytes".to_owned(), json!(written.len()));
    entry.insert("preview_text".to_owned(), json!(preview));
    entry.insert("preview_status".to_owned(), json!(status));
    insert_read(&mut entry, field_read(identity, name, value));
    Value::Object(entry)
}

/// What is known of bytes, never the bytes.
pub(crate) fn binary_field(identity: &Identity, name: &str, value: &Value) -> Value {
    let mut field = Map::new();
    field.insert("field_path".to_owned(), json!(name));
    field.insert("preview_status".to_owned(), json!("binary-only"));
    match value {
        Value::Object(blob) => {
            for member in [
                "blob_id",
                "mime_type",
                "content_type",
                "size_bytes",
                "filename",
                "digest",
            ] {
                if let Some(known) = blob.get(member).filter(|known| !known.is_object()) {
                    field.insert(member.to_owned(), known.clone());
                }
            }
            if let Some(id) = blob.get("blob_id").and_then(Value::as_str) {
                field.insert("export".to_owned(), json!(export(identity, id)));
            }
        }
        value => {
            let size = value.as_str().map_or(0, str::len);
            field.insert("encoding".to_owned(), json!("base64"));
            field.insert("size_chars".to_owned(), json!(size));
        }
    }
    insert_read(&mut field, described(identity, name));
    Value::Object(field)
}

/// The call that tells what bytes are and how they are got, where the name allows it.
fn described(identity: &Identity, field: &str) -> Option<Value> {
    let mut args = identity.args();
    args.insert("field_path".to_owned(), json!(field));
    is_readable(field).then(|| call("read_record_field", args))
}

/// How the bytes themselves are got, outside of the tools.
pub(crate) fn export(identity: &Identity, blob_id: &str) -> String {
    let connection = identity
        .handle
        .as_ref()
        .and_then(|handle| handle.connection());
    let route = contract::upstream::Get::v1(["blobs", blob_id]).with("connection_id", connection);
    format!("GET {}", route.target())
}

/// Whether `read_record_field` takes this name.
pub(crate) fn is_readable(field: &str) -> bool {
    contract::segment::guard(field).is_ok()
}

fn is_blob(object: &Map<String, Value>) -> bool {
    let tagged = object.get("object").and_then(Value::as_str) == Some("blob_ref");
    tagged || object.get("blob_id").is_some_and(Value::is_string)
}

/// Long texts of nothing but the base64 alphabet, as varied as bytes are or with words behind them. A long word of prose is
/// shorter than this.
pub(crate) fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let padding = text.len() - body.len();
    // Without padding every length but one occurs.
    let is_whole = match padding {
        0 => text.len() % 4 != 1,
        1 | 2 => text.len().is_multiple_of(4),
        _ => false,
    };
    if text.len() < BASE64_FROM || !is_whole {
        return false;
    }
    let mut seen = [false; 128];
    let mut distinct = 0;
    for byte in body.bytes() {
        if !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')) {
            return false;
        }
        let seen = &mut seen[usize::from(byte & 127)];
        distinct += usize::from(!*seen);
        *seen = true;
    }
    (distinct >= 12 && is_mixed(body)) || encodes_words(body)
}

/// Bytes of any length have capitals, small letters and digits; a word or an alphabet repeated has not.
fn is_mixed(text: &str) -> bool {
    let has = |test: fn(&u8) -> bool| text.bytes().any(|byte| test(&byte));
    has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit)
}

/// Whether what it encodes begins with readable characters. What people write in this alphabet encodes none.
fn encodes_words(text: &str) -> bool {
    let start = text.get(..BASE64_FROM).unwrap_or_default();
    let start = start.replace('-', "+").replace('_', "/");
    let is_readable = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    STANDARD_NO_PAD
        .decode(start)
        .is_ok_and(|bytes| !bytes.is_empty() && bytes.iter().all(is_readable))
}

#[cfg(test)]
mod tests {
    use contract::handle::RecordHandle;

    use super::*;

    fn identity() -> Identity {
        Identity::of(RecordHandle::new(Some("c1"), "mail", "m1").unwrap())
    }

    #[test]
    fn a_ladder_offers_what_the_record_holds_and_nothing_else() {
        let data = json!({"id":"m1","n":3,"empty":"","body":"x".repeat(5_000),"profile":{"id":"p","url":"u"},
            "attachment":{"object":"blob_ref","blob_id":"b1","mime_type":"image/png","size_bytes":81_234},
            "raw":"QUJDREVGR0hJSktM".repeat(40)});
        let entry = record(&identity(), data.as_object().unwrap()).unwrap();
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
        let entry = record(&identity(), data.as_object().unwrap()).unwrap();
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

    #[test]
    fn long_prose_is_not_taken_for_bytes() {
        assert!(!is_base64(&"word ".repeat(100)));
        assert!(!is_base64(&"a".repeat(400)));
        assert!(!is_base64(&"abcdefghijklmnopqrstuvwxyz".repeat(40)));
        assert!(!is_base64(&"0123456789".repeat(40)));
        assert!(is_base64(&"QUJDREVGR0hJSktM".repeat(40)));
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
        let entry = record(&identity(), data.as_object().unwrap()).unwrap();
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
}
