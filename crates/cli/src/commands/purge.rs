//! `pdpp purge`: what deleted records held is erased for good.

use clap::Args;
use indicatif::HumanCount;
use serde::Serialize;
use store::Records;

use crate::context::Context;
use crate::failure::Outcome;

/// Erase for good what deleted records held
///
/// That is their content, history and keys, and blobs nothing refers to. Live records keep their history. Readers whose bookmark is older than the purge must read from the beginning.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp purge")]
pub(crate) struct Options {}

#[derive(Serialize)]
struct Answer {
    tombstones: u64,
    blobs: u64,
}

pub(crate) fn run(_: &Options, context: &Context) -> Outcome {
    let output = context.output;
    let store = context.open("pdpp purge")?;
    let spinner = output.spinner("erasing");
    let purged = store.purge()?;
    spinner.finish_and_clear();
    if output.is_json() {
        return output.json(&Answer {
            tombstones: purged.tombstones,
            blobs: purged.blobs,
        });
    }
    output.note(&format!(
        "Purged {} deleted records and {} blobs.",
        HumanCount(purged.tombstones),
        HumanCount(purged.blobs)
    ));
    Ok(())
}
