//! JSON-RPC batches: each message is answered as if it had come alone, and the answers form one list.

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use mcp::{HttpSettings, Server};

use super::errors::{self, ReceivedBody};
use crate::problem::Problem;

/// Tool results bound themselves; this limit catches a defect.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Answers all entries in order. A problem with the request itself is reported once.
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
            answers.push(Bytes::from(error));
            continue;
        }
        let received = ReceivedBody {
            is_json: true,
            body: Bytes::copy_from_slice(entry),
        };
        let request = Request::from_parts(parts.clone(), Body::from(received.body.clone()));
        let response = mcp::serve_http(server.clone(), settings, request).await;
        let response = errors::normalize(response.map(Body::new), &received).await?;
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
    Ok(errors::json(StatusCode::OK, list))
}

pub(super) fn refused(error: String) -> Response {
    errors::json(StatusCode::BAD_REQUEST, error)
}
