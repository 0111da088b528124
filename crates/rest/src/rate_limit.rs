//! Rate limits: token buckets that refill evenly over a time window.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use contract::time::Instant;

/// From so many buckets on, full ones are removed: they are as good as new.
const PRUNE_FROM: usize = 1_024;

/// How many units a bucket holds, and how long an empty one takes to refill.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    units: u32,
    window: Duration,
}

/// One bucket. The default one is full.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bucket {
    /// When it will be full if nothing more is taken.
    full_at: Instant,
}

#[derive(Debug)]
pub(crate) struct KeyedBuckets<K>(HashMap<K, Bucket>);

impl Rate {
    pub(crate) const fn new(units: u32, window: Duration) -> Self {
        Self { units, window }
    }

    pub(crate) const fn units(self) -> u32 {
        self.units
    }

    fn window_micros(self) -> i64 {
        i64::try_from(self.window.as_micros()).unwrap_or(i64::MAX)
    }

    /// The time in which one unit refills, in microseconds.
    fn unit_micros(self) -> i64 {
        (self.window_micros() / i64::from(self.units.max(1))).max(1)
    }
}

impl Bucket {
    /// A bucket that somebody else kept.
    pub(crate) fn full_from(full_at: Instant) -> Self {
        Self { full_at }
    }

    /// From when on it is as good as new.
    pub(crate) fn is_full_from(self) -> Instant {
        self.full_at
    }

    /// When it will be full. More than a window ahead can only come from a clock that was set back.
    fn full_at(self, rate: Rate, now: Instant) -> i64 {
        let latest = now.0.saturating_add(rate.window_micros());
        self.full_at.0.clamp(now.0, latest)
    }

    pub(crate) fn used(self, rate: Rate, now: Instant) -> u32 {
        let micros = self.full_at(rate, now) - now.0;
        let units = micros.saturating_add(rate.unit_micros() - 1) / rate.unit_micros();
        u32::try_from(units).unwrap_or(u32::MAX)
    }

    /// Takes so many units, or returns after how long that will be possible.
    pub(crate) fn take(&mut self, rate: Rate, units: usize, now: Instant) -> Result<(), Duration> {
        let units = i64::try_from(units).unwrap_or(i64::MAX);
        let cost = rate.unit_micros().saturating_mul(units);
        self.full_at = Instant(self.full_at(rate, now));
        let full_at = self.full_at.0.saturating_add(cost);
        let over = full_at.saturating_sub(now.0.saturating_add(rate.window_micros()));
        if let Ok(over @ 1..) = u64::try_from(over) {
            return Err(Duration::from_micros(over));
        }
        self.full_at = Instant(full_at);
        Ok(())
    }

    /// Takes units that were given elsewhere, whether there are so many or not.
    pub(crate) fn take_given(&mut self, rate: Rate, units: u64, now: Instant) {
        let units = i64::try_from(units).unwrap_or(i64::MAX);
        let cost = rate.unit_micros().saturating_mul(units);
        let latest = now.0.saturating_add(rate.window_micros());
        let full_at = self.full_at(rate, now).saturating_add(cost);
        self.full_at = Instant(full_at.min(latest));
    }
}

impl<K> Default for KeyedBuckets<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Hash + Eq + Clone> KeyedBuckets<K> {
    pub(crate) fn bucket(&mut self, key: &K, now: Instant) -> &mut Bucket {
        if self.0.len() >= PRUNE_FROM && !self.0.contains_key(key) {
            self.0.retain(|_, bucket| bucket.full_at > now);
        }
        self.0.entry(key.clone()).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::new(3, Duration::from_mins(1));

    #[test]
    fn a_key_has_its_units_for_a_window_and_no_other_pays_for_them() {
        let mut buckets = KeyedBuckets::default();
        let now = Instant(5_000_000);
        let wait = Err(Duration::from_secs(20));
        for _ in 0..3 {
            assert_eq!(buckets.bucket(&"a", now).take(RATE, 1, now), Ok(()));
        }
        assert_eq!(buckets.bucket(&"a", now).take(RATE, 1, now), wait);
        let other = buckets.bucket(&"b", now);
        assert_eq!(other.take(RATE, 1, now), Ok(()));
        // Several at once are taken all or not at all.
        assert_eq!(other.take(RATE, 3, now), wait);
        assert_eq!(other.take(RATE, 2, now), Ok(()));
        assert_eq!(other.used(RATE, now), 3);
        let later = Instant(now.0 + 20_000_000);
        let refilled = buckets.bucket(&"a", later);
        assert_eq!(refilled.take(RATE, 1, later), Ok(()));
        assert_eq!(refilled.take(RATE, 1, later), wait);
    }

    #[test]
    fn what_was_given_elsewhere_is_taken_from_what_is_left_and_no_more_than_a_window() {
        let (mut bucket, now) = (Bucket::default(), Instant(5_000_000));
        bucket.take_given(RATE, 2, now);
        assert_eq!(bucket.take(RATE, 1, now), Ok(()));
        assert_eq!(bucket.take(RATE, 1, now), Err(Duration::from_secs(20)));
        bucket.take_given(RATE, u64::MAX, now);
        let later = Instant(now.0 + 60_000_000);
        assert_eq!(bucket.take(RATE, 3, later), Ok(()));
    }

    #[test]
    fn a_clock_that_was_set_back_blocks_for_one_window_at_most() {
        let mut bucket = Bucket::default();
        let now = Instant(1_000_000_000_000);
        assert_eq!(bucket.take(RATE, 3, now), Ok(()));
        let before = Instant(5_000_000);
        assert!(bucket.take(RATE, 1, before).is_err());
        let later = Instant(before.0 + 60_000_000);
        assert_eq!(bucket.take(RATE, 3, later), Ok(()));
    }
}
