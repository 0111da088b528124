//! The command line of the bench. It stands in the library, so that a test can hold the documents against it.

use std::path::PathBuf;

use clap::Parser;

/// Measure this machine with a generated corpus
///
/// Fills a temporary folder, asks questions of it, and compares with the engines alone.
#[derive(Debug, Parser)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
#[command(name = "bench", max_term_width = 100)]
pub struct Arguments {
    /// Records in the corpus
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub records: u64,
    /// Seed of the corpus
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Records in a batch
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub batch: usize,
    /// Keep the data here; a second run over it only reads [default: a temporary folder]
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Measure a server of its own over loopback, beside the same reads in process
    #[arg(long, group = "surface")]
    pub http: bool,
    /// Measure the tools for agents on standard input and output, beside the same reads of a server
    #[arg(long, group = "surface")]
    pub mcp: bool,
    /// Measure the tools for agents at /mcp of a server of its own, beside the same searches at /v1
    #[arg(long, group = "surface")]
    pub mcp_http: bool,
    /// Measure the owner's pages of a server of its own, beside the reads each makes at /v1
    #[arg(long, group = "surface")]
    pub pages: bool,
    /// Measure how searches grow: the same ones in a corpus of a twelfth of the size, in turns
    #[arg(long, group = "surface")]
    pub growth: bool,
    /// Measure reads under grants with rules on rows, beside the same without rules
    #[arg(long, group = "surface")]
    pub rules: bool,
    /// Ask the questions of the sample life over the tools, and count bytes and tokens until each answer is visible
    #[arg(long, group = "surface")]
    pub answers: bool,
    /// Import an archive of generated mail of so many megabytes, unpacked, beside the same messages as JSON lines
    #[arg(long, value_name = "MB", group = "surface", num_args = 0..=1, default_missing_value = "10000")]
    pub import: Option<u64>,
    /// Import a judged collection (corpus.jsonl, queries.jsonl, qrels.tsv) and measure how well its questions are
    /// answered; without DIR, the questions about the sample life
    #[arg(long, value_name = "DIR", group = "surface")]
    pub finding: Option<Option<PathBuf>>,
    /// Also search by meaning and by both, with the sentence model in this folder; time a pass over a million vectors
    #[arg(long, value_name = "DIR", requires = "finding")]
    pub model: Option<PathBuf>,
    /// Add the parts of finding one after another, and print what each brings
    #[arg(long, requires = "finding")]
    pub parts: bool,
    /// Measure nodes on the PostgreSQL at this address beside the embedded store; scripts/cluster bench starts one
    #[arg(long, value_name = "URL", group = "surface")]
    pub nodes: Option<String>,
    /// How long 64 connections (--http, --nodes) or 256 (--mcp-http) ask at once; no other row takes longer
    #[arg(long, value_name = "N", default_value_t = 60, requires = "surface", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
    /// The pdpp program to measure [default: built by cargo in the same profile]
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Print no progress
    #[arg(short, long)]
    pub quiet: bool,
}
