//! What was sent: one message, several in a list, or what is no message and is told so.

use contract::error::ErrorCode;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// How many messages a list may hold.
const MOST: usize = 50;

/// The messages of a list, each as it was written; or why the list is not taken. What is no list is none.
pub fn batch(sent: &[u8]) -> Option<Result<Vec<&[u8]>, Value>> {
    if !sent.trim_ascii_start().starts_with(b"[") {
        return None;
    }
    let entries: Vec<&RawValue> = serde_json::from_slice(sent).ok()?;
    Some(match entries.len() {
        0 => Err(refusal(
            (-32600, Value::Null),
            "the list of messages is empty",
            "send at least one JSON-RPC message",
        )),
        count if count > MOST => Err(refusal(
            (-32600, Value::Null),
            &format!("the list holds {count} messages, and {MOST} is the most"),
            &format!("send at most {MOST} JSON-RPC messages at once"),
        )),
        _ => Ok(entries.iter().map(|entry| entry.get().as_bytes()).collect()),
    })
}

/// The error that answers what is no JSON, or no message of JSON-RPC.
pub fn no_message(sent: &[u8]) -> Value {
    match serde_json::from_slice::<Value>(sent) {
        Err(_) => refusal(
            (-32700, Value::Null),
            "this is not JSON",
            "send one JSON-RPC message as JSON",
        ),
        Ok(sent) => refusal(
            (-32600, id_of(&sent)),
            "this is no JSON-RPC message",
            r#"send {"jsonrpc":"2.0","id":1,"method":…}, with an id that is a number or a text"#,
        ),
    }
}

/// The error that answers `initialize` beside other messages: what comes after it depends on what was agreed.
pub fn not_alone(sent: &[u8]) -> Option<Value> {
    let sent: Value = serde_json::from_slice(sent).ok()?;
    (sent["method"] == "initialize").then(|| {
        refusal(
            (-32600, id_of(&sent)),
            "initialize stands in a list with other messages",
            "send initialize by itself, and the others after its answer",
        )
    })
}

/// The error that answers a line without end.
pub(crate) fn too_long(most: usize) -> Value {
    refusal(
        (-32600, Value::Null),
        "the line is longer than any message",
        &format!("send lines of at most {most} bytes"),
    )
}

/// The error that answers a message whose id another one of its list has.
pub(crate) fn id_taken(id: Value) -> Value {
    refusal(
        (-32600, id),
        "another message that is not answered yet has this id",
        "send each message with an id of its own",
    )
}

/// The id, where it is one; null stands for an id that cannot be read.
fn id_of(sent: &Value) -> Value {
    let id = sent.get("id").cloned().unwrap_or_default();
    match id {
        Value::String(_) | Value::Number(_) => id,
        _ => Value::Null,
    }
}

fn refusal((code, id): (i32, Value), message: &str, next: &str) -> Value {
    let of = ErrorCode::InvalidRequest;
    let error =
        json!({"type": of.error_type(), "code": of.as_str(), "message": message, "next": next});
    json!({"jsonrpc": "2.0", "id": id,
        "error": {"code": code, "message": message, "data": {"error": error}}})
}
