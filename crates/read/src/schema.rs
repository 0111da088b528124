//! What a caller may ask. A client gets the owner's document restricted to its rows: exactly what will be accepted, and no
//! other name.

mod metadata;
mod restrict;

use std::collections::HashMap;

use contract::declaration::{Declaration, SourceKind};
use contract::error::{ErrorCode, ReadError};
use contract::page::Meta;
use contract::query::StreamQuery;
use contract::schema::{
    Bearer, ConnectorSchema, Freshness, Schema, SchemaAnswer, SchemaDetail, SchemaDocument,
    SchemaQuery, SourceRef, StreamMetadata,
};
use contract::time::Instant;
use contract::wire::ObjectTag;

use crate::ambiguity::{available, connection_not_found, stream_not_there};
use crate::disclosure::Shown;
use crate::enforce::Row;
use crate::failure::Result;
use crate::reader::{Answer, Session};
use crate::streams::freshness;
use crate::visible_history;

pub(crate) fn schema(session: &Session, query: &SchemaQuery) -> Answer<SchemaAnswer> {
    let rows = addressed(session, query)?;
    if query.detail == SchemaDetail::FullStream {
        refuse_ambiguous(query, &rows)?;
    }
    let mut entries = entries(session, &rows)?;
    // The compact form leaves it out.
    if query.detail != SchemaDetail::Compact {
        for (members, metadata) in &mut entries {
            metadata.freshness = Some(newest(session, members)?);
        }
    }
    let mut shown = Shown::default();
    for row in &rows {
        shown.row(row);
    }
    let document = document(session, query, entries);
    let answer = match query.detail {
        SchemaDetail::Compact => SchemaAnswer::Compact(document.compact()),
        SchemaDetail::Whole | SchemaDetail::FullStream => SchemaAnswer::Full(document),
    };
    Ok((answer, shown))
}

pub(crate) fn stream(session: &Session, query: &StreamQuery) -> Answer<StreamMetadata> {
    let row = session.row(&query.stream, query.connection_id.as_deref())?;
    let rows = [row];
    let mut entries = entries(session, &rows)?;
    let (members, mut metadata) = entries.pop().ok_or_else(ReadError::internal)?;
    metadata.freshness = Some(newest(session, &members)?);
    metadata.meta = Some(Meta::default());
    let [row] = &rows;
    Ok((metadata, Shown::for_row(row)))
}

/// How recent the visible records of these rows are.
fn newest(session: &Session, rows: &[Row]) -> Result<Freshness> {
    let mut newest = None;
    for row in rows {
        let (_, last_updated) = visible_history::extent(session, row)?;
        newest = newest.max(last_updated.as_deref().and_then(Instant::parse));
    }
    Ok(freshness(newest))
}

fn addressed(session: &Session, query: &SchemaQuery) -> Result<Vec<Row>, ReadError> {
    let reach = session.reach();
    let mut rows = match &query.stream {
        Some(stream) => reach.rows_of(stream.as_str()),
        None => reach.rows(),
    };
    if let Some(stream) = &query.stream
        && rows.is_empty()
    {
        return Err(stream_not_there(reach, stream));
    }
    if let Some(connection) = query.connection_id.as_deref() {
        if !reach.reaches_connection(connection) {
            return Err(connection_not_found(connection));
        }
        rows.retain(|row| row.connection().id.as_str() == connection);
        if let Some(stream) = &query.stream
            && rows.is_empty()
        {
            return Err(stream_not_there(reach, stream));
        }
    }
    if let Some(connector) = query.connector_id.as_deref() {
        rows.retain(|row| is_of(row, connector));
        match &query.stream {
            Some(stream)
                if rows.is_empty() && reach.rows().iter().any(|row| is_of(row, connector)) =>
            {
                return Err(stream_not_there(reach, stream));
            }
            // Streams a client may not see and streams that do not exist get the same answer: an empty list.
            _ if rows.is_empty() && reach.is_owner() => return Err(connector_not_found(connector)),
            _ => {}
        }
    }
    Ok(rows)
}

/// Whether a row is of that connector, named by its key or by the id of its source.
fn is_of(row: &Row, connector: &str) -> bool {
    row.connection().connector.as_str() == connector || row.declaration().source.id == connector
}

fn connector_not_found(connector: &str) -> ReadError {
    let message = format!("no connection is of a connector '{connector}'");
    ReadError::new(ErrorCode::NotFound, message)
        .with_param("connector_id")
        .with_hint("schema lists the connectors that may be read")
}

/// One entry per stream and connector, with its rows, or several where connections are granted differently.
fn entries(session: &Session, rows: &[Row]) -> Result<Vec<(Vec<Row>, StreamMetadata)>> {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    let mut known: HashMap<metadata::Sameness, usize> = HashMap::new();
    for row in rows {
        let next = groups.len();
        let at = *known
            .entry(metadata::Sameness::new(session.reach(), row))
            .or_insert(next);
        match groups.get_mut(at) {
            Some(members) => members.push(row),
            None => groups.push(vec![row]),
        }
    }
    let mut entries = Vec::with_capacity(groups.len());
    for members in groups {
        if let Some(first) = members.first() {
            let metadata = metadata::describe(session.reach(), first, &members)?;
            entries.push((members.into_iter().cloned().collect(), metadata));
        }
    }
    Ok(entries)
}

fn document(
    session: &Session,
    query: &SchemaQuery,
    entries: Vec<(Vec<Row>, StreamMetadata)>,
) -> Schema {
    let mut connectors: Vec<ConnectorSchema<StreamMetadata>> = Vec::new();
    let streams = entries.len();
    for (members, metadata) in entries {
        let Some(row) = members.first() else {
            continue;
        };
        let key = row.connection().connector.as_str();
        let known = connectors
            .iter_mut()
            .find(|known| known.connector_key.as_deref() == Some(key));
        match known {
            Some(known) => known.streams.push(metadata),
            None => connectors.push(ConnectorSchema {
                object: ObjectTag::CONNECTOR,
                source: Some(source_of(row.declaration())),
                connector_key: Some(key.to_owned()),
                connector_id: Some(key.to_owned()),
                stream_count: None,
                granted_connections: None,
                streams: vec![metadata],
            }),
        }
    }
    for connector in &mut connectors {
        connector.stream_count = u64::try_from(connector.streams.len()).ok();
    }
    let narrowed =
        query.stream.is_some() || query.connection_id.is_some() || query.connector_id.is_some();
    let counted = |count: usize| narrowed.then(|| u64::try_from(count).ok()).flatten();
    SchemaDocument {
        object: ObjectTag::SCHEMA,
        detail: None,
        bearer: Some(bearer(session)),
        connector_count: counted(connectors.len()),
        stream_count: counted(streams),
        connectors,
        links: None,
        meta: Some(Meta::default()),
        search: None,
    }
}

fn bearer(session: &Session) -> Bearer {
    let text = |text: &str| Some(text.to_owned());
    let Some(client) = session.reach().client() else {
        return Bearer {
            token_kind: text("owner"),
            scope: text("owner"),
            ..Bearer::default()
        };
    };
    let mut bearer = Bearer {
        token_kind: text("client"),
        scope: text("grant"),
        client_id: text(client.client_id().as_str()),
        ..Bearer::default()
    };
    match client.package_id() {
        None => {
            let mut rows = client.rows().iter();
            bearer.grant_id = rows.next().map(|row| row.grant_id.to_string());
        }
        Some(package) => {
            bearer.token_kind = text("mcp_package");
            bearer.grant_package_id = text(package.as_str());
        }
    }
    bearer
}

/// The source as grants name it.
pub(crate) fn source_of(declaration: &Declaration) -> SourceRef {
    let kind = match declaration.source.kind {
        SourceKind::Connector => "connector",
        SourceKind::ProviderNative => "provider_native",
    };
    SourceRef {
        kind: Some(kind.to_owned()),
        id: Some(declaration.source.id.clone()),
        display_name: None,
    }
}

/// Full detail describes a stream of one connection. Which one is never guessed, even where several are alike today.
fn refuse_ambiguous(query: &SchemaQuery, rows: &[Row]) -> Result<(), ReadError> {
    let choices = available(rows);
    if choices.len() <= 1 {
        return Ok(());
    }
    let stream = query.stream.as_ref().map_or("", |stream| stream.as_str());
    let message = format!("{} connections carry the stream '{stream}'", choices.len());
    Err(ReadError::new(ErrorCode::AmbiguousSchemaDetail, message)
        .with_param("connection_id")
        .with_connections(choices))
}
