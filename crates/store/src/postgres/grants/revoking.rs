//! The end of grants, packages, tokens and families of tokens.

use contract::time::Instant;

use super::PostgresStore;
use crate::Result;
use crate::grants::{Revocable, Revocation, RevocationReason, Revoked};
use crate::postgres::pool::Tx;
use crate::registry::EntryKind;

impl PostgresStore {
    pub(super) fn end(&self, tx: &Tx<'_>, what: Revocable<'_>, at: Instant) -> Result<Revoked> {
        let by_owner = Revocation::by_owner(at);
        match what {
            Revocable::Grant(id) => self.end_grant(tx, id.as_str(), by_owner),
            Revocable::Package(id) => self.end_package(tx, id.as_str(), by_owner),
            Revocable::Token(id) => self.end_token(tx, id, at),
            Revocable::Family(id) => self.end_family(tx, id, at),
        }
    }

    fn end_grant(&self, tx: &Tx<'_>, id: &str, revocation: Revocation) -> Result<Revoked> {
        let revoked = self.known_end(tx, "grants", id)?;
        if revoked == Revoked::Now {
            tx.execute(
                "UPDATE grants SET revoked_at = $3, revoked_reason = $4 WHERE owner_id = $1 AND id = $2",
                &[&self.owner, &id, &revocation.at.0, &revocation.reason.as_str()],
            )?;
        }
        Ok(revoked)
    }

    fn end_package(&self, tx: &Tx<'_>, id: &str, revocation: Revocation) -> Result<Revoked> {
        let revoked = self.known_end(tx, "packages", id)?;
        let reason = revocation.reason.as_str();
        if revoked == Revoked::Now {
            tx.execute(
                "UPDATE packages SET revoked_at = $3, revoked_reason = $4 WHERE owner_id = $1 AND id = $2",
                &[&self.owner, &id, &revocation.at.0, &reason],
            )?;
        }
        tx.execute(
            "UPDATE grants SET revoked_at = $3, revoked_reason = $4
             WHERE owner_id = $1 AND package_id = $2 AND revoked_at IS NULL",
            &[&self.owner, &id, &revocation.at.0, &reason],
        )?;
        Ok(revoked)
    }

    fn end_token(&self, tx: &Tx<'_>, id: &str, at: Instant) -> Result<Revoked> {
        let revoked = self.known_end(tx, "tokens", id)?;
        if revoked == Revoked::Now {
            tx.execute(
                "UPDATE tokens SET revoked_at = $3 WHERE owner_id = $1 AND id = $2",
                &[&self.owner, &id, &at.0],
            )?;
        }
        Ok(revoked)
    }

    fn end_family(&self, tx: &Tx<'_>, family: &str, at: Instant) -> Result<Revoked> {
        tx.execute(
            "UPDATE tokens SET revoked_at = $3 WHERE owner_id = $1 AND family = $2 AND revoked_at IS NULL",
            &[&self.owner, &family, &at.0],
        )?;
        tx.execute(
            "DELETE FROM registry WHERE owner_id = $1 AND kind = $2 AND key = $3",
            &[&self.owner, &EntryKind::Refresh.as_str(), &family],
        )?;
        let subjects = tx.query(
            "SELECT DISTINCT grant_id, package_id FROM tokens t WHERE owner_id = $1 AND family = $2 AND EXISTS (
                 SELECT 1 FROM grants g WHERE g.owner_id = t.owner_id
                 AND (g.id = t.grant_id OR g.package_id = t.package_id)
                 AND g.revoked_at IS NULL AND (g.expires_at IS NULL OR g.expires_at > $3))",
            &[&self.owner, &family, &at.0],
        )?;
        let reason = RevocationReason::TokensEnded;
        let revocation = Revocation { at, reason };
        let mut revoked = Revoked::Unknown;
        for row in &subjects {
            if let Some(id) = row.get(0)? {
                revoked = self.end_grant(tx, id, revocation)?;
            }
            if let Some(id) = row.get(1)? {
                revoked = self.end_package(tx, id, revocation)?;
            }
        }
        Ok(revoked)
    }

    /// What ending a row of a table does: `Now` where it has not ended yet. The row stays locked, so of several who end it at
    /// once one does.
    fn known_end(&self, tx: &Tx<'_>, table: &str, id: &str) -> Result<Revoked> {
        let sql =
            format!("SELECT revoked_at FROM {table} WHERE owner_id = $1 AND id = $2 FOR UPDATE");
        let Some(row) = tx.query_opt(&sql, &[&self.owner, &id])? else {
            return Ok(Revoked::Unknown);
        };
        Ok(match row.get(0)? {
            Some(before) => Revoked::Already(Instant(before)),
            None => Revoked::Now,
        })
    }
}
