//! `pdpp delete`: records of the owner's choice go, and stay away.

use clap::Args;
use contract::id::{ConnectionId, StreamName};
use contract::record::Record;
use indicatif::HumanCount;
use rest::owner::wire::{Deleted, Deletion, RecordName};
use serde_json::json;

use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::output::visible;
use crate::owner::{OwnerClient, RequestPath};
use crate::reading::{self, CommandLine};

/// Delete records
///
/// All that are named, or none if one of them is not there. Nobody can read them from then on. `pdpp purge` erases what they
/// held. Importing them again does not bring them back, unless with --revive.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp delete mail-work/messages:m-0001")]
pub(crate) struct Options {
    /// The ids of records
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// The connection, where the ids do not say it
    #[arg(long, value_name = "ID", alias = "connection")]
    connection_id: Option<String>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let output = context.output;
    let owner = context.owner("pdpp delete")?;
    let mut records: Vec<RecordName> = Vec::new();
    for id in &options.ids {
        let name = find_record(id, options.connection_id.as_deref(), &owner)?;
        if !records.contains(&name) {
            records.push(name);
        }
    }
    let what = match records.len() {
        1 => visible(options.ids.first().map_or("", String::as_str)),
        several => format!("{} records", HumanCount(several as u64)),
    };
    if !options.yes {
        match output.confirm(&format!("Delete {what}?")) {
            Some(true) => {}
            Some(false) => return Err(Failure::new("nothing was deleted")),
            None => {
                let message = format!(
                    "deleting {what} must be confirmed, and there is no terminal to ask on"
                );
                let again = options
                    .ids
                    .iter()
                    .fold(context.command("delete"), CommandLine::argument);
                let again = again.option("connection-id", options.connection_id.as_ref());
                return Err(Failure::new(message).hint(again.flag("yes").to_string()));
            }
        }
    }
    let deleted: Deleted = owner.post(&RequestPath::new("/owner/delete"), &Deletion { records })?;
    if output.is_json() {
        return output.json(&json!({"deleted": deleted.records}));
    }
    output.note(&format!(
        "Deleted {what}. To erase what was held there: {}",
        context.command("purge")
    ));
    Ok(())
}

/// The record of an id, which must be there.
fn find_record(
    id: &str,
    connection: Option<&str>,
    owner: &OwnerClient,
) -> CommandResult<RecordName> {
    let (handle, _) = reading::handle(id, connection)?;
    let target = RequestPath::new("/v1/streams").segment(handle.stream());
    let target = target.segment("records").segment(handle.record());
    let record: Record = owner
        .get(&target.optional_param("connection_id", handle.connection()))
        .map_err(|error| {
            Failure::from(error).hint(format!("nothing was deleted; it was about {}", visible(id)))
        })?;
    let unnamed = || Failure::new(format!("the connection of {} is not known", visible(id)));
    let connection = record.connection_id.as_deref();
    let connection = connection.or(handle.connection()).ok_or_else(unnamed)?;
    Ok(RecordName {
        connection_id: ConnectionId::parse(connection).map_err(|_| unnamed())?,
        stream: StreamName::parse(handle.stream()).map_err(|_| unnamed())?,
        record_id: record.id,
    })
}
