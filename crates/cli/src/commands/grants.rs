//! `pdpp grants`: everything that was granted, and the disclosure log checked.

use clap::{Args, Subcommand};
use contract::time::{Clock, Instant};
use grants::{IssuedStream, Overview, State};
use indicatif::HumanCount;
use serde::Serialize;
use store::EmbeddedStore;
use store::grants::ChainCheck;

use crate::clock::SystemClock;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output::visible;

/// Streams named per row.
const STREAMS_SHOWN: usize = 3;

/// List what was granted, newest first, or check the log of what was disclosed
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp grants --json")]
pub(crate) struct Options {
    #[command(subcommand)]
    task: Option<Task>,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Check that the disclosure log is what was written, entry by entry
    #[command(after_help = "Example: pdpp grants verify")]
    Verify,
}

#[derive(Serialize)]
struct Verified<'a> {
    entries: u64,
    broken: Option<Broken<'a>>,
}

#[derive(Serialize)]
struct Broken<'a> {
    sequence: u64,
    reason: &'a str,
}

pub(crate) fn run(options: &Options, context: &Context) -> Outcome {
    match options.task {
        None => list(context),
        Some(Task::Verify) => verify(context),
    }
}

fn list(context: &Context) -> Outcome {
    let store = context.open("pdpp grants")?;
    let (output, now) = (context.output, SystemClock.now());
    let all = grants::list(&store, now)?;
    if output.is_json() {
        return output.json(&all);
    }
    if all.is_empty() {
        output.note(
            "Nothing was granted yet. Grant something with: pdpp grant create --client NAME --connection ID",
        );
    } else {
        let heads = ["ID", "CLIENT", "STATE", "ENDS", "LAST USED", "MAY READ"];
        let mut table = vec![heads.map(str::to_owned)];
        table.extend(all.iter().map(row));
        output.table(&table)?;
    }
    tell_owner_tokens(&store, now, context)
}

fn row(overview: &Overview) -> [String; 6] {
    let time = |time: &Option<String>| time.clone().unwrap_or_else(|| "never".to_owned());
    let client = overview.client_name.as_deref();
    [
        overview.id.clone(),
        visible(client.unwrap_or(overview.client_id.as_str())),
        state_name(overview).to_owned(),
        time(&overview.expires_at),
        time(&overview.last_used_at),
        streams(&overview.streams),
    ]
}

fn streams(all: &[IssuedStream]) -> String {
    let shown: Vec<String> = all
        .iter()
        .take(STREAMS_SHOWN)
        .map(|one| format!("{} {}", one.connection_id, visible(one.stream.as_str())))
        .collect();
    let more = all.len().saturating_sub(shown.len());
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The state of a grant or package in one word.
pub(crate) fn state_name(overview: &Overview) -> &'static str {
    match overview.state {
        State::Live => "live",
        State::Expired => "expired",
        State::Revoked => "revoked",
        State::Invalid => "invalid",
    }
}

/// Owner tokens are no grants, yet whoever looks what is open must hear of them.
fn tell_owner_tokens(store: &EmbeddedStore, now: Instant, context: &Context) -> Outcome {
    for token in grants::owner_tokens(store, now)? {
        if token.state == State::Live {
            context.output.note(&format!(
                "Owner token {} is live until {}. End it with: pdpp grant revoke {}",
                token.token_id, token.expires_at, token.token_id
            ));
        }
    }
    Ok(())
}

fn verify(context: &Context) -> Outcome {
    let store = context.open("pdpp grants verify")?;
    let output = context.output;
    let ChainCheck { entries, broken } = grants::verify(&store)?;
    if output.is_json() {
        let broken = broken.as_ref().map(|broken| Broken {
            sequence: broken.sequence,
            reason: &broken.reason,
        });
        let is_whole = broken.is_none();
        output.json(&Verified { entries, broken })?;
        return if is_whole {
            Ok(())
        } else {
            Err(Failure::Reported)
        };
    }
    match broken {
        None => output.data(&format!(
            "The disclosure log is whole. Entries, each as it was written: {}.",
            HumanCount(entries)
        )),
        Some(broken) => Err(Failure::new(format!(
            "the disclosure log is broken at entry {}: {}",
            broken.sequence,
            visible(&broken.reason)
        ))
        .hint(format!(
            "entries before it that stand as they were written: {}; a backup made before the change shows what the others were",
            HumanCount(entries)
        ))),
    }
}
