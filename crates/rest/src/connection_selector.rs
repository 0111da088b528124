//! Resolving `connector_id`: the owner may name a connector instead of its only connection.

use contract::error::{AvailableConnection, ErrorCode, ReadError};
use contract::id::ConnectorKey;
use store::catalog::Connection;

use crate::params::quoted;
use crate::problem::Problem;
use crate::query_params::ConnectionSelector;
use crate::table::RequestContext;

pub(crate) const CONNECTOR: &str = "connector_id";

impl ConnectionSelector {
    /// The connection a request names, for the stream it is about if there is one. The owner's `connector_id` stands
    /// for the only connection of that connector. A client's `connector_id` is ignored: its grant alone decides what
    /// it may read.
    pub(crate) fn resolve(
        context: &RequestContext,
        is_owner: bool,
        stream: Option<&str>,
    ) -> Result<Self, Problem> {
        let mut selector = Self::from_params(&context.params)?;
        let Some(key) = context.params.text(CONNECTOR).filter(|_| is_owner) else {
            return Ok(selector);
        };
        let store = &context.service.store;
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
        if let Some(id) = &selector.connection_id {
            let known = own.iter().any(|connection| connection.id.as_str() == id);
            return if known {
                Ok(selector)
            } else {
                Err(foreign_connection(id, key))
            };
        }
        match (own.as_slice(), stream) {
            ([], _) => return Err(no_connection(key)),
            ([only], _) => selector.connection_id = Some(only.id.to_string()),
            (_, Some(stream)) if declared.stream(stream).is_some() => {
                let choices = own.iter().map(available).collect();
                return Err(ReadError::ambiguous_connection(stream, choices).into());
            }
            // Any of them will do: none has the stream.
            ([first, ..], Some(_)) => selector.connection_id = Some(first.id.to_string()),
            (_, None) => {}
        }
        Ok(selector)
    }
}

fn foreign_connection(id: &str, key: &str) -> Problem {
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

pub(crate) fn available(connection: &Connection) -> AvailableConnection {
    AvailableConnection {
        grant_id: None,
        connector_key: Some(connection.connector.to_string()),
        connection_id: connection.id.to_string(),
        display_name: Some(connection.display_name.clone()),
    }
}
