//! The pages that show records: what they find, what they say of a record, and that what others wrote stays text.

use axum::body::Body;
use axum::http::Request;
use serde_json::json;

use crate::fixture::{Answer, Browser, MESSAGES, World};
use crate::shared::connect;

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
    page.shows("\"><bdi>An app</bdi></a>, <time");
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
    letter.shows("a &#60;b&#62;plain&#60;/b&#62; text");
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
        assert_eq!(
            disposition.starts_with("inline"),
            inline,
            "{key}: {disposition}"
        );
        let name = format!("filename*=UTF-8''{key}.file");
        assert!(disposition.ends_with(&name), "{disposition}");
        let saved = browser.get(&format!("{target}?download=1")).await;
        let disposition = saved.header("content-disposition");
        assert!(
            disposition.starts_with("attachment; filename="),
            "{disposition}"
        );
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
    // A month and a year open at their first day that has records.
    for asked in ["2026-03", "2026"] {
        let page = browser.get(&format!("/timeline?day={asked}")).await;
        page.shows("<h1>Sunday, 1 March 2026</h1>");
    }
    let odd = browser.get("/timeline?day=tomorrow").await;
    assert_eq!(odd.status, 400);
    odd.shows("write it as 2026-03-01");
    let unknown = browser.get("/timeline?connection=nobody").await;
    assert_eq!(unknown.status, 404);
    unknown.shows("there is no such connection");
}

#[tokio::test]
async fn mail_of_any_age_is_on_the_overview_and_the_timeline() {
    let world = World::new().await;
    let letter = |key: &str, at: &str| {
        json!({"key": key, "data": {"id": key, "subject": "Old", "secret": "s", "received_at": at}})
            .to_string()
    };
    let lines = [
        letter("o1", "2009-04-07T09:00:00Z"),
        letter("o2", "2009-11-20T09:00:00Z"),
        letter("o3", "2031-02-03T09:00:00Z"),
    ];
    let target = "/v1/ingest/messages?connection_id=work";
    world.write(target, lines.join("\n")).await;
    let mut browser = world.browser().await;
    let overview = browser.get("/").await;
    overview.shows("<b>2009 – 2031</b>");
    overview.shows("Year by year");
    overview.shows("<a href=\"/timeline?day=2009\">2<span");
    // The last day up to today, then step by step as far as there is anything.
    let mut days = vec![browser.get("/timeline").await];
    for rel in [
        "prev", "prev", "prev", "prev", "next", "next", "next", "next", "next",
    ] {
        let page = days.last().unwrap();
        let link = page.text.split_once(&format!("rel=\"{rel}\" href=\""));
        let target = link
            .unwrap_or_else(|| panic!("no {rel} in {}", page.text))
            .1;
        let target = target.split('"').next().unwrap().to_owned();
        days.push(browser.get(&target).await);
    }
    let heading = |page: &Answer| {
        let after = page.text.split_once("<h1>").unwrap().1;
        after.split("</h1>").next().unwrap().to_owned()
    };
    let days: Vec<String> = days.iter().map(heading).collect();
    let there = [
        "Tuesday, 3 March 2026",
        "Monday, 2 March 2026",
        "Sunday, 1 March 2026",
        "Friday, 20 November 2009",
        "Tuesday, 7 April 2009",
    ];
    let back = there.iter().rev().skip(1);
    let mut expected: Vec<&str> = there.iter().chain(back).copied().collect();
    expected.push("Monday, 3 February 2031");
    assert_eq!(days, expected);
    let old = browser.get("/timeline?day=2009").await;
    old.shows("<h1>Tuesday, 7 April 2009</h1>");
    old.shows("November 2009: 1");
    old.shows("<h2>Years</h2>");
    old.hides("March 2026: ");
}

#[tokio::test]
async fn where_all_is_old_the_timeline_opens_there() {
    let world = World::empty();
    connect(&*world.store, "demo_mail", "old", "Old mail");
    let letter = json!({"key": "o1", "data": {"id": "o1", "subject": "Old", "secret": "s", "received_at": "2009-04-07T09:00:00Z"}});
    let target = "/v1/ingest/messages?connection_id=old";
    world.write(target, letter.to_string()).await;
    let mut browser = world.browser().await;
    browser.get("/").await.shows("<b>Apr 2009 – Apr 2009</b>");
    let page = browser.get("/timeline").await;
    page.shows("<h1>Tuesday, 7 April 2009</h1>");
    page.shows("April 2009: 1");
}

#[tokio::test]
async fn all_that_belongs_to_a_record_is_behind_a_link() {
    let world = World::new().await;
    let line = |n: u32| {
        json!({"key": format!("f{n:02}"), "data": {"id": format!("f{n:02}"), "message_id": "m1", "name": format!("file {n}")}})
            .to_string()
    };
    let lines: Vec<String> = (0..60).map(line).collect();
    let target = "/v1/ingest/attachments?connection_id=work";
    world.write(target, lines.join("\n")).await;
    let mut browser = world.browser().await;
    let page = browser.get("/records/work/messages/m1").await;
    let all = "/browse/work/attachments?filter%5Bmessage_id%5D=m1";
    page.shows(&format!("<a href=\"{all}\">All of them"));
    browser.get(all).await.shows("<b>60 records</b>");
}

#[tokio::test]
async fn a_condition_that_cannot_be_understood_is_refused() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    for (condition, next) in [
        ("year=abc", "write it as 2026"),
        ("year=10000", "write it as 2026"),
        ("year=0", "write it as 2026"),
        (
            "connection=work&stream=messages&filter%5Bsize_bytes%5D%5Bgte%5D=2",
            "write filter[field]=value",
        ),
    ] {
        let page = browser.get(&format!("/search?q=letter&{condition}")).await;
        assert_eq!(page.status, 400, "{condition}");
        page.shows(next);
    }
}
