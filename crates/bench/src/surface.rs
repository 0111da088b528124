//! What a surface costs: the program itself in a process of its own, asked over HTTP or as an MCP server, in turns with
//! the same questions put to what the surface stands on.

mod answers;
mod client;
pub(crate) mod directory;
mod hosted;
mod http;
mod load;
mod mcp;
mod nodes;
mod pages;
mod process;
mod request;
mod rules;
mod stdio;
mod worker;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use contract::time::Clock;
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub use self::answers::{AnswerOptions, run_answers};
use self::directory::GrantedDirectory;
pub use self::nodes::{NodesOptions, run_nodes};
use crate::folder::{RunFolder, scratch_in};
use crate::phases::float;
use crate::{BenchError, BenchOptions, Corpus, Repetition, Report, Tail, TargetLine, phases};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// `pdpp serve`, over a loopback connection.
    Http,
    /// `pdpp mcp`, over standard input and output.
    Mcp,
    /// `/mcp` of `pdpp serve`, over loopback connections.
    McpHttp,
    /// The owner's pages of `pdpp serve`.
    Pages,
    /// Grants with rules on rows, read in process.
    Rules,
}

#[derive(Clone)]
pub struct SurfaceOptions {
    pub corpus: BenchOptions,
    pub surface: Surface,
    pub program: PathBuf,
    /// Where the time comes from: tokens live in it.
    pub clock: Arc<dyn Clock>,
    /// How long many connections ask at once; nothing else takes longer either.
    pub load: Duration,
}

/// Measures a surface and writes the report. Progress is reported in short lines.
pub fn run_surface(
    options: &SurfaceOptions,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    let setup = Setup::prepare(options, progress)?;
    let mut lines = Lines {
        lines: Vec::new(),
        progress,
    };
    let columns = match options.surface {
        Surface::Http => {
            http::measure(&setup, &mut lines)?;
            ["over HTTP", "beside"]
        }
        Surface::Mcp => {
            mcp::measure(&setup, &mut lines)?;
            ["as MCP", "beside"]
        }
        Surface::McpHttp => {
            hosted::measure(&setup, &mut lines)?;
            ["over /mcp", "over /v1"]
        }
        Surface::Pages => {
            pages::measure(&setup, &mut lines)?;
            ["as a page", "over /v1"]
        }
        Surface::Rules => {
            rules::measure(&setup, &mut lines)?;
            ["under a rule", "without it"]
        }
    };
    lines.report(&options.corpus, columns, out)
}

struct Lines<'a> {
    lines: Vec<TargetLine>,
    progress: &'a mut dyn FnMut(&str),
}

impl Lines<'_> {
    fn add(&mut self, line: TargetLine) {
        (self.progress)(&line.what);
        self.lines.push(line);
    }

    fn report(
        self,
        corpus: &BenchOptions,
        columns: [&'static str; 2],
        out: &mut dyn Write,
    ) -> Result<(), BenchError> {
        let (records, seed) = (corpus.records, corpus.seed);
        let report = Report {
            title: format!("{records} records, seed {seed}"),
            records,
            seed,
            columns,
            tail: Tail::P99,
            lines: self.lines,
        };
        report.write(corpus.json, out)
    }
}

/// What every run stands on: the corpus, a folder for what passes, and a runtime for this side.
struct Setup<'a> {
    options: &'a SurfaceOptions,
    /// One thread asks, so that the program under measurement has the others.
    runtime: Runtime,
    /// Our side of the corpus; it is only read.
    ours: PathBuf,
    /// Removed at the end, with the processes over it ended before.
    scratch: TempDir,
    /// The corpus itself where it is not kept.
    _corpus: RunFolder,
}

impl<'a> Setup<'a> {
    fn prepare(
        options: &'a SurfaceOptions,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, BenchError> {
        let folder = RunFolder::new(options.corpus.dir.as_deref())?;
        let ours = phases::write_served(&options.corpus, &folder.path, progress)?;
        // On the same disk, and with a short name: the socket of a server in it must not be too long.
        let scratch = scratch_in(Some(&folder.path), ".s")?;
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build()?;
        Ok(Self {
            options,
            runtime,
            ours,
            scratch,
            _corpus: folder,
        })
    }

    fn copy(&self, name: &str) -> Result<GrantedDirectory, BenchError> {
        let folder = self.scratch.path().join(name);
        directory::copy(&self.ours, &folder)?;
        GrantedDirectory::granted(folder, &self.options.clock)
    }

    /// Another, smaller corpus with a grant.
    fn smaller(&self, records: u64, name: &str) -> Result<GrantedDirectory, BenchError> {
        let options = BenchOptions {
            records,
            ..self.options.corpus.clone()
        };
        let folder = self.scratch.path().join(name);
        let ours = phases::write_served(&options, &folder, &mut |_| ())?;
        GrantedDirectory::granted(ours, &self.options.clock)
    }

    /// Enough calls for the last percent to mean something; fewer in a run that is kept short.
    fn repetition(&self) -> Repetition {
        Repetition {
            warm_up: 20,
            runs: 1_000,
            time: Duration::from_secs(3).min(self.options.load),
            ..Repetition::default()
        }
    }

    fn corpus(&self) -> Corpus {
        Corpus::new(self.options.corpus.seed, self.options.corpus.records)
    }
}
