//! Health, readiness, metrics, and the `OpenAPI` document.

use axum::http::{StatusCode, header};
use axum::response::IntoResponse as _;
use contract::error::{ErrorCode, ReadError};
use serde_json::{Value, json};
use store::StoreError;
use store::meaning::MeaningStatus;
use store::search::IndexStatus;

use crate::problem::{self, Problem};
use crate::table::{HandlerResult, RequestContext};

/// The path of the protected resource metadata (RFC 9728).
pub(crate) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

pub(crate) async fn healthz(_: RequestContext) -> HandlerResult {
    problem::json(StatusCode::OK, &json!({"status": "alive"}))
}

pub(crate) async fn readyz(context: RequestContext) -> HandlerResult {
    if context.service.is_draining() {
        return Err(not_ready("this server is about to end"));
    }
    context.service.refuse_rolled_back()?;
    let store = context.service.store.clone();
    let looked = move || {
        store.check_ready()?;
        store.token_candidates(Default::default())?;
        Ok((store.index_status()?, store.meaning_status()?))
    };
    let mut ready = json!({"status": "ready"});
    match read::run_blocking(looked).await {
        Ok(Ok((index, meaning))) => {
            ready["index"] = index_state(&index);
            if let Some(meaning) = meaning {
                ready["meaning"] = meaning_state(&meaning);
            }
        }
        Ok(Err(StoreError::IndexBuilding { .. })) => {
            return Err(not_ready("the index of this node is being built"));
        }
        Ok(Err::<_, StoreError>(error)) => {
            tracing::error!(cause = %error, "this server is not ready");
            return Err(not_ready(error.in_public()));
        }
        Err(error) => return Err(Problem::internal("readyz", &error)),
    }
    if let Some(trouble) = context.service.disclosures.trouble() {
        tracing::error!(
            waiting = trouble.waiting,
            cause = trouble.detail,
            "disclosures cannot be written"
        );
        let why = format!("disclosures cannot be written: {}", trouble.in_public);
        return Err(not_ready(why));
    }
    problem::json(StatusCode::OK, &ready)
}

/// Anybody may read why; what to do about it stands in the log.
fn not_ready(why: impl Into<String>) -> Problem {
    ReadError::new(ErrorCode::StorageUnavailable, why)
        .with_hint(
            "ask again in a moment; the log of this server says what is wrong and what helps",
        )
        .into()
}

/// The progress of the vectors, without counts.
fn meaning_state(status: &MeaningStatus) -> Value {
    if status.embedded >= status.records {
        return json!({"state": "current"});
    }
    let percent = status
        .embedded
        .saturating_mul(100)
        .checked_div(status.records);
    json!({"state": "embedding", "percent": percent.unwrap_or(0).min(99)})
}

/// The progress of the index, without counts: anybody may read this.
fn index_state(status: &IndexStatus) -> Value {
    if status.building {
        let percent = status.taken.saturating_mul(100).checked_div(status.written);
        let percent = percent.unwrap_or(0).min(99);
        return json!({"state": "building", "percent": percent});
    }
    if status.rebuilding > 0 {
        let done = status.records.saturating_sub(status.rebuilding);
        let percent = done.saturating_mul(100).checked_div(status.records);
        let percent = percent.unwrap_or(0).min(99);
        return json!({"state": "reindexing", "percent": percent});
    }
    json!({"state": "current"})
}

pub(crate) async fn metrics(context: RequestContext) -> HandlerResult {
    let trouble = context.service.disclosures.trouble().is_some();
    let text = context.service.metrics.text(trouble);
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

pub(crate) async fn openapi(context: RequestContext) -> HandlerResult {
    let document =
        crate::openapi::document(&context.service.public_url, context.service.has_model());
    problem::json(StatusCode::OK, &document)
}
