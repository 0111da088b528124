//! The bench of nodes: every row of its report is there.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bench::{BenchOptions, NodesOptions, SystemClock};
use serde_json::Value;

use super::Nodes;

#[test]
fn nodes_are_measured_beside_the_embedded_store() {
    let Some(nodes) = Nodes::new() else { return };
    let options = NodesOptions {
        corpus: BenchOptions {
            records: 2_000,
            batch: 500,
            json: true,
            ..BenchOptions::default()
        },
        url: nodes.url,
        program: PathBuf::from(env!("CARGO_BIN_EXE_pdpp")),
        clock: Arc::new(SystemClock),
        load: Duration::from_secs(1),
    };
    let mut report = Vec::new();
    bench::run_nodes(&options, &mut report, &mut |_| ()).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    let rows = report["measurements"].as_array().unwrap();
    let row = |name: &str| {
        let mut rows = rows.iter();
        let found = rows.find(|row| row["what"].as_str().unwrap().contains(name));
        found.unwrap_or_else(|| panic!("no row of {name}"))
    };
    for judged in [
        "durable ingest",
        "get one record",
        "page 1 of",
        "page 1,000",
        "search, rare word",
        "search, common word",
        "group by month",
        "index from a snapshot",
    ] {
        let row = row(judged);
        assert!(row["target"]["met"].is_boolean(), "{row}");
        assert!(row["beside"]["value"].as_f64().unwrap() > 0.0, "{row}");
    }
    let search = row("search, common word");
    assert_eq!(search["figure"]["found"], search["beside"]["found"]);
    // One for the newest version, one for the records.
    let trips = search["target"]["text"].as_str().unwrap();
    assert!(trips.ends_with("+ 2 round trips"), "{trips}");
    let found = row("then found on the other node");
    assert_eq!(found["figure"]["found"], 1, "{found}");
    for other in [
        "bytes of a record in the database",
        "one round trip",
        "lag of the other node",
        "derived from the records",
        "answers of 1 node,",
        "answers of 3 nodes,",
    ] {
        assert!(row(other)["figure"]["value"].as_f64().unwrap() > 0.0);
    }
}
