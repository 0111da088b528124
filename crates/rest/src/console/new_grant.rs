//! Making a grant without an application that asks: the same choice and review as for one that does, ending in a token
//! that is shown once. A grant cannot be changed; another like it is made here, with the difference shown.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use contract::grant::{AccessMode, Grant, GrantedStream};
use contract::time::Instant;
use grants::sign_in::Session;
use grants::{IssueError, Issued, Overview, Preview, Selection, Wording, preview};

use super::choice::{self, EndRow, SourceRow};
use super::consent::rules;
use super::finding::{Finding, is_narrowed};
use super::format::{label, visible};
use super::frame::{Frame, Section};
use super::moment::Moment;
use super::review::{self, StreamPreview};
use super::templates::{self, TemplateRow};
use super::viewer::client;
use super::{html, session, value_choice};
use crate::agent_setup::{SetupGrant, SetupLines};
use crate::form::Form;
use crate::owner::blocking;
use crate::problem::Problem;
use crate::service::Service;
use crate::table::{HandlerResult, RequestContext};

const SIGN_IN: &str = "/sign-in?return_to=%2Fgrants%2Fnew";

#[derive(Template)]
#[template(path = "new_grant.html")]
struct NewGrantPage {
    frame: Frame,
    client: String,
    /// The agents whose setup is known.
    agents: Vec<AgentRow>,
    /// The grant that this one is like; empty where it is a new one.
    from: String,
    sources: Vec<SourceRow>,
    finding: Finding,
    ends: Vec<EndRow>,
    once: bool,
    templates: Vec<TemplateRow>,
    mistakes: Vec<String>,
}

#[derive(Template)]
#[template(path = "new_grant_review.html")]
struct ReviewPage {
    frame: Frame,
    client: String,
    rows: Vec<StreamPreview>,
    ends: Option<Moment>,
    once: bool,
    from: String,
    /// Lines of the earlier grant that this one does not have.
    gone: Vec<String>,
    /// Lines that the earlier one did not have.
    new: Vec<String>,
    /// Whether it is not what was looked at before.
    changed: bool,
    /// What making it confirms.
    digest: String,
    /// The form, to be sent again.
    kept: Vec<(String, String)>,
}

#[derive(Template)]
#[template(path = "issued.html")]
struct IssuedPage {
    frame: Frame,
    client: String,
    id: String,
    token: String,
    mcp_url: String,
    api_url: String,
    ends: Option<Moment>,
    from: String,
    /// How the chosen agent is connected under the grant.
    setup: Option<SetupLines>,
}

struct AgentRow {
    name: &'static str,
    chosen: bool,
}

/// `GET /grants/new`
pub(super) async fn show(context: RequestContext) -> HandlerResult {
    let session = session::signed_in(&context).await?;
    let asked = Form::from_query(context.query())?;
    let from = asked.value("from").to_owned();
    let form = blocking(Arc::clone(&context.service), move |service| {
        if from.is_empty() {
            let offered = choice::rows(service, None, &asked)?;
            return templates::applied(service, asked, &offered);
        }
        let shown = grants::show(&*service.store, &from, service.now(), 0);
        let shown = shown.map_err(|error| super::grant::problem(&error))?;
        Ok(Form::from_pairs(like(&shown.overview)?))
    });
    page(&context.service, &session, form.await?, Vec::new()).await
}

/// `POST /grants/new`: the form once more, as it was filled in.
pub(super) async fn change(mut context: RequestContext) -> HandlerResult {
    let (session, form) = session::sent_form(&mut context, SIGN_IN).await?;
    page(&context.service, &session, form, Vec::new()).await
}

/// `POST /grants/new/review`
pub(super) async fn review(mut context: RequestContext) -> HandlerResult {
    let (session, form) = session::sent_form(&mut context, SIGN_IN).await?;
    if is_narrowed(&form) {
        return page(&context.service, &session, form, Vec::new()).await;
    }
    let looked = blocking(
        Arc::clone(&context.service),
        move |service| match Looked::new(service, &form)? {
            Ok(looked) => Ok(Ok((form, looked))),
            Err(mistakes) => Ok(Err((form, mistakes))),
        },
    );
    match looked.await? {
        Ok((form, looked)) => review_page(&context.service, &session, &form, looked, false).await,
        Err((form, mistakes)) => page(&context.service, &session, form, mistakes).await,
    }
}

/// What a form would give, and what of it is not what the earlier grant gives.
struct Looked {
    preview: Preview,
    gone: Vec<String>,
    new: Vec<String>,
}

impl Looked {
    fn new(service: &Service, form: &Form) -> Result<Result<Self, Vec<String>>, Problem> {
        let asked = GrantRequest::new(service, form)?;
        let looked = preview(
            &*service.store,
            &asked.selection,
            asked.client.as_str(),
            Some(asked.ends),
            &*service.reader_settings.clock,
        );
        let preview = match looked {
            Ok(preview) => preview,
            Err(error) => return Ok(Err(mistakes(error)?)),
        };
        let (gone, new) = difference(service, form.value("from"), &preview)?;
        Ok(Ok(Self { preview, gone, new }))
    }
}

/// What would be granted, to be allowed as it stands there.
async fn review_page(
    service: &Service,
    session: &Session,
    form: &Form,
    looked: Looked,
    changed: bool,
) -> HandlerResult {
    let Looked { preview, gone, new } = looked;
    let streams: Vec<&GrantedStream> = preview.grants().iter().flat_map(Grant::streams).collect();
    let is_own = |name: &str| name == "csrf" || name == "digest";
    let kept = form.pairs().iter().filter(|(name, _)| !is_own(name));
    let page = ReviewPage {
        frame: Frame::new(session, Section::Grants),
        client: label(client_name(form)),
        rows: review::rows(service, preview.authority.clone(), &streams).await?,
        ends: Moment::new(preview.expires_at),
        once: form.value("mode") == "single_use",
        from: label(form.value("from")),
        gone,
        new,
        kept: kept.cloned().collect(),
        changed,
        digest: preview.digest(),
    };
    let status = if changed {
        StatusCode::CONFLICT
    } else {
        StatusCode::OK
    };
    html(status, &page)
}

/// `POST /grants/new/issue`
pub(super) async fn make(mut context: RequestContext) -> HandlerResult {
    let (session, form) = session::sent_form(&mut context, SIGN_IN).await?;
    let made = blocking(Arc::clone(&context.service), move |service| {
        let looked = match Looked::new(service, &form)? {
            Ok(looked) if looked.preview.digest() == form.value("digest") => looked,
            Ok(looked) => return Ok(Err(NotMade::Changed(form, Box::new(looked)))),
            Err(mistakes) => return Ok(Err(NotMade::Mistaken(form, mistakes))),
        };
        let made = match looked.preview.issue(&*service.store) {
            Ok(made) => made,
            Err(error) => return Ok(Err(NotMade::Mistaken(form, mistakes(error)?))),
        };
        templates::save(service, &form)?;
        let setup = setup(service, form.value("agent"), &made)?;
        Ok(Ok((form, made, setup)))
    });
    let (form, made, setup) = match made.await? {
        Ok(made) => made,
        Err(NotMade::Mistaken(form, mistakes)) => {
            return page(&context.service, &session, form, mistakes).await;
        }
        Err(NotMade::Changed(form, looked)) => {
            return review_page(&context.service, &session, &form, *looked, true).await;
        }
    };
    let public_url = &context.service.public_url;
    let page = IssuedPage {
        frame: Frame::new(&session, Section::Grants),
        client: label(client_name(&form)),
        id: id(&made),
        token: made.access_token.expose().to_owned(),
        mcp_url: format!("{public_url}/mcp"),
        api_url: format!("{public_url}/v1"),
        ends: Moment::parse(&made.expires_at),
        from: label(form.value("from")),
        setup,
    };
    html(StatusCode::OK, &page)
}

/// Why a grant was not made.
enum NotMade {
    Mistaken(Form, Vec<String>),
    /// It would not be what was reviewed.
    Changed(Form, Box<Looked>),
}

fn id(made: &Issued) -> String {
    let package = made.grant_package_id.as_ref().map(ToString::to_string);
    let grant = || made.grant_id.as_ref().map(ToString::to_string);
    package.or_else(grant).unwrap_or_default()
}

/// What the application is called: as the owner says, else as the agent is.
fn client_name(form: &Form) -> &str {
    match form.value("client").trim() {
        "" => form.value("agent"),
        name => name,
    }
}

/// How an agent is connected under a new grant; nothing for any other program.
fn setup(service: &Service, agent: &str, made: &Issued) -> Result<Option<SetupLines>, Problem> {
    let Some(setup) = service.setup.as_ref().filter(|_| !agent.is_empty()) else {
        return Ok(None);
    };
    let shown = grants::show(&*service.store, &id(made), service.now(), 0);
    let shown = shown.map_err(|error| super::grant::problem(&error))?;
    let grant = SetupGrant {
        id: id(made),
        ends: made.expires_at.clone(),
        lines: Wording::whole(visible).overview(&shown.overview),
    };
    Ok(setup.lines(agent, &grant))
}

fn agents(service: &Service, form: &Form) -> Vec<AgentRow> {
    let agents = service.setup.iter().flat_map(|setup| setup.agents());
    let row = |name| AgentRow {
        name,
        chosen: form.value("agent") == name,
    };
    agents.map(row).collect()
}

/// What a form asks for.
struct GrantRequest {
    client: String,
    selection: Selection,
    ends: Instant,
}

impl GrantRequest {
    fn new(service: &Service, form: &Form) -> Result<Self, Problem> {
        let offered = choice::rows(service, None, form)?;
        let mode = AccessMode::named(form.value("mode")).unwrap_or(AccessMode::Continuous);
        Ok(Self {
            client: client_name(form).to_owned(),
            selection: Selection::from_choice(choice::ticked(form, &offered), mode),
            ends: choice::end(form, service.now()),
        })
    }
}

async fn page(
    service: &Arc<Service>,
    session: &Session,
    form: Form,
    mistakes: Vec<String>,
) -> HandlerResult {
    let frame = Frame::new(session, Section::Grants);
    let status = match mistakes.as_slice() {
        [] => StatusCode::OK,
        _ => StatusCode::BAD_REQUEST,
    };
    let made = blocking(Arc::clone(service), move |service| {
        let mut sources = choice::rows(service, None, &form)?;
        let page = NewGrantPage {
            frame,
            client: form.value("client").to_owned(),
            agents: agents(service, &form),
            from: form.value("from").to_owned(),
            finding: Finding::apply(&form, &mut sources),
            sources,
            ends: choice::ends(&form),
            once: form.value("mode") == "single_use",
            templates: templates::rows(service, &form)?,
            mistakes,
        };
        Ok((page, form))
    });
    let (mut page, form) = made.await?;
    let ticked = value_choice::ticked(&page.sources);
    let figures = value_choice::figures(Arc::clone(service), ticked, form).await?;
    value_choice::show(figures, &mut page.sources);
    html(status, &page)
}

/// What is wrong with a choice, one line each; anything else is a failure of ours.
fn mistakes(error: IssueError) -> Result<Vec<String>, Problem> {
    match error {
        IssueError::Selection(mistakes) => Ok(rules(&mistakes.0)),
        IssueError::ClientName(_) | IssueError::Reserved | IssueError::AlreadyOver(_) => {
            Ok(vec![label(&error.to_string())])
        }
        other => Err(Problem::internal("a grant could not be made", &other)),
    }
}

/// The form filled in with what a grant gives. A limit to single records has no place in it, and is told as gone in the
/// review.
fn like(overview: &Overview) -> Result<Vec<(String, String)>, Problem> {
    let pair = |name: &str, value: String| (name.to_owned(), value);
    let mut pairs = vec![
        pair("from", overview.id.clone()),
        pair("client", client(overview)),
    ];
    for row in &overview.streams {
        pairs.extend(choice::pairs_of(&row.chosen())?);
    }
    Ok(pairs)
}

/// What the earlier grant gives and this one would not, and the other way round.
fn difference(
    service: &Service,
    from: &str,
    looked: &Preview,
) -> Result<(Vec<String>, Vec<String>), Problem> {
    if from.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let shown = grants::show(&*service.store, from, service.now(), 0);
    let shown = shown.map_err(|error| super::grant::problem(&error))?;
    let wording = Wording::whole(visible);
    let old = wording.overview(&shown.overview);
    let new: Vec<String> = looked
        .grants()
        .iter()
        .flat_map(|grant| wording.grant(grant, &[]))
        .collect();
    let gone = old
        .iter()
        .filter(|line| !new.contains(line))
        .cloned()
        .collect();
    let added = new
        .iter()
        .filter(|line| !old.contains(line))
        .cloned()
        .collect();
    Ok((gone, added))
}
