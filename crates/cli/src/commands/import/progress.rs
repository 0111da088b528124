//! How far an import is: a bar for people, a line per durable batch for those who ask.

use indicatif::{HumanCount, ProgressBar};
use rest::owner::wire::ImportProgress;

use crate::output::Output;

pub(super) struct Progress {
    output: Output,
    bar: ProgressBar,
}

impl Progress {
    pub(super) fn new(output: Output, total: Option<u64>) -> Self {
        Self {
            output,
            bar: output.bar(total),
        }
    }

    /// A batch is durable, or all are.
    pub(super) fn update(&mut self, how_far: ImportProgress) {
        if how_far.indexing {
            self.bar.finish_and_clear();
            self.bar = self.output.spinner("indexing");
            return;
        }
        self.bar.set_position(how_far.bytes);
        self.bar
            .set_message(format!("{} records", HumanCount(how_far.read)));
        if self.output.is_verbose() {
            self.bar.suspend(|| {
                self.output
                    .detail(&format!("acknowledged {}", how_far.read));
            });
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
