//! `pdpp setup`: how to connect an agent, one way each that is recommended, and after it the others.

mod clients;

use std::path::PathBuf;

use clap::Args;
use client::ProviderUrl;
use serde::Deserialize;
use serde_json::json;

use self::clients::{CLIENTS, Client, Places};
use crate::config::RemoteSettings;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output::visible;
use crate::owner::{Owner, Target};
use crate::spelling::did_you_mean;

#[derive(Debug, Args)]
#[command(
    about = "Print how to connect an agent",
    long_about = "Print how to connect an agent: Claude Code, Claude Desktop, Codex, ChatGPT, Cursor, VS Code, Gemini CLI,\nor any other that speaks MCP",
    after_help = "Example: pdpp setup claude-code"
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
}

pub(crate) fn run(options: &Options, context: &Context) -> Outcome {
    let places = places(options, context)?;
    let output = context.output;
    let ways = match &options.client {
        None => clients::anyone(&places),
        Some(name) => {
            let spelled = spelling(name);
            let mut all = CLIENTS.iter();
            let client = all.find(|client| spelling(client.name) == spelled);
            client.ok_or_else(|| unknown(name))?.ways(&places)
        }
    };
    if output.is_json() {
        return output.json(&json!({
            "client": options.client.as_ref().map(|_| ways.name),
            "mcp_url": places.mcp_url,
            "command": places.stdio_words(),
            "recommended": ways.recommended,
            "other_ways": ways.others,
        }));
    }
    output.data(ways.text().trim_end())
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
    })
}
