//! The device flow, from a server's address to a file in the cache.

use std::sync::Mutex;
use std::time::Duration;

use client::connect::{Connected, Prompt, Request, begin};
use client::{CredentialCache, ProviderUrl};
use contract::error::{ErrorCode, ReadError};
use contract::time::{Clock as _, Instant};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::fake::{
    Fake, LIMITS, NOW, ReceivedRequest, Reply, TOKEN, cache_with, http, json, shown,
};

const DEVICE: &str = "dc_secret_0123456789";

/// An authorization server that answers polls with one code after the other, then with this.
fn flow(
    polls: &[&str],
    last: Value,
) -> impl Fn(&ReceivedRequest, &str) -> Reply + Send + Sync + use<> {
    let polls: Vec<String> = polls.iter().rev().map(|code| (*code).to_owned()).collect();
    let polls = Mutex::new(polls);
    move |asked, own| match asked.path() {
        "/.well-known/oauth-protected-resource" => json(
            200,
            &json!({"resource": own, "authorization_servers": [own]}),
        ),
        "/.well-known/oauth-authorization-server" => json(
            200,
            &json!({"issuer": own, "token_endpoint": format!("{own}/oauth/token"),
                "registration_endpoint": format!("{own}/oauth/register"),
                "device_authorization_endpoint": format!("{own}/oauth/device_authorization")}),
        ),
        "/oauth/register" if asked.body.contains("refresh_token") => {
            json(400, &json!({"error": "invalid_client_metadata"}))
        }
        "/oauth/register" => json(201, &json!({"client_id": "cli_9"})),
        "/oauth/device_authorization" if asked.body.contains("cli%5Fgone") => {
            json(401, &json!({"error": "invalid_client"}))
        }
        "/oauth/device_authorization" => json(
            200,
            &json!({"device_code": DEVICE, "user_code": "WDJB-MJHT", "expires_in": 300, "interval": 2,
                "verification_uri": format!("{own}/device"),
                "verification_uri_complete": format!("{own}/device?user_code=WDJB-MJHT")}),
        ),
        "/oauth/token" => match polls.lock().unwrap().pop().as_deref() {
            Some("broken") => Reply::Reset,
            Some(code) => json(400, &json!({"error": code})),
            None => json(200, &last),
        },
        _ => http(404, "", ""),
    }
}

fn granted() -> Value {
    json!({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600,
           "refresh_token": "ref_1", "grant_id": "grt_1", "scope": "pdpp:read"})
}

fn request(fake: &Fake) -> Request {
    Request {
        provider: fake.provider(),
        resource: None,
        authorization_details: None,
        browser: false,
    }
}

/// The whole flow: what came of it, and how long was waited each time.
async fn connect(fake: &Fake, cache: &CredentialCache) -> (Result<Connected, ReadError>, Vec<u64>) {
    let pending = match begin(&request(fake), cache, LIMITS).await {
        Ok(pending) => pending,
        Err(error) => return (Err(error), Vec::new()),
    };
    let mut waits = Vec::new();
    let outcome = pending
        .wait(cache, &NOW, async |pause: Duration| {
            waits.push(pause.as_secs());
        })
        .await;
    if let Err(error) = &outcome {
        let shown = shown(error);
        assert!(!shown.contains(TOKEN) && !shown.contains(DEVICE), "{shown}");
        assert!(error.hint.is_some());
    }
    (outcome, waits)
}

fn empty_cache() -> (tempfile::TempDir, CredentialCache) {
    let folder = tempfile::tempdir().unwrap();
    let cache = CredentialCache::new(folder.path().join("pdpp"));
    (folder, cache)
}

#[tokio::test]
async fn an_approved_flow_ends_with_a_usable_credential() {
    let fake = Fake::start(flow(
        &["authorization_pending", "slow_down", "broken"],
        granted(),
    ))
    .await;
    let (_folder, cache) = empty_cache();
    let pending = begin(&request(&fake), &cache, LIMITS).await.unwrap();
    let prompt = Prompt {
        link: format!("{}/device?user_code=WDJB-MJHT", fake.url),
        user_code: Some("WDJB-MJHT".to_owned()),
        expires_in: Duration::from_mins(5),
    };
    assert_eq!(pending.prompt(), &prompt);
    let mut waits = Vec::new();
    let connected = pending
        .wait(&cache, &NOW, async |pause: Duration| {
            waits.push(pause.as_secs());
        })
        .await
        .unwrap();
    assert_eq!(waits, [2, 2, 7, 14]);
    assert_eq!(connected.grant_id.as_deref(), Some("grt_1"));
    assert_eq!(connected.expires_at, Instant::parse("2026-06-01T13:00:00Z"));
    assert_eq!(connected.file, cache.file(&fake.provider()));

    let credential = cache.load(&fake.provider(), NOW.now()).unwrap();
    assert_eq!(credential.access_token().expose(), TOKEN);
    assert_eq!(credential.warning(), None);
    let kept: Value = serde_json::from_slice(&std::fs::read(&connected.file).unwrap()).unwrap();
    assert_eq!(kept["authorization_server"], fake.url.as_str());
    assert_eq!(kept["client"]["client_id"], "cli_9");
    assert_eq!(kept["credential"]["refresh_token"], "ref_1");
    // TR-24
    assert_eq!(kept["credential"]["pdpp_token_kind"], "client");
    assert_eq!(kept["resource"], fake.url.as_str());

    let asked = fake.asked();
    let poll = asked
        .iter()
        .find(|one| one.path() == "/oauth/token")
        .unwrap();
    assert!(
        poll.body
            .contains("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant%2Dtype%3Adevice%5Fcode")
    );
    let start = asked
        .iter()
        .find(|one| one.path() == "/oauth/device_authorization")
        .unwrap();
    assert!(start.body.contains("resource=http%3A%2F%2F127"));
    assert!(!start.body.contains("authorization_details"));
}

#[tokio::test]
async fn details_and_resource_are_sent_when_they_are_given() {
    let fake = Fake::start(flow(&[], granted())).await;
    let (_folder, cache) = empty_cache();
    let request = Request {
        resource: Some(format!("{}/mcp", fake.url)),
        authorization_details: Some(json!([{"type": "x"}])),
        ..request(&fake)
    };
    begin(&request, &cache, LIMITS).await.unwrap();
    let asked = fake.asked();
    let start = &asked.last().unwrap().body;
    assert!(
        start.contains("%2Fmcp&authorization_details=%5B%7B%22type%22%3A%22x%22%7D%5D"),
        "{start}"
    );
}

#[tokio::test]
async fn a_decision_against_it_or_none_leaves_nothing() {
    let forever = ["authorization_pending"; 200];
    for (polls, says) in [
        (&["access_denied"][..], "did not approve"),
        (&["authorization_pending", "expired_token"], "expired"),
        (&forever, "expired"),
        (&["invalid_grant"], "invalid_grant"),
    ] {
        let fake = Fake::start(flow(polls, granted())).await;
        let (_folder, cache) = empty_cache();
        let (outcome, waits) = connect(&fake, &cache).await;
        let error = outcome.unwrap_err();
        assert_eq!(error.code, ErrorCode::NotConnected);
        assert!(error.message.contains(says), "{error}");
        assert!(waits.iter().sum::<u64>() <= 302);
        assert!(!cache.file(&fake.provider()).exists());
    }
}

#[tokio::test]
async fn an_owner_token_is_never_kept() {
    // AU-04
    let mut owner = granted();
    owner["pdpp_token_kind"] = "owner".into();
    let fake = Fake::start(flow(&[], owner)).await;
    let (_folder, cache) = empty_cache();
    let (outcome, _) = connect(&fake, &cache).await;
    assert_eq!(outcome.unwrap_err().code, ErrorCode::OwnerTokenRefused);
    assert!(!cache.file(&fake.provider()).exists());
}

#[tokio::test]
async fn a_known_client_is_used_again_and_a_forgotten_one_registered_anew() {
    for (id, registrations) in [("cli_old", 0), ("cli_gone", 2)] {
        let fake = Fake::start(flow(&[], granted())).await;
        let file = json!({"authorization_server": fake.url, "client": {"client_id": id},
            "x_other_tool": 1, "kind": "owner", "credential": {"role": "owner"}});
        let (_folder, cache) = cache_with(&fake.provider(), &file.to_string());
        let (outcome, _) = connect(&fake, &cache).await;
        let kept = std::fs::read(outcome.unwrap().file).unwrap();
        let kept: Value = serde_json::from_slice(&kept).unwrap();
        assert_eq!(fake.count("/oauth/register"), registrations);
        assert_eq!(kept["x_other_tool"], 1);
        assert!(cache.load(&fake.provider(), NOW.now()).is_ok());
    }
}

#[tokio::test]
async fn a_server_below_a_path_is_found_where_the_standard_puts_it() {
    let fake = Fake::start(|asked, own| match asked.path() {
        "/.well-known/oauth-protected-resource/data" => json(
            200,
            &json!({"resource": format!("{own}/data"), "authorization_servers": [format!("{own}/auth/")]}),
        ),
        "/.well-known/oauth-authorization-server/auth" => json(
            200,
            &json!({"issuer": format!("{own}/auth"), "registration_endpoint": format!("{own}/r"),
                "device_authorization_endpoint": format!("{own}/d")}),
        ),
        "/r" => json(201, &json!({"client_id": "cli_9"})),
        "/d" => json(
            200,
            &json!({"device_code": DEVICE, "user_code": "A", "expires_in": 300,
                "verification_uri": format!("{own}/device")}),
        ),
        "/auth/oauth/token" => json(200, &granted()),
        _ => http(404, "", ""),
    })
    .await;
    let (_folder, cache) = empty_cache();
    let request = Request {
        provider: ProviderUrl::parse(&format!("{}/data", fake.url)).unwrap(),
        ..request(&fake)
    };
    let pending = begin(&request, &cache, LIMITS).await.unwrap();
    let mut waits = Vec::new();
    let pause = async |pause: Duration| {
        waits.push(pause.as_secs());
    };
    pending.wait(&cache, &NOW, pause).await.unwrap();
    assert_eq!(waits, [5]);
    assert!(cache.load(&request.provider, NOW.now()).is_ok());
}

#[tokio::test]
async fn a_server_that_cannot_do_this_says_so() {
    let fake = Fake::start(|_, _| http(404, "", "")).await;
    let (_folder, cache) = empty_cache();
    let (outcome, _) = connect(&fake, &cache).await;
    let error = outcome.unwrap_err();
    assert_eq!(error.code, ErrorCode::RsBadResponse);
    assert!(error.message.contains("device flow"), "{error}");
    let other = Fake::start(|_, _| json(200, &json!({"resource": "https://other.example"}))).await;
    let (outcome, _) = connect(&other, &cache).await;
    assert!(outcome.unwrap_err().message.contains("another resource"));
}

/// A server that offers a code by a browser only, and says who it is.
fn by_browser(asked: &ReceivedRequest, own: &str) -> Reply {
    match asked.path() {
        "/.well-known/oauth-protected-resource" => json(
            200,
            &json!({"resource": own, "authorization_servers": [own]}),
        ),
        "/.well-known/oauth-authorization-server" => json(
            200,
            &json!({"issuer": own, "registration_endpoint": format!("{own}/r"),
                "authorization_endpoint": format!("{own}/authorize?x=1"),
                "authorization_response_iss_parameter_supported": true}),
        ),
        "/r" => json(201, &json!({"client_id": "cli_9"})),
        "/oauth/token" if asked.body.contains("code=sesame%5Fcode") => json(200, &granted()),
        "/oauth/token" => json(400, &json!({"error": "invalid_grant"})),
        _ => http(404, "", ""),
    }
}

/// What a browser does that is sent back.
async fn visit(url: &str) {
    let address = url.strip_prefix("http://").unwrap();
    let (host, path) = address.split_once('/').unwrap();
    let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
}

// TR-22: who does not say whose answer it brings, or names another server, brings nothing (RFC 9207).
#[tokio::test]
async fn a_browser_must_come_back_from_the_server_that_was_asked() {
    for (brings, says) in [
        ("code=sesame_code&iss=OWN", None),
        ("code=sesame_code", Some("another authorization server")),
        (
            "code=sesame_code&iss=https%3A%2F%2Fevil.example",
            Some("another authorization server"),
        ),
        ("code=other&iss=OWN", Some("invalid_grant")),
        ("error=access_denied&iss=OWN", Some("did not approve")),
        ("error=server_error&iss=OWN", Some("server_error")),
    ] {
        let fake = Fake::start(by_browser).await;
        let (_folder, cache) = empty_cache();
        let pending = begin(&request(&fake), &cache, LIMITS).await.unwrap();
        let prompt = pending.prompt().clone();
        assert_eq!(prompt.user_code, None);
        let value = |name: &str| {
            let query = prompt.link.split_once('?').unwrap().1;
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let found = pairs.find(|(found, _)| *found == name).unwrap().1;
            percent_encoding::percent_decode_str(found)
                .decode_utf8()
                .unwrap()
                .into_owned()
        };
        assert!(
            prompt
                .link
                .starts_with(&format!("{}/authorize?x=1&response_type=code&", fake.url))
        );
        assert_eq!(
            (value("code_challenge").len(), value("resource")),
            (43, fake.url.clone())
        );
        let brought = brings.replace("OWN", &fake.url.replace(':', "%3A").replace('/', "%2F"));
        let back = format!(
            "{}?{brought}&state={}",
            value("redirect_uri"),
            value("state")
        );
        let waiting = pending.wait(&cache, &NOW, async |_: Duration| {});
        let (outcome, ()) = tokio::join!(waiting, visit(&back));
        match says {
            None => assert_eq!(outcome.unwrap().grant_id.as_deref(), Some("grt_1")),
            Some(says) => {
                let error = outcome.unwrap_err();
                assert!(error.message.contains(says), "{brings}: {error}");
                assert!(
                    error.hint.is_some() && !shown(&error).contains("sesame"),
                    "{error}"
                );
                assert!(!cache.file(&fake.provider()).exists());
            }
        }
    }
}
