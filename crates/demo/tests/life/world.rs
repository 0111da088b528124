//! The sample life in a store of its own, shared by the tests that run at the same time.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use contract::aggregate::AggregateQuery;
use contract::grant::Authority;
use contract::id::{FieldName, StreamName};
use contract::query::{ExpandRequest, RecordQuery};
use contract::reader::ReadContract;
use contract::seal::SealingKey;
use contract::search::SearchQuery;
use contract::time::Instant;
use demo::Life;
use read::{GrantReader, ReaderSettings};
use serde_json::Value;
use store::{EmbeddedStore, OpenOptions, Store};
use tempfile::TempDir;

/// 2026-11-01T12:00:00Z
const NOON: Instant = Instant(1_793_534_400_000_000);

pub(crate) fn open(folder: &TempDir) -> Arc<dyn Store> {
    let options = OpenOptions::new("a test of the sample life", Arc::new(NOON));
    Arc::new(EmbeddedStore::open(folder.path(), options).unwrap())
}

pub(crate) fn life() -> &'static Life {
    static LIFE: OnceLock<Life> = OnceLock::new();
    LIFE.get_or_init(|| Life::generate().unwrap())
}

/// The life, loaded.
pub(crate) struct World {
    pub(crate) store: Arc<dyn Store>,
    _folder: TempDir,
}

/// The world of the tests that run now; the last one to end removes it.
pub(crate) fn world() -> Arc<World> {
    static SHARED: Mutex<Weak<World>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap();
    if let Some(world) = shared.upgrade() {
        return world;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    demo::load(store.as_ref(), life(), &mut |_| {}).unwrap();
    let world = Arc::new(World {
        store,
        _folder: folder,
    });
    *shared = Arc::downgrade(&world);
    world
}

/// The records of a life, by connection and stream.
pub(crate) fn records(life: &Life) -> HashMap<(&'static str, String), Vec<Value>> {
    let mut records: HashMap<_, Vec<Value>> = HashMap::new();
    for source in life.all() {
        for line in source.lines.lines() {
            let told: Value = serde_json::from_str(line).unwrap();
            let stream = told["stream"].as_str().unwrap().to_owned();
            let entry = records.entry((source.connection, stream)).or_default();
            entry.push(told["data"].clone());
        }
    }
    records
}

pub(crate) fn text<'a>(record: &'a Value, field: &str) -> &'a str {
    record[field].as_str().unwrap_or_default()
}

pub(crate) fn stream(name: &str) -> StreamName {
    StreamName::parse(name).unwrap()
}

pub(crate) fn field(name: &str) -> FieldName {
    FieldName::parse(name).unwrap()
}

pub(crate) struct Owner(GrantReader);

impl World {
    pub(crate) fn owner(&self) -> Owner {
        let settings = ReaderSettings {
            sealing_key: SealingKey::from_bytes([7; 32]),
            public_url: "http://127.0.0.1:7420".to_owned(),
            clock: Arc::new(NOON),
            disclosures: None,
            max_bytes: None,
        };
        Owner(GrantReader::new(
            Arc::clone(&self.store),
            Authority::Owner,
            settings,
        ))
    }
}

fn wait<T>(answer: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread();
    { runtime }.build().unwrap().block_on(answer)
}

impl Owner {
    pub(crate) fn find(&self, q: &str) -> Vec<Value> {
        let mut query = SearchQuery::new(q).unwrap();
        query.limit = contract::query::PageLimit::new(100);
        let page = wait(self.0.search(query)).unwrap();
        let page = serde_json::to_value(page).unwrap();
        page["data"].as_array().unwrap().clone()
    }

    pub(crate) fn figure(&self, query: AggregateQuery) -> i64 {
        let told = serde_json::to_value(wait(self.0.aggregate(query)).unwrap()).unwrap();
        told["value"].as_i64().unwrap()
    }

    /// A whole record, with its relations.
    pub(crate) fn record(
        &self,
        (connection, name): (&str, &str),
        key: &str,
        expand: &[&str],
    ) -> Value {
        let query = RecordQuery {
            connection_id: Some(connection.to_owned()),
            expand: expand
                .iter()
                .map(|name| ExpandRequest {
                    name: (*name).to_owned(),
                    limit: None,
                })
                .collect(),
            ..RecordQuery::new(stream(name), key)
        };
        serde_json::to_value(wait(self.0.record(query)).unwrap()).unwrap()
    }
}
