//! A clock that never goes back: with a clock that is set back, expired grants would be valid again.
//!
//! The latest time seen is kept in a file, and time is never earlier than that. While the machine's clock is behind, time
//! is counted on from there, so that everything that expires still does.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant as Moment;

use contract::time::{Clock, Instant};

use super::directory::write_durably;
use crate::keeping::CountedTime;
use crate::{Result, StoreError};

/// The latest time is written when it is this much later than the one that was, in microseconds.
const WRITTEN_EVERY: i64 = 60_000_000;
/// A clock may be set back by this much without being considered wrong: time stands still until it has caught up.
const STANDS_STILL: i64 = 60_000_000;
/// On drop, a time that is later than the file's by this much is written.
const AT_THE_END: i64 = 1_000_000;

/// A clock that never goes back.
pub(crate) struct KeptClock {
    machine: Arc<dyn Clock>,
    file: PathBuf,
    latest: Mutex<Latest>,
}

struct Latest {
    /// The latest time, and when that was by the monotonic clock.
    time: i64,
    at: Moment,
    written: i64,
    /// Whether there was no file at the beginning.
    is_absent: bool,
    /// Whether the file got lost, until the owner has reset the time.
    was_lost: bool,
}

impl Latest {
    /// The time now, when the machine's clock says this.
    fn advance(&mut self, machine: i64) -> i64 {
        let behind = self.time.saturating_sub(machine);
        if behind > STANDS_STILL {
            let passed = i64::try_from(self.at.elapsed().as_micros()).unwrap_or(i64::MAX);
            self.time = self.time.saturating_add(passed);
        } else {
            self.time = self.time.max(machine);
        }
        self.at = Moment::now();
        self.time
    }
}

impl KeptClock {
    /// Goes on from the time that is in the file.
    pub(crate) fn open(file: PathBuf, machine: Arc<dyn Clock>) -> Result<Self> {
        let (time, was_lost) = match fs::read_to_string(&file) {
            Ok(text) => parse(&text).ok_or_else(|| StoreError::engine(&file, "it should hold the latest time that was seen, and holds something else. If the clock of this machine is right, remove the file"))?,
            Err(error) if error.kind() == ErrorKind::NotFound => (i64::MIN, false),
            Err(error) => return Err(StoreError::io(file, error)),
        };
        let clock = Self {
            machine,
            file,
            latest: Mutex::new(Latest {
                time,
                at: Moment::now(),
                written: time,
                is_absent: time == i64::MIN,
                was_lost,
            }),
        };
        clock.now();
        Ok(clock)
    }

    /// Whether there was no file. In a store that has been written to, it got lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.latest().is_absent
    }

    /// Goes on from the last thing that is known to have happened, and remembers that the file was lost.
    pub(crate) fn resume_after(&self, last: Instant) {
        let mut latest = self.latest();
        latest.time = latest.time.max(last.0);
        latest.at = Moment::now();
        latest.was_lost = true;
        // A disk that cannot be written is reported by other writes.
        let _ = self.write(&mut latest);
    }

    /// Goes on from a time that others have seen, if it is later.
    pub(crate) fn catch_up_with(&self, seen: Instant) {
        let mut latest = self.latest();
        if latest.time < seen.0 {
            latest.time = seen.0;
            latest.at = Moment::now();
        }
    }

    pub(crate) fn now(&self) -> Instant {
        let machine = self.machine.now();
        let mut latest = self.latest();
        let now = latest.advance(machine.0);
        if now.saturating_sub(latest.written) >= WRITTEN_EVERY {
            // A disk that cannot be written is reported by other writes.
            let _ = self.write(&mut latest);
        }
        Instant(now)
    }

    pub(crate) fn time(&self) -> CountedTime {
        CountedTime {
            counted: self.now(),
            machine: self.machine.now(),
            was_lost: self.latest().was_lost,
        }
    }

    pub(crate) fn reset(&self) -> Result<CountedTime> {
        let before = self.time();
        let mut latest = self.latest();
        latest.time = before.machine.0;
        latest.at = Moment::now();
        latest.was_lost = false;
        self.write(&mut latest)?;
        Ok(before)
    }

    fn latest(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, latest: &mut Latest) -> Result<()> {
        // Also after a failure: it is retried in a minute, not at every look at the clock.
        latest.written = latest.time;
        let lost = if latest.was_lost { LOST } else { "" };
        write_durably(&self.file, format!("{}{lost}", latest.time).as_bytes())
    }
}

/// Behind the time in the file, where an earlier file was lost.
const LOST: &str = " lost";

fn parse(text: &str) -> Option<(i64, bool)> {
    let text = text.trim();
    let time = text.strip_suffix(LOST);
    Some((time.unwrap_or(text).parse().ok()?, time.is_some()))
}

impl Clock for KeptClock {
    fn now(&self) -> Instant {
        Self::now(self)
    }
}

impl Drop for KeptClock {
    fn drop(&mut self) {
        let machine = self.machine.now();
        let mut latest = self.latest();
        let now = latest.advance(machine.0);
        if now.saturating_sub(latest.written) >= AT_THE_END {
            let _ = self.write(&mut latest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, Ordering};

    const DAY: i64 = 86_400_000_000;

    #[derive(Clone, Default)]
    struct Set(Arc<AtomicI64>);

    impl Clock for Set {
        fn now(&self) -> Instant {
            Instant(self.0.load(Ordering::Relaxed))
        }
    }

    #[test]
    fn time_does_not_come_back_also_not_after_a_restart() {
        // TR-41: the latest time seen is kept, and the owner can count from the machine's again.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("time");
        let machine = Set::default();
        let set = |day: i64| machine.0.store(day * DAY, Ordering::Relaxed);
        let open = || KeptClock::open(file.clone(), Arc::new(machine.clone())).unwrap();
        set(10);
        assert_eq!(open().now(), Instant(10 * DAY));
        set(9);
        let clock = open();
        let first = clock.now();
        assert!(first.0 >= 10 * DAY, "{first}");
        assert!(clock.time().ahead() >= DAY);
        // It goes on meanwhile.
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(clock.now() > first);
        set(11);
        assert_eq!(clock.now(), Instant(11 * DAY));
        set(9);
        let before = clock.reset().unwrap();
        assert!(before.counted.0 >= 11 * DAY && before.machine.0 == 9 * DAY);
        assert_eq!(clock.now(), Instant(9 * DAY));
        drop(clock);
        assert_eq!(open().now(), Instant(9 * DAY));
    }

    #[test]
    fn a_clock_that_is_set_back_a_little_stands_still() {
        let folder = tempfile::tempdir().unwrap();
        let machine = Set::default();
        machine.0.store(DAY, Ordering::Relaxed);
        let clock = KeptClock::open(folder.path().join("time"), Arc::new(machine.clone()));
        let clock = clock.unwrap();
        machine.0.store(DAY - 5_000_000, Ordering::Relaxed);
        assert_eq!(clock.now(), Instant(DAY));
        assert_eq!(clock.now(), Instant(DAY));
    }

    #[test]
    fn a_file_that_holds_no_time_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("time");
        fs::write(&file, "soon").unwrap();
        let opened = KeptClock::open(file, Arc::new(Set::default()));
        assert!(matches!(opened.err(), Some(StoreError::Engine { .. })));
    }

    #[test]
    fn a_time_that_was_lost_is_counted_on_from_the_last_transaction_and_told() {
        // TR-41
        let folder = tempfile::tempdir().unwrap();
        let machine = Set::default();
        let open = || {
            let options = crate::OpenOptions::new("a test", Arc::new(machine.clone()));
            crate::EmbeddedStore::open(folder.path(), options).unwrap()
        };
        machine.0.store(10 * DAY, Ordering::Relaxed);
        assert!(
            !crate::keeping::Keeping::time(&open()).was_lost,
            "a new directory"
        );
        assert!(!crate::keeping::Keeping::time(&open()).was_lost);
        fs::remove_file(folder.path().join("latest.time")).unwrap();
        machine.0.store(5 * DAY, Ordering::Relaxed);
        for opening in 0..2 {
            let time = crate::keeping::Keeping::time(&open());
            assert!(time.was_lost, "{opening}");
            assert!(time.counted.0 >= 10 * DAY, "{opening}: {:?}", time.counted);
        }
        let store = open();
        crate::keeping::Keeping::reset_time(&store).unwrap();
        drop(store);
        let time = crate::keeping::Keeping::time(&open());
        assert!(!time.was_lost && time.counted.0 < 6 * DAY, "{time:?}");
    }
}
