//! Deciding: what is asked, what the owner picks of it, the frozen review, and yes or no.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use contract::error::{ErrorCode, ReadError};
use contract::grant::AccessMode;
use grants::Mistake;
use grants::oauth::{Answer, Decider, DecisionError, PendingRequest, Review, Way};
use grants::sign_in::Session;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::choice::{self, EndRow, SourceRow};
use super::review::{self, Purpose, RowShown, Who};
use super::words::{label, moment};
use super::{answering_to, html, see_other, visit};
use crate::form::Form;
use crate::owner::blocking;
use crate::problem::Problem;
use crate::service::Service;
use crate::table::{Ask, Outcome};

/// As many mistakes of a request are shown one by one.
const MISTAKES_SHOWN: usize = 20;

#[derive(Template)]
#[template(path = "consent.html")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a page shows or leaves out its parts one by one"
)]
struct ConsentPage {
    session: String,
    request: String,
    who: Who,
    /// Whether the application said what it wants.
    asked: bool,
    purposes: Vec<Purpose>,
    training: bool,
    only_once: bool,
    once: bool,
    sources: Vec<SourceRow>,
    ends: Vec<EndRow>,
    /// What of the asked cannot be given as it is asked, one line each.
    missing: Vec<String>,
    mistakes: Vec<String>,
}

#[derive(Template)]
#[template(path = "review.html")]
struct ReviewPage {
    session: String,
    request: String,
    digest: String,
    who: Who,
    purposes: Vec<Purpose>,
    rows: Vec<RowShown>,
    terms: Vec<String>,
    once: bool,
    ends: String,
    mcp_only: bool,
    training: bool,
}

#[derive(Template)]
#[template(path = "decided.html")]
struct DecidedPage {
    session: String,
    approved: bool,
}

/// Where a request is decided.
pub(crate) fn consent_path(request: &str) -> String {
    let request = utf8_percent_encode(request, NON_ALPHANUMERIC);
    format!("/consent?request={request}")
}

/// `GET /consent`
pub(super) async fn show(ask: Ask) -> Outcome {
    let Some(session) = visit::session(&ask).await? else {
        return Ok(visit::to_sign_in(&ask));
    };
    let form = Form::of_query(ask.query())?;
    page(ask.service, &session, form, Vec::new()).await
}

/// `POST /consent/review`: freezes what was picked and shows it.
pub(super) async fn review(mut ask: Ask) -> Outcome {
    let (session, form) = match sent(&mut ask).await? {
        Ok(sent) => sent,
        Err(elsewhere) => return Ok(elsewhere),
    };
    let request = form.one("request").to_owned();
    let choice = choice::choice(&form, ask.service.now());
    let reviewed = blocking(Arc::clone(&ask.service), move |service| {
        let issuer = service.issuer();
        let reviewed = issuer
            .pending(&request)
            .and_then(|asked| Ok((asked, issuer.review(&request, choice)?)));
        match reviewed {
            Ok(reviewed) => Ok(Ok(reviewed)),
            Err(error) if error.status() == 400 => Ok(Err(mistakes(&error))),
            Err(error) => Err(decision_problem(&error)),
        }
    });
    match reviewed.await? {
        Ok((asked, review)) => review_page(&ask.service, &session, &asked, &review).await,
        Err(mistakes) => page(ask.service, &session, form, mistakes).await,
    }
}

/// `POST /consent/approve`
pub(super) async fn approve(mut ask: Ask) -> Outcome {
    let (session, form) = match sent(&mut ask).await? {
        Ok(sent) => sent,
        Err(elsewhere) => return Ok(elsewhere),
    };
    let (request, digest) = (
        form.one("request").to_owned(),
        form.one("digest").to_owned(),
    );
    let decider = session.clone();
    let answer = blocking(ask.service, move |service| {
        let by = Decider::Session(&decider);
        let answer = service.issuer().approve(&request, &digest, by);
        answer.map_err(|error| decision_problem(&error))
    });
    answered(&answer.await?, &session, true)
}

/// `POST /consent/deny`
pub(super) async fn deny(mut ask: Ask) -> Outcome {
    let (session, form) = match sent(&mut ask).await? {
        Ok(sent) => sent,
        Err(elsewhere) => return Ok(elsewhere),
    };
    let request = form.one("request").to_owned();
    let decider = session.clone();
    let answer = blocking(ask.service, move |service| {
        let answer = service.issuer().deny(&request, Decider::Session(&decider));
        answer.map_err(|error| decision_problem(&error))
    });
    answered(&answer.await?, &session, false)
}

fn answered(answer: &Answer, session: &Session, approved: bool) -> Outcome {
    match answer {
        Answer::Redirect(address) => Ok(see_other(address.expose())),
        Answer::Device => html(
            StatusCode::OK,
            &DecidedPage {
                session: visit::token(session),
                approved,
            },
        ),
    }
}

/// The session and the form of a decision, or where to go without a session.
async fn sent(ask: &mut Ask) -> Result<Result<(Session, Form), axum::response::Response>, Problem> {
    let form = Form::read(ask).await?;
    let Some(session) = visit::session(ask).await? else {
        let back =
            utf8_percent_encode(&consent_path(form.one("request")), NON_ALPHANUMERIC).to_string();
        return Ok(Err(see_other(&format!("/sign-in?return_to={back}"))));
    };
    visit::check(&session, ask, &form)?;
    Ok(Ok((session, form)))
}

async fn page(
    service: Arc<Service>,
    session: &Session,
    form: Form,
    mistakes: Vec<String>,
) -> Outcome {
    let token = visit::token(session);
    let status = match mistakes.as_slice() {
        [] => StatusCode::OK,
        _ => StatusCode::BAD_REQUEST,
    };
    let made = blocking(service, move |service| {
        let request = form.one("request").to_owned();
        let issuer = service.issuer();
        let waiting = issuer
            .pending(&request)
            .and_then(|waiting| Ok((waiting, issuer.asked(&request)?)));
        let (waiting, asked) = waiting.map_err(|error| decision_problem(&error))?;
        let (drafts, missing) = match &asked {
            Some(offer) => (offer.drafts.as_slice(), offer.missing.as_slice()),
            None => Default::default(),
        };
        let once = |mode: AccessMode| mode == AccessMode::SingleUse;
        let purposes: Vec<Purpose> = drafts.iter().map(Purpose::of).collect();
        let page = ConsentPage {
            session: token,
            request,
            who: Who::of(&waiting),
            asked: asked.is_some(),
            training: purposes.iter().any(|purpose| purpose.training),
            purposes,
            only_once: drafts.iter().any(|draft| once(draft.access_mode)),
            once: form.one("mode") == "single_use",
            sources: choice::rows(service, asked.as_ref().map(|_| drafts), &form)?,
            ends: choice::ends(&form),
            missing: rules(missing),
            mistakes,
        };
        Ok((page, answer_origin(&waiting)))
    });
    let (page, origin) = made.await?;
    Ok(answering_to(html(status, &page)?, &origin))
}

async fn review_page(
    service: &Service,
    session: &Session,
    asked: &PendingRequest,
    review: &Review,
) -> Outcome {
    let named = asked.details.is_some();
    let drafts = if named { review.grants.as_slice() } else { &[] };
    let page = ReviewPage {
        session: visit::token(session),
        request: review.request_id.clone(),
        digest: review.digest.clone(),
        who: Who::of(asked),
        purposes: drafts.iter().map(Purpose::of).collect(),
        rows: review::rows(service, review).await?,
        terms: review::terms(review),
        once: review::is_once(review),
        ends: moment(&review.expires_at.to_rfc3339_millis()),
        mcp_only: review.resource.ends_with("/mcp"),
        training: review.ai_training_affirmed,
    };
    let response = html(StatusCode::OK, &page)?;
    Ok(answering_to(response, &answer_origin(asked)))
}

/// Where the redirect that answers a decision goes.
fn answer_origin(asked: &PendingRequest) -> String {
    match &asked.way {
        Way::Code { back, .. } => review::origin(&back.redirect_uri).to_owned(),
        Way::Device => String::new(),
    }
}

/// What is wrong with a choice, one line each.
fn mistakes(error: &DecisionError) -> Vec<String> {
    match error {
        DecisionError::Selection(mistakes) => rules(&mistakes.0),
        other => vec![label(&other.to_string())],
    }
}

/// Mistakes one by one, and how many more there are.
fn rules(mistakes: &[Mistake]) -> Vec<String> {
    let told = mistakes.iter().take(MISTAKES_SHOWN);
    let mut told: Vec<String> = told.map(|mistake| label(&mistake.rule)).collect();
    let more = mistakes.len().saturating_sub(MISTAKES_SHOWN);
    if more > 0 {
        told.push(format!("and {more} more"));
    }
    told
}

pub(super) fn decision_problem(error: &DecisionError) -> Problem {
    let code = match error.status() {
        404 => ErrorCode::NotFound,
        500.. => return Problem::internal("a request could not be decided", error),
        _ => ErrorCode::InvalidRequest,
    };
    let hint = match error {
        DecisionError::Stale | DecisionError::CatalogChanged => {
            "nothing was granted; go back to the request and look at it again"
        }
        DecisionError::Decided => "what you granted is on your home page, where you can end it",
        _ => "nothing was granted",
    };
    let problem = Problem::from(ReadError::new(code, error.to_string()).with_hint(hint));
    match StatusCode::from_u16(error.status()) {
        Ok(status) => problem.with_status(status),
        Err(_) => problem,
    }
}
