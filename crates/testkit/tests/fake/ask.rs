//! A client of a few lines: one GET per connection.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;
use testkit::fake::FakeServer;

/// What came back, as bytes.
pub(crate) struct Raw {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

pub(crate) fn get(server: &FakeServer, target: &str) -> (u16, Value) {
    let raw = send(server, target, Some(server.token())).unwrap();
    let body = serde_json::from_slice(&raw.body).unwrap_or(Value::Null);
    (raw.status, body)
}

/// Asks and expects an answer.
pub(crate) fn ok(server: &FakeServer, target: &str) -> Value {
    let (status, body) = get(server, target);
    assert_eq!(status, 200, "{target}: {body}");
    body
}

/// Asks; `None` when the connection ends without a whole head.
pub(crate) fn send(server: &FakeServer, target: &str, token: Option<&str>) -> Option<Raw> {
    let address = server.url().strip_prefix("http://").unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    let authorization = token
        .map(|token| format!("Authorization: Bearer {token}\r\n"))
        .unwrap_or_default();
    let head =
        format!("GET {target} HTTP/1.1\r\nHost: fake\r\n{authorization}Connection: close\r\n\r\n");
    socket.write_all(head.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    // A reset in the middle leaves what came before it.
    let _ = socket.read_to_end(&mut bytes);
    let at = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8(bytes[..at].to_vec()).unwrap();
    Some(Raw {
        status: head.split(' ').nth(1)?.parse().ok()?,
        body: bytes[at + 4..].to_vec(),
    })
}
