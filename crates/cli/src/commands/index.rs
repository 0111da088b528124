//! `pdpp index`: the search index, which can always be derived anew from the records.

use clap::{Args, Subcommand};
use indicatif::HumanCount;
use rest::owner::wire::Indexed;

use crate::context::Context;
use crate::failure::CommandResult;
use crate::owner::RequestPath;

/// Look after the search index
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp index rebuild")]
pub(crate) struct Options {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Throw the index away and derive it anew from the records
    #[command(after_help = "Example: pdpp index rebuild")]
    Rebuild,
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    match options.task {
        Task::Rebuild => rebuild(context),
    }
}

fn rebuild(context: &Context) -> CommandResult {
    let output = context.output;
    let owner = context.owner("pdpp index rebuild")?;
    let spinner = output.spinner("indexing");
    let mut progress = |done: Indexed| spinner.set_position(done.records);
    let indexed: Indexed =
        owner.run_with_progress(&RequestPath::new("/owner/index"), &mut progress)?;
    spinner.finish_and_clear();
    output.report(&indexed, || {
        format!(
            "Rebuilt the search index: {} records.",
            HumanCount(indexed.records)
        )
    })
}
