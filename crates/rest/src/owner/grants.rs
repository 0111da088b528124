//! Grants, packages and owner tokens, from their issue to their end, and the log of what was disclosed.

use std::time::Duration;

use axum::http::StatusCode;
use contract::error::ErrorCode;
use contract::time::Instant;
use grants::{IssueError, Recipient, Selection, SelectionError, ShowError};

use super::wire::{Broken, GrantSelection, NewGrant, NewOwnerToken, Verified};
use super::{blocking, invalid_request, json_body, store_problem, with_mistakes};
use crate::problem::{self, Problem};
use crate::service::Service;
use crate::table::{HandlerResult, RequestContext};

/// How many calls are shown by default.
const CALLS: usize = 20;

pub(super) async fn list(context: RequestContext) -> HandlerResult {
    let all = blocking(context.service, |service| {
        flush_disclosures(service);
        let all = grants::list(&*service.store, service.now());
        all.map_err(|error| store_problem(&error))
    });
    problem::json(StatusCode::OK, &all.await?)
}

pub(super) async fn create(mut context: RequestContext) -> HandlerResult {
    let new: NewGrant = json_body(&mut context).await?;
    let expires = match &new.expires_at {
        Some(text) => {
            Some(Instant::parse(text).ok_or_else(|| invalid_request("expires_at is no time"))?)
        }
        None => None,
    };
    let issued = blocking(context.service, move |service| {
        let selection = match new.selection {
            GrantSelection::Flags(flags) => Selection::from_flags(flags),
            GrantSelection::Details(text) => Selection::from_details(&text),
        };
        let selection = selection.map_err(|mistakes| selection_problem(&mistakes))?;
        let clock = &*service.reader_settings.clock;
        let client = new.client.as_deref().map(Recipient::Client);
        let client = client.unwrap_or(Recipient::Local);
        grants::issue(&*service.store, &selection, client, expires, clock)
            .map_err(|error| issue_problem(&error))
    });
    problem::json(StatusCode::OK, &issued.await?)
}

pub(super) async fn show(context: RequestContext) -> HandlerResult {
    let calls = match context.params.text("calls") {
        Some(text) => text
            .parse()
            .map_err(|_| invalid_request("calls is a number"))?,
        None => CALLS,
    };
    let id = context.params.raw("id").unwrap_or_default().to_owned();
    let shown = blocking(context.service, move |service| {
        flush_disclosures(service);
        grants::show(&*service.store, &id, service.now(), calls)
            .map_err(|error| show_problem(&error))
    });
    problem::json(StatusCode::OK, &shown.await?)
}

pub(super) async fn revoke(context: RequestContext) -> HandlerResult {
    let id = context.params.raw("id").unwrap_or_default().to_owned();
    let revoking = blocking(context.service, move |service| {
        grants::revoke(&*service.store, &id, service.now()).map_err(|error| show_problem(&error))
    });
    problem::json(StatusCode::OK, &revoking.await?)
}

pub(super) async fn tokens(context: RequestContext) -> HandlerResult {
    let all = blocking(context.service, |service| {
        let all = grants::owner_tokens(&*service.store, service.now());
        all.map_err(|error| store_problem(&error))
    });
    problem::json(StatusCode::OK, &all.await?)
}

pub(super) async fn token(mut context: RequestContext) -> HandlerResult {
    let new: NewOwnerToken = json_body(&mut context).await?;
    let token = blocking(context.service, move |service| {
        let life = Duration::from_secs(new.ttl_seconds);
        grants::owner_token(&*service.store, life, &*service.reader_settings.clock)
            .map_err(|error| issue_problem(&error))
    });
    problem::json(StatusCode::OK, &token.await?)
}

pub(super) async fn verify(context: RequestContext) -> HandlerResult {
    let verified = blocking(context.service, |service| {
        flush_disclosures(service);
        let check = grants::verify(&*service.store).map_err(|error| store_problem(&error))?;
        Ok(Verified {
            entries: check.entries,
            dropped: check.dropped,
            waiting: check.waiting,
            broken: check.broken.map(|broken| Broken {
                sequence: broken.sequence,
                reason: broken.reason,
            }),
        })
    });
    problem::json(StatusCode::OK, &verified.await?)
}

/// Writes pending disclosures first, so that the owner sees all of them. What cannot be written keeps nobody from seeing
/// what is there: nothing was shown to a client that is not on disk, or sure to be.
pub(crate) fn flush_disclosures(service: &Service) {
    if let Err(error) = service.disclosures.flush() {
        tracing::warn!(cause = %error, "disclosures cannot be written");
    }
}

fn selection_problem(mistakes: &SelectionError) -> Problem {
    let problem = invalid_request(mistakes.to_string());
    with_mistakes(problem, mistakes.0.iter().map(ToString::to_string))
}

fn issue_problem(error: &IssueError) -> Problem {
    match error {
        IssueError::Selection(mistakes) => selection_problem(mistakes),
        IssueError::Store(error) => store_problem(error),
        other => invalid_request(other.to_string()),
    }
}

fn show_problem(error: &ShowError) -> Problem {
    match error {
        ShowError::Unknown(_) => Problem::new(ErrorCode::NotFound, error.to_string()),
        ShowError::Store(error) => store_problem(error),
    }
}
