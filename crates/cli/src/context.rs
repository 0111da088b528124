//! What every command is given: settings, output, and a way to the data.

use std::sync::Arc;

use store::{EmbeddedStore, OpenOptions};

use crate::args::GlobalOptions;
use crate::clock::SystemClock;
use crate::config::Settings;
use crate::failure::Failure;
use crate::output::Output;

/// The surroundings of a command.
pub(crate) struct Context {
    pub(crate) settings: Settings,
    pub(crate) output: Output,
}

impl Context {
    pub(crate) fn new(global: &GlobalOptions, output: Output) -> Result<Self, Failure> {
        let settings = Settings::resolve(global)?;
        Ok(Self { settings, output })
    }

    /// Opens the data directory in the name of a command.
    pub(crate) fn open(&self, holder: &str) -> Result<EmbeddedStore, Failure> {
        let options = OpenOptions {
            holder: holder.to_owned(),
            clock: Arc::new(SystemClock),
        };
        EmbeddedStore::open(&self.settings.data_dir, options).map_err(Failure::from)
    }
}
