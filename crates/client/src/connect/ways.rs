//! Which ways to a credential a server offers, and which of them to take.

use contract::error::{ErrorCode, ReadError};
use serde_json::{Map, Value};

use super::device;
use crate::failure;
use crate::metadata::{self, AuthorizationServer};
use crate::provider_url::ProviderUrl;
use crate::transport::{Limits, Transport};

/// What a device must send at some servers.
pub(super) const DETAILS: &str = "authorization_details";

/// The ways to a credential that a server offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ways {
    /// A link with a code, which works from any machine.
    pub device: bool,
    /// Whether that way needs to be told what is asked for. Where it does not, the owner chooses.
    pub device_needs_details: bool,
    /// A browser on this machine. The owner chooses there, unless it is said what is asked for.
    pub browser: bool,
}

/// The way to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Device,
    Browser,
}

/// Looks which ways an authorization server offers for a provider: in its document, and by asking for a code as a client
/// nobody knows, which gives none.
pub async fn ways(
    provider: &ProviderUrl,
    issuer: &ProviderUrl,
    limits: Limits,
) -> Result<Ways, ReadError> {
    let transport = Transport::new(limits);
    let (server, mut ways) = described(&transport, issuer).await?;
    if let (true, Some(endpoint)) = (ways.device, &server.device_authorization) {
        let resource = ways.resource(provider);
        match device::probe(&transport, &server, endpoint, &resource).await? {
            device::Probed::Works => {}
            device::Probed::NeedsDetails => ways.device_needs_details = true,
            device::Probed::Missing => ways.device = false,
        }
    }
    Ok(ways)
}

/// The authorization server of a provider and what it says of itself.
pub(super) async fn of(
    transport: &Transport,
    provider: &ProviderUrl,
) -> Result<(AuthorizationServer, Ways), ReadError> {
    let issuer = metadata::authorization_server_of(transport, provider).await?;
    described(transport, &issuer).await
}

async fn described(
    transport: &Transport,
    issuer: &ProviderUrl,
) -> Result<(AuthorizationServer, Ways), ReadError> {
    let server = metadata::authorization_server(transport, issuer).await?;
    let server = server.ok_or_else(|| nothing_offered(issuer))?;
    let ways = Ways {
        device: server.device_authorization.is_some(),
        device_needs_details: device_needs_details(&server.document),
        browser: server.authorization.is_some() && knows_the_code_flow(&server.document),
    };
    Ok((server, ways))
}

impl Ways {
    /// The same where a device must say what it asks for.
    pub(super) fn needing_details(self) -> Self {
        let device_needs_details = true;
        Self {
            device_needs_details,
            ..self
        }
    }

    /// The way to take with or without details.
    pub(super) fn choose(
        self,
        has_details: bool,
        browser: bool,
        provider: &ProviderUrl,
        issuer: &ProviderUrl,
    ) -> Result<Way, ReadError> {
        let device = self.device && (has_details || !self.device_needs_details);
        match (device, self.browser) {
            (_, true) if browser => Ok(Way::Browser),
            (_, false) if browser => {
                let reason = "it offers no sign-in that comes back to a browser on this machine";
                Err(failure::not_the_contract(issuer.as_str(), reason)
                    .with_hint(format!("run `pdpp connect {provider}` without --browser")))
            }
            (true, _) => Ok(Way::Device),
            (false, true) => Ok(Way::Browser),
            (false, false) if self.device => Err(details_wanted(provider)),
            (false, false) => Err(nothing_offered(issuer)),
        }
    }

    /// What a token is asked for: all of the server, or where devices must say what they ask for, its tools. That is what the
    /// servers that insist on the one insist on too.
    pub(super) fn resource(self, provider: &ProviderUrl) -> String {
        if self.device_needs_details {
            return format!("{}/mcp", provider.origin());
        }
        provider.as_str().to_owned()
    }
}

/// A device cannot go on without saying what it wants, and there is no page where the owner would choose.
fn details_wanted(provider: &ProviderUrl) -> ReadError {
    let message = format!("{provider} gives a credential only for what is named");
    ReadError::new(ErrorCode::NotConnected, message).with_hint(format!(
        "name it: `pdpp connect {provider} --source ID --stream NAME`, or --details FILE"
    ))
}

fn nothing_offered(issuer: &ProviderUrl) -> ReadError {
    let reason =
        "it offers no device flow and no authorization code, and `pdpp connect` needs one of them";
    failure::not_the_contract(issuer.as_str(), reason)
}

/// Whether the kind of device request that gives the token of a grant must carry details.
fn device_needs_details(document: &Map<String, Value>) -> bool {
    let listed = document.get("pdpp_device_authorization_profiles_supported");
    let listed = listed.and_then(Value::as_array).into_iter().flatten();
    let is_owners = |one: &Value| one["pdpp_token_kind"] == "owner";
    let mut ours = listed.filter(|one| !is_owners(one)).peekable();
    let needs = |one: &Value| {
        let needed = one["required_parameters"].as_array();
        needed.is_some_and(|needed| needed.iter().any(|name| name == DETAILS))
    };
    ours.peek().is_some() && ours.all(needs)
}

/// Whether codes are given out, to clients that prove they asked for them.
fn knows_the_code_flow(document: &Map<String, Value>) -> bool {
    // What is not said has the default of RFC 8414.
    let lists = |name: &str, value: &str| {
        let listed = document.get(name).and_then(Value::as_array);
        listed.is_none_or(|listed| listed.iter().any(|one| one == value))
    };
    lists("response_types_supported", "code")
        && lists("grant_types_supported", "authorization_code")
        && lists("code_challenge_methods_supported", "S256")
}
