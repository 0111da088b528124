//! `pdpp blob`: the bytes a record points at, into a file.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::HumanBytes;
use serde::Serialize;
use serde_json::Value;

use crate::choice;
use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::file::Destination;
use crate::output::visible;
use crate::owner::{OwnerClient, OwnerError, RequestPath};
use crate::reading;

/// Write the bytes a record points at into a file
///
/// Records name them in `blob_ref`; the id of such a record will do.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp blob mail-work/attachments:a1 -o ticket.pdf")]
pub(crate) struct Options {
    /// The record, or the blob itself: its id, or sha256: and the hash of its bytes
    id: String,
    /// The file to write ('-' is stdout); one that is there is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The connection, where several have the blob
    #[arg(long, value_name = "ID", alias = "connection-id")]
    connection: Option<String>,
}

#[derive(Serialize)]
struct Answer<'a> {
    file: &'a Path,
    bytes: u64,
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let owner = context.owner("pdpp blob")?;
    let target = target(options, &owner, context)?;
    let (file, output) = (options.output.as_path(), context.output);
    // The same by another name, which may lead to a file that is not to be replaced.
    if file.as_os_str() == "-" || file.as_os_str() == "/dev/stdout" {
        return output.write(|out| {
            let mut take = |bytes: &[u8]| {
                let written = out.write_all(bytes);
                written.map_err(|error| Failure::writing_output(&error))
            };
            owner.download(&target, &mut take).map_err(with_blob_hint)
        });
    }
    let bytes = write(&owner, &target, file)?;
    output.report(&Answer { file, bytes }, || {
        format!("Wrote {} ({}).", file.display(), HumanBytes(bytes))
    })
}

fn target(options: &Options, owner: &OwnerClient, context: &Context) -> CommandResult<RequestPath> {
    let connection = match &options.connection {
        Some(named) => {
            let sources = owner.sources()?;
            let found = choice::connection_named(&sources, named, context)?;
            Some(found.connection_id.as_str().to_owned())
        }
        None => None,
    };
    let hash = options.id.strip_prefix("sha256:");
    let (id, connection) = match hash {
        // The stored name says the same as the customary one.
        Some(hash) => (
            format!("blob_sha256_{}", hash.to_ascii_lowercase()),
            connection,
        ),
        None if options.id.contains(':') => {
            blob_of_record(&options.id, connection.as_deref(), owner, context)?
        }
        None => (options.id.clone(), connection),
    };
    let target = RequestPath::new("/v1/blobs").segment(&id);
    Ok(target.optional_param("connection_id", connection.as_deref()))
}

/// The blob a record points at, and the connection of both.
fn blob_of_record(
    id: &str,
    connection: Option<&str>,
    owner: &OwnerClient,
    context: &Context,
) -> CommandResult<(String, Option<String>)> {
    let (handle, _) = reading::handle(id, connection)?;
    let record = RequestPath::new("/v1/streams")
        .segment(handle.stream())
        .segment("records")
        .segment(handle.record())
        .optional_param("connection_id", handle.connection());
    let record: Value = owner.get(&record)?;
    let Some(blob) = record["data"]["blob_ref"]["blob_id"].as_str() else {
        let message = format!("the record '{}' points at no blob", visible(id));
        return Err(Failure::new(message).hint(format!(
            "`{}` shows what it holds",
            context.command("fetch").argument(id)
        )));
    };
    let connection = record["connection_id"].as_str().map(str::to_owned);
    Ok((blob.to_owned(), connection))
}

fn with_blob_hint(error: OwnerError) -> Failure {
    let unknown = matches!(&error, OwnerError::Refused(refused)
        if refused.code == "blob_not_found" && refused.next.is_none());
    let is_told = matches!(&error, OwnerError::Refused(refused) if refused.next.is_some());
    let hint = unknown.then(|| {
        "records name their blobs in blob_ref: pass the id of such a record, as `pdpp query` prints it".to_owned()
    });
    let failed = matches!(&error, OwnerError::Refused(_) | OwnerError::BrokenOff);
    let lost = (failed && !unknown && !is_told).then(|| {
        "if the file of the blob is missing or damaged, import what it came from again; `pdpp doctor --thorough` says what else is".to_owned()
    });
    Failure::from(error).hints(hint).hints(lost)
}

/// Writes a file that appears whole or not at all, or into whatever else has that name.
fn write(owner: &OwnerClient, target: &RequestPath, file: &Path) -> CommandResult<u64> {
    let destination = Destination::open(file)?;
    let mut out = BufWriter::with_capacity(256 * 1024, destination.file());
    let mut written = 0;
    let mut take = |bytes: &[u8]| {
        written += bytes.len() as u64;
        out.write_all(bytes).map_err(Failure::file_error(file))
    };
    let downloaded = match &destination {
        Destination::File(_) => owner.download_unless_stopped(target, &mut take).map(drop),
        // The reader of a pipe sets the pace, and there is no partial file to remove.
        Destination::Stream(_) => owner.download(target, &mut take),
    };
    downloaded.map_err(with_blob_hint)?;
    out.flush().map_err(Failure::file_error(file))?;
    drop(out);
    if let Destination::File(partial) = destination {
        partial.replace()?;
    }
    Ok(written)
}
