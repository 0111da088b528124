//! A timeout for clients that do not read: the response is held in memory until they do.

use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;

/// Limits how long writes may make no progress.
pub(crate) struct WriteTimeout {
    limit: Option<Duration>,
    /// Runs while no bytes are taken.
    timer: Option<Pin<Box<Sleep>>>,
}

impl WriteTimeout {
    /// `None` waits forever.
    pub(crate) fn new(limit: Option<Duration>) -> Self {
        Self { limit, timer: None }
    }

    pub(crate) fn check<T>(
        &mut self,
        context: &mut Context<'_>,
        sent: Poll<Result<T>>,
    ) -> Poll<Result<T>> {
        let Some(limit) = self.limit.filter(|_| sent.is_pending()) else {
            self.timer = None;
            return sent;
        };
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        timer.as_mut().poll(context).map(|()| {
            Err(Error::new(
                ErrorKind::TimedOut,
                "whoever reads has taken nothing for too long",
            ))
        })
    }
}
