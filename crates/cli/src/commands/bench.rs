//! `pdpp bench`: how fast this machine is, on a corpus of known shape.

use std::path::PathBuf;

use bench::BenchOptions;
use clap::Args;

use crate::context::Context;
use crate::failure::{Failure, Outcome};

/// Measure this machine with a made-up corpus
///
/// Fills a temporary folder, asks questions of it, and compares with the engines alone.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp bench --records 20000")]
pub(crate) struct Options {
    /// Records in the corpus
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    records: u64,
    /// Seed of the corpus
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Records in a batch
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    batch: usize,
    /// Keep the data here; a second run over it only reads [default: a temporary folder]
    #[arg(long)]
    dir: Option<PathBuf>,
}

pub(crate) fn run(options: &Options, context: &Context) -> Outcome {
    let output = context.output;
    let asked = BenchOptions {
        records: options.records,
        seed: options.seed,
        batch: options.batch,
        dir: options.dir.clone(),
        json: output.is_json(),
    };
    output.write(|out| {
        bench::run(&asked, out, &mut |line| output.note(line))
            .map_err(|error| Failure::new(error.to_string()))
    })
}
