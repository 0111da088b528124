//! Where the files of an upload go: a connection that is there, or one that is added for a known export.

use std::sync::Arc;

use contract::declaration::Declaration;
use contract::id::{ConnectionId, ConnectorKey};
use ingest::Export;
use store::catalog::{Connection, Declared, NewConnection};
use store::{Store, StoreError};

use super::staged::Group;
use crate::console::format::label;
use crate::owner::wire::Refusal;
use crate::service::Service;

/// What stands for a connection that is not there yet.
pub(super) const NEW: &str = "new";

/// A place that a group may go to.
pub(super) struct Place {
    /// A connection, a stream of one, or [`NEW`].
    pub(super) value: String,
    pub(super) name: String,
    pub(super) chosen: bool,
}

/// The places for a group: connections of its connector, or any for lines and tables. `wanted` is what was chosen.
pub(super) fn places(service: &Service, group: &Group, wanted: &str) -> Vec<Place> {
    let store = &*service.store;
    let connections = store.connections().into_iter();
    let mut places: Vec<Place> = match group.export {
        Some(export) => connections
            .filter(|one| one.connector.as_str() == export.connector_key())
            .map(|one| place(one.id.to_string(), label(&one.display_name)))
            .collect(),
        None => connections.flat_map(|one| of_lines(store, &one)).collect(),
    };
    if let Some(export) = group.export {
        let name = bundled(export).map_or_else(|_| String::new(), |one| one.display_name);
        places.push(place(
            NEW.to_owned(),
            format!("a new connection, {}", label(&name)),
        ));
    }
    let is_known = places.iter().any(|place| place.value == wanted);
    for (at, place) in places.iter_mut().enumerate() {
        place.chosen = if is_known {
            place.value == wanted
        } else {
            at == 0
        };
    }
    places
}

fn place(value: String, name: String) -> Place {
    Place {
        value,
        name,
        chosen: false,
    }
}

/// A connection as a whole, for lines that say their stream, and each of its streams.
fn of_lines(store: &dyn Store, connection: &Connection) -> Vec<Place> {
    let name = label(&connection.display_name);
    let declaration = store.declaration(&connection.connector);
    let streams = declaration.iter().flat_map(|one| &one.streams);
    let streams = streams.map(|stream| {
        let value = format!("{}/{}", connection.id, stream.name);
        place(value, format!("{name}, {}", label(stream.name.as_str())))
    });
    let whole = place(
        connection.id.to_string(),
        format!("{name}, as the file or its lines say"),
    );
    std::iter::once(whole).chain(streams).collect()
}

/// The connection for what was chosen, added where it must be; and the stream, where one was.
pub(super) fn resolve(
    service: &Service,
    group: &Group,
    chosen: &str,
) -> Result<(ConnectionId, Option<String>), Refusal> {
    if let (NEW, Some(export)) = (chosen, group.export) {
        return added(service, export).map(|id| (id, None));
    }
    let (id, stream) = match chosen.split_once('/') {
        Some((id, stream)) => (id, Some(stream.to_owned())),
        None => (chosen, None),
    };
    let id = ConnectionId::parse(id).ok();
    let known = id.filter(|id| service.store.connection(id).is_some());
    let id =
        known.ok_or_else(|| refusal("the connection that was chosen is not there any more"))?;
    if let Some(export) = group.export {
        declare(&*service.store, export)?;
    }
    Ok((id, stream))
}

fn added(service: &Service, export: Export) -> Result<ConnectionId, Refusal> {
    let store = &*service.store;
    let bundled = declare(store, export)?;
    let key: &ConnectorKey = bundled.connector_key();
    // Shorter than what would be made of connector and name.
    let id = ConnectionId::parse(key.as_str()).ok();
    let added = store.add_connection(NewConnection {
        connector: key.clone(),
        name: bundled.display_name.clone(),
        id: id.filter(|id| store.connection(id).is_none()),
    });
    added
        .map(|one| one.id)
        .map_err(|error| Refusal::from(&error))
}

/// Registers the connector of an export, or brings one up to date that an earlier release registered.
fn declare(store: &dyn Store, export: Export) -> Result<Arc<Declaration>, Refusal> {
    let bundled = bundled(export)?;
    match store.declare(&bundled) {
        Ok(Declared::Updated { reindexed, .. }) if reindexed > 0 => {
            store
                .settle_index()
                .map_err(|error| Refusal::from(&error))?;
        }
        // One that is refused is older than what the owner, or a later release, has registered.
        Ok(_) | Err(StoreError::Declaration(_)) => {}
        Err(error) => return Err(Refusal::from(&error)),
    }
    Ok(Arc::new(bundled))
}

fn bundled(export: Export) -> Result<Declaration, Refusal> {
    let parsed = Declaration::parse(export.declaration());
    parsed.map_err(|mistakes| refusal(&mistakes.to_string()))
}

pub(super) fn refusal(message: &str) -> Refusal {
    Refusal {
        message: message.to_owned(),
        hints: Vec::new(),
    }
}
