//! Slows guessing: after some wrong guesses each further one is answered later, twice as late every time, up to five
//! seconds.
//!
//! Nothing is ever refused. The right password is accepted at once even while others guess from the same address: otherwise
//! guessing would be a way to lock the owner out. Counts stand in the registry, per lane and over all addresses, so that they hold
//! on every node and after a restart.

use std::time::Duration;

use contract::time::Instant;
use store::registry::{Change, EntryKind, Expect};
use store::{Store, StoreError};

use super::lane::Lane;
use crate::issue::after;

/// Wrong guesses that are answered at once, of one lane and of all addresses together.
const FREE: (u32, u32) = (5, 20);
/// The delay of the first answer that is not given at once.
const FIRST_WAIT: Duration = Duration::from_millis(250);
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Counts are reset after this long without a wrong guess.
const FORGOTTEN: Duration = Duration::from_hours(1);
/// After so many guesses of all addresses, further addresses only count towards the total: they are not kept one by one.
const MAX_ADDRESSES: u32 = 10_000;
/// Under which key the guesses of all addresses are counted.
const ALL: &str = "all";
/// How often a count is tried that others count at the same time.
const TRIES: usize = 10;

/// Slows guessing at what a store's owner signs in with.
#[derive(Clone, Copy)]
pub struct Throttle<'a>(&'a dyn Store);

/// A count as it is in the registry.
struct Wrong {
    key: String,
    count: u32,
    expect: Expect,
}

impl Wrong {
    /// The delay of the answer to this guess.
    fn wait(&self, free: u32) -> Duration {
        let Some(over) = self.count.checked_sub(free + 1) else {
            return Duration::ZERO;
        };
        FIRST_WAIT
            .saturating_mul(1_u32.checked_shl(over).unwrap_or(u32::MAX))
            .min(LONGEST_WAIT)
    }
}

impl<'a> Throttle<'a> {
    pub fn new(store: &'a dyn Store) -> Self {
        Self(store)
    }

    /// Notes a wrong guess and returns the delay of its answer. One that cannot be counted waits longest.
    pub fn wrong(&self, lane: &Lane, now: Instant) -> Duration {
        for _ in 0..TRIES {
            match self.try_count(lane, now) {
                Ok(Some(wait)) => return wait,
                Ok(None) => {}
                Err(_) => break,
            }
        }
        LONGEST_WAIT
    }

    /// Notes a right guess of a known browser: its wrong ones were the owner's typing. Guesses from an unknown address stay
    /// counted.
    pub fn right(&self, lane: &Lane, now: Instant) {
        if let Lane::Browser(_) = lane {
            let forget = Change::remove(EntryKind::WrongGuesses, lane.key());
            // What is not forgotten now is in an hour.
            let _ = self.0.apply(&[forget], now);
        }
    }

    /// Counts a guess, unless somebody else counted one at the same time.
    fn try_count(&self, lane: &Lane, now: Instant) -> Result<Option<Duration>, StoreError> {
        let own = self.next(lane.key(), now)?;
        let mut counted = Vec::new();
        let wait = match lane {
            // Guesses of unknown browsers do not slow a known one.
            Lane::Browser(_) => {
                let wait = own.wait(FREE.0);
                counted.push(own);
                wait
            }
            Lane::Address(_) => {
                let all = self.next(ALL.to_owned(), now)?;
                let mut wait = all.wait(FREE.1);
                if all.count < MAX_ADDRESSES || own.count > 1 {
                    wait = wait.max(own.wait(FREE.0));
                    counted.push(own);
                }
                counted.push(all);
                wait
            }
        };
        let put = |wrong: &Wrong| {
            Change::put(EntryKind::WrongGuesses, &wrong.key, wrong.count.to_string())
                .until(after(now, FORGOTTEN))
                .expecting(wrong.expect)
        };
        let changes: Vec<Change<'_>> = counted.iter().map(put).collect();
        Ok(self.0.apply(&changes, now)?.then_some(wait))
    }

    /// The count with one more guess in it.
    fn next(&self, key: String, now: Instant) -> Result<Wrong, StoreError> {
        let found = self.0.entry(EntryKind::WrongGuesses, &key, now)?;
        let before = found.as_ref().and_then(|entry| entry.document.parse().ok());
        Ok(Wrong {
            key,
            count: before.unwrap_or(0_u32).saturating_add(1),
            expect: found.map_or(Expect::Absent, |entry| Expect::Revision(entry.revision)),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use store::{EmbeddedStore, OpenOptions};

    use super::*;

    /// Runs a rule on a store of its own.
    fn on_a_store(rule: impl Fn(Throttle<'_>)) {
        let folder = tempfile::tempdir().unwrap();
        let options = OpenOptions::new("a test", Arc::new(at(0)));
        let store = EmbeddedStore::open(folder.path(), options).unwrap();
        rule(Throttle::new(&store));
    }

    fn at(seconds: i64) -> Instant {
        Instant(1_000_000_000_000_000 + seconds * 1_000_000)
    }

    fn address(n: u8) -> Lane {
        Lane::from_address([203, 0, 113, n].into())
    }

    #[test]
    fn after_five_wrong_guesses_each_is_answered_twice_as_late_up_to_five_seconds() {
        // TR-06
        on_a_store(|throttle| {
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
        });
    }

    #[test]
    fn many_addresses_are_slowed_together_and_a_known_browser_by_itself() {
        // TR-06
        on_a_store(|throttle| {
            for n in 0..60 {
                throttle.wrong(&address(n), at(0));
            }
            assert_eq!(throttle.wrong(&address(99), at(0)), LONGEST_WAIT);
            let known = Lane::Browser("a browser".to_owned());
            for _ in 0..5 {
                assert_eq!(throttle.wrong(&known, at(0)), Duration::ZERO);
            }
            assert_eq!(throttle.wrong(&known, at(0)), FIRST_WAIT);
            throttle.right(&known, at(0));
            assert_eq!(throttle.wrong(&known, at(0)), Duration::ZERO);
            // A right password from an address gives others who guess there no free guesses.
            throttle.right(&address(99), at(0));
            assert_eq!(throttle.wrong(&address(99), at(0)), LONGEST_WAIT);
        });
    }
}
