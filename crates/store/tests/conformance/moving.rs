//! A data directory moves into PostgreSQL whole, and a backup from there is one of a data directory. These need a PostgreSQL.

use std::fmt::Debug;
use std::fs;
use std::sync::Arc;

use contract::time::Instant;
use store::grants::Revocable;
use store::records::{ChangeOp, ChangesRequest, Direction, OrderBy, PageRequest};
use store::registry::{Change, EntryKind};
use store::restore::Restore;
use store::{
    Catalog as _, EmbeddedStore, Grants as _, OpenOptions, PostgresOptions, PostgresStore,
    Registry as _, Store, StoreError,
};
use tempfile::TempDir;

use crate::fixture::{
    Work as _, add_ledger, add_mail, approval, backup, blob_path, connection, delete, disclosure,
    fresh_owner, grant, grant_id, key, mailbox, message, noon, open, put, put_bytes, stream, token,
    write,
};

const STREAMS: [(&str, &str); 4] = [
    ("work", "messages"),
    ("work", "events"),
    ("books", "entries"),
    ("books", "rates"),
];

/// The ids of `blob` and `another`.
const BLOBS: [&str; 2] = [
    "blob_sha256_fa2c8cc4f28176bbeed4b736df569a34c79cd3723e9ec42f9674b4d46ac6b8b8",
    "blob_sha256_ae448ac86c4e8e4dec645729708ef41873ae79c6dff84eff73360989487f08e5",
];

/// A directory in which everything has happened that leaves a row somewhere.
fn lived_in() -> (TempDir, EmbeddedStore) {
    let (folder, store) = mailbox();
    add_mail(&store, "old");
    add_ledger(&store, "books");
    let numbered = |at: usize| message(&format!("m{at:02}"), "Überweisung", "東京");
    store.put((0..50).map(numbered).collect());
    write(&store, "old", vec![message("gone", "erased", "")]);
    write(
        &store,
        "books",
        vec![
            put("entries", r#"{"id":"e","number":1e0}"#),
            put("entries", r#"{"id":"f","number":-7}"#),
            put("entries", r#"{"id":"g"}"#),
            put("rates", r#"{"id":"r","rate":-1.5e0}"#),
            put("rates", r#"{"id":"s","rate":2}"#),
        ],
    );
    let mut by_owner = delete("messages", "m02");
    by_owner.op = ChangeOp::DeleteByOwner;
    let mut earlier = message("m03", "moved back", "");
    "2020-01-01T00:00:00Z".clone_into(&mut earlier.emitted_at);
    store.put(vec![
        delete("messages", "m00"),
        message("m01", "changed", ""),
        by_owner,
        earlier,
    ]);
    store.put(vec![message("m01", "changed again", "")]);
    store.put_bytes("m01", b"blob");
    put_bytes(&store, "work", &key("m04"), b"another");
    give_access(&store);
    store.remove_connection(&connection("old")).unwrap();
    (folder, store)
}

/// Grants, tokens and what authorization remembers, with some of it revoked and disclosed.
fn give_access(store: &EmbeddedStore) {
    let granted = grant("grt_1", &[("messages", &["work", "old"])]);
    store.approve(&approval(None, vec![granted], 1)).unwrap();
    let both = ["grt_2", "grt_3"].map(|id| grant(id, &[("messages", &["work"])]));
    let package = approval(Some("pkg_1"), both.into(), 2);
    store.approve(&package).unwrap();
    store.add_owner_token(&token(3)).unwrap();
    let id = grant_id("grt_3");
    store.revoke(Revocable::Grant(&id), noon()).unwrap();
    let entries = [1, 2].map(|number| disclosure(number, &["grt_1", "grt_2"]));
    store.log_disclosures(&entries, &[]).unwrap();
    let client = Change::put(EntryKind::Client, "agent", r#"{"name":"Agent"}"#);
    assert!(store.apply(&[client], noon()).unwrap());
}

/// Everything that can be asked, as text to compare.
fn answers(store: &dyn Store) -> Vec<String> {
    let mut answers = vec![
        format!("{:?}", store.connections()),
        format!("{:?}", store.declarations()),
        told(&store.stream_stats()),
        told(&store.grants()),
        told(&store.disclosures(None, None, 100)),
        told(&store.disclosures(Some(&grant_id("grt_2")), None, 100)),
        told(&store.check_disclosures()),
        told(&store.missing_blobs()),
    ];
    for number in 1..4 {
        answers.push(told(&store.token_candidates([number; 8])));
    }
    answers.push(told(&store.entries(EntryKind::Client, None, 9, Instant(0))));
    for (id, name) in STREAMS {
        let stream = stream(id, name);
        for by in [OrderBy::Key, OrderBy::Cursor] {
            let request = PageRequest::first(by, Direction::Descending, 1_000);
            answers.push(told(&store.page(&stream, &request)));
        }
        for every_version in [false, true] {
            let request = ChangesRequest {
                every_version,
                ..ChangesRequest::since(0, 1_000)
            };
            answers.push(told(&store.changes(&stream, &request)));
        }
    }
    let messages_of = stream("work", "messages");
    for id in ["m01", "m02"] {
        answers.push(told(&store.history(&messages_of, &key(id), 1 << 40, 9)));
        answers.push(told(&store.is_deleted_by_owner(&messages_of, &key(id))));
    }
    for query in ["uberweisung", "changed", "京", "moved", "erased"] {
        answers.push(format!("{:?}", store.found(query)));
    }
    for id in BLOBS {
        let id = id.parse().unwrap();
        answers.push(told(&store.blob(&messages_of, &id)));
        let mut bytes = String::new();
        let mut read = store.open_blob(&id).unwrap();
        answers.push(told(&read.read_to_string(&mut bytes)));
        answers.push(bytes);
    }
    answers
}

fn told<T: Debug, E: Debug>(answer: &Result<T, E>) -> String {
    assert!(answer.is_ok(), "{answer:?}");
    format!("{answer:?}")
}

fn told_progress(_: u64) {}

fn moved(from: &EmbeddedStore, to: &PostgresOptions) -> PostgresStore {
    let store = PostgresStore::open(to.clone()).unwrap();
    let taken = store.take_over(from, &mut told_progress).unwrap();
    drop(store);
    assert_eq!((taken.blobs, taken.chain.entries), (2, 2));
    assert!(taken.missing_blobs.is_empty() && taken.damaged.is_empty());
    PostgresStore::open(to.clone()).unwrap()
}

fn restored(archive: &[u8], folder: &TempDir) -> EmbeddedStore {
    let to = folder.path().join("restored");
    let restore = Restore {
        to: &to,
        options: OpenOptions::new("a test", Arc::new(noon())),
        without_grants: false,
        accept_damage: false,
    };
    restore.run(archive).unwrap();
    open(&to)
}

#[test]
fn what_moved_answers_alike_and_so_does_what_is_restored_from_its_backup() {
    let node = tempfile::tempdir().unwrap();
    let Some(owner) = fresh_owner(node.path()) else {
        return;
    };
    let (_folder, from) = lived_in();
    let expected = answers(&from);
    let store = moved(&from, &owner);
    assert_eq!(answers(&store), expected);
    assert_eq!(store.sealing_key(), from.sealing_key().unwrap());
    let copy = restored(&backup(&store), &node);
    assert_eq!(answers(&copy), expected);
    assert_eq!(copy.sealing_key().unwrap(), store.sealing_key());
    // Both go on from there, with rows and versions of their own.
    for store in [&store as &dyn Store, &copy] {
        store.put(vec![
            message("m05", "goes on", ""),
            message("m99", "is new", ""),
        ]);
        assert_eq!(store.found_sorted("goes"), ["m05"]);
        assert_eq!(store.found_sorted("new"), ["m99"]);
    }
    assert_eq!(answers(&store), answers(&copy));
}

#[test]
fn what_is_damaged_or_missing_moves_as_that_and_is_told() {
    let node = tempfile::tempdir().unwrap();
    let Some(owner) = fresh_owner(node.path()) else {
        return;
    };
    let (folder, from) = lived_in();
    drop(from);
    let blob = blob_path(folder.path(), &BLOBS[0].parse().unwrap());
    fs::remove_file(blob).unwrap();
    let database = rusqlite::Connection::open(folder.path().join("records.db")).unwrap();
    let sql = "UPDATE records SET data = replace(data, '東京', '西京') WHERE data LIKE '%m07%'";
    assert_eq!(database.execute(sql, []).unwrap(), 1);
    drop(database);
    let from = open(folder.path());
    let store = PostgresStore::open(owner).unwrap();
    let taken = store.take_over(&from, &mut told_progress).unwrap();
    assert_eq!(taken.blobs, 1);
    assert_eq!(taken.missing_blobs.len(), 1);
    assert_eq!(taken.damaged.len(), 1, "{:?}", taken.damaged);
    let damaged = store::Records::get(&store, &stream("work", "messages"), &key("m07"));
    assert!(matches!(damaged, Err(StoreError::RecordDamaged { .. })));
}

#[test]
fn nothing_moves_to_an_owner_who_has_something_or_with_what_postgresql_cannot_keep() {
    let node = tempfile::tempdir().unwrap();
    let Some(owner) = fresh_owner(node.path()) else {
        return;
    };
    let (folder, from) = lived_in();
    drop(from);
    // As an earlier release took it.
    let database = rusqlite::Connection::open(folder.path().join("records.db")).unwrap();
    let sql = "UPDATE connections SET display_name = 'a' || char(0) || 'b'";
    database.execute(sql, []).unwrap();
    drop(database);
    let from = open(folder.path());
    let store = PostgresStore::open(owner).unwrap();
    let refused = store.take_over(&from, &mut told_progress).unwrap_err();
    assert!(
        matches!(refused, StoreError::NotMovable { .. }),
        "{refused}"
    );
    // Whatever was sent before is not there.
    assert!(store.declarations().is_empty() && store.grants().unwrap().is_empty());
    for id in ["work", "books"] {
        from.rename_connection(&connection(id), "Work").unwrap();
    }
    store.take_over(&from, &mut told_progress).unwrap();
    let refused = store.take_over(&from, &mut told_progress).unwrap_err();
    assert!(
        matches!(refused, StoreError::OwnerNotEmpty { .. }),
        "{refused}"
    );
    assert_eq!(answers(&store), answers(&from));
}

#[test]
fn the_key_of_a_directory_stays_while_the_secret_of_the_nodes_is_replaced() {
    let node = tempfile::tempdir().unwrap();
    let Some(mut owner) = fresh_owner(node.path()) else {
        return;
    };
    let (_folder, from) = lived_in();
    drop(moved(&from, &owner));
    let mut open_with = |secret: [u8; 32], other_secret| {
        (owner.secret, owner.other_secret) = (secret, other_secret);
        PostgresStore::open(owner.clone())
    };
    let key = from.sealing_key().unwrap();
    for (secret, other) in [
        ([7; 32], Some([8; 32])),
        ([8; 32], Some([7; 32])),
        ([8; 32], None),
    ] {
        assert_eq!(open_with(secret, other).unwrap().sealing_key(), key);
    }
    let refused = open_with([7; 32], None).err().unwrap();
    assert!(
        matches!(refused, StoreError::DatabaseRefused { .. }),
        "{refused}"
    );
}
