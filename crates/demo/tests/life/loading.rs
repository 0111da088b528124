//! Bringing the life into a store, once.

use contract::declaration::Declaration;
use contract::id::ConnectionId;
use contract::key::RecordKey;
use demo::{Holding, holding, load};
use store::StreamRef;
use store::catalog::NewConnection;
use store::records::{Change, ChangeOp};

use crate::world::{life, open, stream, world};

#[test]
fn every_record_is_accepted_and_kept() {
    let world = world();
    let kept: u64 = world
        .store
        .stream_stats()
        .unwrap()
        .iter()
        .map(|one| one.records)
        .sum();
    // Loading fails on the first line that is refused.
    assert_eq!(kept, life().records());
    assert_eq!(world.store.connections().len(), life().sources.len());
    assert_eq!(holding(world.store.as_ref()).unwrap(), Holding::Everything);
}

#[test]
fn a_load_that_was_interrupted_is_taken_up_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    assert_eq!(holding(store.as_ref()).unwrap(), Holding::Nothing);
    let mut life = life().clone();
    // Small, and still with a beginning and an end.
    life.sources.truncate(1);
    life.sources[0].lines.clear();
    load(store.as_ref(), &life, &mut |_| {}).unwrap();
    assert_eq!(holding(store.as_ref()).unwrap(), Holding::Everything);
    let notes = StreamRef::new(&ConnectionId::parse("notes").unwrap(), &stream("notes"));
    let last = Change {
        stream: stream("notes"),
        key: RecordKey::single("Who is who.md").unwrap(),
        emitted_at: "2026-11-01T00:00:00Z".to_owned(),
        op: ChangeOp::Delete,
    };
    store.write(&notes.connection, vec![last]).unwrap();
    assert_eq!(holding(store.as_ref()).unwrap(), Holding::Part);
    let mut heard = Vec::new();
    load(store.as_ref(), &life, &mut |records| heard.push(records)).unwrap();
    assert_eq!(holding(store.as_ref()).unwrap(), Holding::Everything);
    assert_eq!(heard.last(), Some(&life.records()));
}

#[test]
fn a_store_with_anything_else_in_it_is_known_as_such() {
    let life = life();
    let declaration = Declaration::parse(life.about.declaration).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    store.declare(&declaration).unwrap();
    // The very first step of a load that was interrupted.
    assert_eq!(holding(store.as_ref()).unwrap(), Holding::Nothing);
    let own = NewConnection {
        connector: declaration.connector_key().clone(),
        name: "My own notes".to_owned(),
        id: Some(ConnectionId::parse("notes").unwrap()),
    };
    store.add_connection(own).unwrap();
    assert_eq!(holding(store.as_ref()).unwrap(), Holding::SomethingElse);

    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let mail = Declaration::parse(life.sources[0].declaration).unwrap();
    store.declare(&mail).unwrap();
    assert_eq!(holding(store.as_ref()).unwrap(), Holding::SomethingElse);
}
