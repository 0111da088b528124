//! How the owner signs in: a password or a one-time code, and the session of a browser that follows.
//!
//! Guessing is slowed by a [`Throttle`].

mod browser;
mod console;
mod lane;
mod one_time_code;
mod password;
mod session;
mod throttle;

use std::net::IpAddr;
use std::time::Duration;

use contract::time::Instant;
use store::registry::{Change, EntryKind};
use store::{Store, StoreError};
use thiserror::Error;

pub use browser::{BROWSER_LIFE, KnownBrowser, known_browser};
pub use console::Console;
pub use lane::Lane;
pub use one_time_code::new_code;
pub use password::{PasswordError, has_password, remove_password, set_password};
pub use session::{
    NewSession, Presented, Session, SessionOverview, end_all_sessions, end_other_sessions,
    end_session, require_second, second_in, session, sessions, with_second,
};
pub use throttle::Throttle;

use crate::secret::{NoRandomness, Secret};

/// The browser that tries to sign in.
#[derive(Debug, Clone)]
pub struct Visitor {
    pub address: IpAddr,
    /// Its `User-Agent`; shown in the list of sessions.
    pub browser: String,
    /// The known browser it proved to be, if the owner signed in with it before.
    pub known: Option<KnownBrowser>,
}

impl Visitor {
    /// The lane that its guesses are counted in.
    pub fn lane(&self) -> Lane {
        match &self.known {
            Some(known) => known.lane(),
            None => Lane::from_address(self.address),
        }
    }
}

#[derive(Debug, Error)]
pub enum SignInError {
    /// A wrong password, or a code that is not valid.
    #[error("that is not right; try again, or make a new sign-in code at the terminal")]
    Refused {
        /// How long after its arrival the guess is answered.
        wait: Duration,
    },
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(Clone, Copy)]
pub struct SignIn<'a> {
    pub store: &'a dyn Store,
    pub now: Instant,
}

impl SignIn<'_> {
    pub fn by_password(
        &self,
        visitor: &Visitor,
        password: &str,
    ) -> Result<NewSession, SignInError> {
        if !password::verify(self.store, password, self.now)? {
            return Err(self.wrong(visitor));
        }
        let session = session::start(self.store, visitor, &[], self.now)?;
        self.entered(visitor, session)
    }

    pub fn by_code(&self, visitor: &Visitor, code: &str) -> Result<NewSession, SignInError> {
        let Some((key, expect)) = one_time_code::found(self.store, code, self.now)? else {
            return Err(self.wrong(visitor));
        };
        let used = Change::remove(EntryKind::SignIn, key).expecting(expect);
        let session = session::start(self.store, visitor, &[used], self.now)?;
        self.entered(visitor, session)
    }

    fn entered(
        &self,
        visitor: &Visitor,
        session: Option<NewSession>,
    ) -> Result<NewSession, SignInError> {
        let session = session.ok_or_else(|| self.wrong(visitor))?;
        Throttle::new(self.store).right(&visitor.lane(), self.now);
        Ok(session)
    }

    fn wrong(&self, visitor: &Visitor) -> SignInError {
        let wait = Throttle::new(self.store).wrong(&visitor.lane(), self.now);
        SignInError::Refused { wait }
    }
}

/// Whether two secrets are equal, in a time that does not depend on where they differ.
fn same(left: &Secret, right: &str) -> bool {
    use subtle::ConstantTimeEq as _;
    left.expose().as_bytes().ct_eq(right.as_bytes()).into()
}
