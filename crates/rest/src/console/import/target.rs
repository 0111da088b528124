//! Where the files of an upload go: a connection that is there, or one that is added for a known export or a table.

use contract::declaration::Declaration;
use contract::id::{ConnectionId, ConnectorKey};
use ingest::Export;
use ingest::survey::{connection_name, of_account};
use ingest::table::{self, DeclaredSource, Inferred, TablePlace};
use store::Store;
use store::catalog::Connection;

use super::staged::{Group, StagedFile};
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
    let mut connections = store.connections();
    let mut own = None;
    let mut places: Vec<Place> = match group.export {
        Some(export) => {
            let (connector, name) = names(export, group);
            connections.retain(|one| one.connector.as_str() == export.connector_key());
            let listed = connections.iter();
            let mut places: Vec<Place> = listed
                .map(|one| place(one.id.to_string(), label(&one.display_name)))
                .collect();
            let account = (connector.as_str(), group.account.as_deref());
            let meant = of_account(connections, |one| &one.display_name, account);
            own = meant.first().map(|one| one.id.to_string());
            own.get_or_insert_with(|| NEW.to_owned());
            let new = format!("a new connection, {}", label(&name));
            places.push(place(NEW.to_owned(), new));
            places
        }
        None => connections
            .iter()
            .flat_map(|one| of_lines(store, one))
            .collect(),
    };
    if let Some(file) = group.table().filter(|_| group.makes_source()) {
        let name = format!("a new source made of it, {}", label(file.title()));
        places.push(place(NEW.to_owned(), name));
    }
    let has = |value: &str| places.iter().any(|place| place.value == value);
    let first = places.first().map(|place| place.value.clone());
    let chosen = if has(wanted) {
        Some(wanted.to_owned())
    } else {
        own.or_else(|| of_columns(store, group)).or(first)
    };
    choose(&mut places, &chosen.unwrap_or_default());
    places
}

/// What the connector of an export is called, and a new connection for it.
fn names(export: Export, group: &Group) -> (String, String) {
    let bundled = export.bundled();
    let connector = bundled.map_or_else(|_| String::new(), |one| one.display_name);
    let name = connection_name(&connector, group.account.as_deref());
    (connector, name)
}

pub(super) fn choose(places: &mut [Place], value: &str) {
    for place in places {
        place.chosen = place.value == value;
    }
}

/// The place that the columns of a table tell; nothing where it takes the owner to decide.
fn of_columns(store: &dyn Store, group: &Group) -> Option<String> {
    let file = group.table().filter(|_| group.makes_source())?;
    if group.tables.is_empty() {
        return Some(NEW.to_owned());
    }
    let connections = store.connections();
    let connected =
        |connector: &ConnectorKey| connections.iter().find(|one| one.connector == *connector);
    let mut declarations = store.declarations();
    // What is declared stays when its last connection is removed.
    declarations.retain(|one| connected(one.connector_key()).is_some());
    let declared = declarations.iter().map(|one| DeclaredSource::from(&**one));
    let declared: Vec<DeclaredSource<'_>> = declared.collect();
    // Several files of lines may be of several streams, as their names say.
    let format = Some(file.format()).filter(|_| group.files.len() > 1);
    match table::place(&group.tables, (file.title(), format), &declared) {
        TablePlace::New => Some(NEW.to_owned()),
        TablePlace::Known(known) => {
            let connection = &connected(&known.connector)?.id;
            Some(match known.stream {
                Some(stream) => format!("{connection}/{stream}"),
                None => connection.to_string(),
            })
        }
        TablePlace::Unclear => None,
    }
}

/// What a source would be that is made of a table.
pub(super) fn infer(store: &dyn Store, group: &Group) -> Result<Inferred, Refusal> {
    let title = group.table().map(StagedFile::title).unwrap_or_default();
    let key = table::free_key(title, |key| {
        let is_connector = |key: ConnectorKey| store.declaration(&key).is_some();
        let is_connection = |id: ConnectionId| store.connection(&id).is_some();
        ConnectorKey::parse(key).is_ok_and(is_connector)
            || ConnectionId::parse(key).is_ok_and(is_connection)
    });
    let inferred = group.infer(&key);
    let inferred = inferred.ok_or_else(|| refusal("it is no table to make a source of"))?;
    let refused = |why: &str| {
        let hint = "choose a connection that has its columns, or discard it and try another file at /import";
        let mut refused = refusal(why);
        refused.hints.push(hint.to_owned());
        refused
    };
    let inferred = inferred.map_err(|error| refused(&error.to_string()))?;
    match Declaration::parse(&inferred.declaration) {
        Ok(_) => Ok(inferred),
        Err(mistakes) => {
            let first = mistakes.0.first().map(ToString::to_string);
            let first = first.unwrap_or_default();
            Err(refused(&format!("its columns cannot be declared: {first}")))
        }
    }
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
        let added = export.add_connection(&*service.store, Some(names(export, group).1));
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
