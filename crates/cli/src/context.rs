//! What every command is given: settings, output, and the client of the owner API.

use std::sync::Arc;

use store::{EmbeddedStore, OpenOptions, StoreError};
use tokio::runtime::Runtime;

use crate::args::GlobalOptions;
use crate::clock::SystemClock;
use crate::config::Settings;
use crate::failure::Failure;
use crate::output::Output;
use crate::owner::OwnerClient;
use crate::reading::CommandLine;

#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) settings: Settings,
    pub(crate) output: Output,
}

pub(crate) fn new_runtime() -> Result<Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build();
    runtime.map_err(|error| Failure::new(format!("no work can be started: {error}")))
}

impl Context {
    pub(crate) fn new(global: &GlobalOptions, output: Output) -> Result<Self, Failure> {
        let settings = Settings::resolve(global)?;
        Ok(Self { settings, output })
    }

    pub(crate) fn owner(&self, holder: &str) -> Result<OwnerClient, Failure> {
        OwnerClient::connect(self, holder)
    }

    /// A command over the same data, to be shown.
    pub(crate) fn command(&self, command: &'static str) -> CommandLine {
        let named = self.settings.named_data_dir.as_ref();
        let named = named.map(|path| ("data-dir", path.to_string_lossy().into_owned()));
        CommandLine::new(command).with_location(named.into_iter().collect())
    }

    /// The command that lets a client read, to be completed with a connection.
    pub(crate) fn granting(&self, client: &str) -> CommandLine {
        let create = self.command("grant create").option("client", Some(client));
        create.option("connection", Some("ID"))
    }

    /// The command that lets programs on this machine read, to be completed with a connection.
    pub(crate) fn granting_locally(&self) -> CommandLine {
        let create = self.command("grant create").flag("local");
        create.option("connection", Some("ID"))
    }

    /// Opens the data directory in the name of a command.
    pub(crate) fn open(&self, holder: &str) -> Result<EmbeddedStore, StoreError> {
        let options = OpenOptions::new(holder, Arc::new(SystemClock));
        EmbeddedStore::open(&self.settings.data_dir, options)
    }
}
