//! The owner's pages at a host of their own: no session begins or counts at a host where applications wait.

use axum::body::Body;
use axum::http::Request;
use serde_json::json;

use crate::fixture::{Answer, Browser, PASSWORD, World, encoded};

const NEAR: &str = "http://127.0.0.1:7420";

async fn get(world: &World, host: &str, target: &str) -> Answer {
    let request = Request::get(target)
        .header("host", host)
        .header("accept", "text/html,*/*;q=0.8");
    world.send(request.body(Body::empty()).unwrap()).await
}

// TR-01: pages asked for where applications wait send the browser to the host that is the pages' alone.
#[tokio::test]
async fn on_loopback_every_page_is_at_its_own_host_and_nothing_else_is() {
    let world = World::at(NEAR).await;
    for host in ["127.0.0.1:7420", "localhost:7420", "[::1]:7420"] {
        for target in [
            "/",
            "/sign-in?code=a%20b",
            "/device?user_code=X",
            "/oauth/authorize?client_id=c&state=1%262",
            "/records/work/messages/m1",
            "/consent?request=r",
        ] {
            let answer = get(&world, host, target).await;
            assert_eq!(answer.status, 303, "{host}{target}: {}", answer.text);
            let own = format!("http://pdpp.localhost:7420{target}");
            assert_eq!(answer.header("location"), own);
            assert!(answer.header("set-cookie").is_empty());
        }
        for target in [
            "/style.css",
            "/icon.svg",
            "/.well-known/oauth-authorization-server",
        ] {
            assert_eq!(get(&world, host, target).await.status, 200, "{target}");
        }
        let page = get(&world, "pdpp.localhost:7420", "/sign-in").await;
        let (form, csrf) = (
            page.header("set-cookie").split(';').next().unwrap(),
            page.field("csrf"),
        );
        let body = encoded(&[("csrf", &csrf), ("password", PASSWORD)]);
        let request = Request::post("/sign-in")
            .header("host", host)
            .header("cookie", form)
            .header("content-type", "application/x-www-form-urlencoded");
        let answer = world.send(request.body(Body::from(body)).unwrap()).await;
        assert_eq!(answer.status, 421, "{}", answer.text);
        assert!(answer.header("set-cookie").is_empty());
    }
    let metadata = get(
        &world,
        "127.0.0.1",
        "/.well-known/oauth-authorization-server",
    )
    .await;
    let metadata = metadata.json();
    assert_eq!(metadata["issuer"], NEAR);
    assert_eq!(
        metadata["authorization_endpoint"],
        format!("{NEAR}/oauth/authorize")
    );
}

// TR-01: what another port of the pages' host, or another host of this server, sends is no form of ours.
#[tokio::test]
async fn forms_come_from_the_pages_themselves() {
    for (url, own) in [
        (NEAR, "http://pdpp.localhost:7420"),
        ("https://pdpp.example", "https://pdpp.example"),
    ] {
        let world = World::at(url).await;
        for (name, value, status) in [
            ("sec-fetch-site", "same-origin", 303),
            ("sec-fetch-site", "same-site", 403),
            ("sec-fetch-site", "cross-site", 403),
            ("origin", own, 303),
            ("origin", "null", 303),
            ("origin", "http://pdpp.localhost:9", 403),
            ("origin", "http://127.0.0.1:7420", 403),
        ] {
            let mut browser = Browser::new(&world);
            let csrf = browser.get("/sign-in").await.field("csrf");
            let form = [("csrf", csrf.as_str()), ("password", PASSWORD)];
            let answer = browser.post_with("/sign-in", &form, &[(name, value)]).await;
            assert_eq!(answer.status, status, "{name}: {value}: {}", answer.text);
        }
    }
}

// TR-01: a program that waits at an IPv6 address gets its answer too; a policy cannot name such an address.
#[tokio::test]
async fn a_decision_leads_back_to_every_loopback_name() {
    let world = World::at(NEAR).await;
    for (name, source) in [
        ("127.0.0.1", "http://127.0.0.1:9"),
        ("localhost", "http://localhost:9"),
        ("[::1]", "http:"),
    ] {
        let mut browser = world.browser().await;
        let registered = world
            .register(&json!({"redirect_uris": [format!("http://{name}/cb")]}))
            .await;
        let client = registered["client_id"].as_str().unwrap().to_owned();
        let callback = format!("http://{name}:9/cb");
        let request = browser.ask(&client, &[("redirect_uri", &callback)]).await;
        let page = browser.picker(&request).await;
        let policy = page.header("content-security-policy");
        assert!(
            policy.contains(&format!("form-action 'self' {source};")),
            "{policy}"
        );
    }
}

// TR-01: no application has its answers sent to the host of the pages.
#[tokio::test]
async fn an_application_cannot_wait_at_the_host_of_the_pages() {
    let world = World::at(NEAR).await;
    let taken = json!({"redirect_uris": ["https://pdpp.localhost:9/cb"]});
    let refused = world.registering(&taken).await.refusal();
    assert_eq!(refused, (400, "invalid_redirect_uri".to_owned()));
}

// TR-01: where the browser takes one, a session has a second half that it sends to no other port.
#[tokio::test]
async fn with_a_second_half_the_cookie_alone_is_no_session() {
    let world = World::at(NEAR).await;
    let mut browser = Browser::new(&world);
    let csrf = browser.get("/sign-in").await.field("csrf");
    let form = [
        ("csrf", csrf.as_str()),
        ("password", PASSWORD),
        ("return_to", "/sessions"),
    ];
    let chromium = [(
        "user-agent",
        "Mozilla/5.0 (X11; Linux x86_64) Chrome/150.0.0.0",
    )];
    let answer = browser.post_with("/sign-in", &form, &chromium).await;
    let location = answer.header("location").to_owned();
    let rest = location.strip_prefix("http://owner:").unwrap();
    let (second, place) = rest.split_once('@').unwrap();
    assert_eq!(place, "pdpp.localhost:7420/signed-in?return_to=%2Fsessions");
    let path = place
        .split_once('/')
        .map(|(_, path)| format!("/{path}"))
        .unwrap();
    // It counts with the cookie alone until the browser has shown that it sends the rest, and is asked to.
    let asked = browser.get(&path).await;
    assert_eq!(asked.status, 401);
    assert!(asked.header("www-authenticate").starts_with("Basic "));
    asked.shows("Go on");
    assert_eq!(browser.get("/sessions").await.status, 200);
    let wrong = basic("owner:pdpp_second_guessed");
    browser.get_with(&path, &[("authorization", &wrong)]).await;
    assert_eq!(browser.get("/sessions").await.status, 200);
    let both = basic(&format!("owner:{second}"));
    let kept = browser.get_with(&path, &[("authorization", &both)]).await;
    let onward = "http://pdpp.localhost:7420/sessions";
    assert_eq!(
        (kept.status.as_u16(), kept.header("location")),
        (303, onward)
    );
    for (presented, status) in [(None, 303), (Some(&wrong), 303), (Some(&both), 200)] {
        let headers: Vec<_> = presented
            .iter()
            .map(|one| ("authorization", one.as_str()))
            .collect();
        let page = browser.get_with("/sessions", &headers).await;
        assert_eq!(page.status, status, "{presented:?}");
    }
    crate::listening::kept_secret([second]);
    // With a public address nothing changes.
    let world = World::new().await;
    let mut browser = Browser::new(&world);
    let csrf = browser.get("/sign-in").await.field("csrf");
    let form = [("csrf", csrf.as_str()), ("password", PASSWORD)];
    let answer = browser.post_with("/sign-in", &form, &chromium).await;
    assert_eq!(answer.header("location"), "/");
}

fn basic(pair: &str) -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::new();
    for three in pair.as_bytes().chunks(3) {
        let bits = three
            .iter()
            .enumerate()
            .map(|(at, byte)| u32::from(*byte) << (16 - 8 * at));
        let bits: u32 = bits.sum();
        for at in 0..4 {
            let letter = letters[(bits >> (18 - 6 * at)) as usize & 63];
            encoded.push(if at <= three.len() {
                letter.into()
            } else {
                '='
            });
        }
    }
    format!("Basic {encoded}")
}
