//! Nodes that bind, purge and sweep the same blob at the same time.

use std::thread;

use super::super::pool::Param;
use super::super::tests::{entries, note, options, own_notes, two_nodes, url};
use super::*;
use crate::inspection::Depth;
use crate::records::ChangeOp;
use crate::{Backup as _, Inspect as _, Nodes as _, Records as _, Search as _};

fn key(id: &str) -> RecordKey {
    RecordKey::single(id).unwrap()
}

fn put(store: &PostgresStore, id: &str, mut bytes: &[u8]) -> BlobId {
    let blob = store.put_blob(&entries(), &key(id), "text/plain", &mut bytes);
    blob.unwrap().id
}

/// Two nodes, and a blob of a record that was deleted.
fn with_deleted() -> Option<([PostgresStore; 2], BlobId)> {
    let nodes = two_nodes(&options(&url()?));
    let own = own_notes(&nodes[0]);
    nodes[0].write(&own, vec![note("a", "word")]).unwrap();
    let id = put(&nodes[0], "a", b"bytes");
    let mut gone = note("a", "");
    gone.op = ChangeOp::Delete;
    nodes[0].write(&own, vec![gone]).unwrap();
    // Both are as far as the purge wants them.
    for node in &nodes {
        node.settle_index().unwrap();
        node.check_ready().unwrap();
    }
    Some((nodes, id))
}

fn content(store: &PostgresStore, id: &BlobId) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    match store.open_blob(id) {
        Ok(mut opened) => opened.read_to_end(&mut bytes).unwrap(),
        Err(StoreError::UnknownBlob(_)) => return None,
        Err(error) => panic!("{error}"),
    };
    Some(bytes)
}

fn count(store: &PostgresStore, sql: &str, params: &[&dyn Param]) -> i64 {
    let row = store.pool.query_one(sql, params).unwrap();
    row.get(0).unwrap()
}

#[test]
fn a_blob_that_is_bound_while_a_purge_waits_for_it_keeps_its_bytes() {
    let Some(([one, two], id)) = with_deleted() else {
        return;
    };
    thread::scope(|scope| {
        let purging = one.pool.transact(|tx| {
            let received = one.objects.receive(&mut &b"bytes"[..])?;
            let bound = one.bind(tx, &entries(), &key("b"), (&received, "text/plain"))?;
            assert!(bound.is_some());
            let me: i64 = tx.query_one("SELECT pg_backend_pid()::bigint", &[])?.get(0)?;
            let purging = scope.spawn(|| two.purge());
            let waiting = "SELECT count(*) FROM pg_stat_activity WHERE $1::bigint::int = ANY(pg_blocking_pids(pid))";
            while count(&one, waiting, &[&me]) == 0 {
                assert!(!purging.is_finished(), "the purge waits for the blob");
                thread::yield_now();
            }
            Ok(purging)
        });
        let purged = purging.unwrap().join().unwrap().unwrap();
        assert_eq!((purged.tombstones, purged.blobs), (1, 0));
    });
    assert_eq!(content(&one, &id).unwrap(), b"bytes");
    // Also one that an earlier release has marked so.
    let mark = "UPDATE blobs SET state = 'deleting' WHERE owner_id = $1";
    let marked = one.pool.transact(|tx| tx.execute(mark, &[&one.owner]));
    assert_eq!(marked.unwrap(), 1);
    two.purge().unwrap();
    assert_eq!(content(&one, &id).unwrap(), b"bytes");
    assert!(one.missing_blobs().unwrap().is_empty());
    let kept = "SELECT count(*) FROM blobs WHERE owner_id = $1 AND state = 'kept'";
    assert_eq!(count(&one, kept, &[&one.owner]), 1);
}

#[test]
fn bytes_that_are_swept_before_they_are_bound_are_named_again() {
    let Some(([one, two], id)) = with_deleted() else {
        return;
    };
    let received = one.objects.receive(&mut &b"bytes"[..]).unwrap();
    one.name(&received).unwrap();
    two.purge().unwrap();
    let bind = |tx: &Tx<'_>| one.bind(tx, &entries(), &key("b"), (&received, "text/plain"));
    assert_eq!(one.pool.transact_if(bind).unwrap(), None);
    one.name(&received).unwrap();
    assert!(one.pool.transact_if(bind).unwrap().is_some());
    assert_eq!(content(&two, &id).unwrap(), b"bytes");
}

/// The node that erased them died in between.
#[test]
fn marked_blobs_keep_an_erasure_open_until_any_node_has_removed_their_bytes() {
    let Some(([one, two], id)) = with_deleted() else {
        return;
    };
    one.transact_locked(|tx, _| one.purge_rows(tx, i64::MAX))
        .unwrap();
    let traces = || one.inspect(Depth::Glance).unwrap().traces_left;
    one.finish_erasing().unwrap();
    two.finish_erasing().unwrap();
    assert!(traces() && content(&one, &id).is_some());
    let shared = one.inspect(Depth::Glance).unwrap().traces_in;
    assert_eq!((shared.blobs, shared.copies), (1, 0));
    two.tend_node().unwrap();
    assert_eq!(content(&one, &id), None);
    assert!(!traces());
}
