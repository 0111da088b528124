//! `pdpp grant budget`, `pause` and `resume`: how much may be read in a day.

use clap::Args;
use grants::budget::Budget;
use rest::owner::wire::{BudgetChange, PauseChange};
use serde::Serialize;

use super::{refuse_secret, with_similar_ids};
use crate::context::Context;
use crate::failure::CommandResult;
use crate::owner::RequestPath;

/// Set how much may be read under a grant in a day of UTC
///
/// What is not named has no limit: without any option the budget is lifted.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: pdpp grant budget grt_5f0c2a9be1d37846 --records 2000 --pause-when-unusual"
)]
pub(crate) struct Options {
    /// The id of a grant or a package; each grant of a package gets the budget
    id: String,
    /// Records, each time they are shown
    #[arg(long, value_name = "NUMBER")]
    records: Option<u64>,
    /// Different records
    #[arg(long, value_name = "NUMBER")]
    distinct_records: Option<u64>,
    /// Bytes of answers and files
    #[arg(long, value_name = "NUMBER")]
    bytes: Option<u64>,
    /// Pause the grant when far more is read than on any of the last 14 days
    #[arg(long)]
    pause_when_unusual: bool,
}

/// Let nothing be read under a grant until it is resumed
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp grant pause grt_5f0c2a9be1d37846")]
pub(crate) struct PauseOptions {
    /// The id of a grant or a package
    id: String,
}

/// Let a paused grant be used again
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp grant resume grt_5f0c2a9be1d37846")]
pub(crate) struct ResumeOptions {
    /// The id of a grant or a package
    id: String,
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let budget = Budget {
        records: options.records,
        distinct_records: options.distinct_records,
        bytes: options.bytes,
        pauses_when_unusual: options.pause_when_unusual,
    };
    let id = options.id.clone();
    send(
        &options.id,
        "/owner/budget",
        &BudgetChange { id, budget },
        context,
    )?;
    let words = budget.words();
    context.output.note(&match words.as_slice() {
        [] => "There is no limit any more.".to_owned(),
        words => format!("From now on: {}.", words.join(", ")),
    });
    Ok(())
}

pub(crate) fn pause(options: &PauseOptions, context: &Context) -> CommandResult {
    let (id, is_paused) = (options.id.clone(), true);
    send(
        &options.id,
        "/owner/pause",
        &PauseChange { id, is_paused },
        context,
    )?;
    context
        .output
        .note("Paused. Nothing can be read under it until it is resumed.");
    Ok(())
}

pub(crate) fn resume(options: &ResumeOptions, context: &Context) -> CommandResult {
    let (id, is_paused) = (options.id.clone(), false);
    send(
        &options.id,
        "/owner/pause",
        &PauseChange { id, is_paused },
        context,
    )?;
    context.output.note("It can be used again.");
    Ok(())
}

fn send(id: &str, path: &'static str, change: &impl Serialize, context: &Context) -> CommandResult {
    refuse_secret(id, context)?;
    let owner = context.owner("pdpp grant")?;
    let sent = owner.post(&RequestPath::new(path), change);
    sent.map_err(|error| with_similar_ids(error, id, &owner))
}
