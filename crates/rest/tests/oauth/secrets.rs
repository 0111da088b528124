//! What is tried with secrets that are stolen, replayed, guessed or meant for something else: each is refused with its
//! status, and none is ever logged.

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use crate::fixture::{Answer, Browser, DEVICE, PASSWORD, URL, VERIFIER, World, redeeming};
use crate::listening;

async fn tools(world: &World, token: &str) -> Answer {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let request = Request::post("/mcp")
        .header("host", "pdpp.example")
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(Body::from(message.to_string()));
    world.send(request.unwrap()).await
}

async fn tokens(world: &World, client: &str, more: &[(&str, &str)], pick: &str) -> (String, Value) {
    let mut browser = world.browser().await;
    let request = browser.ask(client, more).await;
    let code = browser.approve(&request, &[("stream", pick)]).await;
    let answer = world.post("/oauth/token", &redeeming(client, &code)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    (code, answer.json())
}

fn text<'a>(tokens: &'a Value, name: &str) -> &'a str {
    tokens[name].as_str().unwrap()
}

fn renewing<'a>(client: &'a str, token: &'a str) -> [(&'a str, &'a str); 3] {
    [
        ("grant_type", "refresh_token"),
        ("client_id", client),
        ("refresh_token", token),
    ]
}

// Decision 30: wrong audience
#[tokio::test]
async fn a_token_for_the_tools_reads_nothing_else_and_cannot_be_widened() {
    let world = World::new().await;
    let client = world.client().await;
    let resource = format!("{URL}/mcp");
    let asked = [("resource", resource.as_str())];
    let (_, narrow) = tokens(&world, &client, &asked, "work/messages").await;
    let token = text(&narrow, "access_token");
    assert_eq!(tools(&world, token).await.status, 200);
    for target in ["/v1/schema", "/v1/streams", "/v1/search?q=fee"] {
        let refused = world.read(token, target).await;
        assert_eq!(refused.status, 401, "{target}");
        assert!(refused.header("www-authenticate").contains("invalid_token"));
        refused.hides(token);
    }
    let renewal = text(&narrow, "refresh_token");
    for elsewhere in ["https://other.example", URL] {
        let mut form = renewing(&client, renewal).to_vec();
        form.push(("resource", elsewhere));
        let refused = world.post("/oauth/token", &form).await;
        refused.refused(400, "invalid_target");
    }
    listening::kept_secret([token, renewal]);
}

// Decision 29: another client's code, replayed codes and refresh tokens
#[tokio::test]
async fn what_was_stolen_or_used_before_is_refused_and_not_logged() {
    let world = World::new().await;
    let (client, thief) = (world.client().await, world.client().await);
    let (code, first) = tokens(&world, &client, &[], "work/messages").await;
    let renewal = text(&first, "refresh_token");
    let stolen = world.post("/oauth/token", &renewing(&thief, renewal)).await;
    stolen.refused(400, "invalid_grant");
    let form = [
        ("client_id", thief.as_str()),
        ("token", text(&first, "access_token")),
    ];
    let revoked = world.post("/oauth/revoke", &form).await;
    assert_eq!(revoked.refusal().0, 400, "not the thief's to end");
    let second = world
        .post("/oauth/token", &renewing(&client, renewal))
        .await;
    assert_eq!(second.status, 200, "the thief used nothing up");
    let second = second.json();
    let replayed = world
        .post("/oauth/token", &renewing(&client, renewal))
        .await;
    replayed.refused(400, "invalid_grant");
    for token in [&first, &second] {
        let token = text(token, "access_token");
        assert_eq!(world.read(token, "/v1/schema").await.status, 401);
        assert_eq!(tools(&world, token).await.status, 401);
    }
    let again = world.post("/oauth/token", &redeeming(&client, &code)).await;
    again.refused(400, "invalid_grant");
    let late = world.post("/oauth/token", &redeeming(&thief, &code)).await;
    late.refused(400, "invalid_grant");
    let all = [&first, &second]
        .map(|tokens| [text(tokens, "access_token"), text(tokens, "refresh_token")]);
    listening::kept_secret(all.into_iter().flatten().chain([code.as_str(), VERIFIER]));
}

// Decisions 31 and 32: guesses, foreign forms, tampered and stale decisions leave no trace of what was sent
#[tokio::test]
async fn what_is_typed_or_sent_at_the_pages_is_not_logged() {
    let world = World::new().await;
    let client = world.client().await;
    let mut browser = world.browser().await;
    let page = browser.reviewing(&client).await;
    let [csrf, request, digest] = ["csrf", "request", "digest"].map(|name| page.field(name));
    let tampered = [
        ("csrf", csrf.as_str()),
        ("request", &request),
        ("digest", "a-digest-that-was-made-up"),
    ];
    assert_eq!(
        browser.post("/consent/approve", &tampered).await.status,
        409
    );
    let foreign = [
        ("csrf", "a-token-that-was-made-up"),
        ("request", &request),
        ("digest", &digest),
    ];
    assert_eq!(browser.post("/consent/approve", &foreign).await.status, 403);
    assert_eq!(browser.decide(&page, "approve").await.status, 303);
    assert_eq!(browser.decide(&page, "approve").await.status, 409, "once");
    let mut guessing = Browser::new(&world);
    let own = guessing.get("/sign-in").await.field("csrf");
    for _ in 0..6 {
        let form = [
            ("csrf", own.as_str()),
            ("password", "a guess nobody may read"),
        ];
        assert_eq!(guessing.post("/sign-in", &form).await.status, 403);
    }
    let typed = [("csrf", csrf.as_str()), ("user_code", "QQQQ-WWWW")];
    assert_eq!(browser.post("/device", &typed).await.status, 404);
    let polled = [
        ("grant_type", DEVICE),
        ("client_id", client.as_str()),
        ("device_code", "pdpp_device_made-up-by-somebody"),
    ];
    let polled = world.post("/oauth/token", &polled).await;
    polled.refused(400, "invalid_grant");
    let session = browser.cookies["__Host-pdpp_session"].as_str();
    listening::kept_secret([
        PASSWORD,
        "a guess nobody may read",
        "a-digest-that-was-made-up",
        "a-token-that-was-made-up",
        "QQQQ-WWWW",
        "made-up-by-somebody",
        &csrf,
        session,
    ]);
}
