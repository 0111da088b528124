//! The page of a grant: what it allows, what was read under it, and how to revoke it.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use contract::error::ErrorCode;
use contract::grant::Grant;
use contract::handle::RecordHandle;
use grants::{DisclosedCall, Overview, ShowError, State, TOKENS_ENDED, Wording};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use store::grants::RevocationReason;

use super::format::{format_time, label, visible};
use super::frame::{Frame, Section};
use super::{html, see_other, session};
use crate::form::Form;
use crate::owner::blocking;
use crate::owner::grants::flush_disclosures;
use crate::problem::Problem;
use crate::service::Service;
use crate::table::{HandlerResult, RequestContext};

const CALLS: usize = 100;
const RECORDS: usize = 20;
/// How many streams, and names per list, the summary shows.
const NAMES: usize = 12;
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

#[derive(Template)]
#[template(path = "grant.html")]
struct GrantPage {
    frame: Frame,
    grant: GrantRow,
    parts: Vec<Part>,
    calls: Vec<CallRow>,
}

/// One grant in full; a package has several.
struct Part {
    title: String,
    lines: Vec<String>,
}

impl Part {
    fn from_grant(grant: &Grant, state: Option<&'static str>) -> Self {
        let wording = Wording::whole(visible);
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

pub(super) struct GrantRow {
    pub(super) id: String,
    pub(super) client: String,
    /// The client's id, where `client` is its name.
    pub(super) client_id: String,
    pub(super) state: &'static str,
    pub(super) open: bool,
    pub(super) waiting: bool,
    pub(super) issued: String,
    pub(super) ends: String,
    pub(super) used: String,
    /// What it may read, in words.
    pub(super) lines: Vec<String>,
    /// Whether `lines` leaves out something that the grant's page shows.
    pub(super) cut: bool,
}

impl GrantRow {
    pub(super) fn from_overview(overview: &Overview) -> Self {
        let name = overview.client_name.as_deref();
        let lines = Wording::brief(NAMES, visible).overview(overview);
        Self {
            id: overview.id.clone(),
            client: label(name.unwrap_or(overview.client_id.as_str())),
            client_id: name.map_or_else(String::new, |_| label(overview.client_id.as_str())),
            state: state(overview),
            open: overview.state.is_open(),
            waiting: overview.state == State::Waiting,
            issued: format_time(&overview.issued_at),
            ends: overview
                .expires_at
                .as_deref()
                .map(format_time)
                .unwrap_or_default(),
            used: overview
                .last_used_at
                .as_deref()
                .map_or_else(|| "never".to_owned(), format_time),
            cut: lines != Wording::whole(visible).overview(overview),
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
        State::Revoked if overview.revoked_reason == Some(RevocationReason::TokensEnded) => {
            TOKENS_ENDED
        }
        State::Revoked => "revoked",
        State::Invalid => "not valid",
    }
}

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
    fn from_call(call: &DisclosedCall) -> Self {
        Self {
            at: format_time(&call.at),
            operation: label(&call.operation),
            fields: visible(&call.fields.join(", ")),
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
        handle: visible(handle),
        path: path.unwrap_or_default(),
    }
}

/// `GET /grants/{id}`
pub(super) async fn show(context: RequestContext) -> HandlerResult {
    let Some(session) = session::session(&context).await? else {
        return Ok(session::to_sign_in(&context));
    };
    let id = context.part(0).to_owned();
    let shown = blocking(context.service, move |service| {
        flush_disclosures(service);
        let shown = grants::show(&*service.store, &id, service.now(), CALLS);
        let shown = shown.map_err(|error| problem(&error))?;
        let parts = parts(service, &shown.overview)?;
        Ok((shown, parts))
    });
    let (shown, parts) = shown.await?;
    html(
        StatusCode::OK,
        &GrantPage {
            frame: Frame::new(&session, Section::Grants),
            grant: GrantRow::from_overview(&shown.overview),
            parts,
            calls: shown.disclosures.iter().map(CallRow::from_call).collect(),
        },
    )
}

/// The grants of a package, each with its state; or the one grant.
fn parts(service: &Service, overview: &Overview) -> Result<Vec<Part>, Problem> {
    if let [grant] = overview.grants.as_slice() {
        return Ok(vec![Part::from_grant(grant, None)]);
    }
    let mut parts = Vec::new();
    for grant in &overview.grants {
        let own = grants::show(&*service.store, grant.id().as_str(), service.now(), 0);
        let own = own.map_err(|error| problem(&error))?;
        parts.push(Part::from_grant(grant, Some(state(&own.overview))));
    }
    Ok(parts)
}

/// `POST /grants/{id}/revoke`
pub(super) async fn revoke(mut context: RequestContext) -> HandlerResult {
    let form = Form::read(&mut context).await?;
    let Some(session) = session::session(&context).await? else {
        return Ok(see_other("/sign-in"));
    };
    session::check_form(&session, &context, &form)?;
    let id = context.part(0).to_owned();
    blocking(Arc::clone(&context.service), move |service| {
        grants::revoke(&*service.store, &id, service.now()).map_err(|error| problem(&error))
    })
    .await?;
    Ok(see_other("/"))
}

pub(super) fn problem(error: &ShowError) -> Problem {
    match error {
        ShowError::Unknown(_) => Problem::new(ErrorCode::NotFound, "there is no such grant"),
        ShowError::Store(error) => Problem::internal("a grant could not be looked up", error),
    }
}
