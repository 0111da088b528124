//! `pdpp backup`: everything in one file.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use axum::http::HeaderMap;
use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use indicatif::HumanBytes;
use rest::owner::wire::{BACKUP_NUMBER, BackupDamage, MISSING_BLOB_IDS, MISSING_BLOBS};
use serde::Serialize;

use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::file::Partial;
use crate::output::visible;
use crate::owner::{OwnerClient, RequestPath};
use crate::reading::quoted;

/// The exit code of a command line that asks for what cannot be.
const USAGE: u8 = 2;

/// Write everything into one file
///
/// It is a tar file, compressed where the name ends in .gz or .tgz, and `pdpp restore` makes a data directory of it. The search index is not part of it; it comes back by itself.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp backup pdpp-2026-03-01.tar.gz")]
pub(crate) struct Options {
    /// The file to write; it must not exist yet
    file: PathBuf,
}

#[derive(Serialize)]
struct Answer<'a> {
    file: &'a Path,
    bytes: u64,
    #[serde(flatten)]
    missing: Lacking,
}

/// What the backup lacks, because it is missing in the store.
#[derive(Serialize)]
struct Lacking {
    missing_blobs: u64,
    /// The first of them.
    missing_blob_ids: Vec<String>,
    /// What is damaged in the store, and saved as it is.
    damaged: Vec<String>,
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let file = options.file.as_path();
    if file.as_os_str() == "-" {
        let message = "a backup is written into a file, for what breaks off must not pass for one";
        return Err(Failure::coded(
            USAGE,
            message,
            "name a file; one that is called - is ./-",
        ));
    }
    if file.symlink_metadata().is_ok() {
        return Err(exists(file));
    }
    let owner = context.owner("pdpp backup")?;
    let spinner = context.output.spinner("backing up");
    let (bytes, missing) = write(&owner, file)?;
    spinner.finish_and_clear();
    let lacking = missing.to_failure(file, context);
    if context.output.is_json() {
        context.output.json(&Answer {
            file,
            bytes,
            missing,
        })?;
        return lacking.map_or(Ok(()), Err);
    }
    context.output.note(&format!(
        "Backed up to {} ({}). To restore into a new folder: pdpp restore {} --data-dir DIR",
        file.display(),
        HumanBytes(bytes),
        quoted(&file.to_string_lossy())
    ));
    lacking.map_or(Ok(()), Err)
}

impl Lacking {
    fn from_headers(headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let count = text(MISSING_BLOBS).and_then(|text| text.parse().ok());
        let ids = text(MISSING_BLOB_IDS).unwrap_or_default().split(',');
        let ids = ids.filter(|id| !id.is_empty()).map(str::to_owned);
        Self {
            missing_blobs: count.unwrap_or(0),
            missing_blob_ids: ids.collect(),
            damaged: Vec::new(),
        }
    }

    /// What is left out, where something is.
    fn to_failure(&self, file: &Path, context: &Context) -> Option<Failure> {
        let count = self.missing_blobs;
        if count == 0 {
            return self.damage_told(file, context);
        }
        let (blobs, are) = if count == 1 {
            ("blob", "is")
        } else {
            ("blobs", "are")
        };
        let ids = self.missing_blob_ids.join(", ");
        let more = match count.saturating_sub(self.missing_blob_ids.len() as u64) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let message = format!(
            "{count} {blobs} {are} missing in the data directory and so in {}; everything else is saved: {ids}{more}",
            file.display()
        );
        let doctor = context.command("doctor").flag("thorough");
        Some(
            Failure::new(message)
                .hints(self.damaged.iter().map(|one| visible(one)))
                .hint(format!(
                    "import the files again that they came from, then back up into a new file; `{doctor}` says what else is damaged"
                )),
        )
    }

    fn damage_told(&self, file: &Path, context: &Context) -> Option<Failure> {
        if self.damaged.is_empty() {
            return None;
        }
        let message = format!(
            "what is damaged in the data directory is damaged in {} as well; everything else is saved",
            file.display()
        );
        let doctor = context.command("doctor").flag("thorough");
        let step = format!(
            "import again what is damaged, which mends it, then back up into a new file; `{doctor}` lists all damage. `pdpp restore --accept-damage` takes the file as it is"
        );
        let named = self.damaged.iter().map(|one| visible(one));
        Some(Failure::new(message).hints(named).hint(step))
    }
}

/// Writes beside the file first, so that it appears whole or not at all.
fn write(owner: &OwnerClient, file: &Path) -> CommandResult<(u64, Lacking)> {
    let partial = Partial::create(file)?;
    let mut out = BufWriter::with_capacity(256 * 1024, partial.file());
    let missing = if is_compressed(file) {
        let mut gzip = GzEncoder::new(&mut out, Compression::default());
        let missing = fetch(owner, file, &mut gzip)?;
        gzip.finish().map_err(Failure::file_error(file))?;
        missing
    } else {
        fetch(owner, file, &mut out)?
    };
    out.flush().map_err(Failure::file_error(file))?;
    drop(out);
    Ok((partial.persist_new(|| exists(file))?, missing))
}

fn fetch(owner: &OwnerClient, file: &Path, out: &mut dyn Write) -> CommandResult<Lacking> {
    let mut take = |bytes: &[u8]| out.write_all(bytes).map_err(Failure::file_error(file));
    // A copy that is needed meanwhile is made where there is room for a backup, if the server may write there.
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let folder = std::path::absolute(folder).map_err(Failure::file_error(file))?;
    let target = RequestPath::new("/owner/backup").param("beside", &folder.to_string_lossy());
    let headers = owner.download_unless_stopped(&target, &mut take)?;
    let mut missing = Lacking::from_headers(&headers);
    let number = headers
        .get(BACKUP_NUMBER)
        .and_then(|value| value.to_str().ok());
    if let Some(number) = number {
        let target = RequestPath::new("/owner/backup/damage").param("number", number);
        let found: BackupDamage = owner.get(&target)?;
        missing.damaged = found.damaged;
    }
    Ok(missing)
}

fn is_compressed(file: &Path) -> bool {
    file.extension().is_some_and(|ending| {
        ending.eq_ignore_ascii_case("gz") || ending.eq_ignore_ascii_case("tgz")
    })
}

fn exists(file: &Path) -> Failure {
    Failure::new(format!("{} exists already", file.display()))
        .hint("name a new file; a backup never replaces one")
}
