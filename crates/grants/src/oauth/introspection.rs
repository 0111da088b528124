//! Introspection (RFC 7662): what a token stands for, for clients that may ask.

use contract::grant::GrantedStream;
use contract::id::{ClientId, GrantId, PackageId};
use serde::Serialize;
use serde_json::Value;
use store::grants::{StoredGrant, TokenSubject};

use super::Issuer;
use super::error::OAuthError;
use super::token_endpoint::granted_detail;
use crate::token::{TokenError, TokenKind, live_grant, presented, resolve};

/// The answer about a token. For a token that is not valid, `active` is the only member.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Introspection {
    pub active: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pdpp_token_kind: Option<TokenKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<ClientId>,
    /// Until when, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exp: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iat: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iss: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aud: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant_id: Option<GrantId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant_package_id: Option<PackageId>,
    /// What may be read, one entry per grant that still stands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub authorization_details: Vec<Value>,
}

impl Issuer<'_> {
    /// What a presented text stands for.
    pub fn introspect(&self, token: &str) -> Result<Introspection, OAuthError> {
        let resolved = match resolve(self.store, token, self.now) {
            Ok(resolved) => resolved,
            Err(TokenError::Store(error)) => return Err(error.into()),
            Err(_) => return Ok(Introspection::default()),
        };
        let stored = match presented(self.store, token) {
            Ok(stored) => stored,
            Err(TokenError::Store(error)) => return Err(error.into()),
            Err(_) => return Ok(Introspection::default()),
        };
        let detail = |grant: &StoredGrant| {
            let grant = live_grant(grant, self.now).ok()?;
            Some(granted_detail(&grant, GrantedStream::clone))
        };
        let (grant_id, package_id, details) = match &stored.subject {
            TokenSubject::Owner => (None, None, Vec::new()),
            TokenSubject::Grant(grant) => (
                Some(grant.id.clone()),
                None,
                detail(grant).into_iter().collect(),
            ),
            TokenSubject::Package(package) => (
                None,
                Some(package.id.clone()),
                package.grants.iter().filter_map(detail).collect(),
            ),
        };
        Ok(Introspection {
            active: true,
            pdpp_token_kind: Some(resolved.kind),
            client_id: resolved.client_id,
            exp: Some(stored.expires_at.0.div_euclid(1_000_000)),
            iat: Some(stored.issued_at.0.div_euclid(1_000_000)),
            iss: Some(self.origin.to_owned()),
            aud: stored.audience,
            grant_id,
            grant_package_id: package_id,
            authorization_details: details,
        })
    }
}
