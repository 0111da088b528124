//! Slows guessing: after some wrong guesses each further one is answered later, twice as late every time, up to five
//! seconds.
//!
//! Nothing is ever refused. The right password is accepted at once even while others guess from the same address: otherwise
//! guessing would be a way to lock the owner out. Counts are kept in memory, per lane and over all addresses.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use contract::time::Instant;

use super::lane::Lane;
use crate::issue::after;

/// Wrong guesses that are answered at once, of one lane and of all addresses together.
const FREE: (u32, u32) = (5, 20);
/// The delay of the first answer that is not given at once.
const FIRST_WAIT: Duration = Duration::from_millis(250);
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Counts are reset after this long without a wrong guess.
const FORGOTTEN: Duration = Duration::from_hours(1);
/// At most so many lanes are counted one by one; others only count towards the total.
const MAX_LANES: usize = 10_000;

#[derive(Debug, Default)]
struct Wrong {
    count: u32,
    last: Instant,
}

impl Wrong {
    /// Counts a guess and returns the delay of its answer.
    fn add(&mut self, free: u32, now: Instant) -> Duration {
        if after(self.last, FORGOTTEN) <= now {
            self.count = 0;
        }
        self.count = self.count.saturating_add(1);
        self.last = now;
        let Some(over) = self.count.checked_sub(free + 1) else {
            return Duration::ZERO;
        };
        FIRST_WAIT
            .saturating_mul(1_u32.checked_shl(over).unwrap_or(u32::MAX))
            .min(LONGEST_WAIT)
    }
}

#[derive(Debug, Default)]
struct Counts {
    all: Wrong,
    by_lane: HashMap<Lane, Wrong>,
}

/// Slows guessing, for the life of a process.
#[derive(Debug, Default)]
pub struct Throttle(Mutex<Counts>);

impl Throttle {
    /// Notes a wrong guess and returns the delay of its answer.
    pub fn wrong(&self, lane: &Lane, now: Instant) -> Duration {
        let mut counts = self.counts();
        if counts.by_lane.len() >= MAX_LANES {
            counts
                .by_lane
                .retain(|_, wrong| after(wrong.last, FORGOTTEN) > now);
        }
        let remembered = counts.by_lane.len() < MAX_LANES || counts.by_lane.contains_key(lane);
        let own = if remembered {
            let own = counts.by_lane.entry(lane.clone()).or_default();
            own.add(FREE.0, now)
        } else {
            Duration::ZERO
        };
        match lane {
            // Guesses of unknown browsers do not slow a known one.
            Lane::Browser(_) => own,
            Lane::Address(_) => own.max(counts.all.add(FREE.1, now)),
        }
    }

    /// Notes a right guess of a known browser: its wrong ones were the owner's typing. Guesses from an unknown address stay
    /// counted.
    pub fn right(&self, lane: &Lane) {
        if let Lane::Browser(_) = lane {
            self.counts().by_lane.remove(lane);
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Instant {
        Instant(1_000_000_000_000_000 + seconds * 1_000_000)
    }

    fn address(n: u8) -> Lane {
        Lane::from_address([203, 0, 113, n].into())
    }

    #[test]
    fn after_five_wrong_guesses_each_is_answered_twice_as_late_up_to_five_seconds() {
        // TR-06
        let throttle = Throttle::default();
        let waits = |lane: &Lane, seconds| throttle.wrong(lane, at(seconds)).as_millis();
        let first: Vec<u128> = (0..12).map(|n| waits(&address(9), n)).collect();
        assert_eq!(
            first,
            [0, 0, 0, 0, 0, 250, 500, 1_000, 2_000, 4_000, 5_000, 5_000]
        );
        assert_eq!(waits(&address(10), 12), 0, "another address");
        assert_eq!(waits(&address(9), 12 + 3_600), 0, "all is forgotten");
        for _ in 0..100 {
            assert!(throttle.wrong(&address(9), at(4_000)) <= LONGEST_WAIT);
        }
    }

    #[test]
    fn many_addresses_are_slowed_together_and_a_known_browser_by_itself() {
        // TR-06
        let throttle = Throttle::default();
        for n in 0..60 {
            throttle.wrong(&address(n), at(0));
        }
        assert_eq!(throttle.wrong(&address(99), at(0)), LONGEST_WAIT);
        let known = Lane::Browser("a browser".to_owned());
        for _ in 0..5 {
            assert_eq!(throttle.wrong(&known, at(0)), Duration::ZERO);
        }
        assert_eq!(throttle.wrong(&known, at(0)), FIRST_WAIT);
        throttle.right(&known);
        assert_eq!(throttle.wrong(&known, at(0)), Duration::ZERO);
        // A right password from an address gives others who guess there no free guesses.
        throttle.right(&address(99));
        assert_eq!(throttle.wrong(&address(99), at(0)), LONGEST_WAIT);
    }
}
