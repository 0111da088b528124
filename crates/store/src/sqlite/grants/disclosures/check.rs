//! The chain, recomputed from the first entry that is there to the last.

use rusqlite::{Connection, params};

use super::{END, Head, START, bytes, stored_head};
use crate::disclosure_log::{Checking, Logged};
use crate::grants::ChainCheck;

pub(super) fn check(connection: &Connection) -> rusqlite::Result<ChainCheck> {
    let start = stored_head(connection, START)?.unwrap_or(Head::EMPTY);
    let mut checking = Checking::from(start);
    let mut statement =
        connection.prepare("SELECT sequence, entry, hash FROM disclosures ORDER BY sequence")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let found = Logged {
            sequence: row.get(0)?,
            entry: bytes(row, 1)?.unwrap_or_default(),
            hash: bytes(row, 2)?,
        };
        let is_listed = |grants: &[&str]| is_listed(connection, found.sequence, grants);
        if let Some(broken) = checking.take(found, is_listed)? {
            return Ok(broken);
        }
    }
    let listed = connection.query_row("SELECT count(*) FROM disclosures_by_grant", [], |row| {
        row.get(0)
    })?;
    Ok(checking.finish(stored_head(connection, END)?, listed))
}

/// Whether an entry is listed under each of these grants.
fn is_listed(connection: &Connection, sequence: i64, grants: &[&str]) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM disclosures_by_grant WHERE grant_id = ?1 AND sequence = ?2)",
    )?;
    for grant in grants {
        if !statement.query_row(params![grant, sequence], |row| row.get::<_, bool>(0))? {
            return Ok(false);
        }
    }
    Ok(true)
}
