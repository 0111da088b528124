//! How many calls each grant may make in a minute: counted here, and each second together with the calls at other nodes.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as Moment};

use contract::time::Instant;
use store::Store;

use crate::rate_limit::{KeyedBuckets, Rate};

const BETWEEN_EXCHANGES: Duration = Duration::from_secs(1);

pub(super) struct CallLimit {
    rate: Rate,
    counted: Mutex<Counted>,
}

#[derive(Default)]
struct Counted {
    /// By package, or grant.
    buckets: KeyedBuckets<String>,
    /// Calls that other nodes do not know of yet.
    made: HashMap<String, u64>,
    exchanged: Option<Moment>,
}

impl CallLimit {
    pub(super) fn new(calls_per_minute: u32) -> Self {
        Self {
            rate: Rate::new(calls_per_minute.max(1), Duration::from_mins(1)),
            counted: Mutex::default(),
        }
    }

    /// Counts calls, or returns after how long they are allowed.
    pub(super) fn take(&self, caller: &str, calls: usize, now: Instant) -> Result<(), Duration> {
        let (mut counted, caller) = (self.counted(), caller.to_owned());
        let bucket = counted.buckets.bucket(&caller, now);
        bucket.take(self.rate, calls, now)?;
        *counted.made.entry(caller).or_default() += calls as u64;
        Ok(())
    }

    /// Whether nobody has told other nodes for a second; then whoever asks has to.
    pub(super) fn is_exchange_due(&self) -> bool {
        let mut counted = self.counted();
        let is_due = counted
            .exchanged
            .is_none_or(|at| at.elapsed() >= BETWEEN_EXCHANGES);
        if is_due {
            counted.exchanged = Some(Moment::now());
        }
        is_due
    }

    /// Tells other nodes of the calls here, and takes theirs from what is left.
    pub(super) fn exchange(&self, store: &dyn Store, now: Instant) {
        let made: Vec<(String, u64)> = std::mem::take(&mut self.counted().made)
            .into_iter()
            .collect();
        let told = match store.exchange_calls(&made) {
            Ok(told) => told,
            Err(error) => {
                // Without the others each node counts its own.
                tracing::debug!(cause = %error, "calls were not exchanged with other nodes");
                return;
            }
        };
        let mut counted = self.counted();
        for (caller, calls) in told {
            let bucket = counted.buckets.bucket(&caller, now);
            bucket.take_given(self.rate, calls, now);
        }
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
