//! The list of browsers in which the owner is signed in, and the end of those that should not be.

use std::time::Duration;

use crate::fixture::{Browser, World};
use crate::listening;

/// The ids of the sessions a page offers to end.
fn others(page: &str) -> Vec<String> {
    let forms = page.split("action=\"/sessions/").skip(1);
    let ids = forms.filter_map(|form| form.split_once("/end\"").map(|(id, _)| id));
    ids.filter(|id| id.starts_with("ses_"))
        .map(str::to_owned)
        .collect()
}

async fn is_in(browser: &mut Browser<'_>) -> bool {
    browser.get("/").await.status == 200
}

#[tokio::test]
async fn sessions_are_listed_with_their_times_and_one_s_own_first() {
    let world = World::new().await;
    let mut first = world.browser().await;
    world.pass(Duration::from_hours(5));
    let mut second = world.browser().await;
    let page = second.get("/sessions").await;
    assert_eq!(page.status, 200, "{}", page.text);
    let own = page.text.find("This browser").unwrap();
    let other = page.text.find("Another browser").unwrap();
    assert!(own < other);
    page.shows("a browser of the test");
    let at =
        |what: &str, hour: u8| format!("{what} <time datetime=\"2026-06-01T{hour}:00:00.000Z\"");
    let seen = at("Last seen", 12);
    assert!(
        page.text[other..].contains(&at("Signed in", 12)),
        "{}",
        page.text
    );
    assert!(page.text[other..].contains(&seen), "{}", page.text);
    assert!(page.text[own..other].contains(&at("Signed in", 17)));
    assert_eq!(others(&page.text).len(), 1, "not one's own");
    // What is used is seen.
    assert!(is_in(&mut first).await);
    let page = second.get("/sessions").await;
    page.shows(&at("Last seen", 17));
    page.hides(&seen);
    let settings = second.get("/settings").await;
    settings.shows("href=\"/sessions\"");
}

#[tokio::test]
async fn one_session_or_all_others_are_signed_out_at_once() {
    let world = World::new().await;
    let mut own = world.browser().await;
    let mut browsers = [
        world.browser().await,
        world.browser().await,
        world.browser().await,
    ];
    let page = own.get("/sessions").await;
    let ids = others(&page.text);
    assert_eq!(ids.len(), 3);
    let csrf = page.field("csrf");
    let target = format!("/sessions/{}/end", ids[0]);
    // Looking ends nothing.
    assert_eq!(own.get(&target).await.header("location"), "/sessions");
    assert_eq!(others(&own.get("/sessions").await.text).len(), 3);
    let answer = own.post(&target, &[("csrf", &csrf)]).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("location")),
        (303, "/sessions")
    );
    let mut left = 0;
    for browser in &mut browsers {
        left += usize::from(is_in(browser).await);
    }
    assert_eq!(left, 2);
    // One that has ended already is what was asked for.
    let again = own.post(&target, &[("csrf", &csrf)]).await;
    assert_eq!(again.status, 303);
    let answer = own.post("/sessions/end-others", &[("csrf", &csrf)]).await;
    assert_eq!(answer.header("location"), "/sessions");
    for browser in &mut browsers {
        assert!(!is_in(browser).await);
    }
    let page = own.get("/sessions").await;
    page.shows("There is no other.");
    page.hides("end-others");
    listening::kept_secret(own.cookies.values().map(String::as_str));
}
