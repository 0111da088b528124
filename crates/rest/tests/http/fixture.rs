//! A store with two mail accounts, tokens of every kind over it, and a short way to ask. Every answer is held against the
//! server's own `OpenAPI` document.

use std::io::Read;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use contract::time::{Clock, Instant};
use grants::{DisclosureLog, Flags, Selection};
use rest::{Limits, Service};
use serde_json::{Value, json};
use store::Store;
use tower::ServiceExt as _;

use crate::document;
pub(crate) use crate::shared::MAIL;
use crate::shared::{connect, served};

pub(crate) const PUBLIC_URL: &str = "http://127.0.0.1:7420";

/// 2026-06-01T12:00:00Z
pub(crate) const NOON: Instant = Instant(1_780_315_200_000_000);

pub(crate) struct World {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) service: Service,
    pub(crate) router: Router,
    pub(crate) owner: String,
    pub(crate) log: Arc<DisclosureLog>,
    _folder: tempfile::TempDir,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Vec<u8>,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn failure(&self) -> (u16, &str) {
        let code = self.body["error"]["code"].as_str().unwrap_or("no error");
        (self.status.as_u16(), code)
    }
}

impl World {
    pub(crate) fn empty() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(NOON);
        let served = served(&clock, &format!("{PUBLIC_URL}/"), Duration::from_hours(1));
        Self {
            router: rest::router(served.service.clone()),
            service: served.service,
            store: served.store,
            owner: served.owner,
            log: served.log,
            _folder: served.folder,
        }
    }

    /// Two accounts with a few letters each.
    pub(crate) async fn new() -> Self {
        let world = Self::empty();
        world.connect("work", "Work mail");
        world.connect("home", "Home mail");
        let fee = "The overdraft fee is 42 EUR, said the bank.";
        let refunded = "The fee was refunded. 😀é and more.";
        let letters = [
            letter("m1", "Overdraft notice", fee, 1),
            letter("m2", "Lunch tomorrow", "Shall we have lunch?", 2),
            letter("m3", "Re: overdraft", refunded, 3),
        ];
        world.ingest("work", "messages", &letters.join("\n")).await;
        let home = letter("h1", "Overdraft at home", "Nothing new.", 4);
        world.ingest("home", "messages", &home).await;
        let file =
            json!({"key": "a1", "data": {"id": "a1", "message_id": "m1", "name": "bill.txt"}});
        world.ingest("work", "attachments", &file.to_string()).await;
        world
    }

    pub(crate) fn connect(&self, id: &str, name: &str) {
        self.connect_to("demo_mail", id, name);
    }

    pub(crate) fn connect_to(&self, connector: &str, id: &str, name: &str) {
        connect(&*self.store, connector, id, name);
    }

    pub(crate) fn limited(&self, limits: Limits) -> Router {
        rest::router(self.service.clone().with_limits(limits))
    }

    /// A token for these connections, streams and fields; its grant's id comes with it.
    pub(crate) fn grant(
        &self,
        connections: &[&str],
        streams: &[&str],
        fields: &[&str],
    ) -> (String, String) {
        let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let selection = Selection::from_flags(Flags {
            connections: all(connections),
            streams: all(streams),
            fields: all(fields),
            ..Flags::default()
        });
        let issued =
            grants::issue(&*self.store, &selection.unwrap(), "longview", None, &NOON).unwrap();
        let id = issued.grant_id.map(|id| id.to_string());
        let id = id.or(issued.grant_package_id.map(|id| id.to_string()));
        (issued.access_token.expose().to_owned(), id.unwrap())
    }

    pub(crate) async fn get(&self, token: &str, target: &str) -> Answer {
        let request = Request::get(target).header("authorization", format!("Bearer {token}"));
        self.send(request.body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn ask(&self, target: &str) -> Answer {
        self.get(&self.owner, target).await
    }

    pub(crate) async fn read(&self, target: &str) -> Value {
        let answer = self.ask(target).await;
        assert_eq!(answer.status, StatusCode::OK, "{target}: {}", answer.body);
        answer.body
    }

    pub(crate) async fn write(
        &self,
        method: Method,
        target: &str,
        body: impl Into<Body>,
    ) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(target)
            .header("authorization", format!("Bearer {}", self.owner));
        self.send(request.body(body.into()).unwrap()).await
    }

    /// The owner's requests of a table are refused, each with its status and code.
    pub(crate) async fn refuses(&self, method: Method, table: &str) {
        for row in table.trim().lines() {
            let parts: Vec<&str> = row.split_whitespace().collect();
            let [target, status, code] = parts.try_into().unwrap();
            let answer = self.write(method.clone(), target, "").await;
            let expected = (status.parse().unwrap(), code);
            assert_eq!(answer.failure(), expected, "{target}: {}", answer.body);
        }
    }

    pub(crate) async fn ingest(&self, connection: &str, stream: &str, lines: &str) -> Value {
        let target = format!("/v1/ingest/{stream}?connection_id={connection}");
        let answer = self.write(Method::POST, &target, lines.to_owned()).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        answer.body
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        send(self.router.clone(), request).await
    }
}

/// Sends a request and holds the answer against the document.
pub(crate) async fn send(router: Router, request: Request<Body>) -> Answer {
    let mut request = request;
    let host = "127.0.0.1:7420".parse().unwrap();
    request.headers_mut().entry("host").or_insert(host);
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = router.oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.unwrap().to_vec();
    let encoded = parts.headers.contains_key("content-encoding");
    let body = if encoded {
        Value::Null
    } else {
        serde_json::from_slice(&bytes).unwrap_or_default()
    };
    let answer = Answer {
        status: parts.status,
        headers: parts.headers,
        bytes,
        body,
    };
    assert_eq!(answer.header("pdpp-version"), "2026-04-06");
    assert!(!answer.header("request-id").is_empty());
    assert_eq!(answer.header("request-id"), answer.header("x-request-id"));
    if method != Method::HEAD && !encoded {
        document::holds(the_document(), &method, &path, &answer);
    }
    answer
}

pub(crate) fn the_document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| {
        std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(async {
                let world = World::empty();
                let request = Request::get("/v1/openapi.json")
                    .header("host", "127.0.0.1:7420")
                    .body(Body::empty())
                    .unwrap();
                let response = world.router.clone().oneshot(request).await.unwrap();
                let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
                serde_json::from_slice(&bytes).unwrap()
            })
        })
        .join()
        .unwrap()
    })
}

pub(crate) fn letter(id: &str, subject: &str, body: &str, day: u32) -> String {
    json!({
        "key": id,
        "emitted_at": format!("2026-03-{day:02}T09:05:00Z"),
        "data": {
            "id": id,
            "subject": subject,
            "body": body,
            "from_email": "bank@example.test",
            "received_at": format!("2026-03-{day:02}T09:00:00Z"),
            "size_bytes": day * 10,
            "secret": "hunter2",
        },
    })
    .to_string()
}

pub(crate) fn gunzip(bytes: &[u8]) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes)
        .read_to_string(&mut text)
        .unwrap();
    text
}
