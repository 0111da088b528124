//! Getting a credential from a server: the device flow of RFC 8628. The owner approves in a browser; we wait.
//!
//! Nothing is printed here. [`begin`] gives what to show, [`Pending::wait`] waits and keeps the credential.

use std::path::PathBuf;
use std::time::Duration;

use contract::error::{ErrorCode, ReadError};
use contract::time::{Clock, Instant};
use reqwest::Url;
use serde_json::{Map, Value, json};

use crate::credentials::{CredentialCache, Entry};
use crate::failure;
use crate::metadata::{self, AuthorizationServer};
use crate::provider_url::ProviderUrl;
use crate::secret::Secret;
use crate::token::{self, Granted, TokenAnswer};
use crate::transport::{Exchange, Limits, Transport};

/// The name the owner is shown.
const CLIENT_NAME: &str = "pdpp CLI";
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

/// What to ask a server for.
#[derive(Debug, Clone)]
pub struct Request {
    /// The server.
    pub provider: ProviderUrl,
    /// What the token is for; the provider itself if none is named.
    pub resource: Option<String>,
    /// RFC 9396 authorization details. Without them the owner chooses.
    pub authorization_details: Option<Value>,
}

/// What the person is to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Where to go.
    pub verification_uri: String,
    /// The same with the code filled in, where the server has it.
    pub verification_uri_complete: Option<String>,
    /// What to type there.
    pub user_code: String,
    /// How long it works.
    pub expires_in: Duration,
}

/// A credential that was given and kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connected {
    /// Where it is kept.
    pub file: PathBuf,
    /// The grant it stands for, if the server said so.
    pub grant_id: Option<String>,
    /// When it ends, if the server said so.
    pub expires_at: Option<Instant>,
}

/// A flow that waits for the owner.
pub struct Pending {
    transport: Transport,
    provider: ProviderUrl,
    resource: String,
    server: AuthorizationServer,
    client_id: String,
    device_code: Secret,
    interval: Duration,
    prompt: Prompt,
}

/// Starts the flow: finds the authorization server, registers where needed, and asks for a code.
pub async fn begin(
    request: &Request,
    cache: &CredentialCache,
    limits: Limits,
) -> Result<Pending, ReadError> {
    let transport = Transport::new(limits);
    let provider = &request.provider;
    let issuer = metadata::authorization_server_of(&transport, provider).await?;
    let server = metadata::authorization_server(&transport, &issuer).await?;
    let lacking = || {
        let reason = "it offers no device flow, which `pdpp connect` needs";
        failure::not_the_contract(issuer.as_str(), reason)
    };
    let server = server.ok_or_else(lacking)?;
    let endpoint = server.device_authorization.clone().ok_or_else(lacking)?;
    let resource = request.resource.as_deref().unwrap_or(provider.as_str());
    let details = request.authorization_details.as_ref().map(Value::to_string);

    let mut known = cache.client(provider, &issuer);
    let mut client_id = match &known {
        Some(known) => known.clone(),
        None => register(&transport, &server).await?,
    };
    let said = loop {
        let mut fields = vec![("client_id", client_id.as_str()), ("resource", resource)];
        fields.extend(
            details
                .as_deref()
                .map(|text| ("authorization_details", text)),
        );
        let said = transport
            .post(issuer.as_str(), endpoint.clone(), token::form(&fields))
            .await?;
        let forgotten = token::object(&said).and_then(|body| token::error_code(&body));
        // A server may have forgotten the client we were; then we are a new one, once.
        if forgotten.as_deref() == Some("invalid_client") && known.take().is_some() {
            client_id = register(&transport, &server).await?;
            continue;
        }
        break said;
    };
    let (device_code, interval, prompt) = device_answer(&issuer, &said)?;
    Ok(Pending {
        resource: resource.to_owned(),
        provider: provider.clone(),
        transport,
        server,
        client_id,
        device_code,
        interval,
        prompt,
    })
}

impl Pending {
    /// What the person is to be shown.
    pub fn prompt(&self) -> &Prompt {
        &self.prompt
    }

    /// Asks until the owner has decided, with a `pause` before each question, and keeps the credential.
    pub async fn wait(
        self,
        cache: &CredentialCache,
        clock: &dyn Clock,
        mut pause: impl AsyncFnMut(Duration),
    ) -> Result<Connected, ReadError> {
        let mut interval = self.interval;
        let mut waited = Duration::ZERO;
        while waited < self.prompt.expires_in {
            pause(interval).await;
            waited += interval;
            match self.ask().await {
                Ok(TokenAnswer::Granted(granted)) => {
                    return self.keep(cache, clock, &granted).await;
                }
                Ok(TokenAnswer::Refused(code)) => match code.as_str() {
                    "authorization_pending" => {}
                    "slow_down" => interval += INTERVAL,
                    "access_denied" => return Err(self.ended("the owner did not approve")),
                    "expired_token" => break,
                    _ => return Err(token::refused(self.server.issuer.as_str(), &code)),
                },
                // The network may come back while the person still decides.
                Err(error) if is_passing(error.code) => interval *= 2,
                Err(error) => return Err(error),
            }
            interval = interval.min(INTERVAL_BOUNDS.1);
        }
        Err(self.ended("the code expired before the owner approved"))
    }

    async fn ask(&self) -> Result<TokenAnswer, ReadError> {
        let fields = [
            ("grant_type", DEVICE_CODE),
            ("device_code", self.device_code.expose()),
            ("client_id", &self.client_id),
            ("resource", &self.resource),
        ];
        token::ask(&self.transport, &self.server.token, &fields).await
    }

    async fn keep(
        &self,
        cache: &CredentialCache,
        clock: &dyn Clock,
        granted: &Granted,
    ) -> Result<Connected, ReadError> {
        let now = clock.now();
        let entry = Entry {
            issuer: &self.server.issuer,
            token_endpoint: self.server.token.as_str(),
            resource: &self.resource,
            client_id: &self.client_id,
            granted,
        };
        let patience = self.transport.limits().total;
        let file = cache.store(&self.provider, &entry, (now, patience)).await?;
        Ok(Connected {
            file,
            grant_id: granted.grant().map(str::to_owned),
            expires_at: granted.expires_at(now),
        })
    }

    fn ended(&self, how: &str) -> ReadError {
        let message = format!("no credential for {}: {how}", self.provider);
        ReadError::new(ErrorCode::NotConnected, message)
            .with_hint(format!("run `pdpp connect {}` again", self.provider))
    }
}

fn is_passing(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::RsUnreachable | ErrorCode::RsTimeout)
}

/// Registers as a public client (RFC 7591). Some servers refuse to name a refresh grant beside the device flow.
async fn register(
    transport: &Transport,
    server: &AuthorizationServer,
) -> Result<String, ReadError> {
    let issuer = server.issuer.as_str();
    let Some(endpoint) = &server.registration else {
        let reason = "it registers no clients, and none is known for this machine";
        return Err(failure::not_the_contract(issuer, reason));
    };
    let mut code = None;
    for grant_types in [&[DEVICE_CODE, "refresh_token"][..], &[DEVICE_CODE]] {
        let metadata = json!({
            "client_name": CLIENT_NAME,
            "token_endpoint_auth_method": "none",
            "grant_types": grant_types,
        });
        let body = ("application/json", metadata.to_string());
        let said = transport.post(issuer, endpoint.clone(), body).await?;
        let answer = token::object(&said).unwrap_or_default();
        let id = answer.get("client_id").and_then(Value::as_str);
        if let (200 | 201, Some(id)) = (said.status, id) {
            return Ok(id.to_owned());
        }
        code = token::error_code(&answer);
        if code.as_deref() != Some("invalid_client_metadata") {
            break;
        }
    }
    Err(token::refused(
        issuer,
        code.as_deref().unwrap_or("registration failed"),
    ))
}

fn device_answer(
    issuer: &ProviderUrl,
    said: &Exchange,
) -> Result<(Secret, Duration, Prompt), ReadError> {
    let body = token::object(said).unwrap_or_default();
    if said.status != 200 {
        let code = token::error_code(&body);
        let status = format!("status {}", said.status);
        return Err(token::refused(
            issuer.as_str(),
            code.as_deref().unwrap_or(&status),
        ));
    }
    read_device(&body).ok_or_else(|| {
        let reason = "its device authorization lacks a code or an address to open";
        failure::not_the_contract(issuer.as_str(), reason)
    })
}

fn read_device(body: &Map<String, Value>) -> Option<(Secret, Duration, Prompt)> {
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
    let prompt = Prompt {
        verification_uri: web_address(text("verification_uri")?)?,
        verification_uri_complete: text("verification_uri_complete").and_then(web_address),
        user_code: user_code.to_owned(),
        expires_in: seconds("expires_in")?.min(LONGEST_WAIT),
    };
    let interval = seconds("interval").unwrap_or(INTERVAL);
    let interval = interval.clamp(INTERVAL_BOUNDS.0, INTERVAL_BOUNDS.1);
    Some((Secret::new(text("device_code")?)?, interval, prompt))
}

/// An address a person may be sent to.
fn web_address(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    ["http", "https"]
        .contains(&url.scheme())
        .then(|| url.to_string())
}
