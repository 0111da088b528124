//! The line in which requests wait for their turn.
//!
//! A server with more callers than processors makes all of them wait, and what counts is where. Let in all at once, each
//! waits again at every step, behind the steps of all others, and keeps its memory meanwhile; whoever takes more steps
//! waits longer. So a few are answered at a time and the others wait once, in the order they came.
//!
//! No client has all the places: what one asks beyond its share waits for its own answers, not in front of others.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// More than the processors, so that none is idle while an answer is on its way from one step to the next.
const PER_PROCESSOR: usize = 2;

/// Places for those who are being answered.
#[derive(Debug, Clone)]
pub(crate) struct Line(Arc<Places>);

#[derive(Debug)]
struct Places {
    all: Arc<Semaphore>,
    /// How many of them one client may have.
    share: usize,
    /// The shares of those who are here.
    clients: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _held: OwnedSemaphorePermit,
    own: Option<OwnedSemaphorePermit>,
    client: String,
    places: Arc<Places>,
}

impl Default for Line {
    fn default() -> Self {
        let processors = available_parallelism().map_or(1, NonZeroUsize::get);
        Self::with_places(processors * PER_PROCESSOR)
    }
}

impl Line {
    fn with_places(places: usize) -> Self {
        // A quarter is left for others, one place at least.
        let others = (places / 4).max(1);
        Self(Arc::new(Places {
            all: Arc::new(Semaphore::new(places)),
            share: places.saturating_sub(others).max(1),
            clients: Mutex::default(),
        }))
    }

    /// Waits for a place, but not for longer than this. First for one of the client's own, which keeps nobody else from
    /// anything.
    pub(crate) async fn place(&self, client: &str, patience: Duration) -> Option<Place> {
        let turn = async {
            let own = self.0.share_of(client).acquire_owned().await.ok()?;
            let held = Arc::clone(&self.0.all).acquire_owned().await.ok()?;
            Some(Place {
                _held: held,
                own: Some(own),
                client: client.to_owned(),
                places: Arc::clone(&self.0),
            })
        };
        let place = tokio::time::timeout(patience, turn).await.ok().flatten();
        if place.is_none() {
            self.0.forget(client);
        }
        place
    }
}

impl Places {
    fn share_of(&self, client: &str) -> Arc<Semaphore> {
        let mut clients = self.clients();
        let known = clients.entry(client.to_owned());
        Arc::clone(known.or_insert_with(|| Arc::new(Semaphore::new(self.share))))
    }

    /// Forgets a client of whom nobody is here or waits.
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

impl Drop for Place {
    fn drop(&mut self) {
        self.own = None;
        self.places.forget(&self.client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn only_so_many_have_a_place_and_the_next_gets_it_when_one_leaves() {
        let line = Line::with_places(2);
        let first = line.place("one", PATIENCE).await.unwrap();
        let _second = line.place("two", PATIENCE).await.unwrap();
        assert!(line.place("three", PATIENCE).await.is_none());
        let (third, ()) = tokio::join!(line.place("three", PATIENCE), async { drop(first) });
        assert!(third.is_some());
    }

    // TR-03: eight costly requests of one client leave places for another.
    #[tokio::test]
    async fn one_client_never_has_all_the_places() {
        for places in [2, 3, 4, 16, 64] {
            let line = Line::with_places(places);
            let mut held = Vec::new();
            while let Some(place) = line.place("greedy", PATIENCE).await {
                held.push(place);
            }
            assert!(!held.is_empty() && held.len() < places, "{places}");
            let greedy = line.clone();
            let waiting = tokio::spawn(async move {
                let more = (0..8).map(|_| greedy.place("greedy", Duration::from_mins(1)));
                for place in more {
                    drop(place.await.unwrap());
                }
            });
            tokio::task::yield_now().await;
            let other = line.place("modest", PATIENCE).await;
            assert!(other.is_some(), "{places}");
            drop(held);
            waiting.await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_client_that_has_left_is_not_remembered() {
        let line = Line::with_places(4);
        let place = line.place("one", PATIENCE).await.unwrap();
        assert_eq!(line.0.clients().len(), 1);
        drop(place);
        assert!(line.0.clients().is_empty());
    }
}
