//! The page on which the owner decides about what a client asks for beyond its grant: the difference alone, and for how long.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use contract::error::{ErrorCode, ReadError};
use contract::id::{FieldName, GrantId};
use grants::Wording;
use grants::step_up::{self, Allowance, AskError, ExtendedRow, Proposal};

use super::format::{label, visible};
use super::frame::{Frame, Section};
use super::{html, see_other, session};
use crate::notify::Event;
use crate::owner::blocking;
use crate::problem::Problem;
use crate::service::Service;
use crate::table::{HandlerResult, RequestContext};

#[derive(Template)]
#[template(path = "ask.html")]
struct AskPage {
    frame: Frame,
    id: String,
    grant: String,
    client: String,
    /// What was asked for, as the client named it.
    asked: String,
    rows: Vec<RowLine>,
    /// Whether the grant limits its own records, so that it could be thought to limit these alike.
    has_limits: bool,
    digest: String,
}

struct RowLine {
    source: String,
    stream: String,
    fields: String,
    /// All that limits these records.
    limits: Vec<String>,
}

#[derive(Template)]
#[template(path = "ask_decided.html")]
struct DecidedPage {
    frame: Frame,
    grant: String,
    words: &'static str,
}

pub(super) fn problem(error: AskError) -> Problem {
    match error {
        AskError::Store(error) => Problem::internal("an ask could not be decided", &error),
        AskError::Unknown => ReadError::new(ErrorCode::NotFound, error.to_string()).into(),
        AskError::Nothing | AskError::Changed => {
            ReadError::new(ErrorCode::InvalidRequest, error.to_string())
                .with_hint("load the page of the ask again")
                .into()
        }
    }
}

/// `GET /asks/{id}`
pub(super) async fn show(context: RequestContext) -> HandlerResult {
    let session = session::signed_in(&context).await?;
    let id = context.part(0).to_owned();
    let read = blocking(Arc::clone(&context.service), move |service| {
        let proposal = step_up::proposal(&*service.store, &id, service.now());
        let proposal = proposal.map_err(problem)?;
        let client = client(service, &proposal)?;
        let rows = proposal.rows.iter().map(|row| line(service, row)).collect();
        Ok((proposal, client, rows))
    });
    let (proposal, client, rows) = read.await?;
    html(
        StatusCode::OK,
        &AskPage {
            frame: Frame::new(&session, Section::Grants),
            id: proposal.ask.id.clone(),
            grant: proposal.ask.grant_id.to_string(),
            client,
            asked: asked(&proposal),
            rows,
            has_limits: proposal.has_limits,
            digest: proposal.digest,
        },
    )
}

fn client(service: &Service, proposal: &Proposal) -> Result<String, Problem> {
    let id = proposal.ask.grant_id.as_str();
    let shown = grants::show(&*service.store, id, service.now(), 0);
    let shown = shown.map_err(|error| super::grant::problem(&error))?;
    Ok(super::viewer::client(&shown.overview))
}

fn asked(proposal: &Proposal) -> String {
    let beyond = &proposal.ask.beyond;
    let stream = visible(&beyond.stream);
    match (&beyond.fields, &beyond.relation) {
        (Some(fields), _) => format!("{} of {stream}", visible(&fields.join(", "))),
        (None, Some(relation)) => format!("{} of {stream}", visible(relation)),
        (None, None) => stream,
    }
}

fn line(service: &Service, row: &ExtendedRow) -> RowLine {
    let given = &row.given;
    let source = service.store.connection(&given.connection_id);
    let fields: Vec<&str> = given.fields.iter().map(FieldName::as_str).collect();
    RowLine {
        source: source.map_or_else(
            || given.connection_id.to_string(),
            |source| label(&source.display_name),
        ),
        stream: visible(given.stream.as_str()),
        fields: visible(&fields.join(", ")),
        limits: row.limits(&Wording::whole(visible)),
    }
}

/// `POST /asks/{id}`
pub(super) async fn decide(mut context: RequestContext) -> HandlerResult {
    let (session, form) = session::sent_form(&mut context, "/sign-in").await?;
    let id = context.part(0).to_owned();
    let (digest, decision) = (
        form.value("digest").to_owned(),
        form.value("decision").to_owned(),
    );
    let decided = blocking(Arc::clone(&context.service), move |service| {
        let (store, now) = (&*service.store, service.now());
        if let Some(allowance) = Allowance::named(&decision) {
            let extension = step_up::allow(store, &id, &digest, allowance, now).map_err(problem)?;
            service.notices.tell(&Event::Approved);
            return Ok((extension.grant_id, words(allowance)));
        }
        let ask = step_up::proposal(store, &id, now).map_err(problem)?.ask;
        step_up::deny(store, &id, now).map_err(problem)?;
        if decision == "never" {
            let off = step_up::set_asking(store, &ask.grant_id, false, now);
            off.map_err(|error| problem(error.into()))?;
        }
        Ok((
            ask.grant_id,
            "Not allowed. The same is not asked for again for a day.",
        ))
    });
    let (grant, words): (GrantId, &'static str) = decided.await?;
    html(
        StatusCode::OK,
        &DecidedPage {
            frame: Frame::new(&session, Section::Grants),
            grant: grant.to_string(),
            words,
        },
    )
}

fn words(allowance: Allowance) -> &'static str {
    match allowance {
        Allowance::Once => {
            "Allowed once, for the next such call within ten minutes. It can repeat its call now."
        }
        Allowance::TenMinutes => "Allowed for ten minutes. It can repeat its call now.",
        Allowance::Lasting => "Allowed for as long as the grant lives. It can repeat its call now.",
    }
}

/// `POST /grants/{id}/asking`: lets its client ask for more, or not; and takes back what was allowed beside it.
pub(super) async fn change(mut context: RequestContext) -> HandlerResult {
    let (_, form) = session::sent_form(&mut context, "/sign-in").await?;
    let id = context.part(0).to_owned();
    let back = format!("/grants/{id}");
    let change = form.value("change").to_owned();
    blocking(Arc::clone(&context.service), move |service| {
        let (store, now) = (&*service.store, service.now());
        let shown =
            grants::show(store, &id, now, 0).map_err(|error| super::grant::problem(&error))?;
        for grant in shown.overview.grants.iter().map(contract::grant::Grant::id) {
            let changed = match change.as_str() {
                "on" => step_up::set_asking(store, grant, true, now),
                "off" => step_up::set_asking(store, grant, false, now),
                _ => step_up::end_extensions(store, grant, now),
            };
            changed.map_err(|error| problem(error.into()))?;
        }
        Ok(())
    })
    .await?;
    Ok(see_other(&back))
}
