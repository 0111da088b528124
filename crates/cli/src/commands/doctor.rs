//! `pdpp doctor`: whether all is well, on this machine or at a server, and what to do where it is not.

mod counted_time;
mod integrity;
mod local;
mod remote;

use clap::Args;
use client::ProviderUrl;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::config::RemoteSettings;
use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::owner::RequestPath;
use crate::render::{Lines as _, wrap_hanging};

/// Check the local data, or a server as a client would
///
/// Without a URL: the data directory, the disk, the clock, the index and the socket. With one: what the server publishes,
/// how it sends strangers on, the stored credential, and a read with it. Ends with 0 only when all is well, with 69
/// where the server cannot be reached.
///
/// Data that is older than what was acknowledged, because its log was lost, is not served to clients until you have
/// confirmed it with --accept-rollback.
///
/// Time that has passed does not come back: a clock that is set back lets no grant live again. Where the clock was
/// ahead by mistake, --reset-clock counts from what it says now.
///
/// With --thorough everything that is stored is read and held against what was written: records, index and blobs.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp doctor https://pdpp.example.org")]
pub(crate) struct Options {
    #[arg(help = "The server to check [env: PDPP_PROVIDER_URL] [default: the local data]")]
    url: Option<String>,
    #[arg(
        long,
        value_name = "DIR",
        help = "Where credentials are kept [env: PDPP_CACHE_ROOT] [default: the platform's data folder, pdpp; else ./.pdpp]"
    )]
    cache_root: Option<std::path::PathBuf>,
    /// Read everything that is stored here, and say what is damaged
    #[arg(long, conflicts_with = "url")]
    thorough: bool,
    /// Take data that went back in time as it is, so that clients are answered again
    #[arg(long, conflicts_with = "url")]
    accept_rollback: bool,
    /// Count time from this machine's clock again, after it was wrong and ahead
    #[arg(long, conflicts_with = "url")]
    reset_clock: bool,
}

/// Asks the store of this machine, by its server where one runs.
fn ask<T: DeserializeOwned>(path: &str, context: &Context) -> CommandResult<T> {
    let owner = context.owner("pdpp doctor")?;
    Ok(owner.get(&RequestPath::new(path))?)
}

/// What was looked at, and how it is.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    ok: bool,
    message: String,
    /// What to do about it; there is always something.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self {
            check,
            ok: true,
            message: message.into(),
            remedy: None,
        }
    }

    fn failed(check: &'static str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            check,
            ok: false,
            message: message.into(),
            remedy: Some(remedy.into()),
        }
    }

    /// What a failure says, with its hint as the remedy.
    fn from_failure(check: &'static str, failure: &Failure, otherwise: &str) -> Self {
        let text = failure.to_string();
        let mut lines = text.lines();
        let message = lines.next().unwrap_or_default();
        let remedy = lines.find_map(|line| line.strip_prefix("hint: "));
        // This is the doctor, and what is closed is not mended by what mends damage.
        let remedy = remedy.filter(|remedy| !remedy.starts_with("`pdpp doctor`"));
        let remedy = if message.contains("Permission denied") {
            Some(remedy.unwrap_or("do what is said, then run `pdpp doctor` again"))
        } else {
            remedy
        };
        Self::failed(
            check,
            message.strip_prefix("error: ").unwrap_or(message),
            remedy.unwrap_or(otherwise),
        )
    }
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    if options.accept_rollback {
        integrity::accept_rollback(context)?;
    }
    let settings = RemoteSettings::resolve(options.url.clone(), options.cache_root.clone())?;
    let (findings, unreached) = match &settings.provider_url {
        // The options about stored data are always for the local store, whatever server is set.
        Some(url) if !options.thorough && !options.accept_rollback && !options.reset_clock => {
            remote::check(&ProviderUrl::parse(url)?, &settings, context)?
        }
        _ => {
            if options.reset_clock {
                counted_time::reset(context)?;
            }
            (local::check(context, options.thorough), None)
        }
    };
    let ok = findings.iter().all(|finding| finding.ok);
    let output = context.output;
    if output.is_json() {
        output.json(&json!({"ok": ok, "findings": findings}))?;
    } else {
        let width = findings.iter().map(|finding| finding.check.len()).max();
        let width = width.unwrap_or(0);
        let style = output.style();
        let mut text = String::new();
        for finding in &findings {
            let state = if finding.ok {
                style.success("ok  ")
            } else {
                style.error("FAIL")
            };
            // The state, the check, and two spaces after each.
            let at = 4 + 2 + width + 2;
            let message = wrap_hanging(&finding.message, at, at, style);
            text.push_line(format_args!("{state}  {:width$}  {message}", finding.check));
            if let Some(remedy) = &finding.remedy {
                let remedy = wrap_hanging(&format!("do: {remedy}"), at, at + 4, style);
                text.push_line(format_args!("{:at$}{remedy}", ""));
            }
        }
        output.text(&text)?;
    }
    match unreached {
        Some(exit) => Err(Failure::Reported(exit)),
        None if ok => Ok(()),
        None => Err(Failure::REPORTED),
    }
}
