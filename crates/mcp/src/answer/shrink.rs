//! Large values inside the body give way to a preview that says so and names the call that reads them; rows and handles stay.

use std::io;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::fields::{Content, FieldValue};
use crate::budget;
use crate::identity::Identity;
use crate::ladder::Read;
use crate::text::plain;
use crate::tool_call::ToolCall;

/// Values larger than this are replaced, in turn, until the rest fits.
const THRESHOLDS: [usize; 6] = [65_536, 16_384, 4_096, 1_024, 512, WHOLE];
/// The last resort: a payload is replaced as a whole.
const WHOLE: usize = 0;
/// Texts of hits shorter than this are left alone: what would stand for them is as long.
const SMALL_TEXT: usize = 1_024;

pub(crate) fn size(value: &impl Serialize) -> usize {
    let mut count = Count(0);
    // Counting cannot fail, and every value can be written.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// Shrinks until the body fits. Gives whether anything was replaced.
pub(super) fn until(
    body: &mut Value,
    most: usize,
    mut shrink: impl FnMut(&mut Value, usize),
) -> bool {
    let mut is_shrunk = false;
    for threshold in THRESHOLDS {
        if size(body) <= most {
            break;
        }
        shrink(body, threshold);
        is_shrunk = true;
    }
    is_shrunk
}

/// Replaces the large values of a record.
pub(super) fn record(record: &mut Value, identity: Option<&Identity>, threshold: usize) {
    let whole = identity.map(|identity| json!(ToolCall::fetch(identity)));
    if let Some(Value::Object(data)) = record.get_mut("data") {
        if threshold == WHOLE {
            let value = Value::Object(std::mem::take(data));
            record["data"] = replaced(&value, whole);
            return;
        }
        payload(data, identity, threshold);
    }
    // Children, and the members of a flat record.
    if let Value::Object(members) = record {
        for (_, member) in members.iter_mut().filter(|(name, _)| *name != "data") {
            texts(member, whole.as_ref(), threshold.max(SMALL_TEXT));
        }
    }
}

/// Replaces the large texts of a hit.
pub(super) fn hit(hit: &mut Value, identity: &Identity, threshold: usize) {
    let whole = identity
        .is_fetchable()
        .then(|| json!(ToolCall::fetch(identity)));
    texts(hit, whole.as_ref(), threshold.max(SMALL_TEXT));
}

/// Replaces the large members of a record's payload.
fn payload(payload: &mut Map<String, Value>, identity: Option<&Identity>, threshold: usize) {
    for (name, value) in payload.iter_mut() {
        if size(value) > threshold && !is_replaced(value) {
            let read = identity.map_or(Read::UNREADABLE, |identity| {
                Read::field(identity, name, FieldValue::new(value))
            });
            *value = replaced(value, Some(json!(read.into_next())));
        }
    }
}

/// Replaces large texts at any depth, each with the same way on.
fn texts(value: &mut Value, way_on: Option<&Value>, threshold: usize) {
    match value {
        Value::String(text) if text.len() > threshold => {
            *value = replaced(value, way_on.cloned());
        }
        Value::Number(number) if number.as_str().len() > threshold => {
            *value = replaced(value, way_on.cloned());
        }
        Value::Array(entries) => {
            for entry in entries {
                texts(entry, way_on, threshold);
            }
        }
        Value::Object(members) => {
            for (_, member) in members
                .iter_mut()
                .filter(|(_, member)| !is_replaced(member))
            {
                texts(member, way_on, threshold);
            }
        }
        _ => {}
    }
}

/// What stands in for a value: its first window, how much there is, and the call that reads on. Bytes have no preview.
fn replaced(value: &Value, read: Option<Value>) -> Value {
    let cut = |text: &str| plain::cut(text, budget::PREVIEW / 2).into_owned();
    let (preview, size, unit) = match (value, FieldValue::new(value).content()) {
        (_, Content::Binary) => (None, size(value), "bytes"),
        (Value::String(text), _) => (Some(cut(text)), text.chars().count(), "chars"),
        (value, _) => (Some(cut(&value.to_string())), size(value), "bytes"),
    };
    let mut written =
        json!({"preview": preview, "truncated": true, "size": size, "size_unit": unit});
    if let Some(read) = read {
        written["read"] = read;
    }
    written
}

fn is_replaced(value: &Value) -> bool {
    value.get("truncated") == Some(&Value::Bool(true)) && value.get("preview").is_some()
}

struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use contract::handle::RecordHandle;

    use super::*;

    #[test]
    fn large_values_give_way_to_a_preview_that_says_so() {
        // LG-02, LG-04
        let identity = Identity::new(RecordHandle::new(Some("c1"), "mail", "m1").unwrap());
        let data = json!({"n": 1, "body": "é".repeat(3_000), "list": vec![7; 2_000], "raw": "QUJDREVGR0hJSktM".repeat(200)});
        let Value::Object(mut data) = data else {
            unreachable!()
        };
        payload(&mut data, Some(&identity), 1_024);
        assert_eq!(data["n"], 1);
        assert_eq!(
            (&data["body"]["size"], &data["body"]["size_unit"]),
            (&json!(3_000), &json!("chars"))
        );
        assert_eq!(data["body"]["read"]["tool"], "read_record_field");
        assert_eq!(data["list"]["read"]["args"]["fields"], json!(["list"]));
        assert_eq!(data["raw"]["preview"], Value::Null);
        let once = data.clone();
        payload(&mut data, Some(&identity), 16);
        assert_eq!(data, once, "a preview is not shortened again");
    }

    #[test]
    fn a_long_text_gives_way_at_any_depth_of_a_hit() {
        // LG-01
        let identity = Identity::new(RecordHandle::new(Some("c1"), "mail", "m1").unwrap());
        let mut value = json!({"data": {"parts": [{"body": "w".repeat(3_000)}], "n": 1}});
        hit(&mut value, &identity, WHOLE);
        assert_eq!(value["data"]["parts"][0]["body"]["size"], 3_000);
        assert_eq!(value["data"]["n"], 1);
    }

    #[test]
    fn the_payload_goes_whole_only_as_the_last_resort() {
        let body = json!({"data": {"body": "w".repeat(3_000)}, "expanded": {"t": {"data": [{"x": "w".repeat(3_000)}]}}});
        let mut kept = body.clone();
        record(&mut kept, None, 1_024);
        assert_eq!(kept["data"]["body"]["truncated"], true);
        assert_eq!(kept["expanded"]["t"]["data"][0]["x"]["truncated"], true);
        let mut gone = body;
        record(&mut gone, None, WHOLE);
        assert_eq!(gone["data"]["truncated"], true);
    }
}
