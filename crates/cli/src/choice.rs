//! Which connection or stream is meant, from what the caller said and what there is.

use contract::id::{ConnectionId, StreamName};
use store::catalog::{Catalog, Connection};

use crate::failure::{Failure, Outcome};
use crate::output::visible;

/// The connection of that id, else the one with exactly that name.
pub(crate) fn connection_named(catalog: &dyn Catalog, text: &str) -> Outcome<Connection> {
    if let Ok(id) = ConnectionId::parse(text)
        && let Some(connection) = catalog.connection(&id)
    {
        return Ok(connection);
    }
    let named = catalog
        .connections()
        .into_iter()
        .filter(|connection| connection.display_name == text)
        .collect();
    only(named, || {
        let failure = Failure::new(format!("there is no connection '{}'", visible(text)));
        match catalog.connections().as_slice() {
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
    catalog: &dyn Catalog,
    stream: &str,
    named: Option<&str>,
) -> Outcome<(Connection, StreamName)> {
    let connection = match named {
        Some(named) => connection_named(catalog, named)?,
        None => only(carrying(catalog, stream), || {
            Failure::new(format!("no connection has a stream '{}'", visible(stream)))
                .hint("`pdpp connections` lists the configured ones")
        })?,
    };
    let stream = declared_stream(catalog, &connection, stream)?;
    Ok((connection, stream))
}

/// The stream of that name, if the connection has it.
pub(crate) fn declared_stream(
    catalog: &dyn Catalog,
    connection: &Connection,
    name: &str,
) -> Outcome<StreamName> {
    let declaration = catalog.declaration(&connection.connector);
    let streams = declaration
        .iter()
        .flat_map(|declaration| &declaration.streams);
    let names: Vec<&StreamName> = streams.map(|stream| &stream.name).collect();
    match names.iter().find(|known| known.as_str() == name) {
        Some(name) => Ok((*name).clone()),
        None => Err(Failure::new(format!(
            "connection '{}' has no stream '{}'",
            connection.id,
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

fn carrying(catalog: &dyn Catalog, stream: &str) -> Vec<Connection> {
    let mut connections = catalog.connections();
    connections.retain(|connection| {
        catalog
            .declaration(&connection.connector)
            .is_some_and(|declaration| declaration.stream(stream).is_some())
    });
    connections
}

/// Connections in one line, for a hint.
fn listed(connections: &[Connection]) -> String {
    let shown: Vec<String> = connections
        .iter()
        .take(12)
        .map(|connection| {
            format!(
                "{} ('{}')",
                connection.id,
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
