//! Every way in which there is no answer: a typed error that names the server and the next step, and never the token.

use std::time::Duration;

use client::{HttpServer, Limits, ProviderUrl};
use contract::error::{ErrorCode, ReadError};
use contract::upstream::{Get, Upstream as _};

use crate::fake::{Fake, LIMITS, Reply, TOKEN, shown, token};

/// Asks and fails. What holds for every failure is asserted here.
async fn failure(url: &str, limits: Limits) -> ReadError {
    let provider = ProviderUrl::parse(url).unwrap();
    let server = HttpServer::with_token(provider.clone(), token(), limits);
    let error = server.get(Get::v1(["schema"])).await.unwrap_err();
    // UP-12
    assert!(!shown(&error).contains(TOKEN), "{error:?}");
    assert!(error.message.contains(provider.as_str()), "{error:?}");
    assert!(error.hint.as_ref().is_some_and(|hint| !hint.is_empty()));
    assert!(error.message.len() < 600);
    error
}

async fn failure_of(reply: impl Fn() -> Reply + Send + Sync + 'static) -> ReadError {
    let fake = Fake::start(move |_, _| reply()).await;
    let error = failure(&fake.url, LIMITS).await;
    assert_eq!(fake.asked().len(), 1, "asked once");
    error
}

fn impatient() -> Limits {
    Limits {
        connect: Duration::from_millis(300),
        total: Duration::from_millis(300),
        ..LIMITS
    }
}

#[tokio::test]
async fn nobody_listens() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = failure(&format!("http://{address}"), LIMITS).await;
    assert_eq!(error.code, ErrorCode::RsUnreachable);
    assert_eq!(error.code.exit_code(), 69);
}

#[tokio::test]
async fn the_name_cannot_be_resolved() {
    // Too long for a label, so it fails before anybody is asked.
    let url = format!("http://{}.invalid", "a".repeat(70));
    let error = failure(&url, LIMITS).await;
    assert_eq!(error.code, ErrorCode::RsUnreachable);
    assert!(error.message.contains("could not be resolved"), "{error}");
}

#[tokio::test]
async fn the_server_never_answers() {
    let fake = Fake::start(|_, _| Reply::Stall(Vec::new())).await;
    let error = failure(&fake.url, impatient()).await;
    assert_eq!(error.code, ErrorCode::RsTimeout);
    assert!(
        error.message.contains("did not answer within 300ms"),
        "{error}"
    );
}

#[tokio::test]
async fn the_server_stops_in_the_middle() {
    let start = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"a\":";
    let fake = Fake::start(|_, _| Reply::Stall(start.to_vec())).await;
    let error = failure(&fake.url, impatient()).await;
    assert_eq!(error.code, ErrorCode::RsTimeout);
}

#[tokio::test]
async fn the_encryption_is_never_agreed_on() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let limits = Limits {
        total: Duration::from_secs(20),
        ..impatient()
    };
    let error = failure(&url, limits).await;
    assert_eq!(error.code, ErrorCode::RsTimeout);
    assert!(
        error.message.contains("took no connection within 300ms"),
        "{error}"
    );
}

#[tokio::test]
async fn the_connection_is_reset() {
    let error = failure_of(|| Reply::Reset).await;
    assert_eq!(error.code, ErrorCode::RsUnreachable);
    assert!(error.message.contains("broke off"), "{error}");
}

#[tokio::test]
async fn the_answer_is_no_http_or_cut_off_or_not_utf_8() {
    for bytes in [
        &b"SSH-2.0-OpenSSH_9.2\r\n"[..],
        b"\x00\x01\x02",
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"a\": 1}",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"a\":",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 12\r\n\r\nnot gzip....",
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: 2\r\n\r\n\xff\xfe",
    ] {
        let error = failure_of(move || Reply::Raw(bytes.to_vec())).await;
        assert_eq!(error.code, ErrorCode::RsBadResponse, "{error}");
    }
}

#[tokio::test]
async fn the_body_is_too_large() {
    let announced = "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n";
    let error = failure_of(move || Reply::Raw(announced.into())).await;
    assert_eq!(error.code, ErrorCode::RsBadResponse);
    let error = failure_of(move || {
        let mut bytes = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_vec();
        bytes.resize(bytes.len() + LIMITS.body_bytes + 1, b' ');
        Reply::Raw(bytes)
    })
    .await;
    assert!(error.message.contains("larger than"), "{error}");
}

#[tokio::test]
async fn the_server_speaks_no_tls() {
    let fake = Fake::start(|_, _| Reply::Raw(Vec::new())).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 1024]).await;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
            let _ = stream.read(&mut [0; 1024]).await;
        }
    });
    let error = failure(&url, LIMITS).await;
    task.abort();
    assert_eq!(error.code, ErrorCode::RsUnreachable);
    assert!(error.message.contains("could not be verified"), "{error}");
    assert!(fake.asked().is_empty());
}
