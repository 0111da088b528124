//! The command line: global options and the list of commands. Each command's own options stand in its file.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::commands::{
    aggregate, backup, blob, collect, completions, connect, connections, declare, delete, doctor,
    export, fetch, grant, grants, help, import, index, man, mcp, migrate, model, moving, nodes,
    owner_password, owner_token, purge, query, read, restore, schema, search, serve, setup,
    sign_in, verify,
};

/// Your records in one place, readable by the agents you allow.
#[derive(Debug, Parser)]
#[command(
    name = "pdpp",
    version,
    propagate_version = true,
    max_term_width = 100,
    disable_help_subcommand = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalOptions,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options every command takes, before or after its name.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalOptions {
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        help = "Where the data lives [env: PDPP_DATA_DIR] [default: pdpp in your data folder]"
    )]
    pub(crate) data_dir: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print errors only
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Tell more about what happens
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// What can be done. Each command says in its own file what it is about.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Declare(declare::Options),
    Connections(connections::Options),
    Import(import::Options),
    Collect(collect::Options),
    Serve(serve::Options),
    Mcp(mcp::Options),
    Schema(schema::Options),
    Search(search::Options),
    Query(query::Options),
    Aggregate(aggregate::Options),
    Fetch(fetch::Options),
    Read(read::Options),
    Verify(verify::Options),
    Export(export::Options),
    Blob(blob::Options),
    Grant(grant::Options),
    Grants(grants::Options),
    OwnerToken(owner_token::Options),
    OwnerPassword(owner_password::Options),
    SignIn(sign_in::Options),
    Backup(backup::Options),
    Restore(restore::Options),
    Move(moving::Options),
    Migrate(migrate::Options),
    Index(index::Options),
    Model(model::Options),
    Nodes(nodes::Options),
    Delete(delete::Options),
    Purge(purge::Options),
    Completions(completions::Options),
    Man(man::Options),
    Connect(connect::Options),
    Setup(setup::Options),
    Doctor(doctor::Options),
    Help(help::Options),
}

impl Cli {
    /// Reads the words this program was started with. The help without a command has a form of its own.
    pub(crate) fn read(words: impl Iterator<Item = OsString>) -> Result<Self, clap::Error> {
        let command = Self::command().override_help(help::overview());
        let matches = command.try_get_matches_from(words)?;
        Self::from_arg_matches(&matches)
    }
}

/// Whether the command is `mcp`, whose standard output carries a protocol, judged from arguments that do not parse.
pub(crate) fn names_mcp(words: impl Iterator<Item = OsString>) -> bool {
    let mut words = words.skip(1);
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--data-dir") => drop(words.next()),
            Some(option) if option.starts_with('-') => {}
            word => return word == Some("mcp"),
        }
    }
    false
}
