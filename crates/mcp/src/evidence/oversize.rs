//! A whole result has a ceiling. Above it, large values inside the server's envelope give way to a preview that says so
//! and names the call that reads them; rows and handles stay.

use std::io;

use contract::numeral;
use serde_json::{Map, Value, json};

use super::identity::Identity;
use super::ladder::{self, Content};
use super::plain;
use crate::budget;

/// Values larger than this are replaced, in turn, until the result fits.
const THRESHOLDS: [usize; 5] = [65_536, 16_384, 4_096, 1_024, WHOLE];
/// The last resort: a payload is replaced as a whole.
pub(crate) const WHOLE: usize = 0;
/// Shorter texts are left alone: what would stand for them is as long.
pub(crate) const SMALL_TEXT: usize = 1_024;
/// Room for the frame around both channels.
const FRAME: usize = 8_192;

/// The length of a value as JSON.
pub(crate) fn size(value: &Value) -> usize {
    let mut count = Count(0);
    // Counting cannot fail, and every value can be written.
    let _ = serde_json::to_writer(&mut count, value);
    count.0 - numeral::surplus(value)
}

/// The length of an object as JSON.
pub(crate) fn size_of_members(members: &Map<String, Value>) -> usize {
    let mut count = Count(0);
    let _ = serde_json::to_writer(&mut count, members);
    count.0 - members.values().map(numeral::surplus).sum::<usize>()
}

/// A length that the value as JSON does not exceed, had without looking at its texts.
fn bound(value: &Value) -> usize {
    // Any byte of a text may become six; numbers have at most twenty-four characters.
    let text = |text: &str| 2 + 6 * text.len();
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 24,
        Value::String(string) => text(string),
        Value::Array(entries) => 2 + entries.iter().map(|entry| 1 + bound(entry)).sum::<usize>(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| 2 + text(name) + bound(value);
            2 + members.iter().map(member).sum::<usize>()
        }
    }
}

/// Shrinks until the structured content fits beside its text.
pub(crate) fn fit(structured: &mut Value, text: &str, mut shrink: impl FnMut(&mut Value, usize)) {
    let ceiling = budget::RESULT.saturating_sub(text.len() * 2 + FRAME);
    // Most answers are far from the ceiling, and then there is nothing to count.
    if bound(structured) <= ceiling {
        return;
    }
    for threshold in THRESHOLDS {
        if size(structured) <= ceiling {
            return;
        }
        shrink(structured, threshold);
    }
}

/// Replaces the large members of a record's payload.
pub(crate) fn shrink_payload(
    payload: &mut Map<String, Value>,
    identity: Option<&Identity>,
    threshold: usize,
) {
    for (name, value) in payload.iter_mut() {
        if bound(value) > threshold && size(value) > threshold && !is_replaced(value) {
            let read = identity.and_then(|identity| ladder::field_read(identity, name, value));
            *value = replaced(value, read.or_else(|| Some(json!(ladder::UNREADABLE))));
        }
    }
}

/// Replaces large texts at any depth, each with the same way on.
pub(crate) fn shrink_texts(value: &mut Value, way_on: Option<&Value>, threshold: usize) {
    match value {
        Value::String(text) if text.len() > threshold => {
            *value = replaced(value, way_on.cloned());
        }
        numeral if numeral::digits(numeral).is_some_and(|digits| digits.len() > threshold) => {
            *numeral = replaced(numeral, way_on.cloned());
        }
        numeral if numeral::digits(numeral).is_some() => {}
        Value::Array(entries) => {
            for entry in entries {
                shrink_texts(entry, way_on, threshold);
            }
        }
        Value::Object(members) => {
            for (_, member) in members
                .iter_mut()
                .filter(|(_, member)| !is_replaced(member))
            {
                shrink_texts(member, way_on, threshold);
            }
        }
        _ => {}
    }
}

/// What stands in for a value. Bytes have no preview.
pub(crate) fn replaced(value: &Value, read: Option<Value>) -> Value {
    let (preview, size, unit) = match (value, Content::of(value)) {
        (_, Content::Binary) => (None, size(value), "bytes"),
        (Value::String(text), _) => (Some(cut(text)), text.chars().count(), "chars"),
        (value, _) => (Some(cut(&numeral::write(value))), size(value), "bytes"),
    };
    let mut written =
        json!({"preview": preview, "truncated": true, "size": size, "size_unit": unit});
    if let Some(read) = read {
        written["read"] = read;
    }
    written
}

fn cut(text: &str) -> String {
    plain::cut(text, budget::PREVIEW / 2).into_owned()
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
        let identity = Identity::of(RecordHandle::new(Some("c1"), "mail", "m1").unwrap());
        let data = json!({"n": 1, "body": "é".repeat(3_000), "list": vec![7; 2_000], "raw": "QUJDREVGR0hJSktM".repeat(200)});
        let Value::Object(mut data) = data else {
            unreachable!()
        };
        shrink_payload(&mut data, Some(&identity), 1_024);
        assert_eq!(data["n"], 1);
        assert_eq!(
            (&data["body"]["size"], &data["body"]["size_unit"]),
            (&json!(3_000), &json!("chars"))
        );
        assert_eq!(data["body"]["read"]["tool"], "read_record_field");
        assert_eq!(data["list"]["read"]["args"]["fields"], json!(["list"]));
        assert_eq!(data["raw"]["preview"], Value::Null);
        let once = data.clone();
        shrink_payload(&mut data, Some(&identity), 16);
        assert_eq!(data, once, "a preview is not shortened again");
    }

    #[test]
    fn what_fits_is_left_alone() {
        let mut structured = json!({"data": "x".repeat(10_000)});
        fit(&mut structured, "text", |_, _| {
            panic!("nothing is to be shrunk")
        });
        assert_eq!(size(&structured), structured.to_string().len());
    }
}
