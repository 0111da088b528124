//! `pdpp import`: files into a connection, with a report.

mod known_export;
mod progress;
mod target;
mod upload;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use axum::http::Method;
use clap::Args;
use contract::id::StreamName;
use indicatif::HumanCount;
use ingest::ImportReport;
use rest::owner::wire::{ImportProgress, Imported, ProgressEvent, Sources};
use tokio::signal::unix::{SignalKind, signal};

use self::known_export::ExportTarget;
use self::progress::Progress;
use self::target::{ImportTarget, StreamPath, WriteTarget};
use self::upload::Upload;
use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::output::{Output, visible};
use crate::owner::{OwnerClient, OwnerError, RequestPath};

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
    for path in options.paths.iter().filter(|path| !is_stdin(path)) {
        if std::fs::metadata(path)
            .map_err(Failure::file_error(path))?
            .is_dir()
        {
            let message = format!("{}: it is a folder", path.display());
            return Err(Failure::new(message).hint("name the files inside it"));
        }
    }
    let export = known_export::recognise(&options.paths)?;
    let owner = context.owner("pdpp import")?;
    let sources: Sources = owner.get(&RequestPath::new("/owner/sources"))?;
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
    let (imported, error) = owner.wait(import(options, output, &target, &owner))?;
    if let Some(error) = &imported.lagging {
        output.problem(&format!(
            "warning: the records are kept, but the search index lags behind: {error}"
        ));
    }
    print_report(&imported.report, options.dry_run, &target, output)?;
    if let Some(error) = error {
        return Err(error);
    }
    if let Some(refusal) = imported.stopped {
        return Err(OwnerError::from(refusal).into());
    }
    if imported.report.rejected > 0 {
        return Err(Failure::Reported);
    }
    Ok(())
}

/// Sends the files and reads the progress at the same time. The second value is what failed in this process.
async fn import(
    options: &Options,
    output: Output,
    target: &ImportTarget,
    owner: &OwnerClient,
) -> Result<(Imported, Option<Failure>), OwnerError> {
    let mut interrupted = signal(SignalKind::interrupt())
        .map_err(|error| Failure::new(format!("no signal can be heard: {error}")))?;
    let total: Option<u64> = options.paths.iter().map(|path| length(path)).sum();
    let (upload, body) = Upload::start(options.paths.clone());
    let asked = request(options, target);
    let mut answer = tokio::select! {
        answer = owner.send(Method::POST, &asked, body) => answer?,
        _ = interrupted.recv() => return Err(stopped().into()),
    };
    let mut progress = Progress::new(output, total);
    let mut given_up = None;
    loop {
        let line = tokio::select! {
            line = answer.line::<ProgressEvent<ImportProgress, Imported>>() => line?,
            _ = interrupted.recv() => {
                let again = given_up.replace(stopped());
                if let Some(failure) = again {
                    // Nobody wants to wait for the report either.
                    return Err(failure.into());
                }
                upload.stop();
                continue;
            }
        };
        match line {
            ProgressEvent::Progress(how_far) => progress.update(how_far),
            ProgressEvent::Done(imported) => return Ok((imported, given_up.or(upload.failure()))),
            ProgressEvent::Failed(refusal) => return Err(refusal.into()),
        }
    }
}

fn stopped() -> Failure {
    Failure::new("the import was stopped; everything acknowledged is kept")
        .hint("run the command again for the rest; what is there already counts as unchanged")
}

fn request(options: &Options, target: &ImportTarget) -> RequestPath {
    let flag = |set: bool| set.then_some("true");
    let batch_lines = options.batch_lines.map(|lines| lines.to_string());
    let import = RequestPath::new("/owner/import");
    let import = match &target.destination {
        WriteTarget::Connection(connection) => {
            import.param("connection_id", connection.connection_id.as_str())
        }
        WriteTarget::WouldBeAdded { export, .. } => import.param("export", export.as_str()),
    };
    import
        .optional_param("stream", target.stream.as_ref().map(StreamName::as_str))
        .optional_param("dry_run", flag(options.dry_run))
        .optional_param("revive", flag(options.revive))
        .optional_param("name_files", flag(options.paths.len() > 1))
        .optional_param("batch_lines", batch_lines.as_deref())
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The size of a file, unknown for a pipe.
fn length(path: &Path) -> Option<u64> {
    let metadata = std::fs::metadata(path).ok().filter(|_| !is_stdin(path))?;
    metadata.is_file().then_some(metadata.len())
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
