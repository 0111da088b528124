//! `pdpp setup`: how to connect an agent, one way each that is recommended, and after it the others.

mod clients;

use std::path::PathBuf;

use clap::Args;
use client::ProviderUrl;
use grants::{Flags, Issued, Overview, State, Wording};
use rest::owner::wire::{GrantSelection, NewGrant};
use rest::{AgentSetup, SetupGrant, SetupLines};
use serde::Deserialize;
use serde_json::json;

use self::clients::{CLIENTS, Client, ClientGrant, ClientSetup};
use crate::config::RemoteSettings;
use crate::context::Context;
use crate::failure::{CommandResult, Failure};
use crate::moment;
use crate::output::visible;
use crate::owner::{OwnerClient, RequestPath};
use crate::spelling::did_you_mean;

#[derive(Debug, Args)]
#[command(
    about = "Print how to connect an agent",
    long_about = "Print how to connect an agent: Claude Code, Claude Desktop, Codex, ChatGPT, Cursor, VS Code, Gemini CLI,\nor any other that speaks MCP.\n\nAn agent that starts `pdpp mcp` on this machine reads under a grant of its own, which is named here. With\n--connection it is made first.",
    after_help = "Example: pdpp setup claude-desktop --connection mail-work"
)]
pub(crate) struct Options {
    /// The agent; without it the way that suits any
    client: Option<String>,
    #[arg(
        long,
        value_name = "URL",
        help = "The server to connect to [env: PDPP_PROVIDER_URL] [default: the one on this machine]"
    )]
    provider_url: Option<String>,
    /// Let the agent read these connections, all their streams and fields, and name that grant
    #[arg(long, value_name = "ID", num_args = 1.., requires = "client", conflicts_with = "provider_url")]
    connection: Vec<String>,
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let mut setup = setup(options, context)?;
    let output = context.output;
    let instructions = match &options.client {
        None => clients::any_client(&setup),
        Some(name) => {
            let spelled = spelling(name);
            let mut all = CLIENTS.iter();
            let client = all.find(|client| spelling(client.name) == spelled);
            let client = client.ok_or_else(|| unknown(name))?;
            setup.grant = client_grant(client, options, &setup, context)?;
            client.instructions(&setup)
        }
    };
    if output.is_json() {
        return output.json(&json!({
            "client": options.client.as_ref().map(|_| instructions.name),
            "mcp_url": setup.mcp_url,
            "command": setup.stdio_words(),
            "grant": setup.grant.as_ref().map(|grant| &grant.id),
            "recommended": instructions.recommended,
            "other_ways": instructions.others,
        }));
    }
    output.data(instructions.text().trim_end())
}

/// The grant that the agent reads under on this machine: a new one where connections are named, else its newest live one.
///
/// Only what was issued at the terminal counts: an application that asks over the network chooses its own name.
fn client_grant(
    client: &Client,
    options: &Options,
    setup: &ClientSetup,
    context: &Context,
) -> CommandResult<Option<ClientGrant>> {
    if setup.is_another {
        if options.connection.is_empty() {
            return Ok(None);
        }
        let message = "--connection is for the local data, and PDPP_PROVIDER_URL names a server";
        return Err(
            Failure::new(message).hint("unset PDPP_PROVIDER_URL, or leave out --connection")
        );
    }
    if options.connection.is_empty() && !context.settings.data_dir.exists() {
        return Ok(None);
    }
    let owner = context.owner("pdpp setup")?;
    if !options.connection.is_empty() {
        let new = NewGrant {
            client: Some(client.name.to_owned()),
            expires_at: None,
            selection: GrantSelection::Flags(Flags {
                connections: options.connection.clone(),
                ..Flags::default()
            }),
        };
        // Its token is not used: the command reads by the id of the grant.
        let _: Issued = owner.post(&RequestPath::new("/owner/grants"), &new)?;
    }
    let all: Vec<Overview> = owner.get(&RequestPath::new("/owner/grants"))?;
    let own = |grant: &&Overview| {
        grant.state == State::Live && !grant.local && grant.client_id.as_str() == client.key()
    };
    let mut own = all.iter().filter(own);
    Ok(own.next().map(|grant| ClientGrant {
        id: grant.id.clone(),
        ends: grant.expires_at.as_deref().map(moment::to_local_seconds),
        lines: Wording::whole(visible).overview(grant),
        others: own.count(),
    }))
}

/// The words for the pages of a server over the local data.
pub(crate) struct ServedSetup {
    public_url: String,
    location: Vec<(&'static str, String)>,
}

impl ServedSetup {
    pub(crate) fn new(public_url: &str, context: &Context) -> Self {
        Self {
            public_url: public_url.trim_end_matches('/').to_owned(),
            location: named("data-dir", context.settings.data_dir_elsewhere()),
        }
    }
}

impl AgentSetup for ServedSetup {
    fn agents(&self) -> Vec<&'static str> {
        CLIENTS.iter().map(|client| client.name).collect()
    }

    fn lines(&self, agent: &str, grant: &SetupGrant) -> Option<SetupLines> {
        let client = CLIENTS.iter().find(|client| client.name == agent)?;
        let grant = ClientGrant {
            id: grant.id.clone(),
            ends: Some(moment::to_local_seconds(&grant.ends)),
            lines: grant.lines.clone(),
            others: 0,
        };
        let instructions = client.instructions(&ClientSetup {
            mcp_url: format!("{}/mcp", self.public_url),
            origin: self.public_url.clone(),
            location: self.location.clone(),
            is_another: false,
            is_here: is_here(&self.public_url),
            grant: Some(grant),
        });
        Some(SetupLines {
            recommended: instructions.recommended,
            others: instructions.others,
        })
    }
}

/// The name without what people write differently.
fn spelling(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|c| c.to_ascii_lowercase()).collect()
}

fn unknown(name: &str) -> Failure {
    let known: Vec<String> = CLIENTS.iter().map(Client::key).collect();
    let message = format!("there is no setup for '{}'", visible(name));
    let keys: Vec<&str> = known.iter().map(String::as_str).collect();
    Failure::new(message)
        .hints(did_you_mean(&name.to_lowercase().replace(' ', "-"), &keys))
        .hint(format!(
            "known: {}; `pdpp setup` alone suits any other",
            known.join(", ")
        ))
}

/// Where a server over this data says it is, if one runs.
fn running(context: &Context) -> Option<ProviderUrl> {
    #[derive(Deserialize)]
    struct Described {
        resource: String,
    }
    if !OwnerClient::is_served(&context.settings.data_dir).ok()? {
        return None;
    }
    let owner = context.owner("pdpp setup").ok()?;
    let target = RequestPath::new("/.well-known/oauth-protected-resource");
    let described: Described = owner.get(&target).ok()?;
    ProviderUrl::parse(&described.resource).ok()
}

fn setup(options: &Options, context: &Context) -> CommandResult<ClientSetup> {
    let settings = RemoteSettings::resolve(options.provider_url.clone(), None)?;
    // An agent starts the command in a folder and an environment of its own.
    let (url, location) = if let Some(url) = &settings.provider_url {
        let root = settings.cache_root_elsewhere();
        (ProviderUrl::parse(url)?, named("cache-root", root))
    } else {
        let url = match running(context) {
            Some(url) => url,
            None => ProviderUrl::parse(&context.settings.public_url()?)?,
        };
        let data_dir = context.settings.data_dir_elsewhere();
        (url, named("data-dir", data_dir))
    };
    Ok(ClientSetup {
        mcp_url: format!("{url}/mcp"),
        origin: url.to_string(),
        location,
        is_another: settings.provider_url.is_some(),
        is_here: is_here(url.as_str()),
        grant: None,
    })
}

/// An option with a path, where there is one.
fn named(name: &'static str, path: Option<PathBuf>) -> Vec<(&'static str, String)> {
    let path = path.map(|path| (name, path.to_string_lossy().into_owned()));
    path.into_iter().collect()
}

/// Whether only programs on this machine reach an address.
fn is_here(url: &str) -> bool {
    url.contains("://127.0.0.1") || url.contains("://localhost")
}
