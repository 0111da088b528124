//! Where reading blocks: on threads of the runtime, and on no more of them at once than the machine can keep busy.
//!
//! Without a bound the runtime starts a thread for whatever finds none idle, hundreds for a few dozen clients, and each
//! keeps memory of its own.

use std::sync::LazyLock;
use std::thread::available_parallelism;

use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};

/// More than the processors, because some wait for the disk.
const PER_PROCESSOR: usize = 4;
/// Where the system does not tell how many processors there are.
const UNKNOWN: usize = 4;

static PLACES: LazyLock<Semaphore> = LazyLock::new(|| {
    let processors = available_parallelism().map_or(UNKNOWN, usize::from);
    Semaphore::new(processors * PER_PROCESSOR)
});

/// Runs what may block for a short time, after what came before it.
///
/// It must not wait for other work that is run here.
pub async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    run_in(&PLACES, work).await
}

async fn run_in<T: Send + 'static>(
    places: &'static Semaphore,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    let place = places.acquire().await;
    spawn_blocking(move || {
        // Held by the work itself: whoever waits for it may leave, and it goes on.
        let _place = place;
        work()
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn many_at_once_are_all_answered_by_few() {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.build().unwrap();
        let most = 3;
        let places: &'static Semaphore = Box::leak(Box::new(Semaphore::new(most)));
        let busy = Arc::new(Mutex::new((HashSet::new(), 0)));
        runtime.block_on(async {
            let mut asked = Vec::new();
            for number in 0..most * 10 {
                let busy = Arc::clone(&busy);
                asked.push(tokio::spawn(run_in(places, move || {
                    let mut now = busy.lock().unwrap();
                    now.0.insert(number);
                    now.1 = now.1.max(now.0.len());
                    drop(now);
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    busy.lock().unwrap().0.remove(&number);
                    number
                })));
            }
            for (number, asked) in asked.into_iter().enumerate() {
                assert_eq!(asked.await.unwrap().unwrap(), number);
            }
        });
        let most_at_once = busy.lock().unwrap().1;
        assert!((1..=most).contains(&most_at_once), "{most_at_once}");
        assert_eq!(places.available_permits(), most);
    }
}
