//! Warnings and errors that come again and again: each is written once, and then counted. While it lasts, one line in ten
//! seconds says how often it came.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

use super::OWN;

/// How long the same is not written again.
pub(super) const PERIOD: Duration = Duration::from_secs(10);
/// Of more different ones at a time, those of one place in the program count as the same.
const MOST: usize = 100;

#[derive(Default)]
pub(super) struct Repeats(Mutex<HashMap<u64, Said>>);

/// What was written, and how often it came since.
struct Said {
    at: Instant,
    left_out: u64,
    text: String,
}

/// What came again in the last [`PERIOD`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Again {
    pub(super) left_out: u64,
    pub(super) text: String,
}

impl Repeats {
    /// Whether this is written, and not counted.
    fn is_new(&self, place: &impl std::hash::Hash, text: &str, now: Instant) -> bool {
        let mut said = self.lock();
        let is_full = said.len() >= MOST;
        let numbered = |text: &str| {
            let mut hasher = DefaultHasher::new();
            (&place, text).hash(&mut hasher);
            hasher.finish()
        };
        let mut number = numbered(text);
        if is_full && !said.contains_key(&number) {
            number = numbered("");
        }
        if let Some(known) = said.get_mut(&number) {
            known.left_out += 1;
            return false;
        }
        let (left_out, text) = (0, text.to_owned());
        let first = Said {
            at: now,
            left_out,
            text,
        };
        said.insert(number, first);
        true
    }

    /// What is to be said of what came again, at the end of everything.
    pub(super) fn due(&self, now: Instant, is_last: bool) -> Vec<Again> {
        let mut due = Vec::new();
        self.lock().retain(|_, said| {
            if !is_last && now.saturating_duration_since(said.at) < PERIOD {
                return true;
            }
            said.at = now;
            let left_out = std::mem::take(&mut said.left_out);
            if left_out > 0 {
                let text = said.text.clone();
                due.push(Again { left_out, text });
            }
            left_out > 0
        });
        due
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Said>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets events into the log as [`Repeats`] says.
pub(super) struct Judged(pub(super) Arc<Repeats>);

impl<S: Subscriber> Layer<S> for Judged {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let place = event.metadata();
        if *place.level() > Level::WARN || place.target() == OWN {
            return true;
        }
        let mut words = Words::default();
        event.record(&mut words);
        self.0.is_new(&place.callsite(), &words.0, Instant::now())
    }
}

/// The words of an event. Numbers, and who asked, do not make another of it.
#[derive(Default)]
struct Words(String);

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = match field.name() {
            "request_id" => Ok(()),
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }

    fn record_u64(&mut self, _: &Field, _: u64) {}

    fn record_i64(&mut self, _: &Field, _: i64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_written_once_and_then_counted() {
        let (repeats, begun) = (Repeats::default(), Instant::now());
        let new =
            |text, after: u64| repeats.is_new(&"place", text, begun + Duration::from_secs(after));
        let due = |after: u64, is_last| {
            let due = repeats.due(begun + Duration::from_secs(after), is_last);
            let due = due.into_iter().map(|again| (again.text, again.left_out));
            due.collect::<Vec<_>>()
        };
        assert!(new("full", 0));
        assert!(!new("full", 1) && !new("full", 2));
        assert!(new("cut", 3));
        assert!(due(9, false).is_empty());
        assert_eq!(due(10, false), [("full".to_owned(), 2)]);
        // It goes on, so it is only counted.
        assert!(!new("full", 11));
        assert!(due(13, false).is_empty());
        assert!(new("cut", 14));
        assert_eq!(due(15, true), [("full".to_owned(), 1)]);
        assert!(due(16, true).is_empty());
        assert!(new("full", 17));
    }

    #[test]
    fn what_is_another_each_time_is_bounded_too() {
        let (repeats, now) = (Repeats::default(), Instant::now());
        let written = (0..10 * MOST)
            .filter(|number| repeats.is_new(&"place", &number.to_string(), now))
            .count();
        assert_eq!(written, MOST + 1);
        assert!(repeats.is_new(&"another", "0", now));
    }
}
