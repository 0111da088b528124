//! Blobs: bytes named by their hash, bound to records, gone with the last of them.

use std::fs;
use std::io::{Error, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use contract::id::BlobId;
use store::inspection::Depth;
use store::{Blobs, Records, StoreError};

use crate::fixture::{
    Work, add_mail, compound, connection, delete, key, mailbox, message, on_every_folder,
    on_every_mailbox, open, put_bytes, stream,
};

fn content(store: &(impl Blobs + ?Sized), id: &BlobId) -> Vec<u8> {
    let mut bytes = Vec::new();
    store
        .open_blob(id)
        .unwrap()
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

fn is_gone(store: &(impl Blobs + ?Sized), id: &BlobId) -> bool {
    matches!(store.open_blob(id), Err(StoreError::UnknownBlob(_)))
}

#[test]
fn a_blob_is_named_by_the_hash_of_its_bytes() {
    on_every_mailbox(|store| {
        let id = store.put_bytes("m1", b"abc");
        assert_eq!(
            id.as_str(),
            "blob_sha256_ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(content(store, &id), b"abc");
        let large: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        let id = store.put_bytes("m1", &large);
        assert_eq!(content(store, &id), large);
        let empty = store.put_bytes("m1", b"");
        assert!(content(store, &empty).is_empty());
    });
}

#[test]
fn the_same_bytes_are_one_blob_with_the_first_media_type_and_every_binding() {
    on_every_mailbox(|store| {
        add_mail(store, "home");
        let id = store.put_bytes("m2", b"abc");
        assert_eq!(store.put_bytes("m1", b"abc"), id);
        assert_eq!(store.put_bytes("m1", b"abc"), id);
        let owner = stream("work", "messages");
        let other_type = store
            .put_blob(&owner, &key("m3"), "image/png", &mut &b"abc"[..])
            .unwrap();
        assert_eq!(
            (other_type.mime_type.as_str(), other_type.size_bytes),
            ("text/plain", 3)
        );
        let (blob, keys) = store.blob(&owner, &id).unwrap().unwrap();
        assert_eq!((blob.id, blob.size_bytes), (id.clone(), 3));
        assert_eq!(keys, [key("m1"), key("m2"), key("m3")]);
        assert_eq!(store.blob(&stream("home", "messages"), &id).unwrap(), None);
        let events = stream("home", "events");
        let owner = compound(&["a", "b"]);
        store
            .put_blob(&events, &owner, "text/plain", &mut &b"abc"[..])
            .unwrap();
        assert_eq!(store.blob(&events, &id).unwrap().unwrap().1, [owner]);
    });
}

#[test]
fn unknown_blobs_and_owners_are_errors() {
    on_every_mailbox(|store| {
        let id = BlobId::from_sha256([7; 32]);
        assert!(is_gone(store, &id));
        assert_eq!(store.blob(&stream("work", "messages"), &id).unwrap(), None);
        let error = store
            .put_blob(
                &stream("nobody", "messages"),
                &key("m1"),
                "text/plain",
                &mut &b"abc"[..],
            )
            .unwrap_err();
        assert!(matches!(error, StoreError::UnknownConnection(_)), "{error}");
    });
}

/// A source that breaks off.
struct Broken(u8);

impl Read for Broken {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0 += 1;
        match self.0 {
            1 => Err(Error::from(ErrorKind::Interrupted)),
            2 => {
                buffer[..3].copy_from_slice(b"abc");
                Ok(3)
            }
            _ => Err(Error::other("the line went dead")),
        }
    }
}

#[test]
fn a_source_that_breaks_off_leaves_no_blob() {
    on_every_mailbox(|store| {
        let owner = stream("work", "messages");
        assert!(
            store
                .put_blob(&owner, &key("m1"), "text/plain", &mut Broken(0))
                .is_err()
        );
        let of_the_start =
            "blob_sha256_ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert!(is_gone(store, &BlobId::parse(of_the_start).unwrap()));
    });
}

#[test]
fn removing_a_connection_takes_the_blobs_nobody_else_refers_to() {
    on_every_mailbox(|store| {
        add_mail(store, "home");
        let own = store.put_bytes("m1", b"own");
        let shared = store.put_bytes("m1", b"shared");
        put_bytes(store, "home", &key("m1"), b"shared");
        let removed = store.remove_connection(&connection("work")).unwrap();
        assert_eq!(removed.blobs, 1);
        assert!(is_gone(store, &own));
        assert_eq!(content(store, &shared), b"shared");
        let (_, keys) = store
            .blob(&stream("home", "messages"), &shared)
            .unwrap()
            .unwrap();
        assert_eq!(keys, [key("m1")]);
    });
}

#[test]
fn a_purge_takes_the_blobs_of_deleted_records() {
    on_every_mailbox(|store| {
        store.put(vec![message("m1", "", ""), message("m2", "", "")]);
        let own = store.put_bytes("m1", b"own");
        let shared = store.put_bytes("m1", b"shared");
        store.put_bytes("m2", b"shared");
        store.put(vec![delete("messages", "m1")]);
        assert_eq!(content(store, &own), b"own");
        let purged = store.purge().unwrap();
        assert_eq!((purged.tombstones, purged.blobs), (1, 1));
        assert!(is_gone(store, &own));
        let (_, keys) = store
            .blob(&stream("work", "messages"), &shared)
            .unwrap()
            .unwrap();
        assert_eq!(keys, [key("m2")]);
    });
}

/// A source during whose last byte something else happens.
struct Meanwhile<F: FnMut()>(&'static [u8], F);

impl<F: FnMut()> Read for Meanwhile<F> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.0.is_empty() {
            (self.1)();
        }
        self.0.read(buffer)
    }
}

fn blob_files(folder: &Path) -> Vec<PathBuf> {
    fn files(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files(&path, found);
            } else {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    files(&folder.join("blobs"), &mut found);
    found
}

#[test]
fn a_blob_for_a_connection_that_is_removed_meanwhile_is_refused_and_leaves_nothing() {
    on_every_folder(|folder, store| {
        add_mail(store, "work");
        let owner = stream("work", "messages");
        let mut source = Meanwhile(b"abc", || {
            store.remove_connection(&connection("work")).unwrap();
        });
        let refused = store.put_blob(&owner, &key("m1"), "text/plain", &mut source);
        let error = refused.unwrap_err();
        assert!(matches!(error, StoreError::UnknownConnection(_)), "{error}");
        assert_eq!(blob_files(folder), Vec::<PathBuf>::new());
    });
}

#[test]
fn bytes_that_come_again_while_their_blob_is_purged_are_kept() {
    on_every_folder(|folder, store| {
        add_mail(store, "work");
        // So many that removing them takes a while, in which the bytes come again.
        let many = || (0..1_500).map(|at| format!("gone{at}"));
        for round in 0..12 {
            let bytes = format!("blob {round}");
            let written = many().map(|key| message(&key, "", "")).collect();
            store.put(written);
            let id = store.put_bytes("gone0", bytes.as_bytes());
            let deleted = many().map(|key| delete("messages", &key)).collect();
            store.put(deleted);
            store.settle_index().unwrap();
            let start = Barrier::new(2);
            thread::scope(|threads| {
                threads.spawn(|| {
                    start.wait();
                    store.purge().unwrap();
                });
                start.wait();
                thread::sleep(Duration::from_millis(round));
                store.put_bytes("kept", bytes.as_bytes());
            });
            assert_eq!(content(store, &id), bytes.as_bytes(), "round {round}");
        }
        assert_eq!(blob_files(folder).len(), 12);
    });
}

#[test]
fn what_a_killed_process_left_of_a_blob_is_cleared_away_or_put_in_place() {
    let (folder, store) = mailbox();
    let id = store.put_bytes("m1", b"bound");
    drop(store);
    let blobs = folder.path().join("blobs");
    let settled = blob_files(folder.path()).pop().unwrap();
    // Killed while the bytes came in; before the binding held; after it held.
    fs::write(blobs.join("arriving-x1"), "half of it").unwrap();
    let unbound = BlobId::from_sha256([7; 32]);
    fs::write(blobs.join(format!("arrived-{}", unbound.hex())), "unbound").unwrap();
    fs::rename(&settled, blobs.join(format!("arrived-{}", id.hex()))).unwrap();
    let store = open(folder.path());
    assert_eq!(blob_files(folder.path()), [settled]);
    assert_eq!(content(&store, &id), b"bound");
    assert!(is_gone(&store, &unbound));
}

#[test]
fn a_purge_takes_files_that_nothing_refers_to_and_leaves_what_is_not_ours() {
    let (folder, store) = mailbox();
    let id = store.put_bytes("m1", b"bound");
    let settled = blob_files(folder.path()).pop().unwrap();
    let orphan = settled.with_file_name("0".repeat(62));
    let foreign = settled.with_file_name("notes.txt");
    fs::write(&orphan, "orphan").unwrap();
    fs::write(&foreign, "foreign").unwrap();
    store.purge().unwrap();
    assert_eq!(content(&store, &id), b"bound");
    assert!(!orphan.exists() && foreign.exists());
}

#[test]
fn a_file_that_was_cut_short_is_whole_again_when_its_bytes_come_again() {
    on_every_folder(|folder, store| {
        add_mail(store, "work");
        let id = store.put_bytes("m1", b"all of it");
        fs::write(blob_files(folder).pop().unwrap(), "all").unwrap();
        store.put_bytes("m1", b"all of it");
        assert_eq!(content(store, &id), b"all of it");
    });
}

// TR-39: the same bytes sent again were taken for those that lay there, because they had the same size.
#[test]
fn a_damaged_blob_is_mended_by_its_bytes() {
    on_every_folder(|folder, store| {
        add_mail(store, "work");
        let bytes: Vec<u8> = (0..50_000_u32).flat_map(u32::to_le_bytes).collect();
        let id = store.put_bytes("m1", &bytes);
        let path = blob_files(folder).pop().unwrap();
        let is_whole = || {
            let mut read = Vec::new();
            let end = store.open_blob(&id).unwrap().read_to_end(&mut read);
            end.is_ok() && read == bytes
        };
        let mut changed = bytes.clone();
        changed[70_000] ^= 1;
        let longer = [&bytes[..], b"more"].concat();
        for damaged in [&changed[..], &bytes[..100], &longer, b""] {
            fs::write(&path, damaged).unwrap();
            assert!(!is_whole());
            assert_eq!(store.put_bytes("m1", &bytes), id);
            assert!(is_whole());
            let found = store.inspect(Depth::Thorough).unwrap();
            assert_eq!(found.damaged_blobs, []);
        }
        // What is whole stays the file it is.
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        store.put_bytes("m1", &bytes);
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
        assert_eq!(blob_files(folder), [path]);
    });
}
