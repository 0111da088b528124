//! `pdpp grants`: everything that was granted, and the disclosure log checked.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use grants::{Overview, OwnerTokenOverview, State, Wording};
use indicatif::HumanCount;
use store::grants::ChainCheck;

use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::moment;
use crate::output::visible;
use crate::owner::{OwnerClient, RequestPath};
use crate::render::{Lines as _, columns};

/// Streams named per grant, and names in each list of fields and records.
const NAMES_SHOWN: usize = 6;

/// List what was granted, or check the log of what was disclosed
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp grants --json")]
pub(crate) struct Options {
    #[command(subcommand)]
    task: Option<Task>,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Check that the disclosure log is what was written, entry by entry, or a file of receipts
    #[command(after_help = "Example: pdpp grants verify --receipts receipts.jsonl")]
    Verify {
        /// A file that `pdpp grants receipts` wrote; neither server nor data are needed
        #[arg(long, value_name = "FILE")]
        receipts: Option<PathBuf>,
        /// The public key the receipts must be signed with
        #[arg(
            long,
            value_name = "KEY",
            requires = "receipts",
            allow_hyphen_values = true
        )]
        key: Option<String>,
    },
    /// Print what was disclosed as signed statements, one JSON line each
    #[command(after_help = "Example: pdpp grants receipts > receipts.jsonl")]
    Receipts {
        /// Only under this grant
        #[arg(long, value_name = "ID")]
        grant: Option<String>,
    },
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    match &options.task {
        None => list(context),
        Some(Task::Verify { receipts: None, .. }) => verify(context),
        Some(Task::Verify {
            receipts: Some(file),
            key,
        }) => verify_receipts(file, key.as_deref(), context),
        Some(Task::Receipts { grant }) => receipts(grant.as_deref(), context),
    }
}

fn receipts(grant: Option<&str>, context: &Context) -> CommandResult {
    let owner = context.owner("pdpp grants receipts")?;
    let mut path = RequestPath::new("/owner/receipts");
    if let Some(grant) = grant {
        path = path.param("id", grant);
    }
    context.output.write(|out| {
        let mut take = |bytes: &[u8]| {
            out.write_all(bytes)
                .map_err(|error| Failure::writing_output(&error))
        };
        Ok(owner.download(&path, &mut take)?)
    })
}

fn verify_receipts(file: &Path, key: Option<&str>, context: &Context) -> CommandResult {
    let output = context.output;
    let opened =
        File::open(file).map_err(|error| Failure::new(format!("{}: {error}", file.display())))?;
    let checked = grants::receipts::verify_receipts(BufReader::new(opened), key)
        .map_err(|error| Failure::new(format!("the receipts do not hold: {error}")))?;
    if output.is_json() {
        return output.json(&checked);
    }
    output.data(&format!(
        "The receipts hold. Disclosures, each as it was signed: {}. Written {}, signed with the key {}.",
        HumanCount(checked.disclosures),
        moment::to_local_seconds(&checked.issued_at),
        visible(&checked.key)
    ))
}

fn list(context: &Context) -> CommandResult {
    let owner = context.owner("pdpp grants")?;
    let output = context.output;
    let all = all_grants(&owner)?;
    if output.is_json() {
        return output.json(&all);
    }
    if all.is_empty() {
        let create = context.granting("NAME");
        output.note(&format!(
            "Nothing was granted yet. Grant something with: {create}"
        ));
    } else {
        let heads = ["ID", "CLIENT", "STATE", "ENDS", "LAST USED", "MAY READ"];
        let mut table = vec![heads.map(str::to_owned)];
        table.extend(all.iter().flat_map(rows));
        let mut text = columns(&table, 0, output.style());
        if all.iter().any(is_cut) {
            let show = context.command("grant show").argument("ID");
            text.push_line(format_args!(
                "All of one, to its last field and record: {show}"
            ));
        }
        output.text(&text)?;
    }
    print_owner_tokens(&owner, context)
}

/// Everything that was ever granted, newest first.
pub(crate) fn all_grants(owner: &OwnerClient) -> CommandResult<Vec<Overview>> {
    Ok(owner.get(&RequestPath::new("/owner/grants"))?)
}

/// One table row per line of what may be read; only the first row has the other cells.
fn rows(overview: &Overview) -> Vec<[String; 6]> {
    let time = |time: &Option<String>| {
        time.as_deref()
            .map_or("never".to_owned(), moment::to_local_seconds)
    };
    let client = overview.client_name.as_deref();
    let mut lines = brief(overview).into_iter();
    let first = [
        overview.id.clone(),
        visible(client.unwrap_or(overview.client_id.as_str())),
        state_name(overview).to_owned(),
        time(&overview.expires_at),
        time(&overview.last_used_at),
        lines.next().unwrap_or_default(),
    ];
    let below = lines.map(|line| {
        let mut row: [String; 6] = std::array::from_fn(|_| String::new());
        row[5] = line;
        row
    });
    std::iter::once(first).chain(below).collect()
}

fn brief(overview: &Overview) -> Vec<String> {
    Wording::brief(NAMES_SHOWN, visible).overview(overview)
}

fn is_cut(overview: &Overview) -> bool {
    brief(overview) != Wording::whole(visible).overview(overview)
}

/// The state of a grant or package in one word.
pub(crate) fn state_name(overview: &Overview) -> &'static str {
    match overview.state {
        State::Live => "live",
        State::Waiting => "waiting",
        State::Lapsed => "lapsed",
        State::Expired => "expired",
        State::Revoked => "revoked",
        State::Invalid => "invalid",
    }
}

/// Lists live owner tokens too: they are not grants, but they give access.
fn print_owner_tokens(owner: &OwnerClient, context: &Context) -> CommandResult {
    let tokens: Vec<OwnerTokenOverview> = owner.get(&RequestPath::new("/owner/tokens"))?;
    for token in tokens {
        if token.state == State::Live {
            context.output.note(&format!(
                "Owner token {} is live until {}. End it with: {}",
                token.token_id,
                moment::to_local_seconds(&token.expires_at),
                context
                    .command("grant revoke")
                    .argument(token.token_id.as_str())
            ));
        }
    }
    Ok(())
}

fn verify(context: &Context) -> CommandResult {
    let owner = context.owner("pdpp grants verify")?;
    let output = context.output;
    let verified: ChainCheck = owner.get(&RequestPath::new("/owner/disclosures/check"))?;
    if output.is_json() {
        output.json(&verified)?;
        return if verified.broken.is_none() {
            Ok(())
        } else {
            Err(Failure::REPORTED)
        };
    }
    let entries = verified.entries;
    if verified.waiting > 0 {
        output.note(&format!(
            "Not in the log yet, but on disk: {} disclosures. They are taken into it when there is room.",
            HumanCount(verified.waiting)
        ));
    }
    match verified.broken {
        None if verified.dropped > 0 => output.data(&format!(
            "The disclosure log is whole. Entries, each as it was written: {}. Before them the first {} were dropped by the owner's rule, as the log says.",
            HumanCount(entries),
            HumanCount(verified.dropped)
        )),
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
