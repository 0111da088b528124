//! The list of signed-in browsers, and ending their sessions.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use grants::sign_in::{Session, SessionOverview, end_other_sessions, end_session, sessions};
use store::{Store, StoreError};

use super::format::label;
use super::frame::{Frame, Section};
use super::moment::Moment;
use super::{html, see_other, session};
use crate::owner::blocking;
use crate::problem::Problem;
use crate::table::{HandlerResult, RequestContext};

#[derive(Template)]
#[template(path = "sessions.html")]
struct SessionsPage {
    frame: Frame,
    rows: Vec<SessionRow>,
}

struct SessionRow {
    id: String,
    here: bool,
    browser: String,
    started: Option<Moment>,
    seen: Option<Moment>,
}

impl SessionRow {
    fn from_overview(overview: SessionOverview, own: &Session) -> Self {
        Self {
            here: overview.id == own.id(),
            browser: label(&overview.browser),
            started: Moment::parse(&overview.started_at),
            seen: Moment::parse(&overview.last_used_at),
            id: overview.id,
        }
    }
}

/// `GET /sessions`
pub(super) async fn show(context: RequestContext) -> HandlerResult {
    let session = session::signed_in(&context).await?;
    let found = blocking(context.service, |service| {
        sessions(&*service.store, service.now())
            .map_err(|error| Problem::internal("the sessions could not be listed", &error))
    });
    let mut rows: Vec<SessionRow> = found
        .await?
        .into_iter()
        .map(|overview| SessionRow::from_overview(overview, &session))
        .collect();
    // This browser first, then by last use.
    rows.sort_by_key(|row| !row.here);
    let frame = Frame::new(&session, Section::Settings);
    html(StatusCode::OK, &SessionsPage { frame, rows })
}

/// `POST /sessions/{id}/end`. Ending an ended session succeeds.
pub(super) async fn end(context: RequestContext) -> HandlerResult {
    let id = context.part(0).to_owned();
    end_sessions(context, move |store, _, now| {
        end_session(store, &id, now).map(drop)
    })
    .await
}

/// `POST /sessions/end-others`
pub(super) async fn end_others(context: RequestContext) -> HandlerResult {
    end_sessions(context, end_other_sessions).await
}

/// Ends the sessions a form asks to end; `end` gets the id of the session that asks.
async fn end_sessions(
    mut context: RequestContext,
    end: impl FnOnce(&dyn Store, &str, contract::time::Instant) -> Result<(), StoreError>
    + Send
    + 'static,
) -> HandlerResult {
    let (session, _) = session::sent_form(&mut context, "/sign-in").await?;
    blocking(Arc::clone(&context.service), move |service| {
        end(&*service.store, session.id(), service.now())
            .map_err(|error| Problem::internal("a session could not be ended", &error))
    })
    .await?;
    Ok(see_other("/sessions"))
}
