//! `pdpp owner-password`: how the owner signs in at the pages of the server.

use std::io::{self, BufRead as _};

use clap::Args;
use rest::owner::wire::NewPassword;

use crate::config::owner_password;
use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::owner::RequestPath;

/// Set the password for the server's pages, or set it anew
///
/// It is asked for twice and not shown. Where there is no terminal, it is the first line of the input, or
/// `PDPP_OWNER_PASSWORD`. Every browser that is signed in has to sign in again.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp owner-password")]
pub(crate) struct Options {}

pub(crate) fn run(_: &Options, context: &Context) -> CommandResult {
    let password = match owner_password()? {
        Some(password) => password,
        None => asked(context)?,
    };
    let owner = context.owner("pdpp owner-password")?;
    let target = RequestPath::new("/owner/password");
    let _: serde_json::Value = owner.post(&target, &NewPassword { password })?;
    context
        .output
        .note("The password is set. Browsers that were signed in have to sign in again.");
    Ok(())
}

fn asked(context: &Context) -> CommandResult<String> {
    let unread = |error: io::Error| Failure::new(format!("the password cannot be read: {error}"));
    let Some(first) = context.output.secret("New password") else {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map_err(unread)?;
        return Ok(line.trim_end_matches(['\n', '\r']).to_owned());
    };
    let first = first.map_err(unread)?;
    let again = context.output.secret("The same again");
    if again.transpose().map_err(unread)? != Some(first.clone()) {
        return Err(Failure::new(
            "the two are not the same; nothing was changed",
        ));
    }
    Ok(first)
}
