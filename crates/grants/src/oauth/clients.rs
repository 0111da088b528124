//! Applications that may ask for grants: how they register, how they are found, and how sure we are of their identity.

use std::time::Duration;

use contract::id::ClientId;
use contract::time::Instant;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::StoreError;
use store::registry::{EntryKind, Expect};

use super::error::OAuthError;
use super::metadata::{Metadata, read_metadata};
use super::uri::redirect_matches;
use super::{Issuer, later};
use crate::documents::{Found, find, put};
use crate::secret::random_words;

/// How long a client that was never approved is remembered.
pub(super) const UNUSED: Duration = Duration::from_hours(24 * 30);

contract::names! {
    #[derive(Serialize, Deserialize)]
    pub enum GrantType {
        #[serde(rename = "authorization_code")]
        AuthorizationCode = "authorization_code",
        #[serde(rename = "refresh_token")]
        RefreshToken = "refresh_token",
        /// By a code a person types elsewhere.
        #[serde(rename = "urn:ietf:params:oauth:grant-type:device_code")]
        DeviceCode = "urn:ietf:params:oauth:grant-type:device_code",
    }
}

/// How sure we are of the client's identity. Its name is only ever its own claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ClientTrust {
    /// Self-registered, which anybody can do.
    Registered { at: Instant },
    /// Published at this origin by its controller.
    Document { origin: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    pub client_id: ClientId,
    pub client_name: Option<String>,
    /// Its home page, by its own account.
    pub client_uri: Option<String>,
    pub redirect_uris: Vec<String>,
    pub grant_types: Vec<GrantType>,
    pub trust: ClientTrust,
}

impl Client {
    pub fn may_redirect_to(&self, address: &str) -> bool {
        self.redirect_uris
            .iter()
            .any(|registered| redirect_matches(registered, address))
    }

    /// Whether it may come to tokens this way.
    pub fn may_use(&self, grant_type: GrantType) -> bool {
        self.grant_types.contains(&grant_type)
    }
}

/// What registration answers (RFC 7591).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Registered {
    pub client_id: ClientId,
    /// When, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id_issued_at: Option<i64>,
    /// Where this can be read again.
    pub registration_client_uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_uri: Option<String>,
    pub redirect_uris: Vec<String>,
    pub grant_types: Vec<GrantType>,
    /// `code`, if it may use codes.
    pub response_types: Vec<&'static str>,
    /// Always `none`: public clients only.
    pub token_endpoint_auth_method: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    Known(Client),
    /// Its metadata document has to be fetched from this address and given to [`Issuer::accept_document`].
    NeedsDocument(String),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ClientEntry {
    pub(super) client: Client,
    /// Until when a metadata document need not be fetched again.
    pub(super) fresh_until: Option<Instant>,
}

impl Issuer<'_> {
    /// Registers a client by its metadata, as JSON (RFC 7591). No authorization is needed.
    pub fn register(&self, metadata: &str) -> Result<Registered, OAuthError> {
        let metadata: Value = serde_json::from_str(metadata).map_err(|_| {
            OAuthError::invalid_client_metadata(
                "the body must be one JSON object of client metadata",
            )
        })?;
        let metadata = read_metadata(&metadata)?;
        for uri in &metadata.redirect_uris {
            self.check_redirect(uri)?;
        }
        let id = random_words("cli_")?;
        let client_id = ClientId::parse(id)
            .map_err(|_| OAuthError::server_error("no client id could be made; try again"))?;
        let trust = ClientTrust::Registered { at: self.now };
        let client = metadata.into_client(client_id, trust);
        let entry = ClientEntry {
            client: client.clone(),
            fresh_until: None,
        };
        let change = put(EntryKind::Client, client.client_id.as_str(), &entry)
            .until(later(self.now, UNUSED))
            .expecting(Expect::Absent);
        if !self.store.apply(&[change], self.now)? {
            return Err(OAuthError::server_error(
                "no client id could be made; try again",
            ));
        }
        Ok(self.as_registered(client))
    }

    pub fn registration(&self, client_id: &str) -> Result<Registered, OAuthError> {
        let client = self.known_client(client_id)?;
        Ok(self.as_registered(client))
    }

    fn as_registered(&self, client: Client) -> Registered {
        let codes = client.may_use(GrantType::AuthorizationCode);
        Registered {
            registration_client_uri: format!("{}/oauth/register/{}", self.origin, client.client_id),
            client_id_issued_at: match client.trust {
                ClientTrust::Registered { at } => Some(at.0.div_euclid(1_000_000)),
                ClientTrust::Document { .. } => None,
            },
            response_types: if codes { vec!["code"] } else { Vec::new() },
            token_endpoint_auth_method: "none",
            client_id: client.client_id,
            client_name: client.client_name,
            client_uri: client.client_uri,
            redirect_uris: client.redirect_uris,
            grant_types: client.grant_types,
        }
    }

    /// Finds a client to begin something with it: a metadata document must be fresh for that.
    pub fn client(&self, client_id: &str) -> Result<Lookup, OAuthError> {
        let found = self.client_entry(client_id)?;
        if super::client_document::is_document_address(client_id) {
            return Ok(match found {
                Some(entry) if entry.value.fresh_until > Some(self.now) => {
                    Lookup::Known(entry.value.client)
                }
                _ => Lookup::NeedsDocument(client_id.to_owned()),
            });
        }
        match found {
            Some(entry) => Ok(Lookup::Known(entry.value.client)),
            None => Err(unknown_client()),
        }
    }

    /// Finds a client that continues what it began; nothing needs fetching for that.
    pub(super) fn known_client(&self, client_id: &str) -> Result<Client, OAuthError> {
        let entry = self.client_entry(client_id)?;
        Ok(entry.ok_or_else(unknown_client)?.value.client)
    }

    pub(super) fn client_entry(
        &self,
        client_id: &str,
    ) -> Result<Option<Found<ClientEntry>>, StoreError> {
        find(self.store, EntryKind::Client, client_id, self.now)
    }
}

impl Metadata {
    pub(super) fn into_client(self, client_id: ClientId, trust: ClientTrust) -> Client {
        Client {
            client_id,
            client_name: self.client_name,
            client_uri: self.client_uri,
            redirect_uris: self.redirect_uris,
            grant_types: self.grant_types,
            trust,
        }
    }
}

fn unknown_client() -> OAuthError {
    OAuthError::invalid_client("this client is not known here; register it and try again")
}
