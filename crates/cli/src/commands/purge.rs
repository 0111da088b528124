//! `pdpp purge`: what deleted records held is erased for good.

use clap::Args;
use indicatif::HumanCount;
use rest::owner::wire::Purged;

use crate::context::Context;
use crate::failure::Outcome;
use crate::owner::Target;

/// Erase for good what deleted records held
///
/// That is their content, history and keys, and blobs nothing refers to. Live records keep their history. Readers whose bookmark is older than the purge must read from the beginning.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp purge")]
pub(crate) struct Options {}

pub(crate) fn run(_: &Options, context: &Context) -> Outcome {
    let output = context.output;
    let owner = context.owner("pdpp purge")?;
    let spinner = output.spinner("erasing");
    let purged: Purged = owner.post(&Target::of("/owner/purge"), &())?;
    spinner.finish_and_clear();
    if output.is_json() {
        return output.json(&purged);
    }
    output.note(&format!(
        "Purged {} deleted records and {} blobs.",
        HumanCount(purged.tombstones),
        HumanCount(purged.blobs)
    ));
    Ok(())
}
