//! `pdpp connections`: the configured sources.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use contract::id::{ConnectionId, ConnectorKey};
use indicatif::HumanCount;
use rest::owner::wire::{Connection, NewConnection, Removed, Renaming};
use serde::Serialize;

use crate::choice;
use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::first_steps;
use crate::output::visible;
use crate::owner::{OwnerClient, RequestPath};
use crate::render::columns;

/// List, add, rename and remove the configured sources
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp connections add mail --name 'Work mail'")]
pub(crate) struct Options {
    #[command(subcommand)]
    change: Option<Change>,
}

#[derive(Debug, Subcommand)]
enum Change {
    /// Add a connection of a declared connector and print its id
    #[command(after_help = "Example: pdpp connections add mail --name 'Work mail' --id work")]
    Add(Add),
    /// Change the name of a connection; its id stays
    #[command(after_help = "Example: pdpp connections rename mail-work 'Old work mail'")]
    Rename(Rename),
    /// Erase a connection with its records, history, index entries and blobs
    #[command(after_help = "Example: pdpp connections remove mail-work --yes")]
    Remove(Remove),
}

#[derive(Debug, Args)]
struct Add {
    /// The key `pdpp declare` printed
    connector: ConnectorKey,
    /// What you call it
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    name: String,
    /// Its id: up to 32 of a-z, 0-9, '_' and '-' [default: made of connector and name]
    #[arg(long)]
    id: Option<ConnectionId>,
}

#[derive(Debug, Args)]
struct Rename {
    /// The connection
    id: ConnectionId,
    /// Its new name
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    name: String,
}

#[derive(Debug, Args)]
struct Remove {
    /// The connection
    id: ConnectionId,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

#[derive(Serialize)]
struct Row<'a> {
    connection_id: &'a str,
    connector_key: &'a str,
    display_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<u64>,
}

pub(crate) fn run(options: Options, context: &Context) -> CommandResult {
    let holder = match &options.change {
        Some(Change::Add(_)) => "pdpp connections add",
        _ => "pdpp connections",
    };
    let owner = context.owner(holder)?;
    match options.change {
        None => list(&owner, context),
        Some(Change::Add(add_options)) => add(add_options, &owner, context),
        Some(Change::Rename(options)) => rename(&options, &owner, context),
        Some(Change::Remove(options)) => remove(&options, &owner, context),
    }
}

fn list(owner: &OwnerClient, context: &Context) -> CommandResult {
    let output = context.output;
    let sources = owner.sources()?;
    let connections = sources.connections.iter();
    let rows: Vec<Row<'_>> = connections
        .map(|connection| Row {
            records: Some(connection.records),
            ..row(connection)
        })
        .collect();
    if output.is_json() {
        return output.json(&rows);
    }
    if rows.is_empty() {
        output.note("No connections yet.");
        for step in first_steps::next_steps(&sources, context) {
            output.note(&format!("hint: {step}"));
        }
        return Ok(());
    }
    let mut table = vec![["ID", "CONNECTOR", "RECORDS", "NAME"].map(str::to_owned)];
    table.extend(rows.iter().map(|row| {
        [
            row.connection_id.to_owned(),
            row.connector_key.to_owned(),
            HumanCount(row.records.unwrap_or_default()).to_string(),
            visible(row.display_name),
        ]
    }));
    // Figures are compared from their end.
    let widest = table.iter().map(|[_, _, records, _]| records.len()).max();
    let widest = widest.unwrap_or_default();
    for [_, _, records, _] in &mut table {
        *records = format!("{records:>widest$}");
    }
    output.text(&columns(&table, 0, output.style()))
}

fn add(options: Add, owner: &OwnerClient, context: &Context) -> CommandResult {
    let new = NewConnection {
        connector_key: options.connector,
        name: options.name,
        connection_id: options.id,
    };
    let sources = owner.sources()?;
    let mut declared = sources.connectors.iter();
    if !declared.any(|one| one.connector_key == new.connector_key) {
        return Err(choice::unknown_connector(
            &sources,
            &new.connector_key,
            context,
        ));
    }
    let connection: Connection = owner.post(&RequestPath::new("/owner/connections"), &new)?;
    let output = context.output;
    if output.is_json() {
        return output.json(&row(&connection));
    }
    output.data(connection.connection_id.as_str())?;
    output.note(&format!(
        "Added '{}'. Next: {}",
        visible(&connection.display_name),
        context
            .command("import")
            .argument("FILE")
            .option("connection", Some(&connection.connection_id))
    ));
    Ok(())
}

fn rename(options: &Rename, owner: &OwnerClient, context: &Context) -> CommandResult {
    let renaming = Renaming {
        name: options.name.clone(),
    };
    find_connection(&options.id, owner, context)?;
    let connection: Connection = owner.post(&connection_path(&options.id), &renaming)?;
    let output = context.output;
    output.report(&row(&connection), || {
        format!(
            "'{}' is now called '{}'.",
            connection.connection_id,
            visible(&connection.display_name)
        )
    })
}

fn remove(options: &Remove, owner: &OwnerClient, context: &Context) -> CommandResult {
    let id = &options.id;
    let connection = find_connection(id, owner, context)?;
    let output = context.output;
    let name = visible(&connection.display_name);
    let held = HumanCount(connection.records);
    if !options.yes {
        match output.confirm(&format!("Remove '{name}' and erase its {held} records?")) {
            Some(true) => {}
            Some(false) => return Err(Failure::new("nothing was removed")),
            None => {
                let remove = context.command("connections remove").argument(id.as_str());
                return Err(Failure::new(format!(
                    "removing '{name}' would erase its {held} records, and there is no terminal to ask on"
                ))
                .hint(remove.flag("yes").to_string()));
            }
        }
    }
    let removed: Removed = owner.delete(&connection_path(id))?;
    output.report(&removed, || {
        format!(
            "Removed '{name}': {} records and {} blobs erased.",
            HumanCount(removed.records),
            HumanCount(removed.blobs)
        )
    })
}

/// The connection of that id.
fn find_connection(
    id: &ConnectionId,
    owner: &OwnerClient,
    context: &Context,
) -> CommandResult<Connection> {
    let sources = owner.sources()?;
    let mut all = sources.connections.iter();
    let found = all.find(|connection| connection.connection_id == *id);
    found
        .cloned()
        .ok_or_else(|| choice::unknown_connection(&sources, id.as_str(), context))
}

fn row(connection: &Connection) -> Row<'_> {
    Row {
        connection_id: connection.connection_id.as_str(),
        connector_key: connection.connector_key.as_str(),
        display_name: &connection.display_name,
        records: None,
    }
}

fn connection_path(id: &ConnectionId) -> RequestPath {
    RequestPath::new("/owner/connections").segment(id.as_str())
}
