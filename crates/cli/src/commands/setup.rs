//! `pdpp setup`: how to connect an agent, one way each that is recommended, and after it the others.

mod clients;

use clap::Args;
use client::ProviderUrl;
use serde::Deserialize;

use self::clients::{CLIENTS, Client, Places};
use crate::config::RemoteSettings;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output::visible;
use crate::owner::{Owner, Target};
use crate::reading::Line;
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
    let Some(name) = &options.client else {
        return output.data(clients::anyone(&places).trim_end());
    };
    let spelled = spelling(name);
    let mut all = CLIENTS.iter();
    let Some(client) = all.find(|client| spelling(client.name) == spelled) else {
        return Err(unknown(name));
    };
    output.data(client.text(&places).trim_end())
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
    let named = RemoteSettings::resolve(options.provider_url.clone(), None)?.provider_url;
    let data_dir = context.settings.named_data_dir.as_ref();
    let data_dir = data_dir.map(|path| path.to_string_lossy().into_owned());
    let (url, option) = if let Some(url) = &named {
        let url = ProviderUrl::parse(url)?;
        (url.clone(), ("provider-url", Some(url.to_string())))
    } else {
        let url = match running(context) {
            Some(url) => url,
            None => ProviderUrl::parse(&context.settings.public_url()?)?,
        };
        (url, ("data-dir", data_dir))
    };
    let (name, value) = option;
    let mut stdio_words = vec!["pdpp".to_owned(), "mcp".to_owned()];
    if let Some(value) = &value {
        stdio_words.extend([format!("--{name}"), value.clone()]);
    }
    let here = url.as_str().contains("://127.0.0.1") || url.as_str().contains("://localhost");
    Ok(Places {
        mcp_url: format!("{url}/mcp"),
        origin: url.to_string(),
        stdio: Line::of("mcp").option(name, value).to_string(),
        stdio_words,
        is_another: named.is_some(),
        is_here: here,
    })
}
