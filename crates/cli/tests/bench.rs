//! The bench measures the built program: every row of its reports is there. It stands here because only tests of this crate
//! know where that program is.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bench::{AnswerOptions, BenchError, BenchOptions, Surface, SurfaceOptions, SystemClock};
use serde_json::Value;

fn measure(surface: Surface, records: u64, dir: Option<&Path>) -> Result<Vec<Value>, BenchError> {
    let options = SurfaceOptions {
        corpus: BenchOptions {
            records,
            dir: dir.map(Path::to_owned),
            json: true,
            ..BenchOptions::default()
        },
        surface,
        program: PathBuf::from(env!("CARGO_BIN_EXE_pdpp")),
        clock: Arc::new(SystemClock),
        load: Duration::from_secs(1),
    };
    let mut report = Vec::new();
    bench::run_surface(&options, &mut report, &mut |_| ())?;
    let report: Value = serde_json::from_slice(&report).unwrap();
    Ok(report["measurements"].as_array().unwrap().clone())
}

fn row<'a>(rows: &'a [Value], name: &str) -> &'a Value {
    let mut rows = rows.iter();
    let found = rows.find(|row| row["what"].as_str().unwrap().contains(name));
    assert!(found.is_some(), "no row of {name}");
    found.unwrap()
}

fn assert_judged(row: &Value) {
    assert!(row["target"]["met"].is_boolean(), "{row}");
}

fn assert_compared(row: &Value) {
    assert!(row["beside"]["value"].as_f64().unwrap() > 0.0, "{row}");
}

#[test]
fn a_server_is_measured_beside_the_reads_in_process_and_the_corpus_stays_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let rows = measure(Surface::Http, 2_000, Some(folder.path())).unwrap();
    for search in ["rare word", "common word", "two words", "phrase"] {
        let row = row(&rows, &format!("search, {search}"));
        assert_judged(row);
        assert_eq!(row["figure"]["found"], row["beside"]["found"], "{row}");
    }
    assert_eq!(row(&rows, "search, common word")["figure"]["found"], 10);
    for other in ["schema", "page", "one long record", "window", "count by"] {
        assert_compared(row(&rows, other));
    }
    // The rows name how long the load took, which a busy machine prolongs.
    assert!(
        row(&rows, "s: answers")["figure"]["value"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    assert_eq!(row(&rows, "s: errors")["figure"]["value"], 0.0);
    row(&rows, "anonymous memory");

    let entries = std::fs::read_dir(folder.path()).unwrap();
    let mut left: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["ours", "served.json"]);
    let other = measure(Surface::Http, 2_001, Some(folder.path())).unwrap_err();
    assert!(
        other.to_string().contains("choose another --dir"),
        "{other}"
    );
}

#[test]
fn the_tools_over_stdio_are_measured_over_local_data_and_over_a_server() {
    let rows = measure(Surface::Mcp, 300, None).unwrap();
    for source in ["local data", "over a server"] {
        for promised in ["cold start to the list of tools", "resident then"] {
            let row = row(&rows, &format!("{source}: {promised}"));
            assert!(row["figure"]["value"].as_f64().unwrap() > 0.0, "{row}");
            assert_judged(row);
        }
        row(&rows, &format!("{source}: first search after the start"));
        for call in [
            "search, rare word",
            "search, common word",
            "query_records, 25 records",
            "fetch, a long record",
        ] {
            let row = row(&rows, &format!("{source}: {call}"));
            assert_compared(row);
            assert_judged(row);
        }
    }
}

#[test]
fn the_tools_of_a_server_are_measured_under_load_without_errors() {
    let rows = measure(Surface::McpHttp, 300, None).unwrap();
    for search in ["1 client: search, rare word", "s: search, rare word"] {
        let row = row(&rows, search);
        assert_compared(row);
        assert_judged(row);
    }
    assert!(row(&rows, ": answers")["figure"]["value"].as_f64().unwrap() > 0.0);
    assert_eq!(row(&rows, ": errors")["figure"]["value"], 0.0);
    row(&rows, "anonymous memory after 0 s");
}

#[test]
fn the_owner_s_pages_are_measured_beside_the_reads_they_make() {
    let rows = measure(Surface::Pages, 300, None).unwrap();
    for page in [
        "overview",
        "search, rare word",
        "search, common word",
        "browse a stream",
    ] {
        let row = row(&rows, page);
        assert_compared(row);
        assert_judged(row);
    }
}

#[test]
fn every_question_of_the_sample_life_is_asked_for_every_host() {
    let options = AnswerOptions {
        program: PathBuf::from(env!("CARGO_BIN_EXE_pdpp")),
        clock: Arc::new(SystemClock),
        json: true,
    };
    let mut report = Vec::new();
    bench::run_answers(&options, &mut report, &mut |_| ()).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["questions"], 60);
    let hosts = report["hosts"].as_array().unwrap();
    assert_eq!(hosts.len(), 5);
    for host in hosts {
        assert!(host["results"].as_u64().unwrap() >= 60, "{host}");
        let (answered, median) = (&host["answered"], &host["median_tokens"]);
        assert!(answered.as_u64().unwrap() <= 60, "{host}");
        assert_eq!(answered == 0, median == 0, "{host}");
    }
}
