//! `pdpp export`: a stream, or one record, as lines that `pdpp import` takes.

use std::collections::BTreeMap;

use clap::Args;
use contract::handle::{Handle, RecordHandle};
use rest::owner::wire::LEFT_OUT;

use crate::choice;
use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::output::visible;
use crate::owner::{OwnerClient, OwnerError, RequestPath};

/// Print a stream or one record as JSON lines
///
/// Records come in the order of their keys, with their content as it was imported. `pdpp import` takes the lines again.
/// With --grant, exactly what that grant sees comes, in the order it sees.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp export messages --connection mail-work > messages.jsonl")]
pub(crate) struct Options {
    /// A stream, or the id of a record
    #[arg(value_name = "STREAM|ID")]
    what: String,
    /// The connection, where several have such a stream
    #[arg(long, value_name = "ID", alias = "connection-id")]
    connection: Option<String>,
    /// Only what this grant or package may read
    #[arg(long, value_name = "ID")]
    grant: Option<String>,
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    // No stream name holds a colon and every id does.
    let handle = if options.what.contains(':') {
        Some(Handle::parse(&options.what).map_err(|error| Failure::new(error.to_string()))?)
    } else {
        None
    };
    let owner = context.owner("pdpp export")?;
    let handle = handle.as_ref().map(Handle::record);
    let target = target(options, handle, &owner, context)?;
    let mut lines = Lines::default();
    context.output.write(|out| {
        let mut take = |bytes: &[u8]| {
            out.write_all(lines.take(bytes))
                .map_err(|error| Failure::writing_output(&error))
        };
        let poured = owner.download(&target, &mut take);
        poured.map_err(|trouble| with_command_hint(trouble, options, context))?;
        out.write_all(&lines.held)
            .map_err(|error| Failure::writing_output(&error))
    })?;
    lines.left_out()
}

/// The lines as they come. The last whole one is held back: it may say what was left out, and then it is no record.
#[derive(Default)]
struct Lines {
    given: Vec<u8>,
    held: Vec<u8>,
    told: Vec<String>,
}

impl Lines {
    /// What can be given on.
    fn take(&mut self, bytes: &[u8]) -> &[u8] {
        self.held.extend_from_slice(bytes);
        let whole = self.held.len() - usize::from(self.held.ends_with(b"\n"));
        let last = self.held.get(..whole).unwrap_or_default();
        let last = last.iter().rposition(|byte| *byte == b'\n');
        let last = last.map_or(0, |at| at + 1);
        self.given.clear();
        self.given.extend(self.held.drain(..last));
        if let Some(told) = left_out(&self.held) {
            self.told = told;
            self.held.clear();
        }
        &self.given
    }

    fn left_out(self) -> CommandResult {
        let Some(first) = self.told.first() else {
            return Ok(());
        };
        let message = match self.told.len() {
            1 => format!(
                "left out because it was damaged on the disk: {}",
                visible(first)
            ),
            many => format!("{many} records were left out because they were damaged on the disk"),
        };
        let named = self.told.iter().map(|one| visible(one));
        let named = if self.told.len() > 1 {
            named.collect()
        } else {
            Vec::new()
        };
        Err(Failure::new(message)
            .hints(named)
            .hint("everything else was given. Import what is damaged again, or restore a backup"))
    }
}

/// What a last line says was left out.
fn left_out(line: &[u8]) -> Option<Vec<String>> {
    let is_told = line.starts_with(format!("{{\"{LEFT_OUT}\":").as_bytes());
    if !is_told || !line.ends_with(b"\n") {
        return None;
    }
    let mut told: BTreeMap<String, Vec<String>> = serde_json::from_slice(line).ok()?;
    told.remove(LEFT_OUT)
}

/// The error, with a command instead of the API call it suggests.
fn with_command_hint(error: OwnerError, options: &Options, context: &Context) -> Failure {
    match (error, &options.grant) {
        (OwnerError::Refused(mut refused), Some(grant)) if refused.next.is_some() => {
            let schema = context.command("schema").option("grant", Some(grant));
            refused.next = Some(format!("`{schema}` lists the streams that may be read"));
            OwnerError::Refused(refused).into()
        }
        (error, _) => error.into(),
    }
}

/// What to ask for. Which connection is meant the owner decides among all there are, and a grant among its own.
fn target(
    options: &Options,
    handle: Option<&RecordHandle>,
    owner: &OwnerClient,
    context: &Context,
) -> CommandResult<RequestPath> {
    let sources = owner.sources()?;
    let named = options.connection.as_deref();
    let given = match named {
        Some(named) => Some(choice::connection_named(&sources, named, context)?),
        None => None,
    };
    let given = given.as_ref().map(|found| found.connection_id.as_str());
    let handle = match handle {
        Some(handle) => {
            let handle = handle.clone().with_connection(given);
            Some(handle.map_err(|error| Failure::new(error.to_string()))?)
        }
        None => None,
    };
    let (stream, connection) = match &handle {
        Some(handle) => (handle.stream(), handle.connection()),
        None => (options.what.as_str(), given),
    };
    let target = RequestPath::new("/owner/export")
        .optional_param("record_id", handle.as_ref().map(RecordHandle::record))
        .optional_param("grant", options.grant.as_deref());
    if options.grant.is_some() {
        return Ok(target
            .param("stream", stream)
            .optional_param("connection_id", connection));
    }
    let (connection, stream) =
        choice::connection_with_stream(&sources, stream, connection, context)?;
    Ok(target
        .param("stream", stream.as_str())
        .param("connection_id", connection.connection_id.as_str()))
}
