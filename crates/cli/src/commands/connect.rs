//! `pdpp connect`: a credential from a server, which its owner approves in a browser.

mod details;

use std::path::{Path, PathBuf};

use clap::Args;
use client::connect::{self, Connected, Prompt, Request};
use client::{HttpServer, Limits, ProviderUrl};
use contract::error::{ErrorCode, ReadError};
use contract::schema::SchemaAnswer;
use contract::time::Instant;
use contract::upstream::{Get, Upstream as _};
use serde_json::json;

use crate::clock::SystemClock;
use crate::config::RemoteSettings;
use crate::context::{Context, new_runtime};
use crate::failure::{CommandResult, Failure};
use crate::output::{Output, visible};
use crate::reading::{self, CommandLine};

/// Streams named at the end.
const STREAMS_SHOWN: usize = 12;

/// Get a credential from a server, to read from it
///
/// Prints a link, waits until the owner has approved, stores the credential and reads once with it.
///
/// The owner chooses what to grant, unless it is named here with --source or --details. Some servers want it named, or show
/// their choice only to a browser on this machine; `pdpp doctor URL` says which way works.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: pdpp connect https://pdpp.example.org --source https://registry.example.org/connectors/mail --stream messages"
)]
pub(crate) struct Options {
    /// The server
    url: String,
    #[arg(
        long,
        value_name = "DIR",
        help = "Where to keep the credential [env: PDPP_CACHE_ROOT] [default: the platform's data folder, pdpp]"
    )]
    cache_root: Option<PathBuf>,
    #[command(flatten)]
    access: details::RequestedAccess,
    /// Approve in a browser on this machine, also where a code would do
    #[arg(long)]
    browser: bool,
}

pub(crate) fn run(options: &Options, context: &Context) -> CommandResult {
    let settings = RemoteSettings::resolve(Some(options.url.clone()), options.cache_root.clone())?;
    let provider = ProviderUrl::parse(&options.url)?;
    let output = context.output;
    warn(output, &provider);
    let cache = reading::cache(&settings);
    let runtime = new_runtime()?;
    let request = Request {
        provider: provider.clone(),
        resource: None,
        authorization_details: options.access.details(output)?,
        browser: options.browser,
    };
    let pending = runtime.block_on(connect::begin(&request, &cache, Limits::default()))?;
    print_prompt(output, pending.prompt());
    let again = options
        .access
        .add_to(reading::connect_command(&provider, &settings));
    let connected = runtime
        .block_on(pending.wait(&cache, &SystemClock, tokio::time::sleep))
        .map_err(|error| match error.code {
            ErrorCode::NotConnected => error.with_hint(format!("run `{again}` again")),
            _ => error,
        })?;
    let server = reading::remote_server(provider.clone(), &settings, context, Output::detail)?;
    let (status, text) = runtime.block_on(first_read(&server)).inspect_err(|error| {
        if error.code == ErrorCode::OwnerTokenRefused {
            // Nothing may use it. Where it cannot be removed, it is refused whenever it is read with.
            let _ = std::fs::remove_file(&connected.file);
        }
    })?;
    if status != 200 {
        let message = format!(
            "the credential is kept in {}, but {provider} refuses a read with it: status {status}",
            connected.file.display(),
        );
        let exit = ErrorCode::AuthenticationError.exit_code();
        let hint = if connected.is_package {
            let one = reading::connect_command(&provider, &settings);
            format!(
                "it stands for a package of grants, which some servers take at /mcp only; name one source instead: `{one} --source ID --stream NAME`"
            )
        } else {
            let root = options.cache_root.as_ref().map(|root| root.display());
            let doctor = CommandLine::new("doctor").argument(provider.as_str());
            let doctor = doctor.option("cache-root", root);
            format!("run `{again}` again; `{doctor}` says more")
        };
        return Err(Failure::coded(exit, message, hint));
    }
    // An agent starts it elsewhere.
    let root = settings.cache_root_elsewhere();
    let place = CommandLine::new("mcp")
        .option("provider-url", Some(provider.as_str()))
        .option("cache-root", root.as_deref().map(Path::display));
    print_connected(output, &provider, &connected, &streams(&text), &place)
}

fn warn(output: Output, provider: &ProviderUrl) {
    if provider.exposes_token() {
        output.problem(&format!(
            "warning: {provider} is not encrypted, so the credential can be read on the way"
        ));
    }
}

/// The status and text of the schema, which every credential may read. Older servers have no short one.
async fn first_read(server: &HttpServer) -> Result<(u16, String), ReadError> {
    let whole = Get::v1(["schema"]);
    let short = whole.clone().with("view", Some("compact"));
    let mut answer = server.get(short).await?;
    if answer.status == 400 {
        answer = server.get(whole).await?;
    }
    Ok((answer.status, answer.body))
}

fn print_prompt(output: Output, prompt: &Prompt) {
    let link = visible(&prompt.link);
    let minutes = prompt.expires_in.as_secs().div_ceil(60);
    let how = match &prompt.user_code {
        Some(code) => format!(
            "Open this page and approve:\n  {link}\nThe code shown there must be: {}",
            visible(code)
        ),
        None => format!("Open this page in a browser on this machine and approve:\n  {link}"),
    };
    output.problem(&how);
    output.note(&format!("Waiting for at most {minutes} minutes."));
}

fn streams(schema: &str) -> Vec<String> {
    let schema = match serde_json::from_str(schema) {
        Ok(SchemaAnswer::Compact(schema)) => schema,
        Ok(SchemaAnswer::Full(schema)) => schema.compact(),
        Err(_) => return Vec::new(),
    };
    let connectors = schema.connectors.iter();
    let all = connectors.flat_map(|connector| &connector.streams);
    let mut names: Vec<String> = all.map(|stream| visible(&stream.name)).collect();
    names.sort();
    names.dedup();
    names
}

fn print_connected(
    output: Output,
    provider: &ProviderUrl,
    connected: &Connected,
    streams: &[String],
    mcp: &CommandLine,
) -> CommandResult {
    if output.is_json() {
        return output.json(&json!({
            "provider_url": provider.as_str(),
            "credential_file": connected.file.to_string_lossy(),
            "grant_id": connected.grant_id,
            "expires_at": connected.expires_at.map(Instant::to_rfc3339_millis),
            "streams": streams,
        }));
    }
    let file = connected.file.display();
    output.note(&format!(
        "Connected to {provider}. The credential is in {file}."
    ));
    let shown = streams.get(..STREAMS_SHOWN).unwrap_or(streams).join(", ");
    let more = match streams.len().saturating_sub(STREAMS_SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    output.note(&match streams {
        [] => "It may read nothing yet.".to_owned(),
        _ => format!("It may read: {shown}{more}."),
    });
    output.note(&format!(
        "Next: give an agent this command as an MCP server, see `pdpp setup`\n  {mcp}"
    ));
    Ok(())
}
