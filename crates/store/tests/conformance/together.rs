//! Several threads at once: nothing acknowledged is lost, nothing removed comes back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use contract::declaration::Declaration;
use contract::json::RecordBody;
use contract::scalar::Scalar;
use serde_json::json;
use store::Store;
use store::search::{Metric, Test};

use crate::fixture::{
    MAIL, Work, add_mail, all, backup, compute, connection, field, filtered, found, message_with,
    messages, on_every_backend, on_every_mailbox, on_every_reopened, request, stream, unpacked,
    write,
};

/// Asserts that the index holds exactly the sizes and words the records have.
fn assert_agrees(store: &dyn Store, id: &str) {
    let records = all(store, &stream(id, "messages"));
    let mut total = 0;
    for record in &records {
        let body = RecordBody::parse(record.body.clone()).unwrap();
        total += body.get("size_bytes").unwrap().parse::<i128>().unwrap();
    }
    let answer = compute(
        store,
        filtered(
            messages(id),
            "size_bytes",
            Test::Range(
                std::ops::Bound::Included(Scalar::Integer(0)),
                std::ops::Bound::Unbounded,
            ),
        ),
        Metric::Sum(field("size_bytes")),
        None,
    );
    assert_eq!(answer.matched, records.len() as u64);
    assert_eq!(answer.value, store::search::Value::Integer(total));
    let every = found(store, "everyword", vec![messages(id)]);
    assert_eq!(every.len(), records.len().min(1_000));
}

fn sized(at: usize, size: usize) -> store::records::Change {
    message_with(
        &format!("m{at}"),
        &format!(
            "\"size_bytes\":{size},\"subject\":\"everyword s{size}\",\"from_email\":\"s{size}\""
        ),
    )
}

#[test]
fn writers_and_readers_do_not_disturb_each_other() {
    on_every_backend(|store| {
        for id in ["one", "two"] {
            add_mail(store, id);
        }
        let done = AtomicBool::new(false);
        thread::scope(|threads| {
            let writers = ["one", "two"].map(|id| {
                threads.spawn(move || {
                    for round in 0..30 {
                        let batch = (0..20).map(|at| sized(at + round % 7, round));
                        write(store, id, batch.collect());
                        // Whoever wrote finds it at once.
                        let hits = found(store, &format!("everyword s{round}"), vec![messages(id)]);
                        assert_eq!(hits.len(), 20, "{id} {round}");
                    }
                })
            });
            let reader = threads.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    let answer = store.search(&request(
                        "everyword",
                        vec![messages("one"), messages("two")],
                    ));
                    assert!(answer.unwrap().hits.len() <= 52);
                }
            });
            let outcomes = writers.map(thread::ScopedJoinHandle::join);
            done.store(true, Ordering::Release);
            reader.join().unwrap();
            for outcome in outcomes {
                outcome.unwrap();
            }
        });
        assert_agrees(store, "one");
        assert_agrees(store, "two");
    });
}

/// The mail declaration of a later version, in which one more field is lexical.
fn later(version: usize) -> Declaration {
    let mut document: serde_json::Value = serde_json::from_str(MAIL).unwrap();
    document["declaration_version"] = json!(version.to_string());
    let fields = if version.is_multiple_of(2) {
        json!(["subject", "body", "from_email"])
    } else {
        json!(["subject", "body"])
    };
    document["streams"][0]["query"]["search"]["lexical_fields"] = fields;
    Declaration::parse(&document.to_string()).unwrap()
}

#[test]
fn updates_while_the_index_is_rebuilt_for_a_new_declaration_are_not_undone() {
    on_every_mailbox(|store| {
        store.put((0..800).map(|at| sized(at, 0)).collect());
        store.settle_index().unwrap();
        thread::scope(|threads| {
            let writer = threads.spawn(|| {
                for round in 1..40 {
                    let batch = (0..800).step_by(40).map(|at| sized(at + round, round));
                    store.put(batch.collect());
                }
            });
            for version in 2..6 {
                store.declare(&later(version)).unwrap();
                store.settle_index().unwrap();
            }
            writer.join().unwrap();
        });
        store.settle_index().unwrap();
        assert_agrees(store, "work");
    });
}

#[test]
fn records_of_a_new_connection_are_indexed_although_searches_go_on() {
    on_every_backend(|store| {
        add_mail(store, "base");
        write(store, "base", (0..20).map(|at| sized(at, 1)).collect());
        let done = AtomicBool::new(false);
        thread::scope(|threads| {
            let searcher = threads.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    store
                        .search(&request("everyword", vec![messages("base")]))
                        .unwrap();
                }
            });
            for round in 0..40 {
                let id = format!("c{round}");
                add_mail(store, &id);
                write(store, &id, vec![sized(0, round)]);
            }
            done.store(true, Ordering::Release);
            searcher.join().unwrap();
        });
        for round in 0..40 {
            assert_agrees(store, &format!("c{round}"));
        }
    });
}

/// Records of streams that are not there, in what the store has.
fn orphans(store: &dyn Store) -> i64 {
    let folder = unpacked(&backup(store));
    let database = rusqlite::Connection::open(folder.path().join("records.db")).unwrap();
    database
        .query_row(
            "SELECT count(*) FROM records WHERE stream_id NOT IN (SELECT id FROM streams)",
            [],
            |row| row.get(0),
        )
        .unwrap()
}

#[test]
fn a_write_that_races_with_a_removal_leaves_no_orphans() {
    on_every_backend(|store| {
        for round in 0..8 {
            let id = format!("c{round}");
            add_mail(store, &id);
            thread::scope(|threads| {
                let writer = threads.spawn(|| {
                    let mut at = 0;
                    while store.write(&connection(&id), vec![sized(at, at)]).is_ok() {
                        at += 1;
                    }
                });
                thread::sleep(std::time::Duration::from_millis(15));
                store.remove_connection(&connection(&id)).unwrap();
                writer.join().unwrap();
            });
            assert_eq!(orphans(store), 0, "round {round}");
        }
    });
}

#[test]
fn a_rebuild_while_writes_and_searches_go_on_ends_with_a_whole_index() {
    on_every_reopened(|open| {
        let store = open();
        add_mail(&*store, "work");
        store.put((0..300).map(|at| sized(at, 0)).collect());
        let done = AtomicBool::new(false);
        thread::scope(|threads| {
            let writer = threads.spawn(|| {
                let mut round = 0;
                while !done.load(Ordering::Acquire) {
                    round += 1;
                    let batch = (0..300).step_by(30).map(|at| sized(at + round % 30, round));
                    store.put(batch.collect());
                }
            });
            let searcher = threads.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    let answer = store.search(&request("everyword", vec![messages("work")]));
                    assert_eq!(answer.unwrap().total, Some(300));
                }
            });
            let rebuilt: Vec<_> = (0..12).map(|_| store.rebuild_index(&mut |_| {})).collect();
            done.store(true, Ordering::Release);
            writer.join().unwrap();
            searcher.join().unwrap();
            for outcome in rebuilt {
                outcome.unwrap();
            }
        });
        assert_agrees(&*store, "work");
        store.settle_index().unwrap();
        drop(store);
        assert_agrees(&*open(), "work");
    });
}
