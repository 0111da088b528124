//! `pdpp backup`: everything in one file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use indicatif::HumanBytes;
use serde::Serialize;

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::file::folder_of;
use crate::owner::{Owner, Target};

/// Write everything into one file
///
/// It is a tar file, compressed where the name ends in .gz or .tgz. To restore, unpack it into an empty folder and use that as --data-dir. The search index is not part of it; it comes
/// back by itself.
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
}

pub(crate) fn run(options: &Options, context: &Context) -> Outcome {
    let file = options.file.as_path();
    if file.symlink_metadata().is_ok() {
        return Err(exists(file));
    }
    let owner = context.owner("pdpp backup")?;
    let spinner = context.output.spinner("backing up");
    let bytes = write(&owner, file)?;
    spinner.finish_and_clear();
    if context.output.is_json() {
        return context.output.json(&Answer { file, bytes });
    }
    context.output.note(&format!(
        "Backed up to {} ({}). To restore: mkdir DIR && tar -xf {} -C DIR, then use --data-dir DIR.",
        file.display(),
        HumanBytes(bytes),
        file.display()
    ));
    Ok(())
}

/// Writes beside the file first, so that it appears whole or not at all.
fn write(owner: &Owner, file: &Path) -> Outcome<u64> {
    let folder = folder_of(file)?;
    let temporary = tempfile::NamedTempFile::new_in(folder).map_err(Failure::at(folder))?;
    let mut out = BufWriter::with_capacity(256 * 1024, temporary.as_file());
    if is_compressed(file) {
        let mut gzip = GzEncoder::new(&mut out, Compression::default());
        fetch(owner, file, &mut gzip)?;
        gzip.finish().map_err(Failure::at(file))?;
    } else {
        fetch(owner, file, &mut out)?;
    }
    out.flush().map_err(Failure::at(file))?;
    drop(out);
    temporary.as_file().sync_all().map_err(Failure::at(file))?;
    let bytes = temporary
        .as_file()
        .metadata()
        .map_err(Failure::at(file))?
        .len();
    temporary
        .persist_noclobber(file)
        .map_err(|error| match error.error.kind() {
            std::io::ErrorKind::AlreadyExists => exists(file),
            _ => Failure::at(file)(error.error),
        })?;
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(Failure::at(folder))?;
    Ok(bytes)
}

fn fetch(owner: &Owner, file: &Path, out: &mut dyn Write) -> Outcome {
    let mut take = |bytes: &[u8]| out.write_all(bytes).map_err(Failure::at(file));
    owner.pour(&Target::of("/owner/backup"), &mut take)?;
    Ok(())
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
