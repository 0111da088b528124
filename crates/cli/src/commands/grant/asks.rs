//! `pdpp grant asks`, `allow`, `deny` and `asking`: what clients ask for beyond their grants.

use clap::{Args, ValueEnum};
use grants::step_up::{Allowance, Extension, Proposal};
use rest::owner::wire::{AskDecision, AskingChange};

use super::{refuse_secret, with_similar_ids};
use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::output::visible;
use crate::owner::{OwnerClient, OwnerError, RequestPath};

/// List what clients ask for beyond their grants
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp grant asks")]
pub(crate) struct ListOptions {}

/// Allow what a client asked for beyond its grant
#[derive(Debug, Args)]
#[command(
    after_help = "Example: pdpp grant allow grt_5f0c2a9be1d37846.0a1b2c3d4e5f6071 --for ten-minutes"
)]
pub(crate) struct AllowOptions {
    /// The id of what is asked, as `pdpp grant asks` prints it
    id: String,
    /// For how long
    #[arg(long = "for", value_name = "TIME", default_value = "once")]
    time: Time,
}

/// For how long something is allowed.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Time {
    /// For the next such call
    Once,
    /// For ten minutes
    TenMinutes,
    /// For as long as the grant lives
    Lasting,
}

/// Say no to what a client asked for; the same is not asked for again for a day
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp grant deny grt_5f0c2a9be1d37846.0a1b2c3d4e5f6071")]
pub(crate) struct DenyOptions {
    /// The id of what is asked, as `pdpp grant asks` prints it
    id: String,
}

/// Let the client of a grant ask for more, or not
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp grant asking grt_5f0c2a9be1d37846 off")]
pub(crate) struct AskingOptions {
    /// The id of a grant or a package
    id: String,
    /// Whether it may ask
    state: Switch,
}

/// Whether something is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    /// It may ask
    On,
    /// It may not
    Off,
}

fn proposals(owner: &OwnerClient) -> CommandResult<Vec<Proposal>> {
    Ok(owner.get(&RequestPath::new("/owner/asks"))?)
}

pub(crate) fn list(_: &ListOptions, context: &Context) -> CommandResult {
    let owner = context.owner("pdpp grant asks")?;
    let (all, output) = (proposals(&owner)?, context.output);
    if output.is_json() {
        return output.json(&all);
    }
    if all.is_empty() {
        output.note("Nobody asks for more than was granted.");
    }
    for proposal in &all {
        output.data(&format!(
            "{}  {}",
            proposal.ask.id,
            visible(proposal.ask.client_id.as_str())
        ))?;
        for row in &proposal.rows {
            output.data(&format!("  {}", visible(&row.words())))?;
        }
        if proposal.rows.is_empty() {
            let stream = visible(&proposal.ask.beyond.stream);
            output.data(&format!(
                "  {stream}: there is nothing of that name to allow"
            ))?;
        }
    }
    Ok(())
}

pub(crate) fn allow(options: &AllowOptions, context: &Context) -> CommandResult {
    let owner = context.owner("pdpp grant allow")?;
    let proposals = proposals(&owner)?.into_iter();
    let shown = proposals.into_iter().find(|one| one.ask.id == options.id);
    let Some(shown) = shown else {
        let list = context.command("grant asks");
        return Err(
            Failure::new("nothing is asked under this id, or it was decided already")
                .hint(format!("`{list}` lists what is asked")),
        );
    };
    let allowance = match options.time {
        Time::Once => Allowance::Once,
        Time::TenMinutes => Allowance::TenMinutes,
        Time::Lasting => Allowance::Lasting,
    };
    let decision = AskDecision {
        id: options.id.clone(),
        digest: Some(shown.digest),
        allowance: Some(allowance),
    };
    let allowed: Option<Extension> = owner.post(&RequestPath::new("/owner/asks"), &decision)?;
    let output = context.output;
    if output.is_json() {
        return output.json(&allowed);
    }
    let words = allowed.map(|extension| visible(&extension.words()));
    output.note(&format!("Allowed: {}", words.unwrap_or_default()));
    Ok(())
}

pub(crate) fn deny(options: &DenyOptions, context: &Context) -> CommandResult {
    let owner = context.owner("pdpp grant deny")?;
    let decision = AskDecision {
        id: options.id.clone(),
        digest: None,
        allowance: None,
    };
    let _: Option<Extension> = owner.post(&RequestPath::new("/owner/asks"), &decision)?;
    let words = "Not allowed. The same is not asked for again for a day.";
    context.output.note(words);
    Ok(())
}

pub(crate) fn asking(options: &AskingOptions, context: &Context) -> CommandResult {
    refuse_secret(&options.id, context)?;
    let owner = context.owner("pdpp grant asking")?;
    let change = AskingChange {
        id: options.id.clone(),
        may_ask: options.state == Switch::On,
    };
    let changed: Result<(), OwnerError> = owner.post(&RequestPath::new("/owner/asking"), &change);
    changed.map_err(|error| with_similar_ids(error, &options.id, &owner))?;
    context.output.note(match options.state {
        Switch::On => "It may ask for more in its calls.",
        Switch::Off => "It may not ask for more. What it asks beyond its grant is refused without a way to ask.",
    });
    Ok(())
}
