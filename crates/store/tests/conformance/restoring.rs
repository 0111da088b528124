//! A backup becomes a data directory again, or nothing at all.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use contract::id::GrantId;
use store::grants::{Revocable, Revoked};
use store::registry::{Change, EntryKind};
use store::restore::{Restore, RestoreError, Restored};
use store::{EmbeddedStore, Grants, OpenOptions, Registry};
use tar::{EntryType, Header};

use crate::fixture::{
    Work, add_mail, all, approval, backup, grant, message, noon, open, stream, token,
};

const GRANT: &str = "grt_1";

/// A store with records, a blob, a grant with its token, an owner's token, a session, a request and a password.
fn filled(path: &Path) -> EmbeddedStore {
    let store = open(path);
    add_mail(&store, "work");
    let letters = (0..9).map(|at| message(&format!("m{at}"), "tea", "milk"));
    store.put(letters.collect());
    store.put_bytes("m1", b"blob");
    let grant = grant(GRANT, &[("messages", &["work"])]);
    store.approve(&approval(None, vec![grant], 1)).unwrap();
    store.add_owner_token(&token(2)).unwrap();
    for kind in [EntryKind::Session, EntryKind::Request, EntryKind::Password] {
        let put = Change::put(kind, "k", "{}");
        assert!(store.apply(&[put], noon()).unwrap());
    }
    store
}

fn restore(to: &Path, archive: impl Read) -> Result<Restored, RestoreError> {
    restoring(to, false, false).run(archive)
}

fn restoring(to: &Path, without_grants: bool, accept_damage: bool) -> Restore<'_> {
    Restore {
        to,
        options: OpenOptions::new("a test of restoring", Arc::new(noon())),
        without_grants,
        accept_damage,
    }
}

/// What is in a folder, itself included, or nothing where it is not there.
fn held(folder: &Path) -> Option<Vec<String>> {
    let entries = std::fs::read_dir(folder).ok()?;
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<String> = entries
        .map(|entry| name(entry).to_string_lossy().into_owned())
        .collect();
    names.sort();
    Some(names)
}

#[test]
fn a_backup_becomes_a_data_directory_where_there_is_none() {
    // TR-20: into a folder that is empty or not there, whole and looked through.
    let folder = tempfile::tempdir().unwrap();
    let store = filled(&folder.path().join("data"));
    let archive = backup(&store);
    let (absent, empty) = (folder.path().join("a/b"), folder.path().join("empty"));
    std::fs::create_dir(&empty).unwrap();
    for to in [&absent, &empty] {
        let restored = restore(to, archive.as_slice()).unwrap();
        assert_eq!(
            (restored.inspection.records, restored.inspection.blobs),
            (9, 1)
        );
        assert_eq!((restored.live_grants, restored.ended_grants), (1, 0));
        let copy = open(to);
        let place = stream("work", "messages");
        assert_eq!(all(&copy, &place), all(&store, &place));
        assert_eq!(copy.found_sorted("tea").len(), 9);
        assert_eq!(copy.sealing_key().unwrap(), store.sealing_key().unwrap());
        assert_eq!(copy.token_candidates([1; 8]).unwrap().len(), 1);
        drop(copy);
        let again = restore(to, archive.as_slice());
        assert!(
            matches!(again, Err(RestoreError::NotEmpty { .. })),
            "{again:?}"
        );
    }
    // What a restore that was killed has left is no content.
    let left = folder.path().join("left");
    std::fs::create_dir_all(left.join(".restoring-x/blobs")).unwrap();
    restore(&left, archive.as_slice()).unwrap();
    assert!(!left.join(".restoring-x").exists());
}

#[test]
fn without_grants_nobody_can_read_the_copy() {
    // TR-20: grants, tokens, sessions and requests end; what the owner signs in with stays.
    let folder = tempfile::tempdir().unwrap();
    let archive = backup(&filled(&folder.path().join("data")));
    let to = folder.path().join("copy");
    let restored = restoring(&to, true, false).run(archive.as_slice()).unwrap();
    assert_eq!((restored.live_grants, restored.ended_grants), (0, 1));
    let copy = open(&to);
    let id = GrantId::parse(GRANT).unwrap();
    let ended = copy.revoke(Revocable::Grant(&id), noon()).unwrap();
    assert_eq!(ended, Revoked::Already(noon()));
    for number in [1, 2] {
        assert!(copy.token_candidates([number; 8]).unwrap().is_empty());
    }
    let known = |kind| copy.entry(kind, "k", noon()).unwrap().is_some();
    assert!(!known(EntryKind::Session) && !known(EntryKind::Request));
    assert!(known(EntryKind::Password));
}

fn with_member(kind: EntryType, name: &str, content: &[u8]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(content.len() as u64);
    header.set_mode(0o777);
    let bytes = header.as_old_mut();
    bytes.name[..name.len()].copy_from_slice(name.as_bytes());
    if kind.is_symlink() || kind.is_hard_link() {
        header.set_link_name("/etc/passwd").unwrap();
    }
    header.set_cksum();
    archive.append(&header, content).unwrap();
    archive.into_inner().unwrap()
}

#[test]
fn what_is_collected_comes_with_its_state_and_without_logs() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("from");
    let store = filled(&from);
    std::fs::create_dir(from.join("collect")).unwrap();
    for name in [
        "mail.job.json",
        "mail.state.json",
        "mail.log",
        "Odd name.job.json",
    ] {
        std::fs::write(from.join("collect").join(name), "{}").unwrap();
    }
    let archive = backup(&store);
    let to = folder.path().join("to");
    restore(&to, archive.as_slice()).unwrap();
    let collected = std::fs::read_dir(to.join("collect")).unwrap();
    let mut names: Vec<_> = collected.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["mail.job.json", "mail.state.json"]);
}

#[test]
fn what_no_backup_has_is_refused_and_nothing_is_left() {
    // TR-20: names, links, kinds and sizes of a hostile archive.
    let folder = tempfile::tempdir().unwrap();
    let whole = backup(&filled(&folder.path().join("data")));
    let short = whole[..whole.len() / 2].to_vec();
    let blob = format!("blobs/aa/{}", "b".repeat(62));
    let mut twice = with_member(EntryType::Regular, "cursor.key", &[7; 32]);
    twice.truncate(1024);
    twice.extend(&whole);
    let members: [(&str, EntryType, &str, &[u8]); 13] = [
        ("no records", EntryType::Regular, "cursor.key", &[7; 32]),
        ("another name", EntryType::Regular, "records.db-wal", b"x"),
        ("above", EntryType::Regular, "../records.db", b"x"),
        ("from the root", EntryType::Regular, "/tmp/records.db", b"x"),
        ("deeper", EntryType::Regular, "blobs/aa/../../x", b"x"),
        ("a link", EntryType::Symlink, "records.db", b""),
        ("a hard link", EntryType::Link, "cursor.key", b""),
        ("a pipe", EntryType::Fifo, &blob, b""),
        ("a sparse file", EntryType::GNUSparse, &blob, b""),
        (
            "a folder as a file",
            EntryType::Directory,
            "records.db",
            b"",
        ),
        ("a file as a folder", EntryType::Regular, "blobs", b"x"),
        ("a long key", EntryType::Regular, "cursor.key", &[7; 33]),
        ("no database", EntryType::Regular, "records.db", b"hello"),
    ];
    let members = members
        .into_iter()
        .map(|(what, kind, name, content)| (what, with_member(kind, name, content)));
    let whole_files = [
        ("nothing", Vec::new()),
        ("no archive", b"hello".repeat(500)),
        ("a part", short),
        ("twice the same", twice),
    ];
    let before = held(folder.path());
    for (what, archive) in whole_files.into_iter().chain(members) {
        let to = folder.path().join("to");
        let refused = restore(&to, archive.as_slice());
        assert!(refused.is_err(), "{what}");
        assert!(
            !matches!(refused, Err(RestoreError::Store(_))),
            "{what}: {refused:?}"
        );
        assert_eq!(held(folder.path()), before, "{what}");
        std::fs::create_dir(&to).unwrap();
        assert!(restore(&to, archive.as_slice()).is_err(), "{what}");
        assert_eq!(held(&to), Some(Vec::new()), "{what}");
        std::fs::remove_dir(&to).unwrap();
    }
}

#[test]
fn damage_is_found_before_it_is_restored() {
    // TR-20: looked through as `doctor --thorough` does; the owner may want the rest all the same.
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let store = filled(&data);
    let mut archive = backup(&store);
    let at = archive
        .windows(4)
        .rposition(|bytes| bytes == b"blob")
        .unwrap();
    archive[at] = b'B';
    let to = folder.path().join("to");
    let refused = restore(&to, archive.as_slice());
    let Err(RestoreError::Damaged(damages)) = refused else {
        panic!("{refused:?}");
    };
    assert!(damages[0].path.starts_with("blobs"), "{damages:?}");
    assert!(!to.exists());
    let restored = restoring(&to, false, true).run(archive.as_slice()).unwrap();
    assert_eq!(restored.inspection.damaged_blobs, damages);
    assert_eq!(all(&open(&to), &stream("work", "messages")).len(), 9);
}

#[test]
fn a_restored_directory_is_for_its_owner_alone() {
    // TR-20: as one that is made anew.
    use std::os::unix::fs::PermissionsExt as _;
    let (folder, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let archive = backup(&filled(folder.path()));
    let to = place.path().join("restored");
    restore(&to, archive.as_slice()).unwrap();
    let mode = std::fs::metadata(&to).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}
