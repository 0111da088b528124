//! A server as a client meets it: its documents, its challenge, its clock, and a read with the stored credential.

use client::connect::{self, OfferedFlows};
use client::probe::{self, ProbeResponse};
use client::{Limits, ProviderUrl};
use contract::error::ReadError;
use contract::time::{Clock as _, Instant};
use contract::upstream::{Get, Upstream as _};
use jiff::fmt::rfc2822;
use serde_json::Value;
use tokio::runtime::Runtime;

use super::Finding;
use crate::clock::SystemClock;
use crate::config::RemoteSettings;
use crate::context::{Context, new_runtime};
use crate::failure::{CommandResult, Failure};
use crate::output::{Output, counted, visible};
use crate::reading;

/// How far two clocks may be apart.
const APART_MICROS: u64 = 60_000_000;
/// The exit code of a server that does not answer.
const UNREACHABLE: u8 = 69;
const ADDRESS: &str = "check that the address is that of a PDPP server, and what stands before it";

/// The findings, and the exit code if the server could not be reached.
pub(super) fn check(
    provider: &ProviderUrl,
    settings: &RemoteSettings,
    context: &Context,
) -> CommandResult<(Vec<Finding>, Option<u8>)> {
    let runtime = new_runtime()?;
    let mut findings = vec![transport(provider)];
    let seen = |server: &ProviderUrl, path: &str| {
        runtime.block_on(probe::get(server, path, Limits::default()))
    };
    let resource = seen(provider, "/.well-known/oauth-protected-resource");
    let unreached = resource.as_ref().err().map(|error| error.code.exit_code());
    let (finding, issuer) = resource_document(provider, resource);
    findings.push(finding);
    if let Some(exit) = unreached {
        // Whoever answered something else was reached.
        return Ok((findings, (exit == UNREACHABLE).then_some(exit)));
    }
    let described = seen(&issuer, "/.well-known/oauth-authorization-server");
    let connect = reading::connect_command(provider, settings).to_string();
    findings.push(sign_in(&issuer, described).unwrap_or_else(|| {
        let offered =
            runtime.block_on(connect::offered_flows(provider, &issuer, Limits::default()));
        offered_flows(&issuer, &connect, offered)
    }));
    let stranger = seen(provider, "/v1/schema");
    findings.extend(stranger.as_ref().ok().and_then(clock));
    findings.push(challenge(stranger));
    findings.push(read(provider, settings, &runtime, context));
    Ok((findings, None))
}

fn transport(provider: &ProviderUrl) -> Finding {
    if provider.exposes_token() {
        return Finding::failed(
            "address",
            format!("{provider} is not encrypted: credentials can be read on the way"),
            "put the server behind https",
        );
    }
    Finding::ok("address", provider.to_string())
}

fn ill(check: &'static str, error: ReadError) -> Finding {
    Finding::from_failure(check, &Failure::from(error), ADDRESS)
}

/// The document about the resource, and the authorization server it names.
fn resource_document(
    provider: &ProviderUrl,
    seen: Result<ProbeResponse, ReadError>,
) -> (Finding, ProviderUrl) {
    let check = "metadata";
    let seen = match seen {
        Ok(seen) => seen,
        Err(error) => return (ill(check, error), provider.clone()),
    };
    let body = seen.body.unwrap_or_default();
    let resource = body["resource"]
        .as_str()
        .and_then(|text| ProviderUrl::parse(text).ok());
    let issuer = body["authorization_servers"][0].as_str();
    let issuer = issuer.and_then(|text| ProviderUrl::parse(text).ok());
    let issuer = issuer.unwrap_or_else(|| provider.clone());
    let finding = match (seen.status, resource) {
        (200, Some(resource))
            if resource == *provider || resource.as_str() == provider.origin() =>
        {
            Finding::ok(check, "the server describes itself")
        }
        (200, Some(resource)) => Finding::failed(
            check,
            format!("the server says it is {resource}, and clients believe that"),
            format!("use {resource}, or start the server with --public-url {provider}"),
        ),
        (200, None) => Finding::failed(check, "the server does not say what it is", ADDRESS),
        (status, _) => Finding::failed(
            check,
            format!("/.well-known/oauth-protected-resource answers with status {status}"),
            ADDRESS,
        ),
    };
    (finding, issuer)
}

/// What is wrong with the document about signing in.
fn sign_in(issuer: &ProviderUrl, seen: Result<ProbeResponse, ReadError>) -> Option<Finding> {
    let check = "sign-in";
    let seen = match seen {
        Ok(seen) => seen,
        Err(error) => return Some(ill(check, error)),
    };
    let body = seen.body.unwrap_or_default();
    let named = body["issuer"]
        .as_str()
        .and_then(|text| ProviderUrl::parse(text).ok());
    match (seen.status, named) {
        (200, Some(named)) if named == *issuer => None,
        (200, _) => Some(Finding::failed(
            check,
            format!("the authorization server at {issuer} calls itself something else"),
            format!("start the server with --public-url {issuer}"),
        )),
        (status, _) => Some(Finding::failed(
            check,
            format!("{issuer} publishes nothing about signing in (status {status})"),
            "update the server; until then grants are issued at its terminal with `pdpp grant create`",
        )),
    }
}

/// Which commands get a credential, and what the owner does then.
fn offered_flows(
    issuer: &ProviderUrl,
    connect: &str,
    offered: Result<OfferedFlows, ReadError>,
) -> Finding {
    let check = "sign-in";
    let offered = match offered {
        Ok(offered) => offered,
        Err(error) => return ill(check, error),
    };
    let named = format!("`{connect} --source ID --stream NAME` shows a link and a code");
    let browser = "a browser on this machine, where the owner chooses what to grant";
    let told = match (offered.device, offered.browser) {
        (true, _) if !offered.device_needs_details => {
            format!("`{connect}` shows a link and a code, and the owner chooses what to grant")
        }
        (true, true) => format!("{named}; `{connect}` shows a link for {browser}"),
        (true, false) => format!("{named}; what is read must be named"),
        (false, true) => format!("`{connect}` shows a link for {browser}"),
        (false, false) => {
            let message = format!("{issuer} offers no device flow and no authorization code");
            let remedy =
                "update the server; until then its owner has to give you a token another way";
            return Finding::failed(check, message, remedy);
        }
    };
    Finding::ok(check, format!("{issuer} gives credentials: {told}"))
}

fn challenge(seen: Result<ProbeResponse, ReadError>) -> Finding {
    let check = "challenge";
    let seen = match seen {
        Ok(seen) => seen,
        Err(error) => return ill(check, error),
    };
    let told = seen.challenge.unwrap_or_default();
    match seen.status {
        401 if told.contains("resource_metadata=") => {
            Finding::ok(check, "strangers are refused and told where to sign in")
        }
        401 => Finding::failed(
            check,
            "strangers are refused, but not told where to sign in",
            "let the proxy pass the header WWW-Authenticate on",
        ),
        200..=299 => Finding::failed(
            check,
            "strangers may read: no token is asked for",
            "stop whatever adds a token on the way, at once",
        ),
        status => Finding::failed(check, format!("a stranger gets status {status}"), ADDRESS),
    }
}

fn clock(seen: &ProbeResponse) -> Option<Finding> {
    let date = seen.date.as_deref()?;
    let theirs = rfc2822::parse(date).ok()?.timestamp().as_microsecond();
    let Instant(ours) = SystemClock.now();
    let apart = theirs.abs_diff(ours);
    Some(if apart > APART_MICROS {
        Finding::failed(
            "clock",
            format!(
                "the server's clock and this one are {} seconds apart",
                apart / 1_000_000
            ),
            "set both by NTP; credentials end too early or too late otherwise",
        )
    } else {
        Finding::ok("clock", "the server's clock and this one agree")
    })
}

fn read(
    provider: &ProviderUrl,
    settings: &RemoteSettings,
    runtime: &Runtime,
    context: &Context,
) -> Finding {
    let check = "read";
    let connect = reading::connect_command(provider, settings);
    let server = match reading::remote_server(provider.clone(), settings, context, Output::detail) {
        Ok(server) => server,
        Err(failure) => {
            return Finding::from_failure(check, &failure, &format!("get one with `{connect}`"));
        }
    };
    let question = Get::v1(["schema"]).with("view", Some("compact"));
    let answer = match runtime.block_on(server.get(question)) {
        Ok(answer) => answer,
        Err(error) => return ill(check, error),
    };
    let body: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    match answer.status {
        200 => {
            let streams = body["stream_count"].as_u64();
            let may_read = match streams {
                Some(count) => format!("may read {}", counted(count, "stream", "streams")),
                None => "is accepted".to_owned(),
            };
            Finding::ok(check, format!("the stored credential {may_read}"))
        }
        status => {
            let message = body["error"]["message"].as_str().map(visible);
            let message = message.unwrap_or_else(|| format!("status {status}"));
            Finding::failed(
                check,
                format!("the stored credential is refused: {message}"),
                connect.to_string(),
            )
        }
    }
}
