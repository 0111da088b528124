//! Refresh tokens: each renews once and is replaced; presenting a replaced one ends its whole family.
//!
//! All refresh tokens of a family begin with the same secret head and end in a tail of their own. The registry holds one
//! entry per family, found by the hash of the head, with the hash of the current token. A token with the same head and
//! another tail has been replaced.

use std::time::Duration;

use contract::id::ClientId;
use serde::{Deserialize, Serialize};
use store::StoreError;
use store::grants::Revocable;
use store::registry::{EntryKind, Expect};
use subtle::ConstantTimeEq as _;

use super::Issuer;
use super::clients::Client;
use super::decision::Approval;
use super::error::OAuthError;
use super::parameters::Parameters;
use super::token_endpoint::{Minting, TokenResponse};
use crate::documents::{Found, find, key_of};
use crate::secret::{NoRandomness, Secret};

/// How long a refresh token may rest.
pub(super) const IDLE: Duration = Duration::from_hours(24 * 30);
/// The separator between head and tail; it occurs in neither.
const BETWEEN: char = '.';

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RefreshEntry {
    pub(super) client_id: ClientId,
    pub(super) approval: Approval,
    pub(super) resource: String,
    pub(super) generation: u64,
    pub(super) current: String,
}

pub(super) fn new_head() -> Result<Secret, NoRandomness> {
    Secret::random("pdpp_rt_")
}

pub(super) fn next_token(head: &Secret) -> Result<Secret, NoRandomness> {
    Secret::random(&format!("{}{BETWEEN}", head.expose()))
}

/// The family's public name.
pub(super) fn family_of(head: &Secret) -> String {
    key_of(head.expose())
}

pub(super) fn fingerprint(token: &str) -> String {
    key_of(token)
}

impl Issuer<'_> {
    pub(super) fn refresh(
        &self,
        client: &Client,
        parameters: &Parameters,
    ) -> Result<TokenResponse, OAuthError> {
        let token = parameters.required("refresh_token")?;
        let (head, found) = self.family_entry(token)?.ok_or_else(refused)?;
        let family = found.key;
        let entry = found.value;
        if entry.client_id != client.client_id {
            return Err(refused());
        }
        if !is_current(&entry, token) {
            self.end_family(&family)?;
            return Err(superseded());
        }
        if let Err(error) = self.check_standing(&entry.approval) {
            if error.cause.is_none() {
                self.end_family(&family)?;
            }
            return Err(error);
        }
        let minted = self.mint(Minting {
            client,
            approval: &entry.approval,
            resource: &entry.resource,
            audience: self.asked_audience(parameters, &entry.resource)?,
            head,
            expect: Expect::Revision(found.revision),
            generation: entry.generation.saturating_add(1),
        })?;
        if minted.response.refresh_token.is_none() {
            return Err(refused());
        }
        if self
            .store
            .apply(&minted.changes(&entry.approval, None)?, self.now)?
        {
            return Ok(minted.response);
        }
        // The same token was used at the same moment, so this one has just been replaced.
        self.end_family(&family)?;
        Err(superseded())
    }

    /// The family a refresh token belongs to, whichever of its tokens this is.
    pub(super) fn family_entry(
        &self,
        token: &str,
    ) -> Result<Option<(Secret, Found<RefreshEntry>)>, StoreError> {
        let Some((head, _)) = token.split_once(BETWEEN) else {
            return Ok(None);
        };
        let found = self.refresh_entry(&key_of(head))?;
        Ok(found.map(|found| (Secret::holding(head.to_owned()), found)))
    }

    pub(super) fn refresh_entry(
        &self,
        family: &str,
    ) -> Result<Option<Found<RefreshEntry>>, StoreError> {
        find(self.store, EntryKind::Refresh, family, self.now)
    }

    /// Ends every token of a family, access and refresh, for good, and with them the grant: nobody else can use it.
    pub(super) fn end_family(&self, family: &str) -> Result<(), StoreError> {
        let family = Revocable::Family(family);
        self.store.revoke(family, self.now).map(drop)
    }
}

pub(super) fn is_current(entry: &RefreshEntry, token: &str) -> bool {
    entry
        .current
        .as_bytes()
        .ct_eq(fingerprint(token).as_bytes())
        .into()
}

fn refused() -> OAuthError {
    OAuthError::invalid_grant("the refresh token is not valid for this client; authorise again")
}

fn superseded() -> OAuthError {
    OAuthError::invalid_grant(
        "the refresh token was used before, so all its tokens have ended; authorise again",
    )
}
