//! `pdpp grant show`: what was granted, and what it has been used for.

use clap::Args;
use grants::{DisclosedCall, GrantDetails, Overview, State, TOKENS_ENDED, TokenKind, Wording};
use store::grants::RevocationReason;

use super::{fetch_grant, refuse_secret, with_similar_ids};
use crate::commands::grants::state_name;
use crate::context::Context;
use crate::failure::CommandResult;
use crate::moment;
use crate::output::{Output, visible};
use crate::owner::OwnerClient;
use crate::render::columns;

/// Record handles shown per call.
const HANDLES_SHOWN: usize = 3;

/// Show a grant or package: what it may read, and the calls it was used for
///
/// With --json the grants stand in full, and every record handle of the calls.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp grant show grt_5f0c2a9be1d37846")]
pub(crate) struct Options {
    /// The id of a grant or a package
    id: String,
    /// How many of its last calls
    #[arg(long, value_name = "N", default_value_t = 20)]
    calls: usize,
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let (id, output) = (options.id.as_str(), context.output);
    refuse_secret(id, context)?;
    let owner = context.owner("pdpp grant show")?;
    // One more than asked for tells whether there are more.
    let asked = options.calls.saturating_add(1);
    let mut shown =
        fetch_grant(&owner, id, asked).map_err(|error| with_similar_ids(error, id, &owner))?;
    let more = shown.disclosures.len() > options.calls;
    shown.disclosures.truncate(options.calls);
    if output.is_json() {
        return output.json(&shown);
    }
    head(&shown.overview, output)?;
    terms(&shown, &owner, output)?;
    for extension in &shown.extensions {
        output.data(&format!(
            "Allowed beside it: {}",
            visible(&extension.words())
        ))?;
    }
    for state in &shown.budgets {
        let used = &state.used;
        output.data(&format!(
            "Budget: {}; today {} records, {} different",
            state.budget.words().join(", "),
            used.records,
            used.distinct_records
        ))?;
    }
    if let Some(pause) = &shown.paused {
        output.data(&format!("Paused: {}", visible(&pause.reason)))?;
    }
    if !shown.may_ask {
        output.data("It may not ask for more.")?;
    }
    output.data(if shown.disclosures.is_empty() && !more {
        "Calls: none"
    } else {
        "Calls, newest first:"
    })?;
    for call in &shown.disclosures {
        output.data(&format!("  {}", describe_call(call)))?;
    }
    if more {
        let next = options.calls.saturating_mul(10).max(100);
        let earlier = context.command("grant show").argument(id);
        let earlier = earlier.option("calls", Some(next));
        output.note(&format!("There are earlier calls: {earlier}"));
    }
    Ok(())
}

fn head(overview: &Overview, output: Output) -> CommandResult {
    let kind = match overview.token_kind {
        TokenKind::Package => "Package",
        _ => "Grant",
    };
    let client = match &overview.client_name {
        Some(name) => format!(
            "{} ({})",
            visible(name),
            visible(overview.client_id.as_str())
        ),
        None => visible(overview.client_id.as_str()),
    };
    let mut lines = vec![
        [kind, &overview.id].map(str::to_owned),
        ["Client".to_owned(), client],
        ["State".to_owned(), state_in_words(overview)],
        [
            "Issued".to_owned(),
            moment::to_local_seconds(&overview.issued_at),
        ],
        ["Ends".to_owned(), or_never(overview.expires_at.as_deref())],
    ];
    let happened = [
        ("Revoked", &overview.revoked_at),
        ("Narrowed", &overview.narrowed_at),
    ];
    for (name, at) in happened {
        if let Some(at) = at {
            lines.push([name.to_owned(), moment::to_local_seconds(at)]);
        }
    }
    let used = or_never(overview.last_used_at.as_deref());
    lines.push(["Last used".to_owned(), used]);
    output.data(columns(&lines, 0, output.style()).trim_end())
}

/// The state, and what it means where one word does not say it.
fn state_in_words(overview: &Overview) -> String {
    let state = state_name(overview);
    let by = or_never(overview.redeem_by.as_deref());
    match overview.state {
        State::Waiting => format!("{state}: the application must come for it by {by}"),
        State::Lapsed => format!("{state}: the application did not come for it by {by}"),
        State::Revoked if overview.revoked_reason == Some(RevocationReason::TokensEnded) => {
            format!("{state}: {TOKENS_ENDED}")
        }
        _ => state.to_owned(),
    }
}

fn or_never(at: Option<&str>) -> String {
    at.map_or_else(|| "never".to_owned(), moment::to_local_seconds)
}

/// What each grant gives, and for which purpose.
fn terms(whole: &GrantDetails, owner: &OwnerClient, output: Output) -> CommandResult {
    let wording = Wording::whole(visible);
    for grant in &whole.overview.grants {
        let own = match whole.overview.token_kind {
            TokenKind::Package => {
                let part = fetch_grant(owner, grant.id().as_str(), 0)?;
                format!("Grant {}, {}, of ", grant.id(), state_name(&part.overview))
            }
            _ => "Of ".to_owned(),
        };
        output.data(&format!("{own}{}:", wording.title(grant)))?;
        for line in wording.grant(grant, &whole.overview.streams) {
            output.data(&format!("  {line}"))?;
        }
        for line in wording.agreed(grant) {
            output.data(&line)?;
        }
    }
    Ok(())
}

fn describe_call(call: &DisclosedCall) -> String {
    let shown: Vec<String> = call
        .records
        .iter()
        .take(HANDLES_SHOWN)
        .map(|handle| visible(handle))
        .collect();
    let more = call.records.len().saturating_sub(shown.len());
    let records = match (shown.as_slice(), more) {
        ([], _) => "no records".to_owned(),
        (shown, 0) => shown.join(", "),
        (shown, more) => format!("{} and {more} more", shown.join(", ")),
    };
    let fields: Vec<String> = call.fields.iter().map(|field| visible(field)).collect();
    let fields = match fields.as_slice() {
        [] => String::new(),
        fields => format!("; fields {}", fields.join(", ")),
    };
    format!(
        "{} {}: {records}{fields}",
        moment::to_local_seconds(&call.at),
        visible(&call.operation)
    )
}
