//! The two ways in: a pipe with a message per line, and HTTP with a message per request. Both are spoken by hand.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use mcp::{HttpSettings, Server};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf,
    WriteHalf,
};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::Mutex;

/// The revisions that begin with `initialize`.
pub(crate) const LEGACY: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];
/// The revision without it.
pub(crate) const CURRENT: &str = "2026-07-28";

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
    Http(String),
}

struct Pipe {
    lines: BufReader<ReadHalf<DuplexStream>>,
    output: WriteHalf<DuplexStream>,
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
        let runtime = runtime();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let settings = HttpSettings::new([address.clone()], [format!("http://{address}")], 1 << 20);
        runtime.spawn(listen(listener, server, Arc::new(settings)));
        Wire::begun(runtime, End::Http(address), revision)
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
        if self.revision == CURRENT {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": CURRENT,
                "io.modelcontextprotocol/clientInfo": {"name": "acceptance", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
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
                End::Http(address) => {
                    let (status, body) = post(address, &self.headers(message), message).await;
                    message.get("id")?;
                    let said = || format!("{status} {}", String::from_utf8_lossy(&body));
                    Some(serde_json::from_slice(&body).unwrap_or_else(|_| panic!("{}", said())))
                }
            }
        })
    }

    /// The status of a request with these headers and a body of this size, over HTTP.
    pub(crate) fn status(&self, headers: &str, padding: usize) -> u16 {
        let End::Http(address) = &self.end else {
            panic!("only HTTP has a status");
        };
        let params = json!({"padding": "x".repeat(padding)});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": params});
        let headers = format!("MCP-Protocol-Version: {}\r\n{headers}", self.revision);
        self.runtime.block_on(post(address, &headers, &message)).0
    }

    fn headers(&self, message: &Value) -> String {
        let version = format!("MCP-Protocol-Version: {}\r\n", self.revision);
        if self.revision != CURRENT {
            return version;
        }
        let params = &message["params"];
        let named = params["name"].as_str().or(params["uri"].as_str());
        let name = named.map_or(String::new(), |name| format!("Mcp-Name: {name}\r\n"));
        let method = message["method"].as_str().unwrap();
        format!("{version}Mcp-Method: {method}\r\n{name}")
    }
}

async fn listen(listener: TcpListener, server: Server, settings: Arc<HttpSettings>) {
    while let Ok((socket, _)) = listener.accept().await {
        let (server, settings) = (server.clone(), Arc::clone(&settings));
        tokio::spawn(async move {
            let service = service_fn(|request| async {
                let answered = mcp::serve_http(server.clone(), &settings, request).await;
                Ok::<_, Infallible>(answered)
            });
            // An error here is a caller that went away.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service)
                .await;
        });
    }
}

async fn post(address: &str, headers: &str, message: &Value) -> (u16, Vec<u8>) {
    let body = message.to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut response = Vec::new();
    socket.read_to_end(&mut response).await.unwrap();
    let end = response.windows(4).position(|four| four == b"\r\n\r\n");
    let body = response.split_off(end.unwrap() + 4);
    let head = String::from_utf8(response).unwrap().to_lowercase();
    assert!(
        !head.contains("transfer-encoding"),
        "one whole answer: {head}"
    );
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body)
}
