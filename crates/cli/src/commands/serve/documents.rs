//! Who fetches client metadata documents for the server: the guarded fetcher of the client crate.

use client::documents::DocumentFetcher;
use rest::{ClientDocuments, Fetched, Fetching};

#[derive(Default)]
pub(super) struct Guarded(DocumentFetcher);

impl ClientDocuments for Guarded {
    fn fetch<'a>(&'a self, address: &'a str) -> Fetching<'a> {
        Box::pin(async move {
            let document = self.0.fetch(address).await?;
            Ok(Fetched {
                body: document.body,
                max_age: document.max_age,
            })
        })
    }
}
