//! `pdpp index`: the search index, which can always be derived anew from the records.

use clap::{Args, Subcommand};
use indicatif::HumanCount;
use serde::Serialize;
use store::Search;

use crate::context::Context;
use crate::failure::Outcome;

/// Look after the search index
#[derive(Debug, Args)]
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

#[derive(Serialize)]
struct Answer {
    records: u64,
}

pub(crate) fn run(options: &Options, context: &Context) -> Outcome {
    match options.task {
        Task::Rebuild => rebuild(context),
    }
}

fn rebuild(context: &Context) -> Outcome {
    let output = context.output;
    let store = context.open("pdpp index rebuild")?;
    let spinner = output.spinner("indexing");
    let mut records = 0;
    store.rebuild_index(&mut |done| {
        records = done;
        spinner.set_position(done);
    })?;
    spinner.finish_and_clear();
    if output.is_json() {
        return output.json(&Answer { records });
    }
    output.note(&format!(
        "Rebuilt the search index: {} records.",
        HumanCount(records)
    ));
    Ok(())
}
