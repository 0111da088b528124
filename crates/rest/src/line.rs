//! The line in which requests wait for their turn.
//!
//! A server with more callers than processors makes all of them wait, and what counts is where. Let in all at once, each
//! waits again at every step, behind the steps of all others, and keeps its memory meanwhile; whoever takes more steps
//! waits longer. So a few are answered at a time and the others wait once, in the order they came.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// More than the processors, so that none is idle while an answer is on its way from one step to the next.
const PER_PROCESSOR: usize = 2;

/// Places for those who are being answered.
#[derive(Debug, Clone)]
pub(crate) struct Line(Arc<Semaphore>);

/// A place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _held: OwnedSemaphorePermit,
}

impl Default for Line {
    fn default() -> Self {
        let processors = available_parallelism().map_or(1, NonZeroUsize::get);
        Self::with_places(processors * PER_PROCESSOR)
    }
}

impl Line {
    fn with_places(places: usize) -> Self {
        Self(Arc::new(Semaphore::new(places)))
    }

    /// Waits for a place, but not for longer than this.
    pub(crate) async fn place(&self, patience: Duration) -> Option<Place> {
        let turn = Arc::clone(&self.0).acquire_owned();
        let held = tokio::time::timeout(patience, turn).await.ok()?.ok()?;
        Some(Place { _held: held })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_so_many_have_a_place_and_the_next_gets_it_when_one_leaves() {
        let line = Line::with_places(2);
        let patience = Duration::from_millis(20);
        let first = line.place(patience).await.unwrap();
        let _second = line.place(patience).await.unwrap();
        assert!(line.place(patience).await.is_none());
        let (third, ()) = tokio::join!(line.place(patience), async { drop(first) });
        assert!(third.is_some());
    }
}
