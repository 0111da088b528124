//! `pdpp bench`: how fast this machine is, on a corpus of known shape.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bench::{BenchOptions, Surface, SurfaceOptions};
use clap::Args;

use crate::clock::SystemClock;
use crate::context::Context;
use crate::failure::{CommandResult, Failure};

/// Measure this machine with a made-up corpus
///
/// Fills a temporary folder, asks questions of it, and compares with the engines alone.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp bench --records 20000")]
pub(crate) struct Options {
    /// Records in the corpus
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
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
    /// Measure a server of its own over loopback, beside the same reads in process
    #[arg(long, group = "surface")]
    http: bool,
    /// Measure the tools for agents on standard input and output, beside the same reads of a server
    #[arg(long, group = "surface")]
    mcp: bool,
    /// Measure the tools for agents at /mcp of a server of its own, beside the same searches at /v1
    #[arg(long, group = "surface")]
    mcp_http: bool,
    /// How long 64 connections (--http) or 256 (--mcp-http) ask at once; no other row takes longer
    #[arg(long, value_name = "N", default_value_t = 60, requires = "surface", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let output = context.output;
    let asked = BenchOptions {
        records: options.records,
        seed: options.seed,
        batch: options.batch,
        dir: options.dir.clone(),
        json: output.is_json(),
    };
    let surface = match (options.http, options.mcp, options.mcp_http) {
        (true, _, _) => Surface::Http,
        (_, true, _) => Surface::Mcp,
        (_, _, true) => Surface::McpHttp,
        _ => {
            return output.write(|out| {
                bench::run(&asked, out, &mut |line| output.note(line))
                    .map_err(|error| Failure::new(error.to_string()))
            });
        }
    };
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("this program cannot find itself: {error}")))?;
    let asked = SurfaceOptions {
        corpus: asked,
        surface,
        program,
        clock: Arc::new(SystemClock),
        load: Duration::from_secs(options.seconds),
    };
    output.write(|out| {
        bench::run_surface(&asked, out, &mut |line| output.note(line))
            .map_err(|error| Failure::new(error.to_string()))
    })
}
