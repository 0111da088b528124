//! The disclosure log as readers use it: noting an entry takes no time, and it is on disk within a second.
//!
//! One thread gathers entries for a moment and writes them in one transaction, with the times tokens were last used. While
//! the store cannot be written, entries are kept and the write is retried; when too many wait, readers wait too, because an
//! answer that cannot be logged is not given.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant as Moment};

use contract::time::Instant;
use store::grants::{ChainCheck, Disclosure, TokenUse};
use store::{Store, StoreError};
use thiserror::Error;

/// How long entries are gathered. With the write itself it stays well under the promised second.
const GATHER: Duration = Duration::from_millis(250);
/// How long to wait after a write that failed.
const RETRY: Duration = Duration::from_millis(500);
/// A batch of this size is written at once.
const BATCH: usize = 1_000;
/// How many entries may wait before readers wait too.
const CAPACITY: usize = 10_000;

/// Entries that could not be written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{waiting} disclosures are not in the log yet: {detail}")]
pub struct LogError {
    /// How many entries wait.
    pub waiting: usize,
    /// The store's error.
    pub detail: String,
}

/// Recomputes the chain of the log.
pub fn verify(store: &dyn Store) -> Result<ChainCheck, StoreError> {
    store.check_disclosures()
}

/// A handle to the disclosure log. Dropping it writes the rest; [`DisclosureLog::close`] also reports a failure to do so.
pub struct DisclosureLog {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

struct Shared {
    queue: Mutex<Queue>,
    /// There is work.
    work: Condvar,
    /// A write succeeded or failed.
    done: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Disclosure>,
    uses: BTreeMap<String, Instant>,
    /// Counts everything noted, and everything of it that is on disk.
    noted: u64,
    written: u64,
    /// Counts failed writes, so that a flush notices the next one.
    failures: u64,
    failure: Option<String>,
    urgent: bool,
    closing: bool,
}

/// Whether a batch is on disk.
type Written = Result<(), StoreError>;

/// What one transaction writes.
struct Batch {
    disclosures: Vec<Disclosure>,
    uses: Vec<TokenUse>,
    upto: u64,
}

impl DisclosureLog {
    /// Starts the writing thread.
    pub fn start(store: Arc<dyn Store>) -> Result<Self, std::io::Error> {
        Self::writing(move |batch| store.log_disclosures(&batch.disclosures, &batch.uses))
    }

    fn writing(write: impl Fn(&Batch) -> Written + Send + 'static) -> Result<Self, std::io::Error> {
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue::default()),
            work: Condvar::new(),
            done: Condvar::new(),
        });
        let seen = Arc::clone(&shared);
        let writer = std::thread::Builder::new()
            .name("disclosures".to_owned())
            .spawn(move || seen.write_all(write))?;
        Ok(Self {
            shared,
            writer: Some(writer),
        })
    }

    /// Notes what one call disclosed. Blocks only while too many entries wait.
    pub fn note(&self, disclosure: Disclosure) {
        let mut queue = self.shared.queue();
        while queue.waiting.len() >= CAPACITY {
            queue = self.shared.wait_done(queue);
        }
        queue.waiting.push(disclosure);
        let full = queue.waiting.len() == BATCH;
        self.shared.noted(queue, full);
    }

    /// Notes that a token was presented.
    pub fn note_use(&self, token_id: &str, at: Instant) {
        let mut queue = self.shared.queue();
        match queue.uses.get_mut(token_id) {
            Some(latest) => *latest = at.max(*latest),
            None => drop(queue.uses.insert(token_id.to_owned(), at)),
        }
        self.shared.noted(queue, false);
    }

    /// Returns when everything noted before is on disk, or when writing it fails.
    pub fn flush(&self) -> Result<(), LogError> {
        let mut queue = self.shared.queue();
        let (target, failures) = (queue.noted, queue.failures);
        while queue.written < target && queue.failures == failures {
            queue.urgent = true;
            self.shared.work.notify_one();
            queue = self.shared.wait_done(queue);
        }
        if queue.written < target {
            return Err(queue.error());
        }
        Ok(())
    }

    /// The error that keeps entries waiting, while it lasts.
    pub fn trouble(&self) -> Option<LogError> {
        let queue = self.shared.queue();
        queue.failure.is_some().then(|| queue.error())
    }

    /// Writes the rest and ends, or reports that it could not be written.
    pub fn close(mut self) -> Result<(), LogError> {
        self.end();
        let queue = self.shared.queue();
        if queue.written < queue.noted {
            return Err(queue.error());
        }
        Ok(())
    }

    fn end(&mut self) {
        self.shared.queue().closing = true;
        self.shared.work.notify_one();
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has written what it could; what it left behind shows in the counts.
            let _ = writer.join();
        }
    }
}

impl Drop for DisclosureLog {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what was noted, and wakes the writer if it sleeps or has enough for a batch.
    fn noted(&self, mut queue: MutexGuard<'_, Queue>, enough: bool) {
        queue.noted += 1;
        let first = queue.noted - queue.written == 1;
        drop(queue);
        if first || enough {
            self.work.notify_one();
        }
    }

    fn wait_done<'a>(&self, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        self.done
            .wait(queue)
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_work<'a>(
        &self,
        queue: MutexGuard<'a, Queue>,
        at_most: Duration,
    ) -> MutexGuard<'a, Queue> {
        self.work
            .wait_timeout(queue, at_most)
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }

    /// Writes batch after batch until the log is closed and empty, or closed and not writable.
    fn write_all(&self, write: impl Fn(&Batch) -> Written) {
        while let Some(batch) = self.next_batch() {
            let outcome = write(&batch);
            let mut queue = self.queue();
            match outcome {
                Ok(()) => {
                    queue.written = batch.upto;
                    queue.failure = None;
                }
                Err(error) => {
                    queue.put_back(batch, &error);
                    self.done.notify_all();
                    if queue.closing {
                        return;
                    }
                    queue = self.wait_work(queue, RETRY);
                }
            }
            drop(queue);
            self.done.notify_all();
        }
    }

    fn next_batch(&self) -> Option<Batch> {
        let mut queue = self.queue();
        while queue.is_empty() {
            if queue.closing {
                return None;
            }
            queue = self
                .work
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let started = Moment::now();
        while !queue.closing && !queue.urgent && queue.waiting.len() < BATCH {
            let left = GATHER.saturating_sub(started.elapsed());
            if left.is_zero() {
                break;
            }
            queue = self.wait_work(queue, left);
        }
        Some(queue.take())
    }
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.uses.is_empty()
    }

    fn take(&mut self) -> Batch {
        self.urgent = false;
        Batch {
            disclosures: std::mem::take(&mut self.waiting),
            uses: std::mem::take(&mut self.uses)
                .into_iter()
                .map(|(token_id, at)| TokenUse { token_id, at })
                .collect(),
            upto: self.noted,
        }
    }

    /// Entries that could not be written go before those that came meanwhile.
    fn put_back(&mut self, batch: Batch, error: &StoreError) {
        let later = std::mem::replace(&mut self.waiting, batch.disclosures);
        self.waiting.extend(later);
        for used in batch.uses {
            self.uses.entry(used.token_id).or_insert(used.at);
        }
        self.failures += 1;
        self.failure = Some(error.to_string());
    }

    fn error(&self) -> LogError {
        LogError {
            waiting: self.waiting.len(),
            detail: self
                .failure
                .clone()
                .unwrap_or_else(|| "the log was closed".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::id::ClientId;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// A log whose disk is full until the flag is cleared, and what reached the disk.
    fn on_a_full_disk() -> (DisclosureLog, Arc<AtomicBool>, Arc<Mutex<Vec<Instant>>>) {
        let full = Arc::new(AtomicBool::new(true));
        let disk = Arc::new(Mutex::new(Vec::new()));
        let (is_full, to) = (Arc::clone(&full), Arc::clone(&disk));
        let log = DisclosureLog::writing(move |batch| {
            if is_full.load(Ordering::Relaxed) {
                return Err(StoreError::Full { path: "x".into() });
            }
            let entries = batch.disclosures.iter().map(|disclosure| disclosure.at);
            to.lock().unwrap().extend(entries);
            Ok(())
        });
        (log.unwrap(), full, disk)
    }

    fn call(number: i64) -> Disclosure {
        Disclosure {
            at: Instant(number),
            grant_ids: Vec::new(),
            client_id: ClientId::parse("agent").unwrap(),
            operation: "search".to_owned(),
            records: Vec::new(),
            fields: Vec::new(),
        }
    }

    fn numbers(upto: i64) -> Vec<Instant> {
        (0..upto).map(Instant).collect()
    }

    #[test]
    fn what_cannot_be_written_is_kept_in_order_and_written_later() {
        let (log, full, disk) = on_a_full_disk();
        (0..3).for_each(|number| log.note(call(number)));
        log.note_use("tok_1", Instant(7));
        assert_eq!(log.flush().unwrap_err().waiting, 3);
        assert!(log.trouble().unwrap().detail.contains("no space left"));
        (3..5).for_each(|number| log.note(call(number)));
        full.store(false, Ordering::Relaxed);
        log.flush().unwrap();
        assert!(log.trouble().is_none());
        assert_eq!(*disk.lock().unwrap(), numbers(5));
        log.close().unwrap();
    }

    #[test]
    fn closing_says_what_could_not_be_written() {
        let (log, _, disk) = on_a_full_disk();
        log.note(call(0));
        assert_eq!(log.close().unwrap_err().waiting, 1);
        assert!(disk.lock().unwrap().is_empty());
    }

    #[test]
    fn readers_wait_rather_than_go_unlogged() {
        let (log, full, disk) = on_a_full_disk();
        let count = i64::try_from(CAPACITY + BATCH).unwrap();
        let noted = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..count).for_each(|number| log.note(call(number)));
                noted.store(true, Ordering::Relaxed);
            });
            std::thread::sleep(Duration::from_millis(300));
            assert!(!noted.load(Ordering::Relaxed));
            full.store(false, Ordering::Relaxed);
        });
        log.close().unwrap();
        assert_eq!(*disk.lock().unwrap(), numbers(count));
    }
}
