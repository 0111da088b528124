//! Limits on open connections, and which one is closed when there are too many.
//!
//! A connection costs an open file, of which a process has few. Each address may hold a bounded number; all together
//! leave files for the store. For a new connection the one that has been idle for longest is closed. A connection is
//! idle while it has no request to answer: between two requests, or before the head of one has arrived.

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

const MAX_PER_ADDRESS: usize = 256;
/// The most connections in all, however many files may be open: each takes memory too.
const MAX_TOTAL: usize = 16_384;
/// The usual limit of open files of a process.
const DEFAULT_OPEN_FILES: u64 = 1_024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capacity {
    each: usize,
    all: usize,
    /// Proxies, which hold the connections of many clients.
    proxies: Vec<IpAddr>,
}

impl Capacity {
    /// Four fifths of the files a process may open.
    pub fn for_open_files(files: u64) -> Self {
        let all = usize::try_from(files / 5 * 4).unwrap_or(MAX_TOTAL);
        Self {
            each: MAX_PER_ADDRESS,
            all: all.clamp(1, MAX_TOTAL),
            proxies: Vec::new(),
        }
    }

    /// Exempts these proxies from the limit per address.
    #[must_use]
    pub fn behind(mut self, proxies: &[IpAddr]) -> Self {
        self.proxies = proxies.to_vec();
        self
    }

    fn for_address(&self, address: IpAddr) -> usize {
        if self.proxies.contains(&address.to_canonical()) {
            self.all
        } else {
            self.each
        }
    }
}

impl Default for Capacity {
    fn default() -> Self {
        Self::for_open_files(DEFAULT_OPEN_FILES)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Connections(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    capacity: Capacity,
    /// A logical clock: lower is longer ago.
    tick: u64,
    open: HashMap<u64, OpenConnection>,
    by_lane: HashMap<Lane, usize>,
    /// Idle connections by when they became idle, oldest first.
    idle: BTreeMap<u64, u64>,
}

#[derive(Debug)]
struct OpenConnection {
    lane: Lane,
    idle_since: Option<u64>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    requests: AtomicUsize,
    close: Notify,
}

/// An open connection; dropping it removes it from the count.
#[derive(Debug)]
pub(crate) struct ConnectionGuard {
    id: u64,
    shared: Arc<Shared>,
    connections: Connections,
}

/// A request being answered; while it exists, its connection is not idle.
#[derive(Debug)]
pub(crate) struct RequestGuard {
    id: u64,
    shared: Arc<Shared>,
    connections: Connections,
}

impl Connections {
    pub(crate) fn new(capacity: Capacity) -> Self {
        Self(Arc::new(Mutex::new(State {
            capacity,
            tick: 0,
            open: HashMap::new(),
            by_lane: HashMap::new(),
            idle: BTreeMap::new(),
        })))
    }

    /// Registers a new connection. `None`: the limit is reached and no connection is idle.
    pub(crate) fn open(&self, address: IpAddr) -> Option<ConnectionGuard> {
        let lane = Lane::from_address(address);
        let mut state = self.state();
        if state.by_lane.get(&lane).copied().unwrap_or_default()
            >= state.capacity.for_address(address)
        {
            let of_lane = state.idle.values().copied();
            let mut of_lane =
                of_lane.filter(|id| state.open.get(id).is_some_and(|open| open.lane == lane));
            let longest_idle = of_lane.next()?;
            state.evict(longest_idle);
        } else if state.open.len() >= state.capacity.all {
            let (_, longest_idle) = state.idle.first_key_value()?;
            let longest_idle = *longest_idle;
            state.evict(longest_idle);
        }
        let (id, shared) = (state.next_tick(), Arc::<Shared>::default());
        *state.by_lane.entry(lane.clone()).or_default() += 1;
        let open = OpenConnection {
            lane,
            idle_since: None,
            shared: Arc::clone(&shared),
        };
        state.open.insert(id, open);
        state.mark_idle(id);
        Some(ConnectionGuard {
            id,
            shared,
            connections: self.clone(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn next_tick(&mut self) -> u64 {
        self.tick += 1;
        self.tick
    }

    fn mark_idle(&mut self, id: u64) {
        let tick = self.next_tick();
        if let Some(open) = self.open.get_mut(&id) {
            open.idle_since = Some(tick);
            self.idle.insert(tick, id);
        }
    }

    fn mark_busy(&mut self, id: u64) {
        let since = self
            .open
            .get_mut(&id)
            .and_then(|open| open.idle_since.take());
        if let Some(since) = since {
            self.idle.remove(&since);
        }
    }

    /// Removes a connection; `None` if it was removed before.
    fn forget(&mut self, id: u64) -> Option<OpenConnection> {
        self.mark_busy(id);
        let open = self.open.remove(&id)?;
        if let Some(number) = self.by_lane.get_mut(&open.lane) {
            *number = number.saturating_sub(1);
            if *number == 0 {
                self.by_lane.remove(&open.lane);
            }
        }
        Some(open)
    }

    fn evict(&mut self, id: u64) {
        if let Some(open) = self.forget(id) {
            open.shared.close.notify_one();
        }
    }
}

impl ConnectionGuard {
    pub(crate) fn request(&self) -> RequestGuard {
        if self.shared.requests.fetch_add(1, Ordering::SeqCst) == 0 {
            self.connections.state().mark_busy(self.id);
        }
        RequestGuard {
            id: self.id,
            shared: Arc::clone(&self.shared),
            connections: self.connections.clone(),
        }
    }

    /// Waits until this connection has to close. A request that arrived meanwhile is answered first.
    pub(crate) async fn wait_for_eviction(&self) {
        loop {
            self.shared.close.notified().await;
            if self.shared.requests.load(Ordering::SeqCst) == 0 {
                return;
            }
        }
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.connections.state().forget(self.id);
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        if self.shared.requests.fetch_sub(1, Ordering::SeqCst) > 1 {
            return;
        }
        let mut state = self.connections.state();
        if state.open.contains_key(&self.id) {
            state.mark_idle(self.id);
        } else {
            // It was evicted while it was busy.
            self.shared.close.notify_one();
        }
    }
}

/// A response body that keeps its connection busy until it was sent.
pub(crate) struct ResponseBody {
    body: Body,
    _request: Option<RequestGuard>,
}

impl ResponseBody {
    pub(crate) fn new(body: Body, request: Option<RequestGuard>) -> Self {
        Self {
            body,
            _request: request,
        }
    }
}

impl HttpBody for ResponseBody {
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

    fn is_closed(held: &ConnectionGuard) -> bool {
        let connections = held.connections.state();
        !connections.open.contains_key(&held.id)
    }

    #[test]
    fn four_fifths_of_the_files_are_for_connections() {
        // TR-08
        assert_eq!(Capacity::default().all, 816);
        assert_eq!(Capacity::for_open_files(20_000).all, 16_000);
        assert_eq!(Capacity::for_open_files(u64::MAX).all, MAX_TOTAL);
        assert_eq!(Capacity::for_open_files(0).all, 1);
        assert_eq!(Capacity::for_open_files(20_000).each, 256);
    }

    #[test]
    fn the_longest_idle_makes_room_and_never_a_busy_one() {
        // TR-08
        let connections = small(9, 3);
        let [one, two, three] = [1, 2, 3].map(|n| connections.open(at(n)).unwrap());
        let answering = one.request();
        drop(two.request());
        let four = connections.open(at(4)).unwrap();
        assert!(is_closed(&three) && !is_closed(&one) && !is_closed(&two));
        let busy = [&two, &four].map(ConnectionGuard::request);
        assert!(connections.open(at(5)).is_none(), "nobody is idle");
        drop(answering);
        assert!(connections.open(at(5)).is_some());
        assert!(is_closed(&one));
        drop((busy, one, two, three, four));
        let state = connections.state();
        assert!(state.open.is_empty() && state.idle.is_empty() && state.by_lane.is_empty());
    }

    #[test]
    fn an_address_makes_room_for_itself_and_not_at_the_cost_of_others() {
        // TR-08
        let connections = small(2, 100);
        let other = connections.open(at(1)).unwrap();
        let own = [2, 2, 2].map(|n| connections.open(at(n)).unwrap());
        assert!(is_closed(&own[0]) && !is_closed(&own[1]) && !is_closed(&own[2]));
        assert!(!is_closed(&other));
        let _request = [&own[1], &own[2]].map(ConnectionGuard::request);
        assert!(connections.open(at(2)).is_none());
        assert!(connections.open(at(3)).is_some());
        let proxied: Vec<_> = (0..50).map(|_| connections.open(at(9)).unwrap()).collect();
        assert!(!proxied.iter().any(is_closed));
    }

    #[tokio::test]
    async fn a_request_that_came_at_the_same_moment_is_answered() {
        // TR-08
        let connections = small(1, 9);
        let held = connections.open(at(1)).unwrap();
        let _next = connections.open(at(1)).unwrap();
        let answering = held.request();
        let soon = std::time::Duration::from_millis(20);
        assert!(
            tokio::time::timeout(soon, held.wait_for_eviction())
                .await
                .is_err()
        );
        drop(answering);
        held.wait_for_eviction().await;
    }
}
