//! The log of a running server: one JSON line per event on stderr. Who does not read it keeps no request waiting, and what fails
//! again and again does not fill it.

mod lines;
mod repeats;

use std::io;
use std::sync::Arc;
use std::time::Instant;

use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use self::lines::Lines;
use self::repeats::{Judged, PERIOD, Repeats};

/// What the log says of itself.
const OWN: &str = "pdpp::log";

/// The log, until it is dropped: then what waits is written, if somebody reads it.
pub(crate) struct Log(Arc<Lines>);

/// Writes events of this level and worse from now on.
pub(crate) fn start(level: LevelFilter) -> io::Result<Log> {
    let (lines, repeats) = (Arc::new(Lines::default()), Arc::new(Repeats::default()));
    let made = Arc::clone(&lines);
    let log = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(false)
        // A log that cannot be written must not end the server.
        .log_internal_errors(false)
        .with_max_level(level)
        .with_writer(move || lines::Writer(Arc::clone(&made)))
        .finish()
        .with(filter_fn(rest::is_logged))
        .with(Judged(Arc::clone(&repeats)));
    // Fails only where a log was started before, and then that one goes on.
    let _ = log.try_init();
    let log = Log(Arc::clone(&lines));
    let write = move || {
        lines.write_to(&mut io::stderr(), PERIOD, |left_out, is_last| {
            if left_out > 0 {
                tracing::warn!(target: OWN, left_out, "lines were left out: nobody read the log in time");
            }
            for again in repeats.due(Instant::now(), is_last) {
                tracing::warn!(target: OWN, left_out = again.left_out, of = again.text, "the same again, and left out");
            }
        });
    };
    std::thread::Builder::new()
        .name("pdpp-log".to_owned())
        .spawn(write)?;
    Ok(log)
}

impl Drop for Log {
    fn drop(&mut self) {
        self.0.end();
    }
}
