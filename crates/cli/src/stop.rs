//! The signals that ask a process to end, for commands that must clean up first.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Hears the signals. From then on they do nothing else.
pub(crate) struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    /// Begins to listen, in the runtime that is entered.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal; gives the exit code that says which it was.
    pub(crate) async fn signalled(&mut self) -> u8 {
        let which = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
        };
        // As shells count them.
        128 + u8::try_from(which.as_raw_value()).unwrap_or_default()
    }
}
