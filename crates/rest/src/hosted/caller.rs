//! Authentication at `/mcp`: tokens of grants and packages.

use std::sync::Arc;

use axum::http::HeaderMap;
use contract::error::{ErrorCode, ReadError};
use contract::grant::Authority;
use grants::{Surface, TokenError, TokenKind};

use crate::auth::{self, Caller};
use crate::problem::Problem;
use crate::service::Service;

pub(super) struct McpCaller {
    caller: Caller,
    /// The key of the rate limit: the package, or the grant.
    pub(super) id: String,
    /// The package, and how many of its grants are active.
    package: Option<(String, usize)>,
}

impl McpCaller {
    pub(super) fn caller(&self) -> Caller {
        self.caller.clone()
    }

    pub(super) fn kind(&self) -> &'static str {
        self.caller.kind.as_str()
    }

    pub(super) fn package(&self) -> Option<(&str, usize)> {
        let package = self.package.as_ref();
        package.map(|(id, members)| (id.as_str(), *members))
    }
}

/// Authenticates a request. Every problem with a token is answered so that the host asks for a new one; an owner's
/// token is refused, because no agent may have one (AU-01, AU-02).
pub(super) async fn authenticate(
    service: &Arc<Service>,
    headers: &HeaderMap,
) -> Result<McpCaller, Problem> {
    let Some(token) = auth::bearer_token(headers) else {
        let error = ReadError::new(ErrorCode::AuthenticationError, "Missing Bearer token")
            .with_hint("authorize with the server that resource_metadata names");
        return Err(auth::challenge(error, "", metadata(service)));
    };
    let (asked, now) = (Arc::clone(service), service.now());
    let resolved = read::run_blocking(move || {
        let store = &*asked.store;
        grants::resolve_for(store, &token, Surface::Mcp, &asked.public_url, now)
    });
    let resolved = match resolved.await {
        Ok(resolved) => resolved,
        Err(error) => return Err(Problem::internal("a token was not looked up", &error)),
    };
    let resolved = match resolved {
        Ok(resolved) => resolved,
        Err(TokenError::Store(cause)) if !cause.is_transient() => {
            return Err(Problem::internal("a token could not be looked up", &cause));
        }
        // A new authorization would not help.
        Err(error @ (TokenError::GrantPaused | TokenError::Store(_))) => {
            return Err(error.to_read_error().into());
        }
        Err(error) => {
            // A token of an ended grant is answered as invalid, so that the host authorizes again.
            let code = match error.code() {
                ErrorCode::AuthenticationError => ErrorCode::AuthenticationError,
                _ => ErrorCode::InvalidToken,
            };
            let refusal = ReadError::new(code, error.to_string())
                .with_hint("authorize again with the server that resource_metadata names");
            return Err(auth::challenge(
                refusal,
                "error=\"invalid_token\", ",
                metadata(service),
            ));
        }
    };
    if resolved.kind == TokenKind::Owner {
        let message =
            "MCP takes the token of a grant or a package; an owner's token never works here";
        return Err(Problem::from(
            ReadError::new(ErrorCode::PermissionError, message)
                .with_hint("connect an agent by authorization, or with `pdpp grant create`"),
        ));
    }
    service.disclosures.note_use(&resolved.token_id, now);
    let package = match &resolved.authority {
        Authority::Granted(granted) => granted.package_id().map(|id| id.as_str().to_owned()),
        Authority::Owner => None,
    };
    let first = resolved.grant_ids.first().map(|id| id.as_str().to_owned());
    let Some(id) = package.clone().or(first) else {
        return Err(Problem::internal("a client token", &"it has no grant"));
    };
    Ok(McpCaller {
        id,
        package: package.map(|id| (id, resolved.grant_ids.len())),
        caller: Caller::new(resolved.kind, resolved.authority),
    })
}

/// The metadata of this path (RFC 9728).
fn metadata(service: &Service) -> String {
    format!("{}{}", service.resource_metadata(), super::PATH)
}
