//! `pdpp delete`: records of the owner's choice go, and stay away.

mod related;

use clap::Args;
use contract::handle::RecordHandle;
use contract::id::{ConnectionId, StreamName};
use contract::record::Record;
use rest::owner::wire::{Deleted, Deletion, RecordName};
use serde_json::json;

use self::related::Related;
use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::output::{counted, visible};
use crate::owner::{OwnerClient, RequestPath};
use crate::reading::{self, CommandLine};

/// Delete records
///
/// All that are named, or none if one of them is not there. Nobody can read them from then on. `pdpp purge` erases what they
/// held. Importing them again does not bring them back, unless with --revive. Records that point at a deleted one, such as
/// the attachments of a mail, are named and stay, unless --with says their relationship.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: pdpp delete mail-work/messages:m-0001\nExample: pdpp delete mail-work/messages:m-0001 --with attachments"
)]
pub(crate) struct Options {
    /// The ids of records
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// The connection, where the ids do not say it
    #[arg(long, value_name = "ID", alias = "connection")]
    connection_id: Option<String>,
    /// Also the records related to them by this relationship; repeatable
    #[arg(long, value_name = "RELATION")]
    with: Vec<String>,
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
    let mut related = related::find(&owner, &records)?;
    records.extend(related::take(&mut related, &options.with)?);
    related.retain(|one| !one.records.is_empty());
    let kept: Vec<String> = related
        .iter()
        .map(|one| one.describe(&context.command("delete")))
        .collect();
    if !options.yes {
        if !output.is_json() {
            for kept in &kept {
                output.note(kept);
            }
        }
        ask(options, context, &records)?;
    }
    let what = describe(&records);
    let deleted: Deleted = owner.post(&RequestPath::new("/owner/delete"), &Deletion { records })?;
    if output.is_json() {
        return output.json(&as_json(deleted.records, &related));
    }
    output.note(&format!(
        "Deleted {what}. To erase what was held there: {}",
        context.command("purge")
    ));
    if options.yes {
        for kept in &kept {
            output.note(kept);
        }
    }
    Ok(())
}

/// Goes on only if a person agrees, who sees each record that is meant.
fn ask(options: &Options, context: &Context, records: &[RecordName]) -> CommandResult {
    let what = describe(records);
    let question = match records {
        [_] => format!("Delete {what}?"),
        several => {
            let ids: Vec<String> = several.iter().map(handle_text).collect();
            format!("{}\nDelete these {what}?", ids.join("\n"))
        }
    };
    match context.output.confirm(&question) {
        Some(true) => Ok(()),
        Some(false) => Err(Failure::new("nothing was deleted")),
        None => {
            let message =
                format!("deleting {what} must be confirmed, and there is no terminal to ask on");
            let again = options
                .ids
                .iter()
                .fold(context.command("delete"), CommandLine::argument);
            let again = again.option("connection-id", options.connection_id.as_ref());
            let again = again.options("with", &options.with).flag("yes");
            Err(Failure::new(message).hint(again.to_string()))
        }
    }
}

/// One record by its id, several by their number.
fn describe(records: &[RecordName]) -> String {
    match records {
        [only] => visible(&handle_text(only)),
        several => counted(several.len() as u64, "record", "records"),
    }
}

fn as_json(deleted: u64, related: &[Related]) -> serde_json::Value {
    let mut document = json!({"deleted": deleted});
    if !related.is_empty() {
        let kept = related.iter().map(|one| {
            let ids: Vec<String> = one.records.iter().map(handle_text).collect();
            json!({"relation": one.relation, "records": ids})
        });
        document["kept"] = kept.collect();
    }
    document
}

fn handle_of(record: &RecordName) -> Option<RecordHandle> {
    let connection = Some(record.connection_id.as_str());
    RecordHandle::new(connection, record.stream.as_str(), &record.record_id).ok()
}

/// The id of a record, as commands take it.
fn handle_text(record: &RecordName) -> String {
    handle_of(record).map_or_else(|| record.record_id.clone(), |handle| handle.to_string())
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
