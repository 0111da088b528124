//! The lines that wait to be written. Whoever logs never waits: where a pipe is full, or a disk, lines are left out and counted.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Some thousands of lines.
const MOST_BYTES: usize = 1024 * 1024;
/// How long the end of the program waits for somebody to read what waits.
const LAST: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Lines {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    left_out: u64,
    is_ending: bool,
    has_ended: bool,
}

impl Lines {
    fn add(&self, line: &[u8]) {
        let mut state = self.lock();
        if state.waiting.len() + line.len() > MOST_BYTES {
            state.left_out += 1;
            return;
        }
        let is_first = state.waiting.is_empty();
        state.waiting.extend_from_slice(line);
        drop(state);
        if is_first {
            self.changed.notify_all();
        }
    }

    /// Writes what is added until [`Lines::end`]. `told` hears after each write, and at least after every `period`, how many lines
    /// were left out and whether it is the last time; what it adds is written too.
    pub(super) fn write_to(
        &self,
        out: &mut impl Write,
        period: Duration,
        told: impl Fn(u64, bool),
    ) {
        let mut was_last = false;
        loop {
            let (text, left_out, is_last) = self.take(period);
            // Nobody is left to be told of a log that cannot be written.
            let _ = out.write_all(&text);
            if was_last && text.is_empty() {
                break;
            }
            if !was_last {
                told(left_out, is_last);
            }
            was_last = is_last;
        }
        self.lock().has_ended = true;
        self.changed.notify_all();
    }

    /// What waits, and how many lines were left out after it.
    fn take(&self, period: Duration) -> (Vec<u8>, u64, bool) {
        let state = self.lock();
        let waited = self.changed.wait_timeout_while(state, period, |state| {
            state.waiting.is_empty() && !state.is_ending
        });
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let left_out = std::mem::take(&mut state.left_out);
        let is_last = state.is_ending;
        (std::mem::take(&mut state.waiting), left_out, is_last)
    }

    /// Lets the writing end, and waits for it, but not for ever.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.is_ending = true;
        self.changed.notify_all();
        let ended = self
            .changed
            .wait_timeout_while(state, LAST, |state| !state.has_ended);
        drop(ended);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an event is written to: one call for each line.
pub(super) struct Writer(pub(super) Arc<Lines>);

impl Write for Writer {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.add(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::thread;
    use std::time::Instant;

    use super::*;

    const PERIOD: Duration = Duration::from_millis(10);

    #[test]
    fn a_log_that_nobody_reads_keeps_nobody_waiting_and_says_how_much_it_left_out() {
        let (mut reader, mut pipe) = io::pipe().unwrap();
        let lines = Arc::new(Lines::default());
        let writing = Arc::clone(&lines);
        let writer = thread::spawn(move || {
            writing.write_to(&mut pipe, PERIOD, |left_out, _| {
                if left_out > 0 {
                    writing.add(format!("left out {left_out}\n").as_bytes());
                }
            });
        });
        let line = format!("{}\n", "x".repeat(999));
        // More than wait and than fit a pipe.
        let added = 3 * MOST_BYTES / line.len();
        for _ in 0..added {
            lines.add(line.as_bytes());
        }
        let asked = Instant::now();
        lines.end();
        assert!(asked.elapsed() < LAST * 5);
        let mut told = String::new();
        reader.read_to_string(&mut told).unwrap();
        writer.join().unwrap();
        let (mut written, mut left_out) = (0, 0);
        for line in told.lines() {
            match line.strip_prefix("left out ") {
                Some(number) => left_out += number.parse::<usize>().unwrap(),
                None => written += 1,
            }
        }
        assert!(left_out > 0);
        assert_eq!(written + left_out, added);
    }

    #[test]
    fn what_waits_at_the_end_is_written_and_also_what_is_told_then() {
        let lines = Lines::default();
        lines.add(b"one\n");
        let mut out = Vec::new();
        thread::scope(|scope| {
            scope.spawn(|| lines.end());
            lines.write_to(&mut out, PERIOD, |_, is_last| {
                if is_last {
                    lines.add(b"last\n");
                }
            });
        });
        assert_eq!(String::from_utf8(out).unwrap(), "one\nlast\n");
    }
}
