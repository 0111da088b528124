//! Tables of which nothing is declared, uploaded in the browser: what they are found to be is shown, and importing makes a source of them.

use crate::fixture::{Answer, Browser, World};
use crate::keeping::{action, settled, uploads};

const SPENDINGS: &str = "Day;What;Amount\n01/02/2024;Rope for the <b>jetty</b>;12,50\n03/04/2024;Lantern;7,00\n05/06/2024;Lantern;7,00\n";

fn fixture(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../ingest/tests/tables");
    std::fs::read(format!("{folder}/{name}")).unwrap()
}

async fn look(browser: &mut Browser<'_>, csrf: &str, files: &[(&str, &[u8])]) -> Answer {
    let files = files
        .iter()
        .map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec()));
    let sent = browser.upload_bytes(csrf, &files.collect::<Vec<_>>()).await;
    settled(browser, sent).await
}

/// Decides on an upload, with what the page has chosen for its first files.
async fn decide(browser: &mut Browser<'_>, csrf: &str, review: &Answer, what: &str) -> Answer {
    let place = review.text.split(" selected>").next().unwrap();
    let place = place
        .rsplit("value=\"")
        .next()
        .unwrap()
        .trim_end_matches('"');
    let pairs = [("csrf", csrf), ("to0", place), ("action", what)];
    let sent = browser.post(&action(review), &pairs).await;
    settled(browser, sent).await
}

#[tokio::test]
async fn a_table_is_shown_as_it_is_found_to_be_and_becomes_a_source() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let csrf = browser.get("/import").await.field("csrf");
    let declared = world.store.declarations().len();
    let files = [("spendings.csv", SPENDINGS.as_bytes())];
    let review = look(&mut browser, &csrf, &files).await;
    review.shows("<h2 id=\"group0\">Table spendings</h2>");
    review.shows("<option value=\"new\" selected>a new source made of it, spendings</option>");
    review
        .shows("<td><bdi>Day</bdi></td><td>date, day-month-year</td><td>time</td><td dir=\"auto\">01/02/2024</td>");
    review.shows("<td><bdi>Amount</bdi></td><td>number with &#39;,&#39;</td>");
    review.shows("Rope for the &#60;b&#62;jetty&#60;/b&#62;");
    review.shows("no date tells the order of day and month; day-month-year is assumed");
    review.shows("<b>3</b> <span>new</span>");
    review.shows("<dd dir=\"auto\">2024-02-01</dd>");
    let again = decide(&mut browser, &csrf, &review, "try").await;
    again.shows("<b>3</b> <span>new</span>");
    assert_eq!(
        world.store.declarations().len(),
        declared,
        "a try declares nothing"
    );
    assert_eq!(world.store.connections().len(), 2);
    let done = decide(&mut browser, &csrf, &review, "import").await;
    done.shows("<b>3</b> <span>new</span>");
    done.shows("href=\"/connections/spendings\"");
    assert_eq!(uploads(&world), 0, "nothing is kept of it");
    let found = browser.get("/search?q=jetty").await;
    found.shows("/records/spendings/spendings/");
    // The same again goes where the first one went, and changes nothing; so does one of the same columns.
    let again = look(&mut browser, &csrf, &files).await;
    again.shows("<option value=\"spendings/spendings\" selected>");
    again.hides("makes a new source");
    again.shows("<b>3</b> <span>here already</span>");
    let done = decide(&mut browser, &csrf, &again, "import").await;
    done.shows("<b>0</b> <span>new</span>");
    done.shows("<b>3</b> <span>here already</span>");
    assert_eq!(world.store.declarations().len(), declared + 1);
    assert_eq!(world.store.connections().len(), 3);
    // What was declared for a connection that is gone takes nothing, now or later.
    let confirm = [("csrf", csrf.as_str()), ("confirm", "spendings")];
    browser
        .post("/connections/spendings/remove", &confirm)
        .await;
    let review = look(&mut browser, &csrf, &files).await;
    let done = decide(&mut browser, &csrf, &review, "import").await;
    done.shows("<b>3</b> <span>new</span>");
    let again = look(&mut browser, &csrf, &files).await;
    again.shows("<option value=\"spendings-2/spendings\" selected>");
    again.shows("<b>3</b> <span>here already</span>");
}

#[tokio::test]
async fn workbooks_databases_and_lines_become_sources_too() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let csrf = browser.get("/import").await.field("csrf");
    let lines = b"{\"isbn\":\"1\",\"book\":\"Knots\",\"pages\":90}\n{\"isbn\":\"2\",\"book\":\"Tides\",\"pages\":120}\n";
    let (xlsx, db) = (fixture("boat.xlsx"), fixture("boat.db"));
    for (name, bytes, shown, count, connection) in [
        (
            "boat.xlsx",
            &xlsx[..],
            "<caption><bdi>household-costs</bdi>, of <bdi>sheet &#39;Household costs&#39;</bdi></caption>",
            6,
            "boat",
        ),
        (
            "crew.db",
            &db[..],
            "table &#39;unused&#39; has no rows and is left out",
            8,
            "crew",
        ),
        (
            "books.ndjson",
            lines,
            "<td><bdi>isbn</bdi></td><td>text</td><td>identifies a row</td>",
            2,
            "books",
        ),
        (
            "shelf.json",
            b"[{\"shelf\":\"top\",\"room\":1}]",
            "<td><bdi>room</bdi></td><td>integer</td>",
            1,
            "shelf",
        ),
    ] {
        let files = [(name, bytes)];
        let review = look(&mut browser, &csrf, &files).await;
        review.shows("This is what was found in its rows:");
        review.shows(shown);
        let done = decide(&mut browser, &csrf, &review, "import").await;
        done.shows(&format!("<b>{count}</b> <span>new</span>"));
        done.shows(&format!("href=\"/connections/{connection}\""));
        let again = look(&mut browser, &csrf, &files).await;
        let again = decide(&mut browser, &csrf, &again, "import").await;
        again.shows(&format!("<b>{count}</b> <span>here already</span>"));
    }
    browser
        .get("/search?q=skagen")
        .await
        .shows("/records/boat/trips/");
    browser
        .get("/search?q=noor")
        .await
        .shows("/records/crew/crew/1");
    browser
        .get("/search?q=tides")
        .await
        .shows("/records/books/books/2");
}

#[tokio::test]
async fn tables_of_the_same_columns_become_one_source_and_others_one_each() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let csrf = browser.get("/import").await.field("csrf");
    let files: [(&str, &[u8]); 3] = [
        ("january.csv", b"day,miles\n2024-01-02,3\n"),
        ("february.csv", b"day,miles\n2024-02-02,4\n"),
        ("fish.csv", b"name,weight\nPike,3.5\n"),
    ];
    let review = look(&mut browser, &csrf, &files).await;
    review.shows("<bdi>january.csv</bdi>, <bdi>february.csv</bdi>");
    review.shows("<h2 id=\"group1\">Table fish</h2>");
    let pairs = [
        ("csrf", csrf.as_str()),
        ("to0", "new"),
        ("to1", "new"),
        ("action", "import"),
    ];
    let sent = browser.post(&action(&review), &pairs).await;
    let done = settled(&mut browser, sent).await;
    done.shows("href=\"/connections/january\"");
    done.shows("href=\"/connections/fish\"");
    assert_eq!(world.store.connections().len(), 4);
    // The same key is not taken twice.
    let files: [(&str, &[u8]); 1] = [("fish.csv", b"boat,length\nAva,7\n")];
    let review = look(&mut browser, &csrf, &files).await;
    let done = decide(&mut browser, &csrf, &review, "import").await;
    done.shows("href=\"/connections/fish-2\"");
}

#[tokio::test]
async fn what_makes_no_source_says_why_and_leaves_nothing() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let csrf = browser.get("/import").await.field("csrf");
    let declared = world.store.declarations().len();
    let unnamed = "[{\"\":1,\"b\":2}]";
    let cases: [(&str, &[u8], &str); 4] = [
        ("empty.csv", b"", "empty.csv: it holds no rows"),
        ("head.csv", b"name,weight\n", "head.csv: it holds no rows"),
        (
            "unnamed.json",
            unnamed.as_bytes(),
            "its columns cannot be declared: ",
        ),
        ("none.json", b"[1, 2]", "none.json: it holds no rows"),
    ];
    for (name, bytes, why) in cases {
        let review = look(&mut browser, &csrf, &[(name, bytes)]).await;
        review.shows("It cannot be imported: ");
        review.shows(why);
        review.shows("try another file at /import");
        // Nothing that the page offers makes it one.
        let done = decide(&mut browser, &csrf, &review, "import").await;
        done.shows("It cannot be imported: ");
        done.shows("<a href=\"/import\">Import more</a>");
        let discard = [("csrf", csrf.as_str()), ("action", "discard")];
        browser.post(&action(&review), &discard).await;
    }
    let half = fixture("boat.xlsx")[..900].to_vec();
    for (name, bytes) in [("half.xlsx", &half[..]), ("words.xyz", b"\x01\x02")] {
        let files = [(name.to_owned(), bytes.to_vec())];
        let page = browser.upload_bytes(&csrf, &files).await;
        assert_eq!(page.status, 400, "{}", page.text);
        page.shows(&format!("<li><bdi>{name}: "));
        page.shows("<a href=\"/import\">Choose other files</a>");
    }
    assert_eq!(uploads(&world), 0);
    assert_eq!(world.store.declarations().len(), declared);
    assert_eq!(world.store.connections().len(), 2);
}

#[tokio::test]
async fn a_discarded_table_leaves_nothing_and_a_wide_one_is_shown_in_part() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let csrf = browser.get("/import").await.field("csrf");
    let declared = world.store.declarations().len();
    let wide = format!("{}1\n{}1\n", "x,".repeat(2_999), "7,".repeat(2_999));
    let long = format!("what,why\n{},y\n", "<i>".repeat(100));
    for (name, text, shown) in [
        ("wide.csv", &wide, "and 2901 more fields"),
        ("long.csv", &long, "&#60;i…</td>"),
    ] {
        let review = look(&mut browser, &csrf, &[(name, text.as_bytes())]).await;
        review.shows(shown);
        review.hides("<i>");
        let discard = [("csrf", csrf.as_str()), ("action", "discard")];
        let sent = browser.post(&action(&review), &discard).await;
        assert_eq!(sent.header("location"), "/import");
    }
    assert_eq!(uploads(&world), 0);
    assert_eq!(world.store.declarations().len(), declared);
}
