//! How many calls a grant has made lately: a bucket per grant that fills up over a minute.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use contract::time::Instant;

const MINUTE: i64 = 60_000_000;
/// From so many buckets on, full ones are forgotten: they say nothing.
const FORGET_FROM: usize = 1_024;

/// The buckets.
pub(super) struct Rates {
    per_minute: u32,
    buckets: Mutex<HashMap<String, Bucket>>,
}

#[derive(Clone, Copy)]
struct Bucket {
    /// When it would be full if nothing was taken any more.
    full_at: Instant,
}

impl Rates {
    /// So many calls a minute, all at once or spread.
    pub(super) fn new(per_minute: u32) -> Self {
        Self {
            per_minute: per_minute.max(1),
            buckets: Mutex::default(),
        }
    }

    /// Takes so many calls, or says after how many seconds there will be as many.
    pub(super) fn take(&self, grant: &str, calls: usize, now: Instant) -> Result<(), u64> {
        let calls = i64::try_from(calls).unwrap_or(MINUTE);
        let cost = (MINUTE / i64::from(self.per_minute)).saturating_mul(calls);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= FORGET_FROM {
            buckets.retain(|_, bucket| bucket.full_at > now);
        }
        let bucket = buckets
            .entry(grant.to_owned())
            .or_insert(Bucket { full_at: now });
        let full_at = bucket.full_at.max(now).0.saturating_add(cost);
        let over = full_at - now.0 - MINUTE;
        if over > 0 {
            return Err(u64::try_from(over).unwrap_or_default().div_ceil(1_000_000));
        }
        bucket.full_at = Instant(full_at);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_has_its_calls_for_a_minute_and_no_other_pays_for_them() {
        let rates = Rates::new(3);
        let now = Instant(5_000_000);
        for _ in 0..3 {
            assert_eq!(rates.take("a", 1, now), Ok(()));
        }
        assert_eq!(rates.take("a", 1, now), Err(20));
        assert_eq!(rates.take("b", 1, now), Ok(()));
        // Several at once count as several, and are taken all or not at all.
        assert_eq!(rates.take("b", 3, now), Err(20));
        assert_eq!(rates.take("b", 2, now), Ok(()));
        let later = Instant(now.0 + 20_000_000);
        assert_eq!(rates.take("a", 1, later), Ok(()));
        assert_eq!(rates.take("a", 1, later), Err(20));
    }
}
