//! Cancellation: a caller asks work to stop, and the work checks for it.
//!
//! A read runs on one thread from its beginning to its end. So its stop belongs to the thread while it runs, and every loop
//! that may take long checks it, however deep it lies.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Result, StoreError};

/// Only when a caller asks.
const NEVER: u64 = u64::MAX;

thread_local! {
    static CURRENT: RefCell<Option<Stop>> = const { RefCell::new(None) };
}

/// Asks work to stop. Clones stop the same work.
#[derive(Debug, Clone)]
pub struct Stop(Arc<State>);

#[derive(Debug)]
struct State {
    /// How many more checks find that nobody asked.
    left: AtomicU64,
    looks: AtomicU64,
}

impl Default for Stop {
    fn default() -> Self {
        Self::after(NEVER)
    }
}

impl Stop {
    /// Stops by itself after so many checks: a bound on work that does not depend on how fast it is done.
    pub fn after(looks: u64) -> Self {
        Self(Arc::new(State {
            left: AtomicU64::new(looks),
            looks: AtomicU64::new(0),
        }))
    }

    pub fn ask(&self) {
        self.0.left.store(0, Ordering::Release);
    }

    /// Whether the work was asked to stop. This counts as a check.
    pub fn is_asked(&self) -> bool {
        self.0.looks.fetch_add(1, Ordering::Relaxed);
        let left = self.0.left.load(Ordering::Acquire);
        if left != 0 && left != NEVER {
            // A concurrent `ask` must not be undone: the exchange then fails.
            let _ =
                self.0
                    .left
                    .compare_exchange(left, left - 1, Ordering::AcqRel, Ordering::Relaxed);
        }
        left == 0
    }

    pub fn looks(&self) -> u64 {
        self.0.looks.load(Ordering::Relaxed)
    }

    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        with(Some(self.clone()), work)
    }
}

/// Runs work that must complete although the work around it is asked to stop, because others need it as well.
pub(crate) fn apart<T>(work: impl FnOnce() -> T) -> T {
    with(None, work)
}

fn with<T>(stop: Option<Stop>, work: impl FnOnce() -> T) -> T {
    /// Restores the previous stop, also when the work panics.
    struct Restore(Option<Stop>);
    impl Drop for Restore {
        fn drop(&mut self) {
            let before = self.0.take();
            CURRENT.with(|current| *current.borrow_mut() = before);
        }
    }
    let _restore = Restore(CURRENT.with(|current| current.replace(stop)));
    work()
}

/// Whether the work of this thread was asked to stop.
pub fn asked() -> bool {
    CURRENT.with(|current| current.borrow().as_ref().is_some_and(Stop::is_asked))
}

/// Ends the work of this thread where it was asked to stop.
///
/// # Errors
///
/// [`StoreError::Stopped`] then.
pub fn check() -> Result<()> {
    if asked() {
        Err(StoreError::Stopped)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_stopped_by_its_own_stop_only() {
        let (one, other) = (Stop::default(), Stop::after(2));
        one.ask();
        assert!(!asked());
        one.during(|| {
            assert!(asked());
            assert!(matches!(check(), Err(StoreError::Stopped)));
            apart(|| assert!(!asked()));
            other.during(|| assert!(!asked() && !asked() && asked()));
            assert!(asked());
        });
        assert!(check().is_ok());
        assert_eq!((one.looks(), other.looks()), (3, 3));
    }
}
