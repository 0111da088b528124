//! `pdpp completions`: a script that lets a shell complete our commands.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Cli;
use crate::context::Context;
use crate::failure::{CommandResult, Failure};

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp completions fish > ~/.config/fish/completions/pdpp.fish")]
pub(crate) struct Options {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "pdpp", &mut script);
    context.output.write(|out| {
        out.write_all(&script)
            .map_err(|error| Failure::writing_output(&error))
    })
}
