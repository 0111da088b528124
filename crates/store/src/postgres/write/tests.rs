//! Batches that are written together, against a real server where `TEST_POSTGRES` names one.

use contract::id::StreamName;

use super::super::tests::{found, note, options, own_notes, url};
use super::*;

fn batch(connection: &str, changes: Vec<Change>) -> Batch {
    Batch {
        connection: ConnectionId::parse(connection).unwrap(),
        changes,
    }
}

fn with_notes(url: &str) -> PostgresStore {
    let store = PostgresStore::open(options(url)).unwrap();
    own_notes(&store);
    store
}

fn transactions(store: &PostgresStore) -> i64 {
    let sql = "SELECT count(*) FROM marks WHERE owner_id = $1";
    let row = store.pool.query_one(sql, &[&store.owner]).unwrap();
    row.get(0).unwrap()
}

#[test]
fn batches_written_together_are_one_transaction_and_each_has_an_outcome_of_its_own() {
    let Some(url) = url() else { return };
    let store = with_notes(&url);
    let before = transactions(&store);
    let mut elsewhere = note("a", "lost");
    elsewhere.stream = StreamName::parse("nowhere").unwrap();
    let outcomes = store.write_together(vec![
        batch("own", vec![note("a", "first"), note("b", "first")]),
        batch("other", vec![note("a", "lost")]),
        batch("own", vec![note("a", "second"), elsewhere]),
        batch("own", vec![note("b", "first"), note("a", "third")]),
    ]);
    let [first, unknown, nowhere, last] = outcomes.try_into().unwrap();
    assert_eq!(first.unwrap(), [Applied::Added, Applied::Added]);
    assert!(
        matches!(unknown, Err(StoreError::UnknownConnection(_))),
        "{unknown:?}"
    );
    assert!(
        matches!(nowhere, Err(StoreError::UnknownStream { .. })),
        "{nowhere:?}"
    );
    assert_eq!(last.unwrap(), [Applied::Unchanged, Applied::Updated]);
    assert_eq!(transactions(&store) - before, 1);
    assert_eq!(found(&store, "third"), ["a"]);
    assert_eq!(found(&store, "first"), ["b"]);
}

#[test]
fn what_the_database_refuses_of_one_batch_is_no_error_of_the_others() {
    let Some(url) = url() else { return };
    let store = with_notes(&url);
    let mut refused = note("b", "refused");
    refused.emitted_at = "\0".to_owned();
    let outcomes = store.write_together(vec![
        batch("own", vec![note("a", "kept")]),
        batch("own", vec![refused]),
        batch("own", vec![note("c", "kept")]),
    ]);
    let [first, refused, last] = outcomes.try_into().unwrap();
    assert_eq!(first.unwrap(), [Applied::Added]);
    assert!(
        matches!(refused, Err(StoreError::Database { .. })),
        "{refused:?}"
    );
    assert_eq!(last.unwrap(), [Applied::Added]);
    assert_eq!(found(&store, "kept"), ["a", "c"]);
}
