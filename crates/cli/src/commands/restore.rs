//! `pdpp restore`: a backup becomes a data directory again.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use flate2::bufread::MultiGzDecoder;
use indicatif::{HumanBytes, HumanCount, ProgressBar};
use serde::Serialize;
use store::OpenOptions;
use store::directory::COLLECT;
use store::inspection::Damage;
use store::restore::{Restore, RestoreError, Restored};

use super::collect::Job;
use super::moving::Target;
use crate::clock::SystemClock;
use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::output::{counted, visible};

/// How a compressed file begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Damage that is told one by one.
const MAX_LISTED: usize = 10;

/// Make a data directory of a backup
///
/// The backup goes into the data directory, which must be empty or not there yet. Everything in it is read and held against what was written, as `pdpp doctor --thorough` does, before it gets its place; if anything is wrong, nothing is left there.
///
/// With --to it goes into a PostgreSQL that several nodes share, as `pdpp move` brings a data directory there: whole or not at all, and only where the owner has nothing yet. A copy lies in the folder for temporary files (TMPDIR) meanwhile.
///
/// Grants live on in the copy, so that whoever holds their tokens can read it. With --without-grants nobody can: grants, tokens, sessions and requests under way end with it.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: pdpp restore pdpp-2026-03-01.tar.gz --data-dir ./restored\nExample: pdpp restore pdpp-2026-03-01.tar.gz --to 'postgres://pdpp@db.example.org/pdpp' --blobs /mnt/pdpp-blobs --secret-file secret --owner me.example.org"
)]
pub(crate) struct Options {
    /// The backup, compressed or not
    file: PathBuf,
    /// End every grant, token and session in the copy
    #[arg(long)]
    without_grants: bool,
    /// Restore also what is damaged in the backup, as it is, and say what that is
    #[arg(long)]
    accept_damage: bool,
    #[command(flatten)]
    target: Target,
}

#[derive(Serialize)]
struct Answer<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    data_dir: Option<&'a Path>,
    records: u64,
    blobs: u64,
    live_grants: u64,
    ended_grants: u64,
    damaged: &'a [String],
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    if options.target.is_named() {
        return into_database(options, context);
    }
    let to = &context.settings.data_dir;
    let restored = unpack(options, to, context)?;
    let held = Job::hold_restored(context)?;
    let damaged = damage_of(&restored);
    if context.output.is_json() {
        tell_json(&restored, Some(to), &damaged, context)?;
    } else {
        let next = context.command("serve").to_string();
        tell(&restored, &to.display().to_string(), &next, context);
        if held > 0 {
            context.output.note(&format!(
                "Programs and folders that were collected: {}. Each waits until you run it by name; `{}` shows what they are.",
                HumanCount(held),
                context.command("collect list")
            ));
        }
        tell_damage(&damaged, context);
    }
    outcome(&damaged)
}

/// Restores into a folder that is thrown away, once a database has all of it.
fn into_database(options: &Options, context: &Context) -> CommandResult {
    let settings = options.target.settings()?;
    let temporary = tempfile::tempdir().map_err(Failure::file_error(&std::env::temp_dir()))?;
    let folder = temporary.path().join("restored");
    let restored = unpack(options, &folder, context)?;
    super::moving::bring(&folder, settings, context)?;
    let damaged = damage_of(&restored);
    if context.output.is_json() {
        tell_json(&restored, None, &damaged, context)?;
    } else {
        let next = "start its nodes, with pdpp serve --database";
        tell(&restored, "the database", next, context);
        if folder.join(COLLECT).is_dir() {
            context.output.note("What was collected again and again is not in it: that stays with one machine. Restore into a folder to have it.");
        }
        tell_damage(&damaged, context);
    }
    outcome(&damaged)
}

fn unpack(options: &Options, to: &Path, context: &Context) -> CommandResult<Restored> {
    let spinner = context.output.spinner("restoring");
    let archive = open_archive(&options.file, &spinner)?;
    let restore = Restore {
        to,
        options: OpenOptions::new("pdpp restore", Arc::new(SystemClock)),
        without_grants: options.without_grants,
        accept_damage: options.accept_damage,
    };
    let restored = restore.run(archive);
    spinner.finish_and_clear();
    restored.map_err(|error| failure_for(error, &options.file))
}

fn damage_of(restored: &Restored) -> Vec<String> {
    let found = &restored.inspection;
    let damaged = [&found.damaged_records, &found.damaged_blobs];
    damaged.into_iter().flatten().map(describe_damage).collect()
}

fn outcome(damaged: &[String]) -> CommandResult {
    if damaged.is_empty() {
        Ok(())
    } else {
        Err(Failure::REPORTED)
    }
}

fn tell_json(
    restored: &Restored,
    data_dir: Option<&Path>,
    damaged: &[String],
    context: &Context,
) -> CommandResult {
    context.output.json(&Answer {
        data_dir,
        records: restored.inspection.records,
        blobs: restored.inspection.blobs,
        live_grants: restored.live_grants,
        ended_grants: restored.ended_grants,
        damaged,
    })
}

fn tell_damage(damaged: &[String], context: &Context) {
    for damage in damaged {
        context.output.note(&format!("Damaged: {damage}"));
    }
}

fn tell(restored: &Restored, into: &str, next: &str, context: &Context) {
    let mut lines = vec![format!(
        "Restored {} and {} into {into}.",
        counted(restored.inspection.records, "record", "records"),
        counted(restored.inspection.blobs, "blob", "blobs"),
    )];
    if restored.ended_grants > 0 {
        let ended = HumanCount(restored.ended_grants);
        lines.push(format!(
            "Grants that ended with it: {ended}. Tokens and sessions are gone."
        ));
    }
    if restored.live_grants > 0 {
        lines.push(format!(
            "Grants that live on in it: {}. Whoever holds their tokens can read this copy; `{}` lists them.",
            HumanCount(restored.live_grants),
            context.command("grants")
        ));
    }
    lines.push(format!("Next: {next}"));
    context.output.note(&lines.join("\n"));
}

/// The bytes of the archive, and how many were read is shown.
fn open_archive(file: &Path, spinner: &ProgressBar) -> CommandResult<Box<dyn Read>> {
    let mut opened = File::open(file).map_err(|error| {
        let absent = error.kind() == std::io::ErrorKind::NotFound;
        let hint = "name a file that `pdpp backup` wrote, with its folder if it is elsewhere";
        let hint = absent.then(|| hint.to_owned());
        Failure::file_error(file)(error).hints(hint)
    })?;
    let mut begin = Vec::new();
    let read = opened
        .by_ref()
        .take(GZIP.len() as u64)
        .read_to_end(&mut begin);
    read.map_err(Failure::file_error(file))?;
    let is_compressed = begin == GZIP;
    let whole = std::io::Cursor::new(begin).chain(opened);
    let counted = CountingReader {
        inner: whole,
        read: 0,
        spinner: spinner.clone(),
    };
    let buffered = BufReader::with_capacity(256 * 1024, counted);
    Ok(if is_compressed {
        Box::new(MultiGzDecoder::new(buffered))
    } else {
        Box::new(buffered)
    })
}

/// Tells how much was read.
struct CountingReader<R> {
    inner: R,
    read: u64,
    spinner: ProgressBar,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.read = self.read.saturating_add(read as u64);
        let message = if read == 0 {
            "looking through what was restored".to_owned()
        } else {
            format!("restoring, {} read", HumanBytes(self.read))
        };
        self.spinner.set_message(message);
        Ok(read)
    }
}

fn failure_for(error: RestoreError, file: &Path) -> Failure {
    let shown = file.display();
    match error {
        RestoreError::NotEmpty { .. } => Failure::new(format!("{error}"))
            .hint("name an empty or new folder with --data-dir; a restore never replaces anything"),
        RestoreError::Unreadable(_) | RestoreError::NotABackup(_) => {
            Failure::new(format!("{shown}: {}", visible(&error.to_string())))
                .hint("name a file that `pdpp backup` wrote, as it wrote it; nothing was restored")
        }
        RestoreError::Damaged(damages) => {
            let mut lines = vec![format!(
                "{shown}: the backup is damaged, so nothing was restored"
            )];
            lines.extend(damages.iter().take(MAX_LISTED).map(describe_damage));
            Failure::new(lines.join("\n  "))
                .hint("restore another backup, or add --accept-damage to have everything else of this one")
        }
        RestoreError::Store(error) => error.into(),
    }
}

fn describe_damage(damage: &Damage) -> String {
    let path = damage.path.display().to_string();
    format!("{}: {}", visible(&path), visible(&damage.detail))
}
