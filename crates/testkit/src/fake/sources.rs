//! Which connection a read is about, and the refusals when that is not clear.

use serde_json::{Map, Value, json};

use super::reply::Failure;
use super::state::{Quirk, State};
use super::world::{Record, Source};

pub(crate) fn resolve<'a>(
    state: &'a State,
    stream: &str,
    connection: Option<&str>,
) -> Result<Source<'a>, Failure> {
    let carrying: Vec<Source<'_>> = state
        .world
        .sources()
        .filter(|source| source.stream.name == stream)
        .collect();
    if carrying.is_empty() {
        return Err(Failure::new(
            403,
            "grant_stream_not_allowed",
            format!("Stream '{stream}' not in grant"),
        ));
    }
    let Some(id) = connection else {
        return match carrying.as_slice() {
            [only] => Ok(*only),
            several => Err(ambiguous(state, "ambiguous_connection", several)),
        };
    };
    carrying
        .into_iter()
        .find(|source| source.connection.id == id)
        .ok_or_else(unknown_connection)
}

pub(crate) fn unknown_connection() -> Failure {
    Failure::new(404, "connection_not_found", "Connection not found").with("param", "connection_id")
}

/// The refusal that lists the connections to choose from.
pub(crate) fn ambiguous(state: &State, code: &str, sources: &[Source<'_>]) -> Failure {
    let entry = |source: &Source<'_>| Value::Object(connection_json(source));
    let listed = state
        .ambiguity_cap
        .unwrap_or(sources.len())
        .min(sources.len());
    let entries: Vec<Value> = sources[..listed].iter().map(entry).collect();
    let retry_with = if state.is(Quirk::RetryWithObject) {
        json!({"field": "connection_id", "guidance": "Repeat the request with one of these."})
    } else {
        json!("connection_id")
    };
    let failure = Failure::new(409, code, "More than one connection carries this stream")
        .with("available_connections", entries)
        .with("retry_with", retry_with);
    if listed == sources.len() {
        return failure;
    }
    failure
        .with("available_connection_count", sources.len())
        .with("available_connections_truncated", true)
        .with("available_connections_omitted", sources.len() - listed)
        .with(
            "discovery_hint",
            "GET /v1/schema?view=compact lists all connections",
        )
}

/// A connection as schema and errors name it.
pub(crate) fn connection_json(source: &Source<'_>) -> Map<String, Value> {
    let mut entry = Map::new();
    entry.insert("connection_id".to_owned(), json!(source.connection.id));
    if let Some(label) = &source.connection.label {
        entry.insert("display_name".to_owned(), json!(label));
    }
    entry
}

pub(crate) fn find<'a>(
    state: &'a State,
    source: Source<'a>,
    key: &str,
) -> Result<&'a Record, Failure> {
    source
        .records(&state.world)
        .find(|record| record.key == key)
        .ok_or_else(|| Failure::new(404, "not_found", "Record not found"))
}
