//! Limits how much strangers can make the server store and fetch: registrations and authorization requests per time
//! window, and concurrent document fetches, per lane and for all addresses together.
//!
//! Only requests that stored something count. One address can use only a small part of the shared limit, and when
//! others have used it up, the first few requests of each address are still admitted. Browsers of the owner have
//! limits of their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use contract::time::Instant;
use grants::sign_in::Lane;

/// The window of the limits.
const WINDOW: Duration = Duration::from_mins(10);
/// Requests per window: of one address, and of all addresses together.
const LIMIT: (u32, u32) = (120, 2_000);
/// Requests still admitted when that is used up: of one address, and of all such addresses together.
const RESERVED: (u32, u32) = (5, 2_000);
/// Requests per window of one browser of the owner.
const OWNER_LIMIT: u32 = 1_200;
/// Concurrent fetches: of one lane, and of all addresses together.
const FETCH_LIMIT: (u32, u32) = (2, 20);

const _: () = {
    assert!(
        LIMIT.0 * 10 <= LIMIT.1,
        "an address may use a tenth at most"
    );
    assert!(
        RESERVED.0 * 10 <= RESERVED.1,
        "an address may use a tenth at most"
    );
    assert!(
        FETCH_LIMIT.0 * 10 <= FETCH_LIMIT.1,
        "an address may use a tenth at most"
    );
};

/// The counters of the current window.
#[derive(Debug, Clone, Default)]
pub(crate) struct RegistrationLimit(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    began: Instant,
    /// Used of the shared limit, and of the reserve beyond it.
    shared: (u32, u32),
    by_lane: HashMap<Lane, u32>,
    fetches: HashMap<Lane, u32>,
}

/// Which limit a request was counted against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quota {
    Shared,
    Reserved,
    Owner,
}

/// A request in progress. It counts while it is in progress, so that concurrency does not evade the limit; dropped
/// without [`Reservation::commit`], it no longer counts.
#[derive(Debug)]
pub(crate) struct Reservation {
    limit: RegistrationLimit,
    lane: Lane,
    began: Instant,
    quota: Quota,
    committed: bool,
}

/// A document being fetched; dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct FetchPermit(RegistrationLimit, Lane);

impl RegistrationLimit {
    /// Admits a request, or returns how long to wait.
    pub(crate) fn admit(&self, lane: &Lane, now: Instant) -> Result<Reservation, Duration> {
        let window = i64::try_from(WINDOW.as_micros()).unwrap_or(i64::MAX);
        let mut counts = self.counts();
        let past = now.0.saturating_sub(counts.began.0);
        // A clock that was set back starts a new window too.
        if !(0..window).contains(&past) {
            counts.began = now;
            counts.shared = (0, 0);
            counts.by_lane.clear();
        }
        let left = window.saturating_sub(now.0.saturating_sub(counts.began.0));
        let wait = Duration::from_micros(u64::try_from(left).unwrap_or_default());
        let quota = counts.quota(lane).ok_or(wait)?;
        *counts.by_lane.entry(lane.clone()).or_default() += 1;
        match quota {
            Quota::Shared => counts.shared.0 += 1,
            Quota::Reserved => counts.shared.1 += 1,
            Quota::Owner => {}
        }
        Ok(Reservation {
            limit: self.clone(),
            lane: lane.clone(),
            began: counts.began,
            quota,
            committed: false,
        })
    }

    /// Admits a fetch, unless too many are in progress.
    pub(crate) fn start_fetch(&self, lane: &Lane) -> Option<FetchPermit> {
        let mut counts = self.counts();
        let of_addresses = |lane: &Lane| matches!(lane, Lane::Address(_));
        let under_way = counts.fetches.iter();
        let all: u32 = under_way
            .filter(|(lane, _)| of_addresses(lane))
            .map(|(_, number)| number)
            .sum();
        let own = counts.fetches.get(lane).copied().unwrap_or_default();
        if own >= FETCH_LIMIT.0 || (of_addresses(lane) && all >= FETCH_LIMIT.1) {
            return None;
        }
        *counts.fetches.entry(lane.clone()).or_default() += 1;
        Some(FetchPermit(self.clone(), lane.clone()))
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn quota(&self, lane: &Lane) -> Option<Quota> {
        let own = self.by_lane.get(lane).copied().unwrap_or_default();
        match lane {
            Lane::Browser(_) => (own < OWNER_LIMIT).then_some(Quota::Owner),
            Lane::Address(_) if own >= LIMIT.0 => None,
            Lane::Address(_) if self.shared.0 < LIMIT.1 => Some(Quota::Shared),
            Lane::Address(_) => {
                (own < RESERVED.0 && self.shared.1 < RESERVED.1).then_some(Quota::Reserved)
            }
        }
    }
}

impl Reservation {
    /// The request stored something, so it counts.
    pub(crate) fn commit(&mut self) {
        self.committed = true;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut counts = self.limit.counts();
        if self.committed || counts.began != self.began {
            return;
        }
        decrement(&mut counts.by_lane, &self.lane);
        match self.quota {
            Quota::Shared => counts.shared.0 = counts.shared.0.saturating_sub(1),
            Quota::Reserved => counts.shared.1 = counts.shared.1.saturating_sub(1),
            Quota::Owner => {}
        }
    }
}

impl Drop for FetchPermit {
    fn drop(&mut self) {
        decrement(&mut self.0.counts().fetches, &self.1);
    }
}

/// Decrements a counter and removes it at zero.
fn decrement(counted: &mut HashMap<Lane, u32>, lane: &Lane) {
    if let Some(number) = counted.get_mut(lane) {
        *number = number.saturating_sub(1);
        if *number == 0 {
            counted.remove(lane);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> Instant {
        Instant(1_000_000_000_000_000 + minutes * 60_000_000)
    }

    fn address(n: u32) -> Lane {
        Lane::from_address(std::net::Ipv4Addr::from_bits(0xcb00_0000 + n).into())
    }

    fn accepted(limit: &RegistrationLimit, lane: &Lane, times: u32) -> u32 {
        let admitted = (0..times).filter_map(|_| limit.admit(lane, at(5)).ok());
        let admitted = admitted.map(|mut reservation| reservation.commit()).count();
        u32::try_from(admitted).unwrap()
    }

    #[test]
    fn one_address_and_all_together_are_bounded_for_a_span() {
        let limit = RegistrationLimit::default();
        limit.admit(&address(1), at(0)).unwrap().commit();
        assert_eq!(accepted(&limit, &address(1), 200), 119);
        assert_eq!(
            limit.admit(&address(1), at(6)).unwrap_err(),
            Duration::from_mins(4),
            "the wait ends with the window"
        );
        let all: u32 = (2..3_000).map(|n| accepted(&limit, &address(n), 100)).sum();
        assert_eq!(
            all + 120,
            LIMIT.1 + RESERVED.1,
            "bounded, however many addresses"
        );
        assert!(limit.admit(&address(1), at(10)).is_ok());
    }

    #[test]
    fn nineteen_addresses_do_not_block_the_others_nor_the_owner() {
        // TR-05
        let limit = RegistrationLimit::default();
        for n in 0..19 {
            accepted(&limit, &address(n), 1_000);
        }
        assert_eq!(
            limit.counts().shared.0,
            LIMIT.1,
            "what is there for all is used up"
        );
        for n in 100..200 {
            assert_eq!(accepted(&limit, &address(n), 10), RESERVED.0);
        }
        let own = Lane::Browser("a session".to_owned());
        assert_eq!(accepted(&limit, &own, 500), 500);
    }

    #[test]
    fn what_is_not_accepted_does_not_count() {
        // TR-05
        let limit = RegistrationLimit::default();
        for _ in 0..5_000 {
            drop(limit.admit(&address(1), at(5)).unwrap());
        }
        assert!(limit.counts().by_lane.is_empty());
        // Under way it does: many at once are no way around the limit.
        let many: Vec<_> = (0..200).map(|_| limit.admit(&address(1), at(5))).collect();
        assert_eq!(
            many.iter()
                .filter(|reservation| reservation.is_ok())
                .count(),
            120
        );
    }

    #[test]
    fn few_documents_are_fetched_at_once() {
        // TR-05
        let limit = RegistrationLimit::default();
        let many = |n| {
            (0..5)
                .filter_map(|_| limit.start_fetch(&address(n)))
                .collect::<Vec<_>>()
        };
        let mut all: Vec<_> = (0..20).flat_map(many).collect();
        assert_eq!(all.len(), 20);
        let own = Lane::Browser("a session".to_owned());
        assert!(limit.start_fetch(&own).is_some());
        assert!(limit.start_fetch(&address(99)).is_none());
        all.pop();
        assert!(limit.start_fetch(&address(99)).is_some());
        drop(all);
        assert!(limit.counts().fetches.is_empty());
    }
}
