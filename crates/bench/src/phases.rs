//! The two phases of a run: writing the corpus batch by batch, and reading it in every way that is
//! measured. What writing measured is kept beside the data, so that a later run can only read.

mod notes;
mod read;
mod write;

use std::path::{Path, PathBuf};

use store::WordTokenizer;

use crate::{RawPaths, RawSettings};
pub(crate) use read::read;
pub(crate) use write::{Written, ingest_rate, write, write_served};

/// Where each side keeps its data inside the folder of a run.
struct Places {
    folder: PathBuf,
}

impl Places {
    fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    fn ours(&self) -> PathBuf {
        self.folder.join("ours")
    }

    /// The raw engines with our words: what every read is compared with.
    fn raw(&self) -> RawPaths {
        RawPaths::new(self.folder.join("raw"))
    }

    /// Other variants of the raw engines: only written, then removed.
    fn passing(&self) -> RawPaths {
        RawPaths::new(self.folder.join("raw-passing"))
    }
}

/// The raw engines with our own analysis: equal words, so equal ranks and equal work.
fn same_words() -> RawSettings {
    RawSettings {
        tokenizer: WordTokenizer::default().into(),
        ..RawSettings::default()
    }
}

/// The same, with the index committed as seldom as our store does it: the strictest comparison.
fn seldom_committed() -> RawSettings {
    RawSettings {
        index_commit_every: 250_000,
        ..same_words()
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "sizes and counts stay far below 2^52"
)]
pub(crate) fn float(value: u64) -> f64 {
    value as f64
}
