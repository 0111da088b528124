//! What the log learns of requests: everything but whose data they were about.

use std::fmt::Write as _;
use std::sync::{Mutex, Once};

use axum::body::Body;
use axum::http::{Method, Request};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::fixture::World;

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Listening;
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {field}={value:?}");
    }
}

impl Subscriber for Listening {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = Line("span".to_owned());
        span.record(&mut line);
        LINES.lock().unwrap().push(line.0);
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().target().to_owned());
        event.record(&mut line);
        LINES.lock().unwrap().push(line.0);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Hears everything that any test of this file's program logs.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Listening).unwrap());
}

#[tokio::test]
async fn requests_are_logged_by_operation_and_never_by_content() {
    let world = World::new().await;
    let (client, _) = world.grant(&["work"], &["messages"], &[]);
    let ask = |target: &str, id: &str| {
        Request::get(target)
            .header("authorization", format!("Bearer {client}"))
            .header("request-id", id)
            .body(Body::empty())
            .unwrap()
    };
    for (at, target) in [
        "/v1/search?q=overdraft",
        "/v1/streams/messages/records/m1?fields=subject",
        "/v1/streams/messages/records?filter[secret]=hunter2",
        "/v1/streams/secretstream/records",
        "/v1/nowhere/overdraft",
        "/v1/search?q=overdraft&cursor=nonsense",
    ]
    .into_iter()
    .enumerate()
    {
        world.send(ask(target, &format!("logged-{at}"))).await;
    }
    world
        .write(
            Method::POST,
            "/v1/ingest/messages?connection_id=work",
            "{\"key\":\"hunter2\"",
        )
        .await;
    let lines = LINES.lock().unwrap().clone();
    let mine: Vec<&String> = lines
        .iter()
        .filter(|line| line.contains("logged-"))
        .collect();
    assert_eq!(mine.len(), 6);
    assert!(
        mine.iter()
            .any(|line| line.contains("operation=\"search\"") && line.contains("status=200"))
    );
    assert!(mine.iter().any(|line| line.contains("token=\"client\"")));
    for secret in [
        "pdpp_at_",
        "pdpp_owner_",
        "hunter2",
        "verdraft",
        "secretstream",
        "m1",
    ] {
        let told: Vec<&String> = lines.iter().filter(|line| line.contains(secret)).collect();
        assert!(told.is_empty(), "{secret}: {told:?}");
    }
}
