//! This process's own routes as the resource server a tool asks, on behalf of the guest that was let in.

use axum::Router;
use axum::body::{Body as HttpBody, to_bytes};
use axum::extract::Request;
use axum::http::header;
use contract::error::{ErrorCode, ReadError};
use contract::upstream::{Answer, Asked, Body, Get, Upstream};
use tower::ServiceExt as _;

use super::Hosted;
use super::door::Guest;
use crate::auth::Caller;

/// Answers of routes are bounded by themselves; this bounds what a defect could do.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The routes, as one guest may use them.
pub(super) struct OwnReads {
    routes: Router,
    caller: Caller,
    public_url: String,
    request_id: String,
}

impl OwnReads {
    pub(super) fn new(hosted: &Hosted, guest: &Guest, request_id: &str) -> Self {
        Self {
            routes: hosted.reads.clone(),
            caller: guest.caller(),
            public_url: hosted.service.public_url.to_string(),
            request_id: request_id.to_owned(),
        }
    }

    async fn ask(&self, question: &Get) -> Result<Answer, ReadError> {
        let failed = |_| ReadError::internal();
        let request = Request::get(question.target())
            .header(header::HOST, "localhost")
            .header("request-id", &self.request_id)
            .extension(self.caller.clone())
            .body(HttpBody::empty());
        let request = request.map_err(|_| {
            ReadError::new(ErrorCode::InvalidArguments, "an argument cannot be sent")
        })?;
        let response = match self.routes.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), MAX_BYTES)
            .await
            .map_err(failed)?;
        Ok(Answer {
            status,
            request_id: Some(self.request_id.clone()),
            body: Body::of(&String::from_utf8_lossy(&bytes)),
        })
    }
}

impl Upstream for OwnReads {
    fn provider_url(&self) -> &str {
        &self.public_url
    }

    fn get(&self, question: Get) -> Asked<'_> {
        Box::pin(async move { self.ask(&question).await })
    }
}
