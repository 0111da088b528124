//! A credential is renewed before it ends, so that no read fails first; and what cannot be renewed is told as it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use contract::upstream::{Get, Upstream as _};
use serde_json::{Value, json};

use crate::fake::{Fake, ReceivedRequest, http, json};
use crate::renewing::{NEW, OLD, ROTATED, Stored, ask_at_once, file, reply, status_of};

/// The same file with a token that ends then.
fn ending(url: &str, at: &str) -> Value {
    let mut file = file(url);
    file["credential"]["expires_at"] = at.into();
    file
}

// TR-23: nothing was renewed before a read had failed.
#[tokio::test]
async fn a_token_is_renewed_ahead_of_its_end() {
    // Soon, and long ago.
    for at in ["2026-06-01T12:00:59Z", "2026-06-01T11:00:00Z"] {
        let fake = Fake::start(reply).await;
        let stored = Stored::new(&fake, &ending(&fake.url, at));
        let server = stored.server();
        for _ in 0..2 {
            assert_eq!(status_of(&server).await, 200);
        }
        let asked = fake.asked();
        let bearers = asked.iter().filter(|one| one.path().starts_with("/v1"));
        assert!(bearers.map(ReceivedRequest::bearer).eq([NEW, NEW]), "{at}");
        assert_eq!(fake.count("/oauth/token"), 1, "{at}");
        let kept = &stored.file()["credential"];
        assert_eq!(kept["refresh_token"], ROTATED);
        assert_eq!(kept["expires_at"], "2026-06-01T13:00:00.000Z");
    }
    // Not yet.
    let fake = Fake::start(|asked, own| match asked.bearer() {
        OLD => json(200, &json!({})),
        _ => reply(asked, own),
    })
    .await;
    let stored = Stored::new(&fake, &ending(&fake.url, "2026-06-01T12:01:01Z"));
    let told = status_of(&stored.server()).await;
    assert_eq!((told, fake.asked().len()), (200, 1));
}

// TR-23
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_questions_at_once_renew_ahead_once() {
    let fake = Fake::start(reply).await;
    let stored = Stored::new(&fake, &ending(&fake.url, "2026-06-01T12:00:30Z"));
    ask_at_once(&stored).await;
    assert_eq!(fake.count("/oauth/token"), 1);
    assert!(fake.asked().iter().all(|one| one.bearer() != OLD));
}

// TR-23
#[tokio::test]
async fn a_token_that_cannot_be_renewed_ahead_is_used_to_its_end() {
    for (status, body) in [(400, r#"{"error": "invalid_grant"}"#), (502, "<html>")] {
        let fake = Fake::start(move |asked, own| match (asked.path(), asked.bearer()) {
            ("/oauth/token", _) => http(status, "", body),
            (_, OLD) => json(200, &json!({})),
            _ => reply(asked, own),
        })
        .await;
        let stored = Stored::new(&fake, &ending(&fake.url, "2026-06-01T12:00:30Z"));
        let told = status_of(&stored.server()).await;
        assert_eq!((told, fake.count("/oauth/token")), (200, 1));
    }
}

// TR-23: a token of a few seconds is not renewed before each question.
#[tokio::test]
async fn a_renewed_token_that_ends_soon_is_used() {
    let fake = Fake::start(|asked, own| match asked.path() {
        "/oauth/token" => json(
            200,
            &json!({"access_token": NEW, "refresh_token": ROTATED, "expires_in": 20}),
        ),
        _ => reply(asked, own),
    })
    .await;
    let stored = Stored::new(&fake, &ending(&fake.url, "2026-06-01T12:00:30Z"));
    let server = stored.server();
    for _ in 0..3 {
        assert_eq!(status_of(&server).await, 200);
    }
    assert_eq!(fake.count("/oauth/token"), 1);
}

// TR-23: a grant that has really ended, or was revoked, is told as the server tells it, after one attempt to renew.
#[tokio::test]
async fn an_ended_grant_is_told_as_such() {
    for (before, after) in [
        ((403, "grant_expired"), (403, "grant_expired")),
        ((403, "grant_expired"), (403, "grant_revoked")),
        ((401, "context.active_false"), (403, "grant_revoked")),
    ] {
        // The refresh token may still be traded, or be gone with its grant.
        for refuses in [false, true] {
            let fake = Fake::start(move |asked, own| {
                let told = |(status, code)| json(status, &json!({"error": {"code": code}}));
                match (asked.path(), asked.bearer()) {
                    ("/oauth/token", _) if refuses => json(400, &json!({"error": "invalid_grant"})),
                    (_, OLD) => told(before),
                    (_, NEW) => told(after),
                    _ => reply(asked, own),
                }
            })
            .await;
            let stored = Stored::new(&fake, &file(&fake.url));
            let answer = stored.server().get(Get::v1(["schema"])).await.unwrap();
            let (status, code) = if refuses { before } else { after };
            let body = answer.json().unwrap();
            assert_eq!(
                (answer.status, &body["error"]["code"]),
                (status, &json!(code))
            );
            assert_eq!(fake.count("/oauth/token"), 1);
        }
    }
}

// TR-24: a renewed token is the same credential, which is asked about once.
#[tokio::test]
async fn an_agents_token_that_was_asked_about_is_not_asked_about_when_renewed() {
    let ended = Arc::new(AtomicBool::new(false));
    let now = Arc::clone(&ended);
    let (fake, stored) = Stored::over(move |asked, own| match asked.bearer() {
        OLD if !now.load(Ordering::SeqCst) => {
            json(200, &json!({"bearer": {"token_kind": "client"}}))
        }
        _ => reply(asked, own),
    })
    .await;
    let server = stored.server().for_agents();
    let records = || Get::v1(["streams", "orders", "records"]);
    assert_eq!(server.get(records()).await.unwrap().status, 200);
    ended.store(true, Ordering::SeqCst);
    assert_eq!(server.get(records()).await.unwrap().status, 200);
    assert_eq!(
        (fake.count("/v1/schema"), fake.count("/v1/streams")),
        (1, 3)
    );
}
