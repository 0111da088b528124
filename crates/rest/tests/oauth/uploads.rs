//! Every known export, uploaded in the browser: the page takes what `pdpp import` takes, with the same records.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::fixture::World;
use crate::keeping::{action, settled};

/// An export and how many records it holds by stream, as the importers themselves are held to it.
#[derive(Deserialize)]
struct Case {
    export: String,
    records: BTreeMap<String, u64>,
}

/// The files below a folder, each by where it stands, as a browser sends them.
fn add_files(folder: &Path, shown: &str, files: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let shown = format!("{shown}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            add_files(&entry.path(), &shown, files);
        } else {
            files.push((shown, fs::read(entry.path()).unwrap()));
        }
    }
}

#[tokio::test]
async fn every_known_export_is_taken_as_the_command_takes_it() {
    let exports = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ingest/tests/exports");
    let cases = fs::read_to_string(exports.join("cases.json")).unwrap();
    let cases: Vec<Case> = serde_json::from_str(&cases).unwrap();
    assert_eq!(cases.len(), ingest::Export::ALL.len());
    let world = World::new().await;
    let mut browser = world.browser().await;
    let csrf = browser.get("/import").await.field("csrf");
    for case in &cases {
        let export = ingest::Export::parse(&case.export).unwrap();
        let before: Vec<_> = world.store.connections();
        let before: Vec<_> = before.into_iter().map(|one| one.id).collect();
        let mut files = Vec::new();
        add_files(&exports.join(&case.export), &case.export, &mut files);
        files.sort();
        let sent = browser.upload_bytes(&csrf, &files).await;
        let review = settled(&mut browser, sent).await;
        // Whatever else lies beside it gets a connection of its own, too.
        let places: Vec<String> = (0..9).map(|number| format!("to{number}")).collect();
        let mut pairs = vec![("csrf", csrf.as_str()), ("action", "import")];
        pairs.extend(places.iter().map(|place| (place.as_str(), "new")));
        let sent = browser.post(&action(&review), &pairs).await;
        settled(&mut browser, sent).await.shows("<h1>Imported</h1>");
        let stats = world.store.stream_stats().unwrap();
        let mut connections = world.store.connections().into_iter();
        let added = connections
            .find(|one| {
                one.connector.as_str() == export.connector_key() && !before.contains(&one.id)
            })
            .map(|one| one.id);
        let added = added.unwrap_or_else(|| panic!("{}: no connection", case.export));
        let counted: BTreeMap<String, u64> = stats
            .into_iter()
            .filter(|one| one.stream.connection == added && one.records > 0)
            .map(|one| (one.stream.stream.to_string(), one.records))
            .collect();
        assert_eq!(counted, case.records, "{}", case.export);
    }
}
