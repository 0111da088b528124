//! `pdpp import`: files into a connection, with a report.

mod files;
mod known_export;
mod progress;
mod report;
mod survey;
pub(crate) mod table;
pub(crate) mod tap;
mod target;
mod upload;

use std::path::PathBuf;

use axum::http::Method;
use clap::Args;
use ingest::Export;
use rest::owner::import_files;
use rest::owner::wire::{ImportProgress, ImportRequest, Imported, ProgressEvent, Sources};
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

pub(crate) use self::files::open_input;
use self::files::{ImportFile, Interruption, LocalFiles};
use self::known_export::{ExportTarget, Group};
use self::progress::Progress;
use self::report::{GroupDone, Total};
use self::survey::Survey;
use self::table::{TableFinder, TableOptions, TableTarget};
use self::target::{ImportTarget, StreamPath, WriteTarget};
use self::upload::Upload;
use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::output::Output;
use crate::owner::{OwnerClient, OwnerError, OwnerResponse, RequestPath};

/// Import known exports, JSONL and CSV files, whole folders and archives
///
/// Folders and archives (.zip, .tar, .tgz, .tar.zst) are looked through, and what is known in them is taken; nothing is unpacked to
/// disk. Files may be compressed with gzip or zstd.
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
///
/// A table of which nothing is declared, CSV, TSV, a workbook (xlsx), a SQLite database, a JSON array or JSON lines, is looked at as a
/// whole; the declaration it would get is shown with its first rows and what was guessed, and you are asked. Inside folders and archives
/// such tables are taken with --yes, or if nothing else in them is known.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
#[command(after_help = "Example: pdpp import messages.jsonl.gz --as mail/messages")]
pub(crate) struct Options {
    /// Files, folders and archives to import ('-' reads JSONL from stdin)
    #[arg(required_unless_present = "list", value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// List the exports that are known, and how to get each
    #[arg(long, conflicts_with = "paths")]
    list: bool,
    /// What the files hold
    #[arg(long = "as", value_name = "CONNECTOR/STREAM")]
    stream: Option<StreamPath>,
    /// Where they go: a connection's id or exact name
    #[arg(long, value_name = "ID|NAME", alias = "connection-id")]
    connection: Option<String>,
    /// Check everything and tell what would happen, but write nothing
    #[arg(long)]
    dry_run: bool,
    /// Import tables of which nothing is declared as they are found to be, without asking
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    table: TableOptions,
    /// Bring back records that were deleted with `pdpp delete`
    #[arg(long)]
    revive: bool,
    /// Make all as the files have it: delete records that they do not have, in the streams of which they have some, and take those
    /// that they have, also where what is there is newer
    #[arg(long)]
    prune: bool,
    /// Keep the pictures of photos, not only what is said of them
    #[arg(long)]
    pictures: bool,
    /// Lines per durable batch
    #[arg(long, hide = true, value_name = "N")]
    batch_lines: Option<usize>,
    /// Whether nobody named the files one by one.
    #[arg(skip)]
    is_unattended: bool,
}

impl Options {
    /// Imports a file or a folder without asking.
    pub(crate) fn unattended(path: PathBuf, connection: Option<String>) -> Self {
        Self {
            paths: vec![path],
            list: false,
            stream: None,
            connection,
            dry_run: false,
            yes: true,
            table: TableOptions::default(),
            revive: false,
            prune: false,
            pictures: false,
            batch_lines: None,
            is_unattended: true,
        }
    }
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    if options.list {
        return list_exports(context.output);
    }
    if let Some(spooled) = tap::spool(&options.paths, options.connection.as_deref(), context)? {
        let import = Options::unattended(spooled.clone(), options.connection.clone());
        let done = run(&import, context);
        let name = options.connection.as_deref().unwrap_or_default();
        let kept = tap::keep_state(&spooled, name, context);
        let removed = std::fs::remove_file(&spooled).map_err(Failure::file_error(&spooled));
        return done.and(kept).and(removed);
    }
    let mut survey = Survey::default();
    let output = context.output;
    let mut total = Total::default();
    let files = look_at(options, &mut survey, |failure| total.fail(&failure, output))?;
    let found = survey.is_needed.then(|| survey.report(files.len()));
    if files.is_empty() {
        let failure = survey.nothing_taken();
        match found {
            Some(found) if output.is_json() => total.print_json(true, Some(found), output)?,
            Some(found) => found.print(output),
            None => {}
        }
        return Err(failure);
    }
    let names_files = files.len() > 1;
    let is_told = options.stream.is_some() || options.connection.is_some();
    let groups = known_export::grouped(files, is_told)?;
    let owner = context.owner("pdpp import")?;
    let run = Run {
        options,
        context,
        owner: &owner,
        survey: &survey,
        names_files,
    };
    let is_alone = groups.len() == 1;
    for group in groups {
        match run.import_group(group) {
            Ok(Some(done)) => total.add(done),
            Ok(None) => {}
            Err(failure) if is_alone => return Err(failure),
            // One kind that has no place must not keep the others out.
            Err(failure) => total.fail(&failure, output),
        }
    }
    if output.is_json() {
        total.print_json(is_alone, found, output)?;
    } else if let Some(found) = &found {
        found.print(output);
    }
    total.outcome(survey.has_damage())
}

/// Looks at all paths, and says which of their files are taken. One that cannot be read or is nothing that is known must not keep the
/// others out.
fn look_at(
    options: &Options,
    survey: &mut Survey,
    mut fail: impl FnMut(Failure),
) -> CommandResult<Vec<ImportFile>> {
    let mut files = Vec::new();
    for path in &options.paths {
        match ImportFile::inspect(path, options.stream.is_some(), survey) {
            Ok(found) => files.extend(found),
            Err(failure) if options.paths.len() == 1 => return Err(failure),
            Err(failure) => fail(failure),
        }
    }
    // A file without content is of no kind, so it has no place beside exports.
    if files.iter().any(|file| file.export().is_some()) {
        files.retain(|file| {
            if file.is_empty() {
                fail(file.refused_as_empty());
            }
            !file.is_empty()
        });
    }
    let mut files = survey.without_companions(&files, options.pictures);
    // A connection that was named is not meant for every table there is.
    let is_alone = files.is_empty() && options.connection.is_none();
    let takes_tables = !options.is_unattended && (is_alone || options.yes);
    files.extend(survey.tables(takes_tables));
    Ok(files)
}

/// The file of a group that has no content, where nothing is there that it could go into.
fn nothing_in<'g>(group: &'g Group, sources: &Sources) -> Option<&'g ImportFile> {
    let empty = group.files.iter().find(|file| file.is_empty());
    empty.filter(|_| sources.connections.is_empty())
}

#[derive(Serialize)]
struct KnownExport {
    name: &'static str,
    connector_key: &'static str,
    title: &'static str,
    origin: &'static str,
    contents: &'static str,
}

/// Which exports are known, how to get each, and what of it is taken.
fn list_exports(output: Output) -> CommandResult {
    let all = Export::ALL.iter().map(|export| KnownExport {
        name: export.as_str(),
        connector_key: export.connector_key(),
        title: export.title(),
        origin: export.origin(),
        contents: export.contents(),
    });
    if output.is_json() {
        return output.json(&all.collect::<Vec<_>>());
    }
    for known in all {
        let KnownExport {
            title,
            origin,
            contents,
            ..
        } = known;
        output.data(title)?;
        output.data(&format!("  get it:  {origin}"))?;
        output.data(&format!("  becomes: {contents}"))?;
    }
    for (title, why) in Export::NOT_KNOWN {
        output.data(title)?;
        output.data(&format!("  not known: {why}"))?;
    }
    Ok(())
}

/// What all groups of one command have in common.
struct Run<'a> {
    options: &'a Options,
    context: &'a Context,
    owner: &'a OwnerClient,
    survey: &'a Survey,
    names_files: bool,
}

impl Run<'_> {
    /// Imports files of one kind, and says where they went and what they did. The failure is what ended it early.
    fn import_group(&self, group: Group) -> CommandResult<Option<GroupDone>> {
        let (options, owner, output) = (self.options, self.owner, self.context.output);
        let sources = owner.sources()?;
        if let Some(empty) = nothing_in(&group, &sources) {
            return Err(empty.refused_as_empty());
        }
        let target = match group.export {
            Some(export) => ExportTarget {
                export,
                account: self.survey.accounts.of(export),
                options,
                sources: &sources,
                owner,
                context: self.context,
            }
            .resolve()?,
            None if group.is_tap() => {
                let Some(file) = group.files.first() else {
                    return Ok(None);
                };
                let name = options.connection.clone().unwrap_or_else(|| file.title());
                tap::target(file.path(), &name, &sources, owner, self.context)?
            }
            None => match self.table(&sources, &group.files)? {
                TableTarget::Found(target) => target,
                TableTarget::Shown => return Ok(None),
                TableTarget::Declared => ImportTarget::resolve(
                    &sources,
                    options.stream.as_ref(),
                    options.connection.as_deref(),
                    self.context,
                )?,
            },
        };
        let request = self.request(&target);
        let (imported, failure) = owner.wait(import(group.files, request, output, owner))?;
        if let Some(error) = &imported.lagging {
            output.problem(&format!(
                "warning: the records are kept, but the search index lags behind: {error}"
            ));
        }
        if !output.is_json() {
            report::print(&imported.report, options.dry_run, &target, output);
        }
        let stopped = imported
            .stopped
            .map(|refusal| OwnerError::from(refusal).into());
        Ok(Some(GroupDone {
            export: group.export,
            connection: target.destination.name().to_owned(),
            report: imported.report,
            failure: failure.or(stopped),
        }))
    }

    fn table(&self, sources: &Sources, files: &[ImportFile]) -> CommandResult<TableTarget> {
        TableFinder {
            options: self.options,
            sources,
            owner: self.owner,
            context: self.context,
        }
        .find(files)
    }

    fn request(&self, target: &ImportTarget) -> ImportRequest {
        let (connection_id, export) = match &target.destination {
            WriteTarget::Connection(connection) => {
                (Some(connection.connection_id.to_string()), None)
            }
            WriteTarget::WouldBeAdded { export, .. } => (None, Some(export.as_str().to_owned())),
        };
        ImportRequest {
            connection_id,
            export,
            declaration: None,
            stream: target.stream.as_ref().map(ToString::to_string),
            dry_run: self.options.dry_run,
            revive: self.options.revive,
            prune: self.options.prune,
            pictures: self.options.pictures,
            name_files: self.names_files,
            batch_lines: self.options.batch_lines,
            upload: None,
        }
    }
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

fn request_path(request: &ImportRequest) -> RequestPath {
    let flag = |set: bool| set.then_some("true");
    let batch_lines = request.batch_lines.map(|lines| lines.to_string());
    RequestPath::new("/owner/import")
        .optional_param("connection_id", request.connection_id.as_deref())
        .optional_param("export", request.export.as_deref())
        .optional_param("stream", request.stream.as_deref())
        .optional_param("dry_run", flag(request.dry_run))
        .optional_param("revive", flag(request.revive))
        .optional_param("prune", flag(request.prune))
        .optional_param("pictures", flag(request.pictures))
        .optional_param("name_files", flag(request.name_files))
        .optional_param("batch_lines", batch_lines.as_deref())
}
