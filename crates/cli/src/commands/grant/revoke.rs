//! `pdpp grant revoke`: the end of a grant, a package or a token.

use clap::Args;
use grants::{RevokedKind, Revoking};
use serde::Serialize;

use super::{refuse_secret, with_similar_ids};
use crate::context::Context;
use crate::failure::CommandResult;
use crate::moment;
use crate::owner::RequestPath;

/// End a grant, a package or an owner token, at once and for good
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp grant revoke grt_5f0c2a9be1d37846")]
pub(crate) struct Options {
    /// The id of a grant, a package, or an owner token
    id: String,
}

#[derive(Serialize)]
struct Answer<'a> {
    id: &'a str,
    #[serde(flatten)]
    revoking: &'a Revoking,
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let (id, output) = (options.id.as_str(), context.output);
    refuse_secret(id, context)?;
    let owner = context.owner("pdpp grant revoke")?;
    let revoking: Revoking = owner
        .delete(&RequestPath::new("/owner/grant").param("id", id))
        .map_err(|error| with_similar_ids(error, id, &owner))?;
    if output.is_json() {
        return output.json(&Answer {
            id,
            revoking: &revoking,
        });
    }
    let kind = match revoking.kind {
        RevokedKind::Grant => "grant",
        RevokedKind::Package => "package",
        RevokedKind::Token => "token",
    };
    output.note(&match &revoking.already_since {
        None => format!("Revoked {kind} {id}. Nothing can be read under it any more."),
        Some(at) => {
            let at = moment::to_local_seconds(at);
            format!("Nothing to do: {kind} {id} was revoked at {at}.")
        }
    });
    Ok(())
}
