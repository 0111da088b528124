//! The chain, recomputed from the first entry that is there to the last.

use contract::id::GrantId;
use rusqlite::{Connection, params};

use super::cut::Entry;
use super::{END, Head, START, bytes, stored_head};
use crate::grants::{ChainBreak, ChainCheck};

pub(super) fn check(connection: &Connection) -> rusqlite::Result<ChainCheck> {
    let mut statement =
        connection.prepare("SELECT sequence, entry, hash FROM disclosures ORDER BY sequence")?;
    let mut rows = statement.query([])?;
    let start = stored_head(connection, START)?.unwrap_or(Head::EMPTY);
    let broken = |intact: Head, reason: String| broken(start, intact, reason);
    let mut head = start;
    let mut cut = None;
    let mut named = 0_u64;
    while let Some(row) = rows.next()? {
        let found: i64 = row.get(0)?;
        let entry = bytes(row, 1)?.unwrap_or_default();
        let next = head.extended(entry);
        if u64::try_from(found) != Ok(next.sequence) {
            return Ok(broken(
                head,
                format!("the entry is missing; the next is {found}"),
            ));
        }
        if bytes(row, 2)? != Some(next.hash.as_slice()) {
            return Ok(broken(
                head,
                "the entry, or one before it, is not what was written".to_owned(),
            ));
        }
        let entry = Entry::read(entry);
        match findable(connection, next.sequence, entry.as_ref().ok())? {
            Some(grants) => named += grants,
            None => {
                return Ok(broken(
                    head,
                    "the entry is not listed under its grants".to_owned(),
                ));
            }
        }
        if let Ok(Entry::Cut(found)) = entry {
            cut = Some(found);
        }
        head = next;
    }
    if start != Head::EMPTY && !cut.is_some_and(|cut| cut.is_after(start)) {
        let last = start.sequence;
        return Ok(broken(
            start,
            format!(
                "the entries up to {last} are missing, and the log does not say that they were dropped"
            ),
        ));
    }
    check_end(connection, start, head, named)
}

/// Whether the last entry is the one written last, and the lists by grant hold no entry that is not in the log.
fn check_end(
    connection: &Connection,
    start: Head,
    head: Head,
    named: u64,
) -> rusqlite::Result<ChainCheck> {
    let written = stored_head(connection, END)?;
    let broken = |intact: Head, reason: String| broken(start, intact, reason);
    if written.unwrap_or(Head::EMPTY) != head {
        let last = written.map_or(0, |written| written.sequence);
        return Ok(broken(
            head,
            format!("the log ends here, but the last entry written has number {last}"),
        ));
    }
    let listed: u64 =
        connection.query_row("SELECT count(*) FROM disclosures_by_grant", [], |row| {
            row.get(0)
        })?;
    if listed != named {
        return Ok(broken(
            head,
            "grants are listed with entries that do not name them".to_owned(),
        ));
    }
    Ok(ChainCheck {
        entries: head.sequence.saturating_sub(start.sequence),
        dropped: start.sequence,
        waiting: 0,
        broken: None,
    })
}

/// How many grants an entry names, if it is listed under each of them.
fn findable(
    connection: &Connection,
    sequence: u64,
    entry: Option<&Entry>,
) -> rusqlite::Result<Option<u64>> {
    let disclosure = match entry {
        Some(Entry::Disclosure(disclosure)) => disclosure,
        Some(Entry::Cut(_)) => return Ok(Some(0)),
        None => return Ok(None),
    };
    let mut grants: Vec<&str> = disclosure.grant_ids.iter().map(GrantId::as_str).collect();
    grants.sort_unstable();
    grants.dedup();
    let mut statement = connection.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM disclosures_by_grant WHERE grant_id = ?1 AND sequence = ?2)",
    )?;
    for grant in &grants {
        if !statement.query_row(params![grant, sequence], |row| row.get::<_, bool>(0))? {
            return Ok(None);
        }
    }
    Ok(Some(grants.len() as u64))
}

fn broken(start: Head, intact: Head, reason: String) -> ChainCheck {
    ChainCheck {
        entries: intact.sequence.saturating_sub(start.sequence),
        dropped: start.sequence,
        waiting: 0,
        broken: Some(ChainBreak {
            sequence: intact.sequence + 1,
            reason,
        }),
    }
}
