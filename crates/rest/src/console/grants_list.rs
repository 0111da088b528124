//! All grants: those that are open, and those that have ended.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;

use super::frame::{Frame, Section};
use super::grant::GrantRow;
use super::{html, session};
use crate::owner::blocking;
use crate::owner::grants::flush_disclosures;
use crate::problem::Problem;
use crate::table::{HandlerResult, RequestContext};

#[derive(Template)]
#[template(path = "grants.html")]
struct GrantsPage {
    frame: Frame,
    mcp_url: String,
    live: Vec<GrantRow>,
    ended: Vec<GrantRow>,
}

/// `GET /grants`
pub(super) async fn show(context: RequestContext) -> HandlerResult {
    let Some(session) = session::session(&context).await? else {
        return Ok(session::to_sign_in(&context));
    };
    let listed = blocking(Arc::clone(&context.service), |service| {
        flush_disclosures(service);
        grants::list(&*service.store, service.now())
            .map_err(|error| Problem::internal("grants could not be listed", &error))
    });
    let listed = listed.await?;
    let (live, ended): (Vec<_>, Vec<_>) = listed.iter().partition(|one| one.state.is_open());
    let page = GrantsPage {
        frame: Frame::new(&session, Section::Grants),
        mcp_url: format!("{}/mcp", context.service.public_url),
        live: live.into_iter().map(GrantRow::from_overview).collect(),
        ended: ended.into_iter().map(GrantRow::from_overview).collect(),
    };
    html(StatusCode::OK, &page)
}
