//! How far an import is: a bar for people, a line per durable batch for those who ask.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{HumanCount, ProgressBar};
use ingest::ImportReport;

use crate::output::Output;

/// Tells how far an import is.
pub(super) struct Progress {
    output: Output,
    bar: ProgressBar,
    /// Bytes of the files before, and of this one.
    before: Cell<u64>,
    current: Cell<u64>,
}

impl Progress {
    pub(super) fn new(output: Output, total: Option<u64>) -> Self {
        Self {
            output,
            bar: output.bar(total),
            before: Cell::new(0),
            current: Cell::new(0),
        }
    }

    /// A batch is durable.
    pub(super) fn acknowledged(&self, report: &ImportReport, consumed: &AtomicU64) {
        self.current.set(consumed.load(Ordering::Relaxed));
        self.bar
            .set_position(self.before.get() + self.current.get());
        self.bar
            .set_message(format!("{} records", HumanCount(report.read)));
        if self.output.is_verbose() {
            self.bar
                .suspend(|| self.output.detail(&format!("acknowledged {}", report.read)));
        }
    }

    /// A file is done.
    pub(super) fn next_file(&self) {
        self.before.set(self.before.get() + self.current.take());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
