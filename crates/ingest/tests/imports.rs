//! Batches, dry runs, compressed inputs, and what holds for any bytes whatever.

use std::io::Write;

use crate::memory::{self, Memory, connection, stream};
use flate2::Compression;
use flate2::write::GzEncoder;
use ingest::{
    BatchLimits, CsvImporter, Import, ImportError, ImportReport, Importer, Input, JsonlImporter,
    StreamChoice,
};
use proptest::prelude::*;
use store::records::Records;

struct Run<'a> {
    store: &'a Memory,
    limits: BatchLimits,
    dry: bool,
    acknowledged: Vec<u64>,
}

impl<'a> Run<'a> {
    fn new(store: &'a Memory) -> Self {
        Self {
            store,
            limits: BatchLimits::default(),
            dry: false,
            acknowledged: Vec::new(),
        }
    }

    fn import(&mut self, bytes: &[u8], csv: bool) -> (ImportReport, Result<(), ImportError>) {
        let choice = StreamChoice::Unless(stream("notes"));
        let acceptor = self.store.acceptor_for(choice);
        let connection = connection();
        let mut import = if self.dry {
            let existing = Some((self.store as &dyn Records, &connection));
            Import::dry(existing, &self.store.declaration, self.limits)
        } else {
            Import::new(self.store, &connection, self.limits)
        };
        let bytes = std::io::Cursor::new(bytes.to_vec());
        let input = match Input::from_reader("input", bytes) {
            Ok(input) => input,
            Err(error) => return (ImportReport::default(), Err(error)),
        };
        let mut importer: Box<dyn Importer> = if csv {
            Box::new(CsvImporter::new(input.into_reader(), &acceptor))
        } else {
            Box::new(JsonlImporter::new(input.into_reader(), &acceptor))
        };
        let acknowledged = &mut self.acknowledged;
        let outcome = import.run(importer.as_mut(), None, &mut |report| {
            acknowledged.push(report.read);
        });
        (
            import.into_report(),
            outcome.map_err(|stopped| stopped.named("input")),
        )
    }
}

fn lines(count: usize) -> String {
    (0..count)
        .map(|n| format!("{{\"id\":\"{n}\",\"title\":\"note {n}\"}}\n"))
        .collect::<Vec<_>>()
        .concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn batches_end_at_so_many_lines_or_so_many_bytes() {
    let store = Memory::new(memory::declaration());
    let mut run = Run::new(&store);
    run.limits.lines = 4;
    assert_eq!(run.import(lines(10).as_bytes(), false).0.added, 10);
    assert_eq!(run.acknowledged, [4, 8, 10]);

    let mut run = Run::new(&store);
    run.limits.bytes = 50;
    assert_eq!(run.import(lines(4).as_bytes(), false).0.unchanged, 4);
    assert_eq!(run.acknowledged, [2, 4]);
}

#[test]
fn a_failing_store_leaves_a_report_of_what_was_acknowledged() {
    let mut store = Memory::new(memory::declaration());
    store.fails_at = Some(1);
    let mut run = Run::new(&store);
    run.limits.lines = 3;
    let (report, outcome) = run.import(lines(8).as_bytes(), false);
    assert!(matches!(outcome, Err(ImportError::Store(_))));
    assert_eq!((report.read, report.added), (3, 3));
    assert_eq!(store.records.borrow().len(), 3);
}

#[test]
fn gzip_is_told_by_its_bytes_and_may_have_many_members() {
    let store = Memory::new(memory::declaration());
    let mut bytes = gzip(b"{\"id\":\"a\"}\n{\"id\":");
    bytes.extend(gzip(b"\"b\"}\n"));
    let (report, outcome) = Run::new(&store).import(&bytes, false);
    outcome.unwrap();
    assert_eq!((report.read, report.added), (2, 2));
}

#[test]
fn a_truncated_gzip_imports_its_whole_lines_and_then_fails_by_name() {
    let store = Memory::new(memory::declaration());
    let bytes = gzip(lines(20_000).as_bytes());
    let cut = &bytes[..bytes.len() / 2];
    let mut run = Run::new(&store);
    let (report, outcome) = run.import(cut, false);
    let message = outcome.unwrap_err().to_string();
    assert!(
        message.starts_with("input: the compressed data ends too early"),
        "{message}"
    );
    assert_eq!(report.rejected, 0);
    assert!(report.added > 1_000 && report.added < 20_000);
    assert_eq!(run.acknowledged.last(), Some(&report.read));
    assert_eq!(store.records.borrow().len() as u64, report.added);

    let mut damaged = bytes.clone();
    let middle = damaged.len() / 2;
    for byte in &mut damaged[middle..middle + 64] {
        *byte ^= 0xA5;
    }
    let message = Run::new(&store)
        .import(&damaged, false)
        .1
        .unwrap_err()
        .to_string();
    assert!(
        message.starts_with("input: the compressed data"),
        "{message}"
    );
}

#[test]
fn at_most_a_thousand_rejections_are_kept_and_all_are_counted() {
    let store = Memory::new(memory::declaration());
    let (report, _) = Run::new(&store).import("x\n".repeat(2_500).as_bytes(), false);
    assert_eq!((report.rejected, report.rejections.len()), (2_500, 1_000));
}

/// Lines that often meet: few keys, few contents, some faults.
fn line() -> impl Strategy<Value = String> {
    let key = prop_oneof![Just("a"), Just("b"), Just("c")];
    let title = prop_oneof![Just("x"), Just("y"), Just("\\u0078")];
    prop_oneof![
        6 => (key.clone(), title.clone()).prop_map(|(key, title)| format!(r#"{{"id":"{key}","title":"{title}"}}"#)),
        3 => (key.clone(), title.clone()).prop_map(|(key, title)| format!(r#"{{"key":"{key}","data":{{"title":"{title}","id":"{key}"}}}}"#)),
        3 => (0..3).prop_map(|n| format!(r#"{{"stream":"events","key":["d","1"],"data":{{"text":"{n}"}}}}"#)),
        3 => key.prop_map(|key| format!(r#"{{"key":"{key}","op":"delete"}}"#)),
        1 => Just(r#"{"key":"a"}"#.to_owned()),
        1 => Just(String::new()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn any_bytes_are_answered_for_line_by_line(
        bytes in prop::collection::vec(prop_oneof![
            4 => any::<u8>(),
            4 => prop::sample::select(b"{}[]\",:\\\n\r id01e.-ntf\x1f\x8b".to_vec()),
        ], 0..300),
        csv: bool,
        batch in 1_usize..5,
    ) {
        let store = Memory::new(memory::declaration());
        let mut run = Run::new(&store);
        run.limits.lines = batch;
        let header = if csv { b"id,size\n".as_slice() } else { b"" };
        let bytes = [header, &bytes].concat();
        let (report, outcome) = run.import(&bytes, csv);
        let answered = report.added + report.updated + report.unchanged + report.rejected;
        prop_assert_eq!(report.read, answered);
        prop_assert_eq!(report.rejections.len() as u64, report.rejected);
        let compressed = bytes.starts_with(&[0x1f, 0x8b]);
        prop_assert!(outcome.is_ok() || compressed);
        if !csv && !compressed {
            let filled = bytes.split(|byte| *byte == b'\n').enumerate().filter(|(at, line)| {
                let line = if *at == 0 { line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line) } else { line };
                !line.iter().all(|byte| b" \t\r".contains(byte))
            });
            prop_assert_eq!(report.read, filled.count() as u64);
        }
        for rejection in &report.rejections {
            prop_assert!(!rejection.message.chars().any(char::is_control), "{}", rejection.message);
        }
    }

    #[test]
    fn importing_again_changes_nothing(lines in prop::collection::vec(line(), 0..30)) {
        let store = Memory::new(memory::declaration());
        // Each key once: a key that comes twice with different content rightly changes back and forth.
        let mut seen = std::collections::HashSet::new();
        let unique: Vec<_> = lines.into_iter().filter(|line| {
            let first = line.chars().skip_while(|c| *c != ':').take(4).collect::<String>();
            seen.insert(first)
        }).collect();
        let text = unique.join("\n");
        let first = Run::new(&store).import(text.as_bytes(), false).0;
        let again = Run::new(&store).import(text.as_bytes(), false).0;
        prop_assert_eq!(again.unchanged, first.read - first.rejected);
        prop_assert_eq!((again.added, again.updated), (0, 0));
        prop_assert_eq!(&again.rejections, &first.rejections);
    }

    #[test]
    fn a_dry_run_says_what_the_import_then_does(
        before in prop::collection::vec(line(), 0..10),
        lines in prop::collection::vec(line(), 0..30),
        batch in 1_usize..8,
    ) {
        let store = Memory::new(memory::declaration());
        Run::new(&store).import(before.join("\n").as_bytes(), false).1.unwrap();
        let held = store.records.borrow().clone();
        let text = lines.join("\n");
        let mut dry = Run::new(&store);
        dry.dry = true;
        dry.limits.lines = batch;
        let foretold = dry.import(text.as_bytes(), false).0;
        prop_assert_eq!(&*store.records.borrow(), &held);
        let mut run = Run::new(&store);
        run.limits.lines = batch;
        prop_assert_eq!(foretold, run.import(text.as_bytes(), false).0);
    }
}
