//! Importing in the browser: files are uploaded, recognised, tried, and then imported with a report. Both go on without
//! the browser; the page of the upload shows how far they are.

mod inferred;
mod jobs;
mod multipart;
mod receiving;
mod report;
mod staged;
mod target;

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use contract::error::{ErrorCode, ReadError};
use ingest::table::Inferred;
use ingest::{Export, Format};

use self::inferred::InferredRow;
pub(crate) use self::jobs::ImportJobs;
use self::jobs::{Job, Outcome, ProgressRow};
use self::multipart::Multipart;
use self::receiving::{bad_upload, receive, root};
pub(super) use self::report::ReportRow;
use self::report::SHOWN;
use self::staged::{Contents, Group, OpenedFiles, Staged};
use self::target::{NEW, Place};
use super::format::label;
use super::frame::{Frame, Section};
use super::{html, see_other, session};
use crate::body_stream::{discard, incoming_body};
use crate::form::Form;
use crate::history;
use crate::owner::wire::{ImportRequest, Refusal};
use crate::owner::{blocking, import_files};
use crate::problem::Problem;
use crate::service::Service;
use crate::table::{HandlerResult, RequestContext};

const SIGN_IN: &str = "/sign-in?return_to=%2Fimport";
/// How many earlier imports are listed at first.
const EARLIER: usize = 10;

#[derive(Template)]
#[template(path = "import.html")]
struct ImportPage {
    frame: Frame,
    exports: Vec<ExportRow>,
    /// What people look for and is not taken, and why.
    not_known: &'static [(&'static str, &'static str)],
    is_possible: bool,
    waiting: Vec<WaitingRow>,
    earlier: Vec<ReportRow>,
    more_earlier: usize,
}

struct ExportRow {
    title: &'static str,
    origin: &'static str,
    contents: &'static str,
}

/// An upload that is worked on, or waits for the owner.
struct WaitingRow {
    id: String,
    what: &'static str,
    files: String,
}

#[derive(Template)]
#[template(path = "import_running.html")]
struct RunningPage {
    frame: Frame,
    writes: bool,
    groups: Vec<ProgressRow>,
}

#[derive(Template)]
#[template(path = "import_waiting.html")]
struct WaitingPage {
    frame: Frame,
    id: String,
    files: String,
}

#[derive(Template)]
#[template(path = "import_review.html")]
struct ReviewPage {
    frame: Frame,
    reviewed: Arc<Reviewed>,
}

/// What an upload holds, and what importing it would do.
pub(super) struct Reviewed {
    id: String,
    groups: Vec<GroupRow>,
    left: Vec<String>,
    more_left: usize,
}

struct GroupRow {
    number: usize,
    title: String,
    files: Vec<String>,
    more_files: usize,
    places: Vec<Place>,
    /// What a source would be that is made of it.
    inferred: Option<InferredRow>,
    /// What a try found; nothing where there is no place to try.
    tried: Option<ReportRow>,
}

#[derive(Template)]
#[template(path = "imported.html")]
struct ImportedPage {
    frame: Frame,
    reports: Arc<Vec<ReportRow>>,
}

/// `GET /import`
pub(super) async fn show(context: RequestContext) -> HandlerResult {
    let session = session::signed_in(&context).await?;
    let all = Form::from_query(context.query())?.value("all") == "1";
    let frame = Frame::new(&session, Section::Import);
    let page = blocking(context.service, move |service| {
        let imports = history::imports(&*service.store, service.now());
        let imports = imports.map_err(|error| Problem::internal("earlier imports", &error))?;
        let shown = if all { imports.len() } else { EARLIER };
        let earlier = imports.iter().take(shown);
        let row = |export: &Export| ExportRow {
            title: export.title(),
            origin: export.origin(),
            contents: export.contents(),
        };
        Ok(ImportPage {
            frame,
            exports: Export::ALL.iter().map(row).collect(),
            not_known: Export::NOT_KNOWN,
            is_possible: service.uploads.is_some(),
            waiting: waiting(service),
            earlier: earlier
                .map(|record| ReportRow::from_record(service, record))
                .collect(),
            more_earlier: imports.len().saturating_sub(shown),
        })
    });
    html(StatusCode::OK, &page.await?)
}

fn waiting(service: &Service) -> Vec<WaitingRow> {
    let uploads = service.uploads.as_deref().map(Staged::all);
    let running = service.imports.running();
    let row = |staged: Staged| WaitingRow {
        what: match running.iter().find(|(upload, _)| *upload == staged.id) {
            Some((_, true)) => "It is being imported",
            Some((_, false)) => "It is being looked at",
            None => "It waits for you",
        },
        files: label(&staged.names().join(", ")),
        id: staged.id,
    };
    uploads.unwrap_or_default().into_iter().map(row).collect()
}

/// `POST /import`: takes files, and looks at what they are and what importing them would do.
pub(super) async fn upload(context: RequestContext) -> HandlerResult {
    let Some(session) = session::session(&context).await? else {
        return Ok(see_other(SIGN_IN));
    };
    let foreign = session::foreign_form_problem(&context);
    if session::is_cross_origin(&context) {
        return Err(foreign);
    }
    let boundary = multipart::boundary(&context.headers);
    let boundary = boundary.ok_or_else(|| bad_upload("the request is no form with files"))?;
    let root = root(&context.service)?;
    let limits = context.service.limits;
    let (pump, reader) = incoming_body(limits.upload_bytes, limits.body_pause);
    let (service, mut body) = (context.service, context.body);
    tokio::spawn(async move {
        pump.run(&mut body).await;
        discard(body).await;
    });
    let owner = session.clone();
    let received = blocking(Arc::clone(&service), move |service| {
        let mut form = Multipart::new(reader, &boundary);
        let staged = receive(&root, &mut form, &owner, (foreign, service.now()))?;
        let contents = contents(&staged)?;
        if contents.groups.is_empty() {
            staged.discard();
        }
        Ok((staged, contents))
    });
    let (staged, contents) = received.await?;
    if contents.groups.is_empty() {
        let page = ReviewPage {
            frame: Frame::new(&session, Section::Import),
            reviewed: Arc::new(Reviewed::new(&staged, Vec::new(), &contents)),
        };
        return html(StatusCode::BAD_REQUEST, &page);
    }
    let to = format!("/import/{}", staged.id);
    look_at(&service, staged, Form::from_pairs(Vec::new())).await;
    Ok(see_other(&to))
}

/// Tries what importing an upload would do.
async fn look_at(service: &Arc<Service>, staged: Staged, form: Form) {
    let id = staged.id.clone();
    ImportJobs::run(service, &id, false, move |service, job| {
        match contents(&staged).map(Contents::with_tables) {
            Ok(contents) => {
                Outcome::Reviewed(Arc::new(review(service, &staged, &contents, (&form, job))))
            }
            Err(problem) => Outcome::Failed(problem.error.message.clone()),
        }
    })
    .await;
}

/// `GET /import/{id}`: how far an upload is, and what came of it.
pub(super) async fn show_upload(context: RequestContext) -> HandlerResult {
    let session = session::signed_in(&context).await?;
    let frame = Frame::new(&session, Section::Import);
    let id = context.part(0).to_owned();
    let service = context.service;
    let Some(job) = service.imports.find(&id) else {
        return show_without_job(service, frame, id).await;
    };
    match job.outcome() {
        None => {
            let (writes, groups) = (job.writes, job.progress());
            let page = RunningPage {
                frame,
                writes,
                groups,
            };
            html(StatusCode::OK, &page)
        }
        Some(Outcome::Reviewed(reviewed)) => html(StatusCode::OK, &ReviewPage { frame, reviewed }),
        Some(Outcome::Imported(reports)) => html(StatusCode::OK, &ImportedPage { frame, reports }),
        Some(Outcome::Failed(message)) => Err(bad_upload(&message)),
    }
}

/// An upload that nothing was done with since the server started: it waits, or its reports were kept.
async fn show_without_job(service: Arc<Service>, frame: Frame, id: String) -> HandlerResult {
    if let Some(staged) = service
        .uploads
        .as_deref()
        .and_then(|root| Staged::find(root, &id))
    {
        let files = label(&staged.names().join(", "));
        return html(StatusCode::OK, &WaitingPage { frame, id, files });
    }
    let reports = blocking(service, move |service| {
        let imports = history::imports(&*service.store, service.now());
        let imports = imports.map_err(|error| Problem::internal("earlier imports", &error))?;
        let of_it = imports.iter().filter(|record| record.upload == id);
        Ok(of_it
            .map(|record| ReportRow::from_record(service, record))
            .collect::<Vec<_>>())
    });
    let reports = reports.await?;
    if reports.is_empty() {
        return Err(gone());
    }
    let reports = Arc::new(reports);
    html(StatusCode::OK, &ImportedPage { frame, reports })
}

fn gone() -> Problem {
    let message =
        "this upload is not here any more: it was imported or discarded, or is older than a day";
    let error = ReadError::new(ErrorCode::NotFound, message);
    error.with_hint("choose the files again at /import").into()
}

/// `POST /import/{id}`: tries, imports or discards what was uploaded.
pub(super) async fn decide(mut context: RequestContext) -> HandlerResult {
    let (_, form) = session::sent_form(&mut context, SIGN_IN).await?;
    let staged = Staged::find(&root(&context.service)?, context.part(0));
    let staged = staged.ok_or_else(gone)?;
    let (service, id) = (context.service, staged.id.clone());
    let runs = service.imports.find(&id);
    let runs = runs.is_some_and(|job| job.outcome().is_none());
    match form.value("action") {
        // What is worked on is shown, and can be discarded afterwards.
        _ if runs => {}
        "discard" => {
            staged.discard();
            service.imports.forget(&id);
            return Ok(see_other("/import"));
        }
        "import" => import(&service, staged, form).await,
        _ => look_at(&service, staged, form).await,
    }
    Ok(see_other(&format!("/import/{id}")))
}

async fn import(service: &Arc<Service>, staged: Staged, form: Form) {
    let id = staged.id.clone();
    ImportJobs::run(service, &id, true, move |service, job| {
        let contents = match contents(&staged) {
            Ok(contents) => contents.with_tables(),
            Err(problem) => return Outcome::Failed(problem.error.message.clone()),
        };
        job.begin(&contents.groups);
        let mut reports = Vec::new();
        for (number, group) in contents.groups.iter().enumerate() {
            let run = Run {
                service,
                job,
                upload: &staged.id,
                dry: false,
            };
            let (report, _) = run.group((number, group), chosen(&form, number));
            reports.push(report);
        }
        // What was stopped can be tried once more.
        if reports.iter().all(|report| report.stopped.is_empty()) {
            staged.discard();
        }
        Outcome::Imported(Arc::new(reports))
    })
    .await;
}

/// Where a group goes, as the form says.
fn chosen(form: &Form, number: usize) -> &str {
    form.value(&format!("to{number}"))
}

fn contents(staged: &Staged) -> Result<Contents, Problem> {
    let contents = staged.contents();
    contents.map_err(|error| bad_upload(&format!("the upload cannot be read: {error}")))
}

impl Reviewed {
    fn new(staged: &Staged, groups: Vec<GroupRow>, contents: &Contents) -> Self {
        Self {
            id: staged.id.clone(),
            groups,
            left: contents
                .left
                .iter()
                .take(SHOWN)
                .map(|line| label(line))
                .collect(),
            more_left: contents.left.len().saturating_sub(SHOWN),
        }
    }
}

fn review(
    service: &Service,
    staged: &Staged,
    contents: &Contents,
    (form, job): (&Form, &Job),
) -> Reviewed {
    job.begin(&contents.groups);
    let mut groups = Vec::new();
    for (number, group) in contents.groups.iter().enumerate() {
        let wanted = chosen(form, number);
        let mut places = target::places(service, group, wanted);
        let run = Run {
            service,
            job,
            upload: &staged.id,
            dry: true,
        };
        let mut tried = run.chosen((number, group), &places);
        // Columns that a stream has too do not make it a place that takes the table.
        let is_refused = matches!(&tried, Some((report, _)) if !report.stopped.is_empty());
        if is_refused && wanted.is_empty() && group.makes_source() {
            target::choose(&mut places, NEW);
            tried = run.chosen((number, group), &places);
        }
        let (tried, inferred) = tried.unzip();
        let files = group.files.iter().take(SHOWN).map(|file| label(&file.name));
        groups.push(GroupRow {
            number,
            title: title(group),
            files: files.collect(),
            more_files: group.files.len().saturating_sub(SHOWN),
            inferred: inferred.flatten().as_ref().map(InferredRow::from),
            tried,
            places,
        });
    }
    Reviewed::new(staged, groups, contents)
}

fn title(group: &Group) -> String {
    let Some(export) = group.export else {
        let titled = |what: &str, title: &str| label(&format!("{what} {title}"));
        return match group.table().map(|file| (file.format(), file.title())) {
            Some((Format::Csv | Format::Json, title)) => titled("Table", title),
            Some((Format::Workbook, title)) => titled("Workbook", title),
            Some((Format::Database, title)) => titled("Database", title),
            _ => "JSON lines".to_owned(),
        };
    };
    export.title().to_owned()
}

/// An import of an upload, or a try.
struct Run<'a> {
    service: &'a Service,
    job: &'a Job,
    upload: &'a str,
    dry: bool,
}

impl Run<'_> {
    /// What comes of a group in the place that is chosen.
    fn chosen(
        &self,
        group: (usize, &Group),
        places: &[Place],
    ) -> Option<(ReportRow, Option<Inferred>)> {
        let place = places.iter().find(|place| place.chosen)?;
        Some(self.group(group, &place.value))
    }

    /// Imports a group, or only tries to. Also says what a source is that is made of it.
    fn group(&self, (number, group): (usize, &Group), to: &str) -> (ReportRow, Option<Inferred>) {
        let title = title(group);
        let mut request = ImportRequest {
            dry_run: self.dry,
            name_files: group.files.len() > 1,
            upload: Some(self.upload.to_owned()),
            ..ImportRequest::default()
        };
        let inferred = match self.aim(&mut request, group, to) {
            Ok(inferred) => inferred,
            Err(refused) => return (ReportRow::refused(&title, &refused), None),
        };
        let mut files = OpenedFiles(group.files.clone().into_iter());
        let imported = import_files(self.service, &request, &mut files, &|reached| {
            self.job.reach(number, reached);
        });
        self.job.end(number);
        let report = match imported {
            Ok(imported) => {
                let connection = request.connection_id.unwrap_or_default();
                ReportRow::new(&title, &imported, &connection)
            }
            Err(refused) => ReportRow::refused(&title, &refused),
        };
        (report, inferred)
    }

    /// Says where a group goes. What is not there yet is added, unless it is a try.
    fn aim(
        &self,
        request: &mut ImportRequest,
        group: &Group,
        to: &str,
    ) -> Result<Option<Inferred>, Refusal> {
        let store = &*self.service.store;
        match (group.export, to) {
            (Some(export), NEW) if self.dry => request.export = Some(export.as_str().to_owned()),
            (None, NEW) => {
                let inferred = target::infer(store, group)?;
                request.stream = inferred.stream().map(|stream| stream.to_string());
                if self.dry {
                    request.declaration = Some(inferred.declaration.clone());
                } else {
                    let added = inferred.connect(store);
                    let added = added.map_err(|error| Refusal::from(&error))?;
                    request.connection_id = Some(added.id.to_string());
                }
                return Ok(Some(inferred));
            }
            _ => {
                let (connection, stream) = target::resolve(self.service, group, to)?;
                request.connection_id = Some(connection.to_string());
                request.stream = stream;
            }
        }
        Ok(None)
    }
}
