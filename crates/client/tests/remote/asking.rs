//! Questions and answers when all goes well, or as well as the server can.

use std::io::Write as _;
use std::process::Command;

use client::{HttpServer, ProviderUrl};
use contract::error::ErrorCode;
use contract::upstream::{Get, Upstream as _};
use serde_json::json;

use crate::fake::{Fake, LIMITS, Reply, TOKEN, http, json, shown, token};

#[tokio::test]
async fn a_question_is_one_get_with_our_headers() {
    let fake = Fake::start(|_, _| json(200, &json!({"object": "list"}))).await;
    let question = Get::v1(["streams", "a/b", "records"]).with("filter[x]", Some("1 2"));
    let answer = fake.server().get(question).await.unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json().unwrap(), json!({"object": "list"}));
    let asked = fake.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(
        asked[0].line,
        "GET /v1/streams/a%2Fb/records?filter[x]=1%202 HTTP/1.1"
    );
    assert_eq!(asked[0].header("accept"), Some("application/json"));
    // On this machine; other servers are asked for gzip.
    assert_eq!(asked[0].header("accept-encoding"), Some("identity"));
    assert_eq!(asked[0].bearer(), TOKEN);
    let agent = asked[0].header("user-agent").unwrap();
    assert!(agent.starts_with("pdpp/"), "{agent}");
}

#[tokio::test]
async fn the_text_of_an_answer_keeps_every_digit_and_hides_the_token() {
    let body =
        format!(r#"{{ "price": 12345678901234567890.1250, "far": 1E400, "echo": "{TOKEN}" }}"#);
    let sent = body.clone();
    let fake =
        Fake::start(move |_, _| http(200, "content-type: application/json\r\n", &sent)).await;
    let answer = fake.server().get(Get::v1(["schema"])).await.unwrap();
    assert_eq!(answer.status, 200);
    let text = &answer.body;
    assert!(
        text.starts_with(r#"{ "price": 12345678901234567890.1250, "far": 1E400, "echo": ""#),
        "{text}"
    );
    assert!(!text.contains(TOKEN), "{text}");
    let body = answer.json().unwrap();
    assert_eq!(body["price"].to_string(), "12345678901234567890.1250");
    assert_eq!(body["far"].to_string(), "1e+400");
}

#[tokio::test]
async fn a_stranger_asks_without_a_token_and_sees_the_challenge() {
    let headers = "www-authenticate: Bearer resource_metadata=\"x\"\r\ndate: Mon, 01 Jun 2026 12:00:00 GMT\r\n";
    let fake = Fake::start(move |_, _| http(401, headers, "{\"error\":1}")).await;
    let seen = client::probe::get(&fake.provider(), "/v1/schema", LIMITS)
        .await
        .unwrap();
    assert_eq!(seen.status, 401);
    assert_eq!(
        seen.challenge.as_deref(),
        Some("Bearer resource_metadata=\"x\"")
    );
    assert_eq!(seen.date.as_deref(), Some("Mon, 01 Jun 2026 12:00:00 GMT"));
    assert_eq!(seen.body, Some(json!({"error": 1})));
    let asked = fake.asked();
    assert_eq!(
        (asked[0].path(), asked[0].header("authorization")),
        ("/v1/schema", None)
    );
}

#[tokio::test]
async fn a_path_in_front_of_the_server_is_kept() {
    let fake = Fake::start(|_, _| json(200, &json!({}))).await;
    let provider = ProviderUrl::parse(&format!("{}/my/data/", fake.url)).unwrap();
    let server = HttpServer::with_token(provider, token(), LIMITS);
    server.get(Get::v1(["schema"])).await.unwrap();
    assert_eq!(fake.asked()[0].path(), "/my/data/v1/schema");
    assert!(server.provider_url().unwrap().ends_with("/my/data"));
}

#[tokio::test]
async fn a_name_that_would_step_up_in_the_path_is_never_sent() {
    let fake = Fake::start(|_, _| json(200, &json!({}))).await;
    for name in [".", ".."] {
        let question = Get::v1(["streams", name, "records"]);
        let error = fake.server().get(question).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidRequest);
    }
    assert!(fake.asked().is_empty());
}

#[tokio::test]
async fn the_request_id_is_read_from_either_header() {
    // UP-09
    for header in ["Request-Id", "X-Request-Id"] {
        let fake = Fake::start(move |_, _| http(404, &format!("{header}: req_7\r\n"), "{}")).await;
        let answer = fake.server().get(Get::v1(["schema"])).await.unwrap();
        assert_eq!(answer.request_id.as_deref(), Some("req_7"));
        assert_eq!(answer.status, 404);
    }
}

#[tokio::test]
async fn json_is_read_whatever_it_is_called() {
    for content_type in ["text/plain", "text/html", "application/problem+json", "x"] {
        let header = format!("content-type: {content_type}\r\n");
        let fake = Fake::start(move |_, _| http(200, &header, "\u{feff}{\"a\": 1}")).await;
        let answer = fake.server().get(Get::v1(["schema"])).await.unwrap();
        assert_eq!(answer.json().unwrap(), json!({"a": 1}), "{content_type}");
    }
}

#[tokio::test]
async fn a_failure_keeps_its_status_whatever_its_body() {
    for body in [&b"\xff\xfe broken"[..], b"{\"cut\": ", b""] {
        let fake =
            Fake::start(move |_, _| http(503, "content-type: application/json\r\n", body)).await;
        let answer = fake.server().get(Get::v1(["schema"])).await.unwrap();
        assert_eq!(answer.status, 503);
    }
}

#[tokio::test]
async fn a_packed_answer_is_unpacked() {
    let fake = Fake::start(|_, _| packed(b"{\"packed\": true}")).await;
    let answer = fake.server().get(Get::v1(["schema"])).await.unwrap();
    assert_eq!(answer.json().unwrap(), json!({"packed": true}));
}

#[tokio::test]
async fn a_small_body_that_unpacks_into_a_large_one_is_refused() {
    let bomb = vec![b' '; 8 * 1024 * 1024];
    let fake = Fake::start(move |_, _| packed(&bomb)).await;
    let error = fake.server().get(Get::v1(["schema"])).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::RsBadResponse);
    assert!(error.message.contains("larger than 65536 bytes"), "{error}");
}

#[tokio::test]
async fn a_token_that_is_sent_back_is_hidden() {
    // UP-12
    let fake = Fake::start(|asked, _| {
        let echo = json!({"error": {"code": "x", "message": asked.head}});
        let header = format!("request-id: {TOKEN}\r\n");
        http(401, &header, echo.to_string())
    })
    .await;
    let server = fake.server();
    let answer = server.get(Get::v1(["schema"])).await.unwrap();
    assert!(!format!("{answer:?} {server:?}").contains(TOKEN));
    assert!(format!("{answer:?}").contains("[hidden]"));
}

#[tokio::test]
async fn a_fixed_token_is_used_once_whatever_the_refusal_says() {
    // TS-06
    for status in [401, 403] {
        let fake = Fake::start(move |_, _| {
            let challenge = "www-authenticate: Bearer error=\"invalid_token\"\r\n";
            let body = json!({"error": {"code": "invalid_token", "type": "authentication_error"}});
            http(status, challenge, body.to_string())
        })
        .await;
        let answer = fake.server().get(Get::v1(["schema"])).await.unwrap();
        assert_eq!(answer.status, status);
        assert_eq!(fake.asked().len(), 1);
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_says_where_it_led() {
    let elsewhere = Fake::start(|_, _| json(200, &json!({}))).await;
    let target = format!("{}/login/{TOKEN}?token={TOKEN}", elsewhere.url);
    let fake = Fake::start(move |_, _| http(302, &format!("location: {target}\r\n"), "")).await;
    let error = fake.server().get(Get::v1(["schema"])).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::RsBadResponse);
    assert!(error.message.contains(&format!("{}/login", elsewhere.url)));
    assert!(error.message.contains(&fake.url) && error.hint.is_some());
    assert!(!shown(&error).contains(TOKEN));
    assert!(elsewhere.asked().is_empty());
    for headers in ["", "location: http://[\r\n"] {
        let fake = Fake::start(move |_, _| http(307, headers, "")).await;
        let error = fake.server().get(Get::v1(["schema"])).await.unwrap_err();
        assert!(error.message.contains("without saying where"), "{error}");
    }
}

#[test]
fn a_proxy_of_the_environment_gets_nothing_that_stays_on_this_machine() {
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "asking::a_question_is_one_get_with_our_headers"]);
    again.env_remove("NO_PROXY").env_remove("no_proxy");
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        // Nobody listens there.
        again.env(name, "http://127.0.0.1:1");
    }
    let output = again.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
}

fn packed(body: &[u8]) -> Reply {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(body).unwrap();
    http(200, "content-encoding: gzip\r\n", packer.finish().unwrap())
}
