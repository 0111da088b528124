//! The consent pages: the request, the owner's choice, the frozen review, approval or denial.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use contract::error::{ErrorCode, ReadError};
use contract::grant::{AccessMode, GrantedStream};
use grants::Mistake;
use grants::oauth::{Answer, Decider, DecisionError, GrantFlow, PendingRequest, Review};
use grants::sign_in::Session;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::choice::{self, EndRow, SourceRow};
use super::finding::{Finding, is_narrowed};
use super::format::label;
use super::frame::{Frame, Section};
use super::moment::Moment;
use super::review::{self, Purpose, Requester, StreamPreview};
use super::templates::{self, TemplateRow};
use super::{allow_form_target, html, see_other, session, value_choice};
use crate::form::Form;
use crate::notify::Event;
use crate::owner::blocking;
use crate::problem::Problem;
use crate::service::Service;
use crate::table::{HandlerResult, RequestContext};

const MISTAKES_SHOWN: usize = 20;

#[derive(Template)]
#[template(path = "consent.html")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a page shows or leaves out its parts one by one"
)]
struct ConsentPage {
    frame: Frame,
    request: String,
    who: Requester,
    /// Whether the application said what it wants.
    asked: bool,
    purposes: Vec<Purpose>,
    training: bool,
    only_once: bool,
    once: bool,
    sources: Vec<SourceRow>,
    finding: Finding,
    ends: Vec<EndRow>,
    /// What was requested and cannot be granted, one line each.
    missing: Vec<String>,
    templates: Vec<TemplateRow>,
    mistakes: Vec<String>,
}

#[derive(Template)]
#[template(path = "review.html")]
struct ReviewPage {
    frame: Frame,
    request: String,
    digest: String,
    who: Requester,
    purposes: Vec<Purpose>,
    rows: Vec<StreamPreview>,
    terms: Vec<String>,
    once: bool,
    ends: Option<Moment>,
    mcp_only: bool,
    training: bool,
}

#[derive(Template)]
#[template(path = "decided.html")]
struct DecidedPage {
    frame: Frame,
    approved: bool,
}

pub(crate) fn consent_path(request: &str) -> String {
    let request = utf8_percent_encode(request, NON_ALPHANUMERIC);
    format!("/consent?request={request}")
}

/// `GET /consent`
pub(super) async fn show(context: RequestContext) -> HandlerResult {
    let session = session::signed_in(&context).await?;
    let form = Form::from_query(context.query())?;
    let form = blocking(Arc::clone(&context.service), move |service| {
        let asked = service.issuer().asked(form.value("request"));
        let asked = asked.map_err(|error| decision_problem(&error))?;
        let drafts = asked.as_ref().map(|one| one.drafts.as_slice());
        let offered = choice::rows(service, drafts, &form)?;
        templates::applied(service, form, &offered)
    });
    let form = form.await?;
    page(context.service, &session, form, Vec::new()).await
}

/// `POST /consent`: the form once more, as it was filled in, with the figures of now.
pub(super) async fn change(mut context: RequestContext) -> HandlerResult {
    let (session, form) = signed_in_form(&mut context).await?;
    page(context.service, &session, form, Vec::new()).await
}

/// `POST /consent/review`: freezes the choice and shows it.
pub(super) async fn review(mut context: RequestContext) -> HandlerResult {
    let (session, form) = signed_in_form(&mut context).await?;
    if is_narrowed(&form) {
        return page(context.service, &session, form, Vec::new()).await;
    }
    let reviewed = blocking(Arc::clone(&context.service), move |service| {
        let request = form.value("request");
        let issuer = service.issuer();
        let offer = issuer
            .asked(request)
            .map_err(|error| decision_problem(&error))?;
        let offered = choice::rows(
            service,
            offer.as_ref().map(|one| one.drafts.as_slice()),
            &form,
        )?;
        let choice = choice::choice(&form, service.now(), &offered);
        let reviewed = issuer
            .pending(request)
            .and_then(|asked| Ok((asked, issuer.review(request, choice)?)));
        match reviewed {
            Ok(reviewed) => Ok(Ok(reviewed)),
            Err(error) if error.status() == 400 => Ok(Err((form, mistakes(&error)))),
            Err(error) => Err(decision_problem(&error)),
        }
    });
    match reviewed.await? {
        Ok((asked, review)) => review_page(&context.service, &session, &asked, &review).await,
        Err((form, mistakes)) => page(context.service, &session, form, mistakes).await,
    }
}

/// `POST /consent/approve`
pub(super) async fn approve(mut context: RequestContext) -> HandlerResult {
    let (session, form) = signed_in_form(&mut context).await?;
    let (request, digest) = (
        form.value("request").to_owned(),
        form.value("digest").to_owned(),
    );
    let decider = session.clone();
    let answer = blocking(context.service, move |service| {
        let by = Decider::Session(&decider);
        let answer = service.issuer().approve(&request, &digest, by);
        let answer = answer.map_err(|error| decision_problem(&error))?;
        service.notices.tell(&Event::Approved);
        Ok(answer)
    });
    decision_response(&answer.await?, &session, true)
}

/// `POST /consent/deny`
pub(super) async fn deny(mut context: RequestContext) -> HandlerResult {
    let (session, form) = signed_in_form(&mut context).await?;
    let request = form.value("request").to_owned();
    let decider = session.clone();
    let answer = blocking(context.service, move |service| {
        let answer = service.issuer().deny(&request, Decider::Session(&decider));
        answer.map_err(|error| decision_problem(&error))
    });
    decision_response(&answer.await?, &session, false)
}

fn decision_response(answer: &Answer, session: &Session, approved: bool) -> HandlerResult {
    match answer {
        Answer::Redirect(address) => Ok(see_other(address.expose())),
        Answer::Device => html(
            StatusCode::OK,
            &DecidedPage {
                frame: Frame::new(session, Section::Grants),
                approved,
            },
        ),
    }
}

/// The session and the form of a decision; who has to sign in comes back to the request.
async fn signed_in_form(context: &mut RequestContext) -> Result<(Session, Form), Problem> {
    let form = Form::read(context).await?;
    let session = session::session(context).await?.ok_or_else(|| {
        let back = consent_path(form.value("request"));
        Problem::redirect(session::sign_in_and_return(&back))
    })?;
    session::check_form(&session, context, &form)?;
    Ok((session, form))
}

async fn page(
    service: Arc<Service>,
    session: &Session,
    form: Form,
    mistakes: Vec<String>,
) -> HandlerResult {
    let frame = Frame::new(session, Section::Grants);
    let status = match mistakes.as_slice() {
        [] => StatusCode::OK,
        _ => StatusCode::BAD_REQUEST,
    };
    let made = blocking(Arc::clone(&service), move |service| {
        let request = form.value("request").to_owned();
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
        let mut sources = choice::rows(service, asked.as_ref().map(|_| drafts), &form)?;
        let purposes: Vec<Purpose> = drafts.iter().map(Purpose::from_draft).collect();
        let page = ConsentPage {
            frame,
            request,
            who: Requester::from_request(&waiting),
            asked: asked.is_some(),
            training: purposes.iter().any(|purpose| purpose.training),
            purposes,
            only_once: drafts.iter().any(|draft| once(draft.access_mode)),
            once: form.value("mode") == "single_use",
            finding: Finding::apply(&form, &mut sources),
            sources,
            ends: choice::ends(&form),
            missing: rules(missing),
            templates: templates::rows(service, &form)?,
            mistakes,
        };
        Ok((page, answer_origin(&waiting), form))
    });
    let (mut page, origin, form) = made.await?;
    let ticked = value_choice::ticked(&page.sources);
    let figures = value_choice::figures(service, ticked, form).await?;
    value_choice::show(figures, &mut page.sources);
    Ok(allow_form_target(html(status, &page)?, &origin))
}

async fn review_page(
    service: &Service,
    session: &Session,
    asked: &PendingRequest,
    review: &Review,
) -> HandlerResult {
    let named = asked.details.is_some();
    let drafts = if named { review.grants.as_slice() } else { &[] };
    let authority = review.authority(service.now());
    let authority = authority.map_err(|error| decision_problem(&error))?;
    let streams: Vec<&GrantedStream> = review.grants.iter().flat_map(|one| &one.streams).collect();
    let page = ReviewPage {
        frame: Frame::new(session, Section::Grants),
        request: review.request_id.clone(),
        digest: review.digest.clone(),
        who: Requester::from_request(asked),
        purposes: drafts.iter().map(Purpose::from_draft).collect(),
        rows: review::rows(service, authority, &streams).await?,
        terms: review::terms(review),
        once: review::is_single_use(review),
        ends: Moment::new(review.expires_at),
        mcp_only: review.resource.ends_with("/mcp"),
        training: review.ai_training_affirmed,
    };
    let response = html(StatusCode::OK, &page)?;
    Ok(allow_form_target(response, &answer_origin(asked)))
}

/// The origin of the redirect that answers a decision.
fn answer_origin(asked: &PendingRequest) -> String {
    match &asked.flow {
        GrantFlow::Code { back, .. } => review::origin(&back.redirect_uri).to_owned(),
        GrantFlow::Device => String::new(),
    }
}

/// What is wrong with a choice, one line each.
fn mistakes(error: &DecisionError) -> Vec<String> {
    match error {
        DecisionError::Selection(mistakes) => rules(&mistakes.0),
        other => vec![label(&other.to_string())],
    }
}

pub(super) fn rules(mistakes: &[Mistake]) -> Vec<String> {
    let listed = mistakes.iter().take(MISTAKES_SHOWN);
    let mut listed: Vec<String> = listed.map(|mistake| label(&mistake.rule)).collect();
    let more = mistakes.len().saturating_sub(MISTAKES_SHOWN);
    if more > 0 {
        listed.push(format!("and {more} more"));
    }
    listed
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
        DecisionError::Decided => "what you granted is among your grants, where you can end it",
        _ => "nothing was granted",
    };
    let problem = Problem::from(ReadError::new(code, error.to_string()).with_hint(hint));
    match StatusCode::from_u16(error.status()) {
        Ok(status) => problem.with_status(status),
        Err(_) => problem,
    }
}
