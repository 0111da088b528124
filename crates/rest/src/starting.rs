//! What is answered while the store is opened: that the process lives. Where it brings an index along, that takes a while.

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use serde_json::{Value, json};

use crate::problem::RETRY_SECONDS;

/// `/healthz` as ever; all else is to be asked again in a moment.
pub fn starting_router() -> Router {
    let alive = async || answer(StatusCode::OK, &json!({"status": "alive"}));
    let later = async || {
        let error = json!({"code": "storage_unavailable", "message": "this server is about to start", "hint": "ask again in a moment"});
        answer(StatusCode::SERVICE_UNAVAILABLE, &json!({ "error": error }))
    };
    Router::new().route("/healthz", get(alive)).fallback(later)
}

/// The connection ends with it: what listens next has it not.
fn answer(status: StatusCode, body: &Value) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CONNECTION, "close"),
        (header::RETRY_AFTER, RETRY_SECONDS),
    ];
    let mut response = (status, headers, body.to_string()).into_response();
    if status.is_success() {
        response.headers_mut().remove(header::RETRY_AFTER);
    }
    response
}
