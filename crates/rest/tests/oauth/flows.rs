//! Whole flows, as the applications people use go through them.

use std::time::Duration;

use serde_json::json;

use crate::fixture::{Browser, CLAUDE, MESSAGES, PASSWORD, URL, World};

/// What is read with a token: the keys of all messages.
async fn keys(world: &World, token: &str) -> (u16, Vec<String>) {
    let answer = world
        .read(token, "/v1/streams/messages/records?connection_id=work")
        .await;
    let rows = answer.json()["data"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let key = |row: &serde_json::Value| row["id"].as_str().unwrap().to_owned();
    (answer.status.as_u16(), rows.iter().map(key).collect())
}

/// The owner is sent to sign in, and comes back to the request.
async fn sign_in_on_the_way(browser: &mut Browser<'_>, request: &str) {
    let path = format!("/consent?request={request}");
    let answer = browser.get(&path).await;
    assert_eq!(answer.status, 303);
    let page = browser.get(answer.header("location")).await;
    let (csrf, back) = (page.field("csrf"), page.field("return_to"));
    assert_eq!(back, path);
    let form = [
        ("csrf", csrf.as_str()),
        ("return_to", &back),
        ("password", PASSWORD),
    ];
    let answer = browser.post("/sign-in", &form).await;
    assert_eq!(answer.header("location"), path);
}

#[tokio::test]
async fn claude_code_asks_by_its_document_with_a_port_of_its_own() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let callback = "http://localhost:53219/callback";
    let resource = format!("{URL}/mcp");
    let asked = [
        ("redirect_uri", callback),
        ("resource", resource.as_str()),
        ("scope", "anything"),
    ];
    let request = browser.ask(CLAUDE, &asked).await;
    let page = browser.picker(&request).await;
    page.shows("published at https://claude.ai");
    page.shows("a program on the computer");
    let page = browser.review(&request, MESSAGES).await;
    assert!(
        page.header("content-security-policy")
            .contains("form-action 'self' http://localhost:53219;")
    );
    let sent = browser.decide(&page, "approve").await;
    assert!(
        sent.header("location")
            .starts_with(&format!("{callback}?code="))
    );
    assert_eq!(sent.sent_with("state").as_deref(), Some("s 1&2"));
    assert_eq!(sent.sent_with("iss").as_deref(), Some(URL));
    let code = sent.sent_with("code").unwrap();
    let more = [("redirect_uri", callback), ("resource", &resource)];
    let tokens = world.tokens_with(CLAUDE, &code, &more).await;
    assert!(tokens["refresh_token"].is_string());
    assert_eq!(tokens["expires_in"], 3_600);
}

#[tokio::test]
async fn claude_registers_twice_and_gets_what_the_owner_picked() {
    let world = World::new().await;
    let metadata = json!({
        "client_name": "Claude",
        "redirect_uris": ["https://claude.ai/api/mcp/auth_callback"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "scope": "claudeai",
        "software_id": "whatever",
    });
    let first = world.register(&metadata).await;
    let second = world.register(&metadata).await;
    assert_ne!(first["client_id"], second["client_id"]);
    let uri = second["registration_client_uri"].as_str().unwrap();
    let again = world.get(uri.strip_prefix(URL).unwrap()).await.json();
    assert_eq!(again["client_id"], second["client_id"]);
    assert_eq!(again["redirect_uris"], metadata["redirect_uris"]);
    let client = second["client_id"].as_str().unwrap();

    let mut browser = Browser::new(&world);
    let callback = [("redirect_uri", "https://claude.ai/api/mcp/auth_callback")];
    let request = browser.ask(client, &callback).await;
    sign_in_on_the_way(&mut browser, &request).await;

    let picked = [
        ("stream", "work/messages"),
        ("field", "work/messages/id"),
        ("field", "work/messages/subject"),
        ("since:work/messages", "2026-03-02"),
        ("days", "30"),
    ];
    let page = browser.review(&request, &picked).await;
    page.shows("<b>2 records</b> now");
    page.shows("2026-07-01");
    page.hides("hunter2");
    page.hides("42 EUR");
    let code = browser.allow(&page).await;
    let tokens = world.tokens_with(client, &code, &callback).await;
    let token = tokens["access_token"].as_str().unwrap();
    assert_eq!(
        keys(&world, token).await,
        (200, vec!["m3".to_owned(), "m2".to_owned()])
    );
    let record = world
        .read(token, "/v1/streams/messages/records/m3?connection_id=work")
        .await
        .json();
    let names: Vec<&String> = record["data"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["id", "subject"]);
    assert_eq!(
        tokens["authorization_details"][0]["streams"][0]["fields"],
        json!(["id", "subject"])
    );
}

#[tokio::test]
async fn cursor_gets_its_code_at_a_scheme_of_its_own() {
    let world = World::new().await;
    let own = "cursor://anysphere.cursor-mcp/oauth/callback";
    let registered = world
        .register(&json!({
            "client_name": "Cursor",
            "redirect_uris": [own, "https://www.cursor.com/agents/mcp/oauth/callback", "http://localhost:8787/callback"],
            "token_endpoint_auth_method": "none",
        }))
        .await;
    let client = registered["client_id"].as_str().expect("registered");
    let mut browser = world.browser().await;
    let request = browser.ask(client, &[("redirect_uri", own)]).await;
    let page = browser.review(&request, MESSAGES).await;
    page.shows("beginning with cursor:");
    // Browsers hold the answer of a form against this.
    let policy = page.header("content-security-policy");
    assert!(policy.contains("form-action 'self' cursor:;"), "{policy}");
    let answer = browser.decide(&page, "approve").await;
    assert!(
        answer.header("location").starts_with(own),
        "{}",
        answer.text
    );
    let code = answer.sent_with("code").unwrap();
    let tokens = world
        .tokens_with(client, &code, &[("redirect_uri", own)])
        .await;
    assert!(tokens["access_token"].is_string(), "{tokens}");
}

#[tokio::test]
async fn chatgpt_sends_the_resource_everywhere_and_renews() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let client = world.client().await;
    let request = browser.ask(&client, &[("resource", URL)]).await;
    let pick = [("stream", "work/messages"), ("stream", "home/messages")];
    let code = browser.approve(&request, &pick).await;
    let tokens = world
        .tokens_with(&client, &code, &[("resource", URL)])
        .await;
    assert!(tokens["grant_package_id"].is_string(), "{tokens}");
    let first = tokens["access_token"].as_str().unwrap();
    assert_eq!(keys(&world, first).await.0, 200);
    world.pass(Duration::from_mins(61));
    assert_eq!(keys(&world, first).await.0, 401);
    let form = [
        ("grant_type", "refresh_token"),
        ("client_id", client.as_str()),
        ("refresh_token", tokens["refresh_token"].as_str().unwrap()),
        ("resource", URL),
    ];
    let renewed = world.post("/oauth/token", &form).await.json();
    let second = renewed["access_token"].as_str().unwrap();
    assert_eq!(keys(&world, second).await.0, 200);
}

#[tokio::test]
async fn codex_revokes_its_token_and_the_owner_ends_the_grant() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let registered = world
        .register(&json!({
            "client_name": "Codex",
            "redirect_uris": ["http://127.0.0.1:1455/callback"],
            "application_type": "native",
        }))
        .await;
    let client = registered["client_id"].as_str().unwrap().to_owned();
    // Another port than registered (RFC 8252), and a second flow after the first.
    let mut tokens = Vec::new();
    for port in ["40001", "40002"] {
        let callback = format!("http://127.0.0.1:{port}/callback");
        let request = browser.ask(&client, &[("redirect_uri", &callback)]).await;
        let code = browser.approve(&request, MESSAGES).await;
        let more = [("redirect_uri", callback.as_str())];
        tokens.push(world.tokens_with(&client, &code, &more).await);
    }
    let [first, second] = [0, 1].map(|at| tokens[at]["access_token"].as_str().unwrap());
    let form = [("client_id", client.as_str()), ("token", first)];
    let answer = world.post("/oauth/revoke", &form).await;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (200, ""));
    assert_eq!(keys(&world, first).await.0, 401);
    assert_eq!(keys(&world, second).await.0, 200);
    let grant = tokens[1]["grant_id"].as_str().unwrap();
    let home = browser.get("/grants").await;
    home.shows("Codex");
    home.shows(&format!("/grants/{grant}/end"));
    let csrf = home.field("csrf");
    let answer = browser
        .post(&format!("/grants/{grant}/revoke"), &[("csrf", &csrf)])
        .await;
    assert_eq!(answer.header("location"), "/grants");
    let ended = world.read(second, "/v1/schema").await;
    assert_eq!(ended.status, 403);
    assert_eq!(ended.json()["error"]["code"], "grant_revoked");
}

#[tokio::test]
async fn introspection_is_for_the_owner_and_tells_what_a_token_is() {
    let world = World::new().await;
    let mut browser = world.browser().await;
    let client = world.client().await;
    let request = browser.ask(&client, &[]).await;
    let code = browser.approve(&request, MESSAGES).await;
    let tokens = world.tokens(&client, &code).await;
    let token = tokens["access_token"].as_str().unwrap();
    let form = [("token", token)];
    assert_eq!(world.post("/oauth/introspect", &form).await.status, 401);
    let ask = async |bearer: &str, token: &str| {
        let request = axum::http::Request::post("/oauth/introspect")
            .header("authorization", format!("Bearer {bearer}"))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(axum::body::Body::from(format!("token={token}")));
        world.send(request.unwrap()).await
    };
    assert_eq!(ask(token, token).await.status, 403);
    let told = ask(&world.owner, token).await.json();
    let members = ["active", "pdpp_token_kind", "aud", "iss"].map(|name| told[name].clone());
    let expected = [json!(true), json!("client"), json!(URL), json!(URL)];
    assert_eq!(members, expected);
    let unknown = ask(&world.owner, "nonsense").await.json();
    assert_eq!(unknown, json!({"active": false}));
}
