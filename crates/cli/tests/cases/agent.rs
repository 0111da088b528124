//! An agent's side of the tools: over standard input and output, and over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::spawn;

use serde_json::{Value, json};

use crate::answer::{Refusal, SurfaceResult};
use crate::harness::server::PATIENCE;
use crate::world::Grant;

/// A started adapter. It ends when its input does, which is with this process at the latest.
pub(crate) struct Agent {
    input: ChildStdin,
    /// The lines it says, read elsewhere so that one that never comes is not waited for.
    lines: Receiver<String>,
    asked: u64,
    _child: Child,
}

impl Agent {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // Nobody may wait any more.
                let _ = send.send(line);
            }
        });
        let mut agent = Self {
            input: child.stdin.take().unwrap(),
            lines,
            asked: 0,
            _child: child,
        };
        let client = json!({"name": "cases", "version": "1"});
        agent.ask(
            "initialize",
            &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}),
        );
        let noted = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        writeln!(agent.input, "{noted}").unwrap();
        agent
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let message =
            json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params});
        writeln!(self.input, "{message}").unwrap();
        self.input.flush().unwrap();
        let line = self.lines.recv_timeout(PATIENCE).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.ask("tools/call", &params)["result"].take()
    }
}

/// One call over HTTP; nothing has to be said before it.
pub(crate) fn call_hosted(who: &Grant, tool: &str, arguments: &Value) -> SurfaceResult<Value> {
    let params = json!({"name": tool, "arguments": arguments});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let body = body.to_string();
    let mut stream = TcpStream::connect(&who.world.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let (host, token, length) = (&who.world.address, &who.token, body.len());
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
         MCP-Protocol-Version: 2025-11-25\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
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
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    let mut message: Value = serde_json::from_str(body).unwrap();
    Ok(message["result"].take())
}
