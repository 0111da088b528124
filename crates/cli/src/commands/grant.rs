//! `pdpp grant`: one grant or package, from its issue to its end.

mod asks;
mod budget;
mod create;
mod revoke;
mod show;
mod template;

use clap::{Args, Subcommand};
use grants::GrantDetails;

use crate::commands::grants::all_grants;
use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::owner::{OwnerClient, OwnerError, RequestPath};
use crate::spelling::nearest;

/// Issue, show and revoke a grant
#[derive(Debug, Args)]
#[command(
    after_help = "Example: pdpp grant create --client claude-code --connection mail-work\n\n`pdpp grants` lists what was granted."
)]
pub(crate) struct Options {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    Create(Box<create::Options>),
    Show(show::Options),
    Revoke(revoke::Options),
    Template(template::Options),
    Asks(asks::ListOptions),
    Allow(asks::AllowOptions),
    Deny(asks::DenyOptions),
    Asking(asks::AskingOptions),
    Budget(budget::Options),
    Pause(budget::PauseOptions),
    Resume(budget::ResumeOptions),
}

pub(crate) fn run(options: Options, context: &Context) -> CommandResult {
    match options.task {
        Task::Create(options) => create::run(&options, context),
        Task::Show(options) => show::run(&options, context),
        Task::Revoke(options) => revoke::run(&options, context),
        Task::Template(options) => template::run(&options, context),
        Task::Asks(options) => asks::list(&options, context),
        Task::Allow(options) => asks::allow(&options, context),
        Task::Deny(options) => asks::deny(&options, context),
        Task::Asking(options) => asks::asking(&options, context),
        Task::Budget(options) => budget::run(&options, context),
        Task::Pause(options) => budget::pause(&options, context),
        Task::Resume(options) => budget::resume(&options, context),
    }
}

/// Refuses a secret where an id belongs, without repeating it: what is told may be logged.
fn refuse_secret(id: &str, context: &Context) -> CommandResult {
    if ["pdpp_at_", "pdpp_owner_"]
        .iter()
        .any(|prefix| id.starts_with(prefix))
    {
        let message = "this is a token, and the id of what it stands for is needed";
        let list = context.command("grants");
        return Err(Failure::new(message).hint(format!("`{list}` lists the ids")));
    }
    Ok(())
}

/// The error for an unknown id, with the similar ones.
fn with_similar_ids(error: OwnerError, id: &str, owner: &OwnerClient) -> Failure {
    let unknown = matches!(&error, OwnerError::Refused(refused) if refused.code == "not_found");
    let failure = Failure::from(error);
    if !unknown {
        return failure;
    }
    let all = all_grants(owner).unwrap_or_default();
    let meant: Vec<&str> = all
        .iter()
        .filter(|one| {
            let named = one.client_id.as_str() == id || one.client_name.as_deref() == Some(id);
            named || (id.len() > 4 && one.id.starts_with(id))
        })
        .map(|one| one.id.as_str())
        .take(12)
        .collect();
    if meant.is_empty() {
        let ids: Vec<&str> = all.iter().map(|one| one.id.as_str()).collect();
        let clients = all.iter().filter_map(|one| {
            let name = one.client_name.as_deref().unwrap_or(one.client_id.as_str());
            nearest(id, &[name]).map(|_| one.id.as_str())
        });
        let near = nearest(id, &ids).or(clients.take(1).next());
        return failure.hints(near.map(|near| format!("did you mean {near}?")));
    }
    failure.hint(format!("did you mean {}?", meant.join(", ")))
}

/// One grant or package, with so many of its last calls.
fn fetch_grant(owner: &OwnerClient, id: &str, calls: usize) -> Result<GrantDetails, OwnerError> {
    let target = RequestPath::new("/owner/grant").param("id", id);
    owner.get(&target.param("calls", &calls.to_string()))
}
