//! Copies of an index: what a new node takes from one, what it leaves, and that an erasure waits for them.

use contract::id::ConnectionId;

use super::super::PostgresOptions;
use super::super::tests::{found, note, options, own_notes, two_nodes, url};
use super::*;
use crate::{Catalog as _, Records as _, Search as _};

/// Up to which version a node that is new has the index, before it replays anything.
fn copied(options: &PostgresOptions, name: &str) -> (PostgresStore, u64) {
    let mut options = options.clone();
    options.data_dir = options.data_dir.with_file_name(name);
    options.node.push_str(name);
    let store = PostgresStore::open(options).unwrap();
    let indexed = store.index_status().unwrap().indexed;
    (store, indexed)
}

fn expire_lease(store: &PostgresStore) {
    let sql = "UPDATE leases SET until = 0 WHERE name = $1";
    let expired = store
        .pool
        .transact(|tx| tx.execute(sql, &[&store.lease_name()]));
    assert_eq!(expired.unwrap(), 1);
}

fn names(store: &PostgresStore) -> Vec<String> {
    let listed = store.objects.list("snapshots/").unwrap().into_iter();
    listed.map(|listed| listed.name).collect()
}

/// Two nodes and a copy of their index with three versions: `a` is there, `b` was deleted.
fn with_copy() -> Option<(PostgresOptions, [PostgresStore; 2], ConnectionId)> {
    let options = options(&url()?);
    let nodes = two_nodes(&options);
    let own = own_notes(&nodes[0]);
    for (id, text) in [("a", "kept word"), ("b", "lost word")] {
        nodes[0].write(&own, vec![note(id, text)]).unwrap();
    }
    let mut gone = note("b", "");
    gone.op = crate::records::ChangeOp::Delete;
    nodes[0].write(&own, vec![gone]).unwrap();
    assert!(nodes[0].keep_snapshot().unwrap());
    Some((options, nodes, own))
}

#[test]
fn a_new_node_starts_from_a_copy_replays_the_rest_and_finds_everything() {
    let Some((options, [one, _], own)) = with_copy() else {
        return;
    };
    one.write(&own, vec![note("c", "later word")]).unwrap();
    let (new, indexed) = copied(&options, "new");
    assert_eq!(indexed, 3);
    let mut all = found(&new, "word");
    all.sort();
    assert_eq!(all, ["a", "c"]);
    // It is an index like any other: it takes changes, and what it lets go is removed.
    new.write(&own, vec![note("a", "changed")]).unwrap();
    assert!(found(&new, "kept").is_empty());
    new.settle_index().unwrap();
    assert_eq!(found(&new, "changed"), ["a"]);
    // One that has an index goes on with it.
    drop(new);
    let (again, indexed) = copied(&options, "new");
    assert_eq!(indexed, 5);
    assert_eq!(found(&again, "changed"), ["a"]);
}

#[test]
fn a_copy_of_another_history_or_with_files_lost_or_changed_is_left_and_the_records_are_replayed() {
    let Some((options, [one, _], _)) = with_copy() else {
        return;
    };
    let sql = |sql: &str| {
        let changed = one.pool.transact(|tx| tx.execute(sql, &[&one.owner]));
        assert_eq!(changed.unwrap(), 1, "{sql}");
    };
    let is_left = |what: &str| {
        let (new, indexed) = copied(&options, what);
        assert_eq!(indexed, 0, "{what}");
        assert_eq!(found(&new, "word"), ["a"], "{what}");
    };
    let marks =
        |mark: &str| format!("UPDATE marks SET mark = {mark} WHERE owner_id = $1 AND version = 3");
    sql(&marks("'other'::bytea || mark"));
    is_left("history");
    sql(&marks("substr(mark, 6)"));
    sql("UPDATE snapshots SET format = format + 1 WHERE owner_id = $1");
    is_left("format");
    sql("UPDATE snapshots SET format = format - 1 WHERE owner_id = $1");
    sql("UPDATE owners SET purged_to = 4 WHERE id = $1");
    is_left("purged");
    sql("UPDATE owners SET purged_to = 0 WHERE id = $1");
    assert_eq!(copied(&options, "whole").1, 3);
    let file = one.objects.place(&names(&one).pop().unwrap());
    let bytes = fs::read(&file).unwrap();
    let mut changed = bytes.clone();
    changed[0] ^= 1;
    fs::write(&file, changed).unwrap();
    is_left("changed");
    fs::remove_file(&file).unwrap();
    is_left("lost");
    fs::write(&file, bytes).unwrap();
    sql("UPDATE snapshots SET manifest = 'broken' WHERE owner_id = $1");
    is_left("manifest");
}

#[test]
fn what_was_erased_is_in_no_copy_once_the_erasure_is_finished() {
    let Some((options, [one, two], own)) = with_copy() else {
        return;
    };
    let state = || {
        let sql = "SELECT erasures_begun, erasures_finished FROM owners WHERE id = $1";
        let row = one.pool.query_one(sql, &[&one.owner]);
        let row = row.unwrap();
        let (begun, finished): (i64, i64) = (row.get(0).unwrap(), row.get(1).unwrap());
        begun - finished
    };
    // One that another node is about to write may hold it, until that node has lost its lease.
    let writing = two.pool.transact(|tx| {
        let sql = "INSERT INTO snapshots (owner_id, id, format, version, mark, manifest, epoch)
             SELECT $1, 'other', 1, 0, '', '', epoch FROM leases WHERE name = $2";
        tx.execute(sql, &[&two.owner, &two.lease_name()])
    });
    assert_eq!(writing.unwrap(), 1);
    assert!(!names(&one).is_empty());
    one.remove_connection(&own).unwrap();
    assert!(names(&one).is_empty(), "{:?}", names(&one));
    two.finish_erasing().unwrap();
    assert_eq!(state(), 1);
    expire_lease(&one);
    two.finish_erasing().unwrap();
    assert_eq!(state(), 0);
    // The next copy holds nothing of it, and so it may stay.
    own_notes(&one);
    one.write(&own, vec![note("d", "new word")]).unwrap();
    assert!(one.keep_snapshot().unwrap());
    one.finish_erasing().unwrap();
    assert_eq!(state(), 0);
    let (new, indexed) = copied(&options, "new");
    assert!(indexed > 0);
    assert_eq!(found(&new, "word"), ["d"]);
}

#[test]
fn one_node_at_a_time_makes_copies_and_who_lost_the_lease_keeps_none() {
    let Some((options, [one, two], own)) = with_copy() else {
        return;
    };
    let first = names(&one);
    assert!(!two.keep_snapshot().unwrap(), "the other has the lease");
    let epoch = one.begin_snapshot("late").unwrap().unwrap();
    expire_lease(&one);
    one.write(&own, vec![note("c", "later word")]).unwrap();
    assert!(two.keep_snapshot().unwrap());
    assert!(!one.write_snapshot("late", epoch).unwrap());
    one.remove_snapshot("late").unwrap();
    let second = names(&one);
    assert!(!second.is_empty() && second.iter().all(|name| !first.contains(name)));
    assert_eq!(copied(&options, "new").1, 4);
    // It is not due again so soon.
    two.keep_due_snapshot().unwrap();
    assert_eq!(names(&one), second);
    // A node that does not know that erasures wait for copies must not be there.
    let old = "UPDATE nodes SET format = 3 WHERE id = $1";
    let aged = two
        .pool
        .transact(|tx| tx.execute(old, &[&one.options.node]));
    assert_eq!(aged.unwrap(), 1);
    assert!(!two.keep_snapshot().unwrap());
}
