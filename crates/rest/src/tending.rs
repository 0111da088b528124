//! The thread that brings the index to where the records are, whoever left it behind: a declaration that anybody sent, a
//! process that was killed, a backup that was restored, a new format. So no read has to.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use store::stop::Stop;
use store::{Store, StoreError};

/// How often it is looked whether there is anything to do.
const LOOK: Duration = Duration::from_millis(500);
/// How long it is waited when the work fails, which a full disk makes it do for long.
const AFTER_FAILURE: Duration = Duration::from_secs(10);

/// Tends the index until it is dropped.
#[derive(Debug)]
pub struct IndexTending {
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl IndexTending {
    /// Begins at once.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    pub fn start(store: Arc<dyn Store>) -> io::Result<Self> {
        let stop = Stop::default();
        let told = stop.clone();
        let thread = thread::Builder::new()
            .name("pdpp-index".to_owned())
            .spawn(move || tend(&*store, &told))?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

fn tend(store: &dyn Store, stop: &Stop) {
    let mut failing = false;
    while !stop.is_asked() {
        let pause = match stop.during(|| store.tend_index()) {
            Ok(()) => {
                failing = false;
                LOOK
            }
            Err(StoreError::Stopped) => return,
            Err(error) => {
                if !failing {
                    tracing::error!(cause = %error, "the search index cannot be brought up to date");
                }
                failing = true;
                AFTER_FAILURE
            }
        };
        thread::park_timeout(pause);
    }
}

impl Drop for IndexTending {
    /// Waits for the piece of work under way; what is done by then stays.
    fn drop(&mut self) {
        self.stop.ask();
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
