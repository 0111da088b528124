//! The interface for fetching client metadata documents. Fetching URLs of strangers needs an HTTP client with a guard
//! against internal addresses, which the binary provides.

use std::pin::Pin;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    pub body: Vec<u8>,
    pub max_age: Option<Duration>,
}

/// A fetch in progress. Its error may be shown to anybody.
pub type Fetching<'a> = Pin<Box<dyn Future<Output = Result<Fetched, String>> + Send + 'a>>;

/// Fetches client metadata documents, only ever from public addresses.
pub trait ClientDocuments: Send + Sync + 'static {
    /// Fetches the document at an `https` address.
    fn fetch<'a>(&'a self, address: &'a str) -> Fetching<'a>;
}
