//! Whose password is checked next.
//!
//! Checking one takes time and memory on purpose, so only few are checked at once, and strangers who send many must not
//! keep the owner waiting. Lanes take turns; within a lane the newest comes first, because whoever waits longest there
//! has most likely left. Who had no turn in time is told to try again.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use grants::sign_in::Lane;
use tokio::sync::oneshot;

/// How long anybody waits for a turn.
const PATIENCE: Duration = Duration::from_secs(4);
/// As many of one lane may wait; the oldest makes room.
const MOST_OF_LANE: usize = 64;
/// As many addresses may have somebody waiting. Known browsers always may.
const MOST_LANES: usize = 1_000;

/// Turns at the password.
#[derive(Debug, Clone)]
pub(crate) struct Turns(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// How many more may be checked at once. While somebody waits, none.
    free: usize,
    /// Those who wait, lane by lane in the order of their turns.
    waiting: VecDeque<(Lane, VecDeque<oneshot::Sender<Turn>>)>,
}

/// A turn, until it is dropped: then the next one has it.
#[derive(Debug)]
pub(crate) struct Turn(Option<Turns>);

impl Default for Turns {
    /// Half of the processors check passwords at most.
    fn default() -> Self {
        let processors = available_parallelism().map_or(1, NonZeroUsize::get);
        Self::with_places(processors.div_ceil(2))
    }
}

impl Turns {
    fn with_places(free: usize) -> Self {
        let waiting = VecDeque::new();
        Self(Arc::new(Mutex::new(State { free, waiting })))
    }

    /// Waits for a turn. Nothing: it did not come in time.
    pub(crate) async fn turn(&self, lane: Lane) -> Option<Turn> {
        let coming = {
            let mut state = self.state();
            if state.free > 0 {
                state.free -= 1;
                return Some(Turn(Some(self.clone())));
            }
            state.wait(lane)?
        };
        tokio::time::timeout(PATIENCE, coming).await.ok()?.ok()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a turn that ended to the next who still waits.
    fn pass_on(&self) {
        let mut state = self.state();
        while let Some(next) = state.next() {
            match next.send(Turn(Some(self.clone()))) {
                Ok(()) => return,
                // They left. This turn never was, so it must not be passed on when it is dropped.
                Err(mut turn) => turn.0 = None,
            }
        }
        state.free += 1;
    }
}

impl State {
    fn wait(&mut self, lane: Lane) -> Option<oneshot::Receiver<Turn>> {
        let (turn, coming) = oneshot::channel();
        if let Some((_, waiting)) = self.waiting.iter_mut().find(|(known, _)| *known == lane) {
            if waiting.len() >= MOST_OF_LANE {
                waiting.pop_front();
            }
            waiting.push_back(turn);
        } else if self.waiting.len() < MOST_LANES || matches!(lane, Lane::Browser(_)) {
            self.waiting.push_back((lane, VecDeque::from([turn])));
        } else {
            return None;
        }
        Some(coming)
    }

    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        let (lane, mut waiting) = self.waiting.pop_front()?;
        let next = waiting.pop_back();
        if !waiting.is_empty() {
            self.waiting.push_back((lane, waiting));
        }
        next
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turns) = self.0.take() {
            turns.pass_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u8) -> Lane {
        Lane::of([203, 0, 113, n].into())
    }

    /// Begins to wait, and does wait once this returns.
    fn begun(turns: &Turns, lane: Lane) -> Option<oneshot::Receiver<Turn>> {
        turns.state().wait(lane)
    }

    #[tokio::test]
    async fn lanes_take_turns_and_within_a_lane_the_newest_is_first() {
        // TR-06
        let turns = Turns::with_places(1);
        let mut held = turns.turn(address(1)).await;
        let mut crowd: Vec<_> = (0..200)
            .map(|_| begun(&turns, address(1)).unwrap())
            .collect();
        let mut owner = begun(&turns, Lane::Browser("known".to_owned())).unwrap();
        let mut newest = crowd.pop().unwrap();
        drop(held.take());
        let second = newest.try_recv().unwrap();
        assert!(owner.try_recv().is_err());
        drop(second);
        assert!(owner.try_recv().is_ok(), "after one of the crowd");
        let waiting = turns
            .state()
            .waiting
            .iter()
            .map(|(_, all)| all.len())
            .sum::<usize>();
        assert!(waiting <= MOST_OF_LANE);
        assert!(
            crowd.first_mut().unwrap().try_recv().is_err(),
            "the oldest made room"
        );
    }

    #[tokio::test]
    async fn a_turn_of_somebody_who_left_is_not_lost() {
        let turns = Turns::with_places(1);
        let held = turns.turn(address(1)).await.unwrap();
        let gone = begun(&turns, address(2)).unwrap();
        let mut stays = begun(&turns, address(3)).unwrap();
        let given = begun(&turns, address(4)).unwrap();
        drop(gone);
        drop(held);
        drop(stays.try_recv().unwrap());
        // Given but never taken up.
        drop(given);
        assert_eq!(turns.state().free, 1);
        assert!(turns.turn(address(5)).await.is_some());
    }
}
