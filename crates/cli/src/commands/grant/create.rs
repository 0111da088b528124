//! `pdpp grant create`: the owner lets a client read.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use contract::time::{Clock, Instant};
use grants::{Flags, IssueError, Issued, Selection, SelectionError};
use store::{Catalog, EmbeddedStore};

use super::scope;
use crate::clock::SystemClock;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::file;
use crate::output::visible;

/// Let a client read, and print the token for it
///
/// Exactly what is named is granted; naming nothing is an error, never everything. The token is printed once and not
/// kept. Connections of several sources make a package: one grant for each, one token for all.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: pdpp grant create --client claude-code --connection mail-work --stream messages --fields subject,sent_at --since 2026-01-01"
)]
pub(crate) struct Options {
    /// Who may read: an id, or a name for people
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    client: String,
    /// The connections; alone, all their streams and fields
    #[arg(long, value_name = "ID", num_args = 1..)]
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
    /// When the grant ends: RFC 3339 or a date [default: in 90 days; for single use, in one]
    #[arg(long, value_name = "T", value_parser = moment)]
    expires: Option<Instant>,
    /// Anything richer: RFC 9396 authorization details, a JSON file ('-' reads stdin)
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["connection", "stream", "fields", "since", "until"]
    )]
    details: Option<PathBuf>,
}

pub(crate) fn run(options: Options, context: &Context) -> Outcome {
    let (client, expires) = (options.client.clone(), options.expires);
    let details = options.details.clone();
    let connections = options.connection.clone();
    let selection = match &details {
        Some(file) => Selection::from_details(&file::read(file)?).map_err(|mistakes| {
            tell(&mistakes, details.as_ref(), context);
            Failure::Reported
        })?,
        None => Selection::from_flags(flags(options)).map_err(|mistakes| {
            tell(&mistakes, None, context);
            Failure::Misused
        })?,
    };
    let store = context.open("pdpp grant create")?;
    let issued = match grants::issue(&store, &selection, &client, expires, &SystemClock) {
        Ok(issued) => issued,
        Err(IssueError::Selection(mistakes)) => {
            tell(&mistakes, details.as_ref(), context);
            tell_next_steps(&connections, &store, context);
            return Err(Failure::Reported);
        }
        Err(error) => return Err(Failure::new(error.to_string())),
    };
    if context.output.is_json() {
        return handed_over(context.output.json(&issued), &issued, context);
    }
    let printed = context.output.data(issued.access_token.expose());
    handed_over(printed, &issued, context)?;
    describe(&issued, &store, context)
}

fn flags(options: Options) -> Flags {
    Flags {
        connections: options.connection,
        streams: options.stream,
        fields: options.fields,
        since: options.since,
        until: options.until,
    }
}

fn moment(text: &str) -> Result<Instant, String> {
    Instant::parse(text).ok_or_else(|| {
        "not an RFC 3339 time or date, such as 2027-01-31T12:00:00Z or 2027-01-31".to_owned()
    })
}

/// Tells every mistake, each on a line of its own.
fn tell(mistakes: &SelectionError, file: Option<&PathBuf>, context: &Context) {
    for mistake in &mistakes.0 {
        let mistake = visible(&mistake.to_string());
        context.output.problem(&match file {
            Some(file) => format!("{}: {mistake}", file.display()),
            None => format!("error: {mistake}"),
        });
    }
}

/// People know a connection by its name and a grant wants its id; and perhaps there is none at all yet.
fn tell_next_steps(asked: &[String], store: &EmbeddedStore, context: &Context) {
    let connections = store.connections();
    if connections.is_empty() && !asked.is_empty() {
        let hint = "hint: add one with `pdpp connections add CONNECTOR --name NAME`";
        context.output.problem(hint);
    }
    for connection in connections {
        let (id, name) = (connection.id.as_str(), &connection.display_name);
        if asked.iter().any(|asked| asked == name && asked != id) {
            let name = visible(name);
            context
                .output
                .problem(&format!("hint: the id of '{name}' is {id}"));
        }
    }
}

/// A token nobody received is of no use to anybody, so its owner hears how to end it.
fn handed_over(printed: Outcome, issued: &Issued, context: &Context) -> Outcome {
    if printed.is_err() {
        context.output.problem(&format!(
            "The token was issued and could not be printed. End it with: pdpp grant revoke {}",
            id_of(issued)
        ));
    }
    printed
}

/// Says what the token can see, until when, and what can be done about it.
fn describe(issued: &Issued, store: &EmbeddedStore, context: &Context) -> Outcome {
    let (output, id) = (context.output, id_of(issued));
    let shown = grants::show(store, id, SystemClock.now(), 0)
        .map_err(|error| Failure::new(error.to_string()))?;
    let overview = &shown.overview;
    let client = overview.client_name.as_deref();
    let client = visible(client.unwrap_or(overview.client_id.as_str()));
    let kind = match shown.grants.len() {
        1 => "Grant",
        _ => "Package",
    };
    output.note(&format!(
        "{kind} {id}: until {} '{client}' may read",
        issued.expires_at
    ));
    for line in shown.grants.iter().flat_map(scope::lines) {
        output.note(&format!("  {line}"));
    }
    output.note(&format!(
        "The token on stdout is shown this once. End it early with: pdpp grant revoke {id}"
    ));
    Ok(())
}

fn id_of(issued: &Issued) -> &str {
    let grant = issued.grant_id.as_ref().map(contract::id::GrantId::as_str);
    let package = issued.grant_package_id.as_ref();
    grant
        .or(package.map(contract::id::PackageId::as_str))
        .unwrap_or_default()
}
