//! `pdpp import`: files into a connection, with a report.

mod files;
mod known_export;
mod progress;
mod target;
mod upload;

use std::fmt::Write as _;
use std::path::PathBuf;

use axum::http::Method;
use clap::Args;
use indicatif::HumanCount;
use ingest::ImportReport;
use rest::owner::import_files;
use rest::owner::wire::{ImportProgress, ImportRequest, Imported, ProgressEvent};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use self::files::{ImportFile, Interruption, LocalFiles};
use self::known_export::ExportTarget;
use self::progress::Progress;
use self::target::{ImportTarget, StreamPath, WriteTarget};
use self::upload::Upload;
use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::output::{Output, visible};
use crate::owner::{OwnerClient, OwnerError, OwnerResponse, RequestPath};

/// How many rejections a person is shown.
const SHOWN_REJECTIONS: usize = 20;

/// Import known exports, JSONL and CSV files, plain or compressed with gzip
///
/// Importing the same again changes nothing, and what you deleted with `pdpp delete` stays deleted. Each file goes into one connection: the one --connection names, else the only one
/// that fits.
///
/// Known exports, such as a mailbox, are recognised by looking inside and need nothing declared. If there is no connection for
/// them yet, one is added.
///
/// A JSON line is an envelope, `{"key", "data", "stream"?, "emitted_at"?, "op"?}`, or a bare record, whose key comes from
/// the stream's primary key. A CSV row is a bare record; its header names the fields. The stream is the one --as names,
/// else the one a line names, else the one the file is called after, else the only one there is.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp import messages.jsonl.gz --as mail/messages")]
pub(crate) struct Options {
    /// Files to import ('-' reads JSONL from stdin)
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// What the files hold
    #[arg(long = "as", value_name = "CONNECTOR/STREAM")]
    stream: Option<StreamPath>,
    /// Where they go: a connection's id or exact name
    #[arg(long, value_name = "ID|NAME", alias = "connection-id")]
    connection: Option<String>,
    /// Check everything and tell what would happen, but write nothing
    #[arg(long)]
    dry_run: bool,
    /// Bring back records that were deleted with `pdpp delete`
    #[arg(long)]
    revive: bool,
    /// Lines per durable batch
    #[arg(long, hide = true, value_name = "N")]
    batch_lines: Option<usize>,
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let files = options.paths.iter().map(|path| ImportFile::inspect(path));
    let files = files.collect::<CommandResult<Vec<_>>>()?;
    let export = known_export::common_export(&files)?;
    let owner = context.owner("pdpp import")?;
    let sources = owner.sources()?;
    let output = context.output;
    let target = match export {
        Some(export) => ExportTarget {
            export,
            options,
            sources: &sources,
            owner: &owner,
            context,
        }
        .resolve()?,
        None => ImportTarget::resolve(
            &sources,
            options.stream.as_ref(),
            options.connection.as_deref(),
            context,
        )?,
    };
    let request = request(options, &target);
    let (imported, failure) = owner.wait(import(files, request, output, &owner))?;
    if let Some(error) = &imported.lagging {
        output.problem(&format!(
            "warning: the records are kept, but the search index lags behind: {error}"
        ));
    }
    print_report(&imported.report, options.dry_run, &target, output)?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    if let Some(refusal) = imported.stopped {
        return Err(OwnerError::from(refusal).into());
    }
    if imported.report.rejected > 0 {
        return Err(Failure::REPORTED);
    }
    Ok(())
}

type ImportEvent = ProgressEvent<ImportProgress, Imported>;

/// An import that has begun.
enum RunningImport {
    /// By a thread of this process.
    Local(UnboundedReceiver<ImportEvent>),
    /// By the routes of the owner, which are sent the files.
    Sent(OwnerResponse, Upload),
}

impl RunningImport {
    /// Regular files are handed to a service in this process as they are. Everything else is sent: a server is another
    /// process, and a thread that waits for a pipe could not be stopped.
    async fn start(
        files: Vec<ImportFile>,
        request: ImportRequest,
        interruption: &Interruption,
        owner: &OwnerClient,
    ) -> Result<Self, OwnerError> {
        let is_regular = files.iter().all(|file| file.length.is_some());
        if let Some(service) = owner.local_service().filter(|_| is_regular) {
            let (sender, receiver) = unbounded_channel();
            let mut files = LocalFiles::new(files, interruption.clone());
            tokio::task::spawn_blocking(move || {
                // A receiver that is gone has given up; what was acknowledged is kept.
                let send = |event: ImportEvent| drop(sender.send(event));
                let progress = |progress| send(ProgressEvent::Progress(progress));
                let done = import_files(&service, &request, &mut files, &progress);
                send(done.map_or_else(ProgressEvent::Failed, ProgressEvent::Done));
            });
            return Ok(Self::Local(receiver));
        }
        let (upload, body) = Upload::start(files, interruption.clone());
        let path = request_path(&request);
        let response = owner.send(Method::POST, &path, body).await?;
        Ok(Self::Sent(response, upload))
    }

    async fn next(&mut self) -> Result<ImportEvent, OwnerError> {
        match self {
            // Only a panic ends the thread without an outcome, and the panic hook has reported it.
            Self::Local(events) => events.recv().await.ok_or_else(|| Failure::REPORTED.into()),
            Self::Sent(response, _) => response.line().await,
        }
    }
}

/// Imports the files and shows the progress. The second value is what failed in this process.
async fn import(
    files: Vec<ImportFile>,
    request: ImportRequest,
    output: Output,
    owner: &OwnerClient,
) -> Result<(Imported, Option<Failure>), OwnerError> {
    let mut interrupted = signal(SignalKind::interrupt())
        .map_err(|error| Failure::new(format!("no signal can be heard: {error}")))?;
    let total: Option<u64> = files.iter().map(|file| file.length).sum();
    let interruption = Interruption::default();
    let mut running = tokio::select! {
        running = RunningImport::start(files, request, &interruption, owner) => running?,
        _ = interrupted.recv() => return Err(stopped().into()),
    };
    let mut progress = Progress::new(output, total);
    let mut given_up = None;
    loop {
        let event = tokio::select! {
            event = running.next() => event?,
            _ = interrupted.recv() => {
                if let Some(failure) = given_up.replace(stopped()) {
                    // At the second signal nobody waits for the report either.
                    return Err(failure.into());
                }
                interruption.stop();
                if let RunningImport::Sent(_, upload) = &running {
                    upload.stop();
                }
                continue;
            }
        };
        match event {
            ProgressEvent::Progress(how_far) => progress.update(how_far),
            ProgressEvent::Done(imported) => {
                return Ok((imported, given_up.or(interruption.failure())));
            }
            ProgressEvent::Failed(refusal) => return Err(refusal.into()),
        }
    }
}

fn stopped() -> Failure {
    Failure::new("the import was stopped; everything acknowledged is kept")
        .hint("run the command again for the rest; what is there already counts as unchanged")
}

fn request(options: &Options, target: &ImportTarget) -> ImportRequest {
    let (connection_id, export) = match &target.destination {
        WriteTarget::Connection(connection) => (Some(connection.connection_id.to_string()), None),
        WriteTarget::WouldBeAdded { export, .. } => (None, Some(export.as_str().to_owned())),
    };
    ImportRequest {
        connection_id,
        export,
        stream: target.stream.as_ref().map(ToString::to_string),
        dry_run: options.dry_run,
        revive: options.revive,
        name_files: options.paths.len() > 1,
        batch_lines: options.batch_lines,
    }
}

fn request_path(request: &ImportRequest) -> RequestPath {
    let flag = |set: bool| set.then_some("true");
    let batch_lines = request.batch_lines.map(|lines| lines.to_string());
    RequestPath::new("/owner/import")
        .optional_param("connection_id", request.connection_id.as_deref())
        .optional_param("export", request.export.as_deref())
        .optional_param("stream", request.stream.as_deref())
        .optional_param("dry_run", flag(request.dry_run))
        .optional_param("revive", flag(request.revive))
        .optional_param("name_files", flag(request.name_files))
        .optional_param("batch_lines", batch_lines.as_deref())
}

fn print_report(
    report: &ImportReport,
    dry: bool,
    target: &ImportTarget,
    output: Output,
) -> CommandResult {
    if output.is_json() {
        return output.json(report);
    }
    let place = visible(target.destination.name());
    let heading = if dry {
        format!("Dry run for '{place}', nothing was written")
    } else {
        format!("Imported into '{place}'")
    };
    output.note(&format!(
        "{heading}: {} read, {} added, {} updated, {} unchanged, {} rejected.",
        HumanCount(report.read),
        HumanCount(report.added),
        HumanCount(report.updated),
        HumanCount(report.unchanged),
        HumanCount(report.rejected)
    ));
    let occurrences = &report.occurrences;
    if !occurrences.is_empty() {
        output.note(&format!(
            "Occurrences of recurring events: {} added, {} updated, {} removed, {} unchanged.",
            HumanCount(occurrences.added),
            HumanCount(occurrences.updated),
            HumanCount(occurrences.removed),
            HumanCount(occurrences.unchanged)
        ));
    }
    if report.kept_deleted > 0 {
        output.note(&format!(
            "Left out because you deleted them here: {}; --revive brings them back.",
            HumanCount(report.kept_deleted)
        ));
    }
    for note in &report.notes {
        output.note(&format!("Note: {}.", visible(note)));
    }
    let shown = report.rejections.iter().take(SHOWN_REJECTIONS);
    for rejection in shown.clone() {
        let mut line = String::from("  ");
        if let Some(file) = &rejection.file {
            // Writing to a String cannot fail.
            let _ = write!(line, "{} ", visible(file));
        }
        let code = rejection.code.as_str();
        let _ = write!(
            line,
            "line {}: {code}: {}",
            rejection.line,
            visible(&rejection.message)
        );
        output.problem(&line);
    }
    let more = report.rejected - shown.len() as u64;
    if more > 0 {
        output.problem(&format!(
            "  and {} more; --json lists the first 1,000",
            HumanCount(more)
        ));
    }
    Ok(())
}
