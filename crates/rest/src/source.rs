//! The connector as a selector: the owner may name it instead of the connection it has.

use contract::error::{AvailableConnection, ErrorCode, ReadError};
use contract::id::ConnectorKey;
use store::catalog::Connection;

use crate::ask::Source;
use crate::params::quoted;
use crate::problem::Problem;
use crate::table::Ask;

/// The parameter.
pub(crate) const CONNECTOR: &str = "connector_id";

impl Source {
    /// What a request names, for a stream where it is about one. The owner's `connector_id` stands for the only connection
    /// of that connector. A client's is taken and ignored: what it may read is decided by its grant alone.
    pub(crate) fn asked(ask: &Ask, is_owner: bool, stream: Option<&str>) -> Result<Self, Problem> {
        let mut source = Self::of(&ask.params)?;
        let Some(key) = ask.params.text(CONNECTOR).filter(|_| is_owner) else {
            return Ok(source);
        };
        let store = &ask.service.store;
        let connector = ConnectorKey::parse(key).ok();
        let declared = connector.and_then(|key| store.declaration(&key));
        let Some(declared) = declared else {
            let message = format!("Unknown source: {}", quoted(key));
            return Err(ReadError::new(ErrorCode::NotFound, message)
                .with_param(CONNECTOR)
                .into());
        };
        let mut own = store.connections();
        own.retain(|connection| connection.connector == *declared.connector_key());
        if let Some(id) = &source.connection_id {
            let known = own.iter().any(|connection| connection.id.as_str() == id);
            return if known {
                Ok(source)
            } else {
                Err(not_of(id, key))
            };
        }
        match (own.as_slice(), stream) {
            ([], _) => return Err(no_connection(key)),
            ([only], _) => source.connection_id = Some(only.id.to_string()),
            (_, Some(stream)) if declared.stream(stream).is_some() => {
                let choices = own.iter().map(available).collect();
                return Err(ReadError::ambiguous_connection(stream, choices).into());
            }
            // Which of them is looked into does not matter: none has the stream, or all may be looked into.
            ([first, ..], Some(_)) => source.connection_id = Some(first.id.to_string()),
            (_, None) => {}
        }
        Ok(source)
    }
}

fn not_of(id: &str, key: &str) -> Problem {
    let (id, key) = (quoted(id), quoted(key));
    let message = format!("the connection '{id}' of '{key}' is not available");
    ReadError::new(ErrorCode::ConnectionNotFound, message)
        .with_param("connection_id")
        .into()
}

fn no_connection(key: &str) -> Problem {
    let message = format!("'{}' has no connection", quoted(key));
    ReadError::new(ErrorCode::ConnectionNotFound, message)
        .with_param(CONNECTOR)
        .into()
}

/// A connection as the owner may choose it.
pub(crate) fn available(connection: &Connection) -> AvailableConnection {
    AvailableConnection {
        grant_id: None,
        connector_key: Some(connection.connector.to_string()),
        connection_id: connection.id.to_string(),
        display_name: Some(connection.display_name.clone()),
    }
}
