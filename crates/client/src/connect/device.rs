//! The device flow of RFC 8628: a link with a code, from any machine.

use std::time::Duration;

use contract::error::{ErrorCode, ReadError};
use reqwest::Url;
use serde_json::{Map, Value, json};

use super::flows::DETAILS;
use super::{Flow, Prompt};
use crate::credentials::CredentialCache;
use crate::failure;
use crate::metadata::AuthorizationServer;
use crate::secret::Secret;
use crate::token::{self, Granted, TokenResponse};
use crate::transport::{HttpResponse, Transport};

const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// The default polling interval, and the step of `slow_down` (RFC 8628 §3.2, §3.5).
const INTERVAL: Duration = Duration::from_secs(5);
/// Bounds of the polling interval, whatever the server says.
const INTERVAL_BOUNDS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));
const MAX_WAIT: Duration = Duration::from_hours(1);
/// The longest code a person is asked to type.
const USER_CODE_CHARS: usize = 64;
/// A client id that no server has registered, to probe whether the flow works.
const PROBE_CLIENT_ID: &str = "pdpp-doctor";

pub(super) struct Device {
    code: Secret,
    interval: Duration,
}

pub(super) enum DeviceStart {
    Waits(Device, Prompt),
    /// The server requires authorization details.
    NeedsDetails,
}

/// Requests a code, with this machine's client id.
pub(super) async fn begin(
    flow: &mut Flow,
    details: Option<&str>,
    cache: &CredentialCache,
) -> Result<DeviceStart, ReadError> {
    // Some servers refuse a refresh grant beside the device flow.
    let grant_types: [&[&str]; 2] = [&[DEVICE_CODE, "refresh_token"], &[DEVICE_CODE]];
    let mut known = cache.client(&flow.provider, &flow.server.issuer);
    match &known {
        Some(known) => flow.client_id.clone_from(known),
        None => flow.register(&grant_types, &json!({})).await?,
    }
    let response = loop {
        let response = request_code(flow, details).await?;
        let refusal = token::json_object(&response).and_then(|body| token::error_code(&body));
        // The server may have forgotten our client id; then register once more.
        if refusal.as_deref() == Some("invalid_client") && known.take().is_some() {
            flow.register(&grant_types, &json!({})).await?;
            continue;
        }
        break response;
    };
    let issuer = flow.server.issuer.as_str();
    let body = token::json_object(&response).unwrap_or_default();
    if response.status != 200 {
        if details.is_none() && wants_details(&body) {
            return Ok(DeviceStart::NeedsDetails);
        }
        return Err(token::refused_as(issuer, &response, &body));
    }
    let (device, prompt) = parse_prompt(&body).ok_or_else(|| {
        let reason = "its device authorization lacks a code or an address to open";
        failure::not_the_contract(issuer, reason)
    })?;
    Ok(DeviceStart::Waits(device, prompt))
}

async fn request_code(flow: &Flow, details: Option<&str>) -> Result<HttpResponse, ReadError> {
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
    let form = token::form_body(&fields);
    flow.transport.post(issuer, endpoint, form).await
}

/// Whether an error says that authorization details are required.
fn wants_details(body: &Map<String, Value>) -> bool {
    let told = body.get("error_description").and_then(Value::as_str);
    let code = token::error_code(body);
    code.as_deref() == Some("invalid_request") && told.is_some_and(|told| told.contains(DETAILS))
}

pub(super) enum DeviceSupport {
    Works,
    NeedsDetails,
    Missing,
}

/// Requests a code as an unknown client, which gets none.
pub(super) async fn probe(
    transport: &Transport,
    server: &AuthorizationServer,
    endpoint: &Url,
    resource: &str,
) -> Result<DeviceSupport, ReadError> {
    let form = token::form_body(&[("client_id", PROBE_CLIENT_ID), ("resource", resource)]);
    let issuer = server.issuer.as_str();
    let response = transport.post(issuer, endpoint.clone(), form).await?;
    let body = token::json_object(&response).unwrap_or_default();
    Ok(match response.status {
        404 | 405 | 501 => DeviceSupport::Missing,
        _ if wants_details(&body) => DeviceSupport::NeedsDetails,
        _ => DeviceSupport::Works,
    })
}

impl Device {
    /// Polls until the owner has decided, with a `pause` before each request.
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
                Ok(TokenResponse::Granted(granted)) => return Ok(granted),
                Ok(TokenResponse::Refused(code)) => match code.as_str() {
                    "authorization_pending" => {}
                    "slow_down" => interval += INTERVAL,
                    "access_denied" => return Err(flow.ended("the owner did not approve")),
                    "expired_token" => break,
                    _ => return Err(token::refused(flow.server.issuer.as_str(), &code)),
                },
                // The network may recover while the person still decides.
                Err(error) if is_passing(error.code) => interval *= 2,
                Err(error) => return Err(error),
            }
            interval = interval.min(INTERVAL_BOUNDS.1);
        }
        Err(flow.ended("the code expired before the owner approved"))
    }

    async fn poll(&self, flow: &Flow) -> Result<TokenResponse, ReadError> {
        let fields = [
            ("grant_type", DEVICE_CODE),
            ("device_code", self.code.expose()),
            ("client_id", &flow.client_id),
            ("resource", &flow.resource),
        ];
        token::request_token(&flow.transport, &flow.server.token, &fields).await
    }
}

fn is_passing(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::RsUnreachable | ErrorCode::RsTimeout)
}

fn parse_prompt(body: &Map<String, Value>) -> Option<(Device, Prompt)> {
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
        expires_in: seconds("expires_in")?.min(MAX_WAIT),
    };
    let interval = seconds("interval").unwrap_or(INTERVAL);
    let device = Device {
        code: Secret::new(text("device_code")?)?,
        interval: interval.clamp(INTERVAL_BOUNDS.0, INTERVAL_BOUNDS.1),
    };
    Some((device, prompt))
}

/// A URL that a person may be sent to.
fn web_address(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    ["http", "https"]
        .contains(&url.scheme())
        .then(|| url.to_string())
}
