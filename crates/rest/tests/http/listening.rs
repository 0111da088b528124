//! Hears what is logged, so that a test can say what must not be.

use std::fmt::Write as _;
use std::sync::{Mutex, Once};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Listening;
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {field}={value:?}");
    }
}

impl Subscriber for Listening {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        rest::is_logged(metadata)
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

/// Hears everything that any test of this program logs.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Listening).unwrap());
}

pub(crate) fn lines() -> Vec<String> {
    LINES.lock().unwrap().clone()
}

/// Checks that there is a log, and that none of these secrets stands in it.
pub(crate) fn kept_secret<'a>(secrets: impl IntoIterator<Item = &'a str>) {
    let lines = lines();
    assert!(lines.iter().any(|line| line.contains("operation=")));
    for secret in secrets {
        assert!(secret.len() > 8, "{secret} is too short to look for");
        let told: Vec<&String> = lines.iter().filter(|line| line.contains(secret)).collect();
        assert!(told.is_empty(), "{secret}: {told:?}");
    }
}
