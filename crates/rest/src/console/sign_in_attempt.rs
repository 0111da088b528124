//! Attempts to sign in; answers to wrong guesses are delayed more and more.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, header};
use grants::sign_in::{
    KnownBrowser, Lane, NewSession, SignIn, SignInError, Visitor, known_browser,
};
use tokio::time::Instant;

use super::password_queue::PasswordPermit;
use super::session;
use crate::owner::blocking;
use crate::problem::Problem;
use crate::service::Service;
use crate::table::RequestContext;

pub(super) enum SignInSecret {
    Password(String),
    /// From a link that was made at the terminal.
    Code(String),
}

/// What came of an attempt.
pub(super) enum Attempt {
    /// The secret was right.
    Entered(NewSession),
    /// It was wrong, and the answer has been delayed.
    Wrong,
    /// It was not checked: too many others were waiting.
    Unchecked,
}

/// Tries a secret. The future borrows nothing of the request, whose body is not `Sync`.
pub(super) fn enter(
    context: &RequestContext,
    secret: SignInSecret,
) -> impl Future<Output = Result<Attempt, Problem>> + Send + use<> {
    let arrived = Instant::now();
    let (service, address) = (Arc::clone(&context.service), context.address);
    let browser = context.headers.get(header::USER_AGENT);
    let browser = browser
        .map(|name| String::from_utf8_lossy(name.as_bytes()).into_owned())
        .unwrap_or_default();
    let known = find_known_browser(Arc::clone(&service), &context.headers);
    async move {
        let visitor = Visitor {
            address,
            browser,
            known: known.await?,
        };
        // A code has 256 random bits and is found by its hash: it cannot be guessed, and checking it is fast.
        let permit = match secret {
            SignInSecret::Code(_) => None,
            SignInSecret::Password(_) => {
                let permit = service.password_queue.acquire(visitor.lane()).await;
                let Some(permit) = permit else {
                    return Ok(Attempt::Unchecked);
                };
                Some(permit)
            }
        };
        match check(service, visitor, secret, permit).await? {
            Ok(session) => Ok(Attempt::Entered(session)),
            Err(wait) => {
                tokio::time::sleep_until(arrived + wait).await;
                Ok(Attempt::Wrong)
            }
        }
    }
}

/// A session, or how long to delay the answer to a wrong secret.
async fn check(
    service: Arc<Service>,
    visitor: Visitor,
    secret: SignInSecret,
    permit: Option<PasswordPermit>,
) -> Result<Result<NewSession, Duration>, Problem> {
    let tried = blocking(service, move |service| {
        // Held until the check is over, even if the request was dropped.
        let _permit = permit;
        let door = SignIn {
            store: &*service.store,
            now: service.now(),
        };
        let entered = match &secret {
            SignInSecret::Password(password) => door.by_password(&visitor, password),
            SignInSecret::Code(code) => door.by_code(&visitor, code),
        };
        match entered {
            Ok(session) => Ok(Ok(session)),
            Err(SignInError::Refused { wait }) => Ok(Err(wait)),
            Err(error) => Err(Problem::internal("nobody could sign in", &error)),
        }
    });
    tried.await
}

/// The lane a request is counted under: the signed-in browser, a browser that signed in before, or the address.
pub(crate) fn lane(
    context: &RequestContext,
) -> impl Future<Output = Result<Lane, Problem>> + Send + use<> {
    let (address, session) = (context.address, session::session(context));
    let known = find_known_browser(Arc::clone(&context.service), &context.headers);
    async move {
        if let Some(session) = session.await? {
            return Ok(Lane::Browser(session.id().to_owned()));
        }
        Ok(match known.await? {
            Some(known) => known.lane(),
            None => Lane::from_address(address),
        })
    }
}

/// The browser of a request, if the owner has signed in with it before.
fn find_known_browser(
    service: Arc<Service>,
    headers: &HeaderMap,
) -> impl Future<Output = Result<Option<KnownBrowser>, Problem>> + Send + use<> {
    let name = session::cookie_name(&service, session::BROWSER);
    let secret = session::cookie(headers, &name).map(str::to_owned);
    async move {
        let Some(secret) = secret else {
            return Ok(None);
        };
        let look_up = move |service: &Service| {
            known_browser(&*service.store, &secret, service.now())
                .map_err(|error| Problem::internal("a browser could not be looked up", &error))
        };
        blocking(service, look_up).await
    }
}
