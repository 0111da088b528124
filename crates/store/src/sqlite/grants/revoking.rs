//! The end of grants, packages, tokens and families of tokens, as rows.

use contract::time::Instant;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::grants::{Revocation, RevocationReason, Revoked};
use crate::registry::EntryKind;

pub(super) fn revoke_grant(
    transaction: &Transaction<'_>,
    id: &str,
    revocation: Revocation,
) -> rusqlite::Result<Revoked> {
    let revoked = known_end(transaction, "grants", id)?;
    if revoked == Revoked::Now {
        transaction.execute(
            "UPDATE grants SET revoked_at = ?2, revoked_reason = ?3 WHERE id = ?1",
            params![id, revocation.at.0, revocation.reason.as_str()],
        )?;
    }
    Ok(revoked)
}

pub(super) fn revoke_package(
    transaction: &Transaction<'_>,
    id: &str,
    revocation: Revocation,
) -> rusqlite::Result<Revoked> {
    let revoked = known_end(transaction, "packages", id)?;
    let values = params![id, revocation.at.0, revocation.reason.as_str()];
    if revoked == Revoked::Now {
        transaction.execute(
            "UPDATE packages SET revoked_at = ?2, revoked_reason = ?3 WHERE id = ?1",
            values,
        )?;
    }
    transaction.execute(
        "UPDATE grants SET revoked_at = ?2, revoked_reason = ?3 WHERE package_id = ?1 AND revoked_at IS NULL",
        values,
    )?;
    Ok(revoked)
}

pub(super) fn revoke_token(
    transaction: &Transaction<'_>,
    id: &str,
    at: Instant,
) -> rusqlite::Result<Revoked> {
    let revoked = known_end(transaction, "tokens", id)?;
    if revoked == Revoked::Now {
        let sql = "UPDATE tokens SET revoked_at = ?2 WHERE id = ?1";
        transaction.execute(sql, params![id, at.0])?;
    }
    Ok(revoked)
}

pub(super) fn revoke_family(
    transaction: &Transaction<'_>,
    family: &str,
    at: Instant,
) -> rusqlite::Result<Revoked> {
    transaction.execute(
        "UPDATE tokens SET revoked_at = ?2 WHERE family = ?1 AND revoked_at IS NULL",
        params![family, at.0],
    )?;
    transaction.execute(
        "DELETE FROM registry WHERE kind = ?1 AND key = ?2",
        params![EntryKind::Refresh.as_str(), family],
    )?;
    let reason = RevocationReason::TokensEnded;
    let revocation = Revocation { at, reason };
    let mut revoked = Revoked::Unknown;
    for subject in subjects_of(transaction, family, at)? {
        revoked = match &subject {
            Subject::Grant(id) => revoke_grant(transaction, id, revocation)?,
            Subject::Package(id) => revoke_package(transaction, id, revocation)?,
        };
    }
    Ok(revoked)
}

pub(super) enum Subject {
    Grant(String),
    Package(String),
}

/// What the tokens of a family are for, unless it has ended.
pub(super) fn subjects_of(
    connection: &Connection,
    family: &str,
    at: Instant,
) -> rusqlite::Result<Vec<Subject>> {
    let mut statement = connection.prepare_cached(
        "SELECT DISTINCT grant_id, package_id FROM tokens WHERE family = ?1 AND EXISTS (
             SELECT 1 FROM grants WHERE (grants.id = tokens.grant_id OR grants.package_id = tokens.package_id)
             AND grants.revoked_at IS NULL AND (grants.expires_at IS NULL OR grants.expires_at > ?2))",
    )?;
    let mut rows = statement.query(params![family, at.0])?;
    let mut subjects = Vec::new();
    while let Some(row) = rows.next()? {
        let (grant, package): (Option<String>, Option<String>) = (row.get(0)?, row.get(1)?);
        subjects.extend(grant.map(Subject::Grant));
        subjects.extend(package.map(Subject::Package));
    }
    Ok(subjects)
}

/// What ending a row of a table does: `Now` where it has not ended yet.
pub(super) fn known_end(
    connection: &Connection,
    table: &str,
    id: &str,
) -> rusqlite::Result<Revoked> {
    let ended: Option<Option<i64>> = connection
        .prepare_cached(&format!("SELECT revoked_at FROM {table} WHERE id = ?1"))?
        .query_row([id], |row| row.get(0))
        .optional()?;
    Ok(match ended {
        None => Revoked::Unknown,
        Some(Some(before)) => Revoked::Already(Instant(before)),
        Some(None) => Revoked::Now,
    })
}
