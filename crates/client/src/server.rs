//! A resource server over HTTP.

use std::fmt;
use std::sync::{Arc, OnceLock};

use contract::error::{ErrorCode, ReadError};
use contract::time::Clock;
use contract::upstream::{Answer, Asked, Get, Upstream};
use reqwest::Url;
use reqwest::header::WWW_AUTHENTICATE;

use crate::answer;
use crate::credentials::Credential;
use crate::kind::{self, Kinds};
use crate::provider_url::ProviderUrl;
use crate::renewal::Session;
use crate::secret::Secret;
use crate::transport::{Limits, Transport};

/// A resource server, asked with one credential. Making one costs nothing; the first question sets up what it needs.
pub struct HttpServer(Arc<Asking>);

struct Asking {
    provider: ProviderUrl,
    transport: Transport,
    bearer: Bearer,
    /// There if only tokens of grants may be used.
    kinds: OnceLock<Kinds>,
}

/// An answer with its text, and whether it says that the token has ended.
pub(crate) type Said = ((Answer, String), bool);

enum Bearer {
    /// As it is, for as long as it works.
    Fixed(Secret),
    /// From a file, where it can be renewed.
    Stored(Session),
}

impl HttpServer {
    /// Asks with a token that is never renewed.
    pub fn with_token(provider: ProviderUrl, token: Secret, limits: Limits) -> Self {
        Self::of(provider, Bearer::Fixed(token), limits)
    }

    /// Asks with a stored credential. When it has ended and can be renewed, that is done once, kept in its file, and the
    /// question is asked once more; the grant stays the same.
    pub fn with_credential(
        provider: ProviderUrl,
        credential: Credential,
        clock: Arc<dyn Clock>,
        limits: Limits,
    ) -> Self {
        let session = Session::new(credential, clock);
        Self::of(provider, Bearer::Stored(session), limits)
    }

    /// Reads nothing with an owner's token: before the first question with each token the server is asked whose it is,
    /// unless that question tells. A server that tells no kind is taken at its word.
    #[must_use]
    pub fn for_agents(self) -> Self {
        self.0.kinds.get_or_init(Kinds::default);
        self
    }

    /// Whether an agent was refused, because the server called its token an owner's.
    pub fn refused_an_owner(&self) -> bool {
        self.0.kinds.get().is_some_and(Kinds::is_owner)
    }

    /// Asks once, and gives the answer with its text as the server wrote it: a number parsed may not have all its digits.
    pub async fn get_text(&self, question: Get) -> Result<(Answer, String), ReadError> {
        self.0.ask(question).await
    }

    fn of(provider: ProviderUrl, bearer: Bearer, limits: Limits) -> Self {
        Self(Arc::new(Asking {
            provider,
            transport: Transport::new(limits),
            bearer,
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
    fn provider_url(&self) -> &str {
        self.0.provider.as_str()
    }

    fn get(&self, question: Get) -> Asked<'_> {
        Box::pin(async move { Ok(self.0.ask(question).await?.0) })
    }
}

impl Asking {
    async fn ask(self: &Arc<Self>, question: Get) -> Result<(Answer, String), ReadError> {
        let session = match &self.bearer {
            Bearer::Fixed(token) => return Ok(self.checked(&question, token).await?.0),
            Bearer::Stored(session) => session,
        };
        let credential = session.current();
        let token = credential.access_token();
        let (answer, has_ended) = self.checked(&question, token).await?;
        if !has_ended || credential.refresh_token().is_none() {
            return Ok(answer);
        }
        let (asking, ended) = (Arc::clone(self), token.clone());
        // A task of its own: who stops waiting must not lose the token that is being traded.
        let renewal = tokio::spawn(async move { asking.renew(&ended).await });
        match renewal.await.map_err(|_| ReadError::internal())?? {
            Some(fresh) => Ok(self.checked(&question, &fresh).await?.0),
            None => Ok(answer),
        }
    }

    async fn renew(&self, ended: &Secret) -> Result<Option<Secret>, ReadError> {
        match &self.bearer {
            Bearer::Fixed(_) => Ok(None),
            Bearer::Stored(session) => session.renew(&self.transport, &self.provider, ended).await,
        }
    }

    /// Asks with a token that may be used; else gives the answer that left it open whether it may.
    async fn checked(&self, question: &Get, token: &Secret) -> Result<Said, ReadError> {
        let Some(kinds) = self.kinds.get() else {
            return self.once(question, token).await;
        };
        let server = self.provider.as_str();
        kinds.refuse_owner(server)?;
        if question.is_schema() {
            let said = self.once(question, token).await?;
            if kinds.hear(server, &said.0.0)? {
                kinds.last.lock().await.passed = Some(token.clone());
            }
            return Ok(said);
        }
        let looks = kinds.looks();
        let mut last = kinds.last.lock().await;
        kinds.refuse_owner(server)?;
        if last.passed.as_ref() != Some(token) {
            // Whoever waited for another's look has what came of it: a server that does not answer is not waited for
            // once more by each of them.
            if kinds.looks() != looks
                && let Some((of, open)) = &last.open
                && of == token
            {
                return open.clone();
            }
            let learned = self.learn(kinds, token).await;
            kinds.looked();
            if let Some(open) = learned.transpose() {
                last.open = Some((token.clone(), open.clone()));
                return open;
            }
            last.passed = Some(token.clone());
        }
        drop(last);
        self.once(question, token).await
    }

    /// Learns whose token it is, or gives the answer that does not say.
    async fn learn(&self, kinds: &Kinds, token: &Secret) -> Result<Option<Said>, ReadError> {
        for question in kind::questions() {
            let said = self.once(&question, token).await?;
            let answer = &said.0.0;
            kinds.hear(self.provider.as_str(), answer)?;
            match answer.status {
                status if kind::is_open(status) => return Ok(Some(said)),
                400 => {}
                _ => break,
            }
        }
        Ok(None)
    }

    async fn once(&self, question: &Get, token: &Secret) -> Result<Said, ReadError> {
        let url = self.url(question)?;
        let server = self.provider.as_str();
        let said = self.transport.get(server, url, Some(token)).await;
        let said = said.map_err(|mut error| {
            // A server may put what it was sent into what we show of it.
            error.message = token.hide_in(error.message);
            error
        })?;
        let challenges = said.headers.get_all(WWW_AUTHENTICATE).into_iter();
        let challenges: Vec<String> = challenges
            .filter_map(|value| value.to_str().ok().map(str::to_owned))
            .collect();
        let read = answer::read(server, said, token)?;
        let has_ended = answer::token_has_ended(&challenges, &read.0);
        Ok((read, has_ended))
    }

    fn url(&self, question: &Get) -> Result<Url, ReadError> {
        let text = format!("{}{}", self.provider, question.target());
        // A segment of only dots would be taken for a step up and ask something else.
        let url = Url::parse(&text).ok().filter(|url| url.as_str() == text);
        url.ok_or_else(|| {
            let message = "a name in this question cannot stand in an address";
            ReadError::new(ErrorCode::InvalidRequest, message)
                .with_hint("names of only dots cannot be asked for over HTTP; check the id")
        })
    }
}
