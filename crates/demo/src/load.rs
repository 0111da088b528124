//! Bringing the sample life into a store, by the ordinary way of every import.

use std::io::Cursor;

use contract::declaration::Declaration;
use contract::id::{ConnectionId, StreamName};
use contract::key::RecordKey;
use contract::time::Instant;
use ingest::{Acceptor, BatchLimits, Import, JsonlImporter, LineForm, StreamChoice};
use store::catalog::NewConnection;
use store::{Store, StreamRef};

use crate::error::DemoError;
use crate::life::{Life, Source};
use crate::notes;

/// What a store holds, as far as the sample life is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holding {
    Nothing,
    /// A part of the sample life: loading it stopped half-way.
    Part,
    /// The sample life, and perhaps more.
    Everything,
    SomethingElse,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loaded {
    pub records: u64,
    pub connections: usize,
}

/// Looks what a store holds, and changes nothing.
pub fn holding(store: &dyn Store) -> Result<Holding, DemoError> {
    let connections = store.connections();
    let (id, name) = notes::CONNECTION;
    let ours = connections
        .iter()
        .find(|one| one.id.as_str() == id && one.connector.as_str() == notes::STREAM);
    if ours.is_some() && has_note(store, notes::ABOUT)? {
        return Ok(if has_note(store, notes::WHO)? {
            Holding::Everything
        } else {
            Holding::Part
        });
    }
    // The very first step may have been the one that was interrupted.
    let first_step =
        |one: &store::catalog::Connection| one.id.as_str() == id && one.display_name == name;
    let records: u64 = store.stream_stats()?.iter().map(|one| one.records).sum();
    let untouched =
        connections.iter().all(first_step) && records == 0 && only_notes_declared(store);
    Ok(if untouched {
        Holding::Nothing
    } else {
        Holding::SomethingElse
    })
}

fn only_notes_declared(store: &dyn Store) -> bool {
    let known = notes::DECLARATION;
    let declarations = store.declarations();
    declarations.iter().all(|one| one.as_str() == known)
}

fn has_note(store: &dyn Store, key: &str) -> Result<bool, DemoError> {
    let (connection, _) = notes::CONNECTION;
    let place = stream_of(connection, notes::STREAM)?;
    Ok(store.get(&place, &key_of(key)?)?.is_some())
}

fn stream_of(connection: &str, stream: &str) -> Result<StreamRef, DemoError> {
    Ok(StreamRef::new(
        &ConnectionId::parse(connection)?,
        &StreamName::parse(stream)?,
    ))
}

fn key_of(text: &str) -> Result<RecordKey, DemoError> {
    RecordKey::single(text).map_err(|error| DemoError::Id(error.to_string()))
}

/// Loads the sample life. What is there already stays as it is, so an interrupted load can be repeated. `told` hears how many records
/// are there so far.
pub fn load(
    store: &dyn Store,
    life: &Life,
    told: &mut dyn FnMut(u64),
) -> Result<Loaded, DemoError> {
    let mut records = 0;
    for source in life.all() {
        let declaration = Declaration::parse(source.declaration)?;
        store.declare(&declaration)?;
        let connection = connect(store, &declaration, source)?;
        import(store, &declaration, &connection, source)?;
        for file in &source.files {
            let owner = stream_of(source.connection, file.stream)?;
            let key = key_of(&file.key)?;
            let mut content = Cursor::new(&file.bytes);
            store.put_blob(&owner, &key, &file.mime_type, &mut content)?;
        }
        records += source.records;
        told(records);
    }
    Ok(Loaded {
        records,
        connections: life.sources.len(),
    })
}

fn connect(
    store: &dyn Store,
    declaration: &Declaration,
    source: &Source,
) -> Result<ConnectionId, DemoError> {
    let id = ConnectionId::parse(source.connection)?;
    if store.connection(&id).is_none() {
        store.add_connection(NewConnection {
            connector: declaration.connector_key().clone(),
            name: source.name.to_owned(),
            id: Some(id.clone()),
        })?;
    }
    Ok(id)
}

fn import(
    store: &dyn Store,
    declaration: &Declaration,
    connection: &ConnectionId,
    source: &Source,
) -> Result<(), DemoError> {
    let acceptor = Acceptor::new(
        declaration,
        StreamChoice::Named,
        LineForm::EnvelopeOnly,
        // Every line of the sample life says when it was emitted, so the clock is never read.
        &Instant(0),
    );
    let mut importer = JsonlImporter::new(source.lines.as_bytes(), &acceptor);
    let mut import = Import::new(store, connection, BatchLimits::default());
    import
        .run(&mut importer, None, &mut |_| {})
        .map_err(|stopped| stopped.named(source.connection))?;
    match import.into_report().rejections.into_iter().next() {
        None => Ok(()),
        Some(first) => Err(DemoError::Refused {
            connection: source.connection,
            line: first.line,
            message: first.message,
        }),
    }
}
