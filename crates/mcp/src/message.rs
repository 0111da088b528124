//! What was sent: one message, several in a list, or what is no message and is told so.

use contract::error::ErrorCode;
use rmcp::model::RequestId;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

const MOST: usize = 50;
const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;

/// The messages of a list, each as it was written; or the answer to a list that is not taken. What is no list is none.
pub fn batch(sent: &[u8]) -> Option<Result<Vec<&[u8]>, String>> {
    if !sent.trim_ascii_start().starts_with(b"[") {
        return None;
    }
    let entries: Vec<&RawValue> = serde_json::from_slice(sent).ok()?;
    Some(match entries.len() {
        0 => Err(refusal(
            INVALID_REQUEST,
            None,
            "the list of messages is empty",
            "send at least one JSON-RPC message",
        )),
        count if count > MOST => Err(refusal(
            INVALID_REQUEST,
            None,
            &format!("the list holds {count} messages, and {MOST} is the most"),
            &format!("send at most {MOST} JSON-RPC messages at once"),
        )),
        _ => Ok(entries.iter().map(|entry| entry.get().as_bytes()).collect()),
    })
}

/// The answer to what is no JSON, or no message of JSON-RPC.
pub fn no_message(sent: &[u8]) -> String {
    match serde_json::from_slice::<IgnoredAny>(sent) {
        Err(_) => refusal(
            PARSE_ERROR,
            None,
            "this is not JSON",
            "send one JSON-RPC message as JSON",
        ),
        Ok(_) => refusal(
            INVALID_REQUEST,
            Peek::new(sent).id(),
            "this is no JSON-RPC message",
            r#"send {"jsonrpc":"2.0","id":1,"method":…}, with an id that is a number or a text"#,
        ),
    }
}

/// The answer to `initialize` beside other messages: what comes after it depends on what was agreed.
pub fn not_alone(sent: &[u8]) -> Option<String> {
    let sent = Peek::new(sent);
    (sent.method() == Some("initialize".to_owned())).then(|| {
        refusal(
            INVALID_REQUEST,
            sent.id(),
            "initialize stands in a list with other messages",
            "send initialize by itself, and the others after its answer",
        )
    })
}

/// Whether it is a notification, of whatever method: those need no answer.
pub(crate) fn is_notification(sent: &[u8]) -> bool {
    let sent = Peek::new(sent);
    sent.method().is_some() && sent.id.is_none()
}

/// The answer to a line without end.
pub(crate) fn too_long(most: usize) -> String {
    refusal(
        INVALID_REQUEST,
        None,
        "the line is longer than any message",
        &format!("send lines of at most {most} bytes"),
    )
}

/// The answer to a message whose id another one of its list has.
pub(crate) fn id_taken(id: RequestId) -> String {
    refusal(
        INVALID_REQUEST,
        Some(id),
        "another message that is not answered yet has this id",
        "send each message with an id of its own",
    )
}

/// As much of a message as is needed to refuse it.
#[derive(Default, Deserialize)]
struct Peek<'a> {
    #[serde(borrow, default, deserialize_with = "as_written")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "as_written")]
    method: Option<&'a RawValue>,
}

/// A null is something that was sent, too.
fn as_written<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    Deserialize::deserialize(deserializer).map(Some)
}

impl<'a> Peek<'a> {
    fn new(sent: &'a [u8]) -> Self {
        serde_json::from_slice(sent).unwrap_or_default()
    }

    fn id(&self) -> Option<RequestId> {
        serde_json::from_str(self.id?.get()).ok()
    }

    fn method(&self) -> Option<String> {
        serde_json::from_str(self.method?.get()).ok()
    }
}

#[derive(Serialize)]
struct Refusal<'a> {
    jsonrpc: &'static str,
    /// Null stands for an id that cannot be read.
    id: Option<RequestId>,
    error: RpcError<'a>,
}

#[derive(Serialize)]
struct RpcError<'a> {
    code: i32,
    message: &'a str,
    data: ErrorData<'a>,
}

#[derive(Serialize)]
struct ErrorData<'a> {
    error: TypedError<'a>,
}

#[derive(Serialize)]
struct TypedError<'a> {
    r#type: &'static str,
    code: &'static str,
    message: &'a str,
    next: &'a str,
}

fn refusal(code: i32, id: Option<RequestId>, message: &str, next: &str) -> String {
    let of = ErrorCode::InvalidRequest;
    let error = TypedError {
        r#type: of.error_type(),
        code: of.as_str(),
        message,
        next,
    };
    let refusal = Refusal {
        jsonrpc: "2.0",
        id,
        error: RpcError {
            code,
            message,
            data: ErrorData { error },
        },
    };
    // Texts and numbers can always be written.
    serde_json::to_string(&refusal).unwrap_or_default()
}
