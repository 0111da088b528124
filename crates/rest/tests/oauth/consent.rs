//! Deciding: what can be picked, what is shown before, and what cannot be slipped in between.

use serde_json::{Value, json};

use crate::fixture::{CLAUDE, MESSAGES, World};

fn details(change: impl FnOnce(&mut Value)) -> String {
    let mut detail = json!({
        "type": "https://pdpp.dev/data-access",
        "source": {"id": "https://sources.example/demo_mail"},
        "purpose_code": "https://pdpp.dev/purpose/agent_context",
        "purpose_description": "To <i>answer</i> questions",
        "access_mode": "continuous",
        "streams": [{
            "name": "messages",
            "instance_ids": ["work"],
            "fields": ["id", "subject", "received_at"],
            "time_range": {"since": "2026-03-02"},
        }],
    });
    change(&mut detail);
    json!([detail]).to_string()
}

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

#[tokio::test]
async fn of_details_all_or_less_is_given_but_never_more() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let client = world.client().await;
    let asked = details(|_| {});
    let request = browser
        .ask(&client, &[("authorization_details", &asked)])
        .await;
    let page = browser.picker(&request).await;
    page.shows("It says: <q><bdi>To &#60;i&#62;answer&#60;/i&#62; questions</bdi></q>");
    page.hides("home/messages");
    page.hides("work/messages/body");
    page.hides("value=\"work/messages\" checked");
    let more = browser
        .review(&request, &[("stream", "home/messages")])
        .await;
    assert_eq!(more.status, 400);
    more.shows("was not asked for");
    let less = [
        ("stream", "work/messages"),
        ("field", "work/messages/subject"),
    ];
    let page = browser.review(&request, &less).await;
    page.shows("work messages: subject; only received_at from");
    let page = browser.review(&request, &[("all", "1")]).await;
    page.shows(
        "work messages: id, subject, received_at; only received_at from 2026-03-02 00:00 UTC",
    );
    page.shows("<b>2 records</b> now.");
    let code = browser.allow(&page).await;
    let tokens = world.tokens(&client, &code).await;
    assert_eq!(
        tokens["authorization_details"][0]["streams"][0]["fields"],
        json!(["id", "subject", "received_at"])
    );
}

#[tokio::test]
async fn the_owner_is_told_what_is_not_here_and_may_give_the_rest_or_deny() {
    // TR-04
    let world = World::new().await;
    let mut browser = world.browser().await;
    let client = world.client().await;
    let asked = details(|detail| {
        let diaries = json!({"name": "dia\u{202e}ries", "instance_ids": ["work"]});
        detail["streams"].as_array_mut().unwrap().push(diaries);
    });
    let request = browser
        .ask(&client, &[("authorization_details", &asked)])
        .await;
    let page = browser.picker(&request).await;
    assert_eq!(page.status, 200, "{}", page.text);
    let told = "has no stream &#34;dia\\u{202e}ries&#34;; known: messages";
    page.shows(told);
    page.hides("Review all that is asked");
    assert_eq!(browser.review(&request, &[("all", "1")]).await.status, 400);
    let page = browser.review(&request, MESSAGES).await;
    page.shows("work messages: id, subject, received_at");
    assert!(!browser.allow(&page).await.is_empty());

    let nothing = details(|detail| detail["source"]["id"] = json!("https://sources.example/x"));
    let request = browser
        .ask(&client, &[("authorization_details", &nothing)])
        .await;
    let page = browser.picker(&request).await;
    page.shows("Nothing of what it asks for is here");
    page.hides("Review what I ticked");
    let csrf = page.field("csrf");
    let form = [("csrf", csrf.as_str()), ("request", &request)];
    let denied = browser.post("/consent/deny", &form).await;
    assert_eq!(denied.sent_with("error").as_deref(), Some("access_denied"));
}

#[tokio::test]
async fn once_stays_once_and_training_takes_a_yes() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let client = world.client().await;
    let asked = details(|detail| {
        detail["access_mode"] = json!("single_use");
        detail["purpose_code"] = json!("https://pdpp.dev/purpose/ai_training");
    });
    let request = browser
        .ask(&client, &[("authorization_details", &asked)])
        .await;
    let page = browser.review(&request, &[("all", "1")]).await;
    assert_eq!(page.status, 400);
    page.shows("explicit yes");
    page.shows("name=\"training\" value=\"yes\">");
    let widened = [("all", "1"), ("training", "yes"), ("mode", "continuous")];
    assert_eq!(browser.review(&request, &widened).await.status, 400);
    let page = browser
        .review(&request, &[("all", "1"), ("training", "yes")])
        .await;
    page.shows("Once: one token");
    let code = browser.allow(&page).await;
    let tokens = world.tokens(&client, &code).await;
    assert!(tokens.get("refresh_token").is_none());
    assert_eq!(tokens["expires_in"], 86_400);
}

#[tokio::test]
async fn something_is_found_among_what_can_be_given_and_ticks_stay() {
    let world = World::new().await;
    let client = world.client().await;
    let mut browser = world.browser().await;
    let request = browser.ask(&client, &[]).await;
    let ticked = ("stream", "home/messages");
    let find = [ticked, ("narrow", "find"), ("find", "WORK MAIL")];
    let page = browser.review(&request, &find).await;
    assert_eq!(page.status, 200, "{}", page.text);
    page.shows("value=\"work/messages\">");
    page.shows("value=\"home/messages\" checked>");
    let other = [("narrow", "find"), ("find", "work mail")];
    browser
        .review(&request, &other)
        .await
        .hides("value=\"home/messages\"");
    // Without words the button goes on.
    let on = browser
        .review(&request, &[ticked, ("narrow", "find")])
        .await;
    on.shows("This is what");
}

#[tokio::test]
async fn the_warning_says_how_far_an_application_is_known() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let mut registered = Vec::new();
    for redirect in [
        "https://app.example/cb",
        "http://127.0.0.1:5000/cb",
        "cursor://anysphere.cursor-mcp/cb",
    ] {
        let metadata = json!({"client_name": "An app", "redirect_uris": [redirect]});
        let client = world.register(&metadata).await;
        let client = client["client_id"].as_str().unwrap().to_owned();
        registered.push((client, redirect));
    }
    let [anybody, port, scheme] = registered.try_into().unwrap();
    let published = (CLAUDE.to_owned(), "http://localhost/callback");
    for ((client, redirect), grade) in [
        (published, "proven"),
        (port, "care"),
        (scheme, "care"),
        (anybody, "mistake"),
    ] {
        let request = browser.ask(&client, &[("redirect_uri", redirect)]).await;
        let page = browser.picker(&request).await;
        let graded = ["proven", "care", "mistake"].map(|class| {
            let sure = ["Anybody could", "It is published"];
            sure.iter()
                .any(|words| page.text.contains(&format!("<p class=\"{class}\">{words}")))
        });
        let expected = ["proven", "care", "mistake"].map(|class| class == grade);
        assert_eq!(graded, expected, "{redirect}");
    }
}
