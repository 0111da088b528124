//! A server with two mail accounts, a clock that can be set, a browser with cookies, and applications that ask.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use contract::time::{Clock, Instant};
use grants::sign_in::Console;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rest::{ClientDocuments, Fetched, Fetching};
use serde_json::{Value, json};
use store::Store;
use tower::ServiceExt as _;

use crate::shared::{connect, served};

pub(crate) const URL: &str = "https://pdpp.example";
pub(crate) const PASSWORD: &str = "a few good words";
/// The pair of RFC 7636, appendix B.
pub(crate) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
pub(crate) const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
pub(crate) const DEVICE: &str = "urn:ietf:params:oauth:grant-type:device_code";
pub(crate) const CLAUDE: &str = "https://claude.ai/oauth/claude-code-client-metadata";

/// What is picked most often.
pub(crate) const MESSAGES: &[(&str, &str)] = &[("stream", "work/messages")];

pub(crate) struct Settable(AtomicI64);

impl Clock for Settable {
    fn now(&self) -> Instant {
        Instant(self.0.load(Ordering::SeqCst))
    }
}

/// Documents that are not fetched from anywhere.
struct Documents;

impl ClientDocuments for Documents {
    fn fetch<'a>(&'a self, address: &'a str) -> Fetching<'a> {
        let document = match address {
            CLAUDE => Ok(json!({
                "client_id": CLAUDE,
                "client_name": "Claude Code",
                "client_uri": "https://claude.ai",
                "redirect_uris": ["http://localhost/callback", "http://127.0.0.1/callback"],
                "grant_types": ["authorization_code", "refresh_token"],
                "response_types": ["code"],
                "token_endpoint_auth_method": "none",
            })),
            _ => Err("the address is not public".to_owned()),
        };
        Box::pin(async move {
            document.map(|document| Fetched {
                body: document.to_string().into_bytes(),
                max_age: Some(Duration::from_mins(5)),
            })
        })
    }
}

pub(crate) struct World {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) router: Router,
    pub(crate) owner: String,
    pub(crate) clock: Arc<Settable>,
    pub(crate) url: String,
    pub(crate) log: Arc<grants::DisclosureLog>,
    pub(crate) folder: tempfile::TempDir,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {}", self.text))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn shows(&self, words: &str) {
        assert!(self.text.contains(words), "{words} is not in {}", self.text);
    }

    /// Checks that these words do not stand in it.
    pub(crate) fn hides(&self, words: &str) {
        assert!(!self.text.contains(words), "{words} is in {}", self.text);
    }

    /// The status and the code of an OAuth error.
    pub(crate) fn refusal(&self) -> (u16, String) {
        assert!(self.header("cache-control").contains("no-store"));
        let body = self.json();
        assert!(body["request_id"].is_string(), "{body}");
        let code = body["error"].as_str().unwrap_or("no error").to_owned();
        (self.status.as_u16(), code)
    }

    /// Checks that it is an OAuth error of this status and code.
    pub(crate) fn refused(&self, status: u16, code: &str) {
        assert_eq!(self.refusal(), (status, code.to_owned()), "{}", self.text);
    }

    pub(crate) fn sent_with(&self, name: &str) -> Option<String> {
        let query = self.header("location").split_once('?')?.1;
        let value = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find(|(known, _)| *known == name)?
            .1;
        Some(
            percent_decode_str(value)
                .decode_utf8()
                .unwrap()
                .into_owned(),
        )
    }

    pub(crate) fn field(&self, name: &str) -> String {
        let mark = format!("name=\"{name}\" value=\"");
        let at = self.text.rfind(&mark);
        let at = at.unwrap_or_else(|| panic!("no {name} in {}", self.text)) + mark.len();
        self.text[at..].split('"').next().unwrap().to_owned()
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::at(URL).await
    }

    pub(crate) async fn at(url: &str) -> Self {
        Self::with_limits(url, rest::Limits::default()).await
    }

    /// A server that waits for less, or takes less.
    pub(crate) async fn with_limits(url: &str, limits: rest::Limits) -> Self {
        let world = Self::empty_at(url, limits);
        for (id, name) in [("work", "Work mail"), ("home", "<b>Home</b> \u{202e}mail")] {
            connect(&*world.store, "demo_mail", id, name);
            world.ingest(id, 3).await;
        }
        world
    }

    /// A server that keeps nothing yet.
    pub(crate) fn empty() -> Self {
        Self::empty_at(URL, rest::Limits::default())
    }

    fn empty_at(url: &str, limits: rest::Limits) -> Self {
        let noon = Instant::parse("2026-06-01T12:00:00Z").unwrap();
        let clock = Arc::new(Settable(AtomicI64::new(noon.0)));
        let shared: Arc<dyn Clock> = clock.clone();
        let served = served(&shared, url, Duration::from_hours(24 * 300));
        grants::sign_in::set_password(&*served.store, PASSWORD, clock.now()).unwrap();
        let service = served.service.with_documents(Arc::new(Documents));
        let service = service.with_uploads(&served.folder.path().join("uploads"));
        let service = service.with_limits(limits);
        Self {
            router: rest::router(service),
            store: served.store,
            owner: served.owner,
            clock,
            url: url.to_owned(),
            log: served.log,
            folder: served.folder,
        }
    }

    pub(crate) async fn ingest(&self, connection: &str, letters: u32) {
        let letter = |n: u32| {
            json!({"key": format!("m{n}"), "data": {
                "id": format!("m{n}"),
                "subject": format!("Letter {n} <script>alert({n})</script>"),
                "body": "The overdraft fee is 42 EUR.",
                "from_email": "bank@example.test",
                "received_at": format!("2026-03-{n:02}T09:00:00Z"),
                "size_bytes": n,
                "secret": "hunter2",
            }})
            .to_string()
        };
        let lines: Vec<String> = (1..=letters).map(letter).collect();
        let request = Request::post(format!("/v1/ingest/messages?connection_id={connection}"))
            .header("authorization", format!("Bearer {}", self.owner))
            .body(Body::from(lines.join("\n")));
        assert_eq!(self.send(request.unwrap()).await.status, 200);
    }

    pub(crate) fn pass(&self, time: Duration) {
        let micros = i64::try_from(time.as_micros()).unwrap();
        self.clock.0.fetch_add(micros, Ordering::SeqCst);
    }

    /// Sends a request, to the public address unless it names another.
    pub(crate) async fn send(&self, mut request: Request<Body>) -> Answer {
        let host = self.url.split_once("://").unwrap().1.parse().unwrap();
        request.headers_mut().entry("host").or_insert(host);
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        let answer = Answer {
            status: parts.status,
            headers: parts.headers,
            // A file need not be text.
            text: String::from_utf8_lossy(&bytes).into_owned(),
        };
        assert!(!answer.header("request-id").is_empty());
        answer
    }

    pub(crate) async fn get(&self, target: &str) -> Answer {
        self.send(Request::get(target).body(Body::empty()).unwrap())
            .await
    }

    pub(crate) async fn read(&self, token: &str, target: &str) -> Answer {
        let request = Request::get(target).header("authorization", format!("Bearer {token}"));
        self.send(request.body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn post(&self, target: &str, pairs: &[(&str, &str)]) -> Answer {
        let request = Request::post(target)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Body::from(encoded(pairs)));
        self.send(request.unwrap()).await
    }

    pub(crate) async fn register(&self, metadata: &Value) -> Value {
        let answer = self.registering(metadata).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.json()
    }

    pub(crate) async fn registering(&self, metadata: &Value) -> Answer {
        let request = Request::post("/oauth/register")
            .header("content-type", "application/json")
            .body(Body::from(metadata.to_string()));
        self.send(request.unwrap()).await
    }

    /// An application that may use everything; its id.
    pub(crate) async fn client(&self) -> String {
        let registered = self
            .register(&json!({
                "client_name": "An app",
                "redirect_uris": ["https://app.example/cb"],
                "grant_types": ["authorization_code", "refresh_token", DEVICE],
            }))
            .await;
        registered["client_id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn tokens(&self, client: &str, code: &str) -> Value {
        self.tokens_with(client, code, &[]).await
    }

    /// The same with `more` instead of what is usually sent.
    pub(crate) async fn tokens_with(
        &self,
        client: &str,
        code: &str,
        more: &[(&str, &str)],
    ) -> Value {
        let answer = self
            .post("/oauth/token", &changed(&redeeming(client, code), more))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(answer.header("cache-control"), "no-store");
        assert_eq!(answer.header("pragma"), "no-cache");
        answer.json()
    }

    pub(crate) async fn browser(&self) -> Browser<'_> {
        let mut browser = Browser::new(self);
        let page = browser.get("/sign-in").await;
        let csrf = page.field("csrf");
        let form = [("csrf", csrf.as_str()), ("password", PASSWORD)];
        let answer = browser.post("/sign-in", &form).await;
        assert_eq!(answer.status, 303, "{}", answer.text);
        browser
    }
}

/// A browser: it keeps cookies and says that it wants pages.
pub(crate) struct Browser<'a> {
    pub(crate) world: &'a World,
    pub(crate) cookies: BTreeMap<String, String>,
}

impl<'a> Browser<'a> {
    pub(crate) fn new(world: &'a World) -> Self {
        Self {
            world,
            cookies: BTreeMap::new(),
        }
    }

    pub(crate) async fn get(&mut self, target: &str) -> Answer {
        self.get_with(target, &[]).await
    }

    pub(crate) async fn post(&mut self, target: &str, pairs: &[(&str, &str)]) -> Answer {
        self.post_with(target, pairs, &[]).await
    }

    pub(crate) async fn get_with(&mut self, target: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = Request::get(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request, String::new()).await
    }

    pub(crate) async fn post_with(
        &mut self,
        target: &str,
        pairs: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Answer {
        let mut request =
            Request::post(target).header("content-type", "application/x-www-form-urlencoded");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request, encoded(pairs)).await
    }

    /// Sends a form with files, its token first.
    pub(crate) async fn upload(&mut self, csrf: &str, files: &[(&str, &str)]) -> Answer {
        let files = files.iter();
        let files = files.map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()));
        self.upload_bytes(csrf, &files.collect::<Vec<_>>()).await
    }

    pub(crate) async fn upload_bytes(&mut self, csrf: &str, files: &[(String, Vec<u8>)]) -> Answer {
        self.upload_body(uploaded(csrf, files)).await
    }

    pub(crate) async fn upload_body(&mut self, body: impl Into<Body>) -> Answer {
        let kind = "multipart/form-data; boundary=xYz";
        let request = Request::post("/import").header("content-type", kind);
        self.send(request, body).await
    }

    async fn send(
        &mut self,
        request: axum::http::request::Builder,
        body: impl Into<Body>,
    ) -> Answer {
        let pair = |(name, value): (&String, &String)| format!("{name}={value}");
        let cookies: Vec<String> = self.cookies.iter().map(pair).collect();
        let console = Console::for_public_url(&self.world.url);
        let request = request
            .header("host", console.origin().split_once("://").unwrap().1)
            .header("accept", "text/html,application/xhtml+xml,*/*;q=0.8")
            .header("user-agent", "a browser of the test")
            .header("cookie", cookies.join("; "));
        let answer = self.world.send(request.body(body.into()).unwrap()).await;
        for cookie in answer.headers.get_all("set-cookie") {
            let cookie = cookie.to_str().unwrap();
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            if cookie.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        answer
    }

    /// Asks on behalf of an application; the request that waits.
    pub(crate) async fn ask(&mut self, client: &str, more: &[(&str, &str)]) -> String {
        let answer = self.get(&authorize(client, more)).await;
        assert_eq!(answer.status, 303, "{}", answer.text);
        let request = answer.sent_with("request");
        request.unwrap_or_else(|| panic!("sent to {}", answer.header("location")))
    }

    pub(crate) async fn picker(&mut self, request: &str) -> Answer {
        self.get(&format!("/consent?request={request}")).await
    }

    /// Asks for everything, and sees the review of the messages at work.
    pub(crate) async fn reviewing(&mut self, client: &str) -> Answer {
        let request = self.ask(client, &[]).await;
        self.review(&request, MESSAGES).await
    }

    pub(crate) async fn review(&mut self, request: &str, pick: &[(&str, &str)]) -> Answer {
        let page = self.picker(request).await;
        assert_eq!(page.status, 200, "{}", page.text);
        let csrf = page.field("csrf");
        let form = [&[("csrf", csrf.as_str()), ("request", request)], pick].concat();
        self.post("/consent/review", &form).await
    }

    pub(crate) async fn decide(&mut self, page: &Answer, how: &str) -> Answer {
        let fields = ["csrf", "request", "digest"].map(|name| (name, page.field(name)));
        let form = fields
            .each_ref()
            .map(|(name, value)| (*name, value.as_str()));
        self.post(&format!("/consent/{how}"), &form).await
    }

    /// Allows what a page shows; the code that goes back.
    pub(crate) async fn allow(&mut self, page: &Answer) -> String {
        let answer = self.decide(page, "approve").await;
        assert_eq!(answer.status, 303, "{}", answer.text);
        answer.sent_with("code").unwrap()
    }

    /// Picks, reviews and allows; the code that goes back.
    pub(crate) async fn approve(&mut self, request: &str, pick: &[(&str, &str)]) -> String {
        let page = self.review(request, pick).await;
        assert_eq!(page.status, 200, "{}", page.text);
        self.allow(&page).await
    }
}

/// The form with files that a browser sends, its token first.
pub(crate) fn uploaded(csrf: &str, files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let head = |head: &str| format!("--xYz\r\nContent-Disposition: form-data; {head}\r\n\r\n");
    let mut body = head("name=\"csrf\"").into_bytes();
    body.extend_from_slice(csrf.as_bytes());
    for (name, content) in files {
        body.extend_from_slice(b"\r\n");
        let part = head(&format!("name=\"files\"; filename=\"{name}\""));
        body.extend_from_slice(part.as_bytes());
        body.extend_from_slice(content);
    }
    body.extend_from_slice(b"\r\n--xYz--\r\n");
    body
}

pub(crate) fn encoded(pairs: &[(&str, &str)]) -> String {
    let pair = |(name, value): &(&str, &str)| {
        let value = utf8_percent_encode(value, NON_ALPHANUMERIC);
        format!("{}={value}", utf8_percent_encode(name, NON_ALPHANUMERIC))
    };
    pairs.iter().map(pair).collect::<Vec<_>>().join("&")
}

/// The address an application sends the browser to, with `more` instead of what stood there; empty takes away.
pub(crate) fn authorize(client: &str, more: &[(&str, &str)]) -> String {
    let usual = [
        ("client_id", client),
        ("redirect_uri", "https://app.example/cb"),
        ("response_type", "code"),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
        ("state", "s 1&2"),
    ];
    format!("/oauth/authorize?{}", encoded(&changed(&usual, more)))
}

/// Pairs with `more` instead of what stood there; empty takes away.
fn changed<'a>(
    usual: &[(&'a str, &'a str)],
    more: &[(&'a str, &'a str)],
) -> Vec<(&'a str, &'a str)> {
    let kept = usual
        .iter()
        .filter(|(name, _)| more.iter().all(|(other, _)| other != name));
    let pairs = kept.chain(more).filter(|(_, value)| !value.is_empty());
    pairs.copied().collect()
}

pub(crate) fn redeeming<'a>(client: &'a str, code: &'a str) -> [(&'a str, &'a str); 5] {
    [
        ("grant_type", "authorization_code"),
        ("client_id", client),
        ("code", code),
        ("redirect_uri", "https://app.example/cb"),
        ("code_verifier", VERIFIER),
    ]
}
