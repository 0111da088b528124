//! Where the files of an upload go: a connection that is there, or one that is added for a known export.

use contract::id::ConnectionId;
use store::Store;
use store::catalog::Connection;

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
        let name = export
            .bundled()
            .map_or_else(|_| String::new(), |one| one.display_name);
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
        let added = export.add_connection(&*service.store, None);
        return match added {
            Ok(connection) => Ok((connection.id, None)),
            Err(error) => Err(Refusal::from(&error)),
        };
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
        let declared = export.declare(&*service.store);
        declared.map_err(|error| Refusal::from(&error))?;
    }
    Ok((id, stream))
}

pub(super) fn refusal(message: &str) -> Refusal {
    Refusal {
        message: message.to_owned(),
        hints: Vec::new(),
    }
}
