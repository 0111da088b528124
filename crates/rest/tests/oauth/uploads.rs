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

#[tokio::test]
async fn what_was_sent_along_is_left_and_an_account_has_its_own_connection() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let page = browser.get("/import").await;
    page.shows("Signal");
    let csrf = page.field("csrf");
    let sent = [
        ("chat/_chat.txt", "[31.12.23, 21:15:07] Ida: Hello\n"),
        (
            "chat/1-Noor.vcf",
            "BEGIN:VCARD\nVERSION:3.0\nFN:Noor\nEND:VCARD\n",
        ),
        (
            "x/data/account.js",
            r#"window.YTD.account.part0 = [{"account":{"username":"ida_l","accountId":"1"}}]"#,
        ),
        (
            "x/data/like.js",
            r#"window.YTD.like.part0 = [{"like":{"tweetId":"1","fullText":"Ahoy"}}]"#,
        ),
    ];
    let answer = browser.upload(&csrf, &sent).await;
    let review = settled(&mut browser, answer).await;
    review.shows("1-Noor.vcf: files that came with messages or posts");
    review.shows("a new connection, X (ida_l)");
    let answer = browser
        .post(
            &action(&review),
            &[
                ("csrf", &csrf),
                ("action", "import"),
                ("to0", "new"),
                ("to1", "new"),
            ],
        )
        .await;
    settled(&mut browser, answer)
        .await
        .shows("<h1>Imported</h1>");
    let mut names: Vec<String> = world
        .store
        .connections()
        .into_iter()
        .map(|one| one.display_name)
        .collect();
    names.sort();
    assert!(names.contains(&"X (ida_l)".to_owned()), "{names:?}");
    assert!(!names.contains(&"Contacts file".to_owned()), "{names:?}");
    // Another time its connection is what is proposed.
    let answer = browser.upload(&csrf, &sent[2..]).await;
    let review = settled(&mut browser, answer).await;
    assert!(
        review.text.contains("selected>X (ida_l)"),
        "{}",
        review.text
    );
}
