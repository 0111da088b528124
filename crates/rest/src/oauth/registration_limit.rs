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

use crate::rate_limit::{Bucket, KeyedBuckets, Rate};

const WINDOW: Duration = Duration::from_mins(10);
const PER_ADDRESS: Rate = Rate::new(120, WINDOW);
/// Requests of all addresses together.
const SHARED: Rate = Rate::new(2_000, WINDOW);
/// Requests of one address that are still admitted when the shared limit is used up.
const RESERVED_PER_ADDRESS: u32 = 5;
/// Requests of all such addresses together.
const RESERVED: Rate = Rate::new(2_000, WINDOW);
const PER_OWNER_BROWSER: Rate = Rate::new(1_200, WINDOW);
const FETCHES_PER_LANE: u32 = 2;
/// Concurrent fetches of all addresses together.
const FETCHES: u32 = 20;

const _: () = {
    assert!(PER_ADDRESS.units() * 10 <= SHARED.units());
    assert!(RESERVED_PER_ADDRESS * 10 <= RESERVED.units());
    assert!(FETCHES_PER_LANE * 10 <= FETCHES);
};

#[derive(Debug, Clone, Default)]
pub(crate) struct RegistrationLimit(Arc<Mutex<Usage>>);

#[derive(Debug, Default)]
struct Usage {
    by_lane: KeyedBuckets<Lane>,
    shared: Bucket,
    reserved: Bucket,
    fetches: HashMap<Lane, u32>,
}

/// A request in progress. It counts while it is in progress, so that concurrency does not evade the limit; dropped
/// without [`Reservation::commit`], it no longer counts.
#[derive(Debug)]
pub(crate) struct Reservation {
    limit: RegistrationLimit,
    lane: Lane,
    at: Instant,
    quota: Quota,
    committed: bool,
}

/// The limit a request was counted against besides that of its lane.
#[derive(Debug, Clone, Copy)]
enum Quota {
    Shared,
    Reserved,
    Owner,
}

/// A document being fetched; dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct FetchPermit(RegistrationLimit, Lane);

impl RegistrationLimit {
    /// Admits a request, or returns how long to wait.
    pub(crate) fn admit(&self, lane: &Lane, now: Instant) -> Result<Reservation, Duration> {
        let quota = self.usage().take(lane, now)?;
        Ok(Reservation {
            limit: self.clone(),
            lane: lane.clone(),
            at: now,
            quota,
            committed: false,
        })
    }

    /// Admits a fetch, unless too many are in progress.
    pub(crate) fn start_fetch(&self, lane: &Lane) -> Option<FetchPermit> {
        let mut usage = self.usage();
        let is_address = |lane: &Lane| matches!(lane, Lane::Address(_));
        let fetches = usage.fetches.iter();
        let all: u32 = fetches
            .filter(|(lane, _)| is_address(lane))
            .map(|(_, number)| number)
            .sum();
        let own = usage.fetches.get(lane).copied().unwrap_or_default();
        if own >= FETCHES_PER_LANE || (is_address(lane) && all >= FETCHES) {
            return None;
        }
        *usage.fetches.entry(lane.clone()).or_default() += 1;
        Some(FetchPermit(self.clone(), lane.clone()))
    }

    fn usage(&self) -> MutexGuard<'_, Usage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Usage {
    fn take(&mut self, lane: &Lane, now: Instant) -> Result<Quota, Duration> {
        let own = self.by_lane.bucket(lane, now);
        let before = *own;
        if let Lane::Browser(_) = lane {
            return own.take(PER_OWNER_BROWSER, 1, now).map(|()| Quota::Owner);
        }
        own.take(PER_ADDRESS, 1, now)?;
        let Err(wait) = self.shared.take(SHARED, 1, now) else {
            return Ok(Quota::Shared);
        };
        let has_reserve = before.used(PER_ADDRESS, now) < RESERVED_PER_ADDRESS;
        if has_reserve && self.reserved.take(RESERVED, 1, now).is_ok() {
            return Ok(Quota::Reserved);
        }
        *own = before;
        Err(wait)
    }

    fn give_back(&mut self, lane: &Lane, at: Instant, quota: Quota) {
        let own = self.by_lane.bucket(lane, at);
        match quota {
            Quota::Owner => own.give_back(PER_OWNER_BROWSER),
            Quota::Shared | Quota::Reserved => own.give_back(PER_ADDRESS),
        }
        match quota {
            Quota::Owner => {}
            Quota::Shared => self.shared.give_back(SHARED),
            Quota::Reserved => self.reserved.give_back(RESERVED),
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
        if !self.committed {
            let (at, quota) = (self.at, self.quota);
            self.limit.usage().give_back(&self.lane, at, quota);
        }
    }
}

impl Drop for FetchPermit {
    fn drop(&mut self) {
        let fetches = &mut self.0.usage().fetches;
        if let Some(number) = fetches.get_mut(&self.1) {
            *number = number.saturating_sub(1);
            if *number == 0 {
                fetches.remove(&self.1);
            }
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
    fn one_address_and_all_together_are_bounded() {
        let limit = RegistrationLimit::default();
        assert_eq!(accepted(&limit, &address(1), 200), 120);
        let wait = limit.admit(&address(1), at(5)).unwrap_err();
        assert_eq!(wait, Duration::from_secs(5), "until one of 120 is refilled");
        let all: u32 = (2..3_000).map(|n| accepted(&limit, &address(n), 100)).sum();
        let bound = SHARED.units() + RESERVED.units();
        assert_eq!(all + 120, bound, "bounded, however many addresses");
        assert!(limit.admit(&address(1), at(15)).is_ok());
    }

    #[test]
    fn nineteen_addresses_do_not_block_the_others_nor_the_owner() {
        // TR-05
        let limit = RegistrationLimit::default();
        for n in 0..19 {
            accepted(&limit, &address(n), 1_000);
        }
        assert_eq!(limit.usage().shared.used(SHARED, at(5)), SHARED.units());
        for n in 100..200 {
            assert_eq!(accepted(&limit, &address(n), 10), RESERVED_PER_ADDRESS);
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
        assert_eq!(limit.usage().shared.used(SHARED, at(5)), 0);
        // Under way it does: many at once are no way around the limit.
        let many: Vec<_> = (0..200).map(|_| limit.admit(&address(1), at(5))).collect();
        assert_eq!(many.iter().filter(|one| one.is_ok()).count(), 120);
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
        assert!(limit.usage().fetches.is_empty());
    }
}
