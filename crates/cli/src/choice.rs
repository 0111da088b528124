//! Which connection or stream is meant, from what the caller said and what there is.

use contract::id::StreamName;
use rest::owner::wire::{Connection, Connector, Sources};

use crate::failure::{Failure, Outcome};
use crate::output::visible;

/// The connection of that id, else the one with exactly that name.
pub(crate) fn connection_named(sources: &Sources, text: &str) -> Outcome<Connection> {
    let mut all = sources.connections.iter();
    if let Some(connection) = all.find(|one| one.connection_id.as_str() == text) {
        return Ok(connection.clone());
    }
    let named = sources.connections.iter();
    let named = named.filter(|connection| connection.display_name == text);
    let named = named.cloned().collect();
    only(named, || {
        let failure = Failure::new(format!("there is no connection '{}'", visible(text)));
        match sources.connections.as_slice() {
            [] => failure.hint("add one with `pdpp connections add CONNECTOR --name NAME`"),
            known => failure.hint(format!("configured: {}", listed(known))),
        }
    })
}

/// The one connection among several candidates.
pub(crate) fn only(
    mut candidates: Vec<Connection>,
    none: impl FnOnce() -> Failure,
) -> Outcome<Connection> {
    match (candidates.pop(), candidates.as_slice()) {
        (None, _) => Err(none()),
        (Some(only), []) => Ok(only),
        (Some(last), _) => {
            candidates.push(last);
            Err(
                Failure::new(format!("{} connections could be meant", candidates.len()))
                    .hint(format!("choose with --connection: {}", listed(&candidates))),
            )
        }
    }
}

/// The connection that carries a stream; named, or the only one that does.
pub(crate) fn connection_with_stream(
    sources: &Sources,
    stream: &str,
    named: Option<&str>,
) -> Outcome<(Connection, StreamName)> {
    let connection = match named {
        Some(named) => connection_named(sources, named)?,
        None => only(carrying(sources, stream), || {
            Failure::new(format!("no connection has a stream '{}'", visible(stream)))
                .hint("`pdpp connections` lists the configured ones")
        })?,
    };
    let stream = declared_stream(sources, &connection, stream)?;
    Ok((connection, stream))
}

/// The stream of that name, if the connection has it.
pub(crate) fn declared_stream(
    sources: &Sources,
    connection: &Connection,
    name: &str,
) -> Outcome<StreamName> {
    let connector = connector(sources, connection);
    let streams = connector.iter().flat_map(|connector| &connector.streams);
    let names: Vec<&StreamName> = streams.map(|stream| &stream.name).collect();
    match names.iter().find(|known| known.as_str() == name) {
        Some(name) => Ok((*name).clone()),
        None => Err(Failure::new(format!(
            "connection '{}' has no stream '{}'",
            connection.connection_id,
            visible(name)
        ))
        .hint(format!(
            "its streams: {}",
            names
                .iter()
                .map(|name| name.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        ))),
    }
}

/// The connector of a connection.
pub(crate) fn connector<'a>(
    sources: &'a Sources,
    connection: &Connection,
) -> Option<&'a Connector> {
    let mut all = sources.connectors.iter();
    all.find(|connector| connector.connector_key == connection.connector_key)
}

fn carrying(sources: &Sources, stream: &str) -> Vec<Connection> {
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
fn listed(connections: &[Connection]) -> String {
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
