//! Authentication: a bearer token resolves to an authority, and an authority to a reader. Nothing is cached between
//! requests, so a revocation holds from the next one on.

use axum::http::{HeaderMap, HeaderName, header};
use contract::error::{ErrorCode, ReadError};
use contract::grant::Authority;
use contract::upstream::PageBytes;
use grants::step_up::OnceAllowed;
use grants::{Surface, TokenKind};
use read::GrantReader;

use crate::problem::Problem;
use crate::service::Service;

/// On the owner's socket: the id of a grant or package to read under, as its client would.
pub const AS_GRANT: HeaderName = HeaderName::from_static("pdpp-as-grant");

/// Like [`AS_GRANT`], but as a preview for the owner: nothing reaches a client, so nothing is logged as disclosed.
pub const PREVIEW_AS_GRANT: HeaderName = HeaderName::from_static("pdpp-look-as-grant");

/// In process and on the owner's socket: the most bytes the entries of a page may have as JSON. Elsewhere it is ignored.
pub const MAX_BYTES: HeaderName = HeaderName::from_static("pdpp-max-bytes");

/// In process and on the owner's socket: which call of a tool a read is for. Elsewhere it is ignored: a client could say of
/// all its calls that they are one.
pub const CALL: HeaderName = HeaderName::from_static("pdpp-call");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuthMode {
    Bearer,
    OwnerSocket,
}

/// An authenticated caller. As a request extension, which only this process can set, it stands for a token that was
/// resolved already.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) kind: TokenKind,
    authority: Authority,
    /// Whether the owner previews what a client would see.
    is_preview: bool,
    /// The most bytes the entries of a page may have, if the caller says so.
    max_bytes: Option<PageBytes>,
    /// The call of a tool that it reads for.
    call: Option<String>,
}

impl Caller {
    pub(crate) fn new(kind: TokenKind, authority: Authority) -> Self {
        Self {
            kind,
            authority,
            is_preview: false,
            max_bytes: None,
            call: None,
        }
    }

    /// Takes [`MAX_BYTES`] and [`CALL`] from a request that this process or the owner's socket sent.
    pub(crate) fn with_trusted_headers(mut self, headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        self.max_bytes = text(MAX_BYTES).and_then(|text| text.parse().ok());
        self.call = text(CALL).map(str::to_owned);
        self
    }

    pub(crate) fn call(&self) -> Option<&str> {
        self.call.as_deref()
    }

    pub(crate) fn is_owner(&self) -> bool {
        self.kind == TokenKind::Owner
    }

    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Whether a client asks, which may ask for more. What the owner previews leads to no asking.
    pub(crate) fn is_client(&self) -> bool {
        !self.is_owner() && !self.is_preview
    }

    /// Reads under more, for this call.
    pub(crate) fn widened(mut self, by: &OnceAllowed) -> Self {
        if let Authority::Granted(granted) = &mut self.authority {
            by.widen(granted);
        }
        self
    }

    /// The key of the admission queue: the client, or the owner.
    pub(crate) fn client(&self) -> &str {
        match &self.authority {
            Authority::Owner => "",
            Authority::Granted(granted) => granted.client_id().as_str(),
        }
    }

    /// A reader for this caller. What a client is shown is logged.
    pub(crate) fn reader(self, service: &Service) -> GrantReader {
        if self.is_preview {
            return self.unlogged_reader(service);
        }
        let settings = service.reader_settings.clone();
        GrantReader::new(service.store.clone(), self.authority, settings)
            .with_max_bytes(self.max_bytes)
    }

    /// A reader that logs nothing: for the second of two reads that make one answer, so that one call is one log
    /// entry.
    pub(crate) fn unlogged_reader(&self, service: &Service) -> GrantReader {
        let (store, mut settings) = (service.store.clone(), service.reader_settings.clone());
        settings.disclosures = None;
        GrantReader::new(store, self.authority.clone(), settings).with_max_bytes(self.max_bytes)
    }
}

pub(crate) async fn authenticate(
    service: &Service,
    auth_mode: AuthMode,
    headers: &HeaderMap,
) -> Result<Caller, Problem> {
    let preview = headers.get(PREVIEW_AS_GRANT);
    let (authority, kind) = match auth_mode {
        AuthMode::OwnerSocket => match headers.get(AS_GRANT).or(preview) {
            None => (Authority::Owner, TokenKind::Owner),
            Some(id) => (grant_authority(service, id.as_bytes())?, TokenKind::Client),
        },
        AuthMode::Bearer => bearer(service, headers).await?,
    };
    // Reading as a client is always logged, whatever other headers say.
    let is_preview =
        auth_mode == AuthMode::OwnerSocket && preview.is_some() && !headers.contains_key(AS_GRANT);
    Ok(Caller {
        kind,
        authority,
        is_preview,
        max_bytes: None,
        call: None,
    })
}

async fn bearer(service: &Service, headers: &HeaderMap) -> Result<(Authority, TokenKind), Problem> {
    let Some(token) = bearer_token(headers) else {
        let error = ReadError::new(ErrorCode::AuthenticationError, "Missing Bearer token")
            .with_hint("send `Authorization: Bearer <token>`");
        return Err(challenge(error, "", service.resource_metadata()));
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
                401 => challenge(
                    refusal,
                    "error=\"invalid_token\", ",
                    service.resource_metadata(),
                ),
                _ => refusal.into(),
            })
        }
        Err(error) => Err(Problem::internal("a token was not looked up", &error)),
    }
}

/// Looked up on this thread: handing over one small read takes longer than the read.
fn grant_authority(service: &Service, id: &[u8]) -> Result<Authority, Problem> {
    let id = String::from_utf8_lossy(id);
    let found = grants::authority_of(&*service.store, &id, service.now());
    found.map_err(|error| error.to_read_error().into())
}

/// The bearer token of a request. Bytes that are not UTF-8 are no token of ours, but count as a token that was sent.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let text = String::from_utf8_lossy(value);
    let (scheme, token) = text.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then(|| token.to_owned())
}

/// The challenge of RFC 9728; `parameters` are those before the address of the metadata.
pub(crate) fn challenge(error: ReadError, parameters: &str, metadata: String) -> Problem {
    let value = format!("Bearer {parameters}resource_metadata=\"{metadata}\"");
    let step = error.hint.clone().unwrap_or_default();
    Problem::from(error)
        .with_member("resource_metadata", metadata)
        .with_member("next_step", step)
        .with_header(header::WWW_AUTHENTICATE, &value)
}
