//! What bounds how much strangers can make the server remember: registrations and requests per time, for each address
//! and for all.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use contract::time::Instant;

/// The time over which arrivals are counted.
const SPAN: Duration = Duration::from_mins(10);
/// As many may come within it, from one address and from all together.
const MOST: (u32, u32) = (120, 2_000);

/// Arrivals within the present span.
#[derive(Debug, Default)]
pub(crate) struct Arrivals(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    began: Instant,
    all: u32,
    by_address: HashMap<IpAddr, u32>,
}

impl Arrivals {
    /// Counts an arrival, or says how long to wait.
    pub(crate) fn admit(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        let span = i64::try_from(SPAN.as_micros()).unwrap_or(i64::MAX);
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let past = now.0.saturating_sub(counts.began.0);
        // A clock that was set back begins a new span too.
        if !(0..span).contains(&past) {
            *counts = Counts {
                began: now,
                ..Counts::default()
            };
        }
        let left = span.saturating_sub(now.0.saturating_sub(counts.began.0));
        let wait = Duration::from_micros(u64::try_from(left).unwrap_or_default());
        if counts.all >= MOST.1 {
            return Err(wait);
        }
        // The map cannot outgrow the bound over all.
        let own = counts.by_address.entry(address).or_default();
        if *own >= MOST.0 {
            return Err(wait);
        }
        *own += 1;
        counts.all += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_and_all_together_are_bounded_for_a_span() {
        let arrivals = Arrivals::default();
        let at = |minutes: i64| Instant(1_000_000_000_000_000 + minutes * 60_000_000);
        let from = |n: u8| IpAddr::from([203, 0, 113, n]);
        for _ in 0..120 {
            arrivals.admit(from(1), at(0)).unwrap();
        }
        assert_eq!(
            arrivals.admit(from(1), at(4)),
            Err(Duration::from_mins(6)),
            "the wait ends with the span"
        );
        let others = (2..=u8::MAX).flat_map(|n| [n; 100]);
        let admitted = others.filter(|n| arrivals.admit(from(*n), at(5)).is_ok());
        assert_eq!(admitted.count(), 2_000 - 120);
        assert_eq!(arrivals.admit(from(1), at(10)), Ok(()));
    }
}
