//! What the six reads share: where they ask, how a question becomes an answer, and what a refusal means. Each command makes
//! one question and shows one kind of answer.

mod advice;
mod filter;
mod line;
mod refusal;
mod suggest;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use client::{CredentialCache, HttpServer, Limits, ProviderUrl};
use contract::error::{ErrorCode, ReadError};
use contract::handle::{Handle, HandleError, RecordHandle};
use contract::page::Meta;
use contract::time::Clock as _;
use contract::upstream::{Answer, Get};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;

pub(crate) use self::line::{Line, quoted};
use crate::clock::SystemClock;
use crate::config::RemoteSettings;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::local::{Behalf, LocalServer};
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
    pub(crate) fn settings(&self) -> Outcome<RemoteSettings> {
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
    /// As the command line of a continuation says it.
    fn words(&self, context: &Context) -> Vec<(&'static str, String)> {
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

/// A place to ask, and the command that asks there.
pub(crate) struct Reading<'a> {
    context: &'a Context,
    server: Server,
    runtime: Runtime,
    /// The command that is run.
    pub(crate) line: Line,
}

/// Near or far.
enum Server {
    Near(LocalServer),
    Far(ProviderUrl, HttpServer),
}

impl Server {
    fn near(holder: &'static str, behalf: Behalf, context: &Context) -> Outcome<Self> {
        let owner = context.owner(holder)?;
        let server = LocalServer::new(context.clone(), holder, behalf, owner)?;
        Ok(Self::Near(server))
    }
}

impl<'a> Reading<'a> {
    /// Finds the place a command reads from.
    pub(crate) fn open(
        source: &Source,
        (holder, line): (&'static str, Line),
        context: &'a Context,
    ) -> Outcome<Self> {
        let settings = source.provider.settings()?;
        let server = match (&settings.provider_url, &source.grant) {
            (Some(url), None) => {
                let url = ProviderUrl::parse(url)?;
                Server::Far(url.clone(), far(url, &settings, context, Output::detail)?)
            }
            (None, grant) => {
                let behalf = grant.clone().map_or(Behalf::Owner, Behalf::Looking);
                Server::near(holder, behalf, context)?
            }
            (Some(_), Some(_)) => {
                let message = "--grant is for the local data, and PDPP_PROVIDER_URL names a server";
                let hint = "unset PDPP_PROVIDER_URL, or leave out --grant";
                let error = ReadError::new(ErrorCode::InvalidArguments, message);
                return Err(error.with_hint(hint).into());
            }
        };
        let line = line.at(source.words(context));
        Self::new(context, server, line)
    }

    /// The local data as the owner sees it, whatever the settings say of other servers.
    pub(crate) fn near(
        (holder, line): (&'static str, Line),
        context: &'a Context,
    ) -> Outcome<Self> {
        let server = Server::near(holder, Behalf::Owner, context)?;
        Self::new(context, server, line)
    }

    fn new(context: &'a Context, server: Server, line: Line) -> Outcome<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new(format!("no work can be started: {error}")))?;
        Ok(Self {
            context,
            server,
            runtime,
            line,
        })
    }

    /// Asks, and prints what came as it came, or as a person reads it.
    pub(crate) fn show<T: DeserializeOwned>(
        &self,
        question: Get,
        show: impl FnOnce(&T) -> String,
    ) -> Outcome {
        let text = self.text(question)?;
        let output = self.context.output;
        if output.is_json() {
            return output.as_written(text.trim_end());
        }
        self.warn(&text);
        let shown = show(&understood(&text)?);
        output.text(&shown)
    }

    /// The text of an answer; a refusal is told with what the command line can do about it.
    pub(crate) fn text(&self, question: Get) -> Outcome<String> {
        let (answer, text) = self.answer(question)?;
        if (200..300).contains(&answer.status) {
            return Ok(text);
        }
        Err(self.refusal(&answer, &text))
    }

    fn answer(&self, question: Get) -> Result<(Answer, String), ReadError> {
        self.runtime.block_on(async {
            match &self.server {
                Server::Near(server) => server.get_text(&question).await,
                Server::Far(_, server) => server.get_text(question).await,
            }
        })
    }

    /// The server's address, where it is another's.
    fn far(&self) -> Option<&ProviderUrl> {
        match &self.server {
            Server::Near(_) => None,
            Server::Far(url, _) => Some(url),
        }
    }

    fn warn(&self, text: &str) {
        #[derive(Deserialize)]
        struct Told {
            #[serde(default)]
            meta: Option<Meta>,
        }
        let told: Option<Told> = serde_json::from_str(text).ok();
        for warning in told
            .iter()
            .filter_map(|told| told.meta.as_ref())
            .flat_map(Meta::warnings)
        {
            let message = warning.message.as_str();
            self.context
                .output
                .problem(&format!("warning: {}", visible(message)));
        }
    }
}

/// The server at an address, with the credential that was stored for it; which one that is, is told.
pub(crate) fn far(
    url: ProviderUrl,
    settings: &RemoteSettings,
    context: &Context,
    tell: fn(Output, &str),
) -> Outcome<HttpServer> {
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
pub(crate) fn connecting(provider: &ProviderUrl, settings: &RemoteSettings) -> Line {
    let named = settings.named_cache_root.as_ref();
    let root = named.map(|root| root.display());
    Line::of("connect")
        .argument(provider.as_str())
        .option("cache-root", root)
}

/// Where the credentials are.
pub(crate) fn cache(settings: &RemoteSettings) -> CredentialCache {
    let cache = CredentialCache::new(&settings.cache_root);
    let cache = match &settings.named_cache_root {
        Some(root) => cache.filled_with(Line::said("cache-root", &root.to_string_lossy())),
        None => cache,
    };
    match &settings.fallback_root {
        Some(fallback) => cache.with_fallback(fallback),
        None => cache,
    }
}

/// Reads an answer as what it must be.
fn understood<T: DeserializeOwned>(text: &str) -> Outcome<T> {
    serde_json::from_str(text).map_err(|error| {
        let message = format!("the answer is not what the contract says: {error}");
        ReadError::new(ErrorCode::RsBadResponse, visible(&message))
            .with_hint("--json prints it as it is")
            .into()
    })
}

/// The record or window a command names, and the connection it says beside it.
pub(crate) fn handle(id: &str, connection: Option<&str>) -> Outcome<(RecordHandle, Handle)> {
    let refused = |error: HandleError| -> Failure {
        ReadError::new(error.code(), visible(&error.to_string()))
            .with_hint("`pdpp help ids` says what an id looks like; `pdpp search` and `pdpp query` print them")
            .into()
    };
    let handle = Handle::parse(id).map_err(refused)?;
    let record = handle.record().clone().with_connection(connection);
    Ok((record.map_err(refused)?, handle))
}
