//! What there is to know of the server itself: that the process lives, whether it can serve, how to ask it, and, for
//! whoever runs it, its figures.

use axum::http::{StatusCode, header};
use axum::response::IntoResponse as _;
use contract::error::{ErrorCode, ReadError};
use serde_json::json;

use crate::problem::{self, Problem};
use crate::table::{Ask, Outcome};

/// Where the metadata of a protected resource stands (RFC 9728).
pub(crate) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

pub(crate) async fn healthz(_: Ask) -> Outcome {
    problem::json(StatusCode::OK, &json!({"status": "alive"}))
}

pub(crate) async fn readyz(ask: Ask) -> Outcome {
    let not_ready = |what: &'static str| {
        Problem::from(
            ReadError::new(ErrorCode::InternalError, what).with_hint("ask again in a moment"),
        )
        .with_status(StatusCode::SERVICE_UNAVAILABLE)
    };
    ask.service.refuse_rolled_back()?;
    let store = ask.service.store.clone();
    let read = read::run_blocking(move || store.token_candidates(Default::default())).await;
    match read {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => {
            tracing::error!(cause = %error, "the store cannot be read");
            return Err(not_ready("the store cannot be read"));
        }
        Err(error) => return Err(Problem::internal("readyz", &error)),
    }
    if let Some(trouble) = ask.service.disclosures.trouble() {
        tracing::error!(waiting = trouble.waiting, "disclosures cannot be written");
        return Err(not_ready("disclosures cannot be written"));
    }
    problem::json(StatusCode::OK, &json!({"status": "ready"}))
}

pub(crate) async fn metrics(ask: Ask) -> Outcome {
    let trouble = ask.service.disclosures.trouble().is_some();
    let text = ask.service.metrics.text(trouble);
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

pub(crate) async fn openapi(ask: Ask) -> Outcome {
    let document = crate::openapi::document(&ask.service.public_url);
    problem::json(StatusCode::OK, &document)
}
