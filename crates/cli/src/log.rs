//! The log of a running server: one JSON line per event on stderr.

use std::io;

use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Writes events of this level and worse from now on.
pub(crate) fn start(level: LevelFilter) {
    let log = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(false)
        // A log that cannot be written must not end the server.
        .log_internal_errors(false)
        .with_max_level(level)
        .with_writer(io::stderr)
        .finish()
        .with(filter_fn(rest::is_logged));
    // Fails only where a log was started before, and then that one goes on.
    let _ = log.try_init();
}
