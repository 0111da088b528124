//! Encrypted servers: trusted if this machine trusts them, and refused otherwise.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::thread::JoinHandle;

use client::{HttpServer, ProviderUrl};
use contract::error::ErrorCode;
use contract::upstream::{Get, Upstream as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;

use crate::fake::{LIMITS, TOKEN, shown, token};

/// The authority that signed the server's certificate. Its key is gone.
const AUTHORITY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/remote/tls/authority.pem"
);

/// Runs twice: here, where nobody trusts that authority, and once more in a process that is told to.
#[tokio::test]
async fn an_encrypted_server_is_asked_only_if_this_machine_trusts_it() {
    let trusted = std::env::var_os("SSL_CERT_FILE").is_some_and(|file| file == AUTHORITY);
    let (provider, serving) = serve_once();
    let server = HttpServer::with_token(provider, token(), LIMITS);
    let asked = server.get(Get::v1(["schema"])).await;
    let heard = serving.join().unwrap();
    if trusted {
        assert_eq!(asked.unwrap().json().unwrap(), json!({"encrypted": true}));
        assert!(heard.contains(&format!("Bearer {TOKEN}")), "{heard}");
        return;
    }
    let error = asked.unwrap_err();
    assert_eq!(error.code, ErrorCode::RsUnreachable);
    assert!(error.message.contains("certificate"), "{error}");
    assert!(error.hint.as_ref().unwrap().contains("trusted"));
    assert!(heard.is_empty() && !shown(&error).contains(TOKEN));

    if !cfg!(target_os = "linux") {
        // Elsewhere trust is not a file that a process can be given.
        return;
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    let name = "encrypted::an_encrypted_server_is_asked_only_if_this_machine_trusts_it";
    let again = again
        .args(["--exact", name])
        .env("SSL_CERT_FILE", AUTHORITY);
    let output = again.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
}

fn serve_once() -> (ProviderUrl, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let certificate = CertificateDer::from(&include_bytes!("tls/server.der")[..]);
    let key = PrivateKeyDer::try_from(&include_bytes!("tls/server.key.der")[..]).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let serving = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let session = rustls::ServerConnection::new(Arc::new(config)).unwrap();
        let mut stream = rustls::StreamOwned::new(session, stream);
        let mut heard = String::new();
        let mut buffer = [0; 4096];
        while !heard.contains("\r\n\r\n") {
            match stream.read(&mut buffer) {
                Ok(read) if read > 0 => heard.push_str(&String::from_utf8_lossy(&buffer[..read])),
                // The client refused.
                _ => return heard,
            }
        }
        let body = "{\"encrypted\": true}";
        let length = body.len();
        let _ = write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        let _ = stream.flush();
        heard
    });
    (ProviderUrl::parse(&url).unwrap(), serving)
}
