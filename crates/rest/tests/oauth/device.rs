//! The device flow: a code typed by the owner, and a device that waits.

use std::time::Duration;

use serde_json::Value;

use crate::fixture::{Answer, DEVICE, MESSAGES, URL, World};

async fn start(world: &World, client: &str) -> Value {
    let form = [("client_id", client), ("resource", &format!("{URL}/mcp"))];
    let answer = world.post("/oauth/device_authorization", &form).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.header("cache-control"), "no-store");
    answer.json()
}

async fn poll(world: &World, client: &str, device: &Value) -> Answer {
    let code = device["device_code"].as_str().unwrap();
    let form = [
        ("grant_type", DEVICE),
        ("client_id", client),
        ("device_code", code),
    ];
    world.post("/oauth/token", &form).await
}

#[tokio::test]
async fn a_device_waits_until_its_code_is_typed_and_allowed() {
    let world = World::new().await;
    let client = world.client().await;
    let device = start(&world, &client).await;
    assert_eq!(device["verification_uri"], format!("{URL}/device"));
    poll(&world, &client, &device)
        .await
        .refused(400, "authorization_pending");
    assert_eq!(
        poll(&world, &client, &device).await.refusal().1,
        "slow_down"
    );

    let mut browser = world.browser().await;
    let complete = device["verification_uri_complete"].as_str().unwrap();
    let page = browser.get(complete.strip_prefix(URL).unwrap()).await;
    let typed = page.field("csrf");
    // Typed by hand, it may be lower case and without the dash.
    let code = device["user_code"]
        .as_str()
        .unwrap()
        .to_lowercase()
        .replace('-', " ");
    page.shows(device["user_code"].as_str().unwrap());
    let wrong = browser
        .post("/device", &[("csrf", &typed), ("user_code", "BBBB-BBBB")])
        .await;
    assert_eq!(wrong.status, 404);
    wrong.shows("No device waits");
    let sent = browser
        .post("/device", &[("csrf", &typed), ("user_code", &code)])
        .await;
    let request = sent.sent_with("request").unwrap();
    let page = browser.review(&request, MESSAGES).await;
    page.shows("Only through MCP");
    let done = browser.decide(&page, "approve").await;
    assert_eq!(done.status, 200);
    done.shows("<h1>Allowed</h1>");

    world.pass(Duration::from_secs(11));
    let tokens = poll(&world, &client, &device).await;
    assert_eq!(tokens.status, 200, "{}", tokens.text);
    assert!(tokens.json()["refresh_token"].is_string());
    // It is given out once.
    assert_eq!(
        poll(&world, &client, &device).await.refusal().1,
        "invalid_grant"
    );
}

#[tokio::test]
async fn codes_of_devices_cannot_be_guessed_for_long() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let csrf = browser.get("/device").await.field("csrf");
    let form = [("csrf", csrf.as_str()), ("user_code", "BBBB-BBBB")];
    for _ in 0..5 {
        assert_eq!(browser.post("/device", &form).await.status, 404);
    }
    let soon = Duration::from_millis(200);
    let slowed = tokio::time::timeout(soon, browser.post("/device", &form));
    assert!(slowed.await.is_err(), "the sixth is answered later");
}
