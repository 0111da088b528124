//! The queue of passwords to check.
//!
//! Checking a password takes time and memory on purpose, so only few are checked at once. None is refused without having
//! waited, for it could be the owner's: whoever sends many holds as many connections meanwhile. The browsers in which the
//! owner has signed in come first; then addresses take turns, and of one address the first is first.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use grants::sign_in::Lane;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long a password waits to be checked.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Bounds how many passwords are checked at once.
#[derive(Debug, Clone)]
pub(crate) struct PasswordQueue(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// Free slots; zero while anything waits.
    free: usize,
    /// Waiting requests, lane by lane in the order of their turns.
    waiting: VecDeque<(Lane, VecDeque<oneshot::Sender<PasswordPermit>>)>,
}

/// The right to check one password; dropping it hands it to the next.
#[derive(Debug)]
pub(crate) struct PasswordPermit(Option<PasswordQueue>);

impl Default for PasswordQueue {
    /// At most half of the processors check passwords.
    fn default() -> Self {
        let processors = available_parallelism().map_or(1, NonZeroUsize::get);
        Self::with_slots(processors.div_ceil(2))
    }
}

impl PasswordQueue {
    fn with_slots(free: usize) -> Self {
        let waiting = VecDeque::new();
        Self(Arc::new(Mutex::new(State { free, waiting })))
    }

    /// Waits for a slot, and gives up after [`LONGEST_WAIT`].
    pub(crate) async fn acquire(&self, lane: Lane) -> Option<PasswordPermit> {
        self.acquire_within(lane, LONGEST_WAIT).await
    }

    async fn acquire_within(&self, lane: Lane, patience: Duration) -> Option<PasswordPermit> {
        let coming = {
            let mut state = self.state();
            if state.free > 0 {
                state.free -= 1;
                return Some(PasswordPermit(Some(self.clone())));
            }
            state.wait(lane)
        };
        timeout(patience, coming).await.ok()?.ok()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a freed slot to the next request that still waits.
    fn release(&self) {
        let mut state = self.state();
        while let Some(next) = state.next() {
            match next.send(PasswordPermit(Some(self.clone()))) {
                Ok(()) => return,
                // The receiver is gone. This permit was never used, so dropping it must not release it again.
                Err(mut turn) => turn.0 = None,
            }
        }
        state.free += 1;
    }
}

impl State {
    fn wait(&mut self, lane: Lane) -> oneshot::Receiver<PasswordPermit> {
        let (turn, coming) = oneshot::channel();
        match self.waiting.iter_mut().find(|(known, _)| *known == lane) {
            Some((_, waiting)) => waiting.push_back(turn),
            None => self.waiting.push_back((lane, VecDeque::from([turn]))),
        }
        coming
    }

    fn next(&mut self) -> Option<oneshot::Sender<PasswordPermit>> {
        let is_known = |(lane, _): &(Lane, _)| matches!(lane, Lane::Browser(_));
        let first = self.waiting.iter().position(is_known).unwrap_or(0);
        let (lane, mut waiting) = self.waiting.remove(first)?;
        let next = waiting.pop_front();
        if !waiting.is_empty() {
            self.waiting.push_back((lane, waiting));
        }
        next
    }
}

impl Drop for PasswordPermit {
    fn drop(&mut self) {
        if let Some(queue) = self.0.take() {
            queue.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u8) -> Lane {
        Lane::from_address([203, 0, 113, n].into())
    }

    /// Begins to wait, and does wait once this returns.
    fn begun(queue: &PasswordQueue, lane: Lane) -> oneshot::Receiver<PasswordPermit> {
        queue.state().wait(lane)
    }

    #[tokio::test]
    async fn a_known_browser_is_first_then_addresses_take_turns() {
        // TR-06
        let queue = PasswordQueue::with_slots(1);
        let held = queue.acquire(address(1)).await;
        let mut first = begun(&queue, address(1));
        let mut crowd: Vec<_> = (0..200).map(|_| begun(&queue, address(1))).collect();
        let mut other = begun(&queue, address(2));
        let mut owner = begun(&queue, Lane::Browser("known".to_owned()));
        drop(held);
        drop(owner.try_recv().unwrap());
        drop(first.try_recv().unwrap());
        drop(other.try_recv().unwrap());
        for (place, one) in crowd.iter_mut().enumerate() {
            assert!(one.try_recv().is_ok(), "{place}");
        }
    }

    #[tokio::test]
    async fn nobody_is_refused_without_having_waited_and_those_who_left_hold_nothing() {
        // TR-06: whoever shares the owner's address, however many there are.
        let queue = PasswordQueue::with_slots(1);
        let held = queue.acquire(address(1)).await;
        let crowd: Vec<_> = (0..1_000).map(|_| begun(&queue, address(1))).collect();
        let patience = Duration::from_millis(50);
        let began = std::time::Instant::now();
        assert!(queue.acquire_within(address(1), patience).await.is_none());
        assert!(began.elapsed() >= patience);
        drop((crowd, held));
        assert_eq!(queue.state().free, 1);
        assert!(queue.acquire(address(1)).await.is_some());
    }

    #[tokio::test]
    async fn a_turn_of_somebody_who_left_is_not_lost() {
        let queue = PasswordQueue::with_slots(1);
        let held = queue.acquire(address(1)).await;
        let gone = begun(&queue, address(2));
        let mut stays = begun(&queue, address(3));
        let given = begun(&queue, address(4));
        drop(gone);
        drop(held);
        drop(stays.try_recv().unwrap());
        // Given but never taken up.
        drop(given);
        assert_eq!(queue.state().free, 1);
        drop(queue.acquire(address(5)).await);
    }
}
