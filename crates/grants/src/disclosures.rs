//! The disclosure log as readers use it: noting an entry takes no time, and it is on disk within a second.
//!
//! One thread gathers what arrives for a moment and writes it in one transaction, with the times tokens were last used.
//! An answer that cannot be logged is not given. The store tells how much can be written whatever becomes of the disk; what
//! is noted within that returns at once, and anything beyond waits until it is on disk, or is refused.

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
/// How long a reader waits for its entry to be on disk, where that is not certain.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often what waits outside the database is looked at while nothing is noted.
const IDLE: Duration = Duration::from_secs(5);
/// An entry of a page of a hundred records: with less room than this the log is not taken for well again.
const LARGE_ENTRY_BYTES: u64 = 16 * 1024;
/// What a batch, and the use of a token, take beside the entries, at most.
const OVERHEAD_BYTES: u64 = 256;

/// Entries that could not be written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{waiting} disclosures are not in the log yet: {detail}")]
pub struct LogError {
    pub waiting: usize,
    pub detail: String,
    /// The same without names of files, for clients.
    pub in_public: String,
}

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
    work: Condvar,
    /// A write succeeded or failed.
    done: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Noted>,
    /// What is noted and not on disk, and how much of that can be written in any case.
    unwritten_bytes: u64,
    room: u64,
    uses: BTreeMap<String, Instant>,
    /// Counts everything noted, and everything of it that is on disk.
    noted: u64,
    written: u64,
    /// Counts failed writes, so that a flush notices the next one.
    failures: u64,
    failure: Option<Failure>,
    urgent: bool,
    closing: bool,
}

/// Why a batch could not be written, for the owner and for clients.
#[derive(Clone)]
struct Failure {
    detail: String,
    in_public: String,
}

struct Noted {
    number: u64,
    bytes: u64,
    disclosure: Disclosure,
}

/// What is known once a batch is on disk.
struct Written {
    /// How many bytes can be written after it in any case.
    room: u64,
    /// Whether the next entry can be written too.
    is_well: bool,
}

struct Batch {
    /// Whether the one before it could not be written.
    follows_failure: bool,
    noted: Vec<Noted>,
    uses: Vec<TokenUse>,
    upto: u64,
}

impl DisclosureLog {
    pub fn start(store: Arc<dyn Store>) -> Result<Self, std::io::Error> {
        let room = store.log_room();
        let write = move |batch: &Batch| {
            let disclosures: Vec<Disclosure> = batch
                .noted
                .iter()
                .map(|noted| noted.disclosure.clone())
                .collect();
            store.log_disclosures(&disclosures, &batch.uses)?;
            // That nothing had to be written says nothing about the next.
            let is_known = !batch.follows_failure || !disclosures.is_empty();
            Ok(Written {
                room: store.log_room(),
                is_well: is_known || store.can_log(LARGE_ENTRY_BYTES),
            })
        };
        Self::writing(room, write)
    }

    fn writing(
        room: u64,
        write: impl Fn(&Batch) -> Result<Written, StoreError> + Send + 'static,
    ) -> Result<Self, std::io::Error> {
        let queue = Queue {
            room,
            ..Queue::default()
        };
        let shared = Arc::new(Shared {
            queue: Mutex::new(queue),
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

    /// Notes what one call disclosed. Waits only where it is not certain that it can be written, and if it could not be, the
    /// answer must not be given.
    pub fn note(&self, disclosure: Disclosure) -> Result<(), LogError> {
        let text = serde_json::to_string(&disclosure);
        let bytes = text.map_or(0, |text| text.len() as u64) + OVERHEAD_BYTES;
        let mut queue = self.shared.queue();
        let number = queue.noted + 1;
        queue.waiting.push(Noted {
            number,
            bytes,
            disclosure,
        });
        queue.unwritten_bytes += bytes;
        let is_certain = queue.failure.is_none() && queue.unwritten_bytes <= queue.room;
        let enough = queue.waiting.len() == BATCH;
        queue.urgent |= !is_certain;
        let failures = queue.failures;
        self.shared.noted(queue, enough || !is_certain);
        if is_certain {
            return Ok(());
        }
        self.wait_until_written(number, failures)
    }

    fn wait_until_written(&self, number: u64, failures: u64) -> Result<(), LogError> {
        let began = Moment::now();
        let mut queue = self.shared.queue();
        while queue.written < number {
            let left = PATIENCE.saturating_sub(began.elapsed());
            if queue.failures > failures || left.is_zero() {
                let error = queue.error();
                // One that is being written at this moment may be logged although nothing was shown.
                queue.forget(number);
                return Err(error);
            }
            queue = self.shared.wait_done_for(queue, left);
        }
        Ok(())
    }

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

    fn wait_done_for<'a>(
        &self,
        queue: MutexGuard<'a, Queue>,
        at_most: Duration,
    ) -> MutexGuard<'a, Queue> {
        self.done
            .wait_timeout(queue, at_most)
            .unwrap_or_else(PoisonError::into_inner)
            .0
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
    fn write_all(&self, write: impl Fn(&Batch) -> Result<Written, StoreError>) {
        while let Some(batch) = self.next_batch() {
            let outcome = write(&batch);
            let mut queue = self.queue();
            match outcome {
                Ok(written) => {
                    queue.written = batch.upto;
                    queue.room = written.room;
                    queue.unwritten_bytes = queue.waiting.iter().map(|noted| noted.bytes).sum();
                    if written.is_well {
                        queue.failure = None;
                    }
                }
                Err(error) => {
                    queue.put_back(batch, &error);
                    self.done.notify_all();
                    if queue.closing {
                        return;
                    }
                    if !queue.urgent {
                        queue = self.wait_work(queue, RETRY);
                    }
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
            let began = Moment::now();
            // A server whose log is not well may be asked nothing that would be noted.
            let idle = if queue.failure.is_some() { RETRY } else { IDLE };
            queue = self.wait_work(queue, idle);
            if began.elapsed() >= idle && !queue.closing {
                // What waits outside the database may have a way into it now.
                return Some(queue.take());
            }
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
            follows_failure: self.failure.is_some(),
            noted: std::mem::take(&mut self.waiting),
            uses: std::mem::take(&mut self.uses)
                .into_iter()
                .map(|(token_id, at)| TokenUse { token_id, at })
                .collect(),
            upto: self.noted,
        }
    }

    /// Entries that could not be written go before those that came meanwhile.
    fn put_back(&mut self, batch: Batch, error: &StoreError) {
        let later = std::mem::replace(&mut self.waiting, batch.noted);
        self.waiting.extend(later);
        for used in batch.uses {
            self.uses.entry(used.token_id).or_insert(used.at);
        }
        self.failures += 1;
        self.failure = Some(Failure {
            detail: error.to_string(),
            in_public: error.in_public(),
        });
    }

    fn forget(&mut self, number: u64) {
        if let Some(at) = self.waiting.iter().position(|noted| noted.number == number) {
            self.unwritten_bytes = self
                .unwritten_bytes
                .saturating_sub(self.waiting.remove(at).bytes);
        }
    }

    fn error(&self) -> LogError {
        let failure = self.failure.clone().unwrap_or_else(|| Failure {
            detail: "writing them takes too long".to_owned(),
            in_public: "writing it takes too long".to_owned(),
        });
        LogError {
            waiting: self.waiting.len(),
            detail: failure.detail,
            in_public: failure.in_public,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::id::ClientId;
    use std::sync::atomic::{AtomicBool, Ordering};

    const PLENTY: u64 = 1_000_000;

    /// A log whose disk is full until told otherwise, of which so much is certain, and what reached the disk.
    fn on_a_full_disk(room: u64) -> (DisclosureLog, Arc<AtomicBool>, Arc<Mutex<Vec<Instant>>>) {
        let full = Arc::new(AtomicBool::new(true));
        let disk = Arc::new(Mutex::new(Vec::new()));
        let (is_full, to) = (Arc::clone(&full), Arc::clone(&disk));
        let log = DisclosureLog::writing(room, move |batch| {
            if is_full.load(Ordering::Relaxed) {
                return Err(StoreError::Full { path: "x".into() });
            }
            let entries = batch.noted.iter().map(|noted| noted.disclosure.at);
            to.lock().unwrap().extend(entries);
            Ok(Written {
                room: if room > 0 { PLENTY } else { 0 },
                is_well: true,
            })
        });
        (log.unwrap(), full, disk)
    }

    fn call(number: i64) -> Disclosure {
        Disclosure {
            bytes: None,
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
        let (log, full, disk) = on_a_full_disk(PLENTY);
        (0..3).for_each(|number| log.note(call(number)).unwrap());
        log.note_use("tok_1", Instant(7));
        assert_eq!(log.flush().unwrap_err().waiting, 3);
        assert!(log.trouble().unwrap().detail.contains("no space left"));
        full.store(false, Ordering::Relaxed);
        (3..5).for_each(|number| log.note(call(number)).unwrap());
        log.flush().unwrap();
        assert!(log.trouble().is_none());
        assert_eq!(*disk.lock().unwrap(), numbers(5));
        log.close().unwrap();
    }

    #[test]
    fn closing_says_what_could_not_be_written() {
        let (log, _, disk) = on_a_full_disk(PLENTY);
        log.note(call(0)).unwrap();
        assert_eq!(log.close().unwrap_err().waiting, 1);
        assert!(disk.lock().unwrap().is_empty());
    }

    #[test]
    fn what_is_not_certain_to_be_logged_is_refused_until_it_can_be() {
        // TR-36: on disk within a second, or the read waits; on a full disk it is refused with the cause.
        let (log, full, disk) = on_a_full_disk(0);
        let began = Moment::now();
        for number in 0..3 {
            let refused = log.note(call(number)).unwrap_err();
            assert!(refused.detail.contains("no space left"), "{refused}");
        }
        assert!(began.elapsed() < 3 * PATIENCE);
        assert!(log.trouble().is_some());
        full.store(false, Ordering::Relaxed);
        log.note(call(3)).unwrap();
        assert_eq!(
            *disk.lock().unwrap(),
            [Instant(3)],
            "on disk before it is shown"
        );
        assert!(log.trouble().is_none());
        log.close().unwrap();
        assert_eq!(
            *disk.lock().unwrap(),
            [Instant(3)],
            "what was refused was not shown"
        );
    }

    #[test]
    fn it_is_well_again_by_itself_where_nothing_waits() {
        let (log, full, _) = on_a_full_disk(0);
        log.note(call(0)).unwrap_err();
        full.store(false, Ordering::Relaxed);
        let began = Moment::now();
        while log.trouble().is_some() {
            assert!(began.elapsed() < 20 * RETRY);
            std::thread::sleep(RETRY / 10);
        }
        log.close().unwrap();
    }

    #[test]
    fn after_a_failure_nothing_is_taken_for_certain() {
        let (log, full, disk) = on_a_full_disk(PLENTY);
        log.note(call(0)).unwrap();
        log.flush().unwrap_err();
        log.note(call(1)).unwrap_err();
        full.store(false, Ordering::Relaxed);
        log.note(call(2)).unwrap();
        log.close().unwrap();
        assert_eq!(*disk.lock().unwrap(), [Instant(0), Instant(2)]);
    }
}
