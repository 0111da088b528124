//! Revocation by the client (RFC 7009): a client ends what is its own.

use store::grants::{Revocable, TokenSubject};

use super::Issuer;
use super::error::OAuthError;
use super::parameters::Parameters;
use crate::token::{TokenError, presented};

impl Issuer<'_> {
    /// Ends a token. A refresh token ends with its whole family; an unknown token counts as ended.
    pub fn revoke(&self, parameters: &Parameters) -> Result<(), OAuthError> {
        let client = self.known_client(parameters.required("client_id")?)?;
        let token = parameters.required("token")?;
        if let Some((_, found)) = self.family_entry(token)? {
            if found.value.client_id != client.client_id {
                return Err(not_its_own());
            }
            self.end_family(&found.key)?;
            return Ok(());
        }
        let stored = match presented(self.store, token) {
            Ok(stored) => stored,
            Err(TokenError::Store(error)) => return Err(error.into()),
            Err(_) => return Ok(()),
        };
        let owner = match &stored.subject {
            TokenSubject::Owner => None,
            TokenSubject::Grant(grant) => Some(&grant.client_id),
            TokenSubject::Package(package) => Some(&package.client_id),
        };
        if owner != Some(&client.client_id) {
            return Err(not_its_own());
        }
        // Without a refresh token it was the only one.
        match &stored.family {
            Some(family) if self.refresh_entry(family)?.is_none() => self.end_family(family)?,
            _ => drop(self.store.revoke(Revocable::Token(&stored.id), self.now)?),
        }
        Ok(())
    }
}

fn not_its_own() -> OAuthError {
    OAuthError::unauthorized_client("the token was not issued to this client")
}
