//! Declarations and connections.

use axum::http::StatusCode;
use contract::declaration::{Declaration, DeclarationErrors, Pointing};
use contract::id::ConnectionId;
use store::catalog::{self, StreamStats};
use store::{Store, StoreError};

use super::{blocking, body_text, json_body, store_problem, wire, with_mistakes};
use crate::params::quoted;
use crate::problem::{self, Problem};
use crate::table::{HandlerResult, RequestContext};
use contract::error::ErrorCode;

pub(super) async fn list(context: RequestContext) -> HandlerResult {
    let sources = blocking(context.service, |service| {
        let store = &*service.store;
        let stats = store
            .stream_stats()
            .map_err(|error| store_problem(&error))?;
        let connections = store.connections();
        Ok(wire::Sources {
            connectors: store
                .declarations()
                .iter()
                .map(|one| connector(one))
                .collect(),
            connections: connections
                .into_iter()
                .map(|connection| connection_with_count(connection, &stats))
                .collect(),
        })
    });
    problem::json(StatusCode::OK, &sources.await?)
}

fn connector(declaration: &Declaration) -> wire::Connector {
    let streams = declaration.streams.iter().map(|stream| wire::Stream {
        name: stream.name.clone(),
        key_parts: stream.primary_key.len(),
        fields: stream
            .fields
            .iter()
            .map(|field| field.name.to_string())
            .collect(),
        relations: stream
            .relationships
            .iter()
            .filter(|one| one.pointing == Pointing::Here)
            .map(|one| wire::Relation {
                name: one.name.clone(),
                stream: one.stream.clone(),
                foreign_key: one.foreign_key.to_string(),
            })
            .collect(),
    });
    wire::Connector {
        connector_key: declaration.connector_key().clone(),
        streams: streams.collect(),
    }
}

fn connection_with_count(
    connection: catalog::Connection,
    stats: &[StreamStats],
) -> wire::Connection {
    let own = stats
        .iter()
        .filter(|one| one.stream.connection == connection.id);
    wire::Connection {
        records: own.map(|one| one.records).sum(),
        connection_id: connection.id,
        connector_key: connection.connector,
        display_name: connection.display_name,
    }
}

/// Registers a declaration and brings the index up to it.
pub(super) async fn declare(mut context: RequestContext) -> HandlerResult {
    let text = body_text(&mut context).await?;
    let declared = blocking(context.service, move |service| {
        let declaration =
            Declaration::parse(&text).map_err(|mistakes| declaration_problem(&mistakes))?;
        let store = &*service.store;
        let declared = store.declare(&declaration).map_err(|error| match &error {
            StoreError::Declaration(mistakes) => declaration_problem(mistakes),
            other => store_problem(other),
        })?;
        let result = match declared {
            catalog::Declared::Added => "added",
            catalog::Declared::Unchanged => "unchanged",
            catalog::Declared::Updated { returned: true, .. } => "returned",
            catalog::Declared::Updated { .. } => "updated",
        };
        if let catalog::Declared::Updated { reindexed: 1.., .. } = declared {
            store
                .settle_index()
                .map_err(|error| store_problem(&error))?;
        }
        Ok(wire::Declared {
            connector_key: declaration.connector_key().clone(),
            result: result.to_owned(),
        })
    });
    problem::json(StatusCode::OK, &declared.await?)
}

fn declaration_problem(mistakes: &DeclarationErrors) -> Problem {
    let problem = Problem::new(ErrorCode::InvalidRequest, mistakes.to_string());
    with_mistakes(problem, mistakes.0.iter().map(ToString::to_string))
}

pub(super) async fn add(mut context: RequestContext) -> HandlerResult {
    let new: wire::NewConnection = json_body(&mut context).await?;
    let added = blocking(context.service, move |service| {
        let added = service.store.add_connection(catalog::NewConnection {
            connector: new.connector_key,
            name: new.name,
            id: new.connection_id,
        });
        Ok(connection_with_count(
            added.map_err(|error| store_problem(&error))?,
            &[],
        ))
    });
    problem::json(StatusCode::OK, &added.await?)
}

pub(super) async fn rename(mut context: RequestContext) -> HandlerResult {
    let id = connection(&context)?;
    let renaming: wire::Renaming = json_body(&mut context).await?;
    let renamed = blocking(context.service, move |service| {
        let store = &*service.store;
        let renamed = store
            .rename_connection(&id, &renaming.name)
            .map_err(|error| store_problem(&error))?;
        with_records(store, renamed)
    });
    problem::json(StatusCode::OK, &renamed.await?)
}

fn with_records(
    store: &dyn Store,
    found: catalog::Connection,
) -> Result<wire::Connection, Problem> {
    let stats = store
        .stream_stats()
        .map_err(|error| store_problem(&error))?;
    Ok(connection_with_count(found, &stats))
}

pub(super) async fn remove(context: RequestContext) -> HandlerResult {
    let id = connection(&context)?;
    let removed = blocking(context.service, move |service| {
        let removed = service
            .store
            .remove_connection(&id)
            .map_err(|error| store_problem(&error))?;
        Ok(wire::Removed {
            connection_id: id,
            records: removed.records,
            blobs: removed.blobs,
        })
    });
    problem::json(StatusCode::OK, &removed.await?)
}

fn connection(context: &RequestContext) -> Result<ConnectionId, Problem> {
    ConnectionId::parse(context.part(0)).map_err(|_| {
        let message = format!(
            "the connection '{}' is not available",
            quoted(context.part(0))
        );
        Problem::new(ErrorCode::ConnectionNotFound, message)
    })
}
