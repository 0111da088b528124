//! What removing a connection does to grants: they lose its rows, and one that has none left is revoked.

use contract::id::ConnectionId;
use contract::time::Instant;
use rusqlite::{Transaction, params};

use crate::grants::RevocationReason;
use crate::narrowing::{Narrowed, without};

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
                    params![grant, at.0, RevocationReason::ConnectionRemoved.as_str()],
                )?;
            }
        }
    }
    Ok(())
}
