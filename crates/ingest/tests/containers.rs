//! What a walk through a folder or an archive lists, opens and leaves.

use std::fs;
use std::io::Read;
use std::path::Path;

use crate::archives::{Packed, gzip, plain_tar, tar, zip, zip_of};
use ingest::container::{Contents, Limits, Member, SkipReason, walk};
use proptest::prelude::*;
use tempfile::TempDir;

fn walk_bytes(name: &str, bytes: &[u8], limits: Limits) -> Option<Contents> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    let mut contents = walk(&path, limits).unwrap()?;
    let root = format!("{}/", folder.path().display());
    for skipped in &mut contents.skipped {
        skipped.path = skipped.path.replace(&root, "");
    }
    // What is open stays readable, though the folder is gone.
    Some(contents)
}

fn read(member: &Member) -> std::io::Result<String> {
    let mut text = String::new();
    member.open()?.read_to_string(&mut text)?;
    Ok(text)
}

fn listed(contents: &Contents) -> Vec<(String, String)> {
    let members = contents.members.iter();
    members
        .map(|member| (member.inside().to_owned(), read(member).unwrap()))
        .collect()
}

fn skipped(contents: &Contents) -> Vec<(&str, SkipReason)> {
    let skipped = contents.skipped.iter();
    skipped.map(|one| (one.path.as_str(), one.why)).collect()
}

const FILES: [(&str, &[u8]); 3] = [
    ("a/one.txt", b"one"),
    ("a/b/two.txt", b"two two two two two two two two"),
    ("a/empty", b""),
];

fn expected() -> Vec<(String, String)> {
    let files = FILES.iter();
    files
        .map(|(name, bytes)| {
            (
                (*name).to_owned(),
                String::from_utf8(bytes.to_vec()).unwrap(),
            )
        })
        .collect()
}

#[test]
fn a_folder_and_every_archive_of_it_hold_the_same() {
    let every = [Packed::Stored, Packed::Deflated, Packed::Zstd];
    let mixed: Vec<_> = FILES
        .iter()
        .zip(every)
        .map(|((name, bytes), packed)| (*name, *bytes, packed))
        .collect();
    let tape = plain_tar(&FILES);
    for (name, bytes) in [
        ("x.zip", zip_of(&mixed)),
        ("misnamed", zip(&FILES)),
        ("x.tar", tape.clone()),
        ("x.tgz", gzip(&tape)),
        ("x.tar.zst", zstd::encode_all(&tape[..], 1).unwrap()),
    ] {
        let contents = walk_bytes(name, &bytes, Limits::default()).unwrap();
        assert_eq!(listed(&contents), expected(), "{name}");
        assert_eq!(skipped(&contents), [], "{name}");
        // In any order, and again.
        for member in contents.members.iter().rev() {
            read(member).unwrap();
        }
    }
    let folder = TempDir::new().unwrap();
    for (name, bytes) in FILES {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let contents = walk(&folder.path().join("a"), Limits::default()).unwrap();
    let mut found = listed(&contents.unwrap());
    found.sort();
    let mut expected = expected();
    expected.sort();
    assert_eq!(found, expected);
    assert!(walk_bytes("plain.txt", b"no archive", Limits::default()).is_none());
    assert!(walk_bytes("plain.gz", &gzip(b"no tape"), Limits::default()).is_none());
}

#[test]
fn an_archive_without_a_folder_of_its_own_counts_as_one() {
    let contents = walk_bytes(
        "vault.zip",
        &zip(&[("x.md", b"1"), ("y/z.md", b"2")]),
        Limits::default(),
    );
    let inside: Vec<String> = listed(&contents.unwrap())
        .into_iter()
        .map(|one| one.0)
        .collect();
    assert_eq!(inside, ["vault/x.md", "vault/y/z.md"]);
}

#[test]
fn members_that_must_not_be_read_are_named_and_the_others_read() {
    let zeros = vec![0; 2_000_000];
    let archive = zip_of(&[
        ("../out.txt", b"x", Packed::Stored),
        ("/etc/passwd", b"x", Packed::Stored),
        ("C:\\x.txt", b"x", Packed::Stored),
        ("a\\..\\..\\b.txt", b"x", Packed::Stored),
        ("same.txt", b"first", Packed::Stored),
        ("same.txt", b"second", Packed::Stored),
        ("locked.txt", b"x", Packed::Encrypted),
        ("odd.txt", b"x", Packed::Unknown),
        ("bomb.txt", &zeros, Packed::Deflated),
        ("__MACOSX/._x", b"x", Packed::Stored),
        ("good.txt", b"good", Packed::Deflated),
    ]);
    let limits = Limits {
        ratio_from: 1_000_000,
        ..Limits::default()
    };
    let contents = walk_bytes("x.zip", &archive, limits).unwrap();
    let texts: Vec<String> = listed(&contents).into_iter().map(|one| one.1).collect();
    assert_eq!(texts, ["first", "good"]);
    assert_eq!(
        skipped(&contents),
        [
            ("x.zip/../out.txt", SkipReason::UnsafeName),
            ("x.zip//etc/passwd", SkipReason::UnsafeName),
            ("x.zip/C:/x.txt", SkipReason::UnsafeName),
            ("x.zip/a/../../b.txt", SkipReason::UnsafeName),
            ("x.zip/same.txt", SkipReason::Duplicate),
            ("x.zip/locked.txt", SkipReason::Encrypted),
            ("x.zip/odd.txt", SkipReason::UnknownMethod),
            ("x.zip/bomb.txt", SkipReason::TooLarge),
            ("x.zip/__MACOSX/._x", SkipReason::Hidden),
        ]
    );
    let tape = tar(&[
        ("link", b"", b'2'),
        ("hard", b"", b'1'),
        ("../up", b"x", b'0'),
        ("ok", b"ok", b'0'),
    ]);
    let contents = walk_bytes("x.tar", &tape, Limits::default()).unwrap();
    assert_eq!(listed(&contents), [("x/ok".to_owned(), "ok".to_owned())]);
    assert_eq!(
        skipped(&contents),
        [
            ("x.tar/link", SkipReason::Link),
            ("x.tar/hard", SkipReason::Link),
            ("x.tar/../up", SkipReason::UnsafeName),
        ]
    );
}

#[test]
fn long_names_of_tapes_are_read_and_bounded() {
    let long = format!("{}/end.txt", "d".repeat(150));
    let attributes = format!("{} path={long}\n", long.len() + 10);
    let endless = vec![b'n'; 200_000];
    let tape = tar(&[
        ("././@LongLink", long.as_bytes(), b'L'),
        ("short", b"gnu", b'0'),
        ("x", attributes.as_bytes(), b'x'),
        ("short", b"pax", b'0'),
        ("././@LongLink", &endless, b'L'),
        ("short", b"cut", b'0'),
    ]);
    let contents = walk_bytes("x.tar", &tape, Limits::default()).unwrap();
    let texts: Vec<String> = listed(&contents).into_iter().map(|one| one.1).collect();
    assert_eq!(texts, ["gnu", "cut"]);
    assert_eq!(contents.skipped[0].why, SkipReason::Duplicate);
}

#[test]
fn what_is_broken_is_told_when_it_is_read_and_harms_nothing_else() {
    let mut archive = zip_of(&[
        ("bad.txt", b"the bytes of the first", Packed::Stored),
        ("good.txt", b"good", Packed::Stored),
    ]);
    let at = archive
        .windows(5)
        .position(|five| five == b"first")
        .unwrap();
    archive[at] = b'X';
    let contents = walk_bytes("x.zip", &archive, Limits::default()).unwrap();
    assert!(read(&contents.members[0]).is_err());
    assert_eq!(read(&contents.members[1]).unwrap(), "good");
    let tape = plain_tar(&[("one", b"1"), ("two", &[b'2'; 5_000])]);
    for (name, bytes) in [
        ("x.tar", tape[..2_500].to_vec()),
        ("x.tgz", {
            let packed = gzip(&tape);
            packed[..packed.len() - 30].to_vec()
        }),
    ] {
        let contents = walk_bytes(name, &bytes, Limits::default()).unwrap();
        let why: Vec<SkipReason> = contents.skipped.iter().map(|one| one.why).collect();
        assert_eq!(why, [SkipReason::Broken], "{name}");
        assert_eq!(read(&contents.members[0]).unwrap(), "1", "{name}");
    }
    let folder = TempDir::new().unwrap();
    let cut = folder.path().join("cut.zip");
    fs::write(&cut, &zip(&FILES)[..80]).unwrap();
    assert!(walk(&cut, Limits::default()).is_err());
    let contents = walk(folder.path(), Limits::default()).unwrap().unwrap();
    assert_eq!(contents.skipped[0].why, SkipReason::Broken);
}

#[test]
fn archives_are_opened_inside_archives_once() {
    let inner = zip(&[("chat.txt", b"hello")]);
    let middle = zip(&[("inner.zip", &inner)]);
    let stored = zip_of(&[
        ("middle.zip", &middle, Packed::Stored),
        ("in.tgz", &gzip(&plain_tar(&FILES)), Packed::Deflated),
    ]);
    let contents = walk_bytes("outer.zip", &stored, Limits::default()).unwrap();
    assert_eq!(listed(&contents), expected());
    assert_eq!(
        skipped(&contents),
        [("outer.zip/middle.zip/inner.zip", SkipReason::NestedTwice)]
    );
    let small = Limits {
        nested_bytes: 10,
        ..Limits::default()
    };
    let contents = walk_bytes("outer.zip", &zip(&[("inner.zip", &inner)]), small).unwrap();
    assert_eq!(
        skipped(&contents),
        [("outer.zip/inner.zip", SkipReason::NestedTooLarge)]
    );
}

#[test]
fn no_container_is_larger_or_deeper_than_is_read() {
    let few = Limits {
        members: 2,
        member_bytes: 20,
        depth: 1,
        ..Limits::default()
    };
    let contents = walk_bytes("x.zip", &zip(&FILES), few).unwrap();
    assert_eq!(
        skipped(&contents),
        [("x.zip/a/b/two.txt", SkipReason::TooLarge)]
    );
    let four = zip(&[("1", b"1"), ("2", b"2"), ("3", b"3"), ("4", b"4")]);
    let contents = walk_bytes("x.zip", &four, few).unwrap();
    assert_eq!(contents.members.len(), 2);
    assert_eq!(skipped(&contents), [("x.zip/3", SkipReason::TooMany)]);
    let tape = gzip(&plain_tar(&[("zeros", &vec![0; 3_000_000])]));
    let tight = Limits {
        ratio: 10,
        ratio_from: 1_000,
        ..Limits::default()
    };
    let contents = walk_bytes("x.tgz", &tape, tight).unwrap();
    assert!(
        contents
            .skipped
            .iter()
            .any(|one| one.why == SkipReason::TooLarge)
    );
    let folder = TempDir::new().unwrap();
    fs::create_dir_all(folder.path().join("a/b/c")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("/", folder.path().join("root")).unwrap();
    let contents = walk(folder.path(), few).unwrap().unwrap();
    let mut why: Vec<SkipReason> = contents.skipped.iter().map(|one| one.why).collect();
    why.sort_by_key(|why| *why as u8);
    assert_eq!(why, [SkipReason::Link, SkipReason::TooDeep]);
}

/// Members that use the bytes of others make small archives immense.
#[test]
fn members_that_share_bytes_are_read_once() {
    let one = zip_of(&[
        ("one", b"the same bytes", Packed::Stored),
        ("two", b"the same bytes", Packed::Stored),
    ]);
    let directory = one
        .windows(4)
        .rposition(|four| four == b"PK\x01\x02")
        .unwrap();
    let mut shared = one;
    shared[directory + 42..directory + 46].copy_from_slice(&[0; 4]);
    let contents = walk_bytes("x.zip", &shared, Limits::default()).unwrap();
    assert_eq!(skipped(&contents), [("x.zip/two", SkipReason::Overlap)]);
}

fn walk_quietly(path: &Path) {
    let Ok(Some(contents)) = walk(path, Limits::default()) else {
        return;
    };
    for member in &contents.members {
        if let Ok(file) = member.open() {
            let _ = std::io::copy(&mut file.take(1_000_000), &mut std::io::sink());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_change_of_an_archive_makes_a_walk_panic(
        which in 0..4_usize,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let tape = plain_tar(&FILES);
        let mut bytes = match which {
            0 => zip(&FILES),
            1 => zip_of(&[("in.zip", &zip(&FILES), Packed::Stored)]),
            2 => gzip(&tape),
            _ => tape,
        };
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("x.zip");
        fs::write(&path, &bytes).unwrap();
        walk_quietly(&path);
        prop_assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[test]
fn an_archive_inside_another_is_known_by_what_it_is() {
    let inner = zip(&[("x/_chat.txt", b"hello")]);
    let tape = gzip(&plain_tar(&[("y/two.txt", b"two")]));
    let packed = gzip(b"a packed file is no archive");
    let outer = zip(&[
        ("download", &inner),
        ("part.bin", &tape),
        ("letter.gz", &packed),
        ("letter.txt", b"PK\x03\x04 is how archives begin"),
    ]);
    let contents = walk_bytes("outer", &outer, Limits::default()).unwrap();
    let members = contents.members.iter();
    let names: Vec<&str> = members.map(Member::inside).collect();
    assert_eq!(
        names,
        [
            "x/_chat.txt",
            "y/two.txt",
            "outer/letter.gz",
            "outer/letter.txt"
        ]
    );
    assert_eq!(skipped(&contents), []);
}
