//! Admission to `/mcp`: allowed origins, and tokens of grants and packages.

use std::sync::Arc;

use axum::http::{HeaderMap, header};
use contract::error::{ErrorCode, ReadError};
use contract::grant::Authority;
use grants::{Surface, TokenError, TokenKind};

use crate::auth::{self, Caller};
use crate::hosts::names_this_machine;
use crate::problem::Problem;
use crate::service::Service;

/// Allowed origins: this server's own, and those of this machine.
pub(super) struct OriginCheck {
    /// Scheme and authority of the public URL.
    origin: String,
}

impl OriginCheck {
    pub(super) fn new(public_url: &str) -> Self {
        let (scheme, rest) = public_url.split_once("://").unwrap_or(("http", public_url));
        let authority = rest.split('/').next().unwrap_or_default();
        Self {
            origin: format!("{scheme}://{authority}"),
        }
    }

    /// Refuses requests from pages of other origins. The `Host` header was checked before, for every route.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let Some(origin) = headers.get(header::ORIGIN) else {
            return Ok(());
        };
        let origin = origin.to_str().unwrap_or_default();
        let local = origin
            .strip_prefix("http://")
            .is_some_and(names_this_machine);
        if local || origin == self.origin {
            return Ok(());
        }
        let message = "pages of another origin may not call this server";
        Err(Problem::new(ErrorCode::PermissionError, message))
    }
}

/// An authenticated caller of `/mcp`.
pub(super) struct McpCaller {
    caller: Caller,
    /// The key of the rate limit: the package, or the grant.
    id: String,
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

    pub(super) fn id(&self) -> &str {
        &self.id
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
        return Err(challenge(service, error, ""));
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
        Err(TokenError::Store(cause)) => {
            return Err(Problem::internal("a token could not be looked up", &cause));
        }
        Err(error) => {
            // A token of an ended grant is answered as invalid, so that the host authorizes again.
            let code = match error.code() {
                ErrorCode::AuthenticationError => ErrorCode::AuthenticationError,
                _ => ErrorCode::InvalidToken,
            };
            let refusal = ReadError::new(code, error.to_string())
                .with_hint("authorize again with the server that resource_metadata names");
            return Err(challenge(service, refusal, "error=\"invalid_token\", "));
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
    Ok(McpCaller {
        id: package.clone().or(first).unwrap_or_default(),
        package: package.map(|id| (id, resolved.grant_ids.len())),
        caller: Caller::new(resolved.kind, resolved.authority),
    })
}

/// The challenge of RFC 9728, with the metadata of this path.
fn challenge(service: &Service, error: ReadError, what: &str) -> Problem {
    let metadata = format!("{}{}", service.resource_metadata(), super::PATH);
    let value = format!("Bearer {what}resource_metadata=\"{metadata}\"");
    let step = error.hint.clone().unwrap_or_default();
    Problem::from(error)
        .with_member("resource_metadata", metadata)
        .with_member("next_step", step)
        .with_header(header::WWW_AUTHENTICATE, &value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn only_our_own_pages_are_answered() {
        let check = OriginCheck::new("https://pdpp.example.org");
        for (origin, passes) in [
            (None, true),
            (Some("http://localhost:3000"), true),
            (Some("http://pdpp.localhost:7420"), true),
            (Some("https://pdpp.example.org"), true),
            (Some("https://evil.example"), false),
            (Some("null"), false),
            (Some("http://127.0.0.1.evil.example"), false),
        ] {
            let pairs: Vec<_> = origin
                .map(|origin| ("origin", origin))
                .into_iter()
                .collect();
            let checked = check.check(&headers(&pairs));
            assert_eq!(checked.is_ok(), passes, "{origin:?}");
        }
    }
}
