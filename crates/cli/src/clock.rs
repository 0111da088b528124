//! The system's time. Everything else takes a [`Clock`].

use std::time::{SystemTime, UNIX_EPOCH};

use contract::time::{Clock, Instant};

pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the clock everything else is given"
        )]
        let now = SystemTime::now();
        // A machine set before 1970 lives at its beginning.
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        Instant(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}
