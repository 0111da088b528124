//! How long a connection waits for somebody to take what is sent: an answer is held in memory until it is taken.

use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;

/// Waits for a reader who takes nothing, but no longer than this at a time.
pub(crate) struct Patience {
    most: Option<Duration>,
    /// Runs while nothing is taken.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Patience {
    /// Without a time it waits for ever.
    pub(crate) fn of(most: Option<Duration>) -> Self {
        Self {
            most,
            waiting: None,
        }
    }

    /// What an attempt to send comes to.
    pub(crate) fn after<T>(
        &mut self,
        context: &mut Context<'_>,
        sent: Poll<Result<T>>,
    ) -> Poll<Result<T>> {
        let Some(most) = self.most.filter(|_| sent.is_pending()) else {
            self.waiting = None;
            return sent;
        };
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(most)));
        waiting.as_mut().poll(context).map(|()| {
            Err(Error::new(
                ErrorKind::TimedOut,
                "whoever reads has taken nothing for too long",
            ))
        })
    }
}
