//! Who fetches client metadata documents. Fetching for strangers needs a guard against reaching inside networks, and an
//! HTTP client; both are given to this crate by whoever wires it.

use std::pin::Pin;
use std::time::Duration;

/// A document as it was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Its bytes.
    pub body: Vec<u8>,
    /// How long its server says it may be kept.
    pub max_age: Option<Duration>,
}

/// A document on its way, or the reason why it cannot be had, in words that may be shown to anybody.
pub type Fetching<'a> = Pin<Box<dyn Future<Output = Result<Fetched, String>> + Send + 'a>>;

/// Fetches client metadata documents, only ever from public addresses.
pub trait ClientDocuments: Send + Sync + 'static {
    /// Fetches the document at an `https` address.
    fn fetch<'a>(&'a self, address: &'a str) -> Fetching<'a>;
}
