//! What removing a connection does to a grant: it loses the connection's rows, and one that has none left has ended.
//!
//! Ids of connections can come back, so a row that stayed behind could one day give data nobody consented to.

use contract::grant::{Grant, GrantDocument};
use contract::id::ConnectionId;

pub(crate) enum Narrowed {
    Untouched,
    To(String),
    /// Nothing is left, or the document cannot be parsed.
    ToNothing,
}

pub(crate) fn without(document: &str, id: &ConnectionId) -> Narrowed {
    let Ok(grant) = serde_json::from_str::<Grant>(document) else {
        return Narrowed::ToNothing;
    };
    let mut narrowed = GrantDocument::from(grant);
    let mut touched = false;
    for stream in &mut narrowed.streams {
        let before = stream.instance_ids.len();
        stream.instance_ids.retain(|connection| connection != id);
        touched |= stream.instance_ids.len() < before;
    }
    if !touched {
        return Narrowed::Untouched;
    }
    narrowed
        .streams
        .retain(|stream| !stream.instance_ids.is_empty());
    Grant::try_from(narrowed)
        .ok()
        .and_then(|grant| serde_json::to_string(&grant).ok())
        .map_or(Narrowed::ToNothing, Narrowed::To)
}
