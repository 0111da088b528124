//! The pages that show records: what they find, what they say of a record, and that what others wrote stays text.

use axum::body::Body;
use axum::http::Request;
use serde_json::json;

use crate::fixture::{Answer, Browser, MESSAGES, World};

impl World {
    /// Writes lines of a stream as the owner.
    pub(crate) async fn write(&self, target: &str, body: String) -> Answer {
        let request = Request::post(target)
            .header("authorization", format!("Bearer {}", self.owner))
            .body(Body::from(body));
        let answer = self.send(request.unwrap()).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer
    }

    /// An attachment of the first letter at work, of this media type.
    async fn attach(&self, key: &str, media_type: &str, content: &str) {
        let target = format!(
            "/v1/blobs?connection_id=work&stream=attachments&record_key={key}&mime_type={media_type}"
        );
        let stored = self.write(&target, content.to_owned()).await.json();
        let line = json!({"key": key, "data": {
            "id": key, "message_id": "m1", "name": format!("{key}.file"),
            "blob_ref": {"blob_id": stored["blob_id"], "mime_type": media_type},
        }});
        let target = "/v1/ingest/attachments?connection_id=work";
        self.write(target, line.to_string()).await;
    }
}

#[tokio::test]
async fn a_search_shows_hits_with_what_proves_them_and_what_narrows_them() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let page = browser.get("/search?q=overdraft+zeppelin").await;
    assert_eq!(page.status, 200, "{}", page.text);
    page.shows("<b>6</b> found");
    page.shows("The <mark>overdraft</mark> fee is 42 EUR.");
    page.shows("Found nowhere: zeppelin.");
    page.shows("href=\"/records/work/messages/m1\"");
    page.shows("<time datetime=\"2026-03-01T09:00:00.000Z\"");
    // The figures beside it add up to what was found.
    page.shows("<bdi>Work mail</bdi> <span class=\"count\">3</span>");
    page.shows("<bdi>Work mail, Messages</bdi> <span class=\"count\">3</span>");
    page.shows("mail</bdi> <span class=\"count\">3</span>");
    assert_eq!(
        page.text.matches("<span class=\"count\">3</span>").count(),
        4
    );
    page.shows("connection=work");
    page.shows("year=2026");
    let of_year = browser.get("/search?q=overdraft&year=2026").await;
    of_year.shows("<b>6</b> found");
    of_year.shows("<bdi>2026</bdi> <span class=\"count\">6</span>");
    let narrowed = browser
        .get("/search?q=overdraft&connection=work&stream=messages&order=oldest")
        .await;
    narrowed.shows("<b>3</b> found");
    narrowed.shows("year=2026");
    narrowed.hides("/records/home/");
    let first = narrowed.text.find("messages/m1").unwrap();
    assert!(first < narrowed.text.find("messages/m2").unwrap());
    // The values that the declaration groups by narrow it, too.
    narrowed.shows("filter%5Bfrom_email%5D=bank%40example.test");
    narrowed.shows("<bdi>bank@example.test</bdi> <span class=\"count\">3</span>");
    let target = "/search?q=overdraft&connection=work&stream=messages&filter%5Bfrom_email%5D=nobody&year=2026";
    let nobody = browser.get(target).await;
    nobody.shows("Nothing was found.");
    // Another connection takes with it what only this stream has.
    nobody.shows("href=\"/search?q=overdraft&#38;year=2026&#38;connection=home\"");
    let empty = browser
        .get("/search?q=overdraft&connection=work&stream=messages&year=1999")
        .await;
    empty.shows("Nothing was found.");
    browser
        .get("/search?q=overdraft&year=1999")
        .await
        .shows("Nothing was found.");
}

#[tokio::test]
async fn further_hits_are_behind_a_link() {
    let world = World::new().await;
    let letter = |n: u32| {
        json!({"key": format!("x{n}"), "data": {"id": format!("x{n}"), "subject": "Zeppelin", "secret": "s"}}).to_string()
    };
    let lines: Vec<String> = (0..45).map(letter).collect();
    let target = "/v1/ingest/messages?connection_id=work";
    world.write(target, lines.join("\n")).await;
    let mut browser = world.browser().await;
    let mut target = "/search?q=zeppelin".to_owned();
    let mut pages = 0;
    let mut hits = 0;
    loop {
        let page = browser.get(&target).await;
        assert_eq!(page.status, 200, "{}", page.text);
        pages += 1;
        hits += page.text.matches("href=\"/records/work/messages/x").count();
        let Some((before, _)) = page.text.split_once("\" rel=\"next\"") else {
            break;
        };
        let link = before.rsplit_once("href=\"").unwrap().1;
        target = link.replace("&#38;", "&");
    }
    assert_eq!((pages, hits), (3, 45));
    let stale = browser.get("/search?q=other&cursor=nonsense").await;
    assert_eq!(stale.status, 400);
    stale.shows("<h1>That did not work</h1>");
    stale.shows("href=\"/search\"");
}

#[tokio::test]
async fn a_record_is_shown_as_what_it_is_and_its_text_stays_text() {
    let world = World::new().await;
    let body = "Hi,\n**yes** <img src=x onerror=alert(1)> \u{202e}x\n\n> 1\n> 2\n> 3\n> 4\n> 5\n\nsee https://a.example/x and javascript:alert(1)";
    let letter = json!({"key": "m9", "data": {
        "id": "m9", "subject": "<script>alert(9)</script>", "body": body,
        "received_at": "2026-03-09T09:00:00Z", "labels": ["<b>", "two"], "amount": 12345.5, "secret": "s",
    }});
    let target = "/v1/ingest/messages?connection_id=work";
    world.write(target, letter.to_string()).await;
    let mut browser = world.browser().await;
    let page = browser.get("/records/work/messages/m9").await;
    assert_eq!(page.status, 200, "{}", page.text);
    page.shows("<h1><bdi>&#60;script&#62;alert(9)&#60;/script&#62;</bdi></h1>");
    page.shows("<strong>yes</strong> &#60;img src=x onerror=alert(1)&#62; \\u{202e}x");
    page.shows("<summary>5 quoted lines</summary>");
    page.shows("<a href=\"https://a.example/x\" rel=\"noreferrer noopener nofollow\">");
    page.hides("href=\"javascript");
    page.hides("<img src=x");
    page.hides("<script>");
    page.shows("<li>&#60;b&#62;</li><li>two</li>");
    page.shows("12\u{202f}345.5");
    // The one before it in the stream, and nothing after it.
    page.shows("rel=\"prev\" href=\"/records/work/messages/m3\"");
    page.hides("rel=\"next\"");
    page.shows("The record as JSON");
}

#[tokio::test]
async fn a_record_says_how_it_changed_and_who_was_shown_it() {
    let world = World::new().await;
    let letter = json!({"key": "m1", "data": {
        "id": "m1", "subject": "Corrected", "body": "The overdraft fee is 42 EUR.", "secret": "s",
    }});
    let target = "/v1/ingest/messages?connection_id=work";
    world.write(target, letter.to_string()).await;
    let mut browser = world.browser().await;
    let client = world.client().await;
    let request = browser.ask(&client, &[]).await;
    let code = browser.approve(&request, MESSAGES).await;
    let tokens = world.tokens(&client, &code).await;
    let token = tokens["access_token"].as_str().unwrap();
    browser
        .get("/records/work/messages/m1")
        .await
        .shows("No application");
    let read = "/v1/streams/messages/records/m1?fields=subject";
    assert_eq!(world.read(token, read).await.status, 200);
    let page = browser.get("/records/work/messages/m1").await;
    page.shows("record: <bdi>subject</bdi>");
    page.shows("changed: from_email, received_at, secret, size_bytes, subject");
}

#[tokio::test]
async fn files_of_records_are_for_the_owner_and_never_run() {
    let world = World::new().await;
    world.attach("a1", "image/png", "picture").await;
    world
        .attach("a2", "text/html", "<script>alert(1)</script>")
        .await;
    world.attach("a3", "image/svg+xml", "<svg/>").await;
    world
        .attach("a4", "text/plain", "a <b>plain</b> text")
        .await;
    let mut browser = world.browser().await;
    let letter = browser.get("/records/work/messages/m1").await;
    letter.shows("<img src=\"/records/work/attachments/a1/file\"");
    letter.hides("<img src=\"/records/work/attachments/a3");
    for (key, inline) in [("a1", true), ("a2", false), ("a3", false), ("a4", false)] {
        let target = format!("/records/work/attachments/{key}/file");
        let file = browser.get(&target).await;
        assert_eq!(file.status, 200, "{}", file.text);
        assert_eq!(
            file.header("content-security-policy"),
            "default-src 'none'; sandbox"
        );
        assert_eq!(file.header("x-content-type-options"), "nosniff");
        let disposition = file.header("content-disposition");
        assert_eq!(disposition.is_empty(), inline, "{key}: {disposition}");
        let saved = browser.get(&format!("{target}?download=1")).await;
        assert_eq!(saved.header("content-disposition"), "attachment");
        let stranger = Browser::new(&world).get(&target).await;
        assert_eq!(
            (stranger.status.as_u16(), stranger.text.as_str()),
            (303, "")
        );
    }
    let text = browser.get("/records/work/attachments/a4").await;
    text.shows("a &#60;b&#62;plain&#60;/b&#62; text");
    let none = browser.get("/records/work/messages/m1/file").await;
    assert_eq!(none.status, 404);
    none.shows("this record has no file");
}

#[tokio::test]
async fn an_unknown_address_is_a_page_for_a_browser_and_an_error_for_a_program() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let page = browser.get("/nowhere").await;
    assert_eq!(page.status, 404);
    page.shows("<h1>Not found</h1>");
    page.shows("There is no page at this address.");
    assert!(
        page.header("content-security-policy")
            .starts_with("default-src 'none'")
    );
    let program = world.get("/nowhere").await;
    assert_eq!(program.status, 404);
    assert_eq!(program.json()["error"]["code"], "not_found");
    for path in ["/v1/nowhere", "/oauth/nowhere", "/.well-known/nowhere"] {
        let answer = browser.get(path).await;
        assert_eq!(answer.json()["error"]["code"], "not_found", "{path}");
    }
}

#[tokio::test]
async fn a_stream_is_a_table_that_is_narrowed_by_its_address() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let index = browser.get("/browse").await;
    index.shows("<a href=\"/browse/work/messages\">");
    index.shows("6 records in all.");
    let page = browser.get("/browse/work/messages").await;
    assert_eq!(page.status, 200, "{}", page.text);
    page.shows("<b>3 records</b>");
    page.shows("<bdi>Size bytes</bdi>: 6 in all");
    page.shows("March 2026: 3");
    page.shows("aria-sort=\"descending\"");
    page.shows("filter%5Bfrom_email%5D=bank%40example.test");
    let first = page.text.find("messages/m3").unwrap();
    assert!(first < page.text.find("messages/m1").unwrap());
    let turned = browser.get("/browse/work/messages?order=asc").await;
    let first = turned.text.find("messages/m1").unwrap();
    assert!(first < turned.text.find("messages/m3").unwrap());
    // A form sends the fields that were left empty, too.
    let narrowed = "/browse/work/messages?filter%5Bsize_bytes%5D%5Bgte%5D=2&filter%5Bsize_bytes%5D%5Blte%5D=&fields=subject&fields=amount";
    let narrowed = browser.get(narrowed).await;
    narrowed.shows("<b>2 records</b>");
    narrowed.shows("Size bytes from 2");
    narrowed.hides("bank@example.test");
    for (target, status) in [
        ("/browse/work/nowhere", 404),
        ("/browse/nowhere/messages", 404),
        ("/browse/work/messages?filter%5Bnone%5D=1", 400),
        ("/browse/work/messages?filter%5Bsize_bytes%5D=many", 400),
        ("/browse/work/messages?cursor=stale", 400),
        ("/browse/work/messages?fields=none", 400),
    ] {
        let answer = browser.get(target).await;
        assert_eq!(answer.status, status, "{target}");
        answer.shows("<html lang=\"en\">");
    }
}

#[tokio::test]
async fn what_a_table_shows_can_be_saved() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let base = "/browse/work/messages/download?order=asc&filter%5Bsize_bytes%5D%5Bgte%5D=2";
    let csv = browser
        .get(&format!("{base}&fields=id&fields=body&format=csv"))
        .await;
    assert_eq!(
        csv.text,
        "id,body\r\nm2,The overdraft fee is 42 EUR.\r\nm3,The overdraft fee is 42 EUR.\r\n"
    );
    assert_eq!(csv.header("content-type"), "text/csv; charset=utf-8");
    assert!(csv.header("content-disposition").starts_with("attachment"));
    let lines = browser.get(&format!("{base}&fields=id&format=jsonl")).await;
    assert_eq!(lines.text, "{\"id\":\"m2\"}\n{\"id\":\"m3\"}\n");
    let refused = browser
        .get("/browse/work/messages/download?fields=none")
        .await;
    assert_eq!(refused.status, 400);
}

#[tokio::test]
async fn the_timeline_has_all_sources_of_a_day_in_one_order() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let page = browser.get("/timeline").await;
    assert_eq!(page.status, 200, "{}", page.text);
    // The last day that has records, of both connections.
    page.shows("<h1>Tuesday, 3 March 2026</h1>");
    page.shows("href=\"/records/work/messages/m3\"");
    page.shows("href=\"/records/home/messages/m3\"");
    page.shows("day=2026-03-02");
    let one = browser
        .get("/timeline?day=2026-03-02&connection=work")
        .await;
    one.shows("href=\"/records/work/messages/m2\"");
    one.hides("/records/home/");
    let none = browser.get("/timeline?day=1999-01-01").await;
    none.shows("Nothing happened on this day");
    let odd = browser.get("/timeline?day=tomorrow").await;
    odd.shows("<h1>Tuesday, 3 March 2026</h1>");
}
