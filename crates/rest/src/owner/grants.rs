//! Grants, packages and owner tokens, from their issue to their end, and the log of what was disclosed.

use std::time::Duration;

use axum::http::StatusCode;
use contract::error::ErrorCode;
use contract::time::Instant;
use grants::{IssueError, Recipient, Selection, SelectionError, ShowError};

use super::wire::{Asked, Broken, NewGrant, NewOwnerToken, Verified};
use super::{blocking, question, refused, store_problem, with_mistakes};
use crate::problem::{self, Problem};
use crate::service::Service;
use crate::table::{Ask, Outcome};

/// As many calls are shown unless said otherwise.
const CALLS: usize = 20;

pub(super) async fn list(ask: Ask) -> Outcome {
    let all = blocking(ask.service, |service| {
        written(service)?;
        let all = grants::list(&*service.store, service.now());
        all.map_err(|error| store_problem(&error))
    });
    problem::json(StatusCode::OK, &all.await?)
}

pub(super) async fn create(mut ask: Ask) -> Outcome {
    let new: NewGrant = question(&mut ask).await?;
    let expires = match &new.expires_at {
        Some(text) => Some(Instant::parse(text).ok_or_else(|| refused("expires_at is no time"))?),
        None => None,
    };
    let issued = blocking(ask.service, move |service| {
        let selection = match new.selection {
            Asked::Flags(flags) => Selection::from_flags(flags),
            Asked::Details(text) => Selection::from_details(&text),
        };
        let selection = selection.map_err(|mistakes| mistaken(&mistakes))?;
        let clock = &*service.reading.clock;
        let client = new.client.as_deref().map(Recipient::Client);
        let client = client.unwrap_or(Recipient::Local);
        grants::issue(&*service.store, &selection, client, expires, clock)
            .map_err(|error| issue_problem(&error))
    });
    problem::json(StatusCode::OK, &issued.await?)
}

pub(super) async fn show(ask: Ask) -> Outcome {
    let calls = match ask.params.text("calls") {
        Some(text) => text.parse().map_err(|_| refused("calls is a number"))?,
        None => CALLS,
    };
    let id = ask.params.raw("id").unwrap_or_default().to_owned();
    let shown = blocking(ask.service, move |service| {
        written(service)?;
        grants::show(&*service.store, &id, service.now(), calls)
            .map_err(|error| show_problem(&error))
    });
    problem::json(StatusCode::OK, &shown.await?)
}

pub(super) async fn revoke(ask: Ask) -> Outcome {
    let id = ask.params.raw("id").unwrap_or_default().to_owned();
    let revoking = blocking(ask.service, move |service| {
        grants::revoke(&*service.store, &id, service.now()).map_err(|error| show_problem(&error))
    });
    problem::json(StatusCode::OK, &revoking.await?)
}

pub(super) async fn tokens(ask: Ask) -> Outcome {
    let all = blocking(ask.service, |service| {
        let all = grants::owner_tokens(&*service.store, service.now());
        all.map_err(|error| store_problem(&error))
    });
    problem::json(StatusCode::OK, &all.await?)
}

pub(super) async fn token(mut ask: Ask) -> Outcome {
    let new: NewOwnerToken = question(&mut ask).await?;
    let token = blocking(ask.service, move |service| {
        let life = Duration::from_secs(new.ttl_seconds);
        grants::owner_token(&*service.store, life, &*service.reading.clock)
            .map_err(|error| issue_problem(&error))
    });
    problem::json(StatusCode::OK, &token.await?)
}

pub(super) async fn verify(ask: Ask) -> Outcome {
    let verified = blocking(ask.service, |service| {
        written(service)?;
        let check = grants::verify(&*service.store).map_err(|error| store_problem(&error))?;
        Ok(Verified {
            entries: check.entries,
            dropped: check.dropped,
            broken: check.broken.map(|broken| Broken {
                sequence: broken.sequence,
                reason: broken.reason,
            }),
        })
    });
    problem::json(StatusCode::OK, &verified.await?)
}

/// What was disclosed up to now is written first, so that the owner sees all of it.
fn written(service: &Service) -> Result<(), Problem> {
    let flushed = service.disclosures.flush();
    flushed.map_err(|error| Problem::new(ErrorCode::InternalError, error.to_string()))
}

fn mistaken(mistakes: &SelectionError) -> Problem {
    let problem = refused(mistakes.to_string());
    with_mistakes(problem, mistakes.0.iter().map(ToString::to_string))
}

fn issue_problem(error: &IssueError) -> Problem {
    match error {
        IssueError::Selection(mistakes) => mistaken(mistakes),
        IssueError::Store(error) => store_problem(error),
        other => refused(other.to_string()),
    }
}

fn show_problem(error: &ShowError) -> Problem {
    match error {
        ShowError::Unknown(_) => Problem::new(ErrorCode::NotFound, error.to_string()),
        ShowError::Store(error) => store_problem(error),
    }
}
