//! Admission control: how many requests are answered at once, and who waits.
//!
//! Admitting every request at once would make each of them queue again at every step, holding its memory meanwhile. So
//! a few are answered at a time and the others wait once, first come first served.
//!
//! One client never holds all the slots: its requests beyond its share wait for its own earlier requests, not in front
//! of other clients.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// More than one, so that no processor is idle while a request moves from one step to the next.
const SLOTS_PER_PROCESSOR: usize = 2;

/// A fixed number of slots, shared fairly between clients.
#[derive(Debug, Clone)]
pub(crate) struct Queue(Arc<Slots>);

#[derive(Debug)]
struct Slots {
    all: Arc<Semaphore>,
    share: usize,
    /// The share of every client that is answered or waits.
    clients: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// The right to be answered now; dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct Permit {
    _held: OwnedSemaphorePermit,
    own: Option<OwnedSemaphorePermit>,
    client: String,
    slots: Arc<Slots>,
}

impl Default for Queue {
    fn default() -> Self {
        let processors = available_parallelism().map_or(1, NonZeroUsize::get);
        Self::with_slots(processors * SLOTS_PER_PROCESSOR)
    }
}

impl Queue {
    fn with_slots(slots: usize) -> Self {
        // A quarter is left for other clients, one slot at least.
        let others = (slots / 4).max(1);
        Self(Arc::new(Slots {
            all: Arc::new(Semaphore::new(slots)),
            share: slots.saturating_sub(others).max(1),
            clients: Mutex::default(),
        }))
    }

    /// Waits for a slot, at most for `patience`. The client's own share comes first, so that its waiting blocks nobody
    /// else.
    pub(crate) async fn acquire(&self, client: &str, patience: Duration) -> Option<Permit> {
        let turn = async {
            let own = self.0.client_slots(client).acquire_owned().await.ok()?;
            let held = Arc::clone(&self.0.all).acquire_owned().await.ok()?;
            Some(Permit {
                _held: held,
                own: Some(own),
                client: client.to_owned(),
                slots: Arc::clone(&self.0),
            })
        };
        let permit = tokio::time::timeout(patience, turn).await.ok().flatten();
        if permit.is_none() {
            self.0.forget(client);
        }
        permit
    }
}

impl Slots {
    fn client_slots(&self, client: &str) -> Arc<Semaphore> {
        let mut clients = self.clients();
        let known = clients.entry(client.to_owned());
        Arc::clone(known.or_insert_with(|| Arc::new(Semaphore::new(self.share))))
    }

    /// Removes a client with no request answered or waiting.
    fn forget(&self, client: &str) {
        let mut clients = self.clients();
        let unused = |share: &Arc<Semaphore>| {
            Arc::strong_count(share) == 1 && share.available_permits() == self.share
        };
        if clients.get(client).is_some_and(unused) {
            clients.remove(client);
        }
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<String, Arc<Semaphore>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.own = None;
        self.slots.forget(&self.client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn only_so_many_have_a_place_and_the_next_gets_it_when_one_leaves() {
        let queue = Queue::with_slots(2);
        let first = queue.acquire("one", PATIENCE).await.unwrap();
        let _second = queue.acquire("two", PATIENCE).await.unwrap();
        assert!(queue.acquire("three", PATIENCE).await.is_none());
        let (third, ()) = tokio::join!(queue.acquire("three", PATIENCE), async { drop(first) });
        assert!(third.is_some());
    }

    // TR-03: eight costly requests of one client leave slots for another.
    #[tokio::test]
    async fn one_client_never_has_all_the_places() {
        for slots in [2, 3, 4, 16, 64] {
            let queue = Queue::with_slots(slots);
            let mut held = Vec::new();
            while let Some(permit) = queue.acquire("greedy", PATIENCE).await {
                held.push(permit);
            }
            assert!(!held.is_empty() && held.len() < slots, "{slots}");
            let greedy = queue.clone();
            let waiting = tokio::spawn(async move {
                let more = (0..8).map(|_| greedy.acquire("greedy", Duration::from_mins(1)));
                for permit in more {
                    drop(permit.await.unwrap());
                }
            });
            tokio::task::yield_now().await;
            let other = queue.acquire("modest", PATIENCE).await;
            assert!(other.is_some(), "{slots}");
            drop(held);
            waiting.await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_client_that_has_left_is_not_remembered() {
        let queue = Queue::with_slots(4);
        let permit = queue.acquire("one", PATIENCE).await.unwrap();
        assert_eq!(queue.0.clients().len(), 1);
        drop(permit);
        assert!(queue.0.clients().is_empty());
    }
}
