//! `pdpp owner-token`: a bearer for the owner's own automation.

use std::time::Duration;

use clap::Args;
use grants::OwnerToken;
use rest::owner::wire::NewOwnerToken;

use crate::context::Context;
use crate::failure::CommandResult;
use crate::owner::RequestPath;

/// Print an owner token for automation, such as ingest
///
/// It may do everything the owner may, except speak MCP. It is printed once and not kept. Agents get a grant instead.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp owner-token --ttl 30m")]
pub(crate) struct Options {
    /// How long it lives: a number with s, m, h or d, at most 366d
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = life)]
    ttl: Duration,
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let owner = context.owner("pdpp owner-token")?;
    let new = NewOwnerToken {
        ttl_seconds: options.ttl.as_secs(),
    };
    let token: OwnerToken = owner.post(&RequestPath::new("/owner/tokens"), &new)?;
    let output = context.output;
    let printed = if output.is_json() {
        output.json(&token)
    } else {
        output.data(token.access_token.expose())
    };
    let revoke = context.command("grant revoke");
    let end = format!("End it with: {}", revoke.argument(token.token_id.as_str()));
    if printed.is_err() {
        output.problem(&format!(
            "The token was issued and could not be printed. {end}"
        ));
    } else if !output.is_json() {
        output.note(&format!(
            "Owner token {}: until {} whoever holds it may do what you may. It is shown this once. {end}",
            token.token_id,
            crate::moment::to_local_seconds(&token.expires_at)
        ));
    }
    printed
}

fn life(text: &str) -> Result<Duration, String> {
    let refusal = || "write a number with s, m, h or d, such as 30m, 1h or 7d".to_owned();
    let life = crate::moment::span(text).ok_or_else(refusal)?;
    Some(life)
        .filter(|life| (1..=366 * 24 * 60 * 60).contains(&life.as_secs()))
        .ok_or_else(|| "an owner token lives between 1s and 366d".to_owned())
}
