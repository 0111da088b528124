//! Runs blocking reads on a few threads of its own, as many as the machine can keep busy.
//!
//! The runtime's own blocking threads do not fit: it starts a thread whenever none is idle, dozens for a few dozen clients
//! even where only a few may work at once, and each of them keeps memory of its own.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::{self, available_parallelism};

use store::stop::Stop;
use tokio::sync::oneshot;

/// More than the processors, because some reads wait for the disk.
const PER_PROCESSOR: usize = 4;
/// For systems that do not say how many processors there are.
const UNKNOWN: usize = 4;

static POOL: LazyLock<BlockingPool> = LazyLock::new(|| {
    let processors = available_parallelism().map_or(UNKNOWN, usize::from);
    BlockingPool::new(processors * PER_PROCESSOR)
});

/// The work panicked, or no thread could be started for it.
#[derive(Debug, thiserror::Error)]
#[error("the work did not come to its end")]
pub struct Unfinished;

/// Runs work that may block for a short time, in the order of arrival. It goes on when the caller is dropped.
///
/// It must not wait for other work that is run here.
///
/// # Errors
///
/// When the work panics.
pub async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Unfinished> {
    POOL.run(work).await
}

/// Runs work that may block for as long as a caller waits for it. When the caller is dropped, because of a timeout or
/// because the client disconnected, the work is asked to stop; work that has not begun by then never begins.
///
/// # Errors
///
/// When the work panics.
pub(crate) async fn run_while_awaited<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Unfinished> {
    POOL.run_while_awaited(work).await
}

/// Asks work to stop when its caller is dropped.
struct Awaiting(Stop);

impl Drop for Awaiting {
    fn drop(&mut self) {
        self.0.ask();
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// Threads that take work in the order of arrival. They start on demand and stay.
struct BlockingPool {
    most: usize,
    waiting: Mutex<Queue>,
    arrived: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

impl BlockingPool {
    fn new(most: usize) -> Self {
        Self {
            most,
            waiting: Mutex::default(),
            arrived: Condvar::new(),
        }
    }

    async fn run<T: Send + 'static>(
        &'static self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unfinished> {
        let (done, outcome) = oneshot::channel();
        self.hand_over(Box::new(move || {
            let _ = done.send(work());
        }))?;
        outcome.await.map_err(|_| Unfinished)
    }

    async fn run_while_awaited<T: Send + 'static>(
        &'static self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unfinished> {
        let stop = Stop::default();
        let _awaiting = Awaiting(stop.clone());
        let work = move || (!stop.is_asked()).then(|| stop.during(work));
        self.run(work).await?.ok_or(Unfinished)
    }

    fn hand_over(&'static self, job: Job) -> Result<(), Unfinished> {
        let mut waiting = self.waiting();
        waiting.jobs.push_back(job);
        if waiting.idle < waiting.jobs.len() && waiting.threads < self.most {
            let started = thread::Builder::new()
                .name("pdpp-read".to_owned())
                .spawn(|| self.take_part());
            match started {
                Ok(_) => waiting.threads += 1,
                // Another thread will take the work, only later.
                Err(_) if waiting.threads > 0 => {}
                Err(error) => {
                    tracing::error!(cause = %error, "no thread could be started to read");
                    waiting.jobs.pop_back();
                    return Err(Unfinished);
                }
            }
        }
        self.arrived.notify_one();
        Ok(())
    }

    fn take_part(&self) {
        loop {
            let job = self.next();
            // The panic hook reports it, and the caller sees the closed channel.
            let _ = catch_unwind(AssertUnwindSafe(job));
        }
    }

    fn next(&self) -> Job {
        let mut waiting = self.waiting();
        loop {
            if let Some(job) = waiting.jobs.pop_front() {
                return job;
            }
            waiting.idle += 1;
            waiting = self
                .arrived
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
            waiting.idle -= 1;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Queue> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    fn pool(most: usize) -> &'static BlockingPool {
        Box::leak(Box::new(BlockingPool::new(most)))
    }

    fn runtime() -> tokio::runtime::Runtime {
        let builder = tokio::runtime::Builder::new_current_thread();
        { builder }.build().unwrap()
    }

    #[test]
    fn many_at_once_are_all_answered_by_few() {
        let pool = pool(3);
        let seen = Arc::new(Mutex::new(HashSet::new()));
        runtime().block_on(async {
            let mut asked = Vec::new();
            for number in 0..30 {
                let seen = Arc::clone(&seen);
                asked.push(tokio::spawn(pool.run(move || {
                    seen.lock().unwrap().insert(thread::current().id());
                    thread::sleep(Duration::from_millis(1));
                    number
                })));
            }
            for (number, asked) in asked.into_iter().enumerate() {
                assert_eq!(asked.await.unwrap().unwrap(), number);
            }
        });
        let threads = seen.lock().unwrap().len();
        assert!((1..=3).contains(&threads), "{threads}");
    }

    #[test]
    fn one_after_the_other_needs_one_thread() {
        let pool = pool(3);
        runtime().block_on(async {
            for number in 0..50 {
                assert_eq!(pool.run(move || number).await.unwrap(), number);
                // The answer is there before the thread is idle again.
                while pool.waiting().idle == 0 {
                    thread::yield_now();
                }
            }
        });
        assert_eq!(pool.waiting().threads, 1);
    }

    // TR-03: the work of a caller that leaves is stopped, begun or not.
    #[test]
    fn work_that_nobody_waits_for_is_stopped_and_if_it_waits_itself_never_begins() {
        let pool = pool(1);
        let began = Arc::new(Mutex::new(Vec::new()));
        let note = |name: &'static str| {
            let began = Arc::clone(&began);
            move || began.lock().unwrap().push(name)
        };
        let (first, second, third) = (note("first"), note("second"), note("third"));
        let (stopped, was_stopped) = oneshot::channel();
        runtime().block_on(async {
            let running = tokio::spawn(pool.run_while_awaited(move || {
                first();
                // As a search looks from time to time.
                while !store::stop::asked() {
                    thread::yield_now();
                }
                stopped.send(()).unwrap();
            }));
            while began.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
            let waiting = tokio::spawn(pool.run_while_awaited(second));
            while pool.waiting().jobs.is_empty() {
                tokio::task::yield_now().await;
            }
            for asked in [waiting, running] {
                asked.abort();
                assert!(asked.await.unwrap_err().is_cancelled());
            }
            was_stopped.await.unwrap();
            pool.run_while_awaited(third).await.unwrap();
        });
        assert_eq!(*began.lock().unwrap(), ["first", "third"]);
    }

    #[test]
    fn work_that_panics_ends_neither_its_thread_nor_later_work() {
        let pool = pool(1);
        runtime().block_on(async {
            for _ in 0..3 {
                let panicked = pool.run(|| panic!("on purpose")).await;
                assert!(matches!(panicked, Err(Unfinished)));
            }
            assert_eq!(pool.run(|| 7).await.unwrap(), 7);
        });
        assert_eq!(pool.waiting().threads, 1);
    }
}
