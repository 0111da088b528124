//! The life of an access token: a server whose clock can be set forward, and the program that reads from it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use contract::seal::SealingKey;
use contract::time::{Clock, Instant};
use grants::DisclosureLog;
use rest::Service;
use serde_json::json;
use store::{EmbeddedStore, OpenOptions, Store};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::harness::Home;
use crate::harness::agent::Agent;
use crate::served::{Connecting, Kept, reading};
use crate::visitor::Visitor;

/// The machine's time and some more.
#[derive(Default)]
struct Ahead(AtomicI64);

impl Ahead {
    fn pass(&self, time: Duration) {
        let micros = i64::try_from(time.as_micros()).unwrap();
        self.0.fetch_add(micros, Ordering::SeqCst);
    }
}

impl Clock for Ahead {
    fn now(&self) -> Instant {
        #[expect(clippy::disallowed_methods, reason = "this is the clock of the test")]
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let micros = i64::try_from(since.as_micros()).unwrap();
        Instant(micros + self.0.load(Ordering::SeqCst))
    }
}

/// A server in this process, over the data of a home.
struct InProcess {
    runtime: Option<Runtime>,
    stop: Option<oneshot::Sender<()>>,
    clock: Arc<Ahead>,
    url: String,
    link: String,
}

impl InProcess {
    fn start(home: &Home) -> Self {
        let clock = Arc::new(Ahead::default());
        let options = OpenOptions {
            holder: "a test of the clock".to_owned(),
            clock: clock.clone(),
        };
        let store = EmbeddedStore::open(&home.data_dir(), options).unwrap();
        let key = SealingKey::from_bytes(store.sealing_key().unwrap());
        let store: Arc<dyn Store> = Arc::new(store);
        let code = grants::sign_in::new_code(&*store, clock.now()).unwrap();
        let runtime = Runtime::new().unwrap();
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let log = Arc::new(DisclosureLog::start(Arc::clone(&store)).unwrap());
        let service = Service::new(store, key, clock.clone(), &url, log);
        let (stop, stopped) = oneshot::channel();
        let stopped = async {
            // A test that is gone wants no server either.
            let _ = stopped.await;
        };
        runtime.spawn(rest::serve(listener, rest::router(service), stopped));
        Self {
            runtime: Some(runtime),
            stop: Some(stop),
            clock,
            link: format!("{url}/sign-in?code={}", code.expose()),
            url,
        }
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(5));
        }
    }
}

// Decision 29
#[test]
fn a_token_that_expired_is_renewed_by_itself_until_the_grant_expires() {
    let home = Home::with_mail();
    let line = r#"{"key":"m1","data":{"id":"m1","subject":"Harbour","body":"About the ferry."}}"#;
    home.import_messages(line).succeeds();
    let server = InProcess::start(&home);
    let mut owner = Visitor::signed_in(&server.url, &server.link);
    let connecting = Connecting::start(&home, &server.url);
    let picks = [("stream", "mail-work/messages"), ("days", "7")];
    owner.allow(&connecting.link, &picks);
    connecting.done();
    let words = reading(&home, &server.url);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut agent = Agent::start(&mut home.command(&words));
    agent.initialize();
    let mut tokens = Vec::new();
    for _ in 0..3 {
        let found = agent.call("search", json!({"query": "ferry"}));
        let id = &found["structuredContent"]["results"][0]["id"];
        assert_eq!(id, "mail-work/messages:m1", "{found}");
        let kept = Kept::read(&home, &server.url);
        tokens.push(kept.token("access_token"));
        server.clock.pass(Duration::from_mins(61));
    }
    tokens.dedup();
    assert_eq!(tokens.len(), 3, "each life had a token of its own");
    server.clock.pass(Duration::from_hours(24 * 7));
    let refused = agent.call("search", json!({"query": "ferry"}));
    assert_eq!(refused["isError"], true, "{refused}");
    let error = &refused["structuredContent"]["error"];
    assert_eq!(error["code"], "grant_expired", "{refused}");
    assert_eq!(agent.leave(), Some(0));
}
