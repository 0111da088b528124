//! A small mailbox to test the store with, and short ways to write and ask.

use std::path::Path;
use std::sync::Arc;

use contract::declaration::Declaration;
use contract::id::{ConnectionId, FieldName, StreamName};
use contract::json::RecordBody;
use contract::key::RecordKey;
use contract::time::{Clock, Instant};
use store::catalog::{Connection, NewConnection};
use store::records::{Applied, Change, ChangeOp};
use store::search::{Scope, SearchRequest};
use store::{EmbeddedStore, OpenOptions, Store, StreamRef};
use text::Expression;

/// A declaration with every kind of field and capability.
pub(crate) const MAIL: &str = include_str!("mail.json");

struct Noon;

impl Clock for Noon {
    fn now(&self) -> Instant {
        Instant::parse("2026-06-01T12:00:00Z").unwrap()
    }
}

/// Opens the embedded store in a folder.
pub(crate) fn open(path: &Path) -> EmbeddedStore {
    try_open(path).unwrap()
}

pub(crate) fn try_open(path: &Path) -> store::Result<EmbeddedStore> {
    EmbeddedStore::open(
        path,
        OpenOptions {
            holder: "a conformance test".to_owned(),
            clock: Arc::new(Noon),
        },
    )
}

/// Declares the mail connector and adds a connection named so.
pub(crate) fn add_mail(store: &dyn Store, id: &str) -> Connection {
    store.declare(&Declaration::parse(MAIL).unwrap()).unwrap();
    let connector = "mail".parse().unwrap();
    let id = Some(ConnectionId::parse(id).unwrap());
    store
        .add_connection(NewConnection {
            connector,
            name: "Work mail".to_owned(),
            id,
        })
        .unwrap()
}

pub(crate) fn stream(connection: &str, stream: &str) -> StreamRef {
    StreamRef {
        connection: ConnectionId::parse(connection).unwrap(),
        stream: StreamName::parse(stream).unwrap(),
    }
}

pub(crate) fn key(text: &str) -> RecordKey {
    RecordKey::single(text).unwrap()
}

pub(crate) fn field(name: &str) -> FieldName {
    FieldName::parse(name).unwrap()
}

/// A directive to add or replace a record given as JSON; the key is its `id`.
pub(crate) fn put(stream: &str, json: &str) -> Change {
    let body = RecordBody::parse(json).unwrap();
    let id = body.text("id").unwrap().into_owned();
    Change {
        stream: StreamName::parse(stream).unwrap(),
        key: key(&id),
        emitted_at: "2026-05-01T00:00:00Z".to_owned(),
        op: ChangeOp::Upsert(body),
    }
}

pub(crate) fn delete(stream: &str, id: &str) -> Change {
    Change {
        stream: StreamName::parse(stream).unwrap(),
        key: key(id),
        emitted_at: "2026-05-02T00:00:00Z".to_owned(),
        op: ChangeOp::Delete,
    }
}

pub(crate) fn write(store: &dyn Store, connection: &str, batch: Vec<Change>) -> Vec<Applied> {
    store
        .write(&ConnectionId::parse(connection).unwrap(), batch)
        .unwrap()
}

/// A message with a subject and a body.
pub(crate) fn message(id: &str, subject: &str, body: &str) -> Change {
    let json = serde_json::json!({ "id": id, "subject": subject, "body": body });
    put("messages", &json.to_string())
}

/// All records of a stream's lexical fields.
pub(crate) fn messages(connection: &str) -> Scope {
    Scope::whole(
        stream(connection, "messages"),
        vec![field("subject"), field("body")],
    )
}

/// The keys found, best first.
pub(crate) fn found(store: &dyn Store, query: &str, scopes: Vec<Scope>) -> Vec<String> {
    let answer = store
        .search(&SearchRequest {
            expression: Expression::parse(query),
            scopes,
            limit: 1_000,
            after: None,
            count: true,
        })
        .unwrap();
    assert_eq!(answer.total, Some(answer.hits.len() as u64));
    let keys = answer.hits.iter().map(|hit| hit.record.key.to_string());
    keys.collect()
}

/// The keys found, in key order.
pub(crate) fn found_sorted(store: &dyn Store, query: &str, scopes: Vec<Scope>) -> Vec<String> {
    let mut keys = found(store, query, scopes);
    keys.sort();
    keys
}
