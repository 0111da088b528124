//! What Singer taps print: their streams become a declaration, which grows with what they say, and a connection of their own.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use contract::id::{ConnectionId, ConnectorKey};
use ingest::singer::{self, TapOutput};
use ingest::table;
use rest::owner::wire::{Connection, Declared, NewConnection, Sources};
use serde_json::Value;

use super::files::open_input;
use super::target::ImportTarget;
use crate::choice;
use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::owner::{OwnerClient, RequestPath};

/// How the keys of connectors begin that taps made.
const PREFIX: &str = "tap-";

/// Where declarations of taps, their states and their logs are kept.
pub(crate) fn folder_path(context: &Context) -> PathBuf {
    context.settings.data_dir.join(store::directory::COLLECT)
}

/// The same, made if it is not there.
pub(crate) fn folder(context: &Context) -> CommandResult<PathBuf> {
    let folder = folder_path(context);
    fs::create_dir_all(&folder).map_err(Failure::file_error(&folder))?;
    Ok(folder)
}

/// Finds the connection of a tap, or adds it, and declares what the tap says.
pub(super) fn target(
    path: &Path,
    name: &str,
    sources: &Sources,
    owner: &OwnerClient,
    context: &Context,
) -> CommandResult<ImportTarget> {
    let known = known_connection(sources, name);
    if let Some(other) = known.filter(|known| !is_tap(known)) {
        return Err(Failure::new(format!(
            "connection '{}' is one of connector '{}'; what a tap prints goes into one of its own",
            other.connection_id, other.connector_key
        ))
        .hint("name another with --connection: it is added"));
    }
    let output =
        singer::scan(open_input(path)?).map_err(|error| Failure::new(error.to_string()))?;
    let key = known.map_or_else(
        || format!("{PREFIX}{}", table::slug(name)),
        |known| known.connector_key.to_string(),
    );
    declare(&output, &key, name, owner, context)?;
    if let Some(connection) = known {
        return Ok(ImportTarget::new(connection.clone()));
    }
    let new = NewConnection {
        connector_key: ConnectorKey::parse(key).map_err(|error| Failure::new(error.to_string()))?,
        name: name.to_owned(),
        connection_id: ConnectionId::parse(table::slug(name)).ok(),
    };
    let connections = RequestPath::new("/owner/connections");
    let connection: Connection = owner.post(&connections, &new)?;
    context.output.note(&format!(
        "Recognised what a tap prints. Added the connection '{}' for it.",
        connection.connection_id
    ));
    Ok(ImportTarget::new(connection))
}

fn is_tap(connection: &Connection) -> bool {
    connection.connector_key.as_str().starts_with(PREFIX)
}

fn known_connection<'s>(sources: &'s Sources, name: &str) -> Option<&'s Connection> {
    let mut connections = sources.connections.iter();
    connections.find(|one| one.connection_id.as_str() == name || one.display_name == name)
}

/// Declares the streams of a tap beside those it named before: a run may select fewer.
fn declare(
    output: &TapOutput,
    key: &str,
    title: &str,
    owner: &OwnerClient,
    context: &Context,
) -> CommandResult {
    let kept = folder(context)?.join(format!("{key}.streams.json"));
    let before = fs::read(&kept).ok();
    let before: Vec<(String, Value)> = before
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default();
    let mut streams = before.clone();
    for (name, stream) in &output.streams {
        match streams.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => known.clone_from(stream),
            None => streams.push((name.clone(), stream.clone())),
        }
    }
    if streams.is_empty() {
        return Err(Failure::new(
            "the tap says nothing of its streams (there is no SCHEMA)",
        ));
    }
    if streams != before {
        let text = singer::declaration(key, title, &streams);
        let path = RequestPath::new("/owner/declarations");
        owner.post_text::<Declared>(&path, text)?;
        let text = serde_json::to_vec(&streams).unwrap_or_default();
        fs::write(&kept, text).map_err(Failure::file_error(&kept))?;
    }
    Ok(())
}

/// Writes standard input to a file if it goes to a tap's connection: it must be read twice, for its streams and its records.
pub(super) fn spool(
    paths: &[PathBuf],
    connection: Option<&str>,
    context: &Context,
) -> CommandResult<Option<PathBuf>> {
    let is_stdin = matches!(paths, [path] if path.as_os_str() == "-");
    let Some(name) = connection.filter(|_| is_stdin) else {
        return Ok(None);
    };
    let sources = context.owner("pdpp import")?.sources()?;
    if known_connection(&sources, name).is_some_and(|known| !is_tap(known)) {
        return Ok(None);
    }
    let path = folder(context)?.join(format!("{}.stdin", std::process::id()));
    let file = File::create(&path).map_err(Failure::file_error(&path))?;
    let copied = io::copy(&mut io::stdin().lock(), &mut BufWriter::new(file));
    copied.map_err(Failure::file_error(&path))?;
    let is_tap = open_input(&path)?
        .format()
        .is_ok_and(|format| format == ingest::Format::Singer);
    if !is_tap {
        // Nothing else makes a connection by its name alone.
        let _ = fs::remove_file(&path);
        choice::connection_named(&sources, name, context)?;
    }
    Ok(Some(path))
}

/// Where the tap of a connection goes on next time.
pub(crate) fn state_path(name: &str, context: &Context) -> CommandResult<PathBuf> {
    Ok(folder(context)?.join(format!("{}.state.json", table::slug(name))))
}

/// Keeps where a tap goes on next time, once everything before is imported.
pub(crate) fn keep_state(path: &Path, name: &str, context: &Context) -> CommandResult {
    let output =
        singer::scan(open_input(path)?).map_err(|error| Failure::new(error.to_string()))?;
    if let Some(state) = output.state {
        let kept = state_path(name, context)?;
        fs::write(&kept, state).map_err(Failure::file_error(&kept))?;
    }
    Ok(())
}
