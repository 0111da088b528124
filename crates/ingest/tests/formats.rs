//! Every known export, by one set of rules: recognised wherever it stands, counted right, unchanged when it comes again, brought up
//! to date by a newer one, and never a reason to panic.

use crate::archives;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::memory::{Memory, NOW, connection};
use contract::id::{ConnectionId, FieldName};
use contract::json::RecordBody;
use ingest::container::{Contents, Limits, Member, walk};
use ingest::{BatchLimits, Companions, Export, FileContents, Format, Import, ImportReport, Input};
use serde::Deserialize;
use serde_json::Value;
use store::catalog::{Catalog as _, NewConnection};
use store::records::{Change, ChangeOp, Records};
use store::search::{Scope, Search as _, SearchRequest};
use store::{EmbeddedStore, OpenOptions, StreamRef};
use tempfile::TempDir;
use text::Expression;

/// An export, as it lies in the folder `exports/` of its name, and what must come of it.
#[derive(Debug, Deserialize)]
pub(crate) struct Case {
    pub(crate) export: String,
    /// Records by stream.
    records: BTreeMap<String, usize>,
    #[serde(default)]
    rejected: u64,
    /// Files that belong to it and are left.
    #[serde(default)]
    left: usize,
    /// Records with a value that they must have: stream, key, member, value.
    told: Vec<(String, String, String, Value)>,
    /// How many records the newer export, in `exports/newer/`, adds and updates.
    newer: (u64, u64),
    /// Whether the name helps to tell it.
    #[serde(default)]
    by_name: bool,
}

impl Case {
    pub(crate) fn export(&self) -> Export {
        Export::parse(&self.export).unwrap()
    }

    pub(crate) fn path(&self) -> PathBuf {
        fixture(&self.export)
    }
}

pub(crate) fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("exports/cases.json")).unwrap()
}

pub(crate) fn fixture(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/exports")
        .join(folder)
}

/// The files of a fixture, with their paths inside it.
fn files_of(folder: &str) -> Vec<(String, Vec<u8>)> {
    let root = fixture(folder);
    let contents = walk(&root, Limits::default()).unwrap().unwrap();
    let files = contents.members.iter();
    files
        .map(|member| {
            let mut bytes = Vec::new();
            member.open().unwrap().read_to_end(&mut bytes).unwrap();
            let path = member.path().strip_prefix(&format!("{}/", root.display()));
            (path.unwrap().to_owned(), bytes)
        })
        .collect()
}

fn input(member: &Member, bytes: Option<&[u8]>) -> Input {
    let file_name = member.path().rsplit('/').next().unwrap();
    let content: Box<dyn Read> = match bytes {
        Some(bytes) => Box::new(Cursor::new(bytes.to_vec())),
        None => member.open().unwrap(),
    };
    let input = Input::from_file(member.path(), file_name, content).unwrap();
    input.standing_inside(Some(member.inside()))
}

/// What the members of a container are: those of the export, those left, and others.
pub(crate) fn sorted(export: Export, contents: &Contents) -> (Vec<&Member>, usize, Vec<&str>) {
    let (mut taken, mut left, mut others) = (Vec::new(), 0, Vec::new());
    for member in &contents.members {
        match input(member, None).contents() {
            FileContents::Format {
                format: Format::Export(found),
                rank,
            } if *found == export => {
                taken.push((*rank, member));
            }
            FileContents::Left(_) => left += 1,
            _ => others.push(member.path()),
        }
    }
    taken.sort_by_key(|(rank, _)| *rank);
    let taken = taken.into_iter().map(|(_, member)| member);
    (taken.collect(), left, others)
}

pub(crate) fn import(store: &Memory, export: Export, files: &[&Member]) -> ImportReport {
    let connection = connection();
    let import = Import::new(store, &connection, BatchLimits::default());
    let mut import = import.comparing_ages(&store.declaration, NOW);
    let companions = Companions::default();
    let existing: Option<(&dyn Records, &ConnectionId)> = Some((store, &connection));
    let acceptor = store
        .acceptor()
        .with_readable_keys(export, &store.declaration, existing);
    for member in files {
        let mut importer = export.importer(input(member, None), &acceptor, &companions);
        import.run(importer.as_mut(), None, &mut |_| {}).unwrap();
    }
    import.finish(NOW).unwrap();
    import.into_report()
}

fn import_path(store: &Memory, case: &Case, path: &Path) -> ImportReport {
    let contents = walk(path, Limits::default()).unwrap().unwrap();
    assert!(contents.skipped.is_empty(), "{}", case.export);
    let (files, left, others) = sorted(case.export(), &contents);
    assert_eq!(left, case.left, "{}", case.export);
    let harmless = [
        "user.json",
        "readme.txt",
        "package.json",
        "data.bin",
        "diary.txt",
    ];
    for other in others {
        assert!(
            harmless.iter().any(|name| other.ends_with(name)),
            "{}: {other}",
            case.export
        );
    }
    import(store, case.export(), &files)
}

fn counts(store: &Memory) -> BTreeMap<String, usize> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (stream, _) in store.records.borrow().keys() {
        *counts.entry(stream.to_string()).or_default() += 1;
    }
    counts
}

#[test]
fn every_export_is_known_and_has_a_case() {
    for export in Export::ALL {
        assert!(
            cases().iter().any(|case| case.export() == *export),
            "{export:?}"
        );
        assert!(!export.origin().is_empty() && !export.contents().is_empty());
    }
}

#[test]
fn records_are_counted_right_and_say_what_the_export_says() {
    let mut wrong = Vec::new();
    for case in &cases() {
        let store = Memory::with_export(case.export());
        let report = import_path(&store, case, &case.path());
        assert_eq!(
            counts(&store),
            case.records,
            "{}: {:?}",
            case.export,
            report.rejections
        );
        assert_eq!(
            report.rejected, case.rejected,
            "{}: {:?}",
            case.export, report.rejections
        );
        for (stream, key, member, value) in &case.told {
            let body = store.body(stream, key);
            let keys: Vec<_> = store
                .records
                .borrow()
                .keys()
                .map(|(_, key)| key.to_string())
                .collect();
            let Some(body) = body else {
                wrong.push(format!("{}: no {key} in {keys:?}", case.export));
                continue;
            };
            let record: Value = serde_json::from_str(&body).unwrap();
            if record[member] != *value {
                wrong.push(format!(
                    "{} {key}: {member} is {}",
                    case.export, record[member]
                ));
            }
        }
        for key in store.records.borrow().keys().map(|(_, key)| key.as_str()) {
            assert!(contract::segment::guard(key).is_ok(), "{key}");
            assert!(key.chars().count() <= 64, "{key}");
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_same_comes_of_archives_and_of_folders_of_other_things() {
    for case in &cases() {
        let plain = Memory::with_export(case.export());
        import_path(&plain, case, &case.path());
        let files = files_of(&case.export);
        let named: Vec<(&str, &[u8])> = files
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
            .collect();
        let folder = TempDir::new().unwrap();
        // The name of the folder is part of what notes are called.
        let tape = archives::gzip(&archives::plain_tar(&named));
        for (name, bytes) in [("zip", archives::zip(&named)), ("tgz", tape)] {
            let path = folder.path().join(format!("{}.{name}", case.export));
            fs::write(&path, bytes).unwrap();
            let store = Memory::with_export(case.export());
            import_path(&store, case, &path);
            assert_eq!(
                *store.records.borrow(),
                *plain.records.borrow(),
                "{} {name}",
                case.export
            );
        }
        let mixed = folder.path().join("mixed");
        for (name, bytes) in named.iter().copied().chain([
            ("readme.txt", b"Dear diary".as_slice()),
            ("package.json", b"{\"name\": \"x\"}"),
            ("data.bin", &[0, 159, 146, 150]),
            ("diary.txt", b"[1] From: nobody"),
        ]) {
            let path = mixed.join(&case.export).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let store = Memory::with_export(case.export());
        import_path(&store, case, &mixed);
        assert_eq!(counts(&store), case.records, "{}", case.export);
    }
}

#[test]
fn a_wrong_name_does_not_matter_where_the_content_tells() {
    for case in cases().iter().filter(|case| !case.by_name) {
        let contents = walk(&case.path(), Limits::default()).unwrap().unwrap();
        let (files, ..) = sorted(case.export(), &contents);
        assert!(!files.is_empty(), "{}", case.export);
        for file in files {
            for name in ["x", "download (1).csv", "data.jsonl"] {
                let content = file.open().unwrap();
                let input = Input::from_file(name, name, content).unwrap();
                assert_eq!(
                    input.format().unwrap(),
                    Format::Export(case.export()),
                    "{}",
                    file.path()
                );
            }
        }
    }
}

#[test]
fn the_same_again_changes_nothing_and_a_newer_one_adds_and_updates() {
    for case in &cases() {
        let store = Memory::with_export(case.export());
        import_path(&store, case, &case.path());
        let before = store.records.borrow().clone();
        let again = import_path(&store, case, &case.path());
        assert_eq!((again.added, again.updated), (0, 0), "{}", case.export);
        assert_eq!(before, *store.records.borrow());
        let contents = walk(
            &fixture(&format!("newer/{}", case.export)),
            Limits::default(),
        );
        let contents = contents.unwrap().unwrap();
        let (files, ..) = sorted(case.export(), &contents);
        let newer = import(&store, case.export(), &files);
        assert_eq!((newer.added, newer.updated), case.newer, "{}", case.export);
    }
}

/// A word of a record's searched text by which it must be found: the longest one.
fn telling_word(body: &RecordBody, fields: &[FieldName]) -> Option<String> {
    let texts = fields
        .iter()
        .filter_map(|field| body.searched_text(field.as_str()));
    let words = texts.flat_map(|text| {
        let words = text.split(|c: char| !c.is_alphanumeric());
        words.map(str::to_owned).collect::<Vec<_>>()
    });
    words
        .filter(|word| (3..40).contains(&word.chars().count()))
        .max_by_key(|word| word.chars().count())
}

#[test]
fn every_record_with_a_text_is_found_by_search() {
    for case in &cases() {
        let memory = Memory::with_export(case.export());
        import_path(&memory, case, &case.path());
        let folder = TempDir::new().unwrap();
        let options = OpenOptions::new("a test", Arc::new(NOW));
        let store = EmbeddedStore::open(folder.path(), options).unwrap();
        store.declare(&memory.declaration).unwrap();
        let added = store.add_connection(NewConnection {
            connector: memory.declaration.connector_key().clone(),
            name: "A test".to_owned(),
            id: Some(connection()),
        });
        added.unwrap();
        let mut asked = Vec::new();
        let mut changes = Vec::new();
        for ((stream, key), (emitted_at, body)) in memory.records.borrow().iter() {
            let body = RecordBody::parse(body.clone()).unwrap();
            let declared = memory.declaration.stream(stream.as_str()).unwrap();
            let fields = declared.query.lexical_fields.clone();
            if let Some(word) = telling_word(&body, &fields) {
                asked.push((stream.clone(), key.clone(), fields, word));
            }
            changes.push(Change {
                stream: stream.clone(),
                key: key.clone(),
                emitted_at: emitted_at.clone(),
                op: ChangeOp::Upsert(body),
            });
        }
        store.write(&connection(), changes).unwrap();
        assert!(!asked.is_empty(), "{}: nothing is searched", case.export);
        for (stream, key, fields, word) in asked {
            let stream = StreamRef {
                connection: connection(),
                stream,
            };
            let answer = store.search(&SearchRequest {
                expression: Expression::parse_all(&word),
                scopes: vec![Scope::whole(stream, fields)],
                limit: 100,
                ..SearchRequest::default()
            });
            let hits = answer.unwrap().hits;
            let is_found = hits.iter().any(|hit| hit.record.key == key);
            assert!(is_found, "{}: {key} by {word}", case.export);
        }
    }
}

/// Imports whatever comes, and does not mind if it cannot be read.
pub(crate) fn import_bytes(case: &Case, member: &Member, bytes: &[u8]) -> Memory {
    let store = Memory::with_export(case.export());
    let acceptor = store.acceptor();
    let companions = Companions::default();
    let connection = connection();
    let mut import = Import::new(&store, &connection, BatchLimits::default());
    let file_name = member.path().rsplit('/').next().unwrap();
    let format = Format::Export(case.export());
    let content = Cursor::new(bytes.to_vec());
    if let Ok(input) = Input::of_format(member.path(), file_name, format, content) {
        let mut importer = case.export().importer(input, &acceptor, &companions);
        let _ = import.run(importer.as_mut(), None, &mut |_| {});
    }
    drop(acceptor);
    store
}

#[test]
fn an_export_that_is_cut_keeps_what_stands_before() {
    for case in &cases() {
        let contents = walk(&case.path(), Limits::default()).unwrap().unwrap();
        for member in sorted(case.export(), &contents).0 {
            let mut bytes = Vec::new();
            member.open().unwrap().read_to_end(&mut bytes).unwrap();
            let step = (bytes.len() / 40).max(1);
            for cut in (0..bytes.len()).step_by(step) {
                import_bytes(case, member, &bytes[..cut]);
            }
        }
    }
}

/// Imports a table, and gives what is stored with the lines that were refused.
fn import_table(export: Export, table: Vec<u8>) -> (Memory, Vec<(u64, String)>) {
    let store = Memory::with_export(export);
    let (acceptor, companions) = (store.acceptor(), Companions::default());
    let connection = connection();
    let mut import = Import::new(&store, &connection, BatchLimits::default());
    let input = Input::from_file("table.csv", "table.csv", Cursor::new(table)).unwrap();
    assert_eq!(input.format().unwrap(), Format::Export(export));
    let mut importer = export.importer(input, &acceptor, &companions);
    import.run(importer.as_mut(), None, &mut |_| {}).unwrap();
    let report = import.into_report();
    drop(importer);
    drop(acceptor);
    let refused = report.rejections.into_iter();
    (store, refused.map(|one| (one.line, one.message)).collect())
}

#[test]
fn a_row_that_cannot_be_read_is_named_and_the_others_are_taken() {
    let table = "Notes:\n\nFirst Name,Last Name,URL,Connected On\nNoor,,https://l.example/noor,05 Mar 2024\n\"Ida\" L,,,05 Mar 2024\n\
        Zoe,,https://l.example/zoe,05 Mar 2024\n\"open,,,\nlost,,,\n";
    let (store, refused) = import_table(Export::LINKEDIN, table.as_bytes().to_vec());
    assert_eq!(store.records_of("people").len(), 2);
    assert_eq!([refused[0].0, refused[1].0], [5, 7], "{refused:?}");
    assert!(
        refused[0]
            .1
            .contains("goes on after its closing quote in line 5")
    );
    assert!(refused[1].1.contains("opened in line 7 is never closed"));
}

#[test]
fn a_table_may_be_larger_than_what_is_held_of_a_file() {
    let mut table = b"id,permalink,date,ip,subreddit,gildings,title,url,body\n".to_vec();
    let body = "boat ".repeat((1 << 20) / 5);
    for number in 0..51 {
        let row = format!(
            "p{number},https://www.reddit.com/p{number},2024-03-05 10:00:00 UTC,,boats,0,Title,,{body}\n"
        );
        table.extend(row.into_bytes());
    }
    let (store, refused) = import_table(Export::REDDIT, table);
    assert_eq!(store.records_of("posts").len(), 51, "{refused:?}");
}
