//! Authorization codes: redeemed once, by the client that asked and holds the verifier.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use contract::id::ClientId;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use store::registry::{EntryKind, Expect};
use subtle::ConstantTimeEq as _;

use super::clients::Client;
use super::decision::Approval;
use super::error::OAuthError;
use super::parameters::Parameters;
use super::refresh::new_head;
use super::request::is_pkce_text;
use super::token_endpoint::{Minting, TokenResponse};
use super::{Issuer, later};
use crate::documents::{find, key_of, put};

pub(super) const LIFE: Duration = Duration::from_mins(2);
/// How long a redeemed code is remembered, to notice a second use.
pub(super) const REMEMBERED: Duration = Duration::from_hours(24);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CodeEntry {
    pub(super) client_id: ClientId,
    pub(super) redirect_uri: String,
    pub(super) code_challenge: String,
    pub(super) resource: String,
    pub(super) approval: Approval,
    /// The family of the tokens it became.
    pub(super) redeemed: Option<String>,
}

impl Issuer<'_> {
    pub(super) fn redeem_code(
        &self,
        client: &Client,
        parameters: &Parameters,
    ) -> Result<TokenResponse, OAuthError> {
        let code = parameters.required("code")?;
        let key = key_of(code);
        let found =
            find::<CodeEntry>(self.store, EntryKind::Code, &key, self.now)?.ok_or_else(refused)?;
        let entry = found.value;
        if let Some(family) = &entry.redeemed {
            self.end_family(family)?;
            return Err(refused());
        }
        let verifier = parameters.required("code_verifier")?;
        let redirected = parameters.optional("redirect_uri")?;
        let fits = entry.client_id == client.client_id
            && redirected.is_none_or(|uri| uri == entry.redirect_uri)
            && verifies(verifier, &entry.code_challenge);
        if !fits {
            return Err(refused());
        }
        let audience = self.asked_audience(parameters, &entry.resource)?;
        self.check_standing(&entry.approval)?;
        let minted = self.mint(Minting {
            client,
            approval: &entry.approval,
            resource: &entry.resource,
            audience,
            head: new_head()?,
            expect: Expect::Absent,
            generation: 1,
        })?;
        let redeemed = CodeEntry {
            redeemed: Some(minted.family.clone()),
            ..entry.clone()
        };
        let once = put(EntryKind::Code, &key, &redeemed)
            .until(later(self.now, REMEMBERED))
            .expecting(Expect::Revision(found.revision));
        if self
            .store
            .apply(&minted.changes(&entry.approval, Some(once))?, self.now)?
        {
            return Ok(minted.response);
        }
        // It was redeemed at the same moment. Two holders of one code: the code has leaked.
        let winner = find::<CodeEntry>(self.store, EntryKind::Code, &key, self.now)?;
        if let Some(family) = winner.and_then(|winner| winner.value.redeemed) {
            self.end_family(&family)?;
        }
        Err(refused())
    }
}

/// Whether the challenge is the hash of the verifier, compared in constant time.
fn verifies(verifier: &str, challenge: &str) -> bool {
    let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    is_pkce_text(verifier) && bool::from(hash.as_bytes().ct_eq(challenge.as_bytes()))
}

fn refused() -> OAuthError {
    OAuthError::invalid_grant(
        "the code is unknown, used or over, or does not belong to this client, redirect_uri and code_verifier; authorise again",
    )
}
