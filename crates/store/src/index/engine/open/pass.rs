//! Bringing an index up to date: from memory right after a write, or in a pass over the records.

use std::sync::TryLockError;
use std::sync::atomic::Ordering;

use super::super::{ChangeSource, IndexChange, Versions, rewritten};
use super::{COMMIT_EVERY, OpenIndex, Writing};
use crate::index::truth::Mark;
use crate::{Result, StoreError, stop};

/// How many versions are replayed at a time; the bookmark moves by such steps. Replaying that many takes a moment.
pub(crate) const WINDOW: u64 = 10_000;

impl OpenIndex {
    /// Whether so many acknowledged changes are missing that replaying them takes long.
    pub(crate) fn is_far_behind(&self, newest: u64) -> bool {
        self.building.load(Ordering::Acquire) || newest.saturating_sub(self.staged()) > WINDOW
    }

    /// The version of the last change that was taken, whether readers see it yet or not.
    pub(crate) fn staged(&self) -> u64 {
        self.staged.load(Ordering::Acquire)
    }

    /// Takes changes right after they were acknowledged, if nothing before them is missing. They are committed later. While
    /// a pass is under way nothing is taken: the changes are replayed afterwards, and no write waits.
    ///
    /// An error here is no error of the write, which is safe in the records: the staged work is dropped, and the next
    /// catch-up either replays it or reports what is wrong.
    pub(crate) fn stage<'a>(
        &self,
        before: (u64, Mark),
        (newest, mark): (u64, Mark),
        mut changes: impl Iterator<Item = IndexChange<'a>>,
    ) {
        let _pass = match self.pass.try_lock() {
            Ok(pass) => pass,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let mut writing = self.writing();
        let (version, of) = before;
        if writing.staged != version || (of.is_some() && writing.mark != of) {
            return;
        }
        let mut outcome = changes.try_for_each(|change| self.apply(&mut writing, change));
        self.set_staged(&mut writing, newest, mark);
        if outcome.is_ok() && writing.uncommitted >= COMMIT_EVERY {
            outcome = self.commit(&mut writing);
        }
        if outcome.is_err() {
            self.forget(&mut writing);
        }
    }

    /// Replays missing changes and makes them visible to readers. `progress` is called from time to time.
    ///
    /// When the work is asked to stop, what was replayed until then stays.
    pub(crate) fn catch_up(
        &self,
        source: &dyn ChangeSource,
        progress: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let _pass = self.pass();
        let newest = source.newest()?;
        self.refuse_rewritten(source)?;
        self.building.store(
            newest.saturating_sub(self.staged()) > WINDOW,
            Ordering::Release,
        );
        let outcome = self.replay(newest, source, progress);
        self.building.store(false, Ordering::Release);
        outcome
    }

    /// What was taken must be part of what is replayed.
    fn refuse_rewritten(&self, source: &dyn ChangeSource) -> Result<()> {
        let (staged, mark) = {
            let writing = self.writing();
            (writing.staged, writing.mark.clone())
        };
        if mark.is_some() && mark != source.mark(staged)? {
            return Err(rewritten());
        }
        // Deletions that it has not seen cannot be replayed any more.
        if staged > 0 && staged < source.purged_to()? {
            return Err(rewritten());
        }
        Ok(())
    }

    fn replay(
        &self,
        newest: u64,
        source: &dyn ChangeSource,
        progress: &mut dyn FnMut(u64),
    ) -> Result<()> {
        // A snapshot holds each record once, so an index that starts out empty never meets an earlier form of it.
        let known = self.staged() > 0;
        loop {
            let mut writing = self.writing();
            let stopped = writing.staged < newest && stop::asked();
            // A window is completed even if its caller is gone: others need it as well.
            let outcome = stop::apart(|| {
                if stopped || writing.staged >= newest {
                    return self.commit_staged(&mut writing).map(|()| false);
                }
                self.replay_window(&mut writing, newest, known, source)
                    .map(|()| true)
            });
            match outcome {
                Ok(true) => progress(writing.staged),
                Ok(false) if stopped => return Err(StoreError::Stopped),
                Ok(false) => return Ok(()),
                Err(error) => {
                    self.forget(&mut writing);
                    return Err(error);
                }
            }
        }
    }

    fn replay_window(
        &self,
        writing: &mut Writing,
        newest: u64,
        known: bool,
        source: &dyn ChangeSource,
    ) -> Result<()> {
        let after = writing.staged;
        let upto = newest.min(after + WINDOW);
        let versions = Versions { after, upto };
        source.replay(versions, known, &mut |change| self.apply(writing, change))?;
        self.set_staged(writing, upto, source.mark(upto)?);
        // The first window is committed at once, so that there is something to find.
        if writing.uncommitted >= COMMIT_EVERY || self.committed() == 0 {
            self.commit(writing)?;
        }
        Ok(())
    }

    fn commit_staged(&self, writing: &mut Writing) -> Result<()> {
        if writing.staged > self.committed() {
            self.commit(writing)?;
        }
        Ok(())
    }

    fn set_staged(&self, writing: &mut Writing, version: u64, mark: Mark) {
        writing.staged = version;
        writing.mark = mark;
        self.staged.store(version, Ordering::Release);
    }
}
