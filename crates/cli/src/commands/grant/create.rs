//! `pdpp grant create`: the owner lets a client read.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{ArgGroup, Args};
use contract::time::Instant;
use grants::{Flags, Issued, Selection, SelectionError, Wording};
use rest::owner::wire::{GrantSelection, NewGrant, Sources};

use super::fetch_grant;
use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::file;
use crate::first_steps;
use crate::output::visible;
use crate::owner::{OwnerClient, OwnerError, RequestPath};
use crate::spelling::did_you_mean;

/// Let a client read, and print the token for it
///
/// Exactly what is named is granted; naming nothing is an error, never everything. The token is printed once and not
/// kept. Connections of several sources make a package: one grant for each, one token for all.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("recipient").required(true).args(["client", "local"]),
    after_help = "Example: pdpp grant create --client claude-code --connection mail-work --stream messages --fields subject,sent_at --since 2026-01-01"
)]
pub(crate) struct Options {
    /// Who may read: an id, or a name for people
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    client: Option<String>,
    /// For no client: what `pdpp mcp` reads under on this machine when no grant is named
    #[arg(long)]
    local: bool,
    /// The connections; alone, all their streams and fields
    #[arg(long, value_name = "ID", num_args = 1.., alias = "connection-id")]
    connection: Vec<String>,
    /// Only this stream of the connections (may be repeated)
    #[arg(long, value_name = "NAME")]
    stream: Vec<String>,
    /// Only these fields, of exactly one stream
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    fields: Vec<String>,
    /// Only records from then on: RFC 3339 or a date
    #[arg(long, value_name = "T")]
    since: Option<String>,
    /// Only records before then: RFC 3339 or a date
    #[arg(long, value_name = "T")]
    until: Option<String>,
    /// Only records that meet this condition: 'field=value', 'field>=value' (>=, >, <=, <), 'field^=beginning', 'field~=word', or 'key.field=value' of the record that a foreign key names (may be repeated: all must hold; of one field, any of the values)
    #[arg(long = "where", value_name = "FIELD=VALUE")]
    only: Vec<String>,
    /// No record that meets this condition, whatever else allows it (may be repeated)
    #[arg(long, value_name = "FIELD=VALUE")]
    except: Vec<String>,
    /// Show only a part of a field: first:N, year, month, domain, hash or presence (may be repeated)
    #[arg(long, value_name = "FIELD=HOW")]
    redact: Vec<String>,
    /// When the grant ends: RFC 3339 or a date [default: in 90 days; for single use, in one]
    #[arg(long, value_name = "T", value_parser = moment)]
    expires: Option<Instant>,
    /// What a template selects, which `pdpp grant template` keeps
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with_all = ["connection", "stream", "fields", "since", "until", "only", "except", "redact", "details"]
    )]
    template: Option<String>,
    /// Anything richer: RFC 9396 authorization details, a JSON file ('-' reads stdin)
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["connection", "stream", "fields", "since", "until", "only", "except", "redact"]
    )]
    details: Option<PathBuf>,
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let details = options.details.clone();
    let named = flags(options);
    let selection = requested_selection(options, context)?;
    let owner = context.owner("pdpp grant create")?;
    let new = NewGrant {
        client: options.client.clone(),
        expires_at: options.expires.map(|expires| expires.to_string()),
        selection,
    };
    let issued: Issued = match owner.post(&RequestPath::new("/owner/grants"), &new) {
        Err(OwnerError::Refused(refused)) if !refused.mistakes.is_empty() => {
            print_mistakes(refused.mistakes.into_iter(), details.as_ref(), context);
            print_next_steps(&named, &owner, context)?;
            return Err(Failure::REPORTED);
        }
        other => other?,
    };
    if context.output.is_json() {
        return or_say_how_to_revoke(context.output.json(&issued), &issued, context);
    }
    let printed = context.output.data(issued.access_token.expose());
    or_say_how_to_revoke(printed, &issued, context)?;
    describe(&issued, &owner, context)
}

/// The selection from the options, with every mistake that can be found without the data.
fn requested_selection(options: &Options, context: &Context) -> CommandResult<GrantSelection> {
    let each = |mistakes: SelectionError| mistakes.0.into_iter().map(|one| one.to_string());
    if let Some(name) = &options.template {
        return Ok(GrantSelection::Template(name.clone()));
    }
    let Some(file) = &options.details else {
        let flags = flags(options);
        Selection::from_flags(flags.clone()).map_err(|mistakes| {
            print_mistakes(each(mistakes), None, context);
            Failure::MISUSED
        })?;
        return Ok(GrantSelection::Flags(flags));
    };
    let text = file::read(file)?;
    Selection::from_details(&text).map_err(|mistakes| {
        print_mistakes(each(mistakes), Some(file), context);
        Failure::REPORTED
    })?;
    Ok(GrantSelection::Details(text))
}

fn flags(options: &Options) -> Flags {
    Flags {
        connections: options.connection.clone(),
        streams: options.stream.clone(),
        fields: options.fields.clone(),
        since: options.since.clone(),
        until: options.until.clone(),
        only: options.only.clone(),
        except: options.except.clone(),
        redact: options.redact.clone(),
    }
}

fn moment(text: &str) -> Result<Instant, String> {
    Instant::parse(text).ok_or_else(|| {
        "not an RFC 3339 time or date, such as 2027-01-31T12:00:00Z or 2027-01-31".to_owned()
    })
}

/// Tells every mistake, each on a line of its own.
fn print_mistakes(
    mistakes: impl Iterator<Item = String>,
    file: Option<&PathBuf>,
    context: &Context,
) {
    for mistake in mistakes {
        let mistake = visible(&mistake);
        context.output.problem(&match file {
            Some(file) => format!("{}: {mistake}", file.display()),
            None => format!("error: {mistake}"),
        });
    }
}

/// Hints after a refused grant: the id of a connection that was given by name, similar names, or the first steps.
fn print_next_steps(asked: &Flags, owner: &OwnerClient, context: &Context) -> CommandResult {
    let sources = owner.sources()?;
    let mut hints = Vec::new();
    if sources.connections.is_empty() && !asked.connections.is_empty() {
        hints.extend(first_steps::next_steps(&sources, context));
    }
    for connection in &sources.connections {
        let (id, name) = (connection.connection_id.as_str(), &connection.display_name);
        if asked
            .connections
            .iter()
            .any(|asked| asked == name && asked != id)
        {
            hints.push(format!("the id of '{}' is {id}", visible(name)));
        }
    }
    if hints.is_empty() {
        hints.extend(similar_names(asked, &sources));
    }
    for hint in hints {
        context.output.problem(&format!("hint: {hint}"));
    }
    Ok(())
}

/// The names that were probably meant by unknown ones.
fn similar_names(asked: &Flags, sources: &Sources) -> Vec<String> {
    let connections = sources.connections.iter();
    let connections: Vec<&str> = connections.map(|one| one.connection_id.as_str()).collect();
    let streams = sources.connectors.iter().flat_map(|one| &one.streams);
    let names: Vec<&str> = streams.clone().map(|one| one.name.as_str()).collect();
    let of_asked = streams.filter(|one| asked.streams.iter().any(|name| name == one.name.as_str()));
    let fields: Vec<&str> = of_asked
        .flat_map(|one| &one.fields)
        .map(String::as_str)
        .collect();
    let kinds = [
        (&asked.connections, connections),
        (&asked.streams, names),
        (&asked.fields, fields),
    ];
    let unknown = kinds.iter().flat_map(|(given, known)| {
        let given = given.iter().filter(|name| !known.contains(&name.as_str()));
        given.filter_map(|name| did_you_mean(name, known))
    });
    unknown.collect()
}

/// If the token could not be printed, nobody has it: says how to revoke it.
fn or_say_how_to_revoke(
    printed: CommandResult,
    issued: &Issued,
    context: &Context,
) -> CommandResult {
    if printed.is_err() {
        context.output.problem(&format!(
            "The token was issued and could not be printed. End it with: {}",
            context.command("grant revoke").argument(id_of(issued)?)
        ));
    }
    printed
}

/// Says what the token can see, until when, and what can be done about it.
fn describe(issued: &Issued, owner: &OwnerClient, context: &Context) -> CommandResult {
    let (output, id) = (context.output, id_of(issued)?);
    let shown = fetch_grant(owner, id, 0)?;
    let overview = &shown.overview;
    let client = overview.client_name.as_deref();
    let client = visible(client.unwrap_or(overview.client_id.as_str()));
    let kind = match overview.grants.len() {
        1 => "Grant",
        _ => "Package",
    };
    output.note(&format!(
        "{kind} {id}: until {} '{client}' may read",
        crate::moment::to_local_seconds(&issued.expires_at)
    ));
    for line in Wording::whole(visible).overview(overview) {
        output.note(&format!("  {line}"));
    }
    output.note(&format!(
        "The token on stdout is shown this once. End it early with: {}",
        context.command("grant revoke").argument(id)
    ));
    Ok(())
}

fn id_of(issued: &Issued) -> CommandResult<&str> {
    let grant = issued.grant_id.as_ref().map(contract::id::GrantId::as_str);
    let package = issued.grant_package_id.as_ref();
    let id = grant.or(package.map(contract::id::PackageId::as_str));
    id.ok_or_else(|| Failure::new("the grant was issued without an id, so it cannot be shown"))
}
