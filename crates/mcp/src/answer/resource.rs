//! An answer as the text of a resource: the JSON a server sent, with values too long to stand inline replaced.

use serde_json::{Map, Value, json};

use super::Answered;
use super::bytes::without_bytes;
use super::fields::FieldValue;
use super::shrink;
use crate::budget;
use crate::identity::Identity;
use crate::ladder::{self, Read};
use crate::text::plain;
use crate::tool_call::ToolCall;

/// Values that may be replaced before a record is simply too large.
const REPLACED: usize = 64;

impl Answered {
    /// What is known of a stream; members too large stand as the call that tells them.
    pub(crate) fn into_stream_json(self, whole: &ToolCall, ceiling: usize) -> String {
        let mut body = self.body;
        if let Value::Object(members) = &mut body {
            replace_largest(
                members,
                ceiling,
                |_, size| json!({"left_out": true, "size_bytes": size, "read": whole}),
            );
        }
        body.to_string()
    }

    /// A record with previews in place of long values and sizes in place of bytes. None where the answer is no record.
    pub(crate) fn into_record_json(self, identity: &Identity, ceiling: usize) -> Option<String> {
        let mut body = without_bytes(&self.body);
        if !body.is_object() {
            return None;
        }
        let is_wrapped = body.get("data").is_some_and(Value::is_object);
        let payload = if is_wrapped {
            body.get_mut("data")
        } else {
            Some(&mut body)
        };
        if let Some(Value::Object(fields)) = payload {
            let originals = fields.clone();
            replace_largest(fields, ceiling - ceiling / 8, |name, size| {
                preview(
                    identity,
                    name,
                    originals.get(name).unwrap_or(&Value::Null),
                    size,
                )
            });
        }
        if is_wrapped && let Value::Object(members) = &mut body {
            let data = members.shift_remove("data");
            replace_largest(
                members,
                ceiling / 16,
                |_, size| json!({"left_out": true, "size_bytes": size}),
            );
            members.extend(data.map(|data| ("data".to_owned(), data)));
        }
        Some(body.to_string())
    }
}

fn preview(identity: &Identity, name: &str, value: &Value, size: usize) -> Value {
    let read = if ladder::is_readable(name) {
        Read::Call(ToolCall::read_from_start(identity, name))
    } else {
        Read::field(identity, name, FieldValue::new(value))
    };
    let written = FieldValue::new(value).into_text();
    json!({
        "preview": plain::cut(&written, budget::PREVIEW),
        "truncated": true,
        "size_bytes": size,
        "read": read.into_next()
    })
}

/// Replaces values too long to stand inline, then the largest ones, until the rest fits.
fn replace_largest(
    members: &mut Map<String, Value>,
    ceiling: usize,
    replace: impl Fn(&str, usize) -> Value,
) {
    let mut sizes: Vec<(String, usize)> = members
        .iter()
        .map(|(name, value)| (name.clone(), shrink::size(value)))
        .collect();
    let mut total: usize = sizes.iter().map(|(name, size)| name.len() + size + 4).sum();
    sizes.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    for (name, size) in sizes.into_iter().take(REPLACED) {
        let is_long = members
            .get(&name)
            .and_then(Value::as_str)
            .is_some_and(|text| text.chars().count() > budget::FETCH_TEXT_CHARS);
        if total <= ceiling && !is_long {
            continue;
        }
        let replacement = replace(&name, size);
        total = (total + replacement.to_string().len()).saturating_sub(size);
        members.insert(name, replacement);
    }
}
