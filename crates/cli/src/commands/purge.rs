//! `pdpp purge`: what deleted records held is erased for good.

use clap::Args;
use rest::owner::wire::Purged;
use store::keeping::KeepRules;

use crate::context::Context;
use crate::failure::CommandResult;
use crate::keep;
use crate::output::counted;
use crate::owner::RequestPath;

/// Erase for good what deleted records held
///
/// That is their content, history and keys, and blobs nothing refers to. Live records keep their history, unless --keep-versions says how much of it. Readers whose bookmark is older than what is left must read from the beginning.
///
/// With --keep-log the beginning of the disclosure log is dropped as well. The log says what was dropped, and `pdpp grants verify` checks the rest from there on.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: pdpp purge\nExample: pdpp purge --keep-log 365d --keep-versions 5"
)]
pub(crate) struct Options {
    #[command(flatten)]
    keep: keep::KeepOptions,
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let output = context.output;
    let owner = context.owner("pdpp purge")?;
    let rules = options.keep.rules(KeepRules::default());
    let spinner = output.spinner("erasing");
    let purged: Purged = owner.post(&RequestPath::new("/owner/purge"), &rules)?;
    spinner.finish_and_clear();
    if output.is_json() {
        return output.json(&purged);
    }
    output.note(&format!(
        "Purged {} and {}.",
        counted(purged.tombstones, "deleted record", "deleted records"),
        counted(purged.blobs, "blob", "blobs")
    ));
    let dropped = purged.dropped;
    if rules != KeepRules::default() {
        output.note(&format!(
            "Dropped {} of the disclosure log and {}.",
            counted(dropped.log_entries, "entry", "entries"),
            counted(dropped.versions, "replaced version", "replaced versions")
        ));
    }
    Ok(())
}
