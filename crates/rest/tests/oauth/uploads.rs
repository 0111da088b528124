//! Every known export, uploaded in the browser: the page takes what `pdpp import` takes, with the same records.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use futures_core::Stream;
use rest::Limits;
use serde::Deserialize;
use tokio::time::{Sleep, sleep};

use crate::fixture::{URL, World, uploaded};
use crate::keeping::{action, settled, uploads};

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

/// A body that comes in pieces, with a pause before each.
struct Slowly {
    pieces: std::vec::IntoIter<Vec<u8>>,
    pause: Duration,
    sleep: Pin<Box<Sleep>>,
}

impl Slowly {
    fn body(form: &[u8], piece: usize, pause: Duration) -> Body {
        let pieces: Vec<Vec<u8>> = form.chunks(piece).map(<[u8]>::to_vec).collect();
        Body::from_stream(Self {
            pieces: pieces.into_iter(),
            pause,
            sleep: Box::pin(sleep(pause)),
        })
    }
}

impl Stream for Slowly {
    type Item = Result<Vec<u8>, std::io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        ready!(self.sleep.as_mut().poll(context));
        self.sleep = Box::pin(sleep(self.pause));
        Poll::Ready(self.pieces.next().map(Ok))
    }
}

const LETTER: &str = "From a@example.test Mon Mar  2 09:00:00 2026\nFrom: A <a@example.test>\nSubject: Slow\nDate: Mon, 02 Mar 2026 09:00:00 +0000\nMessage-ID: <one@example.test>\n\nIt takes its time.\n";

// An upload takes as long as its bytes come; who stops sending, or sends too much, is told so on a page.
#[tokio::test]
async fn an_upload_may_take_long_but_not_pause_and_has_a_size() {
    let files = [("mail.mbox".to_owned(), LETTER.as_bytes().to_vec())];
    let limits = Limits {
        write_time: Duration::from_millis(200),
        body_pause: Duration::from_secs(2),
        ..Limits::default()
    };
    let world = World::with_limits(URL, limits).await;
    let mut browser = world.browser().await;
    let csrf = browser.get("/import").await.field("csrf");
    let form = uploaded(&csrf, &files);
    let slow = Slowly::body(&form, form.len() / 20, Duration::from_millis(30));
    let sent = browser.upload_body(slow).await;
    settled(&mut browser, sent)
        .await
        .shows("<b>1</b> <span>new</span>");

    let limits = Limits {
        body_pause: Duration::from_millis(50),
        upload_bytes: 2_000,
        ..Limits::default()
    };
    let world = World::with_limits(URL, limits).await;
    let mut browser = world.browser().await;
    let csrf = browser.get("/import").await.field("csrf");
    let form = uploaded(&csrf, &files);
    let stopped = Slowly::body(&form, form.len() / 2, Duration::from_secs(5));
    let large = [("mail.mbox".to_owned(), LETTER.repeat(20).into_bytes())];
    let large = Body::from(uploaded(&csrf, &large));
    for (body, status, title) in [
        (stopped, 408, "<h1>That did not work</h1>"),
        (large, 413, "larger than 4 GiB"),
    ] {
        let page = browser.upload_body(body).await;
        assert_eq!(page.status, status, "{}", page.text);
        page.shows(title);
        page.shows("<html lang=\"en\">");
        assert_eq!(uploads(&world), 0, "nothing is kept of it");
    }
}
