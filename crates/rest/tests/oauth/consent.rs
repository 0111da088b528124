//! Deciding: what can be picked, what is shown before, and what cannot be slipped in between.

use crate::fixture::World;

#[tokio::test]
async fn nothing_is_selected_beforehand_and_nothing_grants_nothing() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let client = world.client().await;
    let request = browser.ask(&client, &[]).await;
    let page = browser.picker(&request).await;
    page.hides("checkbox\" name=\"stream\" value=\"work/messages\" checked");
    assert_eq!(
        page.text.matches(" checked").count(),
        1,
        "only that it continues"
    );
    page.shows("Anybody could have registered under this name");
    page.shows("The answer goes to https://app.example.");
    let page = browser.review(&request, &[]).await;
    assert_eq!(page.status, 400);
    page.shows("nothing is selected");
    assert!(
        grants::list(&*world.store, contract::time::Clock::now(&*world.clock))
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn what_was_ticked_stays_ticked_when_something_is_wrong() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let client = world.client().await;
    let request = browser.ask(&client, &[]).await;
    let pick = [
        ("stream", "work/messages"),
        ("field", "work/messages/subject"),
        ("since:work/messages", "2026-05-01"),
        ("until:work/messages", "2026-04-01"),
        ("days", "7"),
        ("mode", "single_use"),
    ];
    let page = browser.review(&request, &pick).await;
    assert_eq!(page.status, 400);
    for kept in [
        "value=\"work/messages\" checked",
        "value=\"work/messages/subject\" checked",
        "value=\"2026-05-01\"",
        "value=\"7\" selected",
        "value=\"single_use\" checked",
    ] {
        page.shows(kept);
    }
}
