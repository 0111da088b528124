//! A backup, unpacked into an empty folder, is a data directory with the same content.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use store::{Backup, Blobs, Catalog, EmbeddedStore, Search};
use tempfile::TempDir;

use crate::fixture::{
    Work, add_ledger, all, backup, blob_path, delete, mailbox, message, open, put, stream,
    unpacked, write,
};

fn filled() -> (TempDir, EmbeddedStore) {
    let (folder, store) = mailbox();
    add_ledger(&store, "books");
    store.put(
        (0..50)
            .map(|at| message(&format!("m{at:02}"), "Überweisung", "東京"))
            .collect(),
    );
    store.put(vec![
        delete("messages", "m00"),
        message("m01", "changed", ""),
    ]);
    write(
        &store,
        "books",
        vec![put("entries", r#"{"id":"e","number":1e0}"#)],
    );
    store.put_bytes("m01", b"blob");
    store.settle_index().unwrap();
    (folder, store)
}

#[test]
fn what_is_unpacked_is_for_its_owner_alone() {
    let (_folder, store) = filled();
    let archive = backup(&store);
    let mut names = Vec::new();
    for entry in tar::Archive::new(archive.as_slice()).entries().unwrap() {
        let entry = entry.unwrap();
        let folder = entry.header().entry_type().is_dir();
        let expected = if folder { 0o700 } else { 0o600 };
        assert_eq!(
            entry.header().mode().unwrap(),
            expected,
            "{:?}",
            entry.path()
        );
        names.push(entry.path().unwrap().display().to_string());
    }
    assert_eq!(names[..3], ["records.db", "cursor.key", "blobs/"]);
    // The folder of one blob, and the blob.
    assert_eq!(names.len(), 5, "{names:?}");
}

#[test]
fn an_unpacked_backup_opens_with_equal_records_searches_and_blobs() {
    let (_folder, store) = filled();
    let archive = backup(&store);
    let restored = unpacked(&archive);
    let copy = open(restored.path());
    assert_eq!(copy.connections(), store.connections());
    assert_eq!(copy.stream_stats().unwrap(), store.stream_stats().unwrap());
    for (id, name) in [
        ("work", "messages"),
        ("work", "events"),
        ("books", "entries"),
    ] {
        let stream = stream(id, name);
        assert_eq!(all(&copy, &stream), all(&store, &stream));
    }
    for query in ["uberweisung", "changed", "京", "überw* -changed"] {
        assert_eq!(
            copy.found_sorted(query),
            store.found_sorted(query),
            "{query}"
        );
    }
    assert_eq!(copy.sealing_key().unwrap(), store.sealing_key().unwrap());
    let (blob, _) = store
        .blob(&stream("work", "messages"), &blob_id())
        .unwrap()
        .unwrap();
    let mut bytes = String::new();
    copy.open_blob(&blob.id)
        .unwrap()
        .read_to_string(&mut bytes)
        .unwrap();
    assert_eq!(bytes, "blob");
    copy.put(vec![message("new", "fresh", "")]);
    assert_eq!(copy.found_sorted("fresh"), ["new"]);
}

fn blob_id() -> contract::id::BlobId {
    let id = "blob_sha256_fa2c8cc4f28176bbeed4b736df569a34c79cd3723e9ec42f9674b4d46ac6b8b8";
    contract::id::BlobId::parse(id).unwrap()
}

#[test]
fn a_backup_holds_what_cannot_be_derived_and_leaves_nothing_behind() {
    let (folder, store) = filled();
    let names = || -> Vec<String> {
        let entries = fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    store.sealing_key().unwrap();
    // Bytes that are still arriving belong to nobody yet.
    let arriving = format!("arriving-{}", "x".repeat(60));
    fs::write(folder.path().join("blobs").join(arriving), "half").unwrap();
    let before = names();
    let archive = backup(&store);
    assert_eq!(names(), before);
    let mut archive = tar::Archive::new(archive.as_slice());
    let mut held: Vec<String> = archive
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap().path().unwrap().display().to_string())
        .filter(|name| !name.starts_with("blobs/") || name.len() > 60)
        .collect();
    held.sort();
    assert_eq!(held.len(), 3, "{held:?}");
    assert!(held[0].starts_with("blobs/") && held[1] == "cursor.key" && held[2] == "records.db");
}

#[test]
fn the_backup_of_an_empty_store_is_an_empty_store() {
    let folder = tempfile::tempdir().unwrap();
    let archive = backup(&open(folder.path()));
    let restored = unpacked(&archive);
    assert!(open(restored.path()).connections().is_empty());
}

// TR-39: what is missing is told, and everything else is saved.
#[test]
fn a_missing_blob_is_left_out_only_if_it_is_known_to_be_missing() {
    let (folder, store) = filled();
    let put = |bytes: &[u8]| store.put_bytes("m02", bytes);
    let (lost, kept) = (put(b"lost"), put(b"kept"));
    assert!(store.missing_blobs().unwrap().is_empty());
    let place = |id: &contract::id::BlobId| {
        let (start, name) = id.hex().split_at(2);
        format!("blobs/{start}/{name}")
    };
    fs::remove_file(folder.path().join(place(&lost))).unwrap();
    let missing = store.missing_blobs().unwrap();
    assert_eq!(missing, std::slice::from_ref(&lost));
    // Nobody was told of it, so it must not pass for whole.
    let refused = store.backup(&mut Vec::new(), &[]).unwrap_err();
    assert!(refused.to_string().contains(lost.as_str()), "{refused}");
    let mut archive = Vec::new();
    store.backup(&mut archive, &missing).unwrap();
    let mut archive = tar::Archive::new(archive.as_slice());
    let entries = archive.entries().unwrap();
    let names: Vec<String> = entries
        .map(|entry| entry.unwrap().path().unwrap().display().to_string())
        .collect();
    assert!(names.contains(&place(&kept)) && names.contains(&"records.db".to_owned()));
    assert!(!names.contains(&place(&lost)), "{names:?}");
}

// TR-39: what is damaged is saved as it is, and told.
#[test]
fn damaged_blobs_and_records_are_told_and_everything_is_saved() {
    let (folder, store) = filled();
    let id = store.put_bytes("m02", b"whole");
    let mut whole = Vec::new();
    assert!(store.backup(&mut whole, &[]).unwrap().is_empty());
    drop(store);
    fs::write(blob_path(folder.path(), &id), "whale").unwrap();
    let path = folder.path().join("records.db");
    let mut bytes = fs::read(&path).unwrap();
    let text = b"\"m02\"";
    let at = bytes.windows(text.len()).position(|window| window == text);
    bytes[at.unwrap() + 2] ^= 1;
    fs::write(&path, bytes).unwrap();
    let store = open(folder.path());
    let mut archive = Vec::new();
    let damaged = store.backup(&mut archive, &[]).unwrap();
    assert_eq!(damaged.len(), 2, "{damaged:?}");
    assert!(damaged[0].contains("'m02' of work/messages"), "{damaged:?}");
    assert!(damaged[1].contains(id.as_str()), "{damaged:?}");
    let names = |archive: &[u8]| -> Vec<String> {
        let mut archive = tar::Archive::new(archive);
        let entries = archive.entries().unwrap();
        entries
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect()
    };
    assert_eq!(names(&archive), names(&whole));
}

/// Looks around when the first bytes come.
struct Looking<'a> {
    bytes: Vec<u8>,
    data: &'a Path,
    target: &'a Path,
}

impl Write for Looking<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let copies = |folder: &Path| {
            let entries = fs::read_dir(folder).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name());
            names
                .filter(|name| name.to_string_lossy().starts_with(".backup-"))
                .count()
        };
        assert_eq!((copies(self.data), copies(self.target)), (0, 1));
        self.bytes.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_backup_to_another_disk_needs_no_copy_beside_the_records() {
    // TR-33: the copy that is needed meanwhile is made where the backup goes.
    let (folder, store) = filled();
    let target = tempfile::tempdir().unwrap();
    let mut out = Looking {
        bytes: Vec::new(),
        data: folder.path(),
        target: target.path(),
    };
    store
        .backup_beside(&mut out, &[], Some(target.path()))
        .unwrap();
    assert_eq!(out.bytes, backup(&store));
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 0);
    // Where it cannot be made there, it is made here.
    let nowhere = target.path().join("not there");
    let mut bytes = Vec::new();
    store
        .backup_beside(&mut bytes, &[], Some(&nowhere))
        .unwrap();
    assert_eq!(bytes, out.bytes);
}
