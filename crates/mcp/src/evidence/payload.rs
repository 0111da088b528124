//! A record as a server answered it: identity around it, payload inside it, and what a projection leaves of both.

use contract::handle::{RECORD_URI, WINDOW_URI};
use contract::numeral;
use serde_json::{Map, Value, json};

use super::identity::connection_of;
use super::ladder::is_base64;

/// The members of an answer that say which record it is and where it is from. They survive every projection; the
/// description of `fetch` names them.
pub(crate) const OPERATIONAL: [&str; 12] = [
    "object",
    "id",
    "record_id",
    "record_key",
    "stream",
    "connection_id",
    "connector_key",
    "connector_id",
    "display_name",
    "emitted_at",
    "deleted",
    "deleted_at",
];
/// What stands around a record and is neither of it nor about it.
const AROUND: [&str; 7] = [
    "links",
    "meta",
    "url",
    "source",
    "connector_instance_id",
    "citation_url",
    "expanded",
];

/// The parts of a record.
#[derive(Debug, Default)]
pub(crate) struct Payload {
    /// Operational members, scalars only.
    pub(crate) envelope: Map<String, Value>,
    /// The granted fields, projected.
    pub(crate) data: Map<String, Value>,
    /// What else the server put beside the payload. Nothing of it is left when fields were named.
    pub(crate) extras: Map<String, Value>,
    /// Related records, by relation.
    pub(crate) expanded: Map<String, Value>,
    /// Where people can look at it, as the server says.
    pub(crate) citation_url: Option<String>,
}

impl Payload {
    /// Takes an answer apart. Where fields are named, nothing but these is kept, whatever the server sent (FE-05).
    pub(crate) fn of(body: Value, fields: &[&str]) -> Option<Self> {
        let body = unwrapped(body);
        let connection = connection_of(&body).map(str::to_owned);
        let Value::Object(mut body) = body else {
            return None;
        };
        body.retain(|name, value| !is_machine_address(name, value));
        let mut payload = Self::default();
        for name in OPERATIONAL {
            if let Some(value) = body.get(name).filter(|value| is_scalar(value)) {
                payload.envelope.insert(name.to_owned(), value.clone());
            }
        }
        if let Some(connection) = connection {
            let connection = Value::String(connection);
            payload
                .envelope
                .entry("connection_id")
                .or_insert(connection);
        }
        if let Some(Value::Object(expanded)) = body.remove("expanded") {
            payload.expanded = expanded;
        }
        if body.get("data").is_some_and(Value::is_object) {
            if let Some(Value::Object(data)) = body.remove("data") {
                payload.data = data;
            }
            let url = body.get("citation_url").and_then(Value::as_str);
            payload.citation_url = url.map(str::to_owned);
            if fields.is_empty() {
                body.retain(|name, _| !is_around(name));
                payload.extras = body;
            }
        } else {
            // A flat record: what is not identity is payload; a field that was named is payload in any case.
            body.retain(|name, _| !fields.is_empty() || !OPERATIONAL.contains(&name.as_str()));
            payload.data = body;
        }
        if !fields.is_empty() {
            payload
                .data
                .retain(|name, _| fields.contains(&name.as_str()));
        }
        Some(payload)
    }

    /// The envelope and the payload as one value, for whoever looks for titles and times.
    pub(crate) fn face(&self) -> Value {
        let mut face = self.envelope.clone();
        for name in ["title", "name", "subject", "summary"] {
            let value = self.data.get(name).or_else(|| self.extras.get(name));
            if let Some(value) = value.filter(|value| value.is_string()) {
                face.insert(name.to_owned(), value.clone());
            }
        }
        if let Some(url) = &self.citation_url {
            face.insert("citation_url".to_owned(), json!(url));
        }
        face.insert("data".to_owned(), Value::Object(self.data.clone()));
        Value::Object(face)
    }
}

/// Some servers wrap the record once more.
fn unwrapped(body: Value) -> Value {
    let is_record = |value: &Value| {
        value.get("data").is_some_and(Value::is_object)
            || value.get("object").and_then(Value::as_str) == Some("record")
    };
    match body {
        Value::Object(mut object)
            if !object.contains_key("id")
                && object.get("object").and_then(Value::as_str) != Some("record")
                && object.get("data").is_some_and(is_record) =>
        {
            object.remove("data").unwrap_or_default()
        }
        body => body,
    }
}

/// A handle a server put beside the record. The id says the same, and every tool takes it (HD-08, HD-11).
fn is_machine_address(name: &str, value: &Value) -> bool {
    let is_handle = value
        .as_str()
        .is_some_and(|text| text.starts_with(RECORD_URI) || text.starts_with(WINDOW_URI));
    is_handle && name.to_ascii_lowercase().ends_with("uri")
}

fn is_around(name: &str) -> bool {
    OPERATIONAL.contains(&name) || AROUND.contains(&name)
}

/// A value that stands on its own: no list and no object.
pub(crate) fn is_scalar(value: &Value) -> bool {
    numeral::digits(value).is_some() || (!value.is_object() && !value.is_array())
}

/// Bytes that travel as text: base64, also in lines or inside a `data:` address.
pub(crate) fn is_bytes(text: &str) -> bool {
    let is_inline = || {
        let head = text.get(..128).unwrap_or_default();
        text.len() > 256 && text.starts_with("data:") && head.contains(";base64,")
    };
    is_base64(text) || is_inline() || is_base64_in_lines(text)
}

/// Part of a longer text that is bytes: a window has no say in where base64 is cut.
pub(crate) fn is_part_of_bytes(text: &str) -> bool {
    is_bytes(text) || (text.len() >= 256 && is_mixed_base64(text))
}

/// Base64 as mail carries it: lines of one length. The first and the last may be cut.
fn is_base64_in_lines(text: &str) -> bool {
    let mut lines: Vec<&str> = text.trim_end().split('\n').collect();
    for line in &mut lines {
        *line = line.trim_end_matches('\r');
    }
    let [first, width, .., last] = lines.as_slice() else {
        return false;
    };
    let width = width.len();
    let inner = lines.get(1..lines.len() - 1).unwrap_or_default();
    lines.len() >= 4
        && (60..=80).contains(&width)
        && first.len() <= width
        && last.len() <= width
        && inner.iter().all(|line| line.len() == width)
        && is_mixed_base64(&lines.concat())
}

/// Nothing but the base64 alphabet, with capitals, small letters and digits: neither words nor hexadecimal digits.
fn is_mixed_base64(text: &str) -> bool {
    let has = |test: fn(&u8) -> bool| text.bytes().any(|byte| test(&byte));
    let is_alphabet =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=');
    text.bytes().all(is_alphabet)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_digit)
}

/// The value with its size in place of every text that is bytes.
pub(crate) fn without_bytes(value: &Value) -> Value {
    match value {
        Value::String(text) if is_bytes(text) => {
            json!({"encoding": "base64", "size_chars": text.len(), "left_out": true})
        }
        Value::Array(list) => Value::Array(list.iter().map(without_bytes).collect()),
        Value::Object(object) => Value::Object(
            object
                .iter()
                .map(|(name, value)| (name.clone(), without_bytes(value)))
                .collect(),
        ),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_projection_leaves_the_named_fields_and_the_identity() {
        // FE-05, FE-06
        let body = json!({"object":"record","id":"m1","stream":"mail","connection_id":"c1","connector_key":"gmail",
            "metadata":{"mood":"SECRET2"},"secret_top":"SECRET1",
            "data":{"id":"m1","subject":"S","body":"SECRET3","title":"SECRET4"}});
        for body in [body.clone(), json!({"data": body})] {
            let payload = Payload::of(body, &["subject"]).unwrap();
            assert_eq!(Value::Object(payload.data.clone()), json!({"subject":"S"}));
            assert!(!format!("{payload:?}").contains("SECRET"), "{payload:?}");
            assert_eq!(payload.envelope["connector_key"], "gmail");
            assert_eq!(payload.envelope["connection_id"], "c1");
        }
        let flat = json!({"id":"m1","stream":"mail","subject":"S","body":"SECRET"});
        let payload = Payload::of(flat, &["subject"]).unwrap();
        assert!(!format!("{payload:?}").contains("SECRET"));
    }

    #[test]
    fn a_flat_record_is_payload_beside_its_identity() {
        let flat = json!({"id":"m1","stream":"mail","emitted_at":"2026-01-01T00:00:00Z","subject":"S","data":"raw"});
        let payload = Payload::of(flat, &[]).unwrap();
        assert_eq!(
            Value::Object(payload.data),
            json!({"subject":"S","data":"raw"})
        );
        assert_eq!(payload.envelope["id"], "m1");
        assert!(Payload::of(json!([1]), &[]).is_none());
    }

    #[test]
    fn bytes_are_replaced_wherever_they_stand() {
        // LG-02
        let bytes = "QUJDREVGR0hJSktM".repeat(40);
        let inline = format!("data:image/png;base64,{bytes}");
        let shown = without_bytes(&json!({"a":[{"b":bytes}],"c":inline,"d":"text"})).to_string();
        assert!(!shown.contains("QUJD"), "{shown}");
        assert!(shown.contains(r#""size_chars":640"#) && shown.contains(r#""d":"text""#));
    }

    #[test]
    fn base64_in_lines_is_bytes_and_lists_of_words_are_not() {
        // LG-02
        let line = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5ejAxMjM0";
        let mail = format!("{}QUJD=", format!("{line}\r\n").repeat(8));
        assert!(is_bytes(&mail) && is_part_of_bytes(&mail[30..500]));
        for text in [
            "Alice1\nBob2\nCarol3\nDave4\n".repeat(40),
            "words of prose ".repeat(40),
            "0af3".repeat(100),
        ] {
            assert!(!is_bytes(&text) && !is_part_of_bytes(&text), "{text}");
        }
    }

    #[test]
    fn handles_beside_a_record_are_dropped_and_words_of_people_are_kept() {
        // HD-08, HD-11
        let body = json!({"id":"m1","record_uri":"pdpp://record/x","resource_uri":"pdpp://field-window/y",
            "text":"pdpp://record/ is a prefix"});
        let payload = Payload::of(body, &[]).unwrap();
        let data = Value::Object(payload.data);
        assert_eq!(data, json!({"text":"pdpp://record/ is a prefix"}));
    }
}
