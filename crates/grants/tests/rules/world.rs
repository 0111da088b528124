//! A mailbox with two accounts, a chat with one, a shop with none, and a clock that tests move.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use contract::declaration::Declaration;
use contract::grant::{Authority, GrantedRow};
use contract::id::{ConnectionId, ConnectorKey};
use contract::time::{Clock, Instant};
use grants::{Flags, IssueError, Issued, Selection, SelectionError};
use serde_json::{Value, json};
use store::catalog::NewConnection;
use store::{Catalog, EmbeddedStore, OpenOptions, Store};

pub(crate) const MAIL: &str = r#"{
  "protocol_version": "0.1.0",
  "source": { "kind": "connector", "id": "https://sources.example/mail" },
  "declaration_version": "1",
  "selection_presets": [{ "id": "headers", "streams": [{ "name": "messages", "view": "headers" }] }],
  "streams": [
    { "name": "messages", "semantics": "mutable_state", "primary_key": ["id"],
      "consent_time_field": "sent_at",
      "views": [{ "id": "headers", "fields": ["id", "subject"] }],
      "schema": { "type": "object", "required": ["id"], "properties": {
        "id": { "type": "string" }, "subject": { "type": "string" }, "body": { "type": "string" },
        "sent_at": { "type": "string", "format": "date-time" } } } },
    { "name": "folders", "semantics": "mutable_state", "primary_key": ["account", "name"],
      "selection": { "fields": false, "resources": true },
      "schema": { "type": "object", "properties": {
        "account": { "type": "string" }, "name": { "type": "string" } } } }
  ]
}"#;

const CHAT: &str = r#"{
  "protocol_version": "0.1.0",
  "source": { "kind": "connector", "id": "https://sources.example/chat" },
  "declaration_version": "7",
  "streams": [
    { "name": "messages", "semantics": "append_only", "primary_key": ["id"],
      "consent_time_field": "at", "selection": { "fields": true, "resources": false },
      "schema": { "type": "object", "properties": {
        "id": { "type": "string" }, "text": { "type": "string" }, "at": { "type": "string" } } } }
  ]
}"#;

const SHOP: &str = r#"{
  "protocol_version": "0.1.0",
  "source": { "kind": "connector", "id": "https://sources.example/shop" },
  "declaration_version": "1",
  "streams": [
    { "name": "orders", "semantics": "append_only", "primary_key": ["id"],
      "schema": { "type": "object", "properties": { "id": { "type": "string" } } } }
  ]
}"#;

pub(crate) struct HandClock(AtomicI64);

impl Clock for HandClock {
    fn now(&self) -> Instant {
        Instant(self.0.load(Ordering::Relaxed))
    }
}

pub(crate) struct World {
    pub(crate) store: Arc<EmbeddedStore>,
    pub(crate) clock: Arc<HandClock>,
    pub(crate) folder: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> World {
        let world = World::empty();
        let store = &world.store;
        for text in [MAIL, CHAT, SHOP] {
            store.declare(&Declaration::parse(text).unwrap()).unwrap();
        }
        for (connector, id) in [("mail", "home"), ("mail", "work"), ("chat", "team")] {
            store
                .add_connection(NewConnection {
                    connector: ConnectorKey::parse(connector).unwrap(),
                    name: id.to_owned(),
                    id: Some(connection(id)),
                })
                .unwrap();
        }
        world
    }

    /// The same without any source.
    pub(crate) fn empty() -> World {
        let folder = tempfile::tempdir().unwrap();
        let noon = Instant::parse("2026-06-01T12:00:00Z").unwrap();
        let clock = Arc::new(HandClock(AtomicI64::new(noon.0)));
        let store = EmbeddedStore::open(
            folder.path(),
            OpenOptions::new("a test", Arc::clone(&clock) as Arc<dyn Clock>),
        )
        .unwrap();
        World {
            store: Arc::new(store),
            clock,
            folder,
        }
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    pub(crate) fn wait(&self, time: Duration) {
        let micros = i64::try_from(time.as_micros()).unwrap();
        self.clock.0.fetch_add(micros, Ordering::Relaxed);
    }

    pub(crate) fn try_issue(&self, selection: &Selection) -> Result<Issued, IssueError> {
        grants::issue(self.store(), selection, "agent", None, &*self.clock)
    }

    pub(crate) fn issue(&self, selection: &Selection) -> Issued {
        self.try_issue(selection).unwrap()
    }

    pub(crate) fn issue_for(&self, connections: &[&str]) -> Issued {
        self.issue(&Selection::from_flags(flags(connections, &[], &[])).unwrap())
    }

    /// The mistakes that keep a selection from being issued.
    pub(crate) fn mistakes(&self, selection: Result<Selection, SelectionError>) -> String {
        let error = match selection {
            Err(error) => error,
            Ok(selection) => match self.try_issue(&selection) {
                Err(IssueError::Selection(error)) => error,
                other => panic!("expected mistakes, found {other:?}"),
            },
        };
        assert!(
            grants::list(self.store(), self.now()).unwrap().is_empty(),
            "a refused selection leaves nothing behind"
        );
        error.to_string()
    }
}

pub(crate) fn connection(id: &str) -> ConnectionId {
    ConnectionId::parse(id).unwrap()
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

pub(crate) fn flags(connections: &[&str], streams: &[&str], fields: &[&str]) -> Flags {
    Flags {
        connections: owned(connections),
        streams: owned(streams),
        fields: owned(fields),
        ..Flags::default()
    }
}

pub(crate) fn streams(issued: &Issued) -> Vec<(String, String, Vec<String>)> {
    issued
        .streams
        .iter()
        .map(|row| {
            let fields = row.fields.iter().map(ToString::to_string).collect();
            (
                row.connection_id.to_string(),
                row.stream.to_string(),
                fields,
            )
        })
        .collect()
}

pub(crate) fn row(
    connection: &str,
    stream: &str,
    fields: &[&str],
) -> (String, String, Vec<String>) {
    let fields = fields.iter().map(|field| (*field).to_owned()).collect();
    (connection.to_owned(), stream.to_owned(), fields)
}

pub(crate) fn rows(world: &World, issued: &Issued) -> Vec<GrantedRow> {
    let resolved =
        grants::resolve(world.store(), issued.access_token.expose(), world.now()).unwrap();
    match resolved.authority {
        Authority::Granted(granted) => granted.rows().to_vec(),
        Authority::Owner => panic!("a client token never is the owner's"),
    }
}

pub(crate) fn detail(edit: impl FnOnce(&mut Value)) -> Value {
    let mut detail = json!({
        "type": "https://pdpp.dev/data-access",
        "source": { "id": "https://sources.example/mail" },
        "purpose_code": "https://pdpp.dev/purpose/agent_context",
        "access_mode": "continuous",
        "streams": [{ "name": "messages", "instance_ids": ["home"] }]
    });
    edit(&mut detail);
    detail
}

/// The same with another value, as JSON, where a pointer leads.
pub(crate) fn detail_with(pointer: &str, value: &str) -> Value {
    let value: Value = serde_json::from_str(value).unwrap();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    detail(|detail| match detail.pointer_mut(parent).unwrap() {
        Value::Array(elements) => elements[name.parse::<usize>().unwrap()] = value,
        object => object[name] = value,
    })
}

pub(crate) fn from_details(details: &Value) -> Result<Selection, SelectionError> {
    Selection::from_details(&details.to_string())
}
