//! The device flow of RFC 8628: a link with a code, from any machine.

use std::time::Duration;

use contract::error::{ErrorCode, ReadError};
use reqwest::Url;
use serde_json::{Map, Value, json};

use super::ways::DETAILS;
use super::{Flow, Prompt};
use crate::credentials::CredentialCache;
use crate::failure;
use crate::metadata::AuthorizationServer;
use crate::secret::Secret;
use crate::token::{self, Granted, TokenAnswer};
use crate::transport::{Exchange, Transport};

/// The grant type of the flow.
const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// How often to ask when the server does not say, and how much slower when it says so (RFC 8628 §3.2, §3.5).
const INTERVAL: Duration = Duration::from_secs(5);
/// The shortest and the longest time between two questions, whatever the server says.
const INTERVAL_BOUNDS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));
/// The longest time to wait for a person.
const LONGEST_WAIT: Duration = Duration::from_hours(1);
/// The longest code a person is asked to type.
const USER_CODE_CHARS: usize = 64;
/// The client as which a server is asked whether the flow works. No server registers it.
const NOBODY: &str = "pdpp-doctor";

/// A code that waits for the owner.
pub(super) struct Device {
    code: Secret,
    interval: Duration,
}

/// What came of asking for a code.
pub(super) enum Begun {
    Waits(Device, Prompt),
    /// It must be said what is asked for.
    NeedsDetails,
}

/// Asks for a code, as the client this machine is known as.
pub(super) async fn begin(
    flow: &mut Flow,
    details: Option<&str>,
    cache: &CredentialCache,
) -> Result<Begun, ReadError> {
    // Some servers refuse to name a refresh grant beside the device flow.
    let grant_types: [&[&str]; 2] = [&[DEVICE_CODE, "refresh_token"], &[DEVICE_CODE]];
    let mut known = cache.client(&flow.provider, &flow.server.issuer);
    match &known {
        Some(known) => flow.client_id.clone_from(known),
        None => flow.register(&grant_types, &json!({})).await?,
    }
    let said = loop {
        let said = ask(flow, details).await?;
        let refusal = token::object(&said).and_then(|body| token::error_code(&body));
        // A server may have forgotten the client we were; then we are a new one, once.
        if refusal.as_deref() == Some("invalid_client") && known.take().is_some() {
            flow.register(&grant_types, &json!({})).await?;
            continue;
        }
        break said;
    };
    let issuer = flow.server.issuer.as_str();
    let body = token::object(&said).unwrap_or_default();
    if said.status != 200 {
        if details.is_none() && wants_details(&body) {
            return Ok(Begun::NeedsDetails);
        }
        return Err(token::refused_as(issuer, &said, &body));
    }
    let (device, prompt) = read(&body).ok_or_else(|| {
        let reason = "its device authorization lacks a code or an address to open";
        failure::not_the_contract(issuer, reason)
    })?;
    Ok(Begun::Waits(device, prompt))
}

async fn ask(flow: &Flow, details: Option<&str>) -> Result<Exchange, ReadError> {
    let issuer = flow.server.issuer.as_str();
    let Some(endpoint) = flow.server.device_authorization.clone() else {
        return Err(failure::not_the_contract(
            issuer,
            "it offers no device flow",
        ));
    };
    let mut fields = vec![
        ("client_id", flow.client_id.as_str()),
        ("resource", flow.resource.as_str()),
    ];
    fields.extend(details.map(|text| (DETAILS, text)));
    let form = token::form(&fields);
    flow.transport.post(issuer, endpoint, form).await
}

/// Whether a refusal says that it must be said what is asked for.
fn wants_details(body: &Map<String, Value>) -> bool {
    let told = body.get("error_description").and_then(Value::as_str);
    let code = token::error_code(body);
    code.as_deref() == Some("invalid_request") && told.is_some_and(|told| told.contains(DETAILS))
}

/// What a server says to a client that it cannot know.
pub(super) enum Probed {
    Works,
    NeedsDetails,
    Missing,
}

/// Asks for a code in a way that gives none.
pub(super) async fn probe(
    transport: &Transport,
    server: &AuthorizationServer,
    endpoint: &Url,
    resource: &str,
) -> Result<Probed, ReadError> {
    let form = token::form(&[("client_id", NOBODY), ("resource", resource)]);
    let issuer = server.issuer.as_str();
    let said = transport.post(issuer, endpoint.clone(), form).await?;
    let body = token::object(&said).unwrap_or_default();
    Ok(match said.status {
        404 | 405 | 501 => Probed::Missing,
        _ if wants_details(&body) => Probed::NeedsDetails,
        _ => Probed::Works,
    })
}

impl Device {
    /// Asks until the owner has decided, with a `pause` before each question.
    pub(super) async fn wait(
        self,
        flow: &Flow,
        patience: Duration,
        mut pause: impl AsyncFnMut(Duration),
    ) -> Result<Box<Granted>, ReadError> {
        let mut interval = self.interval;
        let mut waited = Duration::ZERO;
        while waited < patience {
            pause(interval).await;
            waited += interval;
            match self.poll(flow).await {
                Ok(TokenAnswer::Granted(granted)) => return Ok(granted),
                Ok(TokenAnswer::Refused(code)) => match code.as_str() {
                    "authorization_pending" => {}
                    "slow_down" => interval += INTERVAL,
                    "access_denied" => return Err(flow.ended("the owner did not approve")),
                    "expired_token" => break,
                    _ => return Err(token::refused(flow.server.issuer.as_str(), &code)),
                },
                // The network may come back while the person still decides.
                Err(error) if is_passing(error.code) => interval *= 2,
                Err(error) => return Err(error),
            }
            interval = interval.min(INTERVAL_BOUNDS.1);
        }
        Err(flow.ended("the code expired before the owner approved"))
    }

    async fn poll(&self, flow: &Flow) -> Result<TokenAnswer, ReadError> {
        let fields = [
            ("grant_type", DEVICE_CODE),
            ("device_code", self.code.expose()),
            ("client_id", &flow.client_id),
            ("resource", &flow.resource),
        ];
        token::ask(&flow.transport, &flow.server.token, &fields).await
    }
}

fn is_passing(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::RsUnreachable | ErrorCode::RsTimeout)
}

fn read(body: &Map<String, Value>) -> Option<(Device, Prompt)> {
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let seconds = |name: &str| {
        body.get(name)
            .and_then(Value::as_u64)
            .map(Duration::from_secs)
    };
    let user_code = text("user_code")?;
    let typed = user_code.chars().all(|c| !c.is_control()) && !user_code.is_empty();
    if !typed || user_code.chars().count() > USER_CODE_CHARS {
        return None;
    }
    let page = web_address(text("verification_uri")?)?;
    let whole = text("verification_uri_complete").and_then(web_address);
    let prompt = Prompt {
        link: whole.unwrap_or(page),
        user_code: Some(user_code.to_owned()),
        expires_in: seconds("expires_in")?.min(LONGEST_WAIT),
    };
    let interval = seconds("interval").unwrap_or(INTERVAL);
    let device = Device {
        code: Secret::new(text("device_code")?)?,
        interval: interval.clamp(INTERVAL_BOUNDS.0, INTERVAL_BOUNDS.1),
    };
    Some((device, prompt))
}

/// An address a person may be sent to.
fn web_address(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    ["http", "https"]
        .contains(&url.scheme())
        .then(|| url.to_string())
}
