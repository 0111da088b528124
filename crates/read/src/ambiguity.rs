//! Which row a read of one stream means. Where more than one connection carries the stream, the caller must say which, and
//! that is decided from the authority alone, never from where a record happens to be.

use contract::error::{AvailableConnection, ErrorCode, ReadError};
use contract::id::StreamName;
use contract::step_up::Beyond;
use store::catalog::Connection;

use crate::enforce::{Reach, Row};

/// Labels that say no more than a missing one.
const PLACEHOLDERS: [&str; 3] = ["legacy", "default_account", "Default account"];

pub(crate) fn one_row(
    reach: Reach<'_>,
    stream: &StreamName,
    connection: Option<&str>,
) -> Result<Row, ReadError> {
    let mut rows = reach.rows_of(stream.as_str());
    if let Some(connection) = connection {
        let named = rows
            .iter()
            .position(|row| row.connection().id.as_str() == connection);
        return match named {
            Some(at) => Ok(rows.swap_remove(at)),
            None => Err(not_there(reach, stream, Some(connection), rows.is_empty())),
        };
    }
    match rows.len() {
        0 => Err(not_there(reach, stream, None, true)),
        1 => Ok(rows.swap_remove(0)),
        _ => Err(ReadError::ambiguous_connection(
            stream.as_str(),
            available(&rows),
        )),
    }
}

/// Why no row was found. For a client neither answer depends on what exists outside the grant.
fn not_there(
    reach: Reach<'_>,
    stream: &StreamName,
    connection: Option<&str>,
    stream_is_nowhere: bool,
) -> ReadError {
    match connection {
        Some(connection)
            if !reach.reaches_connection(connection)
                && (reach.is_owner() || !stream_is_nowhere) =>
        {
            let error = connection_not_found(connection);
            if reach.is_owner() {
                return error;
            }
            error.with_beyond(Beyond::stream(stream.as_str(), Some(connection)))
        }
        _ => {
            let error = stream_not_there(reach, stream);
            match error.beyond {
                Some(_) => error.with_beyond(Beyond::stream(stream.as_str(), connection)),
                None => error,
            }
        }
    }
}

/// A stream outside the grant, or one that nothing declares.
pub(crate) fn stream_not_there(reach: Reach<'_>, stream: &StreamName) -> ReadError {
    let (code, message) = if reach.is_owner() {
        (
            ErrorCode::StreamNotDeclared,
            format!("no connection carries a stream '{stream}'"),
        )
    } else {
        (
            ErrorCode::GrantStreamNotAllowed,
            format!("the stream '{stream}' is not granted"),
        )
    };
    let error = ReadError::new(code, message)
        .with_param("stream")
        .with_hint("schema lists the streams that may be read");
    if reach.is_owner() {
        return error;
    }
    error.with_beyond(Beyond::stream(stream.as_str(), None))
}

/// A connection outside the grant, or one that does not exist.
pub(crate) fn connection_not_found(connection: &str) -> ReadError {
    ReadError::new(
        ErrorCode::ConnectionNotFound,
        format!("the connection '{connection}' is not available"),
    )
    .with_param("connection_id")
    .with_hint("schema lists the connections that may be read")
}

/// The connections of these rows, each once.
pub(crate) fn available(rows: &[Row]) -> Vec<AvailableConnection> {
    let mut found: Vec<AvailableConnection> = Vec::new();
    for row in rows {
        let connection = row.connection();
        if !found
            .iter()
            .any(|known| known.connection_id == connection.id.as_str())
        {
            found.push(AvailableConnection {
                grant_id: row.grant_id().map(ToString::to_string),
                connector_key: Some(connection.connector.to_string()),
                connection_id: connection.id.to_string(),
                display_name: label(connection),
            });
        }
    }
    found
}

/// The owner's label of a connection, where it says more than its id.
pub(crate) fn label(connection: &Connection) -> Option<String> {
    let name = connection.display_name.trim();
    let says_nothing = name.is_empty()
        || name == connection.id.as_str()
        || name == connection.connector.as_str()
        || PLACEHOLDERS.contains(&name);
    (!says_nothing).then(|| name.to_owned())
}
