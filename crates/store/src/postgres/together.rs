//! One query for everybody who asks at the same time. Whoever asks is answered by a query that began after that, so nobody
//! misses what was committed before.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::Result;

pub(super) struct Together<T> {
    state: Mutex<State<T>>,
    ended: Condvar,
}

struct State<T> {
    /// How many queries have begun, and how many of them have ended.
    begun: u64,
    ended: u64,
    /// What the last one answered; nothing where it failed.
    answer: Option<T>,
}

impl<T> Default for Together<T> {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                begun: 0,
                ended: 0,
                answer: None,
            }),
            ended: Condvar::new(),
        }
    }
}

impl<T: Clone> Together<T> {
    pub(super) fn ask(&self, query: impl FnOnce() -> Result<T>) -> Result<T> {
        let mut state = self.lock();
        // The one under way may have begun too early.
        let wanted = state.begun + 1;
        while state.begun != state.ended && state.ended < wanted {
            state = self
                .ended
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if state.ended >= wanted {
            if let Some(answer) = state.answer.clone() {
                return Ok(answer);
            }
            // After a failure everybody asks alone.
            drop(state);
            return query();
        }
        state.begun += 1;
        state.answer = None;
        drop(state);
        let ending = Ending { of: self };
        let answer = query();
        self.lock().answer = answer.as_ref().ok().cloned();
        drop(ending);
        answer
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets those who wait go on, also when the query panics.
struct Ending<'a, T: Clone> {
    of: &'a Together<T>,
}

impl<T: Clone> Drop for Ending<'_, T> {
    fn drop(&mut self) {
        let mut state = self.of.lock();
        state.ended = state.begun;
        drop(state);
        self.of.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;
    use crate::StoreError;

    #[test]
    fn who_asks_during_a_query_is_answered_by_the_next_one_and_all_of_them_by_the_same() {
        let (together, asked) = (Together::default(), AtomicU64::new(0));
        let (begun, go) = (Barrier::new(2), Barrier::new(2));
        let next = || Ok(asked.fetch_add(1, Ordering::SeqCst));
        thread::scope(|scope| {
            let first = scope.spawn(|| {
                together.ask(|| {
                    begun.wait();
                    go.wait();
                    next()
                })
            });
            begun.wait();
            let others: Vec<_> = (0..8).map(|_| scope.spawn(|| together.ask(next))).collect();
            // None of them is answered before the first one ends.
            assert!(others.iter().all(|other| !other.is_finished()));
            go.wait();
            assert_eq!(first.join().unwrap().unwrap(), 0);
            for other in others {
                assert!(other.join().unwrap().unwrap() > 0);
            }
        });
        assert!(asked.load(Ordering::SeqCst) <= 9);
        let failed = together.ask(|| Err(StoreError::Stopped));
        assert!(failed.is_err());
        assert!(together.ask(next).is_ok());
    }
}
