//! The batches that wait on this node to be written: one after the other, and not more than a few.
//!
//! They would wait for the owner's row anyway, each with a connection that reads could use.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Result, StoreError};

/// With more than so many it is better to say at once that they have to come again.
const MOST: usize = 64;

#[derive(Default)]
pub(super) struct Queue {
    waiting: AtomicUsize,
    turn: Mutex<()>,
}

/// The turn to write, until it is dropped.
pub(super) struct Turn<'a> {
    _turn: MutexGuard<'a, ()>,
    _waiting: Waiting<'a>,
}

struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Queue {
    /// Waits until it is this batch's turn, unless too many wait already.
    pub(super) fn turn(&self, place: &str) -> Result<Turn<'_>> {
        let before = self.waiting.fetch_add(1, Ordering::AcqRel);
        let waiting = Waiting(&self.waiting);
        if before >= MOST {
            return Err(StoreError::Contended {
                place: place.to_owned(),
                detail: format!("{MOST} batches wait to be written"),
            });
        }
        Ok(Turn {
            _turn: self.turn.lock().unwrap_or_else(PoisonError::into_inner),
            _waiting: waiting,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn batches_take_turns_and_one_too_many_is_told_to_come_again() {
        let queue = Queue::default();
        let first = queue.turn("db").unwrap();
        thread::scope(|scope| {
            for _ in 1..MOST {
                scope.spawn(|| drop(queue.turn("db").unwrap()));
            }
            while queue.waiting.load(Ordering::Acquire) < MOST {
                thread::yield_now();
            }
            let refused = queue.turn("db").err().unwrap();
            assert!(refused.is_transient(), "{refused}");
            drop(first);
        });
        assert_eq!(queue.waiting.load(Ordering::Acquire), 0);
        assert!(queue.turn("db").is_ok());
    }
}
