//! Getting a credential from a server. The owner approves in a browser; we wait.
//!
//! Nothing is printed here. [`begin`] returns what to show, [`Pending::wait`] waits and stores the credential. There
//! are two flows: a link with a code (RFC 8628), which works from any machine, and a browser on this machine that is
//! redirected to us (RFC 8252).

mod browser;
mod device;
mod flows;

use std::path::PathBuf;
use std::time::Duration;

use contract::error::{ErrorCode, ReadError};
use contract::time::{Clock, Instant};
use serde_json::{Value, json};

use self::browser::Browser;
use self::device::Device;
use self::flows::GrantFlow;
pub use self::flows::{OfferedFlows, offered_flows};
use crate::credentials::{CredentialCache, Entry};
use crate::failure;
use crate::metadata::AuthorizationServer;
use crate::provider_url::ProviderUrl;
use crate::token::{self, Granted};
use crate::transport::{Limits, RequestBody, Transport};

const CLIENT_NAME: &str = "pdpp CLI";

#[derive(Debug, Clone)]
pub struct Request {
    pub provider: ProviderUrl,
    /// The resource of the token; the default of the server if `None`.
    pub resource: Option<String>,
    /// RFC 9396 authorization details. Without them the owner chooses.
    pub authorization_details: Option<Value>,
    /// Whether to use a browser on this machine even where a link with a code would do.
    pub browser: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The link to open, with the code filled in if the server supports that.
    pub link: String,
    /// The code that is shown there or has to be typed. `None` if the browser must be on this machine.
    pub user_code: Option<String>,
    /// How long it works.
    pub expires_in: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connected {
    pub file: PathBuf,
    pub grant_id: Option<String>,
    /// Whether it stands for a package of grants.
    pub is_package: bool,
    pub expires_at: Option<Instant>,
}

pub struct Pending {
    flow: Flow,
    waiting: Waiting,
    prompt: Prompt,
}

enum Waiting {
    Device(Device),
    Browser(Browser),
}

struct Flow {
    transport: Transport,
    provider: ProviderUrl,
    resource: String,
    server: AuthorizationServer,
    client_id: String,
}

/// Starts a flow: finds the authorization server, registers if needed, and requests a code or opens a port for the
/// browser.
pub async fn begin(
    request: &Request,
    cache: &CredentialCache,
    limits: Limits,
) -> Result<Pending, ReadError> {
    let transport = Transport::new(limits);
    let provider = &request.provider;
    let (server, offered) = flows::discover(&transport, provider).await?;
    let details = request.authorization_details.as_ref().map(Value::to_string);
    let chosen = offered.choose(details.is_some(), request.browser, provider, &server.issuer)?;
    let mut flow = Flow {
        resource: match &request.resource {
            Some(resource) => resource.clone(),
            None => offered.resource(provider),
        },
        provider: provider.clone(),
        client_id: String::new(),
        transport,
        server,
    };
    if chosen == GrantFlow::Device {
        match device::begin(&mut flow, details.as_deref(), cache).await? {
            device::DeviceStart::Waits(device, prompt) => {
                let waiting = Waiting::Device(device);
                return Ok(Pending {
                    flow,
                    waiting,
                    prompt,
                });
            }
            // The metadata did not say so.
            device::DeviceStart::NeedsDetails => {
                let offered = offered.needing_details();
                offered.choose(false, false, provider, &flow.server.issuer)?;
                flow.resource = offered.resource(provider);
            }
        }
    }
    let (browser, prompt) = browser::begin(&mut flow, details.as_deref()).await?;
    let waiting = Waiting::Browser(browser);
    Ok(Pending {
        flow,
        waiting,
        prompt,
    })
}

impl Pending {
    pub fn prompt(&self) -> &Prompt {
        &self.prompt
    }

    /// Waits until the owner has decided, and stores the credential. Where the server has to be polled, `pause` runs
    /// before each request.
    pub async fn wait(
        self,
        cache: &CredentialCache,
        clock: &dyn Clock,
        pause: impl AsyncFnMut(Duration),
    ) -> Result<Connected, ReadError> {
        let patience = self.prompt.expires_in;
        let granted = match self.waiting {
            Waiting::Device(device) => device.wait(&self.flow, patience, pause).await?,
            Waiting::Browser(browser) => browser.wait(&self.flow, patience).await?,
        };
        self.flow.keep(cache, clock, &granted).await
    }
}

impl Flow {
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
        let file = cache.store(&self.provider, &entry, now, patience).await?;
        Ok(Connected {
            file,
            grant_id: granted.grant().map(str::to_owned),
            is_package: granted.is_package(),
            expires_at: granted.expires_at(now),
        })
    }

    fn ended(&self, how: &str) -> ReadError {
        let message = format!("no credential for {}: {how}", self.provider);
        ReadError::new(ErrorCode::NotConnected, message)
            .with_hint(format!("run `pdpp connect {}` again", self.provider))
    }

    /// Registers as a public client (RFC 7591), with the first of these grant types that the server accepts.
    async fn register(&mut self, grant_types: &[&[&str]], more: &Value) -> Result<(), ReadError> {
        let issuer = self.server.issuer.as_str();
        let Some(endpoint) = &self.server.registration else {
            let reason = "it registers no clients, and none is known for this machine";
            return Err(failure::not_the_contract(issuer, reason));
        };
        let mut refusal = None;
        for grant_types in grant_types {
            let mut metadata = json!({
                "client_name": CLIENT_NAME,
                "token_endpoint_auth_method": "none",
                "grant_types": grant_types,
            });
            for (name, value) in more.as_object().into_iter().flatten() {
                metadata[name] = value.clone();
            }
            let body = RequestBody {
                media_type: "application/json",
                text: metadata.to_string(),
            };
            let response = self.transport.post(issuer, endpoint.clone(), body).await?;
            let answer = token::json_object(&response).unwrap_or_default();
            let id = answer.get("client_id").and_then(Value::as_str);
            if let (200 | 201, Some(id)) = (response.status, id) {
                id.clone_into(&mut self.client_id);
                return Ok(());
            }
            let code = token::error_code(&answer);
            let is_metadata = code.as_deref() == Some("invalid_client_metadata");
            refusal = Some(token::refused_as(issuer, &response, &answer));
            if !is_metadata {
                break;
            }
        }
        Err(refusal.unwrap_or_else(|| token::refused(issuer, "registration failed")))
    }
}
