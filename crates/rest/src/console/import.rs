//! Importing in the browser: files are uploaded, recognised, tried, and then imported with a report.

mod multipart;
mod staged;
mod target;

use std::io;
use std::path::Path;
use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use contract::error::{ErrorCode, ReadError};
use contract::time::Instant;
use grants::sign_in::Session;
use ingest::{Export, ImportReport};

use self::multipart::Multipart;
use self::staged::{Contents, Group, OpenedFiles, Staged};
use self::target::{NEW, Place};
use super::format::{format_count, format_number, label};
use super::frame::{Frame, Section};
use super::{html, see_other, session};
use crate::body_stream::{BodyError, discard, incoming_body};
use crate::form::Form;
use crate::owner::wire::{ImportRequest, Imported, Refusal};
use crate::owner::{blocking, import_files};
use crate::problem::Problem;
use crate::service::Service;
use crate::table::{HandlerResult, RequestContext};

/// The largest upload; `pdpp import` has no limit.
const MAX_UPLOAD_BYTES: u64 = 4 * 1024 * 1024 * 1024;
const MAX_FILES: usize = 500;
const MAX_FIELD_BYTES: usize = 4_096;
/// How many lines of what was refused or left are shown.
const SHOWN: usize = 20;

#[derive(Template)]
#[template(path = "import.html")]
struct ImportPage {
    frame: Frame,
    exports: Vec<ExportRow>,
    is_possible: bool,
}

struct ExportRow {
    title: &'static str,
    origin: &'static str,
    contents: &'static str,
}

#[derive(Template)]
#[template(path = "import_review.html")]
struct ReviewPage {
    frame: Frame,
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
    /// What a try found; nothing where there is no place to try.
    tried: Option<ReportRow>,
}

#[derive(Template)]
#[template(path = "imported.html")]
struct ImportedPage {
    frame: Frame,
    reports: Vec<ReportRow>,
}

struct ReportRow {
    title: String,
    figures: Vec<(&'static str, String)>,
    problems: Vec<String>,
    more_problems: usize,
    /// What stopped it; empty where it came to its end.
    stopped: String,
    address: String,
}

/// `GET /import`
pub(super) async fn show(context: RequestContext) -> HandlerResult {
    let Some(session) = session::session(&context).await? else {
        return Ok(session::to_sign_in(&context));
    };
    let row = |export: &Export| ExportRow {
        title: export.title(),
        origin: export.origin(),
        contents: export.contents(),
    };
    let page = ImportPage {
        frame: Frame::new(&session, Section::Import),
        exports: Export::ALL.iter().map(row).collect(),
        is_possible: context.service.uploads.is_some(),
    };
    html(StatusCode::OK, &page)
}

/// `POST /import`: takes files, and shows what they are and what importing them would do.
pub(super) async fn upload(context: RequestContext) -> HandlerResult {
    let Some(session) = session::session(&context).await? else {
        return Ok(see_other("/sign-in?return_to=%2Fimport"));
    };
    let foreign = session::foreign_form_problem(&context);
    if session::is_cross_origin(&context) {
        return Err(foreign);
    }
    let boundary = multipart::boundary(&context.headers);
    let boundary = boundary.ok_or_else(|| bad_upload("the request is no form with files"))?;
    let root = root(&context.service)?;
    let (pump, reader) = incoming_body(MAX_UPLOAD_BYTES, context.service.limits.body_pause);
    let (service, mut body) = (context.service, context.body);
    tokio::spawn(async move {
        pump.run(&mut body).await;
        discard(body).await;
    });
    let owner = session.clone();
    let reviewed = blocking(service, move |service| {
        let mut form = Multipart::new(reader, &boundary);
        let staged = receive(&root, &mut form, &owner, (foreign, service.now()))?;
        review(service, &staged, &Form::from_pairs(Vec::new()))
    });
    review_page(&session, reviewed.await?)
}

fn root(service: &Service) -> Result<Arc<Path>, Problem> {
    let message = "this server takes no files in the browser; use `pdpp import`";
    let root = service.uploads.clone();
    root.ok_or_else(|| Problem::new(ErrorCode::InvalidRequest, message))
}

fn bad_upload(message: &str) -> Problem {
    let hint = "nothing was imported; choose the file again at /import";
    Problem::from(ReadError::new(ErrorCode::InvalidRequest, message).with_hint(hint))
}

/// Keeps the files of a form. Its token comes first, so that nothing is kept for another site.
fn receive(
    root: &Path,
    form: &mut Multipart<impl io::Read>,
    session: &Session,
    (foreign, now): (Problem, Instant),
) -> Result<Staged, Problem> {
    let first = form.next_part().map_err(|error| broken(&error))?;
    let is_token = first.is_some_and(|part| part.name == "csrf" && part.file_name.is_none());
    let token = form.text(MAX_FIELD_BYTES).map_err(|error| broken(&error))?;
    if !is_token || !session.checks_csrf(&token) {
        return Err(foreign);
    }
    let staged = Staged::begin(root, now).map_err(|error| broken(&error))?;
    let received = keep(&staged, form);
    match received {
        Ok(0) => {
            staged.discard();
            Err(bad_upload("no file was chosen"))
        }
        Ok(_) => Ok(staged),
        Err(error) => {
            staged.discard();
            Err(broken(&error))
        }
    }
}

fn keep(staged: &Staged, form: &mut Multipart<impl io::Read>) -> io::Result<usize> {
    let mut files = 0;
    while let Some(part) = form.next_part()? {
        // A browser sends an empty part where no file was chosen.
        let Some(name) = part.file_name.filter(|name| !name.is_empty()) else {
            continue;
        };
        if files == MAX_FILES {
            let message =
                format!("there are more than {MAX_FILES} files; put them into an archive");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let mut file = staged.create(files, &name)?;
        form.copy_part(&mut file)?;
        files += 1;
    }
    Ok(files)
}

/// Why an upload did not come to its end.
fn broken(error: &io::Error) -> Problem {
    let cause = error
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<BodyError>());
    match cause {
        Some(BodyError::TooLarge) => bad_upload(
            "the files are larger than 4 GiB; `pdpp import` at the terminal has no limit",
        )
        .with_status(StatusCode::PAYLOAD_TOO_LARGE),
        Some(cause) => bad_upload(&cause.to_string()).with_status(StatusCode::REQUEST_TIMEOUT),
        None if error.kind() == io::ErrorKind::InvalidData => bad_upload(&error.to_string()),
        None => Problem::internal("an upload could not be kept", error),
    }
}

/// `POST /import/{id}`: tries, imports or discards what was uploaded.
pub(super) async fn decide(mut context: RequestContext) -> HandlerResult {
    let (session, form) =
        match session::sent_form(&mut context, "/sign-in?return_to=%2Fimport").await? {
            Ok(sent) => sent,
            Err(sign_in) => return Ok(sign_in),
        };
    let staged = Staged::find(&root(&context.service)?, context.part(0));
    let Some(staged) = staged else {
        let message = "this upload is not here any more: it was imported or discarded, or is older than a day";
        let error = ReadError::new(ErrorCode::NotFound, message);
        return Err(error.with_hint("choose the files again at /import").into());
    };
    match form.value("action") {
        "discard" => {
            staged.discard();
            Ok(see_other("/import"))
        }
        "import" => {
            let reports = blocking(Arc::clone(&context.service), move |service| {
                let contents = contents(&staged)?;
                let groups = contents.groups.iter().enumerate();
                let imported =
                    groups.map(|(number, group)| run(service, group, chosen(&form, number), false));
                let reports: Vec<ReportRow> = imported.collect();
                // What was stopped can be tried once more.
                if reports.iter().all(|report| report.stopped.is_empty()) {
                    staged.discard();
                }
                Ok(reports)
            });
            let page = ImportedPage {
                reports: reports.await?,
                frame: Frame::new(&session, Section::Import),
            };
            html(StatusCode::OK, &page)
        }
        _ => {
            let reviewed = blocking(Arc::clone(&context.service), move |service| {
                review(service, &staged, &form)
            });
            review_page(&session, reviewed.await?)
        }
    }
}

/// Where a group goes, as the form says.
fn chosen(form: &Form, number: usize) -> &str {
    form.value(&format!("to{number}"))
}

fn contents(staged: &Staged) -> Result<Contents, Problem> {
    let contents = staged.contents();
    contents.map_err(|error| bad_upload(&format!("the upload cannot be read: {error}")))
}

/// What an upload holds, and what importing it would do.
struct Reviewed {
    id: String,
    groups: Vec<GroupRow>,
    left: Vec<String>,
}

fn review(service: &Service, staged: &Staged, form: &Form) -> Result<Reviewed, Problem> {
    let contents = contents(staged)?;
    let mut groups = Vec::new();
    for (number, group) in contents.groups.iter().enumerate() {
        let places = target::places(service, group, chosen(form, number));
        let place = places
            .iter()
            .find(|place| place.chosen)
            .map(|place| place.value.clone());
        let files = group.files.iter().take(SHOWN).map(|file| label(&file.name));
        groups.push(GroupRow {
            number,
            title: title(group),
            files: files.collect(),
            more_files: group.files.len().saturating_sub(SHOWN),
            tried: place.map(|place| run(service, group, &place, true)),
            places,
        });
    }
    if groups.is_empty() {
        staged.discard();
    }
    Ok(Reviewed {
        id: staged.id.clone(),
        groups,
        left: contents.left,
    })
}

fn title(group: &Group) -> String {
    match group.export {
        Some(export) => export.title().to_owned(),
        None => "JSON lines or tables".to_owned(),
    }
}

fn review_page(session: &Session, reviewed: Reviewed) -> HandlerResult {
    let status = match reviewed.groups.as_slice() {
        [] => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    };
    let left = reviewed.left.iter().take(SHOWN).map(|line| label(line));
    let page = ReviewPage {
        frame: Frame::new(session, Section::Import),
        id: reviewed.id,
        groups: reviewed.groups,
        left: left.collect(),
        more_left: reviewed.left.len().saturating_sub(SHOWN),
    };
    html(status, &page)
}

/// Imports a group, or only tries to.
fn run(service: &Service, group: &Group, to: &str, dry_run: bool) -> ReportRow {
    let mut request = ImportRequest {
        dry_run,
        name_files: group.files.len() > 1,
        ..ImportRequest::default()
    };
    match (group.export, to, dry_run) {
        (Some(export), NEW, true) => request.export = Some(export.as_str().to_owned()),
        _ => match target::resolve(service, group, to) {
            Ok((connection, stream)) => {
                request.connection_id = Some(connection.to_string());
                request.stream = stream;
            }
            Err(refused) => return report_row(group, Err(refused), ""),
        },
    }
    let mut files = OpenedFiles(group.files.clone().into_iter());
    let imported = import_files(service, &request, &mut files, &|_| {});
    let connection = request.connection_id.unwrap_or_default();
    report_row(group, imported, &connection)
}

fn report_row(group: &Group, imported: Result<Imported, Refusal>, connection: &str) -> ReportRow {
    let imported = imported.unwrap_or_else(|refused| Imported {
        report: ImportReport::default(),
        stopped: Some(refused),
        lagging: None,
    });
    let report = &imported.report;
    let occurrences = report.occurrences.added;
    let figures = [
        ("new", report.added),
        ("changed", report.updated),
        ("here already", report.unchanged),
        ("deleted by you before, and left so", report.kept_deleted),
        ("refused", report.rejected),
        ("occurrences of recurring events", occurrences),
    ];
    let figures = figures
        .into_iter()
        .filter(|(what, count)| *count > 0 || *what == "new");
    let problems = problems(report);
    let shown = problems.iter().take(SHOWN).cloned().collect();
    ReportRow {
        title: format!("{}: {}", title(group), format_count(report.read, "record")),
        figures: figures
            .map(|(what, count)| (what, format_number(count)))
            .collect(),
        more_problems: problems.len().saturating_sub(SHOWN),
        problems: shown,
        stopped: imported
            .stopped
            .map(|stopped| told(&stopped))
            .unwrap_or_default(),
        address: match connection {
            "" => "/browse".to_owned(),
            connection => format!("/connections/{connection}"),
        },
    }
}

fn told(refused: &Refusal) -> String {
    let hints = refused.hints.join("; ");
    label(&match hints.as_str() {
        "" => refused.message.clone(),
        hints => format!("{}; {hints}", refused.message),
    })
}

/// What was refused or could not be read, and what had to be assumed, one line each.
fn problems(report: &ImportReport) -> Vec<String> {
    let refused = report.rejections.iter().map(|one| {
        let file = one
            .file
            .as_deref()
            .map(|file| format!("{file}, "))
            .unwrap_or_default();
        format!("{file}line {}: {}", one.line, one.message)
    });
    let broken = report
        .broken
        .iter()
        .map(|one| format!("{}: {}", one.file, one.message));
    let all = broken.chain(refused).chain(report.notes.iter().cloned());
    all.map(|line| label(&line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::import::target::refusal;

    #[test]
    fn a_refusal_says_what_to_do() {
        let mut refused = refusal("it is nothing");
        assert_eq!(told(&refused), "it is nothing");
        refused.hints.push("try <x>".to_owned());
        assert_eq!(told(&refused), "it is nothing; try <x>");
    }
}
