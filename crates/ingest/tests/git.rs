//! Git repositories as they stand: in folders, beside their files, in archives; and damaged.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use ingest::Export;
use ingest::container::{Limits, walk};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::archives;
use crate::formats::{import, sorted};
use crate::memory::Memory;

/// The files of the repository in `exports/git`, as they lie on the disk.
fn files() -> Vec<(String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exports/git/boat.git");
    let (mut folders, mut files) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let inside = path.strip_prefix(&root).unwrap().to_str().unwrap();
            files.push((inside.to_owned(), fs::read(&path).unwrap()));
        }
    }
    files.sort();
    files
}

/// What the members of a path read as.
fn logs(path: &Path) -> Vec<Result<String, String>> {
    let contents = walk(path, Limits::default()).unwrap().unwrap();
    let read = |member: &ingest::container::Member| {
        let mut log = String::new();
        let mut file = member.open()?;
        file.read_to_string(&mut log).map(|_| log)
    };
    let members = contents.members.iter();
    members
        .map(|member| read(member).map_err(|error| error.to_string()))
        .collect()
}

fn write(folder: &Path, files: &[(String, Vec<u8>)]) -> PathBuf {
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    folder.to_owned()
}

#[test]
fn a_repository_is_one_log_wherever_it_stands() {
    let folder = TempDir::new().unwrap();
    let files = files();
    let at = |name: &str| folder.path().join(name);
    let bare = logs(&write(&at("boat.git"), &files));
    assert_eq!(bare.len(), 1);
    let log = bare[0].clone().unwrap();
    assert_eq!(log.lines().count(), 7);
    assert!(!log.contains("secret"), "{log}");
    write(&at("work/boat/.git"), &files);
    assert_eq!(logs(&at("work")), bare);
    assert_eq!(logs(&at("work/boat/.git")), bare);
    let named: Vec<(String, &[u8])> = files
        .iter()
        .map(|(name, bytes)| {
            (
                format!("repositories/ada/boat.git/{name}"),
                bytes.as_slice(),
            )
        })
        .collect();
    let named: Vec<(&str, &[u8])> = named
        .iter()
        .map(|(name, bytes)| (name.as_str(), *bytes))
        .collect();
    let tape = archives::gzip(&archives::plain_tar(&named));
    for (name, bytes) in [
        ("boat.zip", archives::zip(&named)),
        ("boat.tar", archives::plain_tar(&named)),
        ("boat.tgz", tape),
    ] {
        fs::write(at(name), bytes).unwrap();
        assert_eq!(logs(&at(name)), bare, "{name}");
    }
}

#[test]
fn what_is_missing_is_not_told_and_the_rest_is() {
    let folder = TempDir::new().unwrap();
    // The commit that is not packed refers to one that is.
    let files: Vec<_> = files()
        .into_iter()
        .filter(|(name, _)| !name.starts_with("objects/pack/"))
        .collect();
    let log = logs(&write(&folder.path().join("boat.git"), &files));
    let log = log[0].clone().unwrap();
    assert_eq!(log.lines().count(), 2, "{log}");
    assert!(
        log.contains("Caulk the seams") && log.contains("\"paths\":[]"),
        "{log}"
    );
    // A folder of that name without a repository in it is nothing.
    let empty = write(
        &folder.path().join("other"),
        &[("x.git/readme".to_owned(), Vec::new())],
    );
    assert!(logs(&empty).is_empty());
}

proptest! {
    #[test]
    fn no_change_of_a_repository_makes_it_panic(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..6),
    ) {
        let mut files = files();
        for (file, at, byte, kind) in changes {
            let nth = file.index(files.len());
            let bytes = &mut files[nth].1;
            let at = at.index(bytes.len().max(1));
            match kind {
                0 if at < bytes.len() => bytes[at] = byte,
                1 if at < bytes.len() => drop(bytes.remove(at)),
                _ => bytes.insert(at, byte),
            }
        }
        let folder = TempDir::new().unwrap();
        logs(&write(&folder.path().join("boat.git"), &files));
    }
}

#[test]
fn clones_of_one_repository_are_one_record_also_when_they_come_again() {
    let folder = TempDir::new().unwrap();
    for (clone, url) in [
        ("a", "https://git.example/yard/boat"),
        ("b", "git@git.example:yard/boat.git"),
    ] {
        let mut files = files();
        let config = files.iter_mut().find(|(name, _)| name == "config").unwrap();
        config.1 = format!("[remote \"origin\"]\n\turl = {url}\n").into_bytes();
        write(&folder.path().join(clone).join(".git"), &files);
    }
    let contents = walk(folder.path(), Limits::default()).unwrap().unwrap();
    let (members, ..) = sorted(Export::GIT, &contents);
    assert_eq!(members.len(), 2);
    let store = Memory::with_export(Export::GIT);
    import(&store, Export::GIT, &members);
    let url = store.body("repositories", "yard-boat").unwrap();
    assert!(url.contains("https://git.example/yard/boat"), "{url}");
    let again = import(&store, Export::GIT, &members);
    assert_eq!((again.added, again.updated), (0, 0));
}

#[test]
fn a_repository_that_is_kept_in_another_way_says_so() {
    let folder = TempDir::new().unwrap();
    for (name, config) in [
        ("sha256", "[extensions]\n\tobjectformat = sha256\n"),
        ("reftable", "[extensions]\n\trefStorage = reftable\n"),
    ] {
        let mut files = files();
        let told = files.iter_mut().find(|(name, _)| name == "config").unwrap();
        told.1 = config.as_bytes().to_vec();
        let read = logs(&write(&folder.path().join(name).join(".git"), &files));
        let [Err(why)] = read.as_slice() else {
            panic!("{read:?}");
        };
        assert!(why.contains("not read"), "{why}");
    }
}
