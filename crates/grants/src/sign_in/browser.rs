//! Browsers in which the owner has signed in before, each under a secret of which only the hash is stored.
//!
//! A known browser is not signed in. It is only throttled apart from others at the same address.

use std::time::Duration;

use contract::time::Instant;
use serde_json::{Value, json};
use store::registry::{Change, EntryKind};
use store::{Store, StoreError};

use super::lane::Lane;
use crate::documents::{all, find, key_of, text};
use crate::issue::after;
use crate::secret::{NoRandomness, Secret};

/// How long a browser is known after its last sign-in.
pub const BROWSER_LIFE: Duration = Duration::from_hours(24 * 365);

/// A browser that proved to be known. It can only be obtained from [`known_browser`].
#[derive(Debug, Clone)]
pub struct KnownBrowser(Secret);

impl KnownBrowser {
    /// The lane that its guesses are counted in.
    pub fn lane(&self) -> Lane {
        Lane::Browser(key_of(self.0.expose()))
    }
}

/// The browser of a presented secret, if it is known.
pub fn known_browser(
    store: &dyn Store,
    presented: &str,
    now: Instant,
) -> Result<Option<KnownBrowser>, StoreError> {
    let found = find::<Value>(store, EntryKind::Browser, &key_of(presented), now)?;
    Ok(found.map(|_| KnownBrowser(Secret::holding(presented.to_owned()))))
}

/// A browser that is about to be known, or known for longer.
pub(super) struct Remembered {
    pub(super) secret: Secret,
    key: String,
    document: String,
    until: Instant,
}

impl Remembered {
    pub(super) fn new(known: Option<&KnownBrowser>, now: Instant) -> Result<Self, NoRandomness> {
        let secret = match known {
            Some(known) => known.0.clone(),
            None => Secret::random("pdpp_browser_")?,
        };
        Ok(Self {
            key: key_of(secret.expose()),
            secret,
            document: text(&json!({ "signed_in_at": now })),
            until: after(now, BROWSER_LIFE),
        })
    }

    pub(super) fn change(&self) -> Change<'_> {
        Change::put(EntryKind::Browser, &self.key, &self.document).until(self.until)
    }
}

pub(super) fn known(store: &dyn Store, now: Instant) -> Result<Vec<String>, StoreError> {
    let found = all::<Value>(store, EntryKind::Browser, now)?;
    Ok(found.into_iter().map(|entry| entry.key).collect())
}
