//! `pdpp mcp`: the tools for an agent on standard input and output, over the local data or over another server.

use std::sync::Arc;

use ::mcp::{Options as ServerOptions, Server, serve_stdio};
use clap::Args;
use client::{HttpServer, ProviderUrl};
use contract::error::ErrorCode;
use contract::upstream::Upstream;
use grants::{Overview, State};

use crate::config::{self, RemoteSettings};
use crate::context::{Context, new_runtime};
use crate::failure::{CommandResult, Failure};
use crate::local::{ActAs, LocalServer};
use crate::output::{Output, visible};
use crate::owner::{OwnerClient, RequestPath};
use crate::reading::{self, Provider};
use crate::spelling::did_you_mean;

/// The exit code of a command line that asks for what cannot be.
const USAGE: u8 = 64;
const NO_CREDENTIAL: u8 = 78;
const HOLDER: &str = "pdpp mcp";

/// Serve the tools to an agent over standard input and output
///
/// With --provider-url: over that server, with the credential that `pdpp connect` stored. Without: over the local data,
/// as far as one grant allows. A grant that was issued to a client is used only when it is named.
#[derive(Debug, Args)]
#[command(after_help = "Example: pdpp mcp --provider-url https://pdpp.example.org")]
pub(crate) struct Options {
    #[command(flatten)]
    provider: Provider,
    /// The grant to read the local data under [default: the one of `pdpp grant create --local`]
    #[arg(long, value_name = "ID", conflicts_with = "provider_url")]
    grant: Option<String>,
    #[arg(
        long,
        value_name = "NAME",
        help = "What the server calls itself [env: PDPP_MCP_SERVER_NAME] [default: pdpp]"
    )]
    server_name: Option<String>,
}

pub(crate) fn run(options: Options, context: &Context) -> CommandResult {
    if let Some(name) = config::owner_credential() {
        let message =
            format!("Refusing to start: {name} is set, and owner credentials never work here");
        let hint = format!("unset {name}; agents read with a grant, see `pdpp connect --help`");
        return Err(Failure::coded(
            ErrorCode::OwnerTokenRefused.exit_code(),
            message,
            hint,
        ));
    }
    let settings = options.provider.settings()?;
    let mut presented = ServerOptions::default();
    if let Some(name) = options
        .server_name
        .map_or_else(config::mcp_server_name, |name| Ok(Some(name)))?
    {
        presented.name = name;
    }
    // One thread: a call passes through many tasks, and waking another thread for each costs more than the work. What
    // blocks has threads of its own.
    let runtime = new_runtime()?;
    // Connecting may block, and the shared socket needs the runtime.
    let guard = runtime.enter();
    let source = match (&settings.provider_url, options.grant) {
        (Some(url), None) => remote(url, &settings, context)?,
        (None, grant) => ToolSource::Local(local(grant.as_deref(), context)?),
        (Some(_), Some(_)) => {
            let message = "--grant is for the local data, and PDPP_PROVIDER_URL names a server";
            let hint = "unset PDPP_PROVIDER_URL, or leave out --grant";
            return Err(Failure::coded(USAGE, message, hint));
        }
    };
    drop(guard);
    let served = runtime.block_on(serve_stdio(Server::new(source.upstream(), presented)));
    let settled = source.finish();
    runtime.shutdown_background();
    served.map_err(|error| Failure::new(format!("the agent cannot be served: {error}")))?;
    settled
}

/// Where the tools read.
enum ToolSource {
    Local(Arc<LocalServer>),
    /// With the command that gets another credential.
    Remote(Arc<HttpServer>, String),
}

impl ToolSource {
    fn upstream(&self) -> Arc<dyn Upstream> {
        match self {
            Self::Local(local) => Arc::clone(local) as Arc<dyn Upstream>,
            Self::Remote(server, _) => Arc::clone(server) as Arc<dyn Upstream>,
        }
    }

    /// Finishes when the agent has disconnected: flushes the log, or reports a refused credential.
    fn finish(&self) -> CommandResult {
        match self {
            Self::Local(local) => local.settle(),
            // Only the server knows that a credential is an owner's, so it could not be refused at the start.
            Self::Remote(server, connect) if server.refused_an_owner() => Err(Failure::coded(
                ErrorCode::OwnerTokenRefused.exit_code(),
                format!(
                    "Reading was refused: {} says that the credential is an owner's",
                    server.provider_url().unwrap_or_default()
                ),
                format!("remove it and run `{connect}` to get a credential for a grant"),
            )),
            Self::Remote(..) => Ok(()),
        }
    }
}

fn remote(url: &str, settings: &RemoteSettings, context: &Context) -> CommandResult<ToolSource> {
    let url = ProviderUrl::parse(url).map_err(|error| {
        let hint = error
            .hint
            .unwrap_or_else(|| "write it as https://pdpp.example.org".to_owned());
        Failure::coded(USAGE, error.message, hint)
    })?;
    let connect = reading::connect_command(&url, settings).to_string();
    let server = reading::remote_server(url, settings, context, Output::note)?;
    Ok(ToolSource::Remote(Arc::new(server), connect))
}

fn local(named: Option<&str>, context: &Context) -> CommandResult<Arc<LocalServer>> {
    let owner = context.owner(HOLDER)?;
    let grant = choose_grant(&owner, named, context)?;
    context.output.note(&format!(
        "Reading {} under grant {} for {}",
        context.settings.data_dir.display(),
        grant.id,
        visible(
            grant
                .client_name
                .as_deref()
                .unwrap_or(grant.client_id.as_str())
        )
    ));
    let server = LocalServer::new(context.clone(), HOLDER, ActAs::Client(grant.id), owner)?;
    Ok(Arc::new(server))
}

/// The named live grant, or the only one without a client of its own. What was issued to a client is never used unasked: it
/// would be read, and logged, in that client's name.
fn choose_grant(
    owner: &OwnerClient,
    named: Option<&str>,
    context: &Context,
) -> CommandResult<Overview> {
    let all: Vec<Overview> = owner.get(&RequestPath::new("/owner/grants"))?;
    let ids: Vec<&str> = all.iter().map(|grant| grant.id.as_str()).collect();
    let meant = named.and_then(|id| did_you_mean(id, &ids));
    let live = || all.iter().filter(|grant| grant.state == State::Live);
    let meets = |grant: &&Overview| named.map_or(grant.local, |id| grant.id == id);
    let mut usable: Vec<Overview> = live().filter(meets).cloned().collect();
    let refused = |message: String, hint: &str| Err(Failure::coded(NO_CREDENTIAL, message, hint));
    match (usable.pop(), usable.as_slice(), named) {
        (Some(grant), [], _) => Ok(grant),
        (None, _, Some(id)) => refused(
            format!("there is no live grant '{}'", visible(id)),
            &format!(
                "`{}` lists the grants and their state",
                context.command("grants")
            ),
        )
        .map_err(|failure: Failure| failure.hints(meant.filter(|_| !ids.contains(&id)))),
        (None, _, None) if live().next().is_none() => refused(
            "nothing is granted, so there is nothing an agent may read".to_owned(),
            &context.granting_locally().to_string(),
        ),
        (None, _, None) => Err(ask_for_grant(
            "every live grant was issued to a client, and such a grant is used only when it is named",
            live(),
            context,
        )
        .hint(format!(
            "for one that needs no name: {}",
            context.granting_locally()
        ))),
        (Some(last), others, _) => Err(ask_for_grant(
            &format!(
                "there are {} live grants of `grant create --local`, and one must be named",
                others.len() + 1
            ),
            others.iter().chain([&last]),
            context,
        )),
    }
}

/// Says which grants could be named, each with the line to use.
fn ask_for_grant<'a>(
    message: &str,
    grants: impl Iterator<Item = &'a Overview>,
    context: &Context,
) -> Failure {
    const MOST: usize = 12;
    let mut hints: Vec<String> = grants
        .map(|grant| {
            let client = grant.client_name.as_deref();
            let client = client.unwrap_or(grant.client_id.as_str());
            let line = context.command("mcp").option("grant", Some(&grant.id));
            format!("as {}: {line}", visible(client))
        })
        .collect();
    let more = hints.len().saturating_sub(MOST);
    hints.truncate(MOST);
    if more > 0 {
        hints.push(format!("and {more} more: {}", context.command("grants")));
    }
    let mut hints = hints.into_iter();
    let first = hints.next().unwrap_or_default();
    Failure::coded(NO_CREDENTIAL, message, first).hints(hints)
}
