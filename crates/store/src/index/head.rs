//! The newest version, which every read asks for once: where other nodes write too, that is a round trip.
//!
//! A read runs on one thread from its beginning to its end. So the answer belongs to the thread while it runs.

use std::cell::RefCell;

use super::RecordIndex;
use super::truth::Mark;
use crate::Result;

/// The version of the last acknowledged change, with its mark.
pub(super) type Head = (u64, Mark);

thread_local! {
    /// What the read on this thread was told, and the index it reads.
    static TOLD: RefCell<Option<(usize, Head)>> = const { RefCell::new(None) };
}

/// Restores what the read around this one was told, also when the work panics.
struct Restore(Option<(usize, Head)>);

impl Drop for Restore {
    fn drop(&mut self) {
        TOLD.set(self.0.take());
    }
}

impl RecordIndex {
    /// Asks for the newest version and runs a read with it. Sources that another node changed are known from here on.
    pub(super) fn with_head<T>(&self, read: impl FnOnce() -> Result<T>) -> Result<T> {
        let head = self.truth.head()?;
        let _restore = Restore(TOLD.replace(Some((self.number(), head))));
        read()
    }

    /// The newest version as this read was told, or as it is now where no read runs.
    pub(super) fn head(&self) -> Result<Head> {
        let told = TOLD.with_borrow(|told| {
            let told = told.as_ref().filter(|(index, _)| *index == self.number());
            told.map(|(_, head)| head.clone())
        });
        told.map_or_else(|| self.truth.head(), Ok)
    }

    /// Tells one index from another while both are there.
    fn number(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}
