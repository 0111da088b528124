//! `pdpp backup`: everything in one file.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use indicatif::HumanBytes;
use serde::Serialize;

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::file::Partial;
use crate::owner::{Owner, Target};
use crate::reading::quoted;

/// The exit code of a command line that asks for what cannot be.
const USAGE: u8 = 2;

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
    let bytes = write(&owner, file)?;
    spinner.finish_and_clear();
    if context.output.is_json() {
        return context.output.json(&Answer { file, bytes });
    }
    context.output.note(&format!(
        "Backed up to {} ({}). To restore: mkdir DIR && tar -xf {} -C DIR, then use --data-dir DIR.",
        file.display(),
        HumanBytes(bytes),
        quoted(&file.to_string_lossy())
    ));
    Ok(())
}

/// Writes beside the file first, so that it appears whole or not at all.
fn write(owner: &Owner, file: &Path) -> Outcome<u64> {
    let partial = Partial::of(file)?;
    let mut out = BufWriter::with_capacity(256 * 1024, partial.file());
    if is_compressed(file) {
        let mut gzip = GzEncoder::new(&mut out, Compression::default());
        fetch(owner, file, &mut gzip)?;
        gzip.finish().map_err(Failure::at(file))?;
    } else {
        fetch(owner, file, &mut out)?;
    }
    out.flush().map_err(Failure::at(file))?;
    drop(out);
    partial.settle(|| exists(file))
}

fn fetch(owner: &Owner, file: &Path, out: &mut dyn Write) -> Outcome {
    let mut take = |bytes: &[u8]| out.write_all(bytes).map_err(Failure::at(file));
    owner.pour_unless_stopped(&Target::of("/owner/backup"), &mut take)?;
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
