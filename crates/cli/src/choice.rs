//! Resolves which connection or stream the caller means.

use std::collections::BTreeSet;

use contract::id::{ConnectorKey, StreamName};
use rest::owner::wire::{Connection, Connector, Sources};

use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::output::visible;
use crate::spelling::{self, did_you_mean};

/// The connection of that id, else the one with exactly that name.
pub(crate) fn connection_named(
    sources: &Sources,
    text: &str,
    context: &Context,
) -> CommandResult<Connection> {
    let mut all = sources.connections.iter();
    if let Some(connection) = all.find(|one| one.connection_id.as_str() == text) {
        return Ok(connection.clone());
    }
    let named = sources.connections.iter();
    let named = named.filter(|connection| connection.display_name == text);
    let named = named.cloned().collect();
    choose_one(named, || unknown_connection(sources, text, context))
}

pub(crate) fn unknown_connection(sources: &Sources, text: &str, context: &Context) -> Failure {
    let failure = Failure::new(format!("there is no connection '{}'", visible(text)));
    let known = sources.connections.as_slice();
    if known.is_empty() {
        let add = context.command("connections add").argument("CONNECTOR");
        let add = add.option("name", Some("NAME"));
        return failure.hint(format!("add one with `{add}`"));
    }
    let ids = known.iter().map(|one| one.connection_id.as_str());
    let names = known.iter().map(|one| one.display_name.as_str());
    let all: Vec<&str> = ids.chain(names).collect();
    failure
        .hints(did_you_mean(text, &all))
        .hint(format!("configured: {}", join_connections(known)))
}

pub(crate) fn unknown_connector(
    sources: &Sources,
    key: &ConnectorKey,
    context: &Context,
) -> Failure {
    let declare = context.command("declare").argument("FILE");
    let known = sources.connectors.iter();
    let known: Vec<&str> = known.map(|one| one.connector_key.as_str()).collect();
    let failure = Failure::new(format!("connector '{key}' is not declared"))
        .hints(did_you_mean(key.as_str(), &known));
    match known.as_slice() {
        [] => failure.hint(format!(
            "register it with `{declare}`; `pdpp help declarations` shows how to write one"
        )),
        known => failure.hint(format!(
            "declared: {}; register another with `{declare}`",
            spelling::join_names(known)
        )),
    }
}

pub(crate) fn choose_one(
    mut candidates: Vec<Connection>,
    none: impl FnOnce() -> Failure,
) -> CommandResult<Connection> {
    match (candidates.pop(), candidates.as_slice()) {
        (None, _) => Err(none()),
        (Some(only), []) => Ok(only),
        (Some(last), _) => {
            candidates.push(last);
            Err(
                Failure::new(format!("{} connections could be meant", candidates.len())).hint(
                    format!(
                        "choose with --connection: {}",
                        join_connections(&candidates)
                    ),
                ),
            )
        }
    }
}

/// The connection that carries a stream; named, or the only one that does.
pub(crate) fn connection_with_stream(
    sources: &Sources,
    stream: &str,
    named: Option<&str>,
    context: &Context,
) -> CommandResult<(Connection, StreamName)> {
    let connection = match named {
        Some(named) => connection_named(sources, named, context)?,
        None => choose_one(with_stream(sources, stream), || {
            let failure = Failure::new(format!("no connection has a stream '{}'", visible(stream)));
            let known = all_streams(sources);
            match known.as_slice() {
                [] => {
                    let list = context.command("connections");
                    failure.hint(format!("`{list}` lists the configured ones"))
                }
                known => failure
                    .hints(did_you_mean(stream, known))
                    .hint(format!("streams: {}", spelling::join_names(known))),
            }
        })?,
    };
    let stream = declared_stream(sources, &connection, stream)?;
    Ok((connection, stream))
}

pub(crate) fn declared_stream(
    sources: &Sources,
    connection: &Connection,
    name: &str,
) -> CommandResult<StreamName> {
    let connector = connector(sources, connection);
    let streams = connector.iter().flat_map(|connector| &connector.streams);
    let names: Vec<&StreamName> = streams.map(|stream| &stream.name).collect();
    if let Some(found) = names.iter().find(|known| known.as_str() == name) {
        return Ok((*found).clone());
    }
    let known: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
    Err(Failure::new(format!(
        "connection '{}' has no stream '{}'",
        connection.connection_id,
        visible(name)
    ))
    .hints(did_you_mean(name, &known))
    .hint(format!("its streams: {}", known.join(", "))))
}

pub(crate) fn connector<'a>(
    sources: &'a Sources,
    connection: &Connection,
) -> Option<&'a Connector> {
    let mut all = sources.connectors.iter();
    all.find(|connector| connector.connector_key == connection.connector_key)
}

fn all_streams(sources: &Sources) -> Vec<&str> {
    let connections = sources.connections.iter();
    let connectors = connections.filter_map(|one| connector(sources, one));
    let all = connectors.flat_map(|connector| &connector.streams);
    let names: BTreeSet<&str> = all.map(|stream| stream.name.as_str()).collect();
    names.into_iter().collect()
}

fn with_stream(sources: &Sources, stream: &str) -> Vec<Connection> {
    let carries = |connection: &&Connection| {
        connector(sources, connection).is_some_and(|connector| {
            let mut streams = connector.streams.iter();
            streams.any(|declared| declared.name.as_str() == stream)
        })
    };
    let connections = sources.connections.iter();
    connections.filter(carries).cloned().collect()
}

/// Connections in one line, for a hint.
fn join_connections(connections: &[Connection]) -> String {
    let shown: Vec<String> = connections
        .iter()
        .take(12)
        .map(|connection| {
            format!(
                "{} ('{}')",
                connection.connection_id,
                visible(&connection.display_name)
            )
        })
        .collect();
    let more = connections.len().saturating_sub(shown.len());
    let rest = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("{}{rest}", shown.join(", "))
}
