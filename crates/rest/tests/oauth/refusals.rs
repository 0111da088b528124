//! What is refused, and how: by redirect only where the application is sure to be meant, never with a secret.

use axum::body::Body;
use axum::http::Request;
use serde_json::json;

use crate::fixture::{Browser, World, authorize};

#[tokio::test]
async fn an_unknown_client_or_address_never_leads_elsewhere() {
    let world = World::new().await;
    let mut browser = Browser::new(&world);
    let client = world.client().await;
    for target in [
        authorize("cli_unknown", &[]),
        authorize("", &[]),
        authorize("https://evil.example/client.json", &[]),
        authorize("https://169.254.169.254/latest/meta-data", &[]),
        authorize(&client, &[("redirect_uri", "https://evil.example/cb")]),
        authorize(&client, &[("redirect_uri", "https://app.example/cb/")]),
        authorize(&client, &[("redirect_uri", "javascript:alert(1)")]),
        authorize(&client, &[("redirect_uri", "")]),
        format!("{}&client_id=another", authorize(&client, &[])),
    ] {
        let answer = browser.get(&target).await;
        assert_eq!(answer.status, 400, "{target}");
        assert_eq!(answer.header("location"), "");
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
        assert!(
            answer
                .header("content-security-policy")
                .contains("default-src 'none'")
        );
        answer.hides("<script>");
    }
}

#[tokio::test]
async fn bad_token_requests_are_told_in_the_form_of_oauth() {
    let world = World::new().await;
    let client = world.client().await;
    for (form, refusal) in [
        (vec![], (400, "invalid_request")),
        (
            vec![("grant_type", "password")],
            (400, "unsupported_grant_type"),
        ),
        (
            vec![("grant_type", "refresh_token"), ("client_id", "nobody")],
            (401, "invalid_client"),
        ),
        (
            vec![("grant_type", "refresh_token"), ("client_id", &client)],
            (400, "invalid_request"),
        ),
        (
            vec![
                ("grant_type", "refresh_token"),
                ("client_id", &client),
                ("client_id", &client),
            ],
            (400, "invalid_request"),
        ),
    ] {
        let answer = world.post("/oauth/token", &form).await;
        assert_eq!(
            answer.refusal(),
            (refusal.0, refusal.1.to_owned()),
            "{form:?}"
        );
    }
    let request = Request::post("/oauth/token")
        .header("content-type", "application/json")
        .body(Body::from("{}"));
    assert_eq!(world.send(request.unwrap()).await.refusal().0, 400);
    assert_eq!(world.get("/oauth/token").await.status, 405);
}

#[tokio::test]
async fn bodies_are_bounded() {
    let world = World::new().await;
    let large = "a large secret ".repeat(40 * 1024);
    for target in [
        "/oauth/token",
        "/oauth/device_authorization",
        "/oauth/revoke",
    ] {
        let answer = world.post(target, &[("a", &large)]).await;
        answer.refused(413, "invalid_request");
    }
    let answer = world.registering(&json!({"client_name": large})).await;
    assert_eq!(answer.status, 413);
    let mut browser = world.browser().await;
    let answer = browser.post("/consent/review", &[("a", &large)]).await;
    assert_eq!(answer.status, 413);
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    let many: Vec<(&str, &str)> = vec![("a", "b"); 20_001];
    assert_eq!(browser.post("/consent/review", &many).await.status, 400);
    crate::listening::kept_secret(["a large secret"]);
}

#[tokio::test]
async fn registrations_are_checked_and_bounded() {
    let world = World::new().await;
    let mistaken = json!({"redirect_uris": ["http://evil.example/cb"]});
    let refused = world.registering(&mistaken).await.refusal();
    assert_eq!(refused, (400, "invalid_redirect_uri".to_owned()));
    let good = json!({"redirect_uris": ["https://app.example/cb"]});
    let mut last = 0;
    for _ in 0..130 {
        let answer = world.registering(&good).await;
        last = answer.status.as_u16();
        if last == 429 {
            assert_eq!(answer.refusal().1, "slow_down");
            assert!(!answer.header("retry-after").is_empty());
            break;
        }
    }
    assert_eq!(last, 429);
    world.pass(std::time::Duration::from_mins(10));
    assert_eq!(world.registering(&good).await.status, 201);
    assert_eq!(
        world.get("/oauth/register/cli_unknown").await.refusal().0,
        401
    );
}

#[tokio::test]
async fn only_accepted_requests_count_and_the_owner_is_not_locked_out() {
    // TR-05
    let world = World::new().await;
    let client = world.client().await;
    let unseen = |target: String, verb: &str| {
        Request::builder()
            .method(verb)
            .uri(target)
            .header("sec-fetch-site", "cross-site")
            .header("sec-fetch-mode", "no-cors")
            .header("sec-fetch-dest", "image")
            .header("content-type", "application/json")
            .body(Body::from(
                "{\"redirect_uris\": [\"https://app.example/cb\"]}",
            ))
            .unwrap()
    };
    for _ in 0..150 {
        let pictures = world.send(unseen(authorize(&client, &[]), "GET")).await;
        assert_eq!(pictures.status, 403);
        let sent = world.send(unseen("/oauth/register".to_owned(), "POST"));
        assert_eq!(sent.await.status, 403);
        assert_eq!(world.registering(&json!([])).await.status, 400);
        let wrong = [("response_type", "token")];
        assert_eq!(world.get(&authorize(&client, &wrong)).await.status, 303);
    }
    let good = json!({"redirect_uris": ["https://app.example/cb"]});
    for _ in 0..119 {
        assert_eq!(world.registering(&good).await.status, 201);
    }
    assert_eq!(world.registering(&good).await.status, 429);
    assert_eq!(world.get(&authorize(&client, &[])).await.status, 429);
    let mut browser = world.browser().await;
    let request = browser.ask(&client, &[]).await;
    assert!(request.starts_with("req_"), "{request}");
    // Also before they have signed in again.
    browser.cookies.retain(|name, _| name.contains("browser"));
    assert!(browser.ask(&client, &[]).await.starts_with("req_"));
}

/// Where forms of the pages go, but for those that have a test of their own: signing in, and uploads.
fn forms() -> Vec<String> {
    let table = include_str!("../../src/console.rs");
    let posted = table.split("page!(Post \"").skip(1);
    let posted = posted.map(|row| row.split('"').next().unwrap());
    let posted = posted.filter(|path| !["/sign-in", "/import"].contains(path));
    let forms: Vec<String> = posted
        .map(|path| {
            let parts = path.split('/');
            let parts = parts.map(|part| if part.starts_with('{') { "x1" } else { part });
            parts.collect::<Vec<_>>().join("/")
        })
        .collect();
    assert!(forms.len() > 20, "{forms:?}");
    forms
}

#[tokio::test]
async fn a_form_from_elsewhere_does_nothing() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let client = world.client().await;
    let page = browser.reviewing(&client).await;
    let (request, digest) = (page.field("request"), page.field("digest"));
    let mut stranger = world.browser().await;
    let theirs = stranger.get("/").await.field("csrf");
    for csrf in ["", "nonsense", &theirs] {
        let form = [("csrf", csrf), ("request", &request), ("digest", &digest)];
        for target in forms() {
            let answer = browser.post(&target, &form).await;
            assert_eq!(answer.status, 403, "{target} with {csrf:?}");
            answer.shows("does not belong to this session");
        }
    }
    // Without a session nothing is decided either, whatever the form says.
    let mut nobody = Browser::new(&world);
    let answer = nobody.decide(&page, "approve").await;
    assert!(answer.header("location").starts_with("/sign-in?return_to="));
    assert_eq!(browser.decide(&page, "approve").await.status, 303);
    crate::listening::kept_secret([theirs.as_str(), &page.field("csrf")]);
}
