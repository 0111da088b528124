//! A credential that has ended is renewed once, kept, and used for the same grant; or it is not, and nothing is tried twice.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use client::{CredentialCache, HttpServer, ProviderUrl};
use contract::error::{ErrorCode, ReadError};
use contract::time::Clock as _;
use contract::upstream::{Get, Upstream as _};
use serde_json::{Value, json};

use crate::fake::{Fake, LIMITS, NOW, ReceivedRequest, Reply, cache_with, http, json, shown};

pub(crate) const OLD: &str = "tok_old_0123456789";
pub(crate) const NEW: &str = "tok_new_0123456789";
pub(crate) const REFRESH: &str = "ref_old_0123456789";
pub(crate) const ROTATED: &str = "ref_new_0123456789";

/// A resource server that takes only the new token, and an authorization server that gives it for the old refresh token.
pub(crate) fn reply(asked: &ReceivedRequest, own: &str) -> Reply {
    match asked.path() {
        "/.well-known/oauth-authorization-server" => json(
            200,
            &json!({"issuer": own, "token_endpoint": format!("{own}/oauth/token")}),
        ),
        "/oauth/token" if asked.body.contains(&REFRESH.replace('_', "%5F")) => json(
            200,
            &json!({"access_token": NEW, "token_type": "Bearer", "expires_in": 3600,
                    "refresh_token": ROTATED, "scope": "pdpp:read"}),
        ),
        "/oauth/token" => json(400, &json!({"error": "invalid_grant"})),
        _ if asked.bearer() == NEW => json(200, &json!({"object": "schema"})),
        _ => ended(),
    }
}

fn ended() -> Reply {
    let challenge = "www-authenticate: Bearer realm=\"x\", error=\"invalid_token\"\r\n";
    http(401, challenge, "{}")
}

pub(crate) fn file(url: &str) -> Value {
    json!({
        "provider_url": url, "authorization_server": url, "resource": url, "x_other_tool": {"keep": [1]},
        "client": {"client_id": "cli_1", "client_name": "PDPP CLI"},
        "credential": {"access_token": OLD, "refresh_token": REFRESH, "token_type": "Bearer",
                       "grant_id": "grt_1", "x_unknown": "kept", "expires_at": "2026-06-01T14:00:00Z"},
    })
}

pub(crate) struct Stored {
    _folder: tempfile::TempDir,
    cache: CredentialCache,
    provider: ProviderUrl,
}

impl Stored {
    /// A server that answers like this, and a credential for it.
    pub(crate) async fn over(
        reply: impl Fn(&ReceivedRequest, &str) -> Reply + Send + Sync + 'static,
    ) -> (Fake, Self) {
        let fake = Fake::start(reply).await;
        let stored = Self::new(&fake, &file(&fake.url));
        (fake, stored)
    }

    pub(crate) fn new(fake: &Fake, file: &Value) -> Self {
        let provider = fake.provider();
        let (folder, cache) = cache_with(&provider, &file.to_string());
        Self {
            _folder: folder,
            cache,
            provider,
        }
    }

    pub(crate) fn server(&self) -> HttpServer {
        let credential = self.cache.load(&self.provider, NOW.now()).unwrap();
        HttpServer::with_credential(self.provider.clone(), credential, Arc::new(NOW), LIMITS)
    }

    pub(crate) fn file(&self) -> Value {
        serde_json::from_slice(&fs::read(self.cache.file(&self.provider)).unwrap()).unwrap()
    }

    fn write(&self, file: &Value) {
        fs::write(self.cache.file(&self.provider), file.to_string()).unwrap();
    }
}

pub(crate) async fn status_of(server: &HttpServer) -> u16 {
    server.get(Get::v1(["schema"])).await.unwrap().status
}

async fn failure(server: &HttpServer) -> ReadError {
    server.get(Get::v1(["schema"])).await.unwrap_err()
}

/// Many questions at once, at two servers that share nothing but the file, as two processes do.
pub(crate) async fn ask_at_once(stored: &Stored) {
    let servers = [Arc::new(stored.server()), Arc::new(stored.server())];
    let asking: Vec<_> = (0..16)
        .map(|n| {
            let server = Arc::clone(&servers[n % 2]);
            tokio::spawn(async move { status_of(&server).await })
        })
        .collect();
    for one in asking {
        assert_eq!(one.await.unwrap(), 200);
    }
}

// AU-05: an ended token tells nothing, so the one in its place is asked about.
#[tokio::test]
async fn an_agents_renewed_token_is_asked_about_where_the_old_one_told_nothing() {
    let (fake, stored) = Stored::over(reply).await;
    let server = stored.server().for_agents();
    let records = || Get::v1(["streams", "orders", "records"]);
    for _ in 0..2 {
        assert_eq!(server.get(records()).await.unwrap().status, 200);
    }
    let asked = fake.asked();
    let asked: Vec<(&str, &str)> = asked
        .iter()
        .filter(|one| one.path().starts_with("/v1"))
        .map(|one| (one.path(), one.bearer()))
        .collect();
    assert_eq!(
        asked,
        [
            ("/v1/schema?view=compact", OLD),
            ("/v1/schema?view=compact", NEW),
            ("/v1/streams/orders/records", NEW),
            ("/v1/streams/orders/records", NEW),
        ]
    );
}

#[tokio::test]
async fn an_ended_token_is_renewed_kept_and_used() {
    // TS-06
    let (fake, stored) = Stored::over(reply).await;
    assert_eq!(status_of(&stored.server()).await, 200);
    let lines: Vec<String> = fake
        .asked()
        .iter()
        .map(|asked| asked.line.clone())
        .collect();
    assert_eq!(
        lines,
        [
            "GET /v1/schema HTTP/1.1",
            "GET /.well-known/oauth-authorization-server HTTP/1.1",
            "POST /oauth/token HTTP/1.1",
            "GET /v1/schema HTTP/1.1",
        ]
    );
    let form = &fake.asked()[2];
    assert!(form.header("authorization").is_none());
    assert!(
        form.body
            .starts_with("grant_type=refresh%5Ftoken&refresh_token=ref%5Fold")
    );
    assert!(
        form.body
            .contains("&client_id=cli%5F1&resource=http%3A%2F%2F"),
        "{}",
        form.body
    );

    let kept = stored.file();
    let mut expected = file(&fake.url);
    expected["credential"]["access_token"] = NEW.into();
    expected["credential"]["refresh_token"] = ROTATED.into();
    expected["credential"]["scope"] = "pdpp:read".into();
    expected["credential"]["expires_at"] = "2026-06-01T13:00:00.000Z".into();
    assert_eq!(kept, expected);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let path = stored.cache.file(&stored.provider);
        let mode =
            |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        let ignored = fs::read_to_string(path.with_file_name(".gitignore")).unwrap();
        assert_eq!(ignored, "*\n");
    }
}

#[tokio::test]
async fn the_endpoint_a_file_names_is_used_without_looking_for_it() {
    let fake = Fake::start(reply).await;
    let mut named = file(&fake.url);
    named["token_endpoint"] = format!("{}/oauth/token", fake.url).into();
    let stored = Stored::new(&fake, &named);
    assert_eq!(status_of(&stored.server()).await, 200);
    assert_eq!(fake.count("/.well-known"), 0);
}

#[tokio::test]
async fn a_server_without_metadata_is_asked_where_all_have_it() {
    let (fake, stored) = Stored::over(|asked, own| match asked.path() {
        path if path.starts_with("/.well-known") => http(404, "", ""),
        _ => reply(asked, own),
    })
    .await;
    let told = status_of(&stored.server()).await;
    assert_eq!((told, fake.count("/oauth/token")), (200, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_questions_at_once_renew_once() {
    let (fake, stored) = Stored::over(reply).await;
    ask_at_once(&stored).await;
    assert_eq!(fake.count("/oauth/token"), 1);
    assert_eq!(stored.file()["credential"]["refresh_token"], ROTATED);
}

#[tokio::test]
async fn what_another_process_renewed_is_used() {
    let (fake, stored) = Stored::over(reply).await;
    let server = stored.server();
    let mut renewed = file(&fake.url);
    renewed["credential"]["access_token"] = NEW.into();
    renewed["credential"]["refresh_token"] = ROTATED.into();
    stored.write(&renewed);
    assert_eq!(status_of(&server).await, 200);
    assert_eq!(fake.count("/oauth/token"), 0);
    assert_eq!(status_of(&server).await, 200);
    assert_eq!(fake.count("/v1"), 3, "the renewed token is kept in use");
}

#[tokio::test]
async fn the_credential_of_another_grant_is_not_taken_over() {
    // TS-06
    let (fake, stored) = Stored::over(reply).await;
    let server = stored.server();
    let mut other = file(&fake.url);
    other["credential"]["access_token"] = NEW.into();
    other["credential"]["grant_id"] = "grt_2".into();
    stored.write(&other);
    assert_eq!(status_of(&server).await, 401);
    assert_eq!((fake.count("/v1"), fake.count("/oauth")), (1, 0));
    assert_eq!(stored.file(), other);
}

#[tokio::test]
async fn an_owner_credential_that_appears_meanwhile_is_refused() {
    // AU-04
    let (fake, stored) = Stored::over(reply).await;
    let server = stored.server();
    let mut owner = file(&fake.url);
    owner["credential"]["access_token"] = NEW.into();
    owner["credential"]["role"] = "Owner".into();
    stored.write(&owner);
    let error = failure(&server).await;
    assert_eq!(error.code, ErrorCode::OwnerTokenRefused);
    assert_eq!(fake.count("/v1"), 1);
}

#[tokio::test]
async fn without_a_refresh_token_there_is_one_attempt() {
    // TS-06
    let fake = Fake::start(reply).await;
    let mut plain = file(&fake.url);
    let credential = plain["credential"].as_object_mut().unwrap();
    credential.remove("refresh_token");
    credential.remove("expires_at");
    let stored = Stored::new(&fake, &plain);
    let told = status_of(&stored.server()).await;
    assert_eq!((told, fake.asked().len()), (401, 1));
    assert_eq!(stored.file(), plain);
}

#[tokio::test]
async fn other_refusals_renew_nothing() {
    // TS-06
    for (status, body) in [
        (403, json!({"error": {"code": "grant_revoked"}})),
        (403, json!({"error": {"code": "invalid_token"}})),
        (401, json!({"error": {"code": "something_else"}})),
        (
            401,
            json!({"error": {"code": "context.stream_not_allowed"}}),
        ),
        (403, json!({"error": {"code": "package_revoked"}})),
        (500, json!({})),
    ] {
        let fake = Fake::start(move |_, _| json(status, &body)).await;
        let stored = Stored::new(&fake, &file(&fake.url));
        let told = status_of(&stored.server()).await;
        assert_eq!((told, fake.asked().len()), (status, 1));
    }
}

// TR-23: the reference server has codes of its own, and a status that says it is the grant.
#[tokio::test]
async fn the_body_may_say_that_a_token_has_ended() {
    for (status, body) in [
        (401, json!({"error": {"code": "invalid_token"}})),
        (401, json!({"error": {"code": "authentication_error"}})),
        (401, json!({"error": "invalid_token"})),
        (
            401,
            json!({"error": {"code": "context.active_false", "type": "authentication_error"}}),
        ),
        (
            401,
            json!({"error": {"code": "context.expired", "type": "authentication_error"}}),
        ),
        (
            403,
            json!({"error": {"code": "grant_expired", "type": "permission_error"}}),
        ),
    ] {
        let refusal = body.clone();
        let fake = Fake::start(move |asked, own| match asked.bearer() {
            OLD => json(status, &refusal),
            _ => reply(asked, own),
        })
        .await;
        let stored = Stored::new(&fake, &file(&fake.url));
        assert_eq!(status_of(&stored.server()).await, 200, "{body}");
        assert_eq!(stored.file()["credential"]["access_token"], NEW);
    }
}

#[tokio::test]
async fn a_second_refusal_is_returned_as_it_is() {
    // TS-06
    let (fake, stored) = Stored::over(|asked, own| match asked.path() {
        path if path.starts_with("/v1") => ended(),
        _ => reply(asked, own),
    })
    .await;
    assert_eq!(status_of(&stored.server()).await, 401);
    assert_eq!((fake.count("/v1"), fake.count("/oauth/token")), (2, 1));
}

#[tokio::test]
async fn a_refused_refresh_token_is_not_sent_again() {
    let fake = Fake::start(|asked, own| match asked.path() {
        "/oauth/token" => json(400, &json!({"error": "invalid_grant"})),
        _ => reply(asked, own),
    })
    .await;
    let before = file(&fake.url);
    let stored = Stored::new(&fake, &before);
    let server = stored.server();
    for _ in 0..3 {
        assert_eq!(status_of(&server).await, 401);
    }
    assert_eq!((fake.count("/v1"), fake.count("/oauth/token")), (3, 1));
    assert_eq!(stored.file(), before);
}

#[tokio::test]
async fn a_passing_refusal_is_tried_again_with_the_next_question() {
    let refusals = AtomicUsize::new(0);
    let (_fake, stored) = Stored::over(move |asked, own| {
        if asked.path() == "/oauth/token" && refusals.fetch_add(1, Ordering::SeqCst) == 0 {
            return json(429, &json!({"error": "slow_down"}));
        }
        reply(asked, own)
    })
    .await;
    let server = stored.server();
    assert_eq!(status_of(&server).await, 401);
    assert_eq!(status_of(&server).await, 200);
}

#[tokio::test]
async fn a_token_endpoint_that_fails_is_named_and_can_be_tried_again() {
    let broken = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&broken);
    let (fake, stored) = Stored::over(move |asked, own| {
        if asked.path() == "/oauth/token" && counter.fetch_add(1, Ordering::SeqCst) == 0 {
            return http(502, "", "<html>");
        }
        reply(asked, own)
    })
    .await;
    let server = stored.server();
    let error = failure(&server).await;
    assert_eq!(error.code, ErrorCode::RsBadResponse);
    assert!(error.message.contains(&fake.url), "{error}");
    let shown = shown(&error);
    assert!(
        [OLD, NEW, REFRESH]
            .iter()
            .all(|secret| !shown.contains(secret))
    );
    assert_eq!(status_of(&server).await, 200);
}

#[tokio::test]
async fn metadata_of_another_server_is_not_believed() {
    let thief = Fake::start(|_, _| json(200, &json!({}))).await;
    let target = format!("{}/oauth/token", thief.url);
    let (_fake, stored) = Stored::over(move |asked, own| match asked.path() {
        "/.well-known/oauth-authorization-server" => json(
            200,
            &json!({"issuer": "https://other.example", "token_endpoint": target}),
        ),
        _ => reply(asked, own),
    })
    .await;
    let error = failure(&stored.server()).await;
    assert_eq!(error.code, ErrorCode::RsBadResponse);
    assert!(thief.asked().is_empty());
}

#[tokio::test]
async fn a_refresh_token_is_not_spent_where_nothing_can_be_kept() {
    let fake = Fake::start(reply).await;
    let before = file(&fake.url);
    let stored = Stored::new(&fake, &before);
    let path = stored.cache.file(&stored.provider);
    fs::create_dir(path.with_extension("json.lock")).unwrap();
    let error = failure(&stored.server()).await;
    assert_eq!(error.code, ErrorCode::CredentialExpired);
    assert!(error.hint.as_ref().unwrap().contains("writable"));
    assert_eq!(fake.count("/oauth/token"), 0);
    assert_eq!(stored.file(), before);
}

#[tokio::test]
async fn a_renewal_for_another_grant_is_refused() {
    // TS-06
    let fake = Fake::start(|asked, own| match asked.path() {
        "/oauth/token" => json(200, &json!({"access_token": NEW, "grant_id": "grt_2"})),
        _ => reply(asked, own),
    })
    .await;
    let before = file(&fake.url);
    let stored = Stored::new(&fake, &before);
    let error = failure(&stored.server()).await;
    assert_eq!(error.code, ErrorCode::CredentialInvalid);
    assert_eq!((fake.count("/v1"), stored.file()), (1, before));
}

#[tokio::test]
async fn who_stops_waiting_loses_no_token() {
    let (fake, stored) = Stored::over(reply).await;
    let server = Arc::new(stored.server());
    let asking = tokio::spawn({
        let server = Arc::clone(&server);
        async move { server.get(Get::v1(["schema"])).await }
    });
    while fake.count("/oauth/token") == 0 {
        tokio::task::yield_now().await;
    }
    asking.abort();
    drop(asking.await);
    while stored.file()["credential"]["access_token"] != NEW {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(status_of(&server).await, 200);
    assert_eq!(fake.count("/oauth/token"), 1);
}
