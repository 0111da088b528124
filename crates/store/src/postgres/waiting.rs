//! Waiting for what the asynchronous libraries do, from any thread.
//!
//! They have a small runtime of their own here. A caller polls on its own thread and parks; the runtime only moves bytes and
//! keeps time. So a call works from any thread, also from one of another runtime, and never waits for a thread of ours to
//! become free.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use tokio::runtime::{EnterGuard, Runtime};

/// The runtime. It is taken when this is dropped, which may happen where a runtime must not wait for its threads.
pub(super) struct Waiting(Option<Runtime>);

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Waiting {
    pub(super) fn start() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("pdpp-postgres")
            .enable_all()
            .build()?;
        Ok(Self(Some(runtime)))
    }

    /// Lets what is made or dropped meanwhile use the runtime.
    pub(super) fn enter(&self) -> Option<EnterGuard<'_>> {
        self.0.as_ref().map(Runtime::enter)
    }

    /// Runs a future to its end on this thread.
    pub(super) fn wait<F: Future>(&self, future: F) -> F::Output {
        let _context = self.enter();
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(future);
        loop {
            match future.as_mut().poll(&mut context) {
                Poll::Ready(output) => return output,
                Poll::Pending => thread::park(),
            }
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
