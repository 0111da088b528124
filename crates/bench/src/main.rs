//! The command line of the bench: `cargo run --release -p bench -- …`. It is for development and is not part of `pdpp`.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use bench::{
    AnswerOptions, Arguments, BenchError, BenchOptions, FindingOptions, MailImportOptions,
    NodesOptions, Surface, SurfaceOptions, SystemClock,
};
use clap::Parser as _;

/// The server uses the same allocator, so the reads in process are comparable.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let options = Arguments::parse();
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A closed stderr leaves nowhere to print to.
            let _ = writeln!(io::stderr().lock(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Arguments) -> Result<(), BenchError> {
    let corpus = corpus(options);
    let mut out = io::stdout().lock();
    let mut progress = |line: &str| {
        if !options.quiet {
            // A closed stderr leaves nowhere to print to.
            let _ = writeln!(io::stderr().lock(), "{line}");
        }
    };
    if options.answers {
        let options = AnswerOptions {
            program: program(options.program.clone())?,
            clock: Arc::new(SystemClock),
            json: options.json,
        };
        return bench::run_answers(&options, &mut out, &mut progress);
    }
    if let Some(megabytes) = options.import {
        let options = MailImportOptions {
            program: program(options.program.clone())?,
            megabytes,
            seed: options.seed,
            dir: options.dir.clone(),
            json: options.json,
        };
        return bench::run_mail_import(&options, &mut out, &mut progress);
    }
    if let Some(collection) = &options.finding {
        let options = FindingOptions {
            collection: collection.clone(),
            model: options.model.clone(),
            parts: options.parts,
            clock: Arc::new(SystemClock),
            json: options.json,
        };
        return bench::run_finding(&options, &mut out, &mut progress);
    }
    if let Some(url) = &options.nodes {
        let options = nodes(options, corpus, url)?;
        return bench::run_nodes(&options, &mut out, &mut progress);
    }
    if options.growth {
        return bench::run_growth(&corpus, &mut out, &mut progress);
    }
    let Some(surface) = surface(options) else {
        return bench::run(&corpus, &mut out, &mut progress);
    };
    let options = SurfaceOptions {
        corpus,
        surface,
        // Rules are measured in process.
        program: match surface {
            Surface::Rules => PathBuf::new(),
            _ => program(options.program.clone())?,
        },
        clock: Arc::new(SystemClock),
        load: Duration::from_secs(options.seconds),
    };
    bench::run_surface(&options, &mut out, &mut progress)
}

fn corpus(options: &Arguments) -> BenchOptions {
    BenchOptions {
        records: options.records,
        seed: options.seed,
        batch: options.batch,
        dir: options.dir.clone(),
        json: options.json,
    }
}

fn nodes(options: &Arguments, corpus: BenchOptions, url: &str) -> Result<NodesOptions, BenchError> {
    Ok(NodesOptions {
        corpus,
        url: url.to_owned(),
        program: program(options.program.clone())?,
        clock: Arc::new(SystemClock),
        load: Duration::from_secs(options.seconds),
    })
}

fn surface(options: &Arguments) -> Option<Surface> {
    let surfaces = [
        (options.http, Surface::Http),
        (options.mcp, Surface::Mcp),
        (options.mcp_http, Surface::McpHttp),
        (options.pages, Surface::Pages),
        (options.rules, Surface::Rules),
    ];
    let asked = surfaces.into_iter().find(|(asked, _)| *asked);
    asked.map(|(_, surface)| surface)
}

/// The program to measure: the named one, else `pdpp` beside this program, brought up to date by the cargo that runs the
/// bench, so that no old build is measured.
fn program(named: Option<PathBuf>) -> Result<PathBuf, BenchError> {
    if let Some(named) = named {
        return Ok(named);
    }
    let failed = |what: String| BenchError::Process {
        command: "cargo build -p pdpp".to_owned(),
        what,
    };
    if let Some(cargo) = std::env::var_os("CARGO") {
        let profile = if cfg!(debug_assertions) {
            "dev"
        } else {
            "release"
        };
        let built = Command::new(cargo)
            .args(["build", "-p", "pdpp", "--profile", profile])
            .status()
            .map_err(|error| failed(format!("did not start: {error}")))?;
        if !built.success() {
            return Err(failed(format!("ended with {built}")));
        }
    }
    let program = std::env::current_exe()?.with_file_name("pdpp");
    if program.is_file() {
        Ok(program)
    } else {
        let missing = format!("has not made {}", program.display());
        Err(failed(missing))
    }
}
