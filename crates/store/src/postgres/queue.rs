//! The batches that wait on this node to be written, and not more than a few.
//!
//! They would wait for the owner's row anyway, each with a connection that reads could use. So one caller at a time leads: it writes
//! all that wait, as far as they fit one transaction, and everybody gets the outcome of his own.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use contract::id::ConnectionId;

use crate::records::{Applied, Change};
use crate::{Result, StoreError};

/// With more than so many it is better to say at once that they have to come again.
const MOST: usize = 64;
/// Batches are written together up to so many changes; a single one may have more.
const TOGETHER: usize = 10_000;

#[derive(Clone)]
pub(super) struct Batch {
    pub(super) connection: ConnectionId,
    pub(super) changes: Vec<Change>,
}

pub(super) type Outcome = Result<Vec<Applied>>;

#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    /// The number of the next batch.
    next: u64,
    waiting: VecDeque<(u64, Batch)>,
    /// The numbers of those that somebody writes just now.
    written: Vec<u64>,
    outcomes: HashMap<u64, Outcome>,
}

impl Queue {
    /// Waits until the batch is written, perhaps by another caller, unless too many wait already. `write` gives each batch an
    /// outcome.
    pub(super) fn run(
        &self,
        place: &str,
        batch: Batch,
        write: impl Fn(Vec<Batch>) -> Vec<Outcome>,
    ) -> Outcome {
        let mut state = self.lock();
        if state.waiting.len() + state.written.len() >= MOST {
            return Err(StoreError::Contended {
                place: place.to_owned(),
                detail: format!("{MOST} batches wait to be written"),
            });
        }
        let number = state.next;
        state.next += 1;
        state.waiting.push_back((number, batch));
        loop {
            if let Some(outcome) = state.outcomes.remove(&number) {
                return outcome;
            }
            if !state.written.is_empty() {
                let waited = self.ended.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let batches = state.take();
            drop(state);
            let ending = Ending { of: self, place };
            let outcomes = write(batches);
            state = self.lock();
            let numbers = std::mem::take(&mut state.written);
            state.outcomes.extend(numbers.into_iter().zip(outcomes));
            drop(state);
            drop(ending);
            state = self.lock();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The batches that are written next.
    fn take(&mut self) -> Vec<Batch> {
        let (mut batches, mut changes) = (Vec::new(), 0);
        while let Some((number, batch)) = self.waiting.pop_front() {
            changes += batch.changes.len();
            if !batches.is_empty() && changes > TOGETHER {
                self.waiting.push_front((number, batch));
                break;
            }
            self.written.push(number);
            batches.push(batch);
        }
        batches
    }
}

/// Lets those who wait go on, also when writing panics: then nobody knows whether their batches were written.
struct Ending<'a> {
    of: &'a Queue,
    place: &'a str,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let mut state = self.of.lock();
        for number in std::mem::take(&mut state.written) {
            let unknown = StoreError::Unavailable {
                place: self.place.to_owned(),
                detail: "what wrote the batch ended early".to_owned(),
            };
            state.outcomes.insert(number, Err(unknown));
        }
        drop(state);
        self.of.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use contract::key::RecordKey;

    use super::*;
    use crate::records::ChangeOp;

    fn batch(changes: usize) -> Batch {
        let change = Change {
            stream: contract::id::StreamName::parse("messages").unwrap(),
            key: RecordKey::single("one").unwrap(),
            emitted_at: String::new(),
            op: ChangeOp::Delete,
        };
        Batch {
            connection: ConnectionId::parse("cin_000000000001").unwrap(),
            changes: vec![change; changes],
        }
    }

    /// The outcome of a batch tells how many changes it had.
    fn all(batches: Vec<Batch>) -> Vec<Outcome> {
        let outcome = |batch: Batch| Ok(vec![Applied::Added; batch.changes.len()]);
        batches.into_iter().map(outcome).collect()
    }

    #[test]
    fn what_waits_is_written_together_and_one_too_many_is_told_to_come_again() {
        let (queue, writes) = (Queue::default(), AtomicUsize::new(0));
        let (begun, go) = (Barrier::new(2), Barrier::new(2));
        let count = |batches: Vec<Batch>| {
            writes.fetch_add(1, Ordering::SeqCst);
            all(batches)
        };
        let run = |changes| queue.run("db", batch(changes), count);
        thread::scope(|scope| {
            let first = scope.spawn(|| {
                queue.run("db", batch(1), |batches| {
                    begun.wait();
                    go.wait();
                    all(batches)
                })
            });
            begun.wait();
            let others: Vec<_> = (1..MOST)
                .map(|changes| scope.spawn(move || (changes, run(changes))))
                .collect();
            while queue.lock().waiting.len() < MOST - 1 {
                thread::yield_now();
            }
            let refused = run(1).err().unwrap();
            assert!(refused.is_transient(), "{refused}");
            go.wait();
            assert_eq!(first.join().unwrap().unwrap().len(), 1);
            for other in others {
                let (changes, outcome) = other.join().unwrap();
                assert_eq!(outcome.unwrap().len(), changes);
            }
        });
        assert_eq!(writes.load(Ordering::SeqCst), 1);
        assert_eq!(run(3).unwrap().len(), 3);
    }

    #[test]
    fn no_more_is_written_together_than_fits() {
        let mut state = State::default();
        for (number, changes) in [(0, TOGETHER + 1), (1, TOGETHER - 1), (2, 1), (3, 1)] {
            state.waiting.push_back((number, batch(changes)));
        }
        let mut taken = || {
            let batches = state.take();
            batches
                .iter()
                .map(|one| one.changes.len())
                .collect::<Vec<_>>()
        };
        assert_eq!(taken(), [TOGETHER + 1]);
        assert_eq!(taken(), [TOGETHER - 1, 1]);
        assert_eq!(taken(), [1]);
    }

    #[test]
    fn a_write_that_panics_leaves_nobody_waiting() {
        let queue = Queue::default();
        let (begun, go) = (Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            let first = scope.spawn(|| {
                let write = std::panic::AssertUnwindSafe(|| {
                    queue.run("db", batch(1), |_| {
                        begun.wait();
                        go.wait();
                        std::panic::resume_unwind(Box::new(()))
                    })
                });
                std::panic::catch_unwind(write).is_err()
            });
            begun.wait();
            let other = scope.spawn(|| queue.run("db", batch(2), all));
            while queue.lock().waiting.is_empty() {
                thread::yield_now();
            }
            go.wait();
            assert!(first.join().unwrap());
            assert_eq!(other.join().unwrap().unwrap().len(), 2);
        });
    }
}
