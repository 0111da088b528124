//! What the pages of a grant tell: all that it gives, and all that was read under it.

use serde_json::json;

use crate::fixture::{Answer, World};
use crate::granting::{CHOSEN, token};

#[tokio::test]
async fn what_was_read_is_told_by_title_and_by_what_is_known() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let made = browser.make(CHOSEN).await;
    let token = token(&made);
    let id = world.store.grants().unwrap()[0].id.to_string();
    world.read(&token, "/v1/streams/messages/records/m1").await;
    world
        .read(&token, "/v1/streams/messages/records?fields=subject")
        .await;
    let page = browser.get(&format!("/grants/{id}/activity")).await;
    assert_eq!(page.status, 200, "{}", page.text);
    page.shows("<b>3 records</b></a> in <a href=\"#calls\">2 calls</a>");
    page.shows("Fields it saw: <bdi>id, subject</bdi>");
    page.shows("Letter 1 &#60;script&#62;alert(1)");
    page.shows("href=\"/records/work/messages/m1\"");
    page.shows("Monday, 1 June 2026");
    let found = browser.get(&format!("/grants/{id}/activity?q=m2")).await;
    let known = found.text.split_once("Call by call").unwrap().0;
    assert!(known.contains("/m2\"") && !known.contains("/m1\""));
    let checked = browser
        .get(&format!("/grants/{id}/activity?verify=1"))
        .await;
    checked.shows("The chain of all 2 entries is whole.");
}

// What the terminal says of a grant, its page says, line by line.
#[tokio::test]
async fn the_page_of_a_grant_says_no_less_than_the_terminal() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let part = [
        ("field", "work/messages/from_email"),
        ("redact:work/messages/from_email", "domain"),
        ("since:work/messages", "2026-03-02"),
        ("except-lines:work/messages", "subject~=tea"),
        ("stream", "home/attachments"),
    ];
    browser.make(&[CHOSEN, &part].concat()).await;
    let now = contract::time::Clock::now(&*world.clock);
    let id = grants::list(&*world.store, now).unwrap()[0].id.clone();
    let shown = grants::show(&*world.store, &id, now, 10).unwrap();
    let page = browser.get(&format!("/grants/{id}")).await;
    let wording = grants::Wording::whole(str::to_owned);
    let mut lines = wording.overview(&shown.overview);
    for grant in &shown.overview.grants {
        lines.extend(wording.agreed(grant));
        lines.push(wording.title(grant));
        lines.push(grant.id().to_string());
    }
    assert!(lines.len() >= 5, "{lines:?}");
    for line in lines {
        let escaped = line.replace('"', "&#34;").replace('<', "&#60;");
        page.shows(&escaped);
    }
    page.shows("Work mail (work)");
}

#[tokio::test]
async fn all_records_of_a_call_and_all_that_is_known_are_behind_links() {
    let world = World::new().await;
    world.ingest("work", 28).await;
    let lines: Vec<String> = (0..100)
        .map(|n| json!({"key": format!("x{n:03}"), "data": {"id": format!("x{n:03}"), "subject": format!("Note {n:03}"), "secret": "s"}}).to_string())
        .collect();
    let target = "/v1/ingest/messages?connection_id=work";
    world.write(target, lines.join("\n")).await;
    let mut browser = world.browser().await;
    let token = token(&browser.make(CHOSEN).await);
    let id = world.store.grants().unwrap()[0].id.to_string();
    let read = "/v1/streams/messages/records?limit=100&fields=subject";
    assert_eq!(world.read(&token, read).await.status, 200);
    let page = browser.get(&format!("/grants/{id}")).await;
    page.shows("and 90 more");
    let told = |page: &Answer| page.text.matches("href=\"/records/work/messages/").count();
    let call = page
        .text
        .split_once(&format!("href=\"/grants/{id}/activity?call="))
        .unwrap()
        .1;
    let call = call.split('"').next().unwrap().replace("&#38;", "&");
    let one = browser
        .get(&format!("/grants/{id}/activity?call={call}"))
        .await;
    // The first fifty that are known, and the other ninety of the call.
    assert_eq!(told(&one), 50 + 90, "{}", one.text);
    one.shows("One call alone.");
    let further = browser
        .get(&format!("/grants/{id}/activity?known=50"))
        .await;
    assert_eq!(told(&further), 50 + 10);
    further.hides("Further records");
    further.shows("<bdi>Note 0");
    browser
        .get(&format!("/grants/{id}/activity?call=999999"))
        .await
        .shows("There is no such call");
}
