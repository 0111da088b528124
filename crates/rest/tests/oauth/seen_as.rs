//! Pages as a grant sees them: exactly what its client gets for the same question, and nothing of it is the client's
//! reading.

use std::time::Duration;

use serde_json::{Value, json};

use crate::fixture::{Answer, Browser, World};

/// A client that may read the subjects and times of letters at work since March 2nd.
const NARROW: &[(&str, &str)] = &[
    ("stream", "work/messages"),
    ("field", "work/messages/id"),
    ("field", "work/messages/subject"),
    ("field", "work/messages/received_at"),
    ("since:work/messages", "2026-03-02"),
];

struct Granted {
    token: String,
    id: String,
}

async fn granted(world: &World, browser: &mut Browser<'_>) -> Granted {
    let client = world.client().await;
    let request = browser.ask(&client, &[]).await;
    let code = browser.approve(&request, NARROW).await;
    let tokens = world.tokens(&client, &code).await;
    Granted {
        token: tokens["access_token"].as_str().unwrap().to_owned(),
        id: tokens["grant_id"].as_str().unwrap().to_owned(),
    }
}

/// The records a page leads to, in its order.
pub(crate) fn linked(page: &Answer) -> Vec<String> {
    let links = page.text.split("href=\"/records/").skip(1);
    let link = |rest: &str| rest.split(['"', '?']).next().unwrap().to_owned();
    links.map(link).collect()
}

/// The records of an answer of the API, in its order.
pub(crate) fn answered(body: &Value) -> Vec<String> {
    let records = body["data"].as_array().unwrap().iter();
    let name = |one: &Value| {
        let key = one["record_key"].as_str().or(one["id"].as_str()).unwrap();
        let (connection, stream) = (
            one["connection_id"].as_str().unwrap(),
            one["stream"].as_str().unwrap(),
        );
        format!("{connection}/{stream}/{key}")
    };
    records.map(name).collect()
}

/// Checks that a page shows what an answer has of each record.
fn shows_what_was_given(shown: &Answer, body: &Value) {
    for record in body["data"].as_array().unwrap() {
        for text in [&record["data"]["subject"], &record["title"]] {
            let text = text.as_str().unwrap_or_default();
            shown.shows(&text.replace('<', "&#60;").replace('>', "&#62;"));
        }
    }
}

#[tokio::test]
async fn a_page_seen_as_a_grant_has_what_its_client_gets() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let Granted { token, id } = granted(&world, &mut browser).await;
    for (page, question) in [
        ("/search?q=letter", "/v1/search?q=letter&limit=20"),
        ("/search?q=overdraft", "/v1/search?q=overdraft"),
        (
            "/search?q=letter&order=oldest",
            "/v1/search?q=letter&order=oldest",
        ),
        (
            "/browse/work/messages?order=asc",
            "/v1/streams/messages/records?order=asc",
        ),
        (
            "/timeline?day=2026-03-03",
            "/v1/streams/messages/records?filter[received_at][gte]=2026-03-03",
        ),
        (
            "/timeline?day=2026-03-01",
            "/v1/streams/messages/records?filter[received_at][lt]=2026-03-02",
        ),
    ] {
        let mark = if page.contains('?') { '&' } else { '?' };
        let shown = browser.get(&format!("{page}{mark}as={id}")).await;
        assert_eq!(shown.status, 200, "{page}: {}", shown.text);
        shown.shows("You see this page as");
        let body = world.read(&token, question).await.json();
        assert_eq!(linked(&shown), answered(&body), "{page}");
        shows_what_was_given(&shown, &body);
        if page.starts_with("/browse") {
            let question = format!("{question}&count=exact");
            let counted = world.read(&token, &question).await;
            let count = counted.json()["meta"]["count"]["value"].clone();
            shown.shows(&format!("<b>{count} records</b>"));
        }
        for hidden in ["hunter2", "42 EUR", "bank@example.test", "/home/"] {
            shown.hides(hidden);
        }
    }
    let record = browser
        .get(&format!("/records/work/messages/m2?as={id}"))
        .await;
    record.shows("Letter 2");
    record.hides("hunter2");
    record.hides("Who has read it");
    record.shows("Back to your own view");
    // What the client cannot read is not there.
    for target in [
        "/records/work/messages/m1",
        "/records/home/messages/m2",
        "/records/work/attachments/a1",
    ] {
        let shown = browser.get(&format!("{target}?as={id}")).await;
        let expected = world.read(&token, &v1(target)).await;
        assert_eq!(shown.status, expected.status, "{target}");
        assert!(shown.status == 404 || shown.status == 403, "{target}");
    }
}

/// The same record for a client.
fn v1(page: &str) -> String {
    let parts: Vec<&str> = page.split('/').collect();
    format!(
        "/v1/streams/{}/records/{}?connection_id={}",
        parts[3], parts[4], parts[2]
    )
}

#[tokio::test]
async fn looking_as_a_grant_is_not_its_clients_reading() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let Granted { id, .. } = granted(&world, &mut browser).await;
    for page in [
        "/search?q=letter",
        "/browse/work/messages?order=asc",
        "/timeline?day=2026-03-03",
        "/records/work/messages/m2?x=1",
    ] {
        assert_eq!(browser.get(&format!("{page}&as={id}")).await.status, 200);
    }
    let grant = browser.get(&format!("/grants/{id}")).await;
    grant.shows("Nothing yet.");
    let log = world.store.disclosures(None, None, 10).unwrap();
    assert!(log.is_empty(), "{log:?}");
}

#[tokio::test]
async fn two_worlds_that_differ_in_what_is_hidden_are_one_page() {
    let mut pages: Vec<Vec<String>> = Vec::new();
    for differs in [false, true] {
        let world = World::new().await;
        if differs {
            let hidden = json!({"key": "h1", "data": {"id": "h1", "subject": "Letter hidden", "received_at": "2026-03-03T08:00:00Z", "secret": "other"}});
            let target = "/v1/ingest/messages?connection_id=home";
            world.write(target, hidden.to_string()).await;
            let early = json!({"key": "h2", "data": {"id": "h2", "subject": "Letter early", "received_at": "2026-02-01T08:00:00Z", "secret": "other"}});
            let target = "/v1/ingest/messages?connection_id=work";
            world.write(target, early.to_string()).await;
        }
        let mut browser = world.browser().await;
        let Granted { id, .. } = granted(&world, &mut browser).await;
        let mut shown = Vec::new();
        for page in [
            "/search?q=letter",
            "/search?q=letter&connection=work&stream=messages",
            "/browse?x=1",
            "/browse/work/messages?order=desc",
            "/timeline?day=2026-03-03",
            "/records/work/messages/m2?x=1",
        ] {
            let page = browser.get(&format!("{page}&as={id}")).await;
            assert_eq!(page.status, 200, "{}", page.text);
            let csrf = page.field("csrf");
            shown.push(page.text.replace(&csrf, "").replace(&id, ""));
        }
        pages.push(shown);
    }
    assert_eq!(pages[0], pages[1]);
}

#[tokio::test]
async fn a_grant_that_has_ended_or_never_was_shows_a_page_that_says_so() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let Granted { id, .. } = granted(&world, &mut browser).await;
    world.pass(Duration::from_hours(24 * 120));
    let mut browser = world.browser().await;
    for id in [id.as_str(), "grt_nonsense"] {
        let page = browser.get(&format!("/search?q=letter&as={id}")).await;
        assert!(page.status.is_client_error(), "{}", page.status);
        page.shows("<html lang=\"en\">");
        page.hides("Letter 2");
    }
}

#[tokio::test]
async fn a_page_that_fails_is_still_seen_as_the_grant() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let Granted { id, .. } = granted(&world, &mut browser).await;
    let page = browser
        .get(&format!("/records/work/messages/m1?as={id}"))
        .await;
    assert_eq!(page.status, 404);
    page.shows("You see this page as <b><bdi>An app</bdi></b> does");
    page.shows("href=\"/records/work/messages/m1\">Back to your own view");
    page.shows(&format!("href=\"/search?as={id}\""));
}

#[tokio::test]
async fn a_client_that_gets_nothing_now_is_said_to_get_nothing() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let Granted { token, id } = granted(&world, &mut browser).await;
    let page = format!("/browse/work/messages?as={id}");
    browser.get(&page).await.hides("It gets nothing");
    let csrf = browser.get(&format!("/grants/{id}")).await.field("csrf");
    let target = format!("/grants/{id}/budget");
    let limit = [("csrf", csrf.as_str()), ("change", "set"), ("records", "1")];
    assert_eq!(browser.post(&target, &limit).await.status, 303);
    let read = "/v1/streams/messages/records?limit=1";
    assert_eq!(world.read(&token, read).await.status, 200);
    let refused = world.read(&token, read).await;
    assert_eq!(refused.json()["error"]["code"], "budget_exhausted");
    let shown = browser.get(&page).await;
    shown.shows("<b>It gets nothing of this now:</b>");
    shown.shows("the owner allows no more records under this grant today");
    let pause = [("csrf", csrf.as_str()), ("change", "pause")];
    assert_eq!(browser.post(&target, &pause).await.status, 303);
    // While it is paused, there is nothing to see either.
    assert_eq!(browser.get(&page).await.status, 403);
}
