//! `pdpp sign-in`: a fresh link to the pages of the running server.

use std::process::{Command, Stdio};

use clap::Args;
use rest::owner::wire::SignInLink;

use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::owner::{OwnerClient, RequestPath};

/// Print a link that signs you in at the pages of the running server
///
/// It works once, for 15 minutes, with or without a password. Open it, or paste it where the page asks for it.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp sign-in")]
pub(crate) struct Options {
    /// Also open it in the browser of this machine
    #[arg(long)]
    open: bool,
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    if !OwnerClient::is_served(&context.settings.data_dir)? {
        let message = "no server runs over this data, so there is no page to sign in at";
        let serve = context.command("serve");
        return Err(Failure::new(message).hint(format!("start one: {serve} (it prints a link)")));
    }
    let owner = context.owner("pdpp sign-in")?;
    let fresh: SignInLink = owner.post(&RequestPath::new("/owner/sign-in"), &())?;
    if options.open {
        open(&fresh.link, context);
    }
    if context.output.is_json() {
        return context.output.json(&fresh);
    }
    context.output.data(&fresh.link)?;
    context
        .output
        .note("It signs in once, within 15 minutes. Give it to nobody.");
    Ok(())
}

/// Hands a link to the desktop. Where that fails, the link that is printed does the same.
fn open(link: &str, context: &Context) {
    let (program, arguments): (&str, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[]),
        "windows" => ("cmd", &["/C", "start", ""]),
        _ => ("xdg-open", &[]),
    };
    let opened = Command::new(program)
        .args(arguments)
        .arg(link)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !opened.is_ok_and(|status| status.success()) {
        let note = format!("{program} could not open it; open it yourself:");
        context.output.note(&note);
    }
}
