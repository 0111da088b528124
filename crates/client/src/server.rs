//! A resource server over HTTP.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use contract::error::{ErrorCode, ReadError};
use contract::time::Clock;
use contract::upstream::{Answer, AnswerFuture, Get, TOKEN_KIND_HEADER, Upstream};
use reqwest::Url;
use reqwest::header::WWW_AUTHENTICATE;

use crate::answer;
use crate::credentials::Credential;
use crate::provider_url::ProviderUrl;
use crate::renewal::Session;
use crate::secret::Secret;
use crate::token_kind::{self, TokenKinds};
use crate::transport::{Limits, Transport};

/// A resource server, read with one credential. Creating it is free; the first request sets up what it needs.
pub struct HttpServer(Arc<Inner>);

struct Inner {
    provider: ProviderUrl,
    transport: Transport,
    token: TokenSource,
    /// Set if only tokens of grants may be used.
    kinds: OnceLock<TokenKinds>,
}

#[derive(Clone)]
pub(crate) struct Reply {
    answer: Answer,
    /// Whether it says that the token has ended.
    has_ended: bool,
    kind: Option<contract::upstream::Bearer>,
}

enum TokenSource {
    /// A fixed token, and whether it is known not to be an owner's.
    Fixed(Secret, AtomicBool),
    /// A credential file that can be renewed.
    Stored(Session),
}

impl HttpServer {
    /// Reads with a token that is never renewed.
    pub fn with_token(provider: ProviderUrl, token: Secret, limits: Limits) -> Self {
        Self::new(
            provider,
            TokenSource::Fixed(token, AtomicBool::new(false)),
            limits,
        )
    }

    /// Reads with a stored credential. It is renewed shortly before its end, or once when the server says that it has
    /// ended; then the request is repeated once. The renewed credential is written to its file and stays with the same
    /// grant.
    pub fn with_credential(
        provider: ProviderUrl,
        credential: Credential,
        clock: Arc<dyn Clock>,
        limits: Limits,
    ) -> Self {
        let session = Session::new(credential, clock);
        Self::new(provider, TokenSource::Stored(session), limits)
    }

    /// Refuses owner tokens. A credential labelled as a client's is used at once; for others the server is asked once,
    /// unless the first request shows the kind. Any answer that shows an owner's token stops all further reads. A
    /// server that states no kind stays usable.
    #[must_use]
    pub fn for_agents(self) -> Self {
        self.0.kinds.get_or_init(TokenKinds::default);
        self
    }

    /// Whether the token was refused as an owner's.
    pub fn refused_an_owner(&self) -> bool {
        self.0.kinds.get().is_some_and(TokenKinds::is_owner)
    }

    fn new(provider: ProviderUrl, token: TokenSource, limits: Limits) -> Self {
        Self(Arc::new(Inner {
            provider,
            transport: Transport::new(limits),
            token,
            kinds: OnceLock::new(),
        }))
    }
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpServer({})", self.0.provider)
    }
}

impl Upstream for HttpServer {
    fn provider_url(&self) -> Option<String> {
        Some(self.0.provider.as_str().to_owned())
    }

    fn get(&self, request: Get) -> AnswerFuture<'_> {
        Box::pin(async move { self.0.send(request).await })
    }
}

impl Inner {
    async fn send(self: &Arc<Self>, request: Get) -> Result<Answer, ReadError> {
        let session = match &self.token {
            TokenSource::Fixed(token, verified) => {
                let reply = self.send_checked(&request, token, verified).await?;
                return Ok(reply.answer);
            }
            TokenSource::Stored(session) => session,
        };
        let mut credential = session.current();
        // Each request renews at most once.
        let mut renewed = None;
        if session.is_due(&credential) {
            let ahead = self.renew(&credential).await;
            if let Ok(Some(fresh)) = &ahead {
                credential = Arc::clone(fresh);
            }
            renewed = Some(ahead);
        }
        let reply = self.send_with(&request, &credential).await?;
        if !reply.has_ended || credential.refresh_token().is_none() {
            return Ok(reply.answer);
        }
        let renewed = match renewed {
            // The renewed token was used already.
            Some(Ok(_)) => None,
            Some(Err(error)) => return Err(error),
            None => self.renew(&credential).await?,
        };
        match renewed {
            Some(fresh) => Ok(self.send_with(&request, &fresh).await?.answer),
            None => Ok(reply.answer),
        }
    }

    async fn renew(
        self: &Arc<Self>,
        old: &Credential,
    ) -> Result<Option<Arc<Credential>>, ReadError> {
        let (inner, ended) = (Arc::clone(self), old.access_token().clone());
        // In a task of its own, so that a cancelled caller does not lose the new token.
        let renewal = tokio::spawn(async move {
            match &inner.token {
                TokenSource::Fixed(..) => Ok(None),
                TokenSource::Stored(session) => {
                    let (transport, provider) = (&inner.transport, &inner.provider);
                    session.renew(transport, provider, &ended).await
                }
            }
        });
        renewal.await.map_err(|_| ReadError::internal())?
    }

    async fn send_with(&self, request: &Get, credential: &Credential) -> Result<Reply, ReadError> {
        let (token, verified) = (credential.access_token(), credential.verified());
        self.send_checked(request, token, verified).await
    }

    /// Sends a request with a token of a known kind; else returns the answer that left the kind unknown.
    async fn send_checked(
        &self,
        request: &Get,
        token: &Secret,
        verified: &AtomicBool,
    ) -> Result<Reply, ReadError> {
        let Some(kinds) = self.kinds.get() else {
            return self.send_once(request, token).await;
        };
        let server = self.provider.as_str();
        kinds.refuse_owner(server)?;
        if !request.is_schema()
            && !verified.load(Ordering::Relaxed)
            && let Some(open) = self.learn_kind(kinds, token, verified).await?
        {
            return Ok(open);
        }
        let reply = self.send_once(request, token).await?;
        kinds.record(server, reply.kind)?;
        if reply.kind.is_some() {
            verified.store(true, Ordering::Relaxed);
        }
        Ok(reply)
    }

    /// Learns the kind of the token, or returns the answer that left it unknown.
    async fn learn_kind(
        &self,
        kinds: &TokenKinds,
        token: &Secret,
        verified: &AtomicBool,
    ) -> Result<Option<Reply>, ReadError> {
        let checks = kinds.checks();
        let mut last = kinds.last.lock().await;
        kinds.refuse_owner(self.provider.as_str())?;
        if verified.load(Ordering::Relaxed) {
            return Ok(None);
        }
        // Callers that waited for another's check share its result, so that a server that does not answer is waited
        // for once.
        if kinds.checks() != checks
            && let Some((of, open)) = &*last
            && of == token
        {
            return open.clone().map(Some);
        }
        let learned = self.check_kind(kinds, token).await;
        kinds.count_check();
        if let Some(open) = learned.transpose() {
            *last = Some((token.clone(), open.clone()));
            return open.map(Some);
        }
        verified.store(true, Ordering::Relaxed);
        Ok(None)
    }

    async fn check_kind(
        &self,
        kinds: &TokenKinds,
        token: &Secret,
    ) -> Result<Option<Reply>, ReadError> {
        for request in token_kind::kind_requests() {
            let reply = self.send_once(&request, token).await.map_err(|mut error| {
                let asked = "before the first read the server is asked whose credential this is";
                error.message = format!("{asked}: {}", error.message);
                error
            })?;
            kinds.record(self.provider.as_str(), reply.kind)?;
            match reply.answer.status {
                status if token_kind::is_inconclusive(status) => return Ok(Some(reply)),
                400 => {}
                _ => break,
            }
        }
        Ok(None)
    }

    async fn send_once(&self, request: &Get, token: &Secret) -> Result<Reply, ReadError> {
        let url = self.url(request)?;
        let server = self.provider.as_str();
        let reply = self.transport.get(server, url, Some(token)).await;
        let reply = reply.map_err(|mut error| {
            // The error may repeat what the server sent.
            error.message = token.hide_in(error.message);
            error
        })?;
        let challenges = reply.headers.get_all(WWW_AUTHENTICATE).into_iter();
        let challenges: Vec<String> = challenges
            .filter_map(|value| value.to_str().ok().map(str::to_owned))
            .collect();
        let kind = reply.header(TOKEN_KIND_HEADER).map(str::to_owned);
        let answer = answer::parse(server, reply, token)?;
        Ok(Reply {
            has_ended: answer::token_has_ended(&challenges, &answer),
            kind: token_kind::stated_kind(kind.as_deref(), request, &answer),
            answer,
        })
    }

    fn url(&self, request: &Get) -> Result<Url, ReadError> {
        let text = format!("{}{}", self.provider, request.sendable_target()?);
        // A segment of only dots would be normalized away and change the request.
        let url = Url::parse(&text).ok().filter(|url| url.as_str() == text);
        url.ok_or_else(|| {
            let message = "a name in this request cannot stand in an address";
            ReadError::new(ErrorCode::InvalidRequest, message)
                .with_hint("names of only dots cannot be asked for over HTTP; check the id")
        })
    }
}
