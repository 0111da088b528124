//! The queue of passwords to check.
//!
//! Checking a password takes time and memory on purpose, so only few are checked at once. Everyone gets their turn and nobody
//! is sent away, for the one who is could be the owner: how many wait is bounded by the connections that one address may
//! hold. Lanes take turns, so that strangers who send many do not keep the owner waiting; within a lane the first comes first.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

use grants::sign_in::Lane;
use tokio::sync::oneshot;

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

    /// Waits for a slot.
    pub(crate) async fn acquire(&self, lane: Lane) -> PasswordPermit {
        let coming = {
            let mut state = self.state();
            if state.free > 0 {
                state.free -= 1;
                return PasswordPermit(Some(self.clone()));
            }
            state.wait(lane)
        };
        // Who waits is dropped by nobody: the queue lives as long as `self`.
        coming.await.unwrap_or(PasswordPermit(None))
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
        let (lane, mut waiting) = self.waiting.pop_front()?;
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
    async fn lanes_take_turns_and_within_a_lane_the_first_is_first() {
        // TR-06
        let queue = PasswordQueue::with_slots(1);
        let held = queue.acquire(address(1)).await;
        let mut first = begun(&queue, address(1));
        let crowd: Vec<_> = (0..200).map(|_| begun(&queue, address(1))).collect();
        let mut owner = begun(&queue, Lane::Browser("known".to_owned()));
        drop(held);
        let turn = first.try_recv().unwrap();
        assert!(owner.try_recv().is_err());
        drop(turn);
        assert!(owner.try_recv().is_ok(), "after one of the crowd");
        drop(crowd);
    }

    #[tokio::test]
    async fn nobody_who_waits_is_sent_away() {
        // TR-06: whoever shares the owner's address, however many come after.
        let queue = PasswordQueue::with_slots(1);
        let held = queue.acquire(address(1)).await;
        let mut owner = begun(&queue, address(1));
        let mut crowd: Vec<_> = (0..1_000).map(|_| begun(&queue, address(1))).collect();
        drop(held);
        drop(owner.try_recv().unwrap());
        for (place, one) in crowd.iter_mut().enumerate() {
            assert!(one.try_recv().is_ok(), "{place}");
        }
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
