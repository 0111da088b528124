//! Known exports: recognises the files by their content and finds the connection they go to, which is added if there is
//! none.

use std::path::{Path, PathBuf};

use contract::declaration::Declaration;
use contract::id::{ConnectionId, ConnectorKey};
use ingest::{Export, Format, ImportError, Input};
use rest::owner::wire::{Connection, Declared, NewConnection, Sources};

use super::target::{ImportTarget, WriteTarget};
use super::{Options, length};
use crate::choice;
use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::owner::{OwnerClient, RequestPath};

/// The export that the files are. None if they are none: then they say themselves what they hold.
pub(super) fn recognise(paths: &[PathBuf]) -> CommandResult<Option<Export>> {
    let seen = paths.iter().map(|path| Ok((path, export_of(path)?)));
    let mut seen = seen.collect::<CommandResult<Vec<_>>>()?.into_iter();
    let Some((first, export)) = seen.next() else {
        return Ok(None);
    };
    match seen.find(|(_, other)| *other != export) {
        None => Ok(export),
        Some((path, other)) => Err(Failure::new(format!(
            "{} is {} and {} is {}",
            first.display(),
            title(export),
            path.display(),
            title(other)
        ))
        .hint("import each kind with a command of its own")),
    }
}

fn title(export: Option<Export>) -> &'static str {
    export.map_or("no export that is recognised", Export::title)
}

/// Only regular files are read here: bytes of a pipe can be read once. A file of unknown format is refused before a
/// connection is chosen.
fn export_of(path: &Path) -> CommandResult<Option<Export>> {
    if length(path).is_none() {
        return Ok(None);
    }
    let to_text = |error: ImportError| Failure::new(error.to_string());
    let format = Input::open(path).and_then(|input| input.format());
    Ok(match format.map_err(to_text)? {
        Format::Export(export) => Some(export),
        Format::Jsonl | Format::Csv => None,
    })
}

/// Finds the connection of an export, or makes it, with the connector if need be. A dry run makes nothing.
pub(super) fn target(
    export: Export,
    options: &Options,
    sources: &Sources,
    (owner, context): (&OwnerClient, &Context),
) -> CommandResult<ImportTarget> {
    if options.stream.is_some() {
        let message = format!(
            "the input is {}, which knows its streams itself",
            export.title()
        );
        return Err(Failure::new(message).hint("leave out --as"));
    }
    let output = context.output;
    let bundled = Declaration::parse(export.declaration())
        .map_err(|mistakes| Failure::new(mistakes.to_string()))?;
    let key = bundled.connector_key();
    if let Some(named) = &options.connection {
        let connection = choice::connection_named(sources, named, context)?;
        if connection.connector_key != *key {
            return Err(Failure::new(format!(
                "connection '{}' is one of connector '{}'; {} goes into one of '{key}'",
                connection.connection_id,
                connection.connector_key,
                export.title()
            ))
            .hint("leave out --connection to have one made"));
        }
        return Ok(ImportTarget::new(connection));
    }
    let own = sources.connections.iter();
    let own: Vec<_> = own
        .filter(|one| one.connector_key == *key)
        .cloned()
        .collect();
    if !own.is_empty() {
        return choice::choose_one(own, || Failure::Reported).map(ImportTarget::new);
    }
    let name = bundled.display_name.clone();
    if options.dry_run {
        output.note(&format!(
            "Recognised {}. It would go into a new connection '{name}'.",
            export.title()
        ));
        return Ok(ImportTarget {
            destination: WriteTarget::WouldBeAdded { export, name },
            stream: None,
        });
    }
    let connection = add(export, (key, name), sources, owner)?;
    output.note(&format!(
        "Recognised {}. Added the connection '{}' for it.",
        export.title(),
        connection.connection_id
    ));
    Ok(ImportTarget::new(connection))
}

fn add(
    export: Export,
    (key, name): (&ConnectorKey, String),
    sources: &Sources,
    owner: &OwnerClient,
) -> CommandResult<Connection> {
    let mut declared = sources.connectors.iter();
    if !declared.any(|one| one.connector_key == *key) {
        let declarations = RequestPath::new("/owner/declarations");
        owner.post_text::<Declared>(&declarations, export.declaration().to_owned())?;
    }
    let id = ConnectionId::parse(key.as_str()).ok();
    let is_free = |id: &ConnectionId| {
        sources
            .connections
            .iter()
            .all(|one| one.connection_id != *id)
    };
    let new = NewConnection {
        connector_key: key.clone(),
        name,
        // Shorter than what would be made of connector and name.
        connection_id: id.filter(is_free),
    };
    Ok(owner.post(&RequestPath::new("/owner/connections"), &new)?)
}
