//! What slows guessing: after some failures each further attempt has to wait, twice as long every time.
//!
//! It is kept in memory, per address and over all addresses. The wait over all is short, so that strangers can slow the
//! owner's sign-in but not close it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use contract::time::Instant;
use thiserror::Error;

use crate::issue::after;

/// Failures that cost nothing, for one address and for all together.
const FREE: (u32, u32) = (5, 20);
/// The longest wait, for one address and for all together.
const LONGEST: (Duration, Duration) = (Duration::from_mins(15), Duration::from_secs(30));
/// After this long without a failure all is forgotten.
const FORGOTTEN: Duration = Duration::from_hours(1);
/// More addresses than this are not remembered singly; the wait over all holds for them.
const MAX_ADDRESSES: usize = 10_000;

/// Too many wrong attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("too many attempts; try again in {} seconds", retry_after.as_secs().max(1))]
pub struct Throttled {
    /// How long to wait.
    pub retry_after: Duration,
}

#[derive(Debug, Default)]
struct Failures {
    count: u32,
    last: Instant,
}

impl Failures {
    /// How long is still to wait, if at all.
    fn wait(&self, (free, longest): (u32, Duration), now: Instant) -> Option<Duration> {
        let over = self.count.checked_sub(free)?;
        let wait = Duration::from_secs(1_u64.checked_shl(over).unwrap_or(u64::MAX)).min(longest);
        let until = after(self.last, wait);
        let left = u64::try_from(until.0.saturating_sub(now.0)).ok()?;
        (left > 0).then(|| Duration::from_micros(left))
    }

    fn add(&mut self, now: Instant) {
        if after(self.last, FORGOTTEN) <= now {
            self.count = 0;
        }
        self.count = self.count.saturating_add(1);
        self.last = now;
    }
}

#[derive(Debug, Default)]
struct Counts {
    all: Failures,
    by_address: HashMap<IpAddr, Failures>,
}

/// What slows guessing, for the life of a process.
#[derive(Debug, Default)]
pub struct Throttle(Mutex<Counts>);

/// An attempt under way. It counts as failed until it says otherwise, so attempts side by side gain nothing.
#[derive(Debug)]
pub struct Attempt<'a> {
    throttle: &'a Throttle,
    address: IpAddr,
}

impl Throttle {
    /// Lets an attempt through, or says how long to wait.
    pub fn admit(&self, address: IpAddr, now: Instant) -> Result<Attempt<'_>, Throttled> {
        let address = neighbourhood(address);
        let mut counts = self.counts();
        let waits = [
            counts.all.wait((FREE.1, LONGEST.1), now),
            counts
                .by_address
                .get(&address)
                .and_then(|failures| failures.wait((FREE.0, LONGEST.0), now)),
        ];
        if let Some(retry_after) = waits.into_iter().flatten().max() {
            return Err(Throttled { retry_after });
        }
        counts.all.add(now);
        if counts.by_address.len() >= MAX_ADDRESSES {
            counts
                .by_address
                .retain(|_, failures| after(failures.last, FORGOTTEN) > now);
        }
        if counts.by_address.len() < MAX_ADDRESSES || counts.by_address.contains_key(&address) {
            counts.by_address.entry(address).or_default().add(now);
        }
        Ok(Attempt {
            throttle: self,
            address,
        })
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attempt<'_> {
    /// It was right: this address starts anew, and the attempt is not counted over all.
    pub fn succeeded(self) {
        let mut counts = self.throttle.counts();
        counts.by_address.remove(&self.address);
        counts.all.count = counts.all.count.saturating_sub(1);
    }
}

/// One IPv6 customer holds a whole /64, so that counts as one address; an IPv4 address in IPv6 is that IPv4 address.
fn neighbourhood(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Instant {
        Instant(1_000_000_000_000_000 + seconds * 1_000_000)
    }

    #[test]
    fn after_five_failures_each_attempt_waits_twice_as_long() {
        let throttle = Throttle::default();
        let address: IpAddr = "203.0.113.9".parse().unwrap();
        for _ in 0..5 {
            throttle.admit(address, at(0)).unwrap();
        }
        let mut now = 0;
        for wait in [1, 2, 4, 8, 16] {
            let error = throttle.admit(address, at(now)).unwrap_err();
            assert_eq!(error.retry_after, Duration::from_secs(wait));
            now += i64::try_from(wait).unwrap();
            throttle.admit(address, at(now)).unwrap();
        }
        assert!(
            throttle
                .admit("203.0.113.10".parse().unwrap(), at(now))
                .is_ok()
        );
        assert!(
            throttle.admit(address, at(now + 3_600)).is_ok(),
            "all is forgotten"
        );
    }

    #[test]
    fn the_wait_is_bounded_and_many_addresses_are_slowed_together() {
        let throttle = Throttle::default();
        let mut now = 0;
        for n in 0..60_u128 {
            let address = IpAddr::V6((n << 64).into());
            while let Err(error) = throttle.admit(address, at(now)) {
                assert!(error.retry_after <= Duration::from_secs(30));
                now += 1;
            }
        }
        assert!(now > 0, "somebody had to wait");
        let same = |text: &str| neighbourhood(text.parse().unwrap());
        assert_eq!(same("2001:db8::1"), same("2001:db8::ffff:1"));
        assert_eq!(same("::ffff:203.0.113.9"), same("203.0.113.9"));
    }

    #[test]
    fn a_success_clears_the_address() {
        let throttle = Throttle::default();
        let address: IpAddr = "203.0.113.9".parse().unwrap();
        for _ in 0..4 {
            throttle.admit(address, at(0)).unwrap();
        }
        throttle.admit(address, at(0)).unwrap().succeeded();
        for _ in 0..5 {
            throttle.admit(address, at(0)).unwrap();
        }
        assert!(throttle.admit(address, at(0)).is_err());
    }
}
