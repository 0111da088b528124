//! `pdpp blob`: the bytes a record points at, into a file.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::HumanBytes;
use rest::owner::wire::Sources;
use serde::Serialize;

use crate::choice;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::owner::{Owner, Target};

/// Write the bytes a record points at into a file
///
/// Records name them in `blob_ref`.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp blob sha256:9f86d081884c7d65… -o photo.jpg")]
pub(crate) struct Options {
    /// The blob: its id, or sha256: and the hash of its bytes
    id: String,
    /// The file to write ('-' is stdout); one that is there is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The connection, where several have the blob
    #[arg(long, value_name = "ID")]
    connection: Option<String>,
}

#[derive(Serialize)]
struct Answer<'a> {
    file: &'a Path,
    bytes: u64,
}

pub(crate) fn run(options: &Options, context: &Context) -> Outcome {
    let owner = context.owner("pdpp blob")?;
    let target = target(options, &owner)?;
    let (file, output) = (options.output.as_path(), context.output);
    if file.as_os_str() == "-" {
        return output.write(|out| {
            let mut take = |bytes: &[u8]| {
                let written = out.write_all(bytes);
                written.map_err(|error| Failure::of_output(&error))
            };
            Ok(owner.pour(&target, &mut take)?)
        });
    }
    let bytes = write(&owner, &target, file)?;
    if output.is_json() {
        return output.json(&Answer { file, bytes });
    }
    output.note(&format!(
        "Wrote {} ({}).",
        file.display(),
        HumanBytes(bytes)
    ));
    Ok(())
}

fn target(options: &Options, owner: &Owner) -> Outcome<Target> {
    // The stored name says the same as the customary one.
    let id = match options.id.strip_prefix("sha256:") {
        Some(hash) => format!("blob_sha256_{}", hash.to_ascii_lowercase()),
        None => options.id.clone(),
    };
    let target = Target::of("/v1/blobs").part(&id);
    let Some(named) = &options.connection else {
        return Ok(target);
    };
    let sources: Sources = owner.get(&Target::of("/owner/sources"))?;
    let connection = choice::connection_named(&sources, named)?;
    Ok(target.with("connection_id", connection.connection_id.as_str()))
}

/// Writes beside the file first, so that it appears whole or not at all.
fn write(owner: &Owner, target: &Target, file: &Path) -> Outcome<u64> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let temporary = tempfile::NamedTempFile::new_in(folder).map_err(Failure::at(folder))?;
    let mut out = BufWriter::with_capacity(256 * 1024, temporary.as_file());
    let mut written = 0;
    let mut take = |bytes: &[u8]| {
        written += bytes.len() as u64;
        out.write_all(bytes).map_err(Failure::at(file))
    };
    owner.pour(target, &mut take)?;
    out.flush().map_err(Failure::at(file))?;
    drop(out);
    temporary
        .persist(file)
        .map_err(|error| Failure::at(file)(error.error))?;
    Ok(written)
}
