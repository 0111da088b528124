//! A list of messages in one request: each is answered as if it had come alone, and the answers go back as one list.

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use mcp::{HttpSettings, Server};
use serde_json::Value;

use super::refused::{self, Sent};
use crate::problem::Problem;

/// Answers of tools are bounded by themselves; this bounds what a defect could do.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Answers all entries in their order. What is wrong with the request itself is told once.
pub(super) async fn answer(
    server: &Server,
    settings: &HttpSettings,
    parts: &Parts,
    entries: &[&[u8]],
) -> Result<Response, Problem> {
    let mut answers = Vec::new();
    for entry in entries {
        let beside = || mcp::not_alone(entry);
        if let Some(error) = (entries.len() > 1).then(beside).flatten() {
            answers.push(Bytes::from(error.to_string()));
            continue;
        }
        let sent = Sent {
            is_json: true,
            body: Bytes::copy_from_slice(entry),
        };
        let request = Request::from_parts(parts.clone(), Body::from(sent.body.clone()));
        let response = mcp::serve_http(server.clone(), settings, request).await;
        let response = refused::told(response.map(Body::new), &sent).await?;
        if response.status() == StatusCode::ACCEPTED {
            continue;
        }
        let answer = to_bytes(response.into_body(), MAX_BYTES).await;
        answers.push(answer.map_err(|error| Problem::internal("an answer was lost", &error))?);
    }
    if answers.is_empty() {
        let mut accepted = Response::new(Body::empty());
        *accepted.status_mut() = StatusCode::ACCEPTED;
        return Ok(accepted);
    }
    let mut list = vec![b'['];
    list.extend(answers.join(&b','));
    list.push(b']');
    Ok(refused::json(StatusCode::OK, list))
}

/// A list that is not taken.
pub(super) fn refused(error: &Value) -> Response {
    refused::json(StatusCode::BAD_REQUEST, error.to_string())
}
