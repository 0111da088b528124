//! Requests that are not JSON-RPC messages. The protocol library refuses them in plain text; here they become a
//! structured error where the request is wrong, and a JSON-RPC error where the message is.

use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use contract::error::{ErrorCode, ReadError};
use serde_json::Value;

use crate::problem::Problem;

/// The largest error of the library.
const MAX_BYTES: usize = 1024 * 1024;

pub(super) struct ReceivedBody {
    pub(super) is_json: bool,
    pub(super) body: Bytes,
}

pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE);
    media_type.is_some_and(|value| value.as_bytes().starts_with(b"application/json"))
}

/// Passes an answer through, unless it is an error without a body.
pub(super) async fn normalize(
    response: Response,
    received: &ReceivedBody,
) -> Result<Response, Problem> {
    let status = response.status();
    if !status.is_client_error() {
        return Ok(response);
    }
    if response.headers().contains_key(header::CONTENT_TYPE) {
        return with_null_id(response).await;
    }
    match status {
        StatusCode::NOT_ACCEPTABLE => Err(refusal(
            status,
            "the Accept header does not name what may be sent",
            "send Accept: application/json, text/event-stream",
        )),
        StatusCode::UNSUPPORTED_MEDIA_TYPE if received.is_json => {
            let error = mcp::no_message(&received.body);
            Ok(json(StatusCode::BAD_REQUEST, error))
        }
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
        _ => Err(Problem::from_status(status)),
    }
}

fn refusal(status: StatusCode, message: &str, hint: &str) -> Problem {
    let error = ReadError::new(ErrorCode::InvalidRequest, message).with_hint(hint);
    Problem::from(error).with_status(status)
}

pub(super) fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// Adds the `"id": null` that JSON-RPC requires and the library leaves out.
async fn with_null_id(response: Response) -> Result<Response, Problem> {
    let (mut parts, body) = response.into_parts();
    let lost = |error| Problem::internal("an answer was lost", &error);
    let bytes = to_bytes(body, MAX_BYTES).await.map_err(lost)?;
    let bytes = match serde_json::from_slice::<Value>(&bytes) {
        Ok(Value::Object(mut error)) if error.contains_key("jsonrpc") => {
            error.entry("id").or_insert(Value::Null);
            parts.headers.remove(header::CONTENT_LENGTH);
            Bytes::from(Value::Object(error).to_string())
        }
        _ => bytes,
    };
    Ok(Response::from_parts(parts, Body::from(bytes)))
}
