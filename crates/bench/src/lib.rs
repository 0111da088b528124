//! A generated corpus of known shape, the store and the raw engines doing the same work on it in one run, and their figures
//! side by side as ratios.

mod arguments;
mod clock;
mod contender;
mod corpus;
mod error;
mod finding;
mod folder;
mod growth;
mod mail_import;
mod measure;
mod ours;
mod phases;
mod raw;
mod surface;

use std::io::Write;
use std::path::PathBuf;

pub use arguments::Arguments;
pub use clock::SystemClock;
pub use contender::{Contender, PageDepth, Question, Window};
pub use corpus::{Corpus, CorpusRecord, FOLDERS, LONGEST_BODY, PROBES, Probe, ProbeKind, Probes};
pub use error::BenchError;
pub use finding::{FindingOptions, run_finding};
use folder::RunFolder;
pub use growth::run_growth;
pub use mail_import::{MailImportOptions, run_mail_import};
pub use measure::{
    Figure, Repetition, Report, Tail, Target, TargetLine, Unit, Work, anonymous_memory, compare,
    cpu_time, folder_size,
};
pub use raw::{
    RawAggregate, RawFilter, RawGroups, RawHit, RawPaths, RawPipeline, RawPosition, RawQuery,
    RawReader, RawRecord, RawSettings,
};
pub use surface::{
    AnswerOptions, NodesOptions, Surface, SurfaceOptions, run_answers, run_nodes, run_surface,
};

/// The declaration of the corpus: connector `bench`, stream `messages`.
pub const DECLARATION: &str = include_str!("declaration.json");

#[derive(Debug, Clone)]
pub struct BenchOptions {
    pub records: u64,
    pub seed: u64,
    pub batch: usize,
    /// Where the data is written; it stays there, and a second run over the same folder and
    /// options only reads. Without it, a temporary folder.
    pub dir: Option<PathBuf>,
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

pub fn run(
    options: &BenchOptions,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    let report = report(options, Repetition::default(), progress)?;
    report.write(options.json, out)
}

fn report(
    options: &BenchOptions,
    repetition: Repetition,
    progress: &mut dyn FnMut(&str),
) -> Result<Report, BenchError> {
    let folder = RunFolder::new(options.dir.as_deref())?;
    let written = phases::write(options, &folder.path, progress)?;
    let megabytes = phases::float(written.corpus_bytes) / 1e6;
    let lines = phases::read(options, written, &folder.path, repetition, progress)?;
    let (records, seed, batch) = (options.records, options.seed, options.batch);
    Ok(Report {
        title: format!(
            "{records} records, {megabytes:.1} MB of JSON, seed {seed}, batches of {batch}"
        ),
        records,
        seed,
        columns: ["ours", "raw engine"],
        tail: Tail::P95,
        lines,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_find_the_same_and_a_second_run_only_reads() {
        let folder = tempfile::tempdir().unwrap();
        let options = BenchOptions {
            records: 3_000,
            batch: 900,
            dir: Some(folder.path().to_owned()),
            ..BenchOptions::default()
        };
        let repetition = Repetition {
            warm_up: 0,
            runs: 3,
            ..Repetition::default()
        };
        let mut steps = Vec::new();
        let first = report(&options, repetition, &mut |step| {
            steps.push(step.to_owned());
        })
        .unwrap();
        assert!(steps.contains(&"ours: 3000".to_owned()));
        for line in &first.lines {
            assert!(line.beside.is_some());
            assert!(!line.found_differently(), "{line:?}");
        }
        let second = report(&options, repetition, &mut |step| {
            assert!(!step.starts_with("ours:"));
        })
        .unwrap();
        assert_eq!(first.lines[0], second.lines[0]);

        let other = BenchOptions { seed: 2, ..options };
        let refused = report(&other, repetition, &mut |_| ()).unwrap_err();
        assert!(matches!(refused, BenchError::ForeignFolder(_)));
    }
}
