//! Erasing for good (decision 28): what is removed is found nowhere, not even in the bytes on disk.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use contract::id::ConnectionId;
use proptest::prelude::*;
use store::records::{Change, ChangesRequest};
use store::{Blobs, Catalog, EmbeddedStore, Records, Search, StoreError};

use crate::fixture::{
    Work, add_mail, all, cases, connection, delete, found, found_sorted, key, mailbox, message,
    message_with, messages, on_every_mailbox, open, put, request, stream, write,
};

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

/// The files that hold the bytes of a word.
fn holding(folder: &Path, word: &str) -> Vec<PathBuf> {
    let holds = |file: &PathBuf| {
        let bytes = match fs::read(file) {
            // The engine's own temporary files come and go.
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            read => read.unwrap(),
        };
        bytes
            .windows(word.len())
            .any(|window| window == word.as_bytes())
    };
    files(folder).into_iter().filter(holds).collect()
}

/// Asserts that the index on disk is its segments and no more, and that none holds a document that was deleted or a word.
///
/// Term dictionaries share prefixes, so that looking for a word's bytes in them would prove nothing.
fn assert_index_is_clean(folder: &Path, word: &str, records: u64) {
    let path = folder.join("index/1");
    let index = tantivy::Index::open_in_dir(&path).unwrap();
    let segments = index.searchable_segments().unwrap();
    let named: BTreeSet<String> = segments
        .iter()
        .map(|segment| segment.id().uuid_string())
        .collect();
    for file in files(&path) {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let kind = file.extension().unwrap_or_default();
        let ours = kind == "json" || kind == "lock";
        let stem = name.split('.').next().unwrap_or_default().replace('-', "");
        assert!(
            ours || named.contains(&stem),
            "{name} belongs to no segment of {named:?}"
        );
    }
    let mut live = 0;
    for segment in &segments {
        assert_eq!(
            segment.meta().num_deleted_docs(),
            0,
            "deleted documents are still there"
        );
        live += u64::from(segment.meta().num_docs());
        let reader = tantivy::SegmentReader::open(segment).unwrap();
        for (field, entry) in index.schema().fields() {
            if entry.name().starts_with("text") {
                let terms = reader.inverted_index(field).unwrap();
                let found = terms.terms().term_ord(word).unwrap();
                assert_eq!(found, None, "{word} is a word of {}", entry.name());
            }
        }
    }
    assert_eq!(live, records);
}

/// Records of one connection with the word in every form: short, long, replaced, deleted, grouped by.
fn traces(word: &str, suffix: &str) -> Vec<Change> {
    let long = format!(
        "{} {word} {}",
        "padding ".repeat(3_000),
        "more ".repeat(3_000)
    );
    vec![
        message(&format!("short{suffix}"), "letter", word),
        message(&format!("long{suffix}"), word, &long),
        message_with(
            &format!("sender{suffix}"),
            &format!("\"from_email\":\"{word}\""),
        ),
        message(&format!("replaced{suffix}"), "letter", &long),
        message(&format!("replaced-short{suffix}"), "letter", word),
        message(&format!("deleted{suffix}"), "letter", &long),
        message(&format!("deleted-short{suffix}"), "letter", word),
    ]
}

fn later(suffix: &str) -> Vec<Change> {
    vec![
        message(&format!("replaced{suffix}"), "letter", "short"),
        message(&format!("replaced-short{suffix}"), "letter", "short"),
        delete("messages", &format!("deleted{suffix}")),
        delete("messages", &format!("deleted-short{suffix}")),
    ]
}

fn erase(store: &EmbeddedStore, id: &str) -> u64 {
    store.remove_connection(&connection(id)).unwrap().records
}

#[test]
fn nothing_of_a_removed_connection_stays_on_disk() {
    let (folder, store) = mailbox();
    add_mail(&store, "home");
    // Both connections' records lie side by side in the same pages and segments.
    for round in 0..10 {
        store.put(traces("zyzzyva", &format!("-{round}")));
        write(&store, "home", traces("quokka", &format!("-{round}")));
    }
    store.settle_index().unwrap();
    for round in 0..10 {
        store.put(later(&format!("-{round}")));
        write(&store, "home", later(&format!("-{round}")));
    }
    let owner = stream("work", "messages");
    store
        .put_blob(
            &owner,
            &key("short-0"),
            "text/plain",
            &mut &b"a zyzzyva blob"[..],
        )
        .unwrap();
    assert!(!holding(folder.path(), "zyzzyva").is_empty());
    assert_eq!(erase(&store, "work"), 50);
    assert_eq!(holding(folder.path(), "zyzzyva"), Vec::<PathBuf>::new());
    assert_index_is_clean(folder.path(), "zyzzyva", 50);
    assert_eq!(found(&store, "quokka", vec![messages("home")]).len(), 20);
    drop(store);
    assert_eq!(holding(folder.path(), "zyzzyva"), Vec::<PathBuf>::new());
    let store = open(folder.path());
    assert_eq!(all(&store, &stream("home", "messages")).len(), 50);
    assert_eq!(found(&store, "quokka", vec![messages("home")]).len(), 20);
}

#[test]
fn nothing_behind_a_tombstone_stays_on_disk_after_a_purge() {
    let (folder, store) = mailbox();
    let long = format!(
        "{} zyzzyva {}",
        "padding ".repeat(3_000),
        "more ".repeat(3_000)
    );
    for round in 0..10 {
        let batch = vec![
            message(&format!("short{round}"), "letter", "zyzzyva"),
            message(&format!("kept{round}"), "letter", "quokka"),
            message(&format!("long{round}"), "zyzzyva", &long),
        ];
        store.put(batch);
    }
    store.settle_index().unwrap();
    for round in 0..10 {
        let gone = ["short", "long"].map(|name| delete("messages", &format!("{name}{round}")));
        store.put(gone.into());
    }
    assert!(!holding(folder.path(), "zyzzyva").is_empty());
    assert_eq!(store.purge().unwrap().tombstones, 20);
    assert_eq!(holding(folder.path(), "zyzzyva"), Vec::<PathBuf>::new());
    assert_index_is_clean(folder.path(), "zyzzyva", 10);
    assert_eq!(store.found("quokka").len(), 10);
}

/// A text of some length that holds the word in several places.
fn sprinkled(word: &str, length: usize) -> String {
    let filler = "lorem ".repeat(1 + length / 24);
    format!("{word} {filler}{word} {filler}{filler}{word}{filler}")
}

#[test]
fn no_history_of_sizes_and_changes_leaves_a_trace() {
    let sizes = prop_oneof![4 => 0_usize..300, 2 => 300_usize..9_000, 1 => 9_000_usize..40_000];
    let step = (0_u8..25, prop::option::weighted(0.75, sizes), any::<bool>());
    let steps = prop::collection::vec(step, 20..160);
    proptest!(cases(6), |(steps in steps, remove in any::<bool>())| {
        let (folder, store) = mailbox();
        add_mail(&store, "home");
        for (at, size, ours) in &steps {
            let (id, word) = if *ours { ("work", "zyzzyva") } else { ("home", "quokka") };
            let change = match size {
                Some(size) => message(&format!("m{at}"), "letter", &sprinkled(word, *size)),
                None => delete("messages", &format!("m{at}")),
            };
            write(&store, id, vec![change]);
        }
        if remove {
            erase(&store, "work");
        } else {
            let all = (0..25).map(|at| delete("messages", &format!("m{at}"))).collect();
            store.put(all);
            store.purge().unwrap();
        }
        assert_eq!(holding(folder.path(), "zyzzyva"), Vec::<PathBuf>::new());
    });
}

#[test]
fn a_purge_erases_the_keys_of_deleted_records_too() {
    let (folder, store) = mailbox();
    store.put(vec![message("zyzzyva", "a", ""), message("kept", "b", "")]);
    store.put(vec![delete("messages", "zyzzyva")]);
    store.purge().unwrap();
    assert_eq!(holding(folder.path(), "zyzzyva"), Vec::<PathBuf>::new());
}

#[test]
fn a_purge_keeps_the_history_of_live_records() {
    on_every_mailbox(|store| {
        store.put(vec![message("a", "1", "")]);
        let changes = |since| {
            let request = ChangesRequest::since(since, 10);
            store
                .changes(&stream("work", "messages"), &request)
                .unwrap()
        };
        let since = changes(0).until;
        store.put(vec![message("a", "2", "")]);
        store.purge().unwrap();
        let entries = changes(since).entries;
        assert!(
            entries[0]
                .previous
                .as_ref()
                .is_some_and(|json| json.contains("\"1\""))
        );
    });
}

fn assert_unknown<T: std::fmt::Debug>(answer: &Result<T, StoreError>, id: &ConnectionId) {
    assert!(
        matches!(answer, Err(StoreError::UnknownConnection(named)) if named == id),
        "{answer:?}"
    );
}

#[test]
fn a_removed_connection_is_unknown_to_every_port_and_others_stay() {
    on_every_mailbox(|store| {
        add_mail(store, "home");
        store.put(vec![message("a", "shared", ""), message("b", "shared", "")]);
        write(store, "home", vec![message("a", "shared", "")]);
        let id = connection("work");
        let removed = store.remove_connection(&id).unwrap();
        assert_eq!((removed.records, removed.blobs), (2, 0));
        let gone = stream("work", "messages");
        assert_unknown(&store.get(&gone, &key("a")), &id);
        assert_unknown(
            &store
                .search(&request("shared", vec![messages("work")]))
                .map(|_| ()),
            &id,
        );
        assert_unknown(&store.write(&id, vec![message("c", "x", "")]), &id);
        assert_unknown(&store.remove_connection(&id), &id);
        let from_beginning = ChangesRequest::since(0, 10);
        assert_unknown(&store.changes(&gone, &from_beginning).map(|_| ()), &id);
        assert_eq!(store.connection(&id), None);
        let stats = store.stream_stats().unwrap();
        assert!(
            stats
                .iter()
                .all(|stats| stats.stream.connection.as_str() == "home")
        );
        assert_eq!(found(store, "shared", vec![messages("home")]), ["a"]);
        assert_eq!(all(store, &stream("home", "messages")).len(), 1);
    });
}

#[test]
fn an_id_that_comes_back_starts_empty() {
    on_every_mailbox(|store| {
        add_mail(store, "home");
        store.put(vec![message("a", "before", ""), message("b", "before", "")]);
        store.settle_index().unwrap();
        store.remove_connection(&connection("work")).unwrap();
        add_mail(store, "work");
        let both = || vec![messages("work"), messages("home")];
        assert!(all(store, &stream("work", "messages")).is_empty());
        assert!(found(store, "before", both()).is_empty());
        // New records may take the place of erased ones, and are found by their own words only.
        write(
            store,
            "home",
            vec![message("x", "after", ""), message("y", "after", "")],
        );
        store.put(vec![message("a", "after", "")]);
        assert!(found(store, "before", both()).is_empty());
        assert_eq!(found_sorted(store, "after", both()), ["a", "x", "y"]);
        store.rebuild_index(&mut |_| {}).unwrap();
        assert!(found(store, "before", both()).is_empty());
        assert_eq!(found_sorted(store, "after", both()), ["a", "x", "y"]);
    });
}

#[test]
fn erased_streams_stay_erased_when_an_older_index_catches_up() {
    let (folder, store) = mailbox();
    add_mail(&store, "home");
    store.put(vec![message("a", "gone", "")]);
    store.settle_index().unwrap();
    drop(store);
    let saved = tempfile::tempdir().unwrap();
    let index = folder.path().join("index/1");
    for file in files(&index) {
        fs::copy(&file, saved.path().join(file.file_name().unwrap())).unwrap();
    }
    let store = open(folder.path());
    store.remove_connection(&connection("work")).unwrap();
    write(
        &store,
        "home",
        vec![put("messages", r#"{"id":"a","subject":"stays"}"#)],
    );
    drop(store);
    fs::remove_dir_all(&index).unwrap();
    fs::rename(saved.keep(), &index).unwrap();
    let store = open(folder.path());
    assert!(found(&store, "gone", vec![messages("home")]).is_empty());
    assert_eq!(found(&store, "stays", vec![messages("home")]), ["a"]);
}
