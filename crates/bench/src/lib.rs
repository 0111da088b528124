//! `pdpp bench`: a made-up corpus of known shape, the store and the raw engines doing the same work
//! on it in one run, and their figures side by side as ratios.

mod contender;
mod corpus;
mod error;
mod measure;
mod phases;
mod raw;

use std::io::Write;
use std::path::{Path, PathBuf};

pub use contender::{Contender, Place, Question, Window};
pub use corpus::{Corpus, CorpusRecord, FOLDERS, LONGEST_BODY, PROBES, Probe, ProbeKind, Probes};
pub use error::BenchError;
pub use measure::{
    Figure, Measurement, Repetition, Report, Unit, Work, anonymous_memory, compare, cpu_time,
    folder_size,
};
pub use raw::{
    RawAggregate, RawFilter, RawGroups, RawHit, RawPaths, RawPipeline, RawPosition, RawQuery,
    RawReader, RawRecord, RawSettings,
};

/// The declaration of the corpus: connector `bench`, stream `messages`.
pub const DECLARATION: &str = include_str!("declaration.json");

/// What a bench run is asked to do.
#[derive(Debug, Clone)]
pub struct BenchOptions {
    /// Records in the corpus.
    pub records: u64,
    /// Seed of the corpus.
    pub seed: u64,
    /// Records in a batch.
    pub batch: usize,
    /// Where the data is written; it stays there, and a second run over the same folder and
    /// options only reads. Without it, a temporary folder.
    pub dir: Option<PathBuf>,
    /// Report as JSON instead of a table.
    pub json: bool,
}

impl Default for BenchOptions {
    fn default() -> Self {
        Self {
            records: 100_000,
            seed: 1,
            batch: 10_000,
            dir: None,
            json: false,
        }
    }
}

/// Runs the bench and writes its report. Progress is told in short lines.
///
/// Anonymous memory is truest in a run that only reads: the allocator keeps what ingest needed.
pub fn run(
    options: &BenchOptions,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    let temporary = match options.dir {
        Some(_) => None,
        None => Some(tempfile::tempdir()?),
    };
    let folder = match (&options.dir, &temporary) {
        (Some(folder), _) => folder.as_path(),
        (None, Some(temporary)) => temporary.path(),
        (None, None) => Path::new("."),
    };
    let mut report = phases::write(options, folder, progress)?;
    phases::read(&mut report, folder, progress)?;
    if options.json {
        report.write_json(out)
    } else {
        report.write_table(out)
    }
}
