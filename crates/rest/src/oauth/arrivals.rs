//! What bounds how much strangers can make the server remember and fetch: registrations and requests per time, and
//! documents at once, of each lane and of all addresses together.
//!
//! Only what was accepted counts. No address can use more than a small part of what is there for all, and where others
//! have used that up, the first few of an address are taken still. Browsers in which the owner has signed in are counted
//! by themselves: nobody else can use up what is theirs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use contract::time::Instant;
use grants::sign_in::Lane;

/// The time over which arrivals are counted.
const SPAN: Duration = Duration::from_mins(10);
/// As many are taken within it from one address, and from all addresses together.
const MOST: (u32, u32) = (120, 2_000);
/// As many of one address are taken still when that is used up, and of all such addresses together.
const FIRST: (u32, u32) = (5, 2_000);
/// As many are taken from a browser of the owner.
const OWN: u32 = 1_200;
/// As many documents are fetched at once for one lane, and for all addresses together.
const FETCHES: (u32, u32) = (2, 20);

const _: () = {
    assert!(MOST.0 * 10 <= MOST.1, "an address may use a tenth at most");
    assert!(
        FIRST.0 * 10 <= FIRST.1,
        "an address may use a tenth at most"
    );
    assert!(
        FETCHES.0 * 10 <= FETCHES.1,
        "an address may use a tenth at most"
    );
};

/// Arrivals within the present span.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arrivals(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    began: Instant,
    /// Of all addresses together, and beyond that the first of some.
    shared: (u32, u32),
    by_lane: HashMap<Lane, u32>,
    fetches: HashMap<Lane, u32>,
}

/// Out of what an arrival was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    Shared,
    First,
    Own,
}

/// An arrival that is being looked at. It counts while it is, so that many at once gain nothing, and not any more if it
/// is dropped before it was accepted.
#[derive(Debug)]
pub(crate) struct Arrival {
    arrivals: Arrivals,
    lane: Lane,
    began: Instant,
    share: Share,
    accepted: bool,
}

/// A document being fetched, until it is dropped.
#[derive(Debug)]
pub(crate) struct Fetch(Arrivals, Lane);

impl Arrivals {
    /// Lets an arrival in, or says how long to wait.
    pub(crate) fn admit(&self, lane: &Lane, now: Instant) -> Result<Arrival, Duration> {
        let span = i64::try_from(SPAN.as_micros()).unwrap_or(i64::MAX);
        let mut counts = self.counts();
        let past = now.0.saturating_sub(counts.began.0);
        // A clock that was set back begins a new span too.
        if !(0..span).contains(&past) {
            counts.began = now;
            counts.shared = (0, 0);
            counts.by_lane.clear();
        }
        let left = span.saturating_sub(now.0.saturating_sub(counts.began.0));
        let wait = Duration::from_micros(u64::try_from(left).unwrap_or_default());
        let share = counts.share(lane).ok_or(wait)?;
        *counts.by_lane.entry(lane.clone()).or_default() += 1;
        match share {
            Share::Shared => counts.shared.0 += 1,
            Share::First => counts.shared.1 += 1,
            Share::Own => {}
        }
        Ok(Arrival {
            arrivals: self.clone(),
            lane: lane.clone(),
            began: counts.began,
            share,
            accepted: false,
        })
    }

    /// Lets a document be fetched, unless too many are.
    pub(crate) fn fetch(&self, lane: &Lane) -> Option<Fetch> {
        let mut counts = self.counts();
        let of_addresses = |lane: &Lane| matches!(lane, Lane::Address(_));
        let under_way = counts.fetches.iter();
        let all: u32 = under_way
            .filter(|(lane, _)| of_addresses(lane))
            .map(|(_, number)| number)
            .sum();
        let own = counts.fetches.get(lane).copied().unwrap_or_default();
        if own >= FETCHES.0 || (of_addresses(lane) && all >= FETCHES.1) {
            return None;
        }
        *counts.fetches.entry(lane.clone()).or_default() += 1;
        Some(Fetch(self.clone(), lane.clone()))
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn share(&self, lane: &Lane) -> Option<Share> {
        let own = self.by_lane.get(lane).copied().unwrap_or_default();
        match lane {
            Lane::Browser(_) => (own < OWN).then_some(Share::Own),
            Lane::Address(_) if own >= MOST.0 => None,
            Lane::Address(_) if self.shared.0 < MOST.1 => Some(Share::Shared),
            Lane::Address(_) => (own < FIRST.0 && self.shared.1 < FIRST.1).then_some(Share::First),
        }
    }
}

impl Arrival {
    /// Something is remembered of it, so it counts.
    pub(crate) fn accept(&mut self) {
        self.accepted = true;
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        let mut counts = self.arrivals.counts();
        if self.accepted || counts.began != self.began {
            return;
        }
        less(&mut counts.by_lane, &self.lane);
        match self.share {
            Share::Shared => counts.shared.0 = counts.shared.0.saturating_sub(1),
            Share::First => counts.shared.1 = counts.shared.1.saturating_sub(1),
            Share::Own => {}
        }
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        less(&mut self.0.counts().fetches, &self.1);
    }
}

/// One less of a lane, of which nothing is kept where there is none.
fn less(counted: &mut HashMap<Lane, u32>, lane: &Lane) {
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
        Lane::of(std::net::Ipv4Addr::from_bits(0xcb00_0000 + n).into())
    }

    fn accepted(arrivals: &Arrivals, lane: &Lane, times: u32) -> u32 {
        let admitted = (0..times).filter_map(|_| arrivals.admit(lane, at(5)).ok());
        let admitted = admitted.map(|mut arrival| arrival.accept()).count();
        u32::try_from(admitted).unwrap()
    }

    #[test]
    fn one_address_and_all_together_are_bounded_for_a_span() {
        let arrivals = Arrivals::default();
        arrivals.admit(&address(1), at(0)).unwrap().accept();
        assert_eq!(accepted(&arrivals, &address(1), 200), 119);
        assert_eq!(
            arrivals.admit(&address(1), at(6)).unwrap_err(),
            Duration::from_mins(4),
            "the wait ends with the span"
        );
        let all: u32 = (2..3_000)
            .map(|n| accepted(&arrivals, &address(n), 100))
            .sum();
        assert_eq!(
            all + 120,
            MOST.1 + FIRST.1,
            "bounded, however many addresses"
        );
        assert!(arrivals.admit(&address(1), at(10)).is_ok());
    }

    #[test]
    fn nineteen_addresses_do_not_block_the_others_nor_the_owner() {
        // TR-05
        let arrivals = Arrivals::default();
        for n in 0..19 {
            accepted(&arrivals, &address(n), 1_000);
        }
        assert_eq!(
            arrivals.counts().shared.0,
            MOST.1,
            "what is there for all is used up"
        );
        for n in 100..200 {
            assert_eq!(accepted(&arrivals, &address(n), 10), FIRST.0);
        }
        let own = Lane::Browser("a session".to_owned());
        assert_eq!(accepted(&arrivals, &own, 500), 500);
    }

    #[test]
    fn what_is_not_accepted_does_not_count() {
        // TR-05
        let arrivals = Arrivals::default();
        for _ in 0..5_000 {
            drop(arrivals.admit(&address(1), at(5)).unwrap());
        }
        assert!(arrivals.counts().by_lane.is_empty());
        // Under way it does: many at once are no way around the limit.
        let many: Vec<_> = (0..200)
            .map(|_| arrivals.admit(&address(1), at(5)))
            .collect();
        assert_eq!(many.iter().filter(|arrival| arrival.is_ok()).count(), 120);
    }

    #[test]
    fn few_documents_are_fetched_at_once() {
        // TR-05
        let arrivals = Arrivals::default();
        let many = |n| {
            (0..5)
                .filter_map(|_| arrivals.fetch(&address(n)))
                .collect::<Vec<_>>()
        };
        let mut all: Vec<_> = (0..20).flat_map(many).collect();
        assert_eq!(all.len(), 20);
        let own = Lane::Browser("a session".to_owned());
        assert!(arrivals.fetch(&own).is_some());
        assert!(arrivals.fetch(&address(99)).is_none());
        all.pop();
        assert!(arrivals.fetch(&address(99)).is_some());
        drop(all);
        assert!(arrivals.counts().fetches.is_empty());
    }
}
