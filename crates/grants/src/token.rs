//! From a presented token to its authority.
//!
//! Nothing is cached between calls, so a revocation is effective from the next call on. A stored grant that cannot be
//! parsed or contradicts itself gives no access.

use contract::error::{ErrorCode, ReadError};
use contract::grant::{Authority, Grant, GrantedAuthority};
use contract::id::{ClientId, GrantId, PackageId};
use contract::time::Instant;
use serde::{Deserialize, Serialize};
use store::grants::{StoredGrant, StoredPackage, StoredToken, TokenSubject};
use store::{Store, StoreError};
use thiserror::Error;

use crate::budget;
use crate::secret::TokenHash;
use crate::step_up;

contract::names! {
    /// What a token stands for, in the words of the wire.
    #[derive(Serialize, Deserialize)]
    pub enum TokenKind {
        #[serde(rename = "owner")]
        Owner = "owner",
        #[serde(rename = "client")]
        Client = "client",
        #[serde(rename = "mcp_package")]
        Package = "mcp_package",
    }
}

#[derive(Debug, Clone)]
pub struct Resolved {
    pub authority: Authority,
    pub kind: TokenKind,
    /// The client; `None` for the owner.
    pub client_id: Option<ClientId>,
    /// The live grants it reads under; empty for the owner.
    pub grant_ids: Vec<GrantId>,
    /// The token's public name, for the log and for `last used`.
    pub token_id: String,
    pub expires_at: Instant,
}

#[derive(Debug, Error)]
pub enum TokenError {
    /// No such token was issued, or it was revoked.
    #[error("the token is not valid")]
    Unknown,
    /// The token expired, its grant did not.
    #[error("the token has expired")]
    Expired,
    #[error("the grant was revoked")]
    GrantRevoked,
    #[error("the grant has expired")]
    GrantExpired,
    #[error("the grant is paused until its owner has looked")]
    GrantPaused,
    #[error("the grant no longer stands for anything")]
    GrantInvalid,
    #[error("the package of grants was revoked")]
    PackageRevoked,
    /// The token was issued for another address of this server.
    #[error("the token was not issued for this resource")]
    WrongAudience,
    /// The store failed, so nothing is known about the token.
    #[error("the token could not be looked up: {0}")]
    Store(#[from] StoreError),
}

impl TokenError {
    /// The row of the error table, as `/v1` sends it.
    pub fn code(&self) -> ErrorCode {
        match self {
            TokenError::Unknown | TokenError::Expired | TokenError::WrongAudience => {
                ErrorCode::AuthenticationError
            }
            TokenError::GrantRevoked => ErrorCode::GrantRevoked,
            TokenError::GrantExpired => ErrorCode::GrantExpired,
            TokenError::GrantPaused => ErrorCode::GrantPaused,
            TokenError::GrantInvalid => ErrorCode::GrantInvalid,
            TokenError::PackageRevoked => ErrorCode::PackageRevoked,
            TokenError::Store(error) if error.is_transient() => ErrorCode::StorageUnavailable,
            TokenError::Store(_) => ErrorCode::InternalError,
        }
    }

    /// The error to send, without the store's internal message.
    pub fn to_read_error(&self) -> ReadError {
        match self {
            TokenError::Store(error) if error.is_transient() => {
                ReadError::new(self.code(), error.in_public()).with_hint("ask again in a moment")
            }
            TokenError::Store(_) => ReadError::internal(),
            TokenError::Unknown | TokenError::Expired => {
                ReadError::new(self.code(), "Invalid or expired token")
                    .with_hint("ask the owner for a new token, or authorise again")
            }
            TokenError::WrongAudience => ReadError::new(self.code(), self.to_string())
                .with_hint("authorise again and name this server as the resource"),
            TokenError::GrantPaused => ReadError::new(self.code(), self.to_string())
                .with_hint("ask the owner to look at the page of this grant and let it go on"),
            _ => ReadError::new(self.code(), self.to_string())
                .with_hint("ask the owner for a new grant, or authorise again"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// `/v1`.
    Rest,
    /// `/mcp`.
    Mcp,
}

/// Turns a bearer text into its authority, whatever its audience.
pub fn resolve(store: &dyn Store, bearer: &str, now: Instant) -> Result<Resolved, TokenError> {
    resolve_token(store, presented(store, bearer)?, now)
}

/// Turns a bearer text presented at a surface of `origin` into its authority there. A token for the origin is valid at all
/// of it, a token for its `/mcp` only there, and one from the terminal everywhere.
pub fn resolve_for(
    store: &dyn Store,
    bearer: &str,
    surface: Surface,
    origin: &str,
    now: Instant,
) -> Result<Resolved, TokenError> {
    let token = presented(store, bearer)?;
    let holds = match &token.audience {
        None => true,
        Some(audience) => match audience.strip_prefix(origin) {
            Some("") => true,
            Some("/mcp") => surface == Surface::Mcp,
            _ => false,
        },
    };
    let resolved = resolve_token(store, token, now)?;
    if holds {
        Ok(resolved)
    } else {
        Err(TokenError::WrongAudience)
    }
}

/// The stored token of that text, unless it was revoked.
pub(crate) fn presented(store: &dyn Store, bearer: &str) -> Result<StoredToken, TokenError> {
    let hash = TokenHash::new(bearer);
    store
        .token_candidates(hash.selector())?
        .into_iter()
        .find(|token| hash.is(&token.hash))
        .filter(|token| token.revoked_at.is_none())
        .ok_or(TokenError::Unknown)
}

fn resolve_token(
    store: &dyn Store,
    token: StoredToken,
    now: Instant,
) -> Result<Resolved, TokenError> {
    // The grant is checked first: when both have expired, only a new grant helps.
    let (kind, mut granted) = match &token.subject {
        TokenSubject::Owner => (TokenKind::Owner, None),
        TokenSubject::Grant(grant) => (TokenKind::Client, Some(grant_authority(grant, now)?)),
        TokenSubject::Package(package) => {
            (TokenKind::Package, Some(package_authority(package, now)?))
        }
    };
    if token.expires_at <= now {
        return Err(TokenError::Expired);
    }
    if let Some(granted) = &mut granted {
        refuse_paused(store, granted, now)?;
        step_up::widen(store, granted, now)?;
    }
    Ok(resolved(token, kind, granted))
}

fn resolved(token: StoredToken, kind: TokenKind, granted: Option<GrantedAuthority>) -> Resolved {
    let mut grant_ids: Vec<GrantId> = Vec::new();
    for row in granted.iter().flat_map(GrantedAuthority::rows) {
        if !grant_ids.contains(&row.grant_id) {
            grant_ids.push(row.grant_id.clone());
        }
    }
    Resolved {
        kind,
        client_id: granted.as_ref().map(|granted| granted.client_id().clone()),
        grant_ids,
        token_id: token.id,
        expires_at: token.expires_at,
        authority: granted.map_or(Authority::Owner, Authority::Granted),
    }
}

/// The authority of a grant or package by its id, as the owner looks through it (`--grant ID`).
pub fn authority_of(store: &dyn Store, id: &str, now: Instant) -> Result<Authority, TokenError> {
    if let Ok(id) = GrantId::parse(id)
        && let Some(grant) = store.grant(&id)?
    {
        refuse_without_tokens(store, &grant, now)?;
        return widened(store, grant_authority(&grant, now)?, now);
    }
    if let Ok(id) = PackageId::parse(id)
        && let Some(package) = store.package(&id)?
    {
        if let Some(grant) = package.grants.first() {
            refuse_without_tokens(store, grant, now)?;
        }
        return widened(store, package_authority(&package, now)?, now);
    }
    Err(TokenError::Unknown)
}

/// What a grant gives together with the others of its package, paused ones included, without what was allowed beside them.
pub(crate) fn given(
    store: &dyn Store,
    grant: &GrantId,
    now: Instant,
) -> Result<Option<GrantedAuthority>, StoreError> {
    let Some(stored) = store.grant(grant)? else {
        return Ok(None);
    };
    let package = stored.package_id.as_ref().map(|id| store.package(id));
    let granted = match package.transpose()?.flatten() {
        Some(package) => package_authority(&package, now),
        None => grant_authority(&stored, now),
    };
    Ok(granted.ok())
}

/// Leaves out paused grants; when all are, nothing can be read.
fn refuse_paused(
    store: &dyn Store,
    granted: &mut GrantedAuthority,
    now: Instant,
) -> Result<(), TokenError> {
    let mut paused = Vec::new();
    for row in granted.rows() {
        if !paused.contains(&row.grant_id) && budget::paused(store, &row.grant_id, now)?.is_some() {
            paused.push(row.grant_id.clone());
        }
    }
    if paused.is_empty() {
        return Ok(());
    }
    granted.leave_out(&paused);
    if granted.rows().is_empty() {
        return Err(TokenError::GrantPaused);
    }
    Ok(())
}

fn widened(
    store: &dyn Store,
    mut granted: GrantedAuthority,
    now: Instant,
) -> Result<Authority, TokenError> {
    refuse_paused(store, &mut granted, now)?;
    step_up::widen(store, &mut granted, now)?;
    Ok(Authority::Granted(granted))
}

fn refuse_without_tokens(
    store: &dyn Store,
    stored: &StoredGrant,
    now: Instant,
) -> Result<(), TokenError> {
    match live_grant(stored, now) {
        Ok(_) if tokens_ended(store, stored, now)?.is_some() => Err(TokenError::GrantExpired),
        _ => Ok(()),
    }
}

/// When the last token of a grant ended, if none can be used or renewed any more: the client has rested for too long.
pub(crate) fn tokens_ended(
    store: &dyn Store,
    stored: &StoredGrant,
    now: Instant,
) -> Result<Option<Instant>, StoreError> {
    let end = store.tokens_end(&stored.id)?;
    Ok(end.filter(|end| *end <= now))
}

fn grant_authority(stored: &StoredGrant, now: Instant) -> Result<GrantedAuthority, TokenError> {
    let grant = live_grant(stored, now)?;
    GrantedAuthority::from_grant(&grant).map_err(|_| TokenError::GrantInvalid)
}

/// The rows of the package's live grants. Ended grants are left out; when all have ended, the error says how.
fn package_authority(
    package: &StoredPackage,
    now: Instant,
) -> Result<GrantedAuthority, TokenError> {
    if package.revoked.is_some() {
        return Err(TokenError::PackageRevoked);
    }
    let mut live = Vec::new();
    let mut ended = None;
    for stored in &package.grants {
        match live_grant(stored, now) {
            Ok(grant) if *grant.client_id() == package.client_id => live.push(grant),
            Ok(_) => ended = ended.or(Some(TokenError::GrantInvalid)),
            Err(TokenError::GrantRevoked) => ended = Some(TokenError::GrantRevoked),
            Err(error) => ended = ended.or(Some(error)),
        }
    }
    if live.is_empty() {
        return Err(ended.unwrap_or(TokenError::GrantInvalid));
    }
    GrantedAuthority::from_package(package.id.clone(), &live).map_err(|_| TokenError::GrantInvalid)
}

pub(crate) fn live_grant(stored: &StoredGrant, now: Instant) -> Result<Grant, TokenError> {
    if stored.revoked.is_some() {
        return Err(TokenError::GrantRevoked);
    }
    let grant: Grant =
        serde_json::from_str(&stored.document).map_err(|_| TokenError::GrantInvalid)?;
    let agrees = *grant.id() == stored.id
        && *grant.client_id() == stored.client_id
        && grant.expires_at() == stored.expires_at;
    if !agrees {
        return Err(TokenError::GrantInvalid);
    }
    let ends = [stored.expires_at, stored.redeem_by].into_iter().flatten();
    match ends.min() {
        Some(end) if end <= now => Err(TokenError::GrantExpired),
        _ => Ok(grant),
    }
}
