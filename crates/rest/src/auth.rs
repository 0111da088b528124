//! Who is asking. A bearer token becomes an authority, and an authority a reader; nothing is remembered between requests,
//! so a revocation holds from the next one on.

use axum::http::{HeaderMap, HeaderName, header};
use contract::error::{ErrorCode, ReadError};
use contract::grant::Authority;
use grants::{Surface, TokenKind};
use read::GrantReader;

use crate::problem::Problem;
use crate::service::Service;

/// Where only the owner can reach: the id of a grant or package to read under, as its client would.
pub const AS_GRANT: HeaderName = HeaderName::from_static("pdpp-as-grant");

/// Likewise, but it is the owner who looks: what is shown reaches no client, so nothing is noted as disclosed.
pub const LOOK_AS_GRANT: HeaderName = HeaderName::from_static("pdpp-look-as-grant");

/// How a request proves who sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// By a bearer token.
    Bearer,
    /// By having reached a place only the owner can reach.
    Owner,
}

/// Who is asking, and what they may read. As an extension of a request, which no request from outside has: somebody whose
/// token was looked at already.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) kind: TokenKind,
    authority: Authority,
    /// Whether the owner looks at what a client would see.
    looks: bool,
}

impl Caller {
    pub(crate) fn new(kind: TokenKind, authority: Authority) -> Self {
        Self {
            kind,
            authority,
            looks: false,
        }
    }

    pub(crate) fn is_owner(&self) -> bool {
        self.kind == TokenKind::Owner
    }

    /// Whose requests share their places in line: a client's, or the owner's.
    pub(crate) fn client(&self) -> &str {
        match &self.authority {
            Authority::Owner => "",
            Authority::Granted(granted) => granted.client_id().as_str(),
        }
    }

    /// Reads on behalf of the caller. What a client is shown is noted.
    pub(crate) fn reader(self, service: &Service) -> GrantReader {
        if self.looks {
            return self.unnoted_reader(service);
        }
        let store = service.store.clone();
        GrantReader::new(store, self.authority, service.reading.clone())
    }

    /// Reads without a note: for the second of two reads that make one answer, so that one call is one entry.
    pub(crate) fn unnoted_reader(&self, service: &Service) -> GrantReader {
        let (store, mut settings) = (service.store.clone(), service.reading.clone());
        settings.disclosures = None;
        GrantReader::new(store, self.authority.clone(), settings)
    }
}

/// The caller of a request.
pub(crate) async fn caller(
    service: &Service,
    gate: Gate,
    headers: &HeaderMap,
) -> Result<Caller, Problem> {
    let looking = headers.get(LOOK_AS_GRANT);
    let (authority, kind) = match gate {
        Gate::Owner => match headers.get(AS_GRANT).or(looking) {
            None => (Authority::Owner, TokenKind::Owner),
            Some(id) => (under_grant(service, id.as_bytes())?, TokenKind::Client),
        },
        Gate::Bearer => bearer(service, headers).await?,
    };
    // Whoever reads as a client is noted, whatever else the request says.
    let looks = gate == Gate::Owner && looking.is_some() && !headers.contains_key(AS_GRANT);
    Ok(Caller {
        kind,
        authority,
        looks,
    })
}

async fn bearer(service: &Service, headers: &HeaderMap) -> Result<(Authority, TokenKind), Problem> {
    let Some(token) = presented(headers) else {
        let error = ReadError::new(ErrorCode::AuthenticationError, "Missing Bearer token")
            .with_hint("send `Authorization: Bearer <token>`");
        return Err(challenge(service, error, ""));
    };
    let (store, now) = (service.store.clone(), service.now());
    let origin = service.public_url.clone();
    let resolved = read::run_blocking(move || {
        grants::resolve_for(&*store, &token, Surface::Rest, &origin, now)
    })
    .await;
    match resolved {
        Ok(Ok(resolved)) => {
            service.disclosures.note_use(&resolved.token_id, now);
            Ok((resolved.authority, resolved.kind))
        }
        Ok(Err(error)) => {
            if let grants::TokenError::Store(cause) = &error {
                tracing::error!(cause = %cause, "a token could not be looked up");
            }
            let refusal = error.to_read_error();
            Err(match refusal.code.http_status() {
                401 => challenge(service, refusal, "error=\"invalid_token\", "),
                _ => refusal.into(),
            })
        }
        Err(error) => Err(Problem::internal("a token was not looked up", &error)),
    }
}

/// Looked up at once: this is how one agent or the owner reads on this machine, and handing over one small read takes
/// longer than the read.
fn under_grant(service: &Service, id: &[u8]) -> Result<Authority, Problem> {
    let id = String::from_utf8_lossy(id);
    let found = grants::authority_of(&*service.store, &id, service.now());
    found.map_err(|error| error.to_read_error().into())
}

/// The token of the request. One that is not text is none of ours, but it was presented.
pub(crate) fn presented(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let text = String::from_utf8_lossy(value);
    let (scheme, token) = text.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then(|| token.to_owned())
}

fn challenge(service: &Service, error: ReadError, what: &str) -> Problem {
    let metadata = service.resource_metadata();
    let value = format!("Bearer {what}resource_metadata=\"{metadata}\"");
    let step = error.hint.clone().unwrap_or_default();
    Problem::from(error)
        .with("resource_metadata", metadata)
        .with("next_step", step)
        .with_header(header::WWW_AUTHENTICATE, &value)
}
