//! `pdpp model`: the sentence model by which records are searched by meaning.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use indicatif::HumanCount;
use rest::owner::wire::{Embedded, ModelFolder, ModelState};

use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::output::{counted, visible};
use crate::owner::{OwnerClient, RequestPath};

/// Add, show and remove the model that searches by meaning
///
/// A model is a folder in the layout of sentence-transformers, such as all-MiniLM-L6-v2. It is copied into the data
/// directory; nothing is ever fetched. A running server makes vectors of all records in the background.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp model add ./all-MiniLM-L6-v2")]
pub(crate) struct Options {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Copy a model into the data directory and use it; another one is replaced
    #[command(after_help = "Example: pdpp model add ./all-MiniLM-L6-v2")]
    Add {
        /// The folder with config.json, tokenizer.json, model.safetensors and modules.json
        folder: PathBuf,
    },
    /// Show the model, and how many records have their vectors
    #[command(after_help = "Example: pdpp model show")]
    Show,
    /// Make all vectors that are missing now, instead of in the background
    #[command(after_help = "Example: pdpp model embed")]
    Embed,
    /// Remove the model and its vectors; searching by words stays
    #[command(after_help = "Example: pdpp model remove")]
    Remove,
}

pub(crate) fn run(options: Options, context: &Context) -> CommandResult {
    let owner = context.owner("pdpp model")?;
    match options.task {
        Task::Add { folder } => add(folder, &owner, context),
        Task::Show => show(&owner, context),
        Task::Embed => embed(&owner, context),
        Task::Remove => remove(&owner, context),
    }
}

fn path() -> RequestPath {
    RequestPath::new("/owner/model")
}

fn add(folder: PathBuf, owner: &OwnerClient, context: &Context) -> CommandResult {
    // A server has another working directory.
    let folder = std::path::absolute(&folder).unwrap_or(folder);
    let folder = folder.into_os_string().into_string();
    let folder = folder.map_err(|_| Failure::new("the path of the folder is not UTF-8"))?;
    let added: ModelState = owner.post(&path(), &ModelFolder { folder })?;
    report(&added, "Added", context)
}

fn show(owner: &OwnerClient, context: &Context) -> CommandResult {
    let state: ModelState = owner.get(&path())?;
    if context.output.is_json() {
        return context.output.json(&state);
    }
    context
        .output
        .text(&format!("{}\n", described(&state, context)))
}

fn embed(owner: &OwnerClient, context: &Context) -> CommandResult {
    let output = context.output;
    let spinner = output.spinner("making vectors");
    let mut progress = |done: Embedded| spinner.set_position(done.records);
    let target = RequestPath::new("/owner/model/embed");
    let state: ModelState = owner.run_with_progress(&target, &mut progress)?;
    spinner.finish_and_clear();
    output.report(&state, || described(&state, context))
}

fn remove(owner: &OwnerClient, context: &Context) -> CommandResult {
    let removed: ModelState = owner.delete(&path())?;
    context.output.report(&removed, || {
        let name = visible(&removed.name);
        format!("Removed the model {name} and its vectors. Searching by words stays as it is.")
    })
}

fn report(state: &ModelState, verb: &str, context: &Context) -> CommandResult {
    context
        .output
        .report(state, || format!("{verb}: {}", described(state, context)))
}

/// Which model there is, and what is left to do.
fn described(state: &ModelState, context: &Context) -> String {
    let name = visible(&state.name);
    let model = format!("model {name}, {} numbers a vector", state.dimensions);
    let waiting = state.records.saturating_sub(state.embedded);
    if waiting == 0 {
        let vectors = counted(state.vectors, "vector", "vectors");
        return format!(
            "{model}; all {} records have theirs ({vectors}).",
            HumanCount(state.records)
        );
    }
    let embed = context.command("model embed");
    format!(
        "{model}; {} of {} records have theirs. A running `pdpp serve` makes the others in the background; `{embed}` makes them now.",
        HumanCount(state.embedded),
        HumanCount(state.records),
    )
}
