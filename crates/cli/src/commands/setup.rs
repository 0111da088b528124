//! `pdpp setup`: how to connect an agent, one way each that is recommended, and after it the others.

mod clients;

use std::path::PathBuf;

use clap::Args;
use client::ProviderUrl;
use grants::{Flags, Issued, Overview, State, Wording};
use rest::owner::wire::{GrantSelection, NewGrant};
use serde::Deserialize;
use serde_json::json;

use self::clients::{CLIENTS, Client, Named, Places};
use crate::config::RemoteSettings;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::moment;
use crate::output::visible;
use crate::owner::{Owner, Target};
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

pub(crate) fn run(options: &Options, context: &Context) -> Outcome {
    let mut places = places(options, context)?;
    let output = context.output;
    let ways = match &options.client {
        None => clients::anyone(&places),
        Some(name) => {
            let spelled = spelling(name);
            let mut all = CLIENTS.iter();
            let client = all.find(|client| spelling(client.name) == spelled);
            let client = client.ok_or_else(|| unknown(name))?;
            places.grant = grant_of(client, options, &places, context)?;
            client.ways(&places)
        }
    };
    if output.is_json() {
        return output.json(&json!({
            "client": options.client.as_ref().map(|_| ways.name),
            "mcp_url": places.mcp_url,
            "command": places.stdio_words(),
            "grant": places.grant.as_ref().map(|grant| &grant.id),
            "recommended": ways.recommended,
            "other_ways": ways.others,
        }));
    }
    output.data(ways.text().trim_end())
}

/// The grant that the agent reads under on this machine: a new one where connections are named, else its newest live one.
///
/// Only what was issued at the terminal counts: an application that asks over the network chooses its own name.
fn grant_of(
    client: &Client,
    options: &Options,
    places: &Places,
    context: &Context,
) -> Outcome<Option<Named>> {
    if places.is_another {
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
        // Its token is for nobody: the command reads by the id of the grant.
        let _: Issued = owner.post(&Target::of("/owner/grants"), &new)?;
    }
    let all: Vec<Overview> = owner.get(&Target::of("/owner/grants"))?;
    let own = |grant: &&Overview| {
        grant.state == State::Live && !grant.local && grant.client_id.as_str() == client.key()
    };
    let mut own = all.iter().filter(own);
    Ok(own.next().map(|grant| Named {
        id: grant.id.clone(),
        ends: grant.expires_at.as_deref().map(moment::shown),
        lines: Wording::whole(visible).overview(grant),
        others: own.count(),
    }))
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
    if !Owner::is_served(&context.settings.data_dir).ok()? {
        return None;
    }
    let owner = context.owner("pdpp setup").ok()?;
    let target = Target::of("/.well-known/oauth-protected-resource");
    let described: Described = owner.get(&target).ok()?;
    ProviderUrl::parse(&described.resource).ok()
}

fn places(options: &Options, context: &Context) -> Outcome<Places> {
    let settings = RemoteSettings::resolve(options.provider_url.clone(), None)?;
    let named = |name, path: Option<PathBuf>| -> Vec<(&'static str, String)> {
        let path = path.map(|path| (name, path.to_string_lossy().into_owned()));
        path.into_iter().collect()
    };
    // An agent starts the command in a folder and an environment of its own.
    let (url, place) = if let Some(url) = &settings.provider_url {
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
    let here = url.as_str().contains("://127.0.0.1") || url.as_str().contains("://localhost");
    Ok(Places {
        mcp_url: format!("{url}/mcp"),
        origin: url.to_string(),
        place,
        is_another: settings.provider_url.is_some(),
        is_here: here,
        grant: None,
    })
}
