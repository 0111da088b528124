//! What the six read commands share: which server they ask, how a request becomes printed text, and what a refusal means.
//! Each command makes one request and renders one type of answer.

mod advice;
mod command_line;
mod filter;
mod refusal;
mod suggest;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use client::{CredentialCache, HttpServer, Limits, ProviderUrl};
use contract::error::{ErrorCode, ReadError};
use contract::handle::{Handle, HandleError, RecordHandle};
use contract::page::{Warning, Warnings};
use contract::time::Clock as _;
use contract::upstream::{Answer, Get, Upstream};
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;

pub(crate) use self::command_line::{CommandLine, quoted};
use crate::clock::SystemClock;
use crate::config::RemoteSettings;
use crate::context::{Context, new_runtime};
use crate::failure::{CommandResult, Failure};
use crate::local::{ActAs, LocalServer};
use crate::output::{Output, visible};

/// Which server is asked, and where the credential for it is.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Where to read")]
pub(crate) struct Provider {
    #[arg(
        long,
        value_name = "URL",
        help = "Another server, with the credential of `pdpp connect` [env: PDPP_PROVIDER_URL] [default: the local data]"
    )]
    provider_url: Option<String>,
    #[arg(
        long,
        value_name = "DIR",
        help = "Where credentials are kept [env: PDPP_CACHE_ROOT] [default: the platform's data folder, pdpp; else ./.pdpp]"
    )]
    cache_root: Option<PathBuf>,
}

impl Provider {
    /// What they and the environment come to.
    pub(crate) fn settings(&self) -> CommandResult<RemoteSettings> {
        RemoteSettings::resolve(self.provider_url.clone(), self.cache_root.clone())
    }
}

/// Where a read asks.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Where to read")]
pub(crate) struct Source {
    #[command(flatten)]
    provider: Provider,
    /// Show the local data as this grant or package sees it; nothing is noted as disclosed
    #[arg(long, value_name = "ID", conflicts_with = "provider_url")]
    grant: Option<String>,
}

impl Source {
    /// The options that select the same source in a command that continues this one.
    fn options(&self, context: &Context) -> Vec<(&'static str, String)> {
        let path = |path: &PathBuf| path.to_string_lossy().into_owned();
        let named = [
            ("provider-url", self.provider.provider_url.clone()),
            ("cache-root", self.provider.cache_root.as_ref().map(path)),
            ("grant", self.grant.clone()),
            (
                "data-dir",
                context.settings.named_data_dir.as_ref().map(path),
            ),
        ];
        let given = named.into_iter();
        given
            .filter_map(|(name, value)| Some((name, value?)))
            .collect()
    }
}

/// The server to ask, and the command that asks it.
pub(crate) struct Reading<'a> {
    context: &'a Context,
    server: Server,
    runtime: Runtime,
    /// The command that is run.
    pub(crate) line: CommandLine,
}

/// The local data, or another server.
enum Server {
    Local(LocalServer),
    Remote(ProviderUrl, HttpServer),
}

impl Server {
    fn local(holder: &'static str, act_as: ActAs, context: &Context) -> CommandResult<Self> {
        let owner = context.owner(holder)?;
        let server = LocalServer::new(context.clone(), holder, act_as, owner)?;
        Ok(Self::Local(server))
    }
}

impl<'a> Reading<'a> {
    /// Opens the source a command reads from.
    pub(crate) fn open(
        source: &Source,
        holder: &'static str,
        line: CommandLine,
        context: &'a Context,
    ) -> CommandResult<Self> {
        let settings = source.provider.settings()?;
        let server = match (&settings.provider_url, &source.grant) {
            (Some(url), None) => {
                let url = ProviderUrl::parse(url)?;
                Server::Remote(
                    url.clone(),
                    remote_server(url, &settings, context, Output::detail)?,
                )
            }
            (None, grant) => {
                let act_as = grant.clone().map_or(ActAs::Owner, ActAs::Preview);
                Server::local(holder, act_as, context)?
            }
            (Some(_), Some(_)) => {
                let message = "--grant is for the local data, and PDPP_PROVIDER_URL names a server";
                let hint = "unset PDPP_PROVIDER_URL, or leave out --grant";
                let error = ReadError::new(ErrorCode::InvalidArguments, message);
                return Err(error.with_hint(hint).into());
            }
        };
        let line = line.with_location(source.options(context));
        Self::new(context, server, line)
    }

    /// The local data as the owner sees it, whatever the settings say of other servers.
    pub(crate) fn local(
        holder: &'static str,
        line: CommandLine,
        context: &'a Context,
    ) -> CommandResult<Self> {
        let server = Server::local(holder, ActAs::Owner, context)?;
        Self::new(context, server, line)
    }

    fn new(context: &'a Context, server: Server, line: CommandLine) -> CommandResult<Self> {
        let runtime = new_runtime()?;
        Ok(Self {
            context,
            server,
            runtime,
            line,
        })
    }

    /// Asks, and prints the answer: the body unchanged for `--json`, else rendered.
    pub(crate) fn show<T: DeserializeOwned + Warnings>(
        &self,
        question: Get,
        show: impl FnOnce(&T) -> String,
    ) -> CommandResult {
        let text = self.text(question)?;
        let output = self.context.output;
        if output.is_json() {
            return output.raw_line(text.trim_end());
        }
        let answer: T = parse_answer(&text)?;
        self.warn(answer.warnings());
        output.text(&show(&answer))
    }

    /// The text of an answer; a refusal is reported with what the command line can do about it.
    pub(crate) fn text(&self, question: Get) -> CommandResult<String> {
        let answer = self.answer(question)?;
        if answer.is_success() {
            return Ok(answer.body);
        }
        Err(self.refusal(&answer))
    }

    fn answer(&self, question: Get) -> Result<Answer, ReadError> {
        let server: &dyn Upstream = match &self.server {
            Server::Local(server) => server,
            Server::Remote(_, server) => server,
        };
        self.runtime.block_on(server.get(question))
    }

    /// The address of the server, if it is not the local data.
    fn remote_url(&self) -> Option<&ProviderUrl> {
        match &self.server {
            Server::Local(_) => None,
            Server::Remote(url, _) => Some(url),
        }
    }

    fn warn(&self, warnings: &[Warning]) {
        for warning in warnings {
            let message = warning.message.as_str();
            self.context
                .output
                .problem(&format!("warning: {}", visible(message)));
        }
    }
}

/// The server at an address, with the credential that was stored for it; `tell` prints which one it is.
pub(crate) fn remote_server(
    url: ProviderUrl,
    settings: &RemoteSettings,
    context: &Context,
    tell: fn(Output, &str),
) -> CommandResult<HttpServer> {
    let credential = cache(settings).load(&url, SystemClock.now())?;
    let file = credential.file().display();
    let note = format!("Reading from {url} with the credential in {file}");
    tell(context.output, &note);
    if let Some(warning) = credential.warning() {
        context.output.problem(&format!("warning: {warning}"));
    }
    let clock = Arc::new(SystemClock);
    let server = HttpServer::with_credential(url, credential, clock, Limits::default());
    Ok(server.for_agents())
}

/// The command that gets a credential for a server, into the same place.
pub(crate) fn connect_command(provider: &ProviderUrl, settings: &RemoteSettings) -> CommandLine {
    let named = settings.named_cache_root.as_ref();
    let root = named.map(|root| root.display());
    CommandLine::new("connect")
        .argument(provider.as_str())
        .option("cache-root", root)
}

/// Where the credentials are.
pub(crate) fn cache(settings: &RemoteSettings) -> CredentialCache {
    let cache = CredentialCache::new(&settings.cache_root);
    let cache = match &settings.named_cache_root {
        Some(root) => cache.filled_with(CommandLine::option_text(
            "cache-root",
            &root.to_string_lossy(),
        )),
        None => cache,
    };
    match &settings.fallback_root {
        Some(fallback) => cache.with_fallback(fallback),
        None => cache,
    }
}

/// Reads an answer as what it must be.
fn parse_answer<T: DeserializeOwned>(text: &str) -> CommandResult<T> {
    serde_json::from_str(text).map_err(|error| {
        let message = format!("the answer is not what the contract says: {error}");
        ReadError::new(ErrorCode::RsBadResponse, visible(&message))
            .with_hint("--json prints it as it is")
            .into()
    })
}

/// The record or window a command names, and the connection it says beside it.
pub(crate) fn handle(id: &str, connection: Option<&str>) -> CommandResult<(RecordHandle, Handle)> {
    let refused = |error: HandleError| -> Failure {
        ReadError::new(error.code(), visible(&error.to_string()))
            .with_hint("`pdpp help ids` says what an id looks like; `pdpp search` and `pdpp query` print them")
            .into()
    };
    let handle = Handle::parse(id).map_err(refused)?;
    let record = handle.record().clone().with_connection(connection);
    Ok((record.map_err(refused)?, handle))
}
