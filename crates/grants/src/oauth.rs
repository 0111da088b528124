//! The rules of the authorization server: clients, requests, the owner's review and decision, codes and tokens.
//!
//! No HTTP here. An [`Issuer`] is the server of one origin at one moment; the HTTP layer makes one per request, passes
//! parameters in and sends the result. Every step that must happen once is one conditional transaction.

mod client_document;
mod clients;
mod code;
mod decision;
mod device;
mod error;
mod introspection;
mod metadata;
mod parameters;
mod refresh;
mod request;
mod review;
mod revocation;
mod token_endpoint;
mod uri;

use std::borrow::Cow;
use std::time::Duration;

use contract::time::Instant;
use store::Store;

pub use client_document::{MAX_DOCUMENT_BYTES, client_in_document, is_document_address};
pub use clients::{Client, ClientTrust, GrantType, Lookup, Registered};
pub use decision::{Answer, Decider, DecisionError};
pub use device::{DeviceAuthorization, INTERVAL_SECONDS};
pub use error::OAuthError;
pub use introspection::Introspection;
pub use parameters::Parameters;
pub use request::{AuthorizeError, GrantFlow, PendingRequest, RedirectBack};
pub use review::{Choice, Review};
pub use token_endpoint::TokenResponse;

use crate::issue::after;
use crate::sign_in::Console;

/// The authorization server of one origin at one moment.
#[derive(Clone)]
pub struct Issuer<'a> {
    store: &'a dyn Store,
    origin: &'a str,
    console: Cow<'a, Console>,
    now: Instant,
}

impl<'a> Issuer<'a> {
    /// The server of `origin`, which is scheme, host and port without a slash at the end.
    pub fn new(store: &'a dyn Store, origin: &'a str, now: Instant) -> Self {
        let origin = origin.trim_end_matches('/');
        Self {
            store,
            origin,
            console: Cow::Owned(Console::for_public_url(origin)),
            now,
        }
    }

    /// The same server, with the owner's pages at this console.
    #[must_use]
    pub fn with_console(mut self, console: &'a Console) -> Self {
        self.console = Cow::Borrowed(console);
        self
    }

    /// Refuses a redirect to the host of the owner's pages: with the code it would receive their session.
    fn check_redirect(&self, redirect_uri: &str) -> Result<(), OAuthError> {
        if !self.console.would_tell(redirect_uri) {
            return Ok(());
        }
        Err(OAuthError::invalid_redirect_uri(format!(
            "codes are not sent to {:?}: its host is kept for the owner's pages; a program on the same machine waits at 127.0.0.1, [::1] or localhost",
            metadata::shown(redirect_uri)
        )))
    }

    /// The issuer's name, for metadata and for `iss`.
    pub fn origin(&self) -> &'a str {
        self.origin
    }
}

fn later(now: Instant, time: Duration) -> Instant {
    after(now, time)
}
