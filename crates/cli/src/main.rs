//! `pdpp`: the commands, and the place where everything is wired together. Rules live in the crates below.

mod args;
mod choice;
mod clock;
mod commands;
mod config;
mod context;
mod database;
#[cfg(test)]
mod documentation;
mod failure;
mod file;
mod first_steps;
mod keep;
mod local;
mod log;
mod moment;
mod opened;
mod output;
mod owner;
mod pager;
mod reading;
mod render;
mod spelling;
mod stop;
mod style;
mod usage;

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::process::ExitCode;

use crate::args::Cli;
use crate::context::Context;
use crate::output::Output;

/// Answers are made of thousands of small pieces; with this one a server gives a tenth to a fifth more of them than
/// with the allocator of the system.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    set_hook(Box::new(output::report_panic));
    let cli = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(answer) => return output::report_usage(&answer, args::names_mcp(std::env::args_os())),
    };
    let output = Output::new(&cli.global);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let context = Context::new(&cli.global, output)?;
        commands::run(cli.command, &context)
    }));
    match outcome {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => output.report_failure(&failure),
        // The hook has told about it.
        Err(_) => ExitCode::FAILURE,
    }
}
