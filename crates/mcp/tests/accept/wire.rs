//! The two ways in: a pipe with a message per line, and HTTP with a message per request. Both are spoken by hand.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use mcp::{HttpSettings, Server};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf,
};
use tokio::runtime::Runtime;
use tokio::sync::Mutex;

/// The revisions that begin with `initialize`.
pub(crate) const LEGACY: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];
/// The revision without it.
pub(crate) const CURRENT: &str = "2026-07-28";

const HOST: &str = "localhost";

/// One way to the server, in one revision of the protocol.
pub(crate) struct Wire {
    runtime: Runtime,
    end: End,
    revision: &'static str,
    last_id: AtomicU64,
    introduction: Value,
}

enum End {
    Pipe(Box<Mutex<Pipe>>),
    Http(Server),
}

struct Pipe {
    lines: BufReader<ReadHalf<DuplexStream>>,
    output: WriteHalf<DuplexStream>,
}

/// What a request of the current revision says of its client.
pub(crate) fn meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": CURRENT,
        "io.modelcontextprotocol/clientInfo": {"name": "acceptance", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

impl Wire {
    /// A pipe, the beginning already said.
    pub(crate) fn pipe(server: Server, revision: &'static str) -> Wire {
        let runtime = runtime();
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (input, output) = tokio::io::split(far);
        runtime.spawn(mcp::serve_pipe(server, input, output));
        let (lines, output) = tokio::io::split(near);
        let lines = BufReader::new(lines);
        let end = End::Pipe(Box::new(Mutex::new(Pipe { lines, output })));
        Wire::begun(runtime, end, revision)
    }

    pub(crate) fn http(server: Server, revision: &'static str) -> Wire {
        Wire::begun(runtime(), End::Http(server), revision)
    }

    fn begun(runtime: Runtime, end: End, revision: &'static str) -> Wire {
        let mut wire = Wire {
            runtime,
            end,
            revision,
            last_id: AtomicU64::new(0),
            introduction: Value::Null,
        };
        if revision != CURRENT {
            let mut begun = wire.begin();
            assert_eq!(begun["result"]["protocolVersion"], revision, "{begun}");
            wire.introduction = begun["result"].take();
        }
        wire
    }

    /// What the server says of itself: at the beginning, or when asked.
    pub(crate) fn introduction(&self) -> Value {
        if self.revision == CURRENT {
            let mut discovered = self.request("server/discover", json!({}));
            return discovered["result"].take();
        }
        self.introduction.clone()
    }

    fn begin(&self) -> Value {
        let params = json!({
            "protocolVersion": self.revision,
            "capabilities": {},
            "clientInfo": {"name": "acceptance", "version": "1"},
        });
        let begun = self.request("initialize", params);
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        begun
    }

    pub(crate) fn request(&self, method: &str, mut params: Value) -> Value {
        if self.revision == CURRENT && params.get("_meta").is_none() {
            params["_meta"] = meta(&json!({}));
        }
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let response = self.say(&message).unwrap();
        assert_eq!(response["id"], id, "{response}");
        response
    }

    /// Sends a message; a request has a response.
    fn say(&self, message: &Value) -> Option<Value> {
        self.runtime.block_on(async {
            match &self.end {
                End::Pipe(pipe) => {
                    let mut pipe = pipe.lock().await;
                    let line = format!("{message}\n");
                    pipe.output.write_all(line.as_bytes()).await.unwrap();
                    message.get("id")?;
                    let mut line = String::new();
                    pipe.lines.read_line(&mut line).await.unwrap();
                    Some(serde_json::from_str(&line).unwrap())
                }
                End::Http(server) => {
                    let (status, body) = post(server, self.headers(message), message).await;
                    message.get("id")?;
                    let said = || format!("{status} {}", String::from_utf8_lossy(&body));
                    Some(serde_json::from_slice(&body).unwrap_or_else(|_| panic!("{}", said())))
                }
            }
        })
    }

    fn headers<'a>(&self, message: &'a Value) -> Vec<(&'static str, &'a str)> {
        let mut headers = vec![("mcp-protocol-version", self.revision)];
        if self.revision == CURRENT {
            let params = &message["params"];
            let named = params["name"].as_str().or(params["uri"].as_str());
            headers.push(("mcp-method", message["method"].as_str().unwrap()));
            headers.extend(named.map(|name| ("mcp-name", name)));
        }
        headers
    }
}

async fn post(server: &Server, headers: Vec<(&str, &str)>, message: &Value) -> (u16, Vec<u8>) {
    let settings = HttpSettings::new([HOST.to_owned()], [format!("http://{HOST}")], 1 << 20);
    let mut request = http::Request::post("/mcp")
        .header("host", HOST)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let request = request.body(Full::new(Bytes::from(message.to_string())));
    let response = mcp::serve_http(server.clone(), &settings, request.unwrap()).await;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, body.to_vec())
}
