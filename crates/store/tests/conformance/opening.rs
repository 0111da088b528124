//! Opening a data directory: who may, and what is refused with a name and a reason, never with a panic.

use std::fs;
use std::path::Path;

use store::{Catalog, EmbeddedStore, StoreError};

use crate::fixture::{Work, add_mail, all, message, open, stream, try_open};

fn refusal(path: &Path) -> StoreError {
    match try_open(path) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(error) => error,
    }
}

/// A closed data directory with one record, settled.
fn filled(path: &Path) {
    let store = open(path);
    add_mail(&store, "work");
    store.put(vec![message("m1", "kept", "")]);
    assert_eq!(store.found("kept"), ["m1"]);
    store::Search::settle_index(&store).unwrap();
}

#[test]
fn a_missing_folder_is_made_and_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er");
    let store = open(&path);
    assert_eq!(store.path(), path);
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let key = store.sealing_key().unwrap();
    drop(store);
    assert_eq!(open(&path).sealing_key().unwrap(), key);
}

#[test]
fn in_a_folder_that_others_may_enter_they_find_nothing_to_read() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    filled(&path);
    let store = open(&path);
    store.sealing_key().unwrap();
    for entry in fs::read_dir(&path).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{:?}", entry.path());
    }
}

#[test]
fn everything_is_there_again_after_reopening() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    for round in 0..3 {
        let store = open(folder.path());
        assert_eq!(store.connections().len(), 1);
        let hits = store.found("kept");
        assert_eq!(hits.len(), round + 1);
        // Not settled, not even searched: it must be found all the same next time.
        store.put(vec![message(&format!("n{round}"), "kept", "")]);
    }
    let store = open(folder.path());
    assert_eq!(all(&store, &stream("work", "messages")).len(), 4);
    let status = store::Search::index_status(&store).unwrap();
    assert_eq!(status.written, 4);
}

#[test]
fn the_index_status_is_the_same_before_and_after_reopening() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    let store = open(folder.path());
    let status = store::Search::index_status(&store).unwrap();
    assert_eq!((status.written, status.indexed), (1, 1));
}

#[test]
fn copies_and_replaced_indexes_of_a_killed_process_are_cleared_away() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    let copy = folder.path().join(".backup-x1");
    let replaced = folder.path().join("index/0");
    for left in [&copy, &replaced] {
        fs::create_dir(left).unwrap();
        fs::write(left.join("records.db"), "a copy").unwrap();
    }
    let store = open(folder.path());
    assert!(!copy.exists() && !replaced.exists());
    assert_eq!(store.found("kept"), ["m1"]);
}

#[test]
fn a_second_opener_is_told_who_holds_the_directory() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let error = refusal(folder.path());
    let StoreError::Held { path, holder } = &error else {
        panic!("{error}")
    };
    assert_eq!(path, folder.path());
    assert!(holder.contains("a conformance test"), "{holder}");
    assert!(holder.contains(&std::process::id().to_string()), "{holder}");
    drop(store);
    open(folder.path());
}

#[test]
fn a_file_in_place_of_the_folder_is_foreign() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    fs::write(&path, "text").unwrap();
    let error = refusal(&path);
    assert!(
        matches!(&error, StoreError::Foreign { path: named, .. } if *named == path),
        "{error}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "text");
}

#[test]
fn a_folder_of_somebody_else_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("thesis.doc"), "text").unwrap();
    let error = refusal(folder.path());
    let StoreError::Foreign { path, reason } = &error else {
        panic!("{error}")
    };
    assert_eq!(path, folder.path());
    assert!(reason.contains("thesis.doc"), "{reason}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn credentials_for_other_servers_may_be_there_first() {
    let folder = tempfile::tempdir().unwrap();
    let credential = folder.path().join("clients").join("h.example.json");
    fs::create_dir(credential.parent().unwrap()).unwrap();
    fs::write(&credential, "{}").unwrap();
    drop(open(folder.path()));
    assert_eq!(fs::read_to_string(&credential).unwrap(), "{}");
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.db");
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE notes (text)").unwrap();
    drop(other);
    let before = fs::read(&path).unwrap();
    let error = refusal(folder.path());
    assert!(
        matches!(&error, StoreError::Foreign { path: named, .. } if *named == path),
        "{error}"
    );
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_newer_format_is_refused_and_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    let path = folder.path().join("records.db");
    let newer = rusqlite::Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 999).unwrap();
    drop(newer);
    let before = fs::read(&path).unwrap();
    let error = refusal(folder.path());
    let StoreError::Newer {
        path: named, found, ..
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!((named, *found), (&path, 999));
    assert!(error.to_string().contains("Upgrade"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// Asserts that a damaged database is recognised as such and left as it is.
fn assert_corrupt(damage: impl Fn(&Path, &Path)) {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    let path = folder.path().join("records.db");
    damage(folder.path(), &path);
    let before = fs::read(&path).ok();
    let error = refusal(folder.path());
    assert!(
        matches!(&error, StoreError::Corrupt { path: named, .. } if *named == path),
        "{error}"
    );
    assert!(error.to_string().contains("backup"), "{error}");
    assert_eq!(fs::read(&path).ok(), before);
    // Refusing twice is as good as once.
    assert!(matches!(refusal(folder.path()), StoreError::Corrupt { .. }));
}

#[test]
fn a_garbled_header_is_damage() {
    assert_corrupt(|_, path| {
        let mut bytes = fs::read(path).unwrap();
        bytes[..100].fill(b'x');
        fs::write(path, bytes).unwrap();
    });
    assert_corrupt(|_, path| fs::write(path, "short").unwrap());
}

#[test]
fn a_truncated_database_is_damage() {
    for part in [2, 3, 10] {
        assert_corrupt(|_, path| {
            let bytes = fs::read(path).unwrap();
            fs::write(path, &bytes[..bytes.len() - bytes.len() / part]).unwrap();
        });
    }
    assert_corrupt(|_, path| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, &bytes[..bytes.len() - 1]).unwrap();
    });
}

#[test]
fn an_empty_or_missing_database_beside_an_index_is_damage() {
    assert_corrupt(|_, path| fs::write(path, "").unwrap());
    assert_corrupt(|_, path| fs::remove_file(path).unwrap());
}

#[test]
fn a_damaged_sealing_key_is_an_error_and_not_a_new_key() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    let path = folder.path().join("cursor.key");
    fs::write(&path, "short").unwrap();
    let error = open(folder.path()).sealing_key().unwrap_err();
    assert!(
        matches!(&error, StoreError::Corrupt { path: named, .. } if *named == path),
        "{error}"
    );
}

#[test]
fn an_interrupted_first_start_is_no_obstacle() {
    // The lock and the key may be there before the database, and the database may be empty. The mark comes after it.
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    fs::remove_file(folder.path().join("records.db")).unwrap();
    fs::remove_file(folder.path().join("commits.mark")).unwrap();
    let store: EmbeddedStore = open(folder.path());
    drop(store);
    fs::write(folder.path().join("records.db"), "").unwrap();
    fs::remove_file(folder.path().join("commits.mark")).unwrap();
    open(folder.path());
}
