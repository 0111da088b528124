//! Renewing a credential exactly once, without losing the new token.
//!
//! A refresh token works once, and using it twice revokes the grant. So one task at a time renews, under a lock
//! against other processes, and first checks whether one of them has renewed it.

use std::sync::{Arc, PoisonError, RwLock};

use contract::error::{ErrorCode, ReadError};
use contract::time::Clock;
use reqwest::Url;
use tokio::sync::Mutex;

use crate::credentials::{Credential, lock};
use crate::metadata::{self, authorization_server, default_token_endpoint};
use crate::provider_url::ProviderUrl;
use crate::secret::Secret;
use crate::token::{self, TokenResponse};
use crate::transport::Transport;

/// Error codes for which a retry is useless.
const FINAL: [&str; 3] = ["invalid_grant", "invalid_client", "unauthorized_client"];

pub(crate) struct Session {
    current: RwLock<Arc<Credential>>,
    /// Held while renewing; the refresh token that was refused, so that it is not sent again.
    renewing: Mutex<Option<Secret>>,
    clock: Arc<dyn Clock>,
}

impl Session {
    pub(crate) fn new(credential: Credential, clock: Arc<dyn Clock>) -> Self {
        Self {
            current: RwLock::new(Arc::new(credential)),
            renewing: Mutex::new(None),
            clock,
        }
    }

    pub(crate) fn current(&self) -> Arc<Credential> {
        let current = self.current.read();
        Arc::clone(&current.unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a credential has to be renewed before use.
    pub(crate) fn is_due(&self, credential: &Credential) -> bool {
        credential.is_due(self.clock.now())
    }

    fn adopt(&self, credential: Credential) -> Arc<Credential> {
        let credential = Arc::new(credential);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::clone(&credential);
        credential
    }

    /// A replacement for a credential whose token has ended or is about to; `None` if there is none for the same
    /// grant.
    pub(crate) async fn renew(
        &self,
        transport: &Transport,
        provider: &ProviderUrl,
        ended: &Secret,
    ) -> Result<Option<Arc<Credential>>, ReadError> {
        let mut refused = self.renewing.lock().await;
        let known = self.current();
        if known.access_token() != ended {
            return Ok(Some(known));
        }
        let _held = lock(known.file(), transport.limits().total).await?;
        let stored = known.reread(provider, self.clock.now())?;
        if let (Some(before), Some(after)) = (known.grant_id(), stored.grant_id())
            && before != after
        {
            // Somebody connected again: that is another grant, and not for this session.
            return Ok(None);
        }
        // The token another process wrote may have ended since.
        if stored.access_token() != ended && !self.is_due(&stored) {
            return Ok(Some(self.adopt(stored)));
        }
        let Some(refresh_token) = stored.refresh_token().cloned() else {
            return Ok(None);
        };
        if refused.as_ref() == Some(&refresh_token) {
            return Ok(None);
        }
        let exchanged = self
            .exchange(transport, provider, &stored, &refresh_token)
            .await?;
        let renewed = match exchanged {
            Ok(renewed) => renewed,
            Err(code) => {
                if FINAL.contains(&code.as_str()) {
                    *refused = Some(refresh_token);
                }
                return Ok(None);
            }
        };
        // In use before it is stored: a full disk must not cost this session its only token.
        let adopted = self.adopt(renewed);
        adopted.write()?;
        Ok(Some(adopted))
    }

    /// Exchanges the refresh token, or returns the server's error code.
    async fn exchange(
        &self,
        transport: &Transport,
        provider: &ProviderUrl,
        stored: &Credential,
        refresh_token: &Secret,
    ) -> Result<Result<Credential, String>, ReadError> {
        let endpoint = token_endpoint(transport, provider, stored).await?;
        let mut fields = vec![
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh_token.expose()),
        ];
        fields.extend(stored.client_id().map(|id| ("client_id", id)));
        fields.extend(stored.text("resource").map(|text| ("resource", text)));
        match token::request_token(transport, &endpoint, &fields).await? {
            TokenResponse::Granted(granted) => {
                let (before, after) = (stored.grant_id(), granted.grant());
                if before
                    .zip(after)
                    .is_some_and(|(before, after)| before != after)
                {
                    let message = format!("{provider} renewed the credential for another grant");
                    return Err(ReadError::new(ErrorCode::CredentialInvalid, message)
                        .with_hint(stored.connect_hint(provider)));
                }
                Ok(Ok(stored.renewed(&granted, self.clock.now())))
            }
            TokenResponse::Refused(code) => Ok(Err(code)),
        }
    }
}

/// The token endpoint, from the file or from the server's metadata.
async fn token_endpoint(
    transport: &Transport,
    provider: &ProviderUrl,
    stored: &Credential,
) -> Result<Url, ReadError> {
    let issuer = match stored.text("authorization_server") {
        Some(text) => ProviderUrl::parse(text)?,
        None => ProviderUrl::parse(&provider.origin())?,
    };
    if let Some(text) = stored.text("token_endpoint") {
        return metadata::endpoint(&issuer, text);
    }
    match authorization_server(transport, &issuer).await? {
        Some(server) => Ok(server.token),
        None => default_token_endpoint(&issuer),
    }
}
