//! What removing a connection does to grants: they lose its rows, and one that has none left is revoked.
//!
//! Ids of connections can come back, so a row that stayed behind could one day give data nobody consented to.

use contract::grant::{Grant, GrantDocument};
use contract::id::ConnectionId;
use contract::time::Instant;
use rusqlite::{Transaction, params};

use super::reason_name;
use crate::grants::RevocationReason;

/// Takes a connection out of every grant, within the transaction that erases it.
pub(in crate::sqlite) fn forget_connection(
    transaction: &Transaction<'_>,
    id: &ConnectionId,
    at: Instant,
) -> rusqlite::Result<()> {
    let live: Vec<(String, String)> = transaction
        .prepare("SELECT id, document FROM grants WHERE revoked_at IS NULL")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (grant, document) in live {
        match without(&document, id) {
            Narrowed::Untouched => {}
            Narrowed::To(document) => {
                transaction.execute(
                    "UPDATE grants SET document = ?2, narrowed_at = ?3 WHERE id = ?1",
                    params![grant, document, at.0],
                )?;
            }
            Narrowed::ToNothing => {
                transaction.execute(
                    "UPDATE grants SET revoked_at = ?2, revoked_reason = ?3 WHERE id = ?1",
                    params![
                        grant,
                        at.0,
                        reason_name(RevocationReason::ConnectionRemoved)
                    ],
                )?;
            }
        }
    }
    Ok(())
}

enum Narrowed {
    Untouched,
    To(String),
    /// Nothing is left, or the document cannot be parsed.
    ToNothing,
}

fn without(document: &str, id: &ConnectionId) -> Narrowed {
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
