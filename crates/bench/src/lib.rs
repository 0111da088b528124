//! A generated corpus of known shape, the store and the raw engines doing the same work on it in one run, and their figures
//! side by side as ratios.

mod arguments;
mod contender;
mod corpus;
mod error;
mod finding;
mod growth;
mod mail_import;
mod measure;
mod ours;
mod phases;
mod raw;
mod surface;

use std::io::Write;
use std::path::{Path, PathBuf};

pub use arguments::Arguments;
pub use contender::{Contender, PageDepth, Question, Window};
pub use corpus::{Corpus, CorpusRecord, FOLDERS, LONGEST_BODY, PROBES, Probe, ProbeKind, Probes};
pub use error::BenchError;
pub use finding::{FindingOptions, run_finding};
pub use growth::run_growth;
pub use mail_import::{MailImportOptions, run_mail_import};
pub use measure::{
    Figure, Measurement, Repetition, Report, Target, TargetLine, TargetReport, Unit, Work,
    anonymous_memory, compare, cpu_time, folder_size,
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
    if options.json {
        report.write_json(out)
    } else {
        report.write_table(out)
    }
}

fn report(
    options: &BenchOptions,
    repetition: Repetition,
    progress: &mut dyn FnMut(&str),
) -> Result<Report, BenchError> {
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
    phases::read(&mut report, folder, repetition, progress)?;
    Ok(report)
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
        for measurement in &first.measurements {
            assert!(measurement.ours.is_some() && measurement.raw.is_some());
            assert!(!measurement.found_differently(), "{measurement:?}");
        }
        assert!(first.wrote);
        let second = report(&options, repetition, &mut |step| {
            assert!(!step.starts_with("ours:"));
        })
        .unwrap();
        assert!(!second.wrote);
        assert_eq!(first.measurements[0], second.measurements[0]);

        let other = BenchOptions { seed: 2, ..options };
        let refused = report(&other, repetition, &mut |_| ()).unwrap_err();
        assert!(matches!(refused, BenchError::ForeignFolder(_)));
    }
}
