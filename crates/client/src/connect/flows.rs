//! Which flows a server offers, and which one to use.

use contract::error::{ErrorCode, ReadError};
use serde_json::{Map, Value};

use super::device;
use crate::failure;
use crate::metadata::{self, AuthorizationServer};
use crate::provider_url::ProviderUrl;
use crate::transport::{Limits, Transport};

/// The parameter that some servers require of devices.
pub(super) const DETAILS: &str = "authorization_details";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfferedFlows {
    /// A link with a code, which works from any machine.
    pub device: bool,
    /// Whether the device flow requires authorization details. Where it does not, the owner chooses.
    pub device_needs_details: bool,
    /// A browser on this machine. The owner chooses there, unless details are sent.
    pub browser: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GrantFlow {
    Device,
    Browser,
}

/// Finds out which flows an authorization server offers: from its metadata, and by requesting a code as an unknown
/// client, which gets none.
pub async fn offered_flows(
    provider: &ProviderUrl,
    issuer: &ProviderUrl,
    limits: Limits,
) -> Result<OfferedFlows, ReadError> {
    let transport = Transport::new(limits);
    let (server, mut flows) = read_metadata(&transport, issuer).await?;
    if let (true, Some(endpoint)) = (flows.device, &server.device_authorization) {
        let resource = flows.resource(provider);
        match device::probe(&transport, &server, endpoint, &resource).await? {
            device::DeviceSupport::Works => {}
            device::DeviceSupport::NeedsDetails => flows.device_needs_details = true,
            device::DeviceSupport::Missing => flows.device = false,
        }
    }
    Ok(flows)
}

/// The authorization server of a provider, and the flows its metadata lists.
pub(super) async fn discover(
    transport: &Transport,
    provider: &ProviderUrl,
) -> Result<(AuthorizationServer, OfferedFlows), ReadError> {
    let issuer = metadata::authorization_server_of(transport, provider).await?;
    read_metadata(transport, &issuer).await
}

async fn read_metadata(
    transport: &Transport,
    issuer: &ProviderUrl,
) -> Result<(AuthorizationServer, OfferedFlows), ReadError> {
    let server = metadata::authorization_server(transport, issuer).await?;
    let server = server.ok_or_else(|| nothing_offered(issuer))?;
    let flows = OfferedFlows {
        device: server.device_authorization.is_some(),
        device_needs_details: device_needs_details(&server.document),
        browser: server.authorization.is_some() && knows_the_code_flow(&server.document),
    };
    Ok((server, flows))
}

impl OfferedFlows {
    /// The same flows, with details required of devices.
    pub(super) fn needing_details(self) -> Self {
        let device_needs_details = true;
        Self {
            device_needs_details,
            ..self
        }
    }

    pub(super) fn choose(
        self,
        has_details: bool,
        browser: bool,
        provider: &ProviderUrl,
        issuer: &ProviderUrl,
    ) -> Result<GrantFlow, ReadError> {
        let device = self.device && (has_details || !self.device_needs_details);
        match (device, self.browser) {
            (_, true) if browser => Ok(GrantFlow::Browser),
            (_, false) if browser => {
                let reason = "it offers no sign-in that comes back to a browser on this machine";
                Err(failure::not_the_contract(issuer.as_str(), reason)
                    .with_hint(format!("run `pdpp connect {provider}` without --browser")))
            }
            (true, _) => Ok(GrantFlow::Device),
            (false, true) => Ok(GrantFlow::Browser),
            (false, false) if self.device => Err(details_wanted(provider)),
            (false, false) => Err(nothing_offered(issuer)),
        }
    }

    /// The resource to request: the whole server, or its tools where devices must send details, because servers that
    /// require the details require this resource too.
    pub(super) fn resource(self, provider: &ProviderUrl) -> String {
        if self.device_needs_details {
            return format!("{}/mcp", provider.origin());
        }
        provider.as_str().to_owned()
    }
}

/// The device flow needs details, and there is no page where the owner could choose.
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

/// Whether the device profile for grant tokens requires details.
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

/// Whether the authorization code flow with PKCE is supported.
fn knows_the_code_flow(document: &Map<String, Value>) -> bool {
    // An absent member has the default of RFC 8414.
    let lists = |name: &str, value: &str| {
        let listed = document.get(name).and_then(Value::as_array);
        listed.is_none_or(|listed| listed.iter().any(|one| one == value))
    };
    lists("response_types_supported", "code")
        && lists("grant_types_supported", "authorization_code")
        && lists("code_challenge_methods_supported", "S256")
}
