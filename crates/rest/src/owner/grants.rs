//! Grants, packages and owner tokens, from their issue to their end, and the log of what was disclosed.

use std::time::Duration;

use contract::error::ErrorCode;
use contract::grant::AccessMode;
use contract::id::GrantId;
use contract::time::Instant;
use grants::receipts::write_receipts;
use grants::{IssueError, Recipient, Selection, ShowError};

use super::export::LINES;
use super::progress::stream_bytes;
use super::wire::{GrantSelection, NewGrant, NewOwnerToken, Refusal};
use super::{OwnerProblem, answer, invalid_request, json_body};
use crate::problem::Problem;
use crate::service::Service;
use crate::table::{HandlerResult, RequestContext};

const CALLS: usize = 20;

pub(super) async fn list(context: RequestContext) -> HandlerResult {
    answer(context.service, |service| {
        flush_disclosures(service);
        Ok(grants::list(&*service.store, service.now())?)
    })
    .await
}

pub(super) async fn create(mut context: RequestContext) -> HandlerResult {
    let new: NewGrant = json_body(&mut context).await?;
    let expires = match &new.expires_at {
        Some(text) => {
            Some(Instant::parse(text).ok_or_else(|| invalid_request("expires_at is no time"))?)
        }
        None => None,
    };
    answer(context.service, move |service| {
        let selection = match new.selection {
            GrantSelection::Flags(flags) => Selection::from_flags(flags)?,
            GrantSelection::Details(text) => Selection::from_details(&text)?,
            GrantSelection::Template(name) => {
                let template = grants::template(&*service.store, &name, service.now())?;
                Selection::from_choice(template.streams, AccessMode::Continuous)
            }
        };
        let clock = &*service.reader_settings.clock;
        let client = new.client.as_deref().map(Recipient::Client);
        let client = client.unwrap_or(Recipient::Local);
        Ok(grants::issue(
            &*service.store,
            &selection,
            client,
            expires,
            clock,
        )?)
    })
    .await
}

pub(super) async fn show(context: RequestContext) -> HandlerResult {
    let calls = match context.params.text("calls") {
        Some(text) => text
            .parse()
            .map_err(|_| invalid_request("calls is a number"))?,
        None => CALLS,
    };
    let id = context.params.raw("id").unwrap_or_default().to_owned();
    answer(context.service, move |service| {
        flush_disclosures(service);
        Ok(grants::show(&*service.store, &id, service.now(), calls)?)
    })
    .await
}

pub(super) async fn revoke(context: RequestContext) -> HandlerResult {
    let id = context.params.raw("id").unwrap_or_default().to_owned();
    answer(context.service, move |service| {
        Ok(grants::revoke(&*service.store, &id, service.now())?)
    })
    .await
}

pub(super) async fn tokens(context: RequestContext) -> HandlerResult {
    answer(context.service, |service| {
        Ok(grants::owner_tokens(&*service.store, service.now())?)
    })
    .await
}

pub(super) async fn token(mut context: RequestContext) -> HandlerResult {
    let new: NewOwnerToken = json_body(&mut context).await?;
    answer(context.service, move |service| {
        let life = Duration::from_secs(new.ttl_seconds);
        let clock = &*service.reader_settings.clock;
        Ok(grants::owner_token(&*service.store, life, clock)?)
    })
    .await
}

pub(super) async fn verify(context: RequestContext) -> HandlerResult {
    answer(context.service, |service| {
        flush_disclosures(service);
        Ok(grants::verify(&*service.store)?)
    })
    .await
}

pub(super) async fn receipts(context: RequestContext) -> HandlerResult {
    let id = context.params.text("id").map(str::to_owned);
    let grant = id.map(|id| GrantId::parse(&id)).transpose();
    let grant = grant.map_err(|_| invalid_request("receipts are for one grant, or for all"))?;
    let service = context.service;
    stream_bytes(LINES, move |out| {
        flush_disclosures(&service);
        let (key, now) = (&service.reader_settings.sealing_key, service.now());
        let written = write_receipts(&*service.store, key, grant.as_ref(), now, out);
        written.map_err(|error| Refusal {
            message: error.to_string(),
            hints: Vec::new(),
        })
    })
    .await
}

/// Writes pending disclosures first, so that the owner sees all of them. What cannot be written keeps nobody from seeing
/// what is there: nothing was shown to a client that is not on disk, or sure to be.
pub(crate) fn flush_disclosures(service: &Service) {
    if let Err(error) = service.disclosures.flush() {
        tracing::warn!(cause = %error, "disclosures cannot be written");
    }
}

impl From<IssueError> for OwnerProblem {
    fn from(error: IssueError) -> Self {
        match error {
            IssueError::Selection(mistakes) => mistakes.into(),
            IssueError::Store(error) => error.into(),
            other => invalid_request(other.to_string()).into(),
        }
    }
}

impl From<ShowError> for OwnerProblem {
    fn from(error: ShowError) -> Self {
        match error {
            ShowError::Unknown(_) => Problem::new(ErrorCode::NotFound, error.to_string()).into(),
            ShowError::Store(error) => error.into(),
        }
    }
}
