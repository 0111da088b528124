//! A server on loopback that answers as a test tells it, down to the byte, and remembers what it was asked.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use client::{CredentialCache, HttpServer, Limits, ProviderUrl, Secret};
use contract::error::ReadError;
use contract::time::{Clock, Instant};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The token of every test; it must not be found anywhere.
pub(crate) const TOKEN: &str = "tok_secret_0123456789abcdef";

/// Short enough for tests, long enough for a busy machine.
pub(crate) const LIMITS: Limits = Limits {
    connect: Duration::from_secs(10),
    total: Duration::from_secs(20),
    body_bytes: 64 * 1024,
};

#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) line: String,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub(crate) fn path(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }

    pub(crate) fn bearer(&self) -> &str {
        let header = self.header("authorization").unwrap_or_default();
        header.strip_prefix("Bearer ").unwrap_or_default()
    }
}

pub(crate) enum Reply {
    /// These bytes, then the end.
    Raw(Vec<u8>),
    /// These bytes, then nothing more.
    Stall(Vec<u8>),
    Reset,
}

pub(crate) fn http(status: u16, headers: &str, body: impl AsRef<[u8]>) -> Reply {
    let body = body.as_ref();
    let length = body.len();
    let mut bytes = format!(
        "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    Reply::Raw(bytes)
}

pub(crate) fn json(status: u16, body: &Value) -> Reply {
    http(
        status,
        "content-type: application/json\r\n",
        body.to_string(),
    )
}

/// A running fake. It ends with the test.
pub(crate) struct Fake {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
    task: JoinHandle<()>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fake {
    /// Starts with what to answer; the second argument of the closure is the address of the fake itself.
    pub(crate) async fn start(
        reply: impl Fn(&ReceivedRequest, &str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, own, reply) = (Arc::clone(&asked), url.clone(), Arc::new(reply));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (log, own, reply) = (Arc::clone(&log), own.clone(), Arc::clone(&reply));
                tokio::spawn(async move { answer(stream, &log, |asked| reply(asked, &own)).await });
            }
        });
        Self { url, asked, task }
    }

    pub(crate) fn asked(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().unwrap().clone()
    }

    /// How often something below this path was asked for.
    pub(crate) fn count(&self, path: &str) -> usize {
        let asked = self.asked();
        asked
            .iter()
            .filter(|one| one.path().starts_with(path))
            .count()
    }

    pub(crate) fn provider(&self) -> ProviderUrl {
        ProviderUrl::parse(&self.url).unwrap()
    }

    pub(crate) fn server(&self) -> HttpServer {
        HttpServer::with_token(self.provider(), token(), LIMITS)
    }
}

async fn answer(
    mut stream: TcpStream,
    log: &Mutex<Vec<ReceivedRequest>>,
    reply: impl Fn(&ReceivedRequest) -> Reply,
) {
    let Some(asked) = read(&mut stream).await else {
        return;
    };
    log.lock().unwrap().push(asked.clone());
    match reply(&asked) {
        Reply::Raw(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
        }
        Reply::Stall(bytes) => {
            let _ = stream.write_all(&bytes).await;
            tokio::time::sleep(Duration::from_mins(1)).await;
        }
        Reply::Reset => {
            stream.set_zero_linger().unwrap();
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<ReceivedRequest> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let line = head.lines().next().unwrap_or_default().to_owned();
            let asked = ReceivedRequest {
                line,
                head: head.to_owned(),
                body: body.to_owned(),
            };
            let length = asked
                .header("content-length")
                .map_or(0, |n| n.parse().unwrap());
            if body.len() >= length {
                return Some(asked);
            }
        }
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
        }
    }
}

pub(crate) fn token() -> Secret {
    Secret::new(TOKEN).unwrap()
}

pub(crate) fn shown(error: &ReadError) -> String {
    let wire = serde_json::to_string(error).unwrap();
    format!("{error} {error:?} {wire}")
}

/// A moment that stands still.
pub(crate) struct At(pub(crate) &'static str);

impl Clock for At {
    fn now(&self) -> Instant {
        Instant::parse(self.0).unwrap()
    }
}

pub(crate) const NOW: At = At("2026-06-01T12:00:00Z");

pub(crate) fn cache_with(
    provider: &ProviderUrl,
    file: &str,
) -> (tempfile::TempDir, CredentialCache) {
    let folder = tempfile::tempdir().unwrap();
    let cache = CredentialCache::new(folder.path().join("pdpp"));
    let path = cache.file(provider);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, file).unwrap();
    (folder, cache)
}
