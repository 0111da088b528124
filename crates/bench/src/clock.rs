//! The time of this machine.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use contract::time::{Clock, Instant};

/// For the tokens of the measured servers.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the clock everything else is given"
        )]
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let since = since.unwrap_or(Duration::ZERO);
        Instant(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}
