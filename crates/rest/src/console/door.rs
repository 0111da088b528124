//! Letting the owner in, and answering wrong guesses later and later.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode, header};
use contract::error::{ErrorCode, ReadError};
use grants::sign_in::{Door, KnownBrowser, Lane, NewSession, SignInError, Visitor, known_browser};
use tokio::time::Instant;

use super::visit;
use crate::owner::blocking;
use crate::problem::Problem;
use crate::service::Service;
use crate::table::Ask;

/// What somebody says to be let in.
pub(super) enum Word {
    Password(String),
    /// From a link that was made at the terminal.
    Code(String),
}

/// A session for the right word. Nothing for a wrong one, and that not too soon. It keeps nothing of the request, whose body
/// cannot be shared between threads.
pub(super) fn enter(
    ask: &Ask,
    word: Word,
) -> impl Future<Output = Result<Option<NewSession>, Problem>> + Send + use<> {
    let arrived = Instant::now();
    let (service, address) = (Arc::clone(&ask.service), ask.address);
    let browser = ask.headers.get(header::USER_AGENT);
    let browser = browser
        .map(|name| String::from_utf8_lossy(name.as_bytes()).into_owned())
        .unwrap_or_default();
    let known = known(Arc::clone(&service), &ask.headers);
    async move {
        let visitor = Visitor {
            address,
            browser,
            known: known.await?,
        };
        match tried(service, visitor, word).await? {
            Ok(session) => Ok(Some(session)),
            Err(wait) => {
                tokio::time::sleep_until(arrived + wait).await;
                Ok(None)
            }
        }
    }
}

/// A session, or how long the answer to a wrong word waits.
async fn tried(
    service: Arc<Service>,
    visitor: Visitor,
    word: Word,
) -> Result<Result<NewSession, Duration>, Problem> {
    // A code has 256 random bits and is found by its hash: nothing to guess, and nothing that takes long.
    let turn = match word {
        Word::Password(_) => {
            let turn = service.turns.turn(visitor.lane()).await;
            Some(turn.ok_or_else(too_many_at_once)?)
        }
        Word::Code(_) => None,
    };
    let tried = blocking(service, move |service| {
        // Held until the check is over, also if nobody waits for it any more.
        let _turn = turn;
        let door = Door {
            store: &*service.store,
            throttle: &service.throttle,
            now: service.now(),
        };
        let entered = match &word {
            Word::Password(password) => door.by_password(&visitor, password),
            Word::Code(code) => door.by_code(&visitor, code),
        };
        match entered {
            Ok(session) => Ok(Ok(session)),
            Err(SignInError::Refused { wait }) => Ok(Err(wait)),
            Err(error) => Err(Problem::internal("nobody could sign in", &error)),
        }
    });
    tried.await
}

/// Under what the limits of a request are counted: the signed-in owner's browser, one they signed in with before, or the
/// address it comes from.
pub(crate) fn lane(ask: &Ask) -> impl Future<Output = Result<Lane, Problem>> + Send + use<> {
    let (address, session) = (ask.address, visit::session(ask));
    let known = known(Arc::clone(&ask.service), &ask.headers);
    async move {
        if let Some(session) = session.await? {
            return Ok(Lane::Browser(session.id().to_owned()));
        }
        Ok(match known.await? {
            Some(known) => known.lane(),
            None => Lane::of(address),
        })
    }
}

/// The browser of a request, if the owner signed in with it before.
fn known(
    service: Arc<Service>,
    headers: &HeaderMap,
) -> impl Future<Output = Result<Option<KnownBrowser>, Problem>> + Send + use<> {
    let name = visit::cookie_name(&service, visit::BROWSER);
    let secret = visit::cookie(headers, &name).map(str::to_owned);
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

fn too_many_at_once() -> Problem {
    let message = "more passwords are being tried at once than can be checked";
    Problem::from(
        ReadError::new(ErrorCode::RateLimitExceeded, message)
            .with_hint("nothing is closed: try again, or use a sign-in code made at the terminal"),
    )
    .with_status(StatusCode::SERVICE_UNAVAILABLE)
    .with_header(header::RETRY_AFTER, "1")
}
