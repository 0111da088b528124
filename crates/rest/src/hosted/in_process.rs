//! This process's own `/v1` routes as the resource server that tools read from, with one caller's authority.

use axum::Router;
use axum::body::{Body as HttpBody, to_bytes};
use axum::extract::Request;
use axum::http::header;
use contract::error::{ErrorCode, ReadError};
use contract::upstream::{Answer, AnswerFuture, Get, Upstream};
use tower::ServiceExt as _;

use super::Hosted;
use super::caller::McpCaller;
use crate::auth::{self, Caller};

/// The largest answer a tool reads.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The routes, with the authority of one caller.
pub(super) struct InProcessReader {
    routes: Router,
    caller: Caller,
    public_url: String,
    has_model: bool,
    request_id: String,
}

impl InProcessReader {
    pub(super) fn new(hosted: &Hosted, caller: &McpCaller, request_id: &str) -> Self {
        Self {
            routes: hosted.reads.clone(),
            caller: caller.caller(),
            public_url: hosted.service.public_url.to_string(),
            has_model: hosted.service.has_model(),
            request_id: request_id.to_owned(),
        }
    }

    async fn send(&self, request_target: &Get) -> Result<Answer, ReadError> {
        let mut request = Request::get(request_target.sendable_target()?)
            .header(header::HOST, "localhost")
            .header("request-id", &self.request_id)
            .extension(self.caller.clone());
        if let Some(bytes) = request_target.max_bytes() {
            request = request.header(auth::MAX_BYTES, bytes.to_string());
        }
        if let Some(call) = request_target.call() {
            request = request.header(auth::CALL, call.to_string());
        }
        let request = request.body(HttpBody::empty());
        let request = request.map_err(|_| {
            ReadError::new(ErrorCode::InvalidArguments, "an argument cannot be sent")
        })?;
        let response = match self.routes.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let status = response.status().as_u16();
        // Our own bodies are complete, so only their size can go wrong.
        let bytes = to_bytes(response.into_body(), MAX_BYTES).await;
        let bytes = bytes.map_err(|error| {
            tracing::warn!(request_id = %self.request_id, %error, "an answer is too large for a tool");
            too_large()
        })?;
        Ok(Answer {
            status,
            request_id: Some(self.request_id.clone()),
            body: String::from_utf8_lossy(&bytes).into_owned(),
        })
    }
}

/// The same hint as for an answer of another server.
fn too_large() -> ReadError {
    let message = format!("the answer is larger than {MAX_BYTES} bytes");
    ReadError::new(ErrorCode::RsBadResponse, message)
        .with_hint("ask for less: a lower limit, or fields that leave the large ones out")
}

impl Upstream for InProcessReader {
    fn provider_url(&self) -> Option<String> {
        Some(self.public_url.clone())
    }

    fn may_search_by_meaning(&self) -> bool {
        self.has_model
    }

    fn pages_by_bytes(&self) -> bool {
        true
    }

    fn get(&self, request_target: Get) -> AnswerFuture<'_> {
        Box::pin(async move { self.send(&request_target).await })
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use contract::grant::Authority;
    use grants::TokenKind;

    use super::*;

    fn reads(bytes: usize) -> InProcessReader {
        let answer = move || async move { vec![b'1'; bytes] };
        InProcessReader {
            routes: Router::new().route("/v1/schema", get(answer)),
            caller: Caller::new(TokenKind::Client, Authority::Owner),
            has_model: false,
            public_url: "http://localhost".to_owned(),
            request_id: "req_1".to_owned(),
        }
    }

    #[tokio::test]
    async fn an_answer_that_is_too_large_is_told_with_what_to_ask_instead() {
        let error = reads(MAX_BYTES + 1).send(&Get::v1(["schema"])).await;
        let error = error.unwrap_err();
        assert_eq!(error.code, ErrorCode::RsBadResponse);
        assert!(error.message.contains("larger than"), "{}", error.message);
        let hint = error.hint.unwrap();
        assert!(hint.contains("limit") && hint.contains("fields"), "{hint}");
        assert!(reads(3).send(&Get::v1(["schema"])).await.is_ok());
    }
}
