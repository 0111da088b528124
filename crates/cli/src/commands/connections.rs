//! `pdpp connections`: the configured sources.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use contract::id::{ConnectionId, ConnectorKey};
use indicatif::HumanCount;
use serde::Serialize;
use store::catalog::{Connection, NewConnection};
use store::{Catalog, EmbeddedStore, StoreError};

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output::visible;

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

#[derive(Serialize)]
struct Erased<'a> {
    connection_id: &'a str,
    records: u64,
    blobs: u64,
}

pub(crate) fn run(options: Options, context: &Context) -> Outcome {
    let store = context.open("pdpp connections")?;
    match options.change {
        None => list(&store, context),
        Some(Change::Add(add_options)) => add(add_options, &store, context),
        Some(Change::Rename(options)) => rename(&options, &store, context),
        Some(Change::Remove(options)) => remove(&options, &store, context),
    }
}

fn list(store: &EmbeddedStore, context: &Context) -> Outcome {
    let output = context.output;
    let connections = store.connections();
    let mut rows = Vec::new();
    for connection in &connections {
        let mut row = row(connection);
        row.records = Some(records(store, &connection.id)?);
        rows.push(row);
    }
    if output.is_json() {
        return output.json(&rows);
    }
    if rows.is_empty() {
        output.note("No connections yet. Add one with: pdpp connections add CONNECTOR --name NAME");
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
    let width = |column: usize| {
        table
            .iter()
            .filter_map(|row| row.get(column))
            .map(String::len)
            .max()
    };
    let widths = [0, 1, 2].map(|column| width(column).unwrap_or_default());
    for [id, connector, records, name] in &table {
        let [a, b, c] = widths;
        output.data(&format!("{id:a$}  {connector:b$}  {records:>c$}  {name}"))?;
    }
    Ok(())
}

fn add(options: Add, store: &EmbeddedStore, context: &Context) -> Outcome {
    let connection = store.add_connection(NewConnection {
        connector: options.connector,
        name: options.name,
        id: options.id,
    })?;
    let output = context.output;
    if output.is_json() {
        return output.json(&row(&connection));
    }
    output.data(connection.id.as_str())?;
    output.note(&format!(
        "Added '{}'. Next: pdpp import FILE --connection {}",
        visible(&connection.display_name),
        connection.id
    ));
    Ok(())
}

fn rename(options: &Rename, store: &EmbeddedStore, context: &Context) -> Outcome {
    let connection = store.rename_connection(&options.id, &options.name)?;
    let output = context.output;
    if output.is_json() {
        return output.json(&row(&connection));
    }
    output.note(&format!(
        "'{}' is now called '{}'.",
        connection.id,
        visible(&connection.display_name)
    ));
    Ok(())
}

fn remove(options: &Remove, store: &EmbeddedStore, context: &Context) -> Outcome {
    let id = &options.id;
    let connection = store
        .connection(id)
        .ok_or_else(|| StoreError::UnknownConnection(id.clone()))?;
    let output = context.output;
    let name = visible(&connection.display_name);
    let held = HumanCount(records(store, id)?);
    if !options.yes {
        match output.confirm(&format!("Remove '{name}' and erase its {held} records?")) {
            Some(true) => {}
            Some(false) => return Err(Failure::new("nothing was removed")),
            None => {
                return Err(Failure::new(format!(
                    "removing '{name}' would erase its {held} records, and there is no terminal to ask on"
                ))
                .hint(format!("pdpp connections remove {id} --yes")));
            }
        }
    }
    let removed = store.remove_connection(id)?;
    if output.is_json() {
        return output.json(&Erased {
            connection_id: id.as_str(),
            records: removed.records,
            blobs: removed.blobs,
        });
    }
    output.note(&format!(
        "Removed '{name}': {} records and {} blobs erased.",
        HumanCount(removed.records),
        HumanCount(removed.blobs)
    ));
    Ok(())
}

fn row(connection: &Connection) -> Row<'_> {
    Row {
        connection_id: connection.id.as_str(),
        connector_key: connection.connector.as_str(),
        display_name: &connection.display_name,
        records: None,
    }
}

/// Live records in all streams of a connection.
fn records(store: &EmbeddedStore, id: &ConnectionId) -> Outcome<u64> {
    let streams = store.stream_stats()?;
    let own = streams.iter().filter(|one| one.stream.connection == *id);
    Ok(own.map(|one| one.records).sum())
}
