//! Imports: files in, progress and a report out, both streamed.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::http::StatusCode;
use contract::declaration::Declaration;
use contract::id::{ConnectionId, StreamName};
use ingest::importer::Stopped;
use ingest::{
    Acceptor, BatchLimits, Companions, CsvImporter, Export, Format, Import, ImportError,
    ImportReport, Importer, Input, JsonArrayImporter, JsonlImporter, LineForm, SheetsImporter,
    SingerImporter, StreamChoice,
};
use store::records::Records;
use store::{Store, StoreError};

use super::progress::stream_progress;
use super::upload_frames::{FileName, UploadedFiles};
use super::wire::{ImportProgress, ImportRequest, Imported, Refusal};
use super::{invalid_request, store_problem};
use crate::body_stream::{discard, incoming_body};
use crate::history::{self, ImportRecord};
use crate::problem::Problem;
use crate::service::Service;
use crate::table::{HandlerResult, RequestContext};

/// Where an import goes, and how.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
struct Plan {
    /// `None` in a dry run of what has no connection yet.
    connection: Option<ConnectionId>,
    declaration: Arc<Declaration>,
    /// Forces all lines into this stream.
    stream: Option<StreamName>,
    limits: BatchLimits,
    dry: bool,
    /// Whether records that the owner deleted are brought back.
    revives: bool,
    /// Whether what is there and does not come is deleted.
    prunes: bool,
    keeps_pictures: bool,
    names: bool,
}

/// Files to import, opened one after the other.
pub trait ImportFiles {
    /// The next file, or nothing at the end. The one before may have been read in part only.
    fn next_file(&mut self) -> io::Result<Option<(FileName, Box<dyn Read>)>>;
}

impl<R: Read + 'static> ImportFiles for UploadedFiles<R> {
    fn next_file(&mut self) -> io::Result<Option<(FileName, Box<dyn Read>)>> {
        let next = self.next()?;
        Ok(next.map(|(name, content)| (name, Box::new(content) as Box<dyn Read>)))
    }
}

pub(super) async fn import(context: RequestContext) -> HandlerResult {
    // An error is sent as a progress event: the client is still sending and reads the answer only as a stream.
    let request = ImportRequest::from_params(&context);
    // The owner may type an import, so there is no limit of size or time.
    let (pump, reader) = incoming_body(u64::MAX, Duration::MAX);
    let mut body = context.body;
    tokio::spawn(async move {
        pump.run(&mut body).await;
        discard(body).await;
    });
    let service = context.service;
    let mut response = stream_progress(move |progress| {
        let request = request.map_err(|problem| refusal(problem.error.message.clone()))?;
        let mut files = UploadedFiles::new(reader);
        import_files(&service, &request, &mut files, &|event| {
            progress.report(event);
        })
    });
    *response.status_mut() = StatusCode::OK;
    Ok(response)
}

/// Imports files that this process opens itself.
pub fn import_files(
    service: &Service,
    request: &ImportRequest,
    files: &mut dyn ImportFiles,
    progress: &dyn Fn(ImportProgress),
) -> Result<Imported, Refusal> {
    let plan = Plan::new(&*service.store, request)
        .map_err(|problem| refusal(problem.error.message.clone()))?;
    let (imported, names) = run(service, &plan, files, progress);
    if let (Some(connection), false) = (&plan.connection, plan.dry) {
        let kind = &plan.declaration.display_name;
        let record = ImportRecord::new(service.now(), connection, kind, names, &imported);
        let upload = request.upload.as_deref().unwrap_or_default();
        history::keep_import(&*service.store, &record.of_upload(upload));
    }
    Ok(imported)
}

impl ImportRequest {
    fn from_params(context: &RequestContext) -> Result<Self, Problem> {
        let text = |name| context.params.text(name);
        let owned = |name| text(name).map(str::to_owned);
        let is_set = |name| text(name) == Some("true");
        let lines = text("batch_lines").map(str::parse).transpose();
        Ok(Self {
            connection_id: owned("connection_id"),
            export: owned("export"),
            declaration: None,
            stream: owned("stream"),
            dry_run: is_set("dry_run"),
            revive: is_set("revive"),
            prune: is_set("prune"),
            pictures: is_set("pictures"),
            name_files: is_set("name_files"),
            batch_lines: lines.map_err(|_| invalid_request("batch_lines is a number"))?,
            upload: None,
        })
    }
}

impl Plan {
    fn new(store: &dyn Store, request: &ImportRequest) -> Result<Self, Problem> {
        let dry = request.dry_run;
        let export = request.export.as_deref().and_then(Export::parse);
        let would_be = match &request.declaration {
            Some(declaration) => Some(Declaration::parse(declaration)),
            None => export.map(Export::bundled),
        };
        let (connection, declaration) = match would_be.filter(|_| dry) {
            Some(declared) => {
                let declared =
                    declared.map_err(|mistakes| invalid_request(mistakes.to_string()))?;
                (None, Arc::new(declared))
            }
            None => connection_target(store, request.connection_id.as_deref().unwrap_or_default())?,
        };
        let stream = request.stream.as_deref().map(StreamName::parse).transpose();
        let mut limits = BatchLimits::default();
        limits.lines = request.batch_lines.unwrap_or(limits.lines);
        Ok(Self {
            connection,
            declaration,
            stream: stream.map_err(|error| invalid_request(error.to_string()))?,
            limits,
            dry,
            revives: request.revive,
            prunes: request.prune,
            keeps_pictures: request.pictures,
            names: request.name_files,
        })
    }
}

fn connection_target(
    store: &dyn Store,
    id: &str,
) -> Result<(Option<ConnectionId>, Arc<Declaration>), Problem> {
    let connection = ConnectionId::parse(id).map_err(|error| invalid_request(error.to_string()))?;
    let found = store.connection(&connection);
    let found = found.ok_or_else(|| StoreError::UnknownConnection(connection.clone()));
    let found = found.map_err(|error| store_problem(&error))?;
    let declaration = store.declaration(&found.connector);
    let declaration = declaration.ok_or(StoreError::UnknownConnector(found.connector));
    let declaration = declaration.map_err(|error| store_problem(&error))?;
    Ok((Some(connection), declaration))
}

/// Imports, and says which files there were.
fn run(
    service: &Service,
    plan: &Plan,
    files: &mut dyn ImportFiles,
    progress: &dyn Fn(ImportProgress),
) -> (Imported, Vec<String>) {
    let store = &*service.store;
    let records: &dyn Records = store;
    let mut import = match &plan.connection {
        Some(connection) if !plan.dry => {
            Import::new(store, connection, plan.limits).with_blobs(store)
        }
        existing => {
            let existing = existing.as_ref().map(|connection| (records, connection));
            Import::dry(existing, &plan.declaration, plan.limits)
        }
    };
    let now = service.reader_settings.clock.now();
    import = import
        .reviving(plan.revives)
        .pruning(plan.prunes)
        .comparing_ages(&plan.declaration, now);
    let mut running = Running {
        service,
        plan,
        progress,
        companions: Companions::default().keeping_pictures(plan.keeps_pictures),
        bytes: 0,
        names: Vec::new(),
    };
    let mut stopped = running.import_all(&mut import, files).err();
    let names = running.names;
    if stopped.is_none() {
        let finished = import.finish(service.reader_settings.clock.now());
        stopped = finished.err().map(|error| Refusal::from(&error));
    }
    let (report, samples) = import.into_report_and_samples();
    let mut lagging = None;
    if !plan.dry && stopped.is_none() && report.read > report.rejected {
        progress(ImportProgress {
            read: report.read,
            bytes: 0,
            indexing: true,
        });
        // The records are safe whatever happens here.
        lagging = store.settle_index().err().map(|error| error.to_string());
    }
    let imported = Imported {
        report,
        stopped,
        lagging,
        samples,
    };
    (imported, names)
}

struct Running<'a> {
    service: &'a Service,
    plan: &'a Plan,
    progress: &'a dyn Fn(ImportProgress),
    companions: Companions,
    /// Bytes of the files before the current one.
    bytes: u64,
    /// The names of the files so far.
    names: Vec<String>,
}

impl Running<'_> {
    fn import_all(
        &mut self,
        import: &mut Import<'_>,
        files: &mut dyn ImportFiles,
    ) -> Result<(), Refusal> {
        let broken = |error: io::Error| refusal(format!("the files did not arrive whole: {error}"));
        while let Some((file, content)) = files.next_file().map_err(broken)? {
            match self.import_one(import, &file, content) {
                // Whoever names a folder or an archive did not name this file.
                Err(FileFailure::Unreadable(error)) if file.inside.is_some() => {
                    import.pass_over(&file.name, &error.to_string());
                }
                done => done?,
            }
        }
        Ok(())
    }

    fn import_one(
        &mut self,
        import: &mut Import<'_>,
        file: &FileName,
        content: Box<dyn Read>,
    ) -> Result<(), FileFailure> {
        let (plan, before) = (self.plan, self.bytes);
        let name = file.name.as_str();
        self.names.push(name.to_owned());
        let recognised = file.format.as_deref().and_then(Format::parse);
        let input = match (&file.file_name, recognised) {
            (Some(file_name), Some(format)) => Input::of_format(name, file_name, format, content),
            (Some(file_name), None) => Input::from_file(name, file_name, content),
            (None, _) => Input::from_reader(name, content),
        };
        let input = input?.standing_inside(file.inside.as_deref());
        let format = input.format()?;
        let choice = StreamChoice::for_input(plan.stream.as_ref(), input.stem(), &plan.declaration);
        match format {
            Format::Csv if choice.stream().is_none() => {
                return Err(no_stream(name, &plan.declaration).into());
            }
            Format::Export(export)
                if plan.declaration.connector_key().as_str() != export.connector_key() =>
            {
                return Err(other_connector(name, export, &plan.declaration).into());
            }
            _ => {}
        }
        let clock = &*self.service.reader_settings.clock;
        let mut acceptor =
            Acceptor::new(&plan.declaration, choice, LineForm::EnvelopeOrBare, clock);
        if let Format::Export(export) = format {
            let records: &dyn Records = &*self.service.store;
            let existing = plan.connection.as_ref();
            let existing = existing.map(|connection| (records, connection));
            acceptor = acceptor.with_readable_keys(export, &plan.declaration, existing);
        }
        let consumed = input.consumed();
        let mut importer: Box<dyn Importer> = match format {
            Format::Jsonl => Box::new(JsonlImporter::new(input.into_reader(), &acceptor)),
            Format::Json => Box::new(JsonArrayImporter::new(input.into_reader(), &acceptor)),
            Format::Singer => {
                let reader = input.into_reader();
                Box::new(SingerImporter::new(reader, &acceptor, &plan.declaration))
            }
            Format::Csv => Box::new(CsvImporter::new(input.into_reader(), &acceptor)),
            Format::Workbook | Format::Database => {
                let (declaration, companions) = (&plan.declaration, &self.companions);
                let sheets = SheetsImporter::new(input, &acceptor, declaration, companions);
                Box::new(sheets)
            }
            Format::Export(export) => export.importer(input, &acceptor, &self.companions),
        };
        let mut acknowledged = |report: &ImportReport| {
            (self.progress)(ImportProgress {
                read: report.read,
                bytes: before + consumed.load(Ordering::Relaxed),
                indexing: false,
            });
        };
        let named = plan.names.then_some(name);
        let ran = import.run(importer.as_mut(), named, &mut acknowledged);
        ran.map_err(|stopped: Stopped| stopped.named(name))?;
        self.bytes += consumed.load(Ordering::Relaxed);
        Ok(())
    }
}

/// Why a file was not imported to its end.
enum FileFailure {
    /// It cannot be read; others can.
    Unreadable(ImportError),
    /// Nothing can be imported.
    Refused(Refusal),
}

impl From<ImportError> for FileFailure {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Store(error) => Self::Refused(Refusal::from(&error)),
            other => Self::Unreadable(other),
        }
    }
}

impl From<Refusal> for FileFailure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<FileFailure> for Refusal {
    fn from(failure: FileFailure) -> Self {
        match failure {
            FileFailure::Unreadable(error) => refusal(error.to_string()),
            FileFailure::Refused(refusal) => refusal,
        }
    }
}

fn refusal(message: String) -> Refusal {
    Refusal {
        message,
        hints: Vec::new(),
    }
}

/// Why a file cannot be imported without a stream.
fn no_stream(file: &str, declaration: &Declaration) -> Refusal {
    let streams = declaration.streams.iter();
    let names: Vec<&str> = streams.map(|stream| stream.name.as_str()).collect();
    let mut refusal = refusal(format!("{file}: nothing tells which stream it belongs to"));
    refusal.hints.push(format!(
        "pass --as {}/STREAM with one of: {}",
        declaration.connector_key(),
        names.join(", ")
    ));
    refusal
}

/// Why a known export cannot go into a connection of another kind.
fn other_connector(file: &str, export: Export, declaration: &Declaration) -> Refusal {
    let mut refusal = refusal(format!(
        "{file}: it is {}, which goes into a connection of '{}', not of '{}'",
        export.title(),
        export.connector_key(),
        declaration.connector_key()
    ));
    // Files are recognised before they are sent, so this one came through a pipe.
    let hint = "write it to a file and import that: then it is recognised, and its connection found or added";
    refusal.hints.push(hint.to_owned());
    refusal
}
