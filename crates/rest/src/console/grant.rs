//! One grant: what it gives, what was read under it, and its end.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use contract::error::ErrorCode;
use contract::grant::Grant;
use contract::handle::RecordHandle;
use grants::{DisclosedCall, Overview, ShowError, State, Wording};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::words::{label, moment, whole};
use super::{html, see_other, visit};
use crate::form::Form;
use crate::owner::blocking;
use crate::problem::Problem;
use crate::service::Service;
use crate::table::{Ask, Outcome};

/// As many calls are shown.
const CALLS: usize = 100;
/// As many records of one call are shown.
const RECORDS: usize = 20;
/// As many streams of a grant, and names of each list, are shown at a glance.
const NAMES: usize = 12;
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

#[derive(Template)]
#[template(path = "grant.html")]
struct GrantPage {
    session: String,
    grant: GrantRow,
    parts: Vec<Part>,
    calls: Vec<CallRow>,
}

/// One grant, whole; a package has several.
struct Part {
    title: String,
    lines: Vec<String>,
}

impl Part {
    fn of(grant: &Grant, state: Option<&'static str>) -> Self {
        let wording = Wording::whole(whole);
        let title = wording.title(grant);
        Self {
            title: match state {
                None => title,
                Some(state) => format!("{}, {state}: {title}", grant.id()),
            },
            lines: wording.grant(grant),
        }
    }
}

/// A grant at a glance.
pub(super) struct GrantRow {
    pub(super) id: String,
    pub(super) client: String,
    /// The client's id, where it has a name beside it.
    pub(super) client_id: String,
    pub(super) state: &'static str,
    pub(super) open: bool,
    pub(super) waiting: bool,
    pub(super) issued: String,
    pub(super) ends: String,
    pub(super) used: String,
    /// What it may read, in words.
    pub(super) lines: Vec<String>,
    /// Whether the words leave something out that its page shows.
    pub(super) cut: bool,
}

impl GrantRow {
    pub(super) fn of(overview: &Overview) -> Self {
        let name = overview.client_name.as_deref();
        let lines = Wording::brief(NAMES, whole).overview(overview);
        Self {
            id: overview.id.clone(),
            client: label(name.unwrap_or(overview.client_id.as_str())),
            client_id: name.map_or_else(String::new, |_| label(overview.client_id.as_str())),
            state: state(overview),
            open: overview.state.is_open(),
            waiting: overview.state == State::Waiting,
            issued: moment(&overview.issued_at),
            ends: overview
                .expires_at
                .as_deref()
                .map(moment)
                .unwrap_or_default(),
            used: overview
                .last_used_at
                .as_deref()
                .map_or_else(|| "never".to_owned(), moment),
            cut: lines != Wording::whole(whole).overview(overview),
            lines,
        }
    }
}

fn state(overview: &Overview) -> &'static str {
    match overview.state {
        State::Live => "live",
        State::Waiting => "approved, and the application has not come for it yet",
        State::Lapsed => "over: the application never came for it, so it could read nothing",
        State::Expired => "expired",
        State::Revoked => "revoked",
        State::Invalid => "not valid",
    }
}

/// One call that disclosed something.
struct CallRow {
    at: String,
    operation: String,
    fields: String,
    records: Vec<RecordLink>,
    more: usize,
}

struct RecordLink {
    handle: String,
    path: String,
}

impl CallRow {
    fn of(call: &DisclosedCall) -> Self {
        Self {
            at: moment(&call.at),
            operation: label(&call.operation),
            fields: whole(&call.fields.join(", ")),
            records: call
                .records
                .iter()
                .take(RECORDS)
                .map(|text| link(text))
                .collect(),
            more: call.records.len().saturating_sub(RECORDS),
        }
    }
}

fn link(handle: &str) -> RecordLink {
    let parsed = RecordHandle::parse(handle).ok();
    let path = parsed.and_then(|handle| {
        let part = |text: &str| utf8_percent_encode(text, SEGMENT).to_string();
        let (connection, stream) = (part(handle.connection()?), part(handle.stream()));
        Some(format!(
            "/records/{connection}/{stream}/{}",
            part(handle.record())
        ))
    });
    RecordLink {
        handle: whole(handle),
        path: path.unwrap_or_default(),
    }
}

/// `GET /grants/{id}`
pub(super) async fn show(ask: Ask) -> Outcome {
    let Some(session) = visit::session(&ask).await? else {
        return Ok(visit::to_sign_in(&ask));
    };
    let id = ask.part(0).to_owned();
    let shown = blocking(ask.service, move |service| {
        let flushed = service.disclosures.flush();
        flushed.map_err(|error| Problem::internal("disclosures are not written", &error))?;
        let shown = grants::show(&*service.store, &id, service.now(), CALLS);
        let shown = shown.map_err(|error| problem(&error))?;
        let parts = parts(service, &shown.overview)?;
        Ok((shown, parts))
    });
    let (shown, parts) = shown.await?;
    html(
        StatusCode::OK,
        &GrantPage {
            session: visit::token(&session),
            grant: GrantRow::of(&shown.overview),
            parts,
            calls: shown.disclosures.iter().map(CallRow::of).collect(),
        },
    )
}

/// The grants of a package, each with its own state; a grant alone.
fn parts(service: &Service, overview: &Overview) -> Result<Vec<Part>, Problem> {
    if let [grant] = overview.grants.as_slice() {
        return Ok(vec![Part::of(grant, None)]);
    }
    let mut parts = Vec::new();
    for grant in &overview.grants {
        let own = grants::show(&*service.store, grant.id().as_str(), service.now(), 0);
        let own = own.map_err(|error| problem(&error))?;
        parts.push(Part::of(grant, Some(state(&own.overview))));
    }
    Ok(parts)
}

/// `POST /grants/{id}/revoke`
pub(super) async fn revoke(mut ask: Ask) -> Outcome {
    let form = Form::read(&mut ask).await?;
    let Some(session) = visit::session(&ask).await? else {
        return Ok(see_other("/sign-in"));
    };
    visit::check(&session, &ask, &form)?;
    let id = ask.part(0).to_owned();
    blocking(Arc::clone(&ask.service), move |service| {
        grants::revoke(&*service.store, &id, service.now()).map_err(|error| problem(&error))
    })
    .await?;
    Ok(see_other("/"))
}

fn problem(error: &ShowError) -> Problem {
    match error {
        ShowError::Unknown(_) => Problem::new(ErrorCode::NotFound, "there is no such grant"),
        ShowError::Store(error) => Problem::internal("a grant could not be looked up", error),
    }
}
