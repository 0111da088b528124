//! Limits how much strangers can make the server store and fetch: registrations and authorization requests per time
//! window, and concurrent document fetches, per lane and for all addresses together.
//!
//! Only requests that stored something count, and are counted in the registry, so on all nodes together. What is in progress each
//! node counts by itself: many at once are no way around the limit. One address can use only a small part of the shared limit, and
//! when others have used it up, the first few requests of each address are still admitted. Browsers of the owner have
//! limits of their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use contract::time::Instant;
use grants::sign_in::Lane;
use store::registry::{Change, EntryKind, Expect};
use store::{Store, StoreError};

use crate::rate_limit::{Bucket, Rate};

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

/// Under which keys the requests of all addresses are counted.
const SHARED_KEY: &str = "registrations";
const RESERVED_KEY: &str = "registrations:reserved";
/// How often a count is tried that others count at the same time.
const TRIES: usize = 10;

const _: () = {
    assert!(PER_ADDRESS.units() * 10 <= SHARED.units());
    assert!(RESERVED_PER_ADDRESS * 10 <= RESERVED.units());
    assert!(FETCHES_PER_LANE * 10 <= FETCHES);
};

#[derive(Clone)]
pub(crate) struct RegistrationLimit {
    store: Arc<dyn Store>,
    in_progress: Arc<Mutex<InProgress>>,
}

/// What this process works at now.
#[derive(Debug, Default)]
struct InProgress {
    by_lane: HashMap<Lane, usize>,
    shared: usize,
    reserved: usize,
    fetches: HashMap<Lane, u32>,
}

/// What was used of the limits that concern a request.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    own: Bucket,
    shared: Bucket,
    reserved: Bucket,
}

/// A request in progress. It counts while it is in progress; dropped without [`Reservation::commit`], it no longer counts.
pub(crate) struct Reservation {
    limit: RegistrationLimit,
    lane: Lane,
    quota: Quota,
    committed: bool,
}

/// A request that stored something and is yet to be counted.
pub(crate) struct Accepted {
    limit: RegistrationLimit,
    lane: Lane,
    quota: Quota,
}

/// The limit a request was counted against besides that of its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quota {
    Shared,
    Reserved,
    Owner,
}

impl Quota {
    /// The rate of the lane, and that of the limit with its key.
    fn rates(self) -> (Rate, Option<(&'static str, Rate)>) {
        match self {
            Self::Owner => (PER_OWNER_BROWSER, None),
            Self::Shared => (PER_ADDRESS, Some((SHARED_KEY, SHARED))),
            Self::Reserved => (PER_ADDRESS, Some((RESERVED_KEY, RESERVED))),
        }
    }
}

/// A document being fetched; dropping it frees the slot.
pub(crate) struct FetchPermit(RegistrationLimit, Lane);

impl RegistrationLimit {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            in_progress: Arc::default(),
        }
    }

    /// Admits a request, or returns how long to wait.
    pub(crate) fn admit(
        &self,
        lane: &Lane,
        now: Instant,
    ) -> Result<Result<Reservation, Duration>, StoreError> {
        let used = self.used(lane, now)?;
        let mut in_progress = self.in_progress();
        let quota = match in_progress.admit(used, lane, now) {
            Ok(quota) => quota,
            Err(wait) => return Ok(Err(wait)),
        };
        in_progress.add(lane, quota);
        Ok(Ok(Reservation {
            limit: self.clone(),
            lane: lane.clone(),
            quota,
            committed: false,
        }))
    }

    /// Admits a fetch, unless too many are in progress.
    pub(crate) fn start_fetch(&self, lane: &Lane) -> Option<FetchPermit> {
        let mut usage = self.in_progress();
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

    fn used(&self, lane: &Lane, now: Instant) -> Result<Used, StoreError> {
        let bucket = |key: &str| self.kept(key, now).map(|(bucket, _)| bucket);
        let own = bucket(&lane.key())?;
        match lane {
            Lane::Browser(_) => Ok(Used {
                own,
                ..Used::default()
            }),
            Lane::Address(_) => Ok(Used {
                own,
                shared: bucket(SHARED_KEY)?,
                reserved: bucket(RESERVED_KEY)?,
            }),
        }
    }

    /// A bucket as the registry has it, where it stands until it is full again.
    fn kept(&self, key: &str, now: Instant) -> Result<(Bucket, Expect), StoreError> {
        let Some(entry) = self.store.entry(EntryKind::Limit, key, now)? else {
            return Ok((Bucket::default(), Expect::Absent));
        };
        let full_at = entry.expires_at.unwrap_or(now);
        Ok((Bucket::full_from(full_at), Expect::Revision(entry.revision)))
    }

    /// Counts a request that stored something, unless somebody else counts at the same time.
    fn try_count(&self, lane: &Lane, quota: Quota, now: Instant) -> Result<bool, StoreError> {
        let (own, other) = quota.rates();
        let own_key = lane.key();
        let mut counted = Vec::new();
        for (key, rate) in [Some((own_key.as_str(), own)), other].into_iter().flatten() {
            let (mut bucket, expect) = self.kept(key, now)?;
            // Other nodes may have used it up meanwhile; it is full then whatever is added.
            let _ = bucket.take(rate, 1, now);
            let count = Change::put(EntryKind::Limit, key, "");
            counted.push(count.until(bucket.is_full_from()).expecting(expect));
        }
        self.store.apply(&counted, now)
    }

    fn in_progress(&self) -> MutexGuard<'_, InProgress> {
        let in_progress = self.in_progress.lock();
        in_progress.unwrap_or_else(PoisonError::into_inner)
    }
}

impl InProgress {
    /// The limit that one more request of the lane counts against, or how long to wait.
    fn admit(&self, mut used: Used, lane: &Lane, now: Instant) -> Result<Quota, Duration> {
        let own = self.by_lane.get(lane).copied().unwrap_or_default();
        if let Lane::Browser(_) = lane {
            used.own.take(PER_OWNER_BROWSER, own + 1, now)?;
            return Ok(Quota::Owner);
        }
        let before = used.own.used(PER_ADDRESS, now) as usize + own;
        used.own.take(PER_ADDRESS, own + 1, now)?;
        let Err(wait) = used.shared.take(SHARED, self.shared + 1, now) else {
            return Ok(Quota::Shared);
        };
        let has_reserve = before < RESERVED_PER_ADDRESS as usize;
        if has_reserve && used.reserved.take(RESERVED, self.reserved + 1, now).is_ok() {
            return Ok(Quota::Reserved);
        }
        Err(wait)
    }

    fn add(&mut self, lane: &Lane, quota: Quota) {
        *self.by_lane.entry(lane.clone()).or_default() += 1;
        match quota {
            Quota::Owner => {}
            Quota::Shared => self.shared += 1,
            Quota::Reserved => self.reserved += 1,
        }
    }

    fn remove(&mut self, lane: &Lane, quota: Quota) {
        if let Some(number) = self.by_lane.get_mut(lane) {
            *number = number.saturating_sub(1);
            if *number == 0 {
                self.by_lane.remove(lane);
            }
        }
        match quota {
            Quota::Owner => {}
            Quota::Shared => self.shared = self.shared.saturating_sub(1),
            Quota::Reserved => self.reserved = self.reserved.saturating_sub(1),
        }
    }
}

impl Reservation {
    /// The request stored something, so it counts, once.
    pub(crate) fn commit(&mut self) -> Option<Accepted> {
        let is_first = !std::mem::replace(&mut self.committed, true);
        is_first.then(|| Accepted {
            limit: self.limit.clone(),
            lane: self.lane.clone(),
            quota: self.quota,
        })
    }
}

impl Accepted {
    pub(crate) fn count(&self, now: Instant) -> Result<(), StoreError> {
        for _ in 0..TRIES {
            if self.limit.try_count(&self.lane, self.quota, now)? {
                break;
            }
        }
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.limit.in_progress().remove(&self.lane, self.quota);
    }
}

impl Drop for FetchPermit {
    fn drop(&mut self) {
        let fetches = &mut self.0.in_progress().fetches;
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
    use std::collections::HashSet;

    use store::{EmbeddedStore, OpenOptions};
    use tempfile::TempDir;

    use super::*;

    fn at(minutes: i64) -> Instant {
        Instant(1_000_000_000_000_000 + minutes * 60_000_000)
    }

    fn address(n: u32) -> Lane {
        Lane::from_address(std::net::Ipv4Addr::from_bits(0xcb00_0000 + n).into())
    }

    fn store() -> (TempDir, Arc<dyn Store>) {
        let folder = tempfile::tempdir().unwrap();
        let options = OpenOptions::new("a test", Arc::new(at(0)));
        let store = EmbeddedStore::open(folder.path(), options).unwrap();
        (folder, Arc::new(store))
    }

    /// The limits without a registry: whatever is admitted is counted at once.
    #[derive(Default)]
    struct Counted {
        lanes: HashMap<Lane, Bucket>,
        all: Used,
    }

    impl Counted {
        fn admit(&mut self, lane: &Lane, now: Instant) -> Result<(), Duration> {
            let own = self.lanes.entry(lane.clone()).or_default();
            let used = Used {
                own: *own,
                ..self.all
            };
            let quota = InProgress::default().admit(used, lane, now)?;
            own.take(quota.rates().0, 1, now).unwrap();
            match quota {
                Quota::Owner => Ok(()),
                Quota::Shared => self.all.shared.take(SHARED, 1, now),
                Quota::Reserved => self.all.reserved.take(RESERVED, 1, now),
            }
        }

        fn accepted(&mut self, lane: &Lane, times: u32) -> u32 {
            let admitted = (0..times).filter(|_| self.admit(lane, at(5)).is_ok());
            u32::try_from(admitted.count()).unwrap()
        }
    }

    #[test]
    fn one_address_and_all_together_are_bounded() {
        let mut limit = Counted::default();
        assert_eq!(limit.accepted(&address(1), 200), 120);
        let wait = limit.admit(&address(1), at(5)).unwrap_err();
        assert_eq!(wait, Duration::from_secs(5), "until one of 120 is refilled");
        let all: u32 = (2..3_000).map(|n| limit.accepted(&address(n), 100)).sum();
        let bound = SHARED.units() + RESERVED.units();
        assert_eq!(all + 120, bound, "bounded, however many addresses");
        assert!(limit.admit(&address(1), at(15)).is_ok());
    }

    #[test]
    fn nineteen_addresses_do_not_block_the_others_nor_the_owner() {
        // TR-05
        let mut limit = Counted::default();
        for n in 0..19 {
            limit.accepted(&address(n), 1_000);
        }
        assert_eq!(limit.all.shared.used(SHARED, at(5)), SHARED.units());
        for n in 100..200 {
            assert_eq!(limit.accepted(&address(n), 10), RESERVED_PER_ADDRESS);
        }
        let own = Lane::Browser("a session".to_owned());
        assert_eq!(limit.accepted(&own, 500), 500);
    }

    #[test]
    fn what_is_not_accepted_does_not_count() {
        // TR-05
        let (_folder, store) = store();
        let limit = RegistrationLimit::new(store);
        let admit = || limit.admit(&address(1), at(5)).unwrap();
        for _ in 0..500 {
            drop(admit().unwrap());
        }
        // Under way it does: many at once are no way around the limit.
        let many: Vec<_> = (0..200).map(|_| admit()).collect();
        assert_eq!(many.iter().filter(|one| one.is_ok()).count(), 120);
    }

    #[test]
    fn what_one_node_accepted_counts_on_every_other() {
        // TR-05
        let (_folder, store) = store();
        let nodes = [Arc::clone(&store), store].map(RegistrationLimit::new);
        let mut admitted = 0;
        for node in nodes.iter().cycle().take(200) {
            if let Ok(mut reservation) = node.admit(&address(1), at(5)).unwrap() {
                reservation.commit().unwrap().count(at(5)).unwrap();
                assert!(reservation.commit().is_none(), "counted once");
                admitted += 1;
            }
        }
        assert_eq!(admitted, 120);
        let waits: HashSet<_> = nodes
            .iter()
            .map(|node| node.admit(&address(1), at(5)).unwrap().err())
            .collect();
        assert_eq!(waits, HashSet::from([Some(Duration::from_secs(5))]));
        assert!(nodes[0].admit(&address(2), at(5)).unwrap().is_ok());
        assert!(nodes[1].admit(&address(1), at(15)).unwrap().is_ok());
    }

    #[test]
    fn few_documents_are_fetched_at_once() {
        // TR-05
        let (_folder, store) = store();
        let limit = RegistrationLimit::new(store);
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
        assert!(limit.in_progress().fetches.is_empty());
    }
}
