//! Declarations and connections.

use contract::declaration::{Declaration, Pointing};
use contract::id::ConnectionId;
use ingest::Export;
use store::StoreError;
use store::catalog::{self, StreamStats};

use super::{OwnerProblem, answer, body_text, json_body, wire};
use crate::history;
use crate::params::quoted;
use crate::problem::Problem;
use crate::service::Service;
use crate::table::{HandlerResult, RequestContext};
use contract::error::ErrorCode;

pub(super) async fn list(context: RequestContext) -> HandlerResult {
    answer(context.service, |service| {
        let store = &*service.store;
        let stats = store.stream_stats()?;
        let declarations = store.declarations();
        let connections = store.connections().into_iter();
        Ok(wire::Sources {
            connectors: declarations.iter().map(|one| connector(one)).collect(),
            connections: connections
                .map(|connection| connection_with_count(connection, &stats))
                .collect(),
        })
    })
    .await
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
    answer(context.service, move |service| {
        let declaration = Declaration::parse(&text)?;
        let store = &*service.store;
        let declared = store.declare(&declaration).map_err(|error| match error {
            StoreError::Declaration(mistakes) => OwnerProblem::from(mistakes),
            other => other.into(),
        })?;
        let result = match declared {
            catalog::Declared::Added => "added",
            catalog::Declared::Unchanged => "unchanged",
            catalog::Declared::Updated { returned: true, .. } => "returned",
            catalog::Declared::Updated { .. } => "updated",
        };
        let damaged = match declared {
            catalog::Declared::Updated {
                reindexed, damaged, ..
            } => {
                if reindexed > 0 {
                    store.settle_index()?;
                }
                damaged
            }
            catalog::Declared::Added | catalog::Declared::Unchanged => Vec::new(),
        };
        Ok(wire::Declared {
            connector_key: declaration.connector_key().clone(),
            result: result.to_owned(),
            damaged,
        })
    })
    .await
}

/// Declares the connector of a known export, and adds a connection for it if that is asked.
pub(super) async fn connect_export(mut context: RequestContext) -> HandlerResult {
    let asked: wire::ConnectExport = json_body(&mut context).await?;
    let export = Export::parse(context.part(0));
    let unknown = || Problem::new(ErrorCode::NotFound, "there is no such kind of export");
    let export = export.ok_or_else(unknown)?;
    answer(context.service, move |service| {
        let store = &*service.store;
        let declared = |error: StoreError| match error {
            StoreError::Declaration(mistakes) => OwnerProblem::from(mistakes),
            other => other.into(),
        };
        let Some(name) = asked.name else {
            export.declare(store).map_err(declared)?;
            return Ok(None);
        };
        let added = export.add_connection(store, Some(name)).map_err(declared)?;
        Ok(Some(connection_with_count(added, &[])))
    })
    .await
}

pub(super) async fn add(mut context: RequestContext) -> HandlerResult {
    let new: wire::NewConnection = json_body(&mut context).await?;
    answer(context.service, move |service| {
        let added = service.store.add_connection(catalog::NewConnection {
            connector: new.connector_key,
            name: new.name,
            id: new.connection_id,
        })?;
        Ok(connection_with_count(added, &[]))
    })
    .await
}

pub(super) async fn rename(mut context: RequestContext) -> HandlerResult {
    let id = connection(&context)?;
    let renaming: wire::Renaming = json_body(&mut context).await?;
    answer(context.service, move |service| {
        let renamed = service.store.rename_connection(&id, &renaming.name)?;
        let stats = service.store.stream_stats()?;
        Ok(connection_with_count(renamed, &stats))
    })
    .await
}

pub(super) async fn remove(context: RequestContext) -> HandlerResult {
    let id = connection(&context)?;
    answer(context.service, move |service| {
        let removed = remove_connection(service, &id)?;
        Ok(wire::Removed {
            connection_id: id,
            records: removed.records,
            blobs: removed.blobs,
        })
    })
    .await
}

/// Removes a connection, and what is told about imports into it.
pub(crate) fn remove_connection(
    service: &Service,
    id: &ConnectionId,
) -> Result<catalog::Removed, StoreError> {
    history::forget_imports(&*service.store, id, service.now())?;
    service.store.remove_connection(id)
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
