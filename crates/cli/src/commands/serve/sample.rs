//! `pdpp serve --demo`: the sample life, loaded once.

use demo::{DemoError, Holding, Life};
use indicatif::HumanCount;
use store::Store;

use crate::context::Context;
use crate::failure::{CommandResult, Failure};

/// Fills an empty data directory. One that holds the sample life already stays as it is; any other is refused.
pub(super) fn load(store: &dyn Store, context: &Context) -> CommandResult {
    let output = context.output;
    match demo::holding(store)? {
        Holding::Everything => {
            output.note("Demo: the sample life is here already.");
            return Ok(());
        }
        Holding::SomethingElse => {
            let place = context.settings.data_dir.display();
            return Err(Failure::new(format!(
                "{place} holds other data, and the sample life would mix with it; nothing was changed"
            ))
            .hint("choose an empty folder with --data-dir DIR, or serve what is there without --demo"));
        }
        Holding::Nothing | Holding::Part => {}
    }
    let life = Life::generate()?;
    let spinner = output.spinner("loading a sample life");
    let all = HumanCount(life.records());
    let loaded = demo::load(store, &life, &mut |records| {
        let records = HumanCount(records);
        spinner.set_message(format!("loading a sample life: {records} of {all} records"));
    });
    spinner.set_message("indexing");
    let settled = loaded.is_ok().then(|| store.settle_index()).transpose();
    spinner.finish_and_clear();
    let loaded = loaded?;
    settled?;
    output.note(&format!(
        "Demo: loaded {} records of an invented life in {} connections. Ask for example: Which bridge vendor did we agree on?",
        HumanCount(loaded.records),
        loaded.connections
    ));
    Ok(())
}

impl From<DemoError> for Failure {
    fn from(error: DemoError) -> Self {
        Self::new(error.to_string())
    }
}
