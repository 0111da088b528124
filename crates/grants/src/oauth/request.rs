//! A request for a grant, from its arrival to its decision.

use std::time::Duration;

use contract::time::Instant;
use serde::{Deserialize, Serialize};
use store::registry::{EntryKind, Expect};

use super::clients::{Client, GrantType};
use super::decision::Decision;
use super::error::OAuthError;
use super::metadata::shown;
use super::parameters::Parameters;
use super::review::{Choice, Review};
use super::uri::with_parameters;
use super::{Issuer, later};
use crate::documents::{Found, find, put};
use crate::secret::random_words;
use crate::selection::Selection;

pub(super) const LIFE: Duration = Duration::from_mins(10);
const MAX_STATE_BYTES: usize = 4_096;

/// Where the answer of a code request goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedirectBack {
    pub redirect_uri: String,
    /// What the client wants back unchanged.
    pub state: Option<String>,
}

impl RedirectBack {
    /// The address that tells the client of an error, with the issuer in it (RFC 9207).
    pub fn with_error(&self, error: &OAuthError, issuer: &str) -> String {
        self.with(
            &[
                ("error", error.error),
                ("error_description", &error.description),
            ],
            issuer,
        )
    }

    pub(super) fn with(&self, answer: &[(&str, &str)], issuer: &str) -> String {
        let mut parameters = answer.to_vec();
        if let Some(state) = &self.state {
            parameters.push(("state", state));
        }
        parameters.push(("iss", issuer));
        with_parameters(&self.redirect_uri, &parameters)
    }
}

/// Why a code request was refused: shown to the person, or sent back to the client where its redirect URI is verified.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct AuthorizeError {
    pub error: OAuthError,
    /// Where to send it. `None` unless the redirect URI is verified: an unverified one would make us an open redirector.
    pub back: Option<RedirectBack>,
}

impl From<OAuthError> for AuthorizeError {
    fn from(error: OAuthError) -> Self {
        Self { error, back: None }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum GrantFlow {
    /// It gets a code through the browser.
    Code {
        back: RedirectBack,
        /// The hash of what only the client knows (PKCE, S256).
        code_challenge: String,
    },
    Device,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingRequest {
    pub client: Client,
    /// What is asked, as authorization details; without them the owner picks.
    pub details: Option<String>,
    /// What the tokens will be for: the origin, or its `/mcp`.
    pub resource: String,
    #[serde(rename = "way")]
    pub flow: GrantFlow,
    pub expires_at: Instant,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RequestEntry {
    pub(super) asked: PendingRequest,
    pub(super) review: Option<(Review, Choice)>,
    pub(super) decision: Option<Decision>,
}

impl Issuer<'_> {
    /// Takes a code request of a client that was looked up, and gives the id under which the owner decides it.
    pub fn authorize(
        &self,
        client: &Client,
        parameters: &Parameters,
    ) -> Result<String, AuthorizeError> {
        let asked = self.read_authorization(client, parameters)?;
        Ok(self.stage(asked)?)
    }

    fn read_authorization(
        &self,
        client: &Client,
        parameters: &Parameters,
    ) -> Result<PendingRequest, AuthorizeError> {
        if parameters.required("client_id")? != client.client_id.as_str() {
            return Err(
                OAuthError::invalid_client("this is not the client that was looked up").into(),
            );
        }
        let redirect_uri = parameters.required("redirect_uri")?;
        if !client.may_redirect_to(redirect_uri) {
            return Err(OAuthError::invalid_redirect_uri(format!(
                "{:?} is not a redirect URI of this client; register it first",
                shown(redirect_uri)
            ))
            .into());
        }
        self.check_redirect(redirect_uri)?;
        let state = parameters.optional("state")?;
        if state.is_some_and(|state| state.len() > MAX_STATE_BYTES) {
            return Err(OAuthError::invalid_request("state is longer than 4 KiB").into());
        }
        // From here on the redirect URI is verified, so errors go back to the client.
        let back = RedirectBack {
            redirect_uri: redirect_uri.to_owned(),
            state: state.map(str::to_owned),
        };
        let failed = |error: OAuthError| AuthorizeError {
            error,
            back: Some(back.clone()),
        };
        if !client.may_use(GrantType::AuthorizationCode) {
            return Err(failed(OAuthError::unauthorized_client(
                "this client did not register for authorization_code",
            )));
        }
        let code_challenge = code_challenge(parameters).map_err(failed)?;
        let (details, resource) = self.details_and_resource(parameters).map_err(failed)?;
        Ok(PendingRequest {
            client: client.clone(),
            details,
            resource,
            flow: GrantFlow::Code {
                back: back.clone(),
                code_challenge,
            },
            expires_at: later(self.now, LIFE),
        })
    }

    /// The details and the resource of a request, checked by their form alone. The client has no grant yet and nobody has
    /// signed in, so nothing is looked up in the catalog: the owner sees at the review what does not exist.
    pub(super) fn details_and_resource(
        &self,
        parameters: &Parameters,
    ) -> Result<(Option<String>, String), OAuthError> {
        let resource = self.audience(parameters.optional("resource")?)?;
        let details = parameters.optional("authorization_details")?;
        if let Some(details) = details {
            if !details.trim_start().starts_with('[') {
                return Err(OAuthError::invalid_authorization_details(
                    "authorization_details must be a JSON array",
                ));
            }
            Selection::from_details(details).map_err(|error| OAuthError::from_selection(&error))?;
        }
        Ok((details.map(str::to_owned), resource))
    }

    /// What a token may be for: this origin, or its `/mcp`. An origin's empty path may be written `/`.
    pub(super) fn audience(&self, resource: Option<&str>) -> Result<String, OAuthError> {
        let Some(resource) = resource else {
            return Ok(self.origin.to_owned());
        };
        match resource.strip_prefix(self.origin) {
            Some("" | "/") => Ok(self.origin.to_owned()),
            Some("/mcp") => Ok(resource.to_owned()),
            _ => Err(OAuthError::invalid_target(format!(
                "resource must be {0} or {0}/mcp",
                self.origin
            ))),
        }
    }

    pub(super) fn stage(&self, asked: PendingRequest) -> Result<String, OAuthError> {
        let id = random_words("req_")?;
        let expires_at = Some(asked.expires_at);
        let entry = RequestEntry {
            asked,
            review: None,
            decision: None,
        };
        let change = put(EntryKind::Request, &id, &entry)
            .until(expires_at)
            .expecting(Expect::Absent);
        if self.store.apply(&[change], self.now)? {
            Ok(id)
        } else {
            Err(OAuthError::server_error(
                "the request could not be kept; try again",
            ))
        }
    }

    pub(super) fn request_entry(
        &self,
        id: &str,
    ) -> Result<Option<Found<RequestEntry>>, store::StoreError> {
        find(self.store, EntryKind::Request, id, self.now)
    }
}

fn code_challenge(parameters: &Parameters) -> Result<String, OAuthError> {
    if parameters.required("response_type")? != "code" {
        return Err(OAuthError::unsupported_response_type(
            "response_type must be code",
        ));
    }
    let challenge = parameters.required("code_challenge")?;
    if parameters.optional("code_challenge_method")? != Some("S256") {
        return Err(OAuthError::invalid_request(
            "code_challenge_method must be S256",
        ));
    }
    if !is_pkce_text(challenge) {
        return Err(OAuthError::invalid_request(
            "code_challenge takes 43 to 128 unreserved characters",
        ));
    }
    Ok(challenge.to_owned())
}

/// Whether a text can be a verifier or a challenge of PKCE.
pub(super) fn is_pkce_text(text: &str) -> bool {
    (43..=128).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
}
