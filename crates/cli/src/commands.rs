//! One command per file: its options, and what it does.

pub(crate) mod aggregate;
pub(crate) mod backup;
pub(crate) mod blob;
pub(crate) mod collect;
pub(crate) mod completions;
pub(crate) mod connect;
pub(crate) mod connections;
pub(crate) mod declare;
pub(crate) mod delete;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod fetch;
pub(crate) mod grant;
pub(crate) mod grants;
pub(crate) mod help;
pub(crate) mod import;
pub(crate) mod index;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod migrate;
pub(crate) mod model;
pub(crate) mod moving;
pub(crate) mod nodes;
pub(crate) mod owner_password;
pub(crate) mod owner_token;
pub(crate) mod purge;
pub(crate) mod query;
pub(crate) mod read;
pub(crate) mod restore;
pub(crate) mod schema;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod setup;
pub(crate) mod sign_in;
pub(crate) mod verify;

use crate::args::Command;
use crate::context::Context;
use crate::failure::{CommandResult, Failure};

pub(crate) fn run(command: Command, context: &Context) -> CommandResult {
    match command {
        Command::Declare(options) => declare::run(&options, context),
        Command::Connections(options) => connections::run(options, context),
        Command::Import(options) => import::run(&options, context),
        Command::Collect(options) => collect::run(options, context),
        Command::Serve(options) => serve::run(options, context),
        Command::Mcp(options) => mcp::run(options, context).map_err(Failure::without_body),
        Command::Schema(options) => schema::run(&options, context),
        Command::Search(options) => search::run(&options, context),
        Command::Query(options) => query::run(&options, context),
        Command::Aggregate(options) => aggregate::run(&options, context),
        Command::Fetch(options) => fetch::run(&options, context),
        Command::Read(options) => read::run(&options, context),
        Command::Verify(options) => verify::run(&options, context),
        Command::Export(options) => export::run(&options, context),
        Command::Blob(options) => blob::run(&options, context),
        Command::Grant(options) => grant::run(options, context),
        Command::Grants(options) => grants::run(&options, context),
        Command::OwnerToken(options) => owner_token::run(&options, context),
        Command::OwnerPassword(options) => owner_password::run(&options, context),
        Command::SignIn(options) => sign_in::run(&options, context),
        Command::Backup(options) => backup::run(&options, context),
        Command::Restore(options) => restore::run(&options, context),
        Command::Move(options) => moving::run(options, context),
        Command::Migrate(options) => migrate::run(options, context),
        Command::Index(options) => index::run(&options, context),
        Command::Model(options) => model::run(options, context),
        Command::Nodes(options) => nodes::run(&options, context),
        Command::Delete(options) => delete::run(&options, context),
        Command::Purge(options) => purge::run(&options, context),
        Command::Help(options) => help::run(&options, context),
        Command::Connect(options) => connect::run(&options, context),
        Command::Setup(options) => setup::run(&options, context),
        Command::Doctor(options) => doctor::run(&options, context),
        Command::Completions(options) => completions::run(&options, context),
        Command::Man(options) => man::run(&options, context),
    }
}
