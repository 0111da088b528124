//! The index is derived: whatever happens to it, a reopened store finds what the records say.

use std::fs;
use std::path::{Path, PathBuf};

use contract::scalar::Scalar;
use store::records::Change;
use store::search::{Metric, Search, Test, Value};
use store::{EmbeddedStore, Records};

use crate::fixture::{
    Work, add_mail, compute, delete, field, filtered, mailbox, message_with, messages, open,
};

fn kept(id: &str, word: &str, size: u32) -> Change {
    message_with(
        id,
        &format!("\"subject\":\"kept {word}\",\"size_bytes\":{size},\"seen\":true"),
    )
}

/// A settled store with two segments, an update and a deletion, and closed again.
fn filled(path: &Path) {
    let store = open(path);
    add_mail(&store, "work");
    store.put(vec![
        kept("a", "old", 1),
        kept("b", "same", 2),
        kept("c", "gone", 4),
    ]);
    store.settle_index().unwrap();
    store.put(vec![kept("a", "new", 8), delete("messages", "c")]);
    store.settle_index().unwrap();
}

/// Asserts that searches and aggregates say what the records of [`filled`] say.
fn assert_whole(store: &EmbeddedStore) {
    assert_eq!(store.found_sorted("kept"), ["a", "b"]);
    assert_eq!(store.found("new"), ["a"]);
    for gone in ["old", "gone"] {
        assert!(store.found(gone).is_empty(), "{gone}");
    }
    assert_eq!(sum(store), (2, Value::Integer(10)));
}

fn sum(store: &EmbeddedStore) -> (u64, Value) {
    let seen = Test::Equals(Scalar::Boolean(true));
    let answer = compute(
        store,
        filtered(messages("work"), "seen", seen),
        Metric::Sum(field("size_bytes")),
        None,
    );
    (answer.matched, answer.value)
}

/// Asserts that the store repairs itself after something happened to its index.
fn assert_repaired(damage: impl Fn(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    damage(&folder.path().join("index/1"));
    let store = open(folder.path());
    assert_whole(&store);
    store.put(vec![kept("d", "later", 100)]);
    assert_eq!(store.found("later"), ["d"]);
    store.settle_index().unwrap();
    drop(store);
    let store = open(folder.path());
    assert_eq!(store.found("later"), ["d"]);
    assert_eq!(sum(&store), (3, Value::Integer(110)));
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

fn replace_in_meta(index: &Path, from: &str, to: &str) {
    let path = index.join("meta.json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(&path, text.replace(from, to)).unwrap();
}

#[test]
fn a_deleted_index_comes_back() {
    assert_repaired(|index| fs::remove_dir_all(index).unwrap());
}

#[test]
fn an_emptied_index_folder_comes_back() {
    assert_repaired(|index| {
        for file in files(index) {
            fs::remove_file(file).unwrap();
        }
    });
}

#[test]
fn garbage_in_the_index_description_is_thrown_away() {
    for garbage in ["", "{", "not json at all", "{}", "\u{0}\u{0}"] {
        assert_repaired(|index| fs::write(index.join("meta.json"), garbage).unwrap());
    }
}

#[test]
fn a_missing_or_truncated_segment_file_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    let segment_files: Vec<String> = files(&folder.path().join("index/1"))
        .iter()
        .map(|file| {
            file.extension()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|kind| !kind.is_empty() && kind != "json" && kind != "lock")
        .collect();
    for kind in segment_files {
        let of_kind = |index: &Path| -> PathBuf {
            let found = files(index)
                .into_iter()
                .find(|file| file.extension().is_some_and(|found| *found == *kind));
            found.unwrap()
        };
        assert_repaired(|index| fs::remove_file(of_kind(index)).unwrap());
        assert_repaired(|index| {
            let file = of_kind(index);
            let bytes = fs::read(&file).unwrap();
            fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
        });
        assert_repaired(|index| fs::write(of_kind(index), "").unwrap());
    }
}

#[test]
fn an_index_of_another_analyzer_format_or_store_is_derived_anew() {
    assert_repaired(|index| {
        let current = format!("\\\"analyzer\\\":{}", text::ANALYZER_VERSION);
        replace_in_meta(index, &current, "\\\"analyzer\\\":0");
    });
    assert_repaired(|index| replace_in_meta(index, "\\\"format\\\":", "\\\"format\\\":9"));
    assert_repaired(|index| {
        replace_in_meta(index, "\\\"format\\\":6", "\\\"format\\\":5");
    });
    assert_repaired(|index| replace_in_meta(index, "\\\"store\\\":\\\"", "\\\"store\\\":\\\"f"));
    assert_repaired(|index| replace_in_meta(index, "\\\"version\\\":", "\\\"virsion\\\":"));
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).unwrap();
    for file in files(from) {
        fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
    }
}

#[test]
fn an_index_copied_from_another_store_is_not_believed() {
    let other = tempfile::tempdir().unwrap();
    let store = open(other.path());
    add_mail(&store, "work");
    store.put(
        (0..9)
            .map(|at| kept(&format!("x{at}"), "old gone", 77))
            .collect(),
    );
    store.settle_index().unwrap();
    drop(store);
    assert_repaired(|index| copy(&other.path().join("index/1"), index));
}

#[test]
fn an_older_index_of_the_same_store_catches_up() {
    let folder = tempfile::tempdir().unwrap();
    let early = tempfile::tempdir().unwrap();
    let index = folder.path().join("index/1");
    let store = open(folder.path());
    add_mail(&store, "work");
    store.put(vec![kept("a", "old", 1), kept("c", "gone", 4)]);
    store.settle_index().unwrap();
    drop(store);
    copy(&index, early.path());
    let store = open(folder.path());
    store.put(vec![
        kept("a", "new", 8),
        kept("b", "same", 2),
        delete("messages", "c"),
    ]);
    store.settle_index().unwrap();
    drop(store);
    copy(early.path(), &index);
    assert_whole(&open(folder.path()));
}

#[test]
fn an_index_that_is_ahead_of_restored_records_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("records.db");
    let saved = folder.path().with_extension("saved");
    filled(folder.path());
    fs::copy(&database, &saved).unwrap();
    let store = open(folder.path());
    store.put(vec![kept("z", "old", 1000), delete("messages", "b")]);
    store.settle_index().unwrap();
    drop(store);
    // Somebody puts an earlier copy of the records back and leaves the index.
    fs::copy(&saved, &database).unwrap();
    fs::remove_file(&saved).unwrap();
    let store = open(folder.path());
    assert_whole(&store);
    store.put(vec![kept("y", "later", 100)]);
    assert_eq!(store.found("later"), ["y"]);
}

#[test]
fn a_rebuilt_index_says_the_same_and_reports_its_size() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    let store = open(folder.path());
    let mut size = 0;
    store.rebuild_index(&mut |records| size = records).unwrap();
    assert_eq!(size, 2);
    assert_whole(&store);
}

#[test]
fn a_purge_after_reopening_leaves_no_trace_of_deletions_the_index_had_not_seen() {
    let (folder, store) = mailbox();
    store.put(vec![kept("a", "same", 1), kept("b", "purged", 2)]);
    store.settle_index().unwrap();
    store.put(vec![delete("messages", "b")]);
    // Closed before the index took the deletion.
    drop(store);
    let store = open(folder.path());
    assert_eq!(store.purge().unwrap().tombstones, 1);
    assert_eq!(sum(&store), (1, Value::Integer(1)));
    assert!(store.found("purged").is_empty());
    // Whatever takes the place of the purged record must not be found by its words.
    store.put(vec![kept("c", "fresh", 4)]);
    assert!(store.found("purged").is_empty());
    assert_eq!(sum(&store), (2, Value::Integer(5)));
}
