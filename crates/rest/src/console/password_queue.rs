//! The queue of passwords to check.
//!
//! Checking a password takes time and memory on purpose, so only few are checked at once, and strangers who send many
//! must not keep the owner waiting. Lanes take turns; within a lane the newest comes first, because the one who has
//! waited longest has most likely left. Who had no turn in time is told to try again.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use grants::sign_in::Lane;
use tokio::sync::oneshot;

/// How long a request waits for its turn.
const WAIT_LIMIT: Duration = Duration::from_secs(4);
/// The most requests of one lane that wait; the oldest is dropped for a new one.
const MAX_PER_LANE: usize = 64;
/// The most addresses with waiting requests. Known browsers are always admitted.
const MAX_LANES: usize = 1_000;

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

    /// Waits for a slot. `None`: it did not come in time.
    pub(crate) async fn acquire(&self, lane: Lane) -> Option<PasswordPermit> {
        let coming = {
            let mut state = self.state();
            if state.free > 0 {
                state.free -= 1;
                return Some(PasswordPermit(Some(self.clone())));
            }
            state.wait(lane)?
        };
        tokio::time::timeout(WAIT_LIMIT, coming).await.ok()?.ok()
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
    fn wait(&mut self, lane: Lane) -> Option<oneshot::Receiver<PasswordPermit>> {
        let (turn, coming) = oneshot::channel();
        if let Some((_, waiting)) = self.waiting.iter_mut().find(|(known, _)| *known == lane) {
            if waiting.len() >= MAX_PER_LANE {
                waiting.pop_front();
            }
            waiting.push_back(turn);
        } else if self.waiting.len() < MAX_LANES || matches!(lane, Lane::Browser(_)) {
            self.waiting.push_back((lane, VecDeque::from([turn])));
        } else {
            return None;
        }
        Some(coming)
    }

    fn next(&mut self) -> Option<oneshot::Sender<PasswordPermit>> {
        let (lane, mut waiting) = self.waiting.pop_front()?;
        let next = waiting.pop_back();
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
    fn begun(queue: &PasswordQueue, lane: Lane) -> Option<oneshot::Receiver<PasswordPermit>> {
        queue.state().wait(lane)
    }

    #[tokio::test]
    async fn lanes_take_turns_and_within_a_lane_the_newest_is_first() {
        // TR-06
        let queue = PasswordQueue::with_slots(1);
        let mut held = queue.acquire(address(1)).await;
        let mut crowd: Vec<_> = (0..200)
            .map(|_| begun(&queue, address(1)).unwrap())
            .collect();
        let mut owner = begun(&queue, Lane::Browser("known".to_owned())).unwrap();
        let mut newest = crowd.pop().unwrap();
        drop(held.take());
        let second = newest.try_recv().unwrap();
        assert!(owner.try_recv().is_err());
        drop(second);
        assert!(owner.try_recv().is_ok(), "after one of the crowd");
        let waiting = queue
            .state()
            .waiting
            .iter()
            .map(|(_, all)| all.len())
            .sum::<usize>();
        assert!(waiting <= MAX_PER_LANE);
        assert!(
            crowd.first_mut().unwrap().try_recv().is_err(),
            "the oldest made room"
        );
    }

    #[tokio::test]
    async fn a_turn_of_somebody_who_left_is_not_lost() {
        let queue = PasswordQueue::with_slots(1);
        let held = queue.acquire(address(1)).await.unwrap();
        let gone = begun(&queue, address(2)).unwrap();
        let mut stays = begun(&queue, address(3)).unwrap();
        let given = begun(&queue, address(4)).unwrap();
        drop(gone);
        drop(held);
        drop(stays.try_recv().unwrap());
        // Given but never taken up.
        drop(given);
        assert_eq!(queue.state().free, 1);
        assert!(queue.acquire(address(5)).await.is_some());
    }
}
