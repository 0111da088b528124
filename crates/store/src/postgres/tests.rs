//! The connection, its errors and the schema, against a real server where `TEST_POSTGRES` names one.

mod network;
mod plans;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant as Moment};

use contract::declaration::Declaration;
use contract::id::{ConnectionId, FieldName, StreamName};
use contract::json::RecordBody;
use contract::key::RecordKey;
use contract::time::Instant;

use super::*;
use crate::catalog::{NewConnection, StreamRef};
use crate::disk_space::pretended;
use crate::records::{Change, ChangeOp};
use crate::search::{Scope, SearchRequest};
use crate::{Catalog as _, Meaning as _, Nodes as _, Records as _, Search as _};

/// The server to test with. Without one these tests have nothing to test; the conformance tests say so.
#[expect(
    clippy::disallowed_methods,
    reason = "says where tests run, and nothing of the program"
)]
pub(super) fn url() -> Option<String> {
    std::env::var("TEST_POSTGRES").ok()
}

pub(super) fn options(url: &str) -> PostgresOptions {
    static OWNERS: AtomicU32 = AtomicU32::new(0);
    let number = OWNERS.fetch_add(1, Ordering::Relaxed);
    let owner = format!("unit-{}-{number}.example", std::process::id());
    let folder = tempfile::tempdir().unwrap().keep();
    PostgresOptions {
        url: url.to_owned(),
        ca: None,
        owner: owner.clone(),
        add_owner: true,
        data_dir: folder.join("node"),
        blobs: BlobPlace::Folder(folder.join("blobs")),
        node: owner,
        holder: "a test".to_owned(),
        clock: Arc::new(Instant(0)),
        secret: [7; 32],
        other_secret: None,
    }
}

/// Two nodes of one owner, each in a folder of its own.
pub(super) fn two_nodes(options: &PostgresOptions) -> [PostgresStore; 2] {
    ["one", "two"].map(|node| {
        let mut options = options.clone();
        options.data_dir = options.data_dir.with_file_name(node);
        options.node.push_str(node);
        PostgresStore::open(options).unwrap()
    })
}

/// A database of its own beside that of all other tests.
pub(super) struct OwnDatabase {
    pub(super) url: String,
    name: String,
    server: Pool,
}

impl OwnDatabase {
    pub(super) fn beside(url: &str) -> Self {
        static DATABASES: AtomicU32 = AtomicU32::new(0);
        let number = DATABASES.fetch_add(1, Ordering::Relaxed);
        let name = format!("own_{}_{number}", std::process::id());
        let server = Pool::open(Address::parse(url, None).unwrap()).unwrap();
        let create = |tx: &Tx<'_>| tx.batch(&format!("CREATE DATABASE {name}"));
        server.read(create).unwrap();
        let (place, _) = url.rsplit_once('/').unwrap();
        Self {
            url: format!("{place}/{name}"),
            name,
            server,
        }
    }
}

impl Drop for OwnDatabase {
    fn drop(&mut self) {
        let sql = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        let _ = self.server.read(|tx| tx.batch(&sql));
    }
}

fn open(url: &str) -> PostgresStore {
    PostgresStore::open(options(url)).unwrap()
}

#[test]
fn every_owner_has_an_id_and_a_key_of_its_own_on_every_node() {
    let Some(url) = url() else { return };
    let (options, other) = (options(&url), open(&url));
    let [one, two] = two_nodes(&options);
    assert_eq!((one.owner, one.store_id), (two.owner, two.store_id));
    assert_eq!(one.sealing_key(), two.sealing_key());
    assert_ne!(one.owner, other.owner);
    assert_ne!(one.sealing_key(), other.sealing_key());
}

#[test]
fn a_call_works_from_any_thread() {
    let Some(url) = url() else { return };
    let store = open(&url);
    let ask = |store: &PostgresStore| {
        let one: Result<i64> = store
            .pool
            .read(|tx| tx.query_one("SELECT 1::bigint", &[])?.get(0));
        assert_eq!(one.unwrap(), 1);
    };
    ask(&store);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    // Also dropped within another runtime.
    runtime.block_on(async move { ask(&store) });
}

#[test]
fn what_fails_is_rolled_back_and_the_connection_is_used_again() {
    let Some(url) = url() else { return };
    let store = open(&url);
    let write = "UPDATE owners SET purged_to = 5 WHERE id = $1";
    let refused: Result<()> = store.pool.transact(|tx| {
        tx.execute(write, &[&store.owner])?;
        Err(StoreError::Stopped)
    });
    assert!(matches!(refused, Err(StoreError::Stopped)));
    // An error that is overlooked does not look like success.
    let refused = store.pool.transact(|tx| {
        tx.execute(write, &[&store.owner])?;
        let _ = tx.execute("SELECT no_such_column", &[]);
        Ok(())
    });
    assert!(
        matches!(refused, Err(StoreError::Database { .. })),
        "{refused:?}"
    );
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = store.pool.transact(|tx| -> Result<()> {
            tx.execute(write, &[&store.owner])?;
            std::panic::resume_unwind(Box::new(()))
        });
    }));
    assert!(panicked.is_err());
    let read = "SELECT purged_to FROM owners WHERE id = $1";
    let kept: Result<i64> = store
        .pool
        .snapshot(|tx| tx.query_one(read, &[&store.owner])?.get(0));
    assert_eq!(kept.unwrap(), 0);
}

#[test]
fn writers_of_one_owner_take_turns_and_readers_do_not_wait() {
    let Some(url) = url() else { return };
    let options = options(&url);
    let [one, two] = two_nodes(&options);
    let count = |store: &PostgresStore| {
        store.transact_locked(|tx, owner| {
            let version = (owner.version + 1).cast_signed();
            let sql = "UPDATE owners SET version = $2 WHERE id = $1";
            tx.execute(sql, &[&store.owner, &version])
        })
    };
    std::thread::scope(|scope| {
        for store in [&one, &two, &one, &two] {
            scope.spawn(move || (0..25).for_each(|_| assert_eq!(count(store).unwrap(), 1)));
        }
    });
    one.transact_locked(|_, owner| {
        assert_eq!(owner.version, 100);
        let read = "SELECT version FROM owners WHERE id = $1";
        let seen: i64 = two
            .pool
            .read(|tx| tx.query_one(read, &[&two.owner])?.get(0))?;
        assert_eq!(seen, 100);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_server_that_cannot_be_used_is_told_with_its_place_and_without_the_password() {
    // No server listens here.
    let asked = Moment::now();
    let closed = PostgresStore::open(options("postgres://me:secret@127.0.0.1:1/pdpp"));
    let error = closed.err().unwrap();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert!(error.is_transient() && asked.elapsed() < Duration::from_secs(10));
    assert!(
        error.to_string().contains("postgres://127.0.0.1:1/pdpp"),
        "{error}"
    );
    assert!(!error.to_string().contains("secret"), "{error}");
    let Some(url) = url() else { return };
    let (server, _) = url.rsplit_once('/').unwrap();
    let missing = PostgresStore::open(options(&format!("{server}/no_such_database")));
    let error = missing.err().unwrap();
    assert!(
        matches!(error, StoreError::DatabaseRefused { .. }),
        "{error:?}"
    );
}

#[test]
fn tables_of_another_program_or_of_a_later_release_are_refused_and_left_as_they_are() {
    let Some(url) = url() else { return };
    let store = open(&url);
    let name = format!("foreign_{}", std::process::id());
    let create = |tx: &Tx<'_>| tx.batch(&format!("CREATE DATABASE {name}"));
    store.pool.read(create).unwrap();
    let (server, _) = url.rsplit_once('/').unwrap();
    let other = options(&format!("{server}/{name}"));
    let pool = Pool::open(Address::parse(&other.url, None).unwrap()).unwrap();
    // A pooler knows only the database that it was told of.
    if pool
        .read(|tx| tx.batch("CREATE TABLE accounts (id bigint)"))
        .is_ok()
    {
        let refused = PostgresStore::open(other.clone()).err().unwrap();
        assert!(refused.to_string().contains("\"accounts\""), "{refused}");
        pool.read(|tx| tx.batch("DROP TABLE accounts")).unwrap();
        drop(PostgresStore::open(other.clone()).unwrap());
        finish_migrating(&pool, &other);
        let running = PostgresStore::open(other.clone()).unwrap();
        running.check_ready().unwrap();
        let newer = "UPDATE schema_version SET version = 99, min_reader = 99";
        pool.read(|tx| tx.batch(newer)).unwrap();
        let unready = running.check_ready().unwrap_err().to_string();
        assert!(unready.contains("Upgrade pdpp"), "{unready}");
        drop(running);
        let refused = PostgresStore::open(other).err().unwrap().to_string();
        assert!(
            refused.contains("format 99") && refused.contains("Upgrade pdpp"),
            "{refused}"
        );
    }
    drop(pool);
    let dropped = format!("DROP DATABASE {name} WITH (FORCE)");
    store.pool.read(|tx| tx.batch(&dropped)).unwrap();
}

/// A node of an earlier release goes on beside later ones, until that is finished.
fn finish_migrating(pool: &Pool, options: &PostgresOptions) {
    let format = |finish| migrate_at(&options.url, None, finish);
    let oldest = format(false).unwrap().oldest;
    let newest = schema::newest();
    assert!(oldest < newest);
    let older = |format: i64| {
        let sql = "UPDATE nodes SET format = $1 WHERE id = $2";
        let aged = pool.transact(|tx| tx.execute(sql, &[&format, &options.node]));
        assert_eq!(aged.unwrap(), 1);
    };
    older(oldest);
    let refused = format(true).unwrap_err().to_string();
    assert!(
        refused.contains(&options.node) && refused.contains("nodes forget"),
        "{refused}"
    );
    assert_eq!(format(false).unwrap().oldest, oldest);
    older(newest);
    assert_eq!(format(true).unwrap().oldest, newest);
    drop(PostgresStore::open(options.clone()).unwrap());
}

#[test]
fn a_write_that_the_server_does_not_take_is_told_as_that() {
    let Some(url) = url() else { return };
    let store = open(&url);
    let refused = store.pool.snapshot(|tx| {
        let sql = "UPDATE owners SET version = 9 WHERE id = $1";
        tx.execute(sql, &[&store.owner])
    });
    assert!(
        matches!(refused, Err(StoreError::DatabaseReadOnly { .. })),
        "{refused:?}"
    );
}

#[test]
fn no_more_connections_are_made_than_the_pool_has_and_waiting_ends() {
    let Some(url) = url() else { return };
    let store = open(&url);
    let size = 2 * std::thread::available_parallelism().unwrap().get() + 2;
    let held: Vec<Tx<'_>> = (0..size).map(|_| store.pool.begin(None).unwrap()).collect();
    let refused = store.pool.read(|tx| tx.query("SELECT 1", &[]).map(drop));
    assert!(
        matches!(refused, Err(StoreError::Unavailable { .. })),
        "{refused:?}"
    );
    drop(held);
    store
        .pool
        .read(|tx| tx.query("SELECT 1", &[]).map(drop))
        .unwrap();
}

#[test]
fn a_column_that_does_not_hold_what_was_written_is_an_error() {
    let Some(url) = url() else { return };
    let store = open(&url);
    let row = store.pool.query_one("SELECT 'x' AS id, NULL::text", &[]);
    let row = row.unwrap();
    assert_eq!(row.get::<&str>(0).unwrap(), "x");
    for error in [
        row.parse::<i64>(0).unwrap_err(),
        row.get::<i64>(0).unwrap_err(),
        row.get::<&str>(1).unwrap_err(),
        row.get::<&str>(2).unwrap_err(),
    ] {
        assert!(matches!(error, StoreError::Database { .. }), "{error:?}");
    }
}

const NOTES: &str = include_str!("../../tests/conformance/ledger.json");

/// The connection of the notes, which is added.
pub(super) fn own_notes(store: &PostgresStore) -> ConnectionId {
    let declaration = Declaration::parse(NOTES).unwrap();
    store.declare(&declaration).unwrap();
    let own = ConnectionId::parse("own").unwrap();
    let new = NewConnection {
        connector: declaration.connector_key().clone(),
        name: "Own".to_owned(),
        id: Some(own.clone()),
    };
    store.add_connection(new).unwrap();
    own
}

pub(super) fn note(id: &str, text: &str) -> Change {
    Change {
        stream: StreamName::parse("entries").unwrap(),
        key: RecordKey::single(id).unwrap(),
        emitted_at: "2026-06-01T12:00:00Z".to_owned(),
        op: ChangeOp::Upsert(
            RecordBody::parse(format!(r#"{{"id":"{id}","text":"{text}"}}"#)).unwrap(),
        ),
    }
}

/// The stream of the notes.
pub(super) fn entries() -> StreamRef {
    StreamRef {
        connection: ConnectionId::parse("own").unwrap(),
        stream: StreamName::parse("entries").unwrap(),
    }
}

pub(super) fn found(store: &PostgresStore, word: &str) -> Vec<String> {
    let request = SearchRequest {
        expression: text::Expression::parse(word),
        scopes: vec![Scope::whole(
            entries(),
            vec![FieldName::parse("text").unwrap()],
        )],
        limit: 10,
        count: true,
        ..SearchRequest::default()
    };
    let hits = store.search(&request).unwrap().hits;
    hits.iter().map(|hit| hit.record.key.to_string()).collect()
}

/// A standby without the last changes takes over, and other changes get their version numbers.
#[test]
fn an_index_that_followed_a_history_that_was_rewritten_is_derived_anew() {
    let Some(url) = url() else { return };
    let options = options(&url);
    let [one, two] = two_nodes(&options);
    let own = own_notes(&one);
    one.write(&own, vec![note("a", "kept word")]).unwrap();
    let later = |id: &str, text: &str| Change {
        emitted_at: "2026-06-02T12:00:00Z".to_owned(),
        ..note(id, text)
    };
    one.write(&own, vec![later("b", "lost word")]).unwrap();
    let latest = |node: &PostgresStore| {
        let scope = Scope::whole(entries(), Vec::new());
        let extent = node.extent(&scope, 1).unwrap();
        extent.latest.first().map(|record| record.key.to_string())
    };
    for node in [&one, &two] {
        assert_eq!(found(node, "lost"), ["b"]);
        assert_eq!(latest(node).unwrap(), "b");
    }
    let model = tempfile::tempdir().unwrap();
    testkit::tiny_model::write_with(model.path(), testkit::tiny_model::GROUPS).unwrap();
    one.add_model(model.path()).unwrap();
    std::thread::scope(|scope| drop(scope.spawn(|| while one.embed_some().unwrap() {})));
    let vectors = || one.meaning_status().unwrap().unwrap().vectors;
    assert_eq!(vectors(), 2);
    two.transact_locked(|tx, _| {
        for sql in [
            "DELETE FROM records WHERE owner_id = $1 AND version > 1",
            "DELETE FROM marks WHERE owner_id = $1 AND version > 1",
            "UPDATE streams SET last_version = 1, live_records = 1 WHERE owner_id = $1",
            "UPDATE owners SET version = 1 WHERE id = $1",
        ] {
            tx.execute(sql, &[&two.owner])?;
        }
        Ok(())
    })
    .unwrap();
    // Before anything is written again the indexes are ahead of the records.
    assert!(found(&one, "lost").is_empty());
    assert_eq!(found(&one, "kept"), ["a"]);
    assert_eq!(vectors(), 0);
    two.write(&own, vec![later("c", "other word")]).unwrap();
    for node in [&one, &two] {
        assert_eq!(latest(node).unwrap(), "c");
        assert!(found(node, "lost").is_empty());
        assert_eq!(found(node, "other"), ["c"]);
        let mut all = found(node, "word");
        all.sort();
        assert_eq!(all, ["a", "c"]);
    }
}

/// The same of connections, whose number is smaller then, and would be the same again after another change.
#[test]
fn a_catalog_that_was_rewritten_is_read_again_by_every_node() {
    let Some(url) = url() else { return };
    let nodes = two_nodes(&options(&url));
    let own = own_notes(&nodes[0]);
    let names = || {
        nodes
            .each_ref()
            .map(|node| node.connection(&own).unwrap().display_name)
    };
    let number = "SELECT catalog FROM owners WHERE id = $1";
    let owner = &nodes[0].owner;
    let kept = nodes[0]
        .pool
        .read(|tx| tx.query_one(number, &[owner])?.get::<i64>(0));
    nodes[0].rename_connection(&own, "Lost").unwrap();
    assert_eq!(names(), ["Lost"; 2]);
    let kept = kept.unwrap();
    nodes[0]
        .pool
        .transact(|tx| {
            let sql = "UPDATE connections SET display_name = 'Own' WHERE owner_id = $1";
            tx.execute(sql, &[owner])?;
            let sql = "UPDATE owners SET catalog = $2 WHERE id = $1";
            tx.execute(sql, &[owner, &kept])
        })
        .unwrap();
    // One of them has not looked since, when another change follows.
    assert_eq!(nodes[1].connection(&own).unwrap().display_name, "Own");
    nodes[1].rename_connection(&own, "Anew").unwrap();
    assert_eq!(names(), ["Anew"; 2]);
}

#[test]
fn a_node_without_room_is_not_ready_and_loses_nothing() {
    let Some(url) = url() else { return };
    let store = open(&url);
    let own = own_notes(&store);
    store.write(&own, vec![note("a", "kept word")]).unwrap();
    assert_eq!(found(&store, "kept"), ["a"]);
    store.check_ready().unwrap();
    pretended::FREE.set(Some(0));
    let full = store.check_ready().unwrap_err();
    pretended::FREE.set(None);
    assert!(matches!(full, StoreError::NoRoom { .. }), "{full:?}");
    store.check_ready().unwrap();
    assert_eq!(found(&store, "kept"), ["a"]);
}
