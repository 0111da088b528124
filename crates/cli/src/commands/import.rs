//! `pdpp import`: files into a connection, with a report.

mod progress;
mod target;

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::HumanCount;
use ingest::{
    Acceptor, BatchLimits, CsvImporter, Format, Import, ImportReport, Importer, Input,
    JsonlImporter, LineForm,
};
use store::{EmbeddedStore, Search};

use self::progress::Progress;
use self::target::{StreamPath, Target};
use crate::clock::SystemClock;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, visible};

/// How many rejections a person is shown.
const SHOWN_REJECTIONS: usize = 20;

/// Import JSONL and CSV files, plain or compressed with gzip
///
/// Importing the same again changes nothing.
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
    #[arg(long, value_name = "ID|NAME")]
    connection: Option<String>,
    /// Check everything and tell what would happen, but write nothing
    #[arg(long)]
    dry_run: bool,
    /// Lines per durable batch
    #[arg(long, hide = true, value_name = "N")]
    batch_lines: Option<usize>,
}

pub(crate) fn run(options: &Options, context: &Context) -> Outcome {
    for path in options.paths.iter().filter(|path| !is_stdin(path)) {
        std::fs::metadata(path).map_err(Failure::at(path))?;
    }
    let store = context.open("pdpp import")?;
    let target = Target::resolve(
        &store,
        options.stream.as_ref(),
        options.connection.as_deref(),
    )?;
    let mut limits = BatchLimits::default();
    limits.lines = options.batch_lines.unwrap_or(limits.lines);
    let mut import = Import::new(&store, &target.connection.id, limits);
    if options.dry_run {
        import = import.dry(&target.declaration);
    }
    let outcome = import_all(options, context.output, &target, &mut import);
    let report = import.into_report();
    if !options.dry_run && outcome.is_ok() && report.read > report.rejected {
        settle(&store, context.output);
    }
    tell(&report, options.dry_run, &target, context.output)?;
    outcome?;
    if report.rejected > 0 {
        return Err(Failure::Reported);
    }
    Ok(())
}

fn import_all(
    options: &Options,
    output: Output,
    target: &Target,
    import: &mut Import<'_>,
) -> Outcome {
    let total: Option<u64> = options.paths.iter().map(|path| length(path)).sum();
    let progress = Progress::new(output, total);
    for path in &options.paths {
        let input = open(path)?;
        let name = input.name().to_owned();
        let file = (options.paths.len() > 1).then_some(name.as_str());
        import_one(input, target, import, (file, &progress)).map_err(|failure| match failure {
            Failed::Import(stopped) => stopped.named(&name).into(),
            Failed::Other(failure) => failure,
        })?;
        progress.next_file();
    }
    Ok(())
}

enum Failed {
    Import(ingest::importer::Stopped),
    Other(Failure),
}

fn import_one(
    input: Input,
    target: &Target,
    import: &mut Import<'_>,
    (file, progress): (Option<&str>, &Progress),
) -> Result<(), Failed> {
    let other = |failure: ingest::ImportError| Failed::Other(failure.into());
    let format = input.format().map_err(other)?;
    let choice = target.stream_for(&input);
    if format == Format::Csv && choice.stream().is_none() {
        return Err(Failed::Other(target.no_stream(input.name())));
    }
    let clock = SystemClock;
    let acceptor = Acceptor::new(
        &target.declaration,
        choice,
        LineForm::EnvelopeOrBare,
        &clock,
    );
    let consumed = input.consumed();
    let mut importer: Box<dyn Importer> = match format {
        Format::Jsonl => Box::new(JsonlImporter::new(input.into_reader(), &acceptor)),
        Format::Csv => Box::new(CsvImporter::new(input.into_reader(), &acceptor)),
    };
    import
        .run(importer.as_mut(), file, &mut |report| {
            progress.acknowledged(report, &consumed);
        })
        .map_err(Failed::Import)
}

fn open(path: &Path) -> Outcome<Input> {
    let input = if is_stdin(path) {
        Input::from_reader("stdin", io::stdin())
    } else {
        Input::open(path)
    };
    input.map_err(Failure::from)
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The size of a file, unknown for a pipe.
fn length(path: &Path) -> Option<u64> {
    let metadata = std::fs::metadata(path).ok().filter(|_| !is_stdin(path))?;
    metadata.is_file().then_some(metadata.len())
}

/// Brings the index onto disk, so that the next search need not. The records are safe whatever happens here.
fn settle(store: &EmbeddedStore, output: Output) {
    let spinner = output.spinner("indexing");
    let settled = store.settle_index();
    spinner.finish_and_clear();
    if let Err(error) = settled {
        output.problem(&format!(
            "warning: the records are kept, but the search index lags behind: {error}"
        ));
    }
}

fn tell(report: &ImportReport, dry: bool, target: &Target, output: Output) -> Outcome {
    if output.is_json() {
        return output.json(report);
    }
    let place = visible(&target.connection.display_name);
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
