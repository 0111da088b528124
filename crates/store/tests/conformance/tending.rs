//! An index that is worked off in the background: no read waits for what takes long, and what is queued gets done.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use contract::declaration::Declaration;
use contract::scalar::Scalar;
use serde_json::json;
use store::records::{Direction, OrderBy, PageRequest};
use store::search::{AggregateRequest, Filter, Metric, Scope, Search as _, Test};
use store::stop::Stop;
use store::{Store, StoreError};

use crate::fixture::{
    MAIL, Work, add_mail, field, filtered, found_sorted, key, message_with, messages,
    on_every_directory, on_every_reopened, open, request, scope, stream,
};

/// More than is replayed in two pieces, so that there is something in between.
const MANY: usize = 20_500;

/// Opens the store of a directory.
type Open<'a> = &'a dyn Fn() -> Box<dyn Store>;

fn fill(open: Open<'_>) {
    let store = open();
    add_mail(&*store, "work");
    for part in 0..5 {
        let size = MANY / 5;
        let batch = (part * size..(part + 1) * size).map(|at| {
            let (size, pages) = (at % 100, at % 2);
            let members =
                format!("\"subject\":\"everyword\",\"size_bytes\":{size},\"pages\":{pages}");
            message_with(&format!("m{at:05}"), &members)
        });
        store.put(batch.collect());
    }
}

/// The store after a start without an index, of which the worker has done so many pieces.
fn begun(path: &Path, open: Open<'_>, pieces: u64) -> Box<dyn Store> {
    let index = path.join("index");
    if index.exists() {
        fs::remove_dir_all(index).unwrap();
    }
    let store = open();
    tend(&*store, pieces);
    store
}

/// Lets the worker do so many pieces. How often it looks whether it has to stop is each store's own matter.
fn tend(store: &dyn Store, pieces: u64) {
    for looks in 0.. {
        let stopped = Stop::after(looks).during(|| store.tend_index());
        assert!(matches!(stopped, Err(StoreError::Stopped)), "{stopped:?}");
        if store.index_status().unwrap().taken >= pieces * 10_000 {
            return;
        }
    }
}

fn sized(size: i64) -> Scope {
    let test = Test::Equals(Scalar::Integer(size));
    filtered(messages("work"), "size_bytes", test)
}

fn page(limit: usize) -> PageRequest {
    PageRequest::first(OrderBy::Key, Direction::Ascending, limit)
}

fn count(scope: Scope) -> AggregateRequest {
    AggregateRequest {
        scope,
        metric: Metric::Count,
        grouping: None,
    }
}

fn is_building<T: std::fmt::Debug>(outcome: &store::Result<T>) -> bool {
    matches!(outcome, Err(StoreError::IndexBuilding { .. }))
}

// TR-32: an absent index is built in the background, and neither pages nor fetches nor searches wait for it.
#[test]
fn while_the_index_is_built_nothing_waits_for_it() {
    on_every_directory(|path, open| {
        fill(open);
        let store = begun(path, open, 0);
        let status = store.index_status().unwrap();
        assert!(status.building && status.taken == 0);
        assert!(is_building(
            &store.search(&request("everyword", vec![messages("work")]))
        ));
        // Pages come from the records, with conditions and without.
        let keys = |scope: &Scope, limit| {
            let found = store.select(scope, &page(limit)).unwrap();
            found
                .records
                .iter()
                .map(|one| one.key.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(keys(&messages("work"), 2), ["m00000", "m00001"]);
        assert_eq!(keys(&sized(7), 2), ["m00007", "m00107"]);
        assert!(
            store
                .get(&stream("work", "messages"), &key("m00042"))
                .unwrap()
                .is_some()
        );
        // What must be exact says that it cannot be told yet, but for what needs no index.
        assert!(is_building(&store.aggregate(&count(sized(7)))));
        assert!(is_building(&store.extent(&sized(7), 1)));
        assert_eq!(
            store.aggregate(&count(messages("work"))).unwrap().matched,
            MANY as u64
        );
        assert!(is_building(&store.select(&sized(100), &page(1))));
        // Writes do not wait either, and nothing of them is lost.
        store.put(vec![message_with("new", "\"subject\":\"everyword new\"")]);
        drop(store);

        let store = begun(path, open, 1);
        let answer = store
            .search(&request("everyword", vec![messages("work")]))
            .unwrap();
        let built = answer.building.unwrap();
        assert_eq!((built.indexed, built.written), (10_000, MANY as u64 + 1));
        assert!(
            answer
                .total
                .is_some_and(|total| total > 0 && total < MANY as u64)
        );
        assert_eq!(store.index_status().unwrap().taken, 10_000);

        store.tend_index().unwrap();
        assert!(!store.index_status().unwrap().building);
        let answer = store
            .search(&request("everyword", vec![messages("work")]))
            .unwrap();
        assert_eq!(
            (answer.building, answer.total),
            (None, Some(MANY as u64 + 1))
        );
        assert_eq!(store.aggregate(&count(sized(7))).unwrap().matched, 205);
        assert_eq!(store.found_sorted("new"), ["new"]);
    });
}

// TR-32: an index of an earlier format is made anew like an absent one.
#[test]
fn an_index_of_an_earlier_format_is_made_anew_in_the_background() {
    on_every_directory(|path, open| {
        fill(open);
        open().settle_index().unwrap();
        let metas: Vec<_> = fs::read_dir(path.join("index"))
            .unwrap()
            .map(|entry| entry.unwrap().path().join("meta.json"))
            .filter(|meta| meta.is_file())
            .collect();
        assert!(!metas.is_empty());
        for meta in metas {
            let text = fs::read_to_string(&meta).unwrap();
            let earlier = text.replace("\\\"format\\\":6", "\\\"format\\\":5");
            assert_ne!(earlier, text);
            fs::write(meta, earlier).unwrap();
        }
        let store = open();
        tend(&*store, 1);
        let asked = request("everyword", vec![messages("work")]);
        assert!(store.search(&asked).unwrap().building.is_some());
        let page = store.select(&sized(7), &page(1)).unwrap();
        assert_eq!(page.records[0].key.to_string(), "m00007");
        store.tend_index().unwrap();
        let answer = store.search(&asked).unwrap();
        assert_eq!((answer.building, answer.total), (None, Some(MANY as u64)));
    });
}

// GM-02: while the column of an exception is being filled, no record passes for want of a value.
#[test]
fn an_exception_holds_while_its_column_is_filled() {
    on_every_reopened(|open| {
        fill(open);
        let store = open();
        store.tend_index().unwrap();
        let mut document: serde_json::Value = serde_json::from_str(MAIL).unwrap();
        document["declaration_version"] = json!("2");
        document["streams"][0]["schema"]["properties"]["pages"] = json!({"type": "integer"});
        store
            .declare(&Declaration::parse(&document.to_string()).unwrap())
            .unwrap();
        let mut scope = messages("work");
        scope.rules.except.push(Filter {
            field: field("pages"),
            test: Test::Equals(Scalar::Integer(1)),
        });
        let asked = request("everyword", vec![scope.clone()]);
        let answer = store.search(&asked).unwrap();
        assert_eq!((answer.hits.len(), answer.total), (0, Some(0)));
        assert_eq!(answer.rebuilding, [stream("work", "messages")]);
        assert!(is_building(&store.aggregate(&count(scope.clone()))));
        assert!(is_building(&store.extent(&scope, 1)));
        let page = store.select(&scope, &page(2)).unwrap();
        let keys = page.records.iter().map(|one| one.key.to_string());
        assert_eq!(keys.collect::<Vec<_>>(), ["m00000", "m00002"]);

        store.tend_index().unwrap();
        let answer = store.search(&asked).unwrap();
        assert_eq!(answer.total, Some(MANY as u64 / 2));
        assert_eq!(
            store.aggregate(&count(scope)).unwrap().matched,
            MANY as u64 / 2
        );
    });
}

// TR-31: what a declaration queued is carried on after a restart, whoever sent it.
#[test]
fn what_is_queued_is_worked_off_after_a_restart() {
    on_every_reopened(|open| {
        let store = open();
        add_mail(&*store, "work");
        let members = r#""from_email":"anna@example.org","subject":"hello""#;
        store.put(vec![message_with("m1", members)]);
        store.settle_index().unwrap();
        let mut document: serde_json::Value = serde_json::from_str(MAIL).unwrap();
        document["declaration_version"] = json!("2");
        document["streams"][0]["query"]["search"]["lexical_fields"] =
            json!(["subject", "body", "from_email"]);
        let later = Declaration::parse(&document.to_string()).unwrap();
        store.declare(&later).unwrap();
        drop(store);

        let store = open();
        assert_eq!(store.index_status().unwrap().rebuilding, 1);
        store.tend_index().unwrap();
        assert_eq!(store.index_status().unwrap().rebuilding, 0);
        let wide = scope("work", "messages", &["subject", "body", "from_email"]);
        assert_eq!(found_sorted(&*store, "anna", vec![wide]), ["m1"]);
    });
}

// What many small writes leave is merged while nothing is written, and everything is still found.
#[test]
fn small_segments_are_merged_while_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    add_mail(&store, "work");
    let found = || {
        let asked = request("everyword", vec![messages("work")]);
        store.search(&asked).unwrap().total
    };
    for at in 0..5 {
        store.put(vec![message_with(
            &format!("m{at}"),
            "\"subject\":\"everyword\"",
        )]);
        assert_eq!(found(), Some(at + 1));
    }
    let segments = || {
        let mut folders = fs::read_dir(folder.path().join("index")).unwrap();
        let index = folders.next().unwrap().unwrap().path();
        let meta = fs::read_to_string(index.join("meta.json")).unwrap();
        let meta: serde_json::Value = serde_json::from_str(&meta).unwrap();
        meta["segments"].as_array().unwrap().len()
    };
    assert_eq!(segments(), 5);
    // Something was written since it last looked.
    store.tend_index().unwrap();
    assert_eq!(segments(), 5);
    let begin = Instant::now();
    while segments() > 1 && begin.elapsed() < Duration::from_mins(1) {
        store.tend_index().unwrap();
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!((segments(), found()), (1, Some(5)));
}
