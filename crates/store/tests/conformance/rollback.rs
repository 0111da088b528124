//! A store that lost what it had acknowledged says so, and one that only crashed does not.

use std::fs;
use std::path::Path;

use contract::time::Instant;
use store::inspection::Rollback;
use store::registry::{Change, EntryKind};
use store::{Catalog, EmbeddedStore, Grants, Inspect, Records, Registry, directory};
use tempfile::TempDir;

use crate::fixture::{
    Work, add_mail, backup, connection, disclosure, message, open, unpacked, write,
};

/// What a process would leave that is killed now.
fn killed_now(folder: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in ["records.db", "records.db-wal", directory::MARK] {
        fs::copy(folder.join(name), copy.path().join(name)).unwrap();
    }
    copy
}

fn lose_log(folder: &Path) {
    fs::remove_file(folder.join("records.db-wal")).unwrap();
}

fn rolled_back(folder: &Path) -> Option<Rollback> {
    open(folder).rolled_back()
}

/// A store of which one message is in the file, and whatever comes next in the log alone.
fn settled(folder: &Path) -> EmbeddedStore {
    let store = open(folder);
    add_mail(&store, "work");
    store.put(vec![message("a", "first", "")]);
    drop(store);
    open(folder)
}

#[test]
fn a_lost_log_is_told_with_how_far_it_goes_back() {
    // TR-34: a store that went back in time says so, names how far, and stays so until the owner has accepted it.
    let folder = tempfile::tempdir().unwrap();
    let store = settled(folder.path());
    for name in ["b", "c"] {
        store.put(vec![
            message(name, "x", ""),
            message(&format!("{name}2"), "x", ""),
        ]);
    }
    let killed = killed_now(folder.path());
    drop(store);
    assert_eq!(rolled_back(killed.path()), None, "a kill loses nothing");

    let store = open(folder.path());
    for name in ["d", "e"] {
        store.put(vec![
            message(name, "x", ""),
            message(&format!("{name}2"), "x", ""),
        ]);
    }
    let killed = killed_now(folder.path());
    lose_log(killed.path());
    let store = open(killed.path());
    let told = store.rolled_back().unwrap();
    assert_eq!((told.commits, told.changes), (Some(2), Some(4)));
    assert!(told.last_kept.is_some() && told.last_lost.is_some());
    let words = told.to_string();
    for part in [
        "went back in time",
        "2 transactions",
        "4 changes",
        "2026-06-01",
    ] {
        assert!(words.contains(part), "{words}");
    }
    // Whatever is written now does not hide it.
    for at in 0..5 {
        store.put(vec![message(&format!("n{at}"), "x", "")]);
    }
    drop(store);
    assert_eq!(rolled_back(killed.path()), Some(told.clone()));
    assert_eq!(
        open(killed.path())
            .inspect(store::inspection::Depth::Glance)
            .unwrap()
            .rolled_back,
        Some(told.to_string())
    );
    assert_eq!(open(killed.path()).accept_rollback().unwrap(), Some(told));
    assert_eq!(rolled_back(killed.path()), None);
    assert_eq!(open(killed.path()).accept_rollback().unwrap(), None);
}

#[test]
fn a_cut_or_changed_log_is_told() {
    // TR-34
    let folder = tempfile::tempdir().unwrap();
    let store = settled(folder.path());
    for at in 0..20 {
        store.put(vec![message(&format!("m{at}"), "x", "")]);
    }
    let harms: [fn(&mut Vec<u8>); 4] = [
        |log| log.truncate(log.len() / 2),
        |log| log.truncate(log.len() - 1),
        |log| log.clear(),
        |log| log[100] ^= 1,
    ];
    for harm in harms {
        let killed = killed_now(folder.path());
        let path = killed.path().join("records.db-wal");
        let mut log = fs::read(&path).unwrap();
        harm(&mut log);
        fs::write(&path, log).unwrap();
        let told = rolled_back(killed.path()).unwrap();
        assert!(
            told.commits.is_some_and(|lost| (1..=20).contains(&lost)),
            "{told:?}"
        );
    }
}

#[test]
fn every_kind_of_change_is_counted() {
    // TR-34: grants, revocations and all else that commits, not only records.
    type Step = fn(&EmbeddedStore);
    let steps: [Step; 5] = [
        |store| {
            store
                .rename_connection(&connection("work"), "Other")
                .unwrap();
        },
        |store| {
            store.put_bytes("a", b"abc");
        },
        |store| {
            let put = Change::put(EntryKind::Client, "k", "{}");
            assert!(store.apply(&[put], Instant(0)).unwrap());
        },
        |store| {
            store.log_disclosures(&[disclosure(1, &[])], &[]).unwrap();
        },
        |store| {
            store.purge().unwrap();
        },
    ];
    for (number, step) in steps.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let store = settled(folder.path());
        let before = killed_now(folder.path());
        step(&store);
        // As if the log had been lost: the database of before, with the mark of now.
        let now = folder.path().join(directory::MARK);
        fs::copy(now, before.path().join(directory::MARK)).unwrap();
        let told = rolled_back(before.path());
        assert!(told.is_some(), "step {number}");
    }
}

#[test]
fn a_mark_that_lags_is_no_rollback_and_one_that_is_gone_proves_nothing() {
    // TR-34: written after each commit, so that a crash never alarms.
    let folder = tempfile::tempdir().unwrap();
    let store = settled(folder.path());
    let mark = folder.path().join(directory::MARK);
    let earlier = fs::read(&mark).unwrap();
    for at in 0..3 {
        store.put(vec![message(&format!("m{at}"), "x", "")]);
    }
    let killed = killed_now(folder.path());
    fs::write(killed.path().join(directory::MARK), &earlier).unwrap();
    assert_eq!(rolled_back(killed.path()), None);

    // A write that is torn leaves the entry before it.
    for page in [0, 4096] {
        let killed = killed_now(folder.path());
        let path = killed.path().join(directory::MARK);
        let mut torn = fs::read(&path).unwrap();
        torn[page + 20] ^= 1;
        fs::write(&path, torn).unwrap();
        assert_eq!(rolled_back(killed.path()), None);
    }

    let harms: [fn(&Path) -> std::io::Result<()>; 2] =
        [|path| fs::remove_file(path), |path| fs::write(path, "")];
    for harm in harms {
        let killed = killed_now(folder.path());
        harm(&killed.path().join(directory::MARK)).unwrap();
        let told = rolled_back(killed.path()).unwrap();
        assert_eq!(told.commits, None);
        assert!(told.reason.contains(directory::MARK), "{told:?}");
        assert_eq!(rolled_back(killed.path()), Some(told));
    }
}

#[test]
fn another_database_of_the_same_length_is_told() {
    // TR-34
    let folder = tempfile::tempdir().unwrap();
    let store = settled(folder.path());
    let one = killed_now(folder.path());
    let other = killed_now(folder.path());
    drop(store);
    for (copy, name) in [(&one, "b"), (&other, "c")] {
        write(&open(copy.path()), "work", vec![message(name, "x", "")]);
    }
    let mark = other.path().join(directory::MARK);
    fs::copy(mark, one.path().join(directory::MARK)).unwrap();
    let told = rolled_back(one.path()).unwrap();
    assert!(told.reason.contains("another"), "{told:?}");
}

#[test]
fn an_unpacked_backup_begins_anew() {
    // TR-34
    let folder = tempfile::tempdir().unwrap();
    let store = settled(folder.path());
    let restored = unpacked(&backup(&store));
    let store = open(restored.path());
    assert_eq!(store.rolled_back(), None);
    store.put(vec![message("b", "x", "")]);
    drop(store);
    assert_eq!(rolled_back(restored.path()), None);
}
