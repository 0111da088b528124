//! Flipped bytes: an error or the truth, and never a panic.

use std::fs;
use std::io::Read as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use store::inspection::{Depth, Inspection};
use store::records::{Direction, OrderBy, PageRequest};
use store::search::{AggregateRequest, Grouping, Metric};
use store::{Blobs, Catalog, EmbeddedStore, Inspect, Records, Search};

use crate::fixture::{
    Dice, Work, add_mail, blob_path, compute, delete, field, mailbox, message_with, messages, open,
    request, stream, try_open,
};

/// A settled and closed store with a few hundred records in several segments.
fn filled(path: &Path) {
    let store = open(path);
    add_mail(&store, "work");
    for batch in 0..3 {
        let record = |at: usize| {
            let words = format!("word{} common text{}", at % 7, at % 31);
            message_with(
                &format!("m{batch}-{at}"),
                &format!(
                    "\"subject\":\"{words}\",\"body\":\"{}\",\"size_bytes\":{at},\"from_email\":\"s{}\"",
                    words.repeat(3),
                    at % 5
                ),
            )
        };
        store.put((0..60).map(record).collect());
        store.put(vec![delete("messages", &format!("m{batch}-3"))]);
        store.settle_index().unwrap();
    }
}

/// What a store says to a number of questions, or the first error.
fn answers(store: &EmbeddedStore) -> store::Result<Vec<String>> {
    let mut answers = vec![format!(
        "{:?} {:?}",
        store.connections(),
        store.stream_stats()?
    )];
    for by in [OrderBy::Key, OrderBy::Cursor] {
        let page = PageRequest::first(by, Direction::Descending, 1_000);
        answers.push(format!(
            "{:?}",
            store.page(&stream("work", "messages"), &page)?
        ));
    }
    for query in [
        "common",
        "word3",
        "\"common text5\"",
        "text1* -word2",
        "\"word1 com*\"",
    ] {
        let answer = store.search(&request(query, vec![messages("work")]))?;
        let mut keys: Vec<String> = answer
            .hits
            .iter()
            .map(|hit| hit.record.key.to_string())
            .collect();
        keys.sort();
        answers.push(format!("{query}: {keys:?} of {:?}", answer.total));
    }
    for (metric, name) in [
        (Metric::Count, "from_email"),
        (Metric::Sum(field("size_bytes")), "size_bytes"),
    ] {
        let grouping = Grouping::Values {
            field: field(name),
            limit: 1_000,
        };
        let aggregate = AggregateRequest {
            scope: messages("work"),
            metric,
            grouping: Some(grouping),
        };
        answers.push(format!("{:?}", store.aggregate(&aggregate)?));
    }
    Ok(answers)
}

/// How often a damaged store panicked, erred, told the truth and told something else.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcomes {
    panicked: u32,
    erred: u32,
    right: u32,
    wrong: u32,
}

/// Flips some bytes of one file, opens the store and looks what it says.
fn try_flips(
    flips: usize,
    dice: &mut Dice,
    pick: impl Fn(&Path, &mut Dice) -> PathBuf,
    rounds: usize,
) -> Outcomes {
    let original = tempfile::tempdir().unwrap();
    filled(original.path());
    let truth = answers(&open(original.path())).unwrap();
    let mut outcomes = Outcomes::default();
    for _ in 0..rounds {
        let copy = copied(original.path());
        flip(&pick(copy.path(), dice), flips, dice);
        let attempt = catch_unwind(AssertUnwindSafe(|| answers(&try_open(copy.path())?)));
        match attempt {
            Err(_) => outcomes.panicked += 1,
            Ok(Err(_)) => outcomes.erred += 1,
            Ok(Ok(said)) if said == truth => outcomes.right += 1,
            Ok(Ok(_)) => outcomes.wrong += 1,
        }
    }
    outcomes
}

fn columns_file(folder: &Path) -> PathBuf {
    let files = fs::read_dir(folder.join("index/1")).unwrap();
    let mut paths = files.map(|entry| entry.unwrap().path());
    let found = paths.find(|path| path.extension().is_some_and(|kind| kind == "fast"));
    found.unwrap()
}

fn flip(file: &Path, flips: usize, dice: &mut Dice) {
    let mut bytes = fs::read(file).unwrap();
    for _ in 0..flips {
        let at = dice.roll(bytes.len());
        bytes[at] ^= 1 << dice.roll(8);
    }
    fs::write(file, bytes).unwrap();
}

fn copied(folder: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    copy_folder(folder, copy.path());
    copy
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_folder(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

#[test]
fn flipped_bytes_in_the_records_never_cause_a_panic() {
    let mut dice = Dice(7);
    let database = |folder: &Path, _: &mut Dice| folder.join("records.db");
    for flips in [1, 40] {
        let outcomes = try_flips(flips, &mut dice, database, 25);
        assert_eq!(outcomes.panicked, 0, "{flips} flips: {outcomes:?}");
    }
}

#[test]
fn flipped_bytes_in_the_index_cause_neither_a_panic_nor_a_lasting_error() {
    let mut dice = Dice(11);
    let segment_file = |folder: &Path, dice: &mut Dice| {
        let entries = fs::read_dir(folder.join("index/1")).unwrap();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        files.retain(|file| fs::metadata(file).unwrap().len() > 0);
        files.sort();
        let at = dice.roll(files.len());
        files.swap_remove(at)
    };
    for flips in [1, 20] {
        let outcomes = try_flips(flips, &mut dice, segment_file, 25);
        let failed = (outcomes.panicked, outcomes.erred, outcomes.wrong);
        assert_eq!(failed, (0, 0, 0), "{flips} flips: {outcomes:?}");
    }
}

#[test]
fn what_is_whole_is_found_to_be_whole() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    let store = open(folder.path());
    store.put_bytes("m0-1", b"abc");
    // Not in the index yet.
    store.put(vec![message_with("new", "\"subject\":\"a\"")]);
    for depth in [Depth::Glance, Depth::Thorough] {
        let whole = Inspection {
            records: 3 * 59 + 1,
            blobs: 1,
            ..Inspection::default()
        };
        assert_eq!(store.inspect(depth).unwrap(), whole);
    }
}

#[test]
fn a_changed_missing_or_cut_blob_is_found_and_never_given_as_whole() {
    let (folder, store) = mailbox();
    let bytes: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    let id = store.put_bytes("m1", &bytes);
    let path = blob_path(folder.path(), &id);
    let damage = || store.inspect(Depth::Thorough).unwrap().damaged_blobs;
    let read = || {
        store
            .open_blob(&id)?
            .read_to_end(&mut Vec::new())
            .map_err(|error| {
                let name = path.file_name().unwrap().to_str().unwrap();
                assert!(error.to_string().contains(name), "{error}");
                assert!(error.to_string().contains("backup"), "{error}");
                store::StoreError::UnknownBlob(String::new())
            })
    };
    assert_eq!(read().unwrap(), bytes.len());
    assert_eq!(damage(), []);
    let mut changed = bytes.clone();
    changed[70_000] ^= 1;
    fs::write(&path, &changed).unwrap();
    assert!(read().is_err());
    assert_eq!(damage()[0].path, path);
    fs::write(&path, &bytes[..100]).unwrap();
    assert!(read().is_err());
    assert_eq!(damage()[0].path, path);
    fs::remove_file(&path).unwrap();
    assert!(matches!(read(), Err(store::StoreError::UnknownBlob(_))));
    assert_eq!(damage()[0].detail, "it is missing");
}

#[test]
fn a_flipped_byte_in_a_segment_of_the_index_is_always_found_or_mended() {
    let original = tempfile::tempdir().unwrap();
    filled(original.path());
    let mut files: Vec<String> = fs::read_dir(original.path().join("index/1"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.metadata().unwrap().len() > 0)
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| name.len() > 32)
        .collect();
    files.sort();
    assert!(files.len() > 10, "{files:?}");
    let mut dice = Dice(23);
    for file in files {
        let copy = copied(original.path());
        flip(&copy.path().join("index/1").join(&file), 1, &mut dice);
        let store = open(copy.path());
        let found = catch_unwind(AssertUnwindSafe(|| store.inspect(Depth::Thorough).unwrap()));
        let told = !found.unwrap().damaged_index.is_empty();
        assert!(told || !copy.path().join("index/1").exists(), "{file}");
        store.rebuild_index(&mut |_| {}).unwrap();
        let mended = store.inspect(Depth::Thorough).unwrap();
        assert_eq!(mended.damaged_index, [], "{file}");
    }
}

#[test]
fn records_that_cannot_be_read_are_found_by_an_inspection() {
    let original = tempfile::tempdir().unwrap();
    filled(original.path());
    let mut dice = Dice(29);
    let mut unreadable = 0;
    for round in 0..40 {
        let copy = copied(original.path());
        flip(&copy.path().join("records.db"), 25, &mut dice);
        let Ok(store) = try_open(copy.path()) else {
            continue;
        };
        let inspection = store.inspect(Depth::Thorough);
        if answers(&store).is_err() {
            unreadable += 1;
            let told = inspection.map_or(true, |found| !found.damaged_records.is_empty());
            assert!(told, "round {round}");
        }
    }
    assert!(unreadable > 3, "{unreadable}");
}

#[test]
fn a_file_of_the_index_that_changed_is_named_and_never_answered_from() {
    // TR-35: segment files are verified when they are opened.
    let original = tempfile::tempdir().unwrap();
    filled(original.path());
    let truth = answers(&open(original.path())).unwrap();
    let copy = copied(original.path());
    let file = columns_file(copy.path());
    let mut bytes = fs::read(&file).unwrap();
    bytes[7] ^= 1;
    fs::write(&file, bytes).unwrap();
    let store = open(copy.path());
    assert_eq!(answers(&store).unwrap(), truth);
    for depth in [Depth::Glance, Depth::Thorough] {
        let told = store.inspect(depth).unwrap().damaged_index;
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].path, file);
    }
    // Until the owner has seen to it.
    drop(store);
    let store = open(copy.path());
    assert_eq!(store.inspect(Depth::Glance).unwrap().damaged_index.len(), 1);
    store.rebuild_index(&mut |_| {}).unwrap();
    assert_eq!(store.inspect(Depth::Thorough).unwrap().damaged_index, []);
}

#[test]
fn damage_in_the_index_is_not_merged_away() {
    // TR-35: segment files are verified before a merge, and what is damaged is derived anew from the records.
    let (folder, store) = mailbox();
    let batch = |number: usize| {
        let record = |at: usize| {
            let size = number * 10 + at;
            message_with(
                &format!("m{size}"),
                &format!("\"subject\":\"x\",\"size_bytes\":{size}"),
            )
        };
        store.put((0..10).map(record).collect());
        store.settle_index().unwrap();
    };
    let sum = || Metric::Sum(field("size_bytes"));
    let total = || compute(&store, messages("work"), sum(), None).value;
    // One more makes the engine merge them all.
    (0..7).for_each(batch);
    let file = columns_file(folder.path());
    let mut bytes = fs::read(&file).unwrap();
    bytes[9] ^= 2;
    // In place, as a disk does it.
    let mut open = fs::OpenOptions::new().write(true).open(&file).unwrap();
    std::io::Write::write_all(&mut open, &bytes).unwrap();
    (7..12).for_each(batch);
    let expected: i128 = (0..120).sum();
    assert_eq!(total(), store::search::Value::Integer(expected));
    let told = store.inspect(Depth::Glance).unwrap().damaged_index;
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].path, file);
}
