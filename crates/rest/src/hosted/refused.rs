//! Requests that are no messages. The protocol library refuses them in plain text; here they are told like everything
//! else: what is wrong with the request in the structured error, what is wrong with the message as JSON-RPC says it.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use contract::error::{ErrorCode, ReadError};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::problem::Problem;

/// What a request brought.
pub(super) struct Sent {
    /// Whether it says so.
    pub(super) is_json: bool,
    pub(super) body: Bytes,
}

/// Whether the body is declared as JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE);
    media_type.is_some_and(|value| value.as_bytes().starts_with(b"application/json"))
}

/// The answer as it came, unless it is a refusal without a form.
pub(super) fn told(response: Response, sent: &Sent) -> Result<Response, Problem> {
    let status = response.status();
    if !status.is_client_error() || response.headers().contains_key(header::CONTENT_TYPE) {
        return Ok(response);
    }
    match status {
        StatusCode::NOT_ACCEPTABLE => Err(refusal(
            status,
            "the Accept header does not name what may be sent",
            "send Accept: application/json, text/event-stream",
        )),
        StatusCode::UNSUPPORTED_MEDIA_TYPE if sent.is_json => Ok(no_message(&sent.body)),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => Err(refusal(
            status,
            "the body is not declared as JSON",
            "send Content-Type: application/json",
        )),
        StatusCode::BAD_REQUEST => Err(refusal(
            status,
            "the MCP-Protocol-Version header names no revision that is spoken here",
            "send 2026-07-28, 2025-11-25, 2025-06-18 or 2025-03-26, or leave the header out",
        )),
        _ => Err(Problem::of_status(status)),
    }
}

fn refusal(status: StatusCode, message: &str, hint: &str) -> Problem {
    let error = ReadError::new(ErrorCode::InvalidRequest, message).with_hint(hint);
    Problem::from(error).with_status(status)
}

/// A body that is no JSON, or no single message of JSON-RPC.
fn no_message(sent: &Bytes) -> Response {
    let (code, message, next) = match serde_json::from_slice::<IgnoredAny>(sent) {
        Err(_) => (
            -32700,
            "the body is not JSON",
            "send one JSON-RPC message as JSON",
        ),
        Ok(_) if sent.trim_ascii_start().starts_with(b"[") => (
            -32600,
            "the body is a list of messages",
            "send each message in a request of its own",
        ),
        Ok(_) => (
            -32600,
            "the body is no JSON-RPC message",
            r#"send {"jsonrpc":"2.0","id":1,"method":…}, with an id that is a number or a text"#,
        ),
    };
    let of = ErrorCode::InvalidRequest;
    let error =
        json!({"type": of.error_type(), "code": of.as_str(), "message": message, "next": next});
    let body = json!({"jsonrpc": "2.0", "id": Value::Null,
        "error": {"code": code, "message": message, "data": {"error": error}}});
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
