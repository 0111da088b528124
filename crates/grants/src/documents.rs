//! Registry entries with typed documents. A document that cannot be parsed counts as absent.

use contract::id::hex;
use contract::time::Instant;
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::Store;
use store::StoreError;
use store::registry::{Change, Entry, EntryKind};

use crate::secret::TokenHash;

pub(crate) struct Found<T> {
    pub(crate) key: String,
    pub(crate) value: T,
    pub(crate) revision: u64,
    pub(crate) expires_at: Option<Instant>,
}

/// A live entry whose document reads as a `T`.
pub(crate) fn find<T: DeserializeOwned>(
    store: &dyn Store,
    kind: EntryKind,
    key: &str,
    now: Instant,
) -> Result<Option<Found<T>>, StoreError> {
    Ok(store.entry(kind, key, now)?.and_then(typed))
}

pub(crate) fn all<T: DeserializeOwned>(
    store: &dyn Store,
    kind: EntryKind,
    now: Instant,
) -> Result<Vec<Found<T>>, StoreError> {
    const PAGE: usize = 500;
    let mut found = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = store.entries(kind, after.as_deref(), PAGE, now)?;
        let more = page.len() == PAGE;
        after = page.last().map(|entry| entry.key.clone());
        found.extend(page.into_iter().filter_map(typed));
        if !more {
            return Ok(found);
        }
    }
}

fn typed<T: DeserializeOwned>(entry: Entry) -> Option<Found<T>> {
    Some(Found {
        value: serde_json::from_str(&entry.document).ok()?,
        key: entry.key,
        revision: entry.revision,
        expires_at: entry.expires_at,
    })
}

/// Writes an entry without an end, whatever is there.
pub(crate) fn put(
    kind: EntryKind,
    key: impl Into<String>,
    document: &impl Serialize,
) -> Change<'static> {
    Change::put(kind, key, text(document))
}

pub(crate) fn text<T: Serialize>(document: &T) -> String {
    serde_json::to_string(document).expect("our documents are plain structs of texts and numbers")
}

/// The key under which a secret is found: its hash in hex digits.
pub(crate) fn key_of(secret: &str) -> String {
    hex(TokenHash::new(secret).0)
}
