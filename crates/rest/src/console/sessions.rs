//! The browsers in which the owner is signed in, and how to end those that should not be.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use grants::sign_in::{Session, SessionOverview, end_other_sessions, end_session, sessions};
use store::{Store, StoreError};

use super::words::{label, moment};
use super::{html, see_other, visit};
use crate::form::Form;
use crate::owner::blocking;
use crate::problem::Problem;
use crate::table::{Ask, Outcome};

#[derive(Template)]
#[template(path = "sessions.html")]
struct SessionsPage {
    session: String,
    rows: Vec<SessionRow>,
}

/// A session at a glance.
struct SessionRow {
    id: String,
    here: bool,
    browser: String,
    started: String,
    seen: String,
}

impl SessionRow {
    fn of(overview: SessionOverview, own: &Session) -> Self {
        Self {
            here: overview.id == own.id(),
            browser: label(&overview.browser),
            started: moment(&overview.started_at),
            seen: moment(&overview.last_used_at),
            id: overview.id,
        }
    }
}

/// `GET /sessions`
pub(super) async fn show(ask: Ask) -> Outcome {
    let Some(session) = visit::session(&ask).await? else {
        return Ok(visit::to_sign_in(&ask));
    };
    let found = blocking(ask.service, |service| {
        sessions(&*service.store, service.now())
            .map_err(|error| Problem::internal("the sessions could not be listed", &error))
    });
    let mut rows: Vec<SessionRow> = found
        .await?
        .into_iter()
        .map(|overview| SessionRow::of(overview, &session))
        .collect();
    // One's own first, whichever was used last.
    rows.sort_by_key(|row| !row.here);
    let session = visit::token(&session);
    html(StatusCode::OK, &SessionsPage { session, rows })
}

/// `POST /sessions/{id}/end`. One that has ended already is what was asked for.
pub(super) async fn end(ask: Ask) -> Outcome {
    let id = ask.part(0).to_owned();
    ended(ask, move |store, _, now| {
        end_session(store, &id, now).map(drop)
    })
    .await
}

/// `POST /sessions/end-others`
pub(super) async fn end_others(ask: Ask) -> Outcome {
    ended(ask, end_other_sessions).await
}

/// Ends what a form of this session asks to end, given the name of the session itself.
async fn ended(
    mut ask: Ask,
    end: impl FnOnce(&dyn Store, &str, contract::time::Instant) -> Result<(), StoreError>
    + Send
    + 'static,
) -> Outcome {
    let form = Form::read(&mut ask).await?;
    let Some(session) = visit::session(&ask).await? else {
        return Ok(see_other("/sign-in"));
    };
    visit::check(&session, &ask, &form)?;
    blocking(Arc::clone(&ask.service), move |service| {
        end(&*service.store, session.id(), service.now())
            .map_err(|error| Problem::internal("a session could not be ended", &error))
    })
    .await?;
    Ok(see_other("/sessions"))
}
