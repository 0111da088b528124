//! Takes a removed connection out of every grant; one that has no rows left is revoked.

use contract::id::ConnectionId;
use contract::time::Instant;

use super::PostgresStore;
use crate::Result;
use crate::grants::RevocationReason;
use crate::narrowing::{Narrowed, without};
use crate::postgres::pool::Tx;

impl PostgresStore {
    /// Within the transaction that removes the connection, after its row is locked: an approval that names the connection is
    /// then either seen here or refused.
    pub(in crate::postgres) fn forget_connection(
        &self,
        tx: &Tx<'_>,
        id: &ConnectionId,
        at: Instant,
    ) -> Result<()> {
        let live = tx.query(
            "SELECT id, document FROM grants WHERE owner_id = $1 AND revoked_at IS NULL ORDER BY id FOR UPDATE",
            &[&self.owner],
        )?;
        for row in &live {
            let grant: &str = row.get(0)?;
            match without(row.get(1)?, id) {
                Narrowed::Untouched => {}
                Narrowed::To(document) => {
                    tx.execute(
                        "UPDATE grants SET document = $3, narrowed_at = $4 WHERE owner_id = $1 AND id = $2",
                        &[&self.owner, &grant, &document, &at.0],
                    )?;
                }
                Narrowed::ToNothing => {
                    let reason = RevocationReason::ConnectionRemoved.as_str();
                    tx.execute(
                        "UPDATE grants SET revoked_at = $3, revoked_reason = $4 WHERE owner_id = $1 AND id = $2",
                        &[&self.owner, &grant, &at.0, &reason],
                    )?;
                }
            }
        }
        Ok(())
    }
}
