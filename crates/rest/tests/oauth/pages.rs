//! The pages: what they show, to whom, and that what others wrote stays text.

use std::time::Duration;

use crate::fixture::{Answer, Browser, World};

fn assert_guarded(page: &Answer) {
    let policy = page.header("content-security-policy");
    assert!(
        policy.starts_with(
            "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'"
        )
    );
    assert!(
        policy.ends_with("base-uri 'none'; frame-ancestors 'none'"),
        "{policy}"
    );
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    assert_eq!(page.header("x-frame-options"), "DENY");
    assert_eq!(page.header("cache-control"), "private, no-store");
    page.shows("<script src=\"/script.js\" defer></script>");
    assert_eq!(page.text.matches("<script").count(), 1, "{}", page.text);
    page.hides("style=");
    page.hides("<b>Home</b>");
    assert!(!page.text.contains('\u{202e}'), "{}", page.text);
}

#[tokio::test]
async fn every_page_is_guarded_and_escapes_what_others_wrote() {
    let world = World::new().await;
    let hostile = serde_json::json!({
        "client_name": "\"><script>alert(1)</script>\u{202e}",
        "redirect_uris": ["https://app.example/cb"],
    });
    let client = world.register(&hostile).await;
    let client = client["client_id"].as_str().unwrap();
    // A text of a record that would turn and hide what stands around it.
    let letter = serde_json::json!({"key": "x1", "data": {
        "id": "x1", "subject": "a\u{202e}b\u{2066}\u{200b}c", "secret": "s", "received_at": "2026-05-01T00:00:00Z",
    }});
    let ingest = "/v1/ingest/messages?connection_id=home";
    world.write(ingest, letter.to_string()).await;
    let mut browser = world.browser().await;
    let request = browser.ask(client, &[]).await;
    let picker = browser.picker(&request).await;
    let pick = [("stream", "home/messages"), ("stream", "work/messages")];
    let review = browser.review(&request, &pick).await;
    review.shows("a\\u{202e}b\\u{2066}\\u{200b}c");
    let own = browser.get("/grants/new").await;
    let csrf = own.field("csrf");
    let ticked = [
        ("csrf", csrf.as_str()),
        ("client", "App"),
        ("source", "home"),
    ];
    let own = browser.post("/grants/new/review", &ticked).await;
    own.shows("a\\u{202e}b");
    let connection = browser.get("/connections/home").await;
    connection.shows("<h1><bdi>&#60;b&#62;Home&#60;/b&#62; \\u{202e}mail</bdi></h1>");
    let code = browser.allow(&review).await;
    let tokens = world.tokens(client, &code).await;
    let token = tokens["access_token"].as_str().unwrap();
    world
        .read(token, "/v1/streams/messages/records?connection_id=home")
        .await;
    let package = tokens["grant_package_id"].as_str().unwrap();
    let grant = browser.get(&format!("/grants/{package}")).await;
    grant.shows("href=\"/records/home/messages/m1\"");
    let home = browser.get("/").await;
    home.shows("4 records");
    let record = browser.get("/records/home/messages/m1").await;
    record.shows("Letter 1 &#60;script&#62;alert(1)");
    let device = browser.get("/device?user_code=%22%3E%3Cscript%3E").await;
    let sign_in = Browser::new(&world)
        .get("/sign-in?code=%22%3E%3Cscript%3E&return_to=%22")
        .await;
    let missing = browser.get("/records/home/messages/%3Cscript%3E").await;
    assert_eq!(missing.status, 404);
    let sessions = browser.get("/sessions").await;
    for page in [
        picker, review, own, grant, home, record, device, sessions, sign_in, missing,
    ] {
        assert_guarded(&page);
        assert_eq!(page.text.matches("<h1>").count(), 1);
        page.shows("<html lang=\"en\">");
        page.shows("viewport");
    }
}

#[tokio::test]
async fn pages_of_the_owner_are_for_the_owner() {
    let world = World::new().await;
    let mut nobody = Browser::new(&world);
    for target in [
        "/consent?request=req_1",
        "/device",
        "/sessions",
        "/grants",
        "/grants/new",
        "/grants/grt_1",
        "/grants/grt_1/activity",
        "/grants/grt_1/end",
        "/browse",
        "/browse/work/messages",
        "/browse/work/messages/download",
        "/timeline",
        "/records/work/messages/m1",
        "/records/work/messages/m1/file",
        "/search?q=fee",
    ] {
        let answer = nobody.get(target).await;
        assert_eq!(answer.status, 303, "{target}");
        assert!(
            answer
                .header("location")
                .starts_with("/sign-in?return_to=%2F"),
            "{target}"
        );
        assert_eq!(answer.text, "");
    }
    assert_eq!(nobody.get("/").await.header("location"), "/sign-in");
    nobody.cookies.insert(
        "__Host-pdpp_session".to_owned(),
        "pdpp_session_made-up".to_owned(),
    );
    assert_eq!(nobody.get("/records/work/messages/m1").await.status, 303);
}

#[tokio::test]
async fn a_citation_opens_its_record() {
    let world = World::new().await;
    let found = world
        .read(&world.owner, "/v1/search?q=overdraft")
        .await
        .json();
    let citation = found["data"][0]["citation_url"].as_str().unwrap();
    let path = citation.strip_prefix(crate::fixture::URL).unwrap();
    let page = world.browser().await.get(path).await;
    assert_eq!(page.status, 200, "{path}");
    page.shows("The overdraft fee is 42 EUR.");
    page.shows("hunter2");
    // TR-15: its own time, and apart from it when it was imported.
    page.shows("<time datetime=\"2026-03-01T09:00:00.000Z\"");
    page.shows("<dt>Emitted or imported</dt><dd><time datetime=\"2026-06-01T12:00:00.000Z\"");
}

#[tokio::test]
async fn style_and_icon_are_kept_by_browsers() {
    let world = World::new().await;
    for (path, kind) in [
        ("/style.css", "text/css; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
    ] {
        let answer = world.get(path).await;
        assert_eq!(answer.header("content-type"), kind);
        assert_eq!(answer.header("cache-control"), "public, max-age=3600");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
    }
}

#[tokio::test]
async fn pages_are_counted_like_everything_else() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    browser.get("/").await;
    // The owner's browser may see them, and no other.
    assert_eq!(world.get("/metrics").await.status, 401);
    let figures = browser.get("/metrics").await.text;
    assert!(figures.contains("operation=\"pageHome\""), "{figures}");
    assert!(
        figures.contains("operation=\"signIn\",status=\"3xx\""),
        "{figures}"
    );
}

#[tokio::test]
async fn an_approval_that_nobody_comes_for_is_not_shown_as_given() {
    let world = World::new().await;
    let client = world.client().await;
    let mut browser = world.browser().await;
    let request = browser.ask(&client, &[]).await;
    browser
        .approve(&request, &[("stream", "home/messages")])
        .await;
    let home = browser.get("/").await;
    home.shows("the application has not come for it yet");
    let grants = browser.get("/grants").await;
    grants.shows("<h2 id=\"waiting\">Waiting</h2>");
    grants.shows("Nobody. Make a grant");
    // By its name, not its id.
    grants.shows("mail messages: ");
    grants.hides("home messages: ");
    world.pass(Duration::from_mins(2));
    let grants = browser.get("/grants").await;
    grants.shows("Nobody. Make a grant");
    grants.shows("the application never came for it");
    grants.hides("/end\"");
    browser.get("/").await.shows("Nobody.");
}

#[tokio::test]
async fn the_first_page_tells_what_changed_since_the_last_visit() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    browser.get("/").await.hides("since your last visit");
    world.ingest("home", 5).await;
    world.pass(Duration::from_mins(2));
    browser.get("/").await.hides("since your last visit");
    world.pass(Duration::from_hours(2));
    let (client, mut other) = (world.client().await, world.browser().await);
    let request = other.ask(&client, &[]).await;
    let code = other
        .approve(&request, &[("stream", "home/messages")])
        .await;
    let tokens = world.tokens(&client, &code).await;
    let token = tokens["access_token"].as_str().unwrap();
    world
        .read(token, "/v1/streams/messages/records?connection_id=home")
        .await;
    let page = browser.get("/").await;
    page.shows("<a href=\"#since\"><b>+2</b>");
    page.shows("<span class=\"count\">2 more</span>");
    page.shows("was shown 5 records in 1 call");
    // The visit goes on, and is compared with the same one.
    world.pass(Duration::from_mins(20));
    browser.get("/").await.shows("<b>+2</b>");
    world.pass(Duration::from_hours(2));
    browser
        .get("/")
        .await
        .shows("Nothing has changed, and nobody has read.");
}

#[tokio::test]
async fn a_month_without_a_backup_is_told_until_there_is_one() {
    let world = World::new().await;
    let told = "There is no backup yet.";
    world.browser().await.get("/").await.hides(told);
    world.pass(Duration::from_hours(31 * 24));
    let mut browser = world.browser().await;
    let page = browser.get("/").await;
    page.shows(told);
    page.shows("href=\"/settings#backup\"");
    let csrf = page.field("csrf");
    browser.post("/settings/backup", &[("csrf", &csrf)]).await;
    browser.get("/").await.hides(told);
}

#[tokio::test]
async fn what_fails_in_a_browser_is_a_page_whatever_fails() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    // An address that only takes forms leads to the page of its form.
    for (target, page) in [
        ("/grants/new/review", "/grants/new"),
        ("/sessions/end-others", "/sessions"),
        ("/connections/work/rename", "/connections/work"),
        ("/settings/backup", "/settings"),
        ("/sign-out", "/"),
    ] {
        let answer = browser.get(target).await;
        assert_eq!(answer.status, 303, "{target}");
        assert_eq!(answer.header("location"), page);
    }
    let program = world.get("/settings/backup").await;
    assert_eq!(program.status, 405);
    assert_eq!(program.json()["error"]["code"], "method_not_allowed");
    let elsewhere = [("host", "evil.example"), ("accept", "text/html")];
    let mut request = axum::http::Request::get("/browse");
    for (name, value) in elsewhere {
        request = request.header(name, value);
    }
    let request = request.body(axum::body::Body::empty()).unwrap();
    let page = world.send(request).await;
    assert_eq!(page.status, 421);
    assert_guarded(&page);
    page.shows("another host than this server goes by");
}
