//! An agent's side of the tools over HTTP.

use serde_json::{Value, json};

use crate::answer::{Refusal, SurfaceResult};
use crate::harness::server::{connect, raw_exchange};
use crate::world::Grant;

/// One call over HTTP; nothing has to be said before it.
pub(crate) fn call_hosted(who: &Grant, tool: &str, arguments: &Value) -> SurfaceResult<Value> {
    let params = json!({"name": tool, "arguments": arguments});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let body = body.to_string();
    let (host, token, length) = (&who.world.address, &who.token, body.len());
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
         MCP-Protocol-Version: 2025-11-25\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    let (head, body) = raw_exchange(connect(host), &request);
    if head.starts_with("HTTP/1.1 401") {
        // Hosts authorise again when the challenge says so.
        let challenge = head
            .lines()
            .find(|line| line.starts_with("www-authenticate:"));
        assert!(
            challenge.unwrap().contains("error=\"invalid_token\""),
            "{head}"
        );
        return Err(Refusal {
            code: "invalid_token".to_owned(),
            retry_with: None,
            connections: Vec::new(),
            total: None,
        });
    }
    assert!(head.starts_with("HTTP/1.1 200"), "{head}{body}");
    let mut message: Value = serde_json::from_str(&body).unwrap();
    Ok(message["result"].take())
}
