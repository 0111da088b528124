//! Files that are almost an export: no change of one makes a recogniser or an importer panic, take forever or take all memory.
//!
//! Each export gets a few changed files in every run. `FUZZ_SECONDS=120` goes on for that long with each of them, `FUZZ_EXPORTS=mail,slack` names
//! some, and `FUZZ_SEED` begins elsewhere. A file that fails is kept in the folder for temporary files.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "how long it goes on is said by the environment, and what came of it is for whoever asked"
)]

use std::io::{Cursor, Read};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use contract::declaration::Declaration;
use flate2::read::DeflateDecoder;
use ingest::container::{Limits, walk};
use ingest::{Export, Format, Input, SingerImporter, singer};
use proptest::test_runner::{RngAlgorithm, TestRng};
use rawzip::{CompressionMethod, ZipArchive};
use serde_json::Value;

use crate::archives;
use crate::formats::{Case, cases, import_bytes, sorted};
use crate::memory::Memory;

/// How long one file of a few kilobytes may take; a build without optimisation on a busy machine is slow.
const LONGEST: Duration = Duration::from_secs(30);
const CASES: u32 = 8;

/// What parsers trip over.
const TOKENS: &[&[u8]] = &[
    b"",
    b"\0",
    b"\xff\xfe",
    b"\xc3",
    b"99999999999999999999",
    b"-9223372036854775808",
    b"1e999",
    b"0000-00-00T99:99:99Z",
    b"\"",
    b"\\u0000",
    b"{\"",
    b"]}",
    b"[[[[[[[[[[[[[[[[",
    b"<a><a><a><a>",
    b"&#x110000;",
    b"]]>",
    b"\r\n\r\n",
    b"\n---\n",
    b"null",
    b"=?utf-8?B?",
    b"/../../",
    "\u{202e}\u{200b}\u{1f600}".as_bytes(),
];

/// Random numbers that can be had again.
pub(crate) struct Changes(TestRng);

impl Changes {
    pub(crate) fn new(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Self(TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        use proptest::prelude::Rng as _;
        usize::try_from(self.0.next_u64()).unwrap() % bound.max(1)
    }

    /// Changes a file in a few places.
    pub(crate) fn apply(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(6) {
            let at = self.below(bytes.len() + 1);
            let to = (at + self.below(64)).min(bytes.len());
            match self.below(7) {
                0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                1 => drop(bytes.drain(at..to)),
                2 => bytes.truncate(at),
                3 => {
                    let again = bytes[at..to].repeat(1 + self.below(20));
                    drop(bytes.splice(at..at, again));
                }
                4 => {
                    let long = vec![b"a1 \"[<,;:"[self.below(9)]; 1 << self.below(15)];
                    drop(bytes.splice(at..at, long));
                }
                5 => {
                    let other = self.below(bytes.len() + 1);
                    let part = bytes[other..(other + 200).min(bytes.len())].to_vec();
                    drop(bytes.splice(at..to, part));
                }
                _ => drop(bytes.splice(at..to, TOKENS[self.below(TOKENS.len())].iter().copied())),
            }
        }
    }

    /// Changes a file; of one that is a zip, often what is inside.
    pub(crate) fn apply_inside(&mut self, bytes: &mut Vec<u8>) {
        let parts = unzipped(bytes);
        if parts.is_empty() || self.below(4) == 0 {
            return self.apply(bytes);
        }
        let (mut parts, changed) = (parts, self.below(8));
        let at = changed % parts.len();
        self.apply(&mut parts[at].1);
        let parts: Vec<(&str, &[u8])> = parts
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
            .collect();
        *bytes = archives::zip(&parts);
    }
}

fn unzipped(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut parts = Vec::new();
    let Ok(archive) = ZipArchive::from_slice(bytes) else {
        return parts;
    };
    for entry in archive.entries().filter_map(Result::ok) {
        let name = String::from_utf8_lossy(entry.file_path().as_bytes()).into_owned();
        let Ok(found) = archive.get_entry(entry.wayfinder()) else {
            continue;
        };
        let mut part = found.data().to_vec();
        if entry.compression_method() == CompressionMethod::DEFLATE {
            let packed = std::mem::take(&mut part);
            let _ = DeflateDecoder::new(packed.as_slice()).read_to_end(&mut part);
        }
        parts.push((name, part));
    }
    parts
}

/// Runs cases for as long as was asked for, and says how many there were and how long the longest took.
pub(crate) fn fuzz(
    name: &str,
    mut run: impl FnMut(&mut Changes) -> Vec<u8>,
    check: impl Fn(&[u8]),
) {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|it| it.parse::<u64>().ok())
    };
    let only = std::env::var("FUZZ_EXPORTS").unwrap_or_default();
    if !only.is_empty() && !only.split(',').any(|one| one == name) {
        return;
    }
    let (seconds, first) = (
        number("FUZZ_SECONDS"),
        number("FUZZ_SEED").unwrap_or_default(),
    );
    let began = Instant::now();
    let (mut count, mut slowest) = (0_u32, Duration::ZERO);
    let is_on = |count: u32| match seconds {
        Some(seconds) => began.elapsed() < Duration::from_secs(seconds),
        None => count < CASES,
    };
    while is_on(count) {
        let bytes = run(&mut Changes::new(first + u64::from(count)));
        let one = Instant::now();
        let checked = catch_unwind(AssertUnwindSafe(|| check(&bytes)));
        let took = one.elapsed();
        if checked.is_err() || took > LONGEST {
            let kept =
                std::env::temp_dir().join(format!("fuzz-{name}-{}", first + u64::from(count)));
            std::fs::write(&kept, &bytes).unwrap();
            eprintln!("{name}: {} took {took:?}", kept.display());
            checked.unwrap_or_else(|panic| resume_unwind(panic));
            assert!(took <= LONGEST, "{name}: {}", kept.display());
        }
        slowest = slowest.max(took);
        count += 1;
    }
    if seconds.is_some() {
        eprintln!(
            "{name}: {count} cases, the slowest {slowest:?}, at most {} in memory",
            peak()
        );
    }
}

/// The most memory that the process had.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap_or_default().trim().to_owned()
}

fn fuzz_export(case: &Case) {
    let contents = walk(&case.path(), Limits::default()).unwrap().unwrap();
    let (files, ..) = sorted(case.export(), &contents);
    let originals: Vec<_> = files
        .iter()
        .map(|member| {
            let mut bytes = Vec::new();
            member.open().unwrap().read_to_end(&mut bytes).unwrap();
            bytes
        })
        .collect();
    let at = std::cell::Cell::new(0);
    let change = |changes: &mut Changes| {
        at.set(changes.below(files.len()));
        let mut bytes = originals[at.get()].clone();
        changes.apply_inside(&mut bytes);
        bytes
    };
    fuzz(&case.export, change, |bytes| {
        let member = files[at.get()];
        let head = &bytes[..bytes.len().min(16 * 1024)];
        Export::recognise(head, member.path());
        Export::near_misses(head, member.path());
        let store = import_bytes(case, member, bytes);
        for (_, (_, body)) in store.records.borrow().iter() {
            assert!(serde_json::from_str::<Value>(body).is_ok(), "{body}");
        }
    });
}

#[test]
fn no_change_of_an_export_makes_a_recogniser_or_an_importer_panic() {
    for case in &cases() {
        fuzz_export(case);
    }
}

/// Files that name an account, by what they are called.
const ACCOUNTS: [(&str, &str); 10] = [
    (
        "user.json",
        r#"{"id":"user-1","email":"ida@example.org","username":"ida","discriminator":"0"}"#,
    ),
    (
        "users.json",
        r#"[{"uuid":"a","email_address":"ida@example.org"}]"#,
    ),
    (
        "Boats Slack export x.zip/users.json",
        r#"[{"id":"U1","team_id":"T1"}]"#,
    ),
    (
        "actor.json",
        r#"{"@context":["x"],"id":"https://a.example/users/ida","type":"Person","preferredUsername":"ida"}"#,
    ),
    (
        "account.js",
        r#"window.YTD.account.part0 = [{"account":{"username":"ida"}}]"#,
    ),
    (
        "personal_information.json",
        r#"{"profile_user":[{"string_map_data":{"Username":{"value":"ida"}}}]}"#,
    ),
    (
        "profile_information.json",
        r#"{"profile_v2":{"name":{"full_name":"Zo\u00c3\u00ab"}}}"#,
    ),
    ("Profile.csv", "First Name,Last Name\nIda,\"Lund\"\n"),
    (
        "repositories_000001.json",
        r#"[{"owner":"https://github.com/ida"}]"#,
    ),
    (
        "result.json",
        r#"{"about":"Telegram","personal_information":{"phone_number":"+49 1"},"chats":{"#,
    ),
];

#[test]
fn no_change_of_a_file_that_names_an_account_makes_it_panic() {
    for (name, original) in ACCOUNTS {
        let change = |changes: &mut Changes| {
            let mut bytes = original.as_bytes().to_vec();
            changes.apply(&mut bytes);
            bytes
        };
        fuzz("accounts", change, |bytes| {
            let file_name = name.rsplit('/').next().unwrap();
            let input = Input::from_file(name, file_name, Cursor::new(bytes.to_vec()));
            let account = input.ok().and_then(|input| input.account().cloned());
            assert!(account.is_none_or(|(_, account)| account.chars().count() <= 100));
        });
    }
}

const TAP: &str = r#"{"type":"SCHEMA","stream":"boats","schema":{"properties":{"id":{"type":"integer"},"name":{"type":["null","string"]},"at":{"type":"string","format":"date-time"}}},"key_properties":["id"],"bookmark_properties":["at"]}
{"type":"RECORD","stream":"boats","record":{"id":1,"name":"Keel","at":"2024-03-05T10:00:00Z"},"time_extracted":"2024-03-05T10:00:00Z"}
{"type":"RECORD","stream":"boats","record":{"id":2,"name":null}}
{"type":"STATE","value":{"bookmarks":{"boats":"2024"}}}
"#;

#[test]
fn no_change_of_what_a_tap_prints_makes_it_panic() {
    let change = |changes: &mut Changes| {
        let mut bytes = TAP.as_bytes().to_vec();
        changes.apply(&mut bytes);
        bytes
    };
    let input = |bytes: &[u8]| {
        Input::of_format("tap", "tap", Format::Singer, Cursor::new(bytes.to_vec())).unwrap()
    };
    let whole = singer::scan(input(TAP.as_bytes())).unwrap();
    let declared = |streams: &[(String, Value)]| {
        Declaration::parse(&singer::declaration("tap", "Tap", streams)).ok()
    };
    let whole = declared(&whole.streams).unwrap();
    fuzz("singer", change, |bytes| {
        let scanned = singer::scan(input(bytes));
        let own = scanned.ok().and_then(|output| declared(&output.streams));
        for declaration in own.into_iter().chain([whole.clone()]) {
            let store = Memory::new(declaration);
            let acceptor = store.acceptor();
            let reader = input(bytes).into_reader();
            let mut importer = SingerImporter::new(reader, &acceptor, &store.declaration);
            let _ = store.try_import(&mut importer, "tap");
        }
    });
}
