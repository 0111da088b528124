//! The page of a grant: what it allows, what was read under it, and how to revoke it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use contract::error::{ErrorCode, ReadError};
use contract::grant::Grant;
use contract::handle::RecordHandle;
use grants::budget::{self, Budget};
use grants::step_up::Extension;
use grants::{BudgetState, DisclosedCall, Overview, ShowError, State, TOKENS_ENDED, Wording};
use store::grants::RevocationReason;

use super::address::Address;
use super::format::{format_count, format_number, label, visible};
use super::frame::{Frame, Section};
use super::moment::Moment;
use super::titles::Titles;
use super::{html, see_other, session};
use crate::form::Form;
use crate::owner::blocking;
use crate::owner::grants::flush_disclosures;
use crate::problem::Problem;
use crate::service::Service;
use crate::table::{HandlerResult, RequestContext};

/// How many of the last calls the page shows; the others are in its activity.
const CALLS: usize = 10;
/// How many records of a call are listed.
pub(super) const RECORDS: usize = 10;
/// How many streams, and names per list, the summary shows.
const NAMES: usize = 12;

#[derive(Template)]
#[template(path = "grant.html")]
struct GrantPage {
    frame: Frame,
    grant: GrantRow,
    parts: Vec<Part>,
    /// What was allowed beside it, in words.
    extensions: Vec<String>,
    may_ask: bool,
    /// The budgets in words, with what is used.
    budgets: Vec<String>,
    budget: BudgetForm,
    /// Why it is paused; empty where it is not.
    paused: String,
    calls: Vec<CallRow>,
}

/// One grant in full; a package has several.
struct Part {
    /// The connections, by their names.
    sources: String,
    title: String,
    lines: Vec<String>,
}

impl Part {
    fn from_grant(
        service: &Service,
        overview: &Overview,
        grant: &Grant,
        state: Option<&'static str>,
    ) -> Self {
        let wording = Wording::whole(visible);
        let title = wording.title(grant);
        let mut sources: Vec<String> = Vec::new();
        for id in grant
            .streams()
            .iter()
            .flat_map(|stream| &stream.instance_ids)
        {
            let known = service.store.connection(id);
            let name = known.map_or_else(|| id.to_string(), |one| label(&one.display_name));
            let name = format!("{name} ({id})");
            if !sources.contains(&name) {
                sources.push(name);
            }
        }
        Self {
            sources: sources.join(", "),
            title: match state {
                None => title,
                Some(state) => format!("{}, {state}: {title}", grant.id()),
            },
            lines: [
                wording.grant(grant, &overview.streams),
                wording.agreed(grant),
            ]
            .concat(),
        }
    }
}

#[derive(Template)]
#[template(path = "end_grant.html")]
struct EndPage {
    frame: Frame,
    grant: GrantRow,
}

pub(super) struct GrantRow {
    pub(super) id: String,
    pub(super) client: String,
    /// The client's id, where `client` is its name.
    pub(super) client_id: String,
    pub(super) state: &'static str,
    is: State,
    /// What became of it, and when.
    pub(super) happened: Vec<(&'static str, Moment)>,
    pub(super) issued: Option<Moment>,
    pub(super) ends: Option<Moment>,
    pub(super) used: Option<Moment>,
    /// What it may read, in words.
    pub(super) lines: Vec<String>,
    /// Whether `lines` leaves out something that the grant's page shows.
    pub(super) cut: bool,
}

/// What each connection is called, by its id.
pub(super) fn names(service: &Service) -> BTreeMap<String, String> {
    let connections = service.store.connections().into_iter();
    connections
        .map(|one| (one.id.to_string(), label(&one.display_name)))
        .collect()
}

impl GrantRow {
    pub(super) fn from_overview(overview: &Overview) -> Self {
        Self::named(overview, &BTreeMap::new())
    }

    /// With connections by their names, where they have one.
    pub(super) fn named(overview: &Overview, names: &BTreeMap<String, String>) -> Self {
        let name = overview.client_name.as_deref();
        let lines = |wording: Wording| {
            wording.overview_with(overview, |id| {
                let name = names.get(id.as_str()).cloned();
                name.unwrap_or_else(|| id.to_string())
            })
        };
        let brief = lines(Wording::brief(NAMES, visible));
        Self {
            id: overview.id.clone(),
            client: label(name.unwrap_or(overview.client_id.as_str())),
            client_id: name.map_or_else(String::new, |_| label(overview.client_id.as_str())),
            state: state(overview),
            is: overview.state,
            happened: happened(overview),
            issued: Moment::parse(&overview.issued_at),
            ends: overview.expires_at.as_deref().and_then(Moment::parse),
            used: overview.last_used_at.as_deref().and_then(Moment::parse),
            cut: brief != lines(Wording::whole(visible)),
            lines: brief,
        }
    }
}

impl GrantRow {
    pub(super) fn open(&self) -> bool {
        self.is.is_open()
    }

    pub(super) fn live(&self) -> bool {
        self.is == State::Live
    }

    pub(super) fn waiting(&self) -> bool {
        self.is == State::Waiting
    }
}

fn happened(overview: &Overview) -> Vec<(&'static str, Moment)> {
    let events = [
        ("The application must come for it by", &overview.redeem_by),
        ("Ended", &overview.revoked_at),
        (
            "Narrowed, because a connection was removed,",
            &overview.narrowed_at,
        ),
    ];
    let events = events.into_iter();
    let told = events.filter_map(|(what, at)| Some((what, Moment::parse(at.as_deref()?)?)));
    told.collect()
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

pub(super) struct CallRow {
    pub(super) at: Option<Moment>,
    pub(super) operation: String,
    pub(super) fields: String,
    pub(super) records: Vec<RecordLink>,
    /// How many more; empty for none.
    pub(super) more: String,
    /// Where those are.
    pub(super) further: String,
}

pub(super) struct RecordLink {
    /// What the record is called; its name where it has no title, or is gone.
    pub(super) title: String,
    /// Connection, stream and key.
    pub(super) name: String,
    pub(super) path: String,
}

impl CallRow {
    /// A call under a grant, with some of its records.
    pub(super) fn from_call(
        call: &DisclosedCall,
        grant: &str,
        shown: Range<usize>,
        titles: &Titles,
    ) -> Self {
        let further = Address::of_parts("/grants", &[grant, "activity"]);
        let further = further.with("call", &call.sequence.to_string());
        let more = call.records.len().saturating_sub(shown.end);
        Self {
            further: further.with("from", &shown.end.to_string()).to_string(),
            more: match more {
                0 => String::new(),
                more => format_number(u64::try_from(more).unwrap_or(u64::MAX)),
            },
            at: Moment::parse(&call.at),
            operation: label(&call.operation),
            fields: visible(&call.fields.join(", ")),
            records: call
                .records
                .iter()
                .skip(shown.start)
                .take(shown.len())
                .map(|text| record_link(text, titles))
                .collect(),
        }
    }
}

/// A record of the log, and its page.
pub(super) fn record_link(handle: &str, titles: &Titles) -> RecordLink {
    let parsed = RecordHandle::parse(handle).ok();
    let named = parsed.and_then(|handle| {
        let (connection, stream) = (handle.connection()?, handle.stream());
        let path = Address::record(connection, stream, handle.record()).to_string();
        Some((format!("{connection} {stream} {}", handle.record()), path))
    });
    let (name, path) = named.unwrap_or_else(|| (handle.to_owned(), String::new()));
    let name = visible(&name);
    RecordLink {
        title: titles
            .get(handle)
            .map_or_else(|| name.clone(), str::to_owned),
        name,
        path,
    }
}

/// `GET /grants/{id}`
pub(super) async fn show(context: RequestContext) -> HandlerResult {
    let session = session::signed_in(&context).await?;
    let id = context.part(0).to_owned();
    let shown = blocking(Arc::clone(&context.service), move |service| {
        flush_disclosures(service);
        let shown = grants::show(&*service.store, &id, service.now(), CALLS);
        let shown = shown.map_err(|error| problem(&error))?;
        let parts = parts(service, &shown.overview)?;
        Ok((shown, parts))
    });
    let service = Arc::clone(&context.service);
    let (shown, parts) = shown.await?;
    let titles = Titles::of_calls(&service, &shown.disclosures).await;
    html(
        StatusCode::OK,
        &GrantPage {
            frame: Frame::new(&session, Section::Grants),
            grant: GrantRow::from_overview(&shown.overview),
            parts,
            extensions: shown.extensions.iter().map(extension).collect(),
            may_ask: shown.may_ask,
            budgets: shown.budgets.iter().map(budget_line).collect(),
            budget: BudgetForm::new(&shown.budgets),
            paused: shown
                .paused
                .as_ref()
                .map(|pause| label(&pause.reason))
                .unwrap_or_default(),
            calls: shown
                .disclosures
                .iter()
                .map(|call| CallRow::from_call(call, &shown.overview.id, 0..RECORDS, &titles))
                .collect(),
        },
    )
}

fn budget_line(state: &BudgetState) -> String {
    let (words, used) = (state.budget.words().join(", "), &state.used);
    let records = format_count(used.records, "record");
    let different = format_number(used.distinct_records);
    format!("{words}; today {records}, {different} of them different")
}

/// `POST /grants/{id}/budget`: sets how much may be read in a day, pauses, or goes on.
pub(super) async fn change_budget(mut context: RequestContext) -> HandlerResult {
    let (_, form) = session::sent_form(&mut context, "/sign-in").await?;
    let id = context.part(0).to_owned();
    let back = format!("/grants/{id}");
    blocking(Arc::clone(&context.service), move |service| {
        let (store, now) = (&*service.store, service.now());
        let shown = grants::show(store, &id, now, 0).map_err(|error| problem(&error))?;
        let change = BudgetChange::from_form(&form)?;
        for grant in &shown.overview.grant_ids {
            let changed = match change {
                BudgetChange::Pause => budget::pause(store, grant, "you paused it", now),
                BudgetChange::Resume => budget::resume(store, grant, now),
                BudgetChange::Set(wanted) => budget::set_budget(store, grant, wanted, now),
            };
            changed.map_err(|error| Problem::internal("a budget could not be set", &error))?;
        }
        Ok(())
    })
    .await?;
    Ok(see_other(&back))
}

/// What the form about how much may be read in a day wants.
enum BudgetChange {
    Pause,
    Resume,
    Set(Budget),
}

impl BudgetChange {
    fn from_form(form: &Form) -> Result<Self, Problem> {
        let refused = |message: String| {
            let error = ReadError::new(ErrorCode::InvalidRequest, message);
            error.with_hint("nothing was changed; go back to the page of the grant")
        };
        // What is left empty has no limit; anything else must say one.
        let limit = |name: &str| match form.value(name).trim() {
            "" => Ok(None),
            text => text
                .parse()
                .map(Some)
                .map_err(|_| refused(format!("a limit is a whole number, not '{text}'"))),
        };
        match form.value("change") {
            "pause" => Ok(Self::Pause),
            "resume" => Ok(Self::Resume),
            "set" => Ok(Self::Set(Budget {
                records: limit("records")?,
                distinct_records: limit("distinct_records")?,
                bytes: limit("bytes")?,
                pauses_when_unusual: form.value("unusual") == "on",
            })),
            _ => Err(refused("the form does not say what to change".to_owned()).into()),
        }
    }
}

/// The limits of a grant as its form shows them, each empty where there is none. Those of a package are set together.
struct BudgetForm {
    limits: [(&'static str, &'static str, String); 3],
    unusual: bool,
}

impl BudgetForm {
    fn new(budgets: &[BudgetState]) -> Self {
        let budget = budgets.first().map(|state| state.budget);
        let budget = budget.unwrap_or_default();
        let text = |most: Option<u64>| most.map(|most| most.to_string()).unwrap_or_default();
        Self {
            limits: [
                ("records", "Records", text(budget.records)),
                (
                    "distinct_records",
                    "Different records",
                    text(budget.distinct_records),
                ),
                ("bytes", "Bytes", text(budget.bytes)),
            ],
            unusual: budget.pauses_when_unusual,
        }
    }
}

fn extension(extension: &Extension) -> String {
    visible(&extension.words())
}

/// The grants of a package, each with its state; or the one grant.
fn parts(service: &Service, overview: &Overview) -> Result<Vec<Part>, Problem> {
    if let [grant] = overview.grants.as_slice() {
        return Ok(vec![Part::from_grant(service, overview, grant, None)]);
    }
    let mut parts = Vec::new();
    for grant in &overview.grants {
        let own = grants::show(&*service.store, grant.id().as_str(), service.now(), 0);
        let own = own.map_err(|error| problem(&error))?;
        let state = state(&own.overview);
        parts.push(Part::from_grant(service, overview, grant, Some(state)));
    }
    Ok(parts)
}

/// `GET /grants/{id}/end`: asks once.
pub(super) async fn ask_to_end(context: RequestContext) -> HandlerResult {
    let session = session::signed_in(&context).await?;
    let id = context.part(0).to_owned();
    let shown = blocking(context.service, move |service| {
        grants::show(&*service.store, &id, service.now(), 0).map_err(|error| problem(&error))
    });
    let overview = shown.await?.overview;
    if !overview.state.is_open() {
        return Ok(see_other(&format!("/grants/{}", overview.id)));
    }
    html(
        StatusCode::OK,
        &EndPage {
            frame: Frame::new(&session, Section::Grants),
            grant: GrantRow::from_overview(&overview),
        },
    )
}

/// `POST /grants/{id}/revoke`
pub(super) async fn revoke(mut context: RequestContext) -> HandlerResult {
    session::sent_form(&mut context, "/sign-in").await?;
    let id = context.part(0).to_owned();
    blocking(Arc::clone(&context.service), move |service| {
        grants::revoke(&*service.store, &id, service.now()).map_err(|error| problem(&error))
    })
    .await?;
    Ok(see_other("/grants"))
}

pub(super) fn problem(error: &ShowError) -> Problem {
    match error {
        ShowError::Unknown(_) => Problem::new(ErrorCode::NotFound, "there is no such grant"),
        ShowError::Store(error) => Problem::internal("a grant could not be looked up", error),
    }
}
