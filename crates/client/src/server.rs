//! A resource server over HTTP.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use contract::error::{ErrorCode, ReadError};
use contract::time::Clock;
use contract::upstream::{Answer, Asked, Get, TOKEN_KIND_HEADER, Upstream};
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

/// What a server said.
#[derive(Clone)]
pub(crate) struct Said {
    /// The answer, with its text.
    answer: (Answer, String),
    /// Whether it says that the token has ended.
    has_ended: bool,
    /// Whose token it says that it is.
    told: Option<contract::upstream::Bearer>,
}

enum Bearer {
    /// As it is, for as long as it works; and whether it may be read with.
    Fixed(Secret, AtomicBool),
    /// From a file, where it can be renewed.
    Stored(Session),
}

impl HttpServer {
    /// Asks with a token that is never renewed.
    pub fn with_token(provider: ProviderUrl, token: Secret, limits: Limits) -> Self {
        Self::of(
            provider,
            Bearer::Fixed(token, AtomicBool::new(false)),
            limits,
        )
    }

    /// Asks with a stored credential. Where it can be renewed, that is done shortly before its end, or once when the server says
    /// that it has ended, and the question is asked once more. It is kept in its file; the grant stays the same.
    pub fn with_credential(
        provider: ProviderUrl,
        credential: Credential,
        clock: Arc<dyn Clock>,
        limits: Limits,
    ) -> Self {
        let session = Session::new(credential, clock);
        Self::of(provider, Bearer::Stored(session), limits)
    }

    /// Reads nothing with an owner's token. A credential that its file calls a client's is used at once; otherwise the server
    /// is asked once whose it is, unless the first question tells. Every answer that says it is refused from then on. A
    /// server that tells no kind stays usable.
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
    fn provider_url(&self) -> Option<String> {
        Some(self.0.provider.as_str().to_owned())
    }

    fn get(&self, question: Get) -> Asked<'_> {
        Box::pin(async move { Ok(self.0.ask(question).await?.0) })
    }
}

impl Asking {
    async fn ask(self: &Arc<Self>, question: Get) -> Result<(Answer, String), ReadError> {
        let session = match &self.bearer {
            Bearer::Fixed(token, cleared) => {
                let said = self.checked(&question, token, cleared).await?;
                return Ok(said.answer);
            }
            Bearer::Stored(session) => session,
        };
        let mut credential = session.current();
        // Whatever comes of it, a question renews once.
        let mut renewed = None;
        if session.is_due(&credential) {
            let ahead = self.renew(&credential).await;
            if let Ok(Some(fresh)) = &ahead {
                credential = Arc::clone(fresh);
            }
            renewed = Some(ahead);
        }
        let said = self.asked_with(&question, &credential).await?;
        if !said.has_ended || credential.refresh_token().is_none() {
            return Ok(said.answer);
        }
        let renewed = match renewed {
            // It was asked with already.
            Some(Ok(_)) => None,
            Some(Err(error)) => return Err(error),
            None => self.renew(&credential).await?,
        };
        match renewed {
            Some(fresh) => Ok(self.asked_with(&question, &fresh).await?.answer),
            None => Ok(said.answer),
        }
    }

    /// The credential to use in place of this one.
    async fn renew(
        self: &Arc<Self>,
        old: &Credential,
    ) -> Result<Option<Arc<Credential>>, ReadError> {
        let (asking, ended) = (Arc::clone(self), old.access_token().clone());
        // A task of its own: who stops waiting must not lose the token that is being traded.
        let renewal = tokio::spawn(async move {
            match &asking.bearer {
                Bearer::Fixed(..) => Ok(None),
                Bearer::Stored(session) => {
                    let (transport, provider) = (&asking.transport, &asking.provider);
                    session.renew(transport, provider, &ended).await
                }
            }
        });
        renewal.await.map_err(|_| ReadError::internal())?
    }

    async fn asked_with(&self, question: &Get, credential: &Credential) -> Result<Said, ReadError> {
        let (token, cleared) = (credential.access_token(), credential.cleared());
        self.checked(question, token, cleared).await
    }

    /// Asks with a token that may be used; else gives the answer that left it open whether it may.
    async fn checked(
        &self,
        question: &Get,
        token: &Secret,
        cleared: &AtomicBool,
    ) -> Result<Said, ReadError> {
        let Some(kinds) = self.kinds.get() else {
            return self.once(question, token).await;
        };
        let server = self.provider.as_str();
        kinds.refuse_owner(server)?;
        if !question.is_schema()
            && !cleared.load(Ordering::Relaxed)
            && let Some(open) = self.learn(kinds, token, cleared).await?
        {
            return Ok(open);
        }
        let said = self.once(question, token).await?;
        kinds.hear(server, said.told)?;
        if said.told.is_some() {
            cleared.store(true, Ordering::Relaxed);
        }
        Ok(said)
    }

    /// Learns whose token it is, or gives the answer that does not say.
    async fn learn(
        &self,
        kinds: &Kinds,
        token: &Secret,
        cleared: &AtomicBool,
    ) -> Result<Option<Said>, ReadError> {
        let looks = kinds.looks();
        let mut last = kinds.open.lock().await;
        kinds.refuse_owner(self.provider.as_str())?;
        if cleared.load(Ordering::Relaxed) {
            return Ok(None);
        }
        // Whoever waited for another's look has what came of it: a server that does not answer is not waited for once
        // more by each of them.
        if kinds.looks() != looks
            && let Some((of, open)) = &*last
            && of == token
        {
            return open.clone().map(Some);
        }
        let learned = self.look(kinds, token).await;
        kinds.looked();
        if let Some(open) = learned.transpose() {
            *last = Some((token.clone(), open.clone()));
            return open.map(Some);
        }
        cleared.store(true, Ordering::Relaxed);
        Ok(None)
    }

    async fn look(&self, kinds: &Kinds, token: &Secret) -> Result<Option<Said>, ReadError> {
        for question in kind::questions() {
            let said = self.once(&question, token).await.map_err(|mut error| {
                let asked = "before the first read the server is asked whose credential this is";
                error.message = format!("{asked}: {}", error.message);
                error
            })?;
            kinds.hear(self.provider.as_str(), said.told)?;
            match said.answer.0.status {
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
        let kind = said.header(TOKEN_KIND_HEADER).map(str::to_owned);
        let answer = answer::read(server, said, token)?;
        Ok(Said {
            has_ended: answer::token_has_ended(&challenges, &answer.0),
            told: kind::told(kind.as_deref(), question, &answer.0),
            answer,
        })
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
