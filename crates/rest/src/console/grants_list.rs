//! All grants: those that are open, and those that have ended.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use grants::{Overview, State};

use super::frame::{Frame, Section};
use super::grant::{GrantRow, names};
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
    /// Approved, and their applications have not come for them yet.
    waiting: Vec<GrantRow>,
    ended: Vec<GrantRow>,
}

/// `GET /grants`
pub(super) async fn show(context: RequestContext) -> HandlerResult {
    let session = session::signed_in(&context).await?;
    let listed = blocking(Arc::clone(&context.service), |service| {
        flush_disclosures(service);
        grants::list(&*service.store, service.now())
            .map_err(|error| Problem::internal("grants could not be listed", &error))
    });
    let listed = listed.await?;
    let names = names(&context.service);
    let (open, ended): (Vec<_>, Vec<_>) = listed.iter().partition(|one| one.state.is_open());
    let (live, waiting): (Vec<_>, Vec<_>) =
        open.into_iter().partition(|one| one.state == State::Live);
    let rows = |some: Vec<&Overview>| {
        some.into_iter()
            .map(|one| GrantRow::named(one, &names))
            .collect()
    };
    let page = GrantsPage {
        frame: Frame::new(&session, Section::Grants),
        mcp_url: format!("{}/mcp", context.service.public_url),
        live: rows(live),
        waiting: rows(waiting),
        ended: rows(ended),
    };
    html(StatusCode::OK, &page)
}
