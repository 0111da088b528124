//! How many connections there may be, and which one makes room when there are too many.
//!
//! A connection costs an open file, of which a process has few. So each address holds a bounded number of them, all
//! together leave files for the store, and for a new one the connection that has been idle for longest is closed. Idle is
//! whatever has no request to be answered: between two requests, or before the head of one has arrived.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use grants::sign_in::Lane;
use hyper::body::{Frame, SizeHint};
use tokio::sync::Notify;

/// As many connections may one address have.
const MOST_OF_ADDRESS: usize = 256;
/// More connections than this are not held, however many files there could be: each takes memory too.
const MOST_OF_ALL: usize = 16_384;
/// How many files a process usually may have open.
const USUAL_FILES: u64 = 1_024;

/// How many connections there may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capacity {
    each: usize,
    all: usize,
    /// Addresses that speak for many.
    proxies: Vec<IpAddr>,
}

impl Capacity {
    /// What a process that may have so many files open can hold: four fifths of them.
    pub fn of_files(files: u64) -> Self {
        let all = usize::try_from(files / 5 * 4).unwrap_or(MOST_OF_ALL);
        Self {
            each: MOST_OF_ADDRESS,
            all: all.clamp(1, MOST_OF_ALL),
            proxies: Vec::new(),
        }
    }

    /// The same where these proxies stand before the server: each of them has the connections of many.
    #[must_use]
    pub fn behind(mut self, proxies: &[IpAddr]) -> Self {
        self.proxies = proxies.to_vec();
        self
    }

    /// How many connections an address may have.
    fn of(&self, address: IpAddr) -> usize {
        if self.proxies.contains(&address.to_canonical()) {
            self.all
        } else {
            self.each
        }
    }
}

impl Default for Capacity {
    fn default() -> Self {
        Self::of_files(USUAL_FILES)
    }
}

/// The connections there are.
#[derive(Debug, Clone)]
pub(crate) struct Connections(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    capacity: Capacity,
    /// Counts moments: the lower, the longer ago.
    moment: u64,
    open: HashMap<u64, Open>,
    by_lane: HashMap<Lane, usize>,
    /// The idle ones, the longest idle first.
    idle: BTreeMap<u64, u64>,
}

#[derive(Debug)]
struct Open {
    lane: Lane,
    idle_since: Option<u64>,
    inner: Arc<Inner>,
}

/// What a connection and its requests share.
#[derive(Debug, Default)]
struct Inner {
    requests: AtomicUsize,
    close: Notify,
}

/// A connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    id: u64,
    inner: Arc<Inner>,
    connections: Connections,
}

/// A request being answered, until it is dropped.
#[derive(Debug)]
pub(crate) struct Busy {
    id: u64,
    inner: Arc<Inner>,
    connections: Connections,
}

impl Connections {
    pub(crate) fn new(capacity: Capacity) -> Self {
        Self(Arc::new(Mutex::new(State {
            capacity,
            moment: 0,
            open: HashMap::new(),
            by_lane: HashMap::new(),
            idle: BTreeMap::new(),
        })))
    }

    /// Takes a new connection in. Nothing: there is no room, and nobody idle who could make some.
    pub(crate) fn enter(&self, address: IpAddr) -> Option<Held> {
        let lane = Lane::of(address);
        let mut state = self.state();
        if state.by_lane.get(&lane).copied().unwrap_or_default() >= state.capacity.of(address) {
            let of_lane = state.idle.values().copied();
            let mut of_lane =
                of_lane.filter(|id| state.open.get(id).is_some_and(|open| open.lane == lane));
            let longest = of_lane.next()?;
            state.close(longest);
        } else if state.open.len() >= state.capacity.all {
            let (_, longest) = state.idle.first_key_value()?;
            let longest = *longest;
            state.close(longest);
        }
        let (id, inner) = (state.next_moment(), Arc::<Inner>::default());
        *state.by_lane.entry(lane.clone()).or_default() += 1;
        let open = Open {
            lane,
            idle_since: None,
            inner: Arc::clone(&inner),
        };
        state.open.insert(id, open);
        state.rests(id);
        Some(Held {
            id,
            inner,
            connections: self.clone(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn next_moment(&mut self) -> u64 {
        self.moment += 1;
        self.moment
    }

    fn rests(&mut self, id: u64) {
        let moment = self.next_moment();
        if let Some(open) = self.open.get_mut(&id) {
            open.idle_since = Some(moment);
            self.idle.insert(moment, id);
        }
    }

    fn works(&mut self, id: u64) {
        let since = self
            .open
            .get_mut(&id)
            .and_then(|open| open.idle_since.take());
        if let Some(since) = since {
            self.idle.remove(&since);
        }
    }

    /// Forgets a connection; what is known of it, unless it was forgotten before.
    fn forget(&mut self, id: u64) -> Option<Open> {
        self.works(id);
        let open = self.open.remove(&id)?;
        if let Some(number) = self.by_lane.get_mut(&open.lane) {
            *number = number.saturating_sub(1);
            if *number == 0 {
                self.by_lane.remove(&open.lane);
            }
        }
        Some(open)
    }

    fn close(&mut self, id: u64) {
        if let Some(open) = self.forget(id) {
            open.inner.close.notify_one();
        }
    }
}

impl Held {
    /// A request has come in whole.
    pub(crate) fn request(&self) -> Busy {
        if self.inner.requests.fetch_add(1, Ordering::SeqCst) == 0 {
            self.connections.state().works(self.id);
        }
        Busy {
            id: self.id,
            inner: Arc::clone(&self.inner),
            connections: self.connections.clone(),
        }
    }

    /// Waits until this connection has to make room. A request that came in at the same moment is answered before.
    pub(crate) async fn makes_room(&self) {
        loop {
            self.inner.close.notified().await;
            if self.inner.requests.load(Ordering::SeqCst) == 0 {
                return;
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.connections.state().forget(self.id);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if self.inner.requests.fetch_sub(1, Ordering::SeqCst) > 1 {
            return;
        }
        let mut state = self.connections.state();
        if state.open.contains_key(&self.id) {
            state.rests(self.id);
        } else {
            // It was asked to make room while it was busy.
            self.inner.close.notify_one();
        }
    }
}

/// The body of an answer. Until it was sent, its connection is busy.
pub(crate) struct Sending {
    body: Body,
    _busy: Option<Busy>,
}

impl Sending {
    pub(crate) fn new(body: Body, busy: Option<Busy>) -> Self {
        Self { body, _busy: busy }
    }
}

impl HttpBody for Sending {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u8) -> IpAddr {
        [203, 0, 113, n].into()
    }

    fn small(each: usize, all: usize) -> Connections {
        let proxies = vec![at(9)];
        Connections::new(Capacity { each, all, proxies })
    }

    fn is_closed(held: &Held) -> bool {
        let connections = held.connections.state();
        !connections.open.contains_key(&held.id)
    }

    #[test]
    fn four_fifths_of_the_files_are_for_connections() {
        // TR-08
        assert_eq!(Capacity::default().all, 816);
        assert_eq!(Capacity::of_files(20_000).all, 16_000);
        assert_eq!(Capacity::of_files(u64::MAX).all, MOST_OF_ALL);
        assert_eq!(Capacity::of_files(0).all, 1);
        assert_eq!(Capacity::of_files(20_000).each, 256);
    }

    #[test]
    fn the_longest_idle_makes_room_and_never_a_busy_one() {
        // TR-08
        let connections = small(9, 3);
        let [one, two, three] = [1, 2, 3].map(|n| connections.enter(at(n)).unwrap());
        let answering = one.request();
        drop(two.request());
        let four = connections.enter(at(4)).unwrap();
        assert!(is_closed(&three) && !is_closed(&one) && !is_closed(&two));
        let busy = [&two, &four].map(Held::request);
        assert!(connections.enter(at(5)).is_none(), "nobody is idle");
        drop(answering);
        assert!(connections.enter(at(5)).is_some());
        assert!(is_closed(&one));
        drop((busy, one, two, three, four));
        let state = connections.state();
        assert!(state.open.is_empty() && state.idle.is_empty() && state.by_lane.is_empty());
    }

    #[test]
    fn an_address_makes_room_for_itself_and_not_at_the_cost_of_others() {
        // TR-08
        let connections = small(2, 100);
        let other = connections.enter(at(1)).unwrap();
        let own = [2, 2, 2].map(|n| connections.enter(at(n)).unwrap());
        assert!(is_closed(&own[0]) && !is_closed(&own[1]) && !is_closed(&own[2]));
        assert!(!is_closed(&other));
        let _busy = [&own[1], &own[2]].map(Held::request);
        assert!(connections.enter(at(2)).is_none());
        assert!(connections.enter(at(3)).is_some());
        let proxied: Vec<_> = (0..50).map(|_| connections.enter(at(9)).unwrap()).collect();
        assert!(!proxied.iter().any(is_closed));
    }

    #[tokio::test]
    async fn a_request_that_came_at_the_same_moment_is_answered() {
        // TR-08
        let connections = small(1, 9);
        let held = connections.enter(at(1)).unwrap();
        let _next = connections.enter(at(1)).unwrap();
        let answering = held.request();
        let soon = std::time::Duration::from_millis(20);
        assert!(tokio::time::timeout(soon, held.makes_room()).await.is_err());
        drop(answering);
        held.makes_room().await;
    }
}
