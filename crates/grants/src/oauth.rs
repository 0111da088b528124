//! The rules of the authorization server: clients, requests, the owner's review and decision, codes and tokens.
//!
//! No HTTP here. An [`Issuer`] is the server of one origin at one moment; whoever serves requests makes one for each,
//! hands parameters in and sends what comes back. Every step that must happen once is one conditional transaction.

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
pub use request::{AuthorizeError, PendingRequest, RedirectBack, Way};
pub use review::{Choice, Review};
pub use token_endpoint::TokenResponse;

use crate::issue::after;

/// The authorization server of one origin at one moment.
#[derive(Clone, Copy)]
pub struct Issuer<'a> {
    store: &'a dyn Store,
    origin: &'a str,
    now: Instant,
}

impl<'a> Issuer<'a> {
    /// The server of `origin`, which is scheme, host and port without a slash at the end.
    pub fn new(store: &'a dyn Store, origin: &'a str, now: Instant) -> Self {
        Self {
            store,
            origin: origin.trim_end_matches('/'),
            now,
        }
    }

    /// The issuer's name, for metadata and for `iss`.
    pub fn origin(&self) -> &'a str {
        self.origin
    }
}

fn later(now: Instant, time: Duration) -> Instant {
    after(now, time)
}
