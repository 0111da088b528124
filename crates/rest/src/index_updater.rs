//! The thread that updates the search index after a declaration, a crash, a restored backup or a new format, so that
//! no read has to.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use store::stop::Stop;
use store::{Store, StoreError};

/// How often to look for work.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How long to wait after a failure, which a full disk makes last.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// Updates the index until it is dropped.
#[derive(Debug)]
pub struct IndexUpdater {
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl IndexUpdater {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    pub fn start(store: Arc<dyn Store>) -> io::Result<Self> {
        let stop = Stop::default();
        let stopping = stop.clone();
        let thread = thread::Builder::new()
            .name("pdpp-index".to_owned())
            .spawn(move || update(&*store, &stopping))?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

fn update(store: &dyn Store, stop: &Stop) {
    let mut failing = false;
    while !stop.is_asked() {
        let pause = match stop.during(|| store.tend_index()) {
            Ok(()) => {
                failing = false;
                POLL_INTERVAL
            }
            Err(StoreError::Stopped) => return,
            Err(error) => {
                if !failing {
                    tracing::error!(cause = %error, "the search index cannot be brought up to date");
                }
                failing = true;
                RETRY_INTERVAL
            }
        };
        thread::park_timeout(pause);
    }
}

impl Drop for IndexUpdater {
    /// Waits for the unit of work in progress; finished work is kept.
    fn drop(&mut self) {
        self.stop.ask();
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
