//! Clients whose id is the address of a document about them.
//!
//! Nothing is fetched here: the HTTP layer fetches, behind its guard against internal networks, and passes the bytes to
//! [`Issuer::accept_document`]. A document that changes where codes go ends the grants of its client.

use std::time::Duration;

use contract::id::ClientId;
use serde_json::Value;
use store::StoreError;
use store::grants::Revocable;
use store::registry::{EntryKind, Expect};

use super::clients::{Client, ClientEntry, ClientTrust, UNUSED};
use super::error::OAuthError;
use super::metadata::read_metadata;
use super::uri::WebAddress;
use super::{Issuer, later};
use crate::documents::put;

pub const MAX_DOCUMENT_BYTES: usize = 5 * 1024;
const SHORTEST: Duration = Duration::from_mins(1);
const LONGEST: Duration = Duration::from_hours(24);

/// Whether a client id is the address of a document: `https`, with a path, without query, user, fragment or dots.
pub fn is_document_address(client_id: &str) -> bool {
    ClientId::parse(client_id).is_ok()
        && WebAddress::parse(client_id).is_some_and(|address| {
            address.is_secure() && address.has_path() && !address.has_query()
        })
}

/// The client that a document fetched from `address` describes.
pub fn client_in_document(address: &str, body: &[u8]) -> Result<Client, OAuthError> {
    let wrong = OAuthError::invalid_client_metadata;
    let client_id = ClientId::parse(address)
        .ok()
        .filter(|_| is_document_address(address))
        .ok_or_else(|| {
            OAuthError::invalid_client("the client id is not the address of a metadata document")
        })?;
    if body.len() > MAX_DOCUMENT_BYTES {
        return Err(wrong("the metadata document is larger than 5 KiB"));
    }
    let document: Value =
        serde_json::from_slice(body).map_err(|_| wrong("the metadata document is not JSON"))?;
    if document.get("client_id").and_then(Value::as_str) != Some(address) {
        return Err(wrong(
            "the metadata document's client_id is not its own address",
        ));
    }
    let metadata = read_metadata(&document)?;
    let Some(origin) = WebAddress::parse(address).map(|parsed| parsed.origin()) else {
        return Err(wrong(
            "the metadata document's address is not a web address",
        ));
    };
    for uri in &metadata.redirect_uris {
        let own = WebAddress::parse(uri)
            .is_some_and(|parsed| parsed.is_loopback() || parsed.origin() == origin);
        if !own {
            return Err(OAuthError::invalid_redirect_uri(
                "the redirect_uris of a metadata document must be of its own origin or on loopback",
            ));
        }
    }
    Ok(metadata.into_client(client_id, ClientTrust::Document { origin }))
}

impl Issuer<'_> {
    /// Takes a document that was fetched from `address`, to be used for `max_age` within a minute and a day.
    pub fn accept_document(
        &self,
        address: &str,
        body: &[u8],
        max_age: Option<Duration>,
    ) -> Result<Client, OAuthError> {
        let client = client_in_document(address, body)?;
        for uri in &client.redirect_uris {
            self.check_redirect(uri)?;
        }
        let known = self.client_entry(address)?;
        if let Some(known) = &known
            && known.value.client.redirect_uris != client.redirect_uris
        {
            self.end_grants_of(&client.client_id)?;
        }
        let fresh = max_age.unwrap_or(SHORTEST).clamp(SHORTEST, LONGEST);
        let entry = ClientEntry {
            client: client.clone(),
            fresh_until: Some(later(self.now, fresh)),
        };
        // Remembered beyond its freshness, so that a change is noticed; for good once its client was approved.
        let used = known
            .as_ref()
            .is_some_and(|known| known.expires_at.is_none());
        let change = put(EntryKind::Client, address, &entry)
            .until((!used).then(|| later(self.now, UNUSED)))
            .expecting(known.map_or(Expect::Absent, |known| Expect::Revision(known.revision)));
        // If another request changed the entry meanwhile, its version stays; the document is only fetched once more.
        self.store.apply(&[change], self.now)?;
        Ok(client)
    }

    /// Ends every grant and package of a client. The changed document is stored after this, so that being interrupted
    /// in between only means ending them again.
    fn end_grants_of(&self, client_id: &ClientId) -> Result<(), StoreError> {
        for package in self.store.packages()? {
            if package.client_id == *client_id && package.revoked.is_none() {
                self.store
                    .revoke(Revocable::Package(&package.id), self.now)?;
            }
        }
        for grant in self.store.grants()? {
            if grant.client_id == *client_id && grant.revoked.is_none() {
                self.store.revoke(Revocable::Grant(&grant.id), self.now)?;
            }
        }
        Ok(())
    }
}
