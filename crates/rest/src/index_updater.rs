//! The threads that update the search index after a declaration, a crash, a restored backup, a new format or what another node
//! wrote, and make vectors of what was written, so that no read has to.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use store::stop::Stop;
use store::{Store, StoreError};

/// How often to look for work. A node whose records others write is never further behind than this.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// How long to wait after a failure, which a full disk makes last.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// Updates the index and the vectors until it is dropped.
#[derive(Debug)]
pub struct IndexUpdater {
    stop: Stop,
    threads: Vec<JoinHandle<()>>,
}

/// A kind of work: the name of its thread, a unit of it that says whether there is more, and what its failure means.
struct Work {
    thread: &'static str,
    unit: fn(&dyn Store) -> Result<bool, StoreError>,
    failure: &'static str,
}

const WORK: [Work; 4] = [
    Work {
        thread: "pdpp-index",
        unit: |store| store.tend_index().map(|()| false),
        failure: "the search index cannot be brought up to date",
    },
    Work {
        thread: "pdpp-meaning",
        unit: |store| store.embed_some(),
        failure: "vectors cannot be made of new records",
    },
    Work {
        thread: "pdpp-node",
        unit: |store| store.tend_node().map(|()| false),
        failure: "other nodes cannot be told that this one lives",
    },
    Work {
        thread: "pdpp-copies",
        unit: |store| store.share_index().map(|()| false),
        failure: "no copy of the search index can be kept for new nodes",
    },
];

impl IndexUpdater {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    pub fn start(store: &Arc<dyn Store>) -> io::Result<Self> {
        let mut updater = Self {
            stop: Stop::default(),
            threads: Vec::new(),
        };
        for work in &WORK {
            let (store, stopping) = (Arc::clone(store), updater.stop.clone());
            let thread = thread::Builder::new()
                .name(work.thread.to_owned())
                .spawn(move || update(&*store, work, &stopping))?;
            updater.threads.push(thread);
        }
        Ok(updater)
    }
}

fn update(store: &dyn Store, work: &Work, stop: &Stop) {
    let mut failing = false;
    while !stop.is_asked() {
        let pause = match stop.during(|| (work.unit)(store)) {
            Ok(has_more) => {
                failing = false;
                if has_more {
                    continue;
                }
                POLL_INTERVAL
            }
            Err(StoreError::Stopped) => return,
            Err(error) => {
                if !failing {
                    tracing::error!(cause = %error, "{}", work.failure);
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
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
