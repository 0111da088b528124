//! Drops replaced versions by the owner's rule.
//!
//! The date at which a grant last saw a record change comes from its history and must not move: a date that moved would
//! reveal changes the grant never saw. So for each member the version that changed it last stays, with the one before it,
//! and so do the first version and every one that moved the time a grant may be limited by. These are at most a few per
//! member, however often a record was replaced.

use std::collections::{BTreeSet, HashMap};

use contract::json::{RecordBody, same_value};
use contract::time::Instant;
use rusqlite::{Connection, Transaction, params};

use super::EmbeddedStore;
use super::digest::readable;
use crate::Result;
use crate::index::sources::Sources;
use crate::keeping::{Keep, Retention};

/// Records looked at in one transaction.
const AT_ONCE: usize = 256;
/// The name under which deletions and revivals are noted; no member can have it.
const PRESENCE: &str = "\0";

struct Replaced {
    number: i64,
    next_version: u64,
    /// When it was replaced, as the source dated the change.
    until: Option<Instant>,
}

impl EmbeddedStore {
    /// Drops replaced versions and returns how many.
    pub(super) fn thin_versions(&self, retention: Retention) -> Result<u64> {
        if retention.keep == Keep::All {
            return Ok(0);
        }
        let sources = self.sources();
        let (mut after, mut dropped) = (i64::MIN, 0);
        loop {
            let rows = self
                .database
                .read(|connection| revised(connection, after))?;
            let Some((last, _)) = rows.last() else {
                return Ok(dropped);
            };
            after = *last;
            dropped += self.database.transact(|transaction| {
                let mut dropped = 0;
                for (row, stream) in &rows {
                    let time = time_field(&sources, *stream);
                    dropped += thin(transaction, *row, *stream, time.as_deref(), retention)
                        .map_err(self.database.failed())?;
                }
                Ok(dropped)
            })?;
        }
    }
}

/// The next rows that were replaced, and their streams.
fn revised(connection: &Connection, after: i64) -> rusqlite::Result<Vec<(i64, i64)>> {
    connection
        .prepare_cached(
            "SELECT row_id, min(stream_id) FROM versions WHERE row_id > ?1 GROUP BY row_id ORDER BY row_id LIMIT ?2",
        )?
        .query_map(params![after, AT_ONCE], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

/// The field that grants of a stream may be limited in time by.
fn time_field(sources: &Sources, stream: i64) -> Option<String> {
    let stream_ref = &sources.by_id(stream)?.stream;
    let connection = sources.connection(&stream_ref.connection).ok()?;
    let declaration = sources.declarations.get(&connection.connector)?;
    let field = declaration
        .stream(stream_ref.stream.as_str())?
        .consent_time_field
        .as_ref()?;
    Some(field.to_string())
}

fn thin(
    transaction: &Transaction<'_>,
    row: i64,
    stream: i64,
    time: Option<&str>,
    retention: Retention,
) -> rusqlite::Result<u64> {
    let (versions, mut kept) = needed(transaction, row, time)?;
    for (at, version) in versions.iter().enumerate() {
        if retention.keeps((versions.len() - at) as u64, version.until) {
            kept.insert(at);
        }
    }
    let dropped = versions.iter().enumerate();
    let dropped: Vec<&Replaced> = dropped
        .filter_map(|(at, version)| (!kept.contains(&at)).then_some(version))
        .collect();
    let Some(latest) = dropped.iter().map(|version| version.next_version).max() else {
        return Ok(0);
    };
    for version in &dropped {
        transaction
            .prepare_cached("DELETE FROM versions WHERE rowid = ?1")?
            .execute([version.number])?;
    }
    // A bookmark before that may need versions that are gone.
    transaction
        .prepare_cached("UPDATE streams SET purged_to = max(purged_to, ?2) WHERE id = ?1")?
        .execute(params![stream, latest])?;
    Ok(dropped.len() as u64)
}

/// The replaced versions of a record, oldest first, and which of them dates depend on.
fn needed(
    connection: &Connection,
    row: i64,
    time: Option<&str>,
) -> rusqlite::Result<(Vec<Replaced>, BTreeSet<usize>)> {
    let mut statement = connection.prepare_cached(
        "SELECT rowid, version, next_version, emitted_at, data FROM versions WHERE row_id = ?1
         UNION ALL
         SELECT NULL, version, NULL, emitted_at, data FROM records WHERE row_id = ?1
         ORDER BY version",
    )?;
    let mut rows = statement.query([row])?;
    let mut versions: Vec<Replaced> = Vec::new();
    let mut before: Option<Option<RecordBody>> = None;
    let mut last_change: HashMap<String, usize> = HashMap::new();
    let mut kept = BTreeSet::from([0]);
    let mut at = 0;
    while let Some(row) = rows.next()? {
        let emitted_at = readable(row, 3)?;
        let data = readable(row, 4)?;
        // A version that cannot be parsed is damage, and not ours to drop.
        let body = RecordBody::parse(data).ok();
        if let Some(before) = &before {
            if let Some(replaced) = versions.last_mut() {
                replaced.until = Instant::parse(&emitted_at);
            }
            for name in changed(before.as_ref(), body.as_ref()) {
                if time == Some(name.as_str()) || name == PRESENCE {
                    kept.extend([at - 1, at]);
                }
                last_change.insert(name, at);
            }
        }
        before = Some(body);
        if let (Some(number), Some(next_version)) = (row.get(0)?, row.get(2)?) {
            versions.push(Replaced {
                number,
                next_version,
                until: None,
            });
        }
        at += 1;
    }
    kept.extend(last_change.values().flat_map(|at| [at - 1, *at]));
    Ok((versions, kept))
}

/// The members that differ.
fn changed(before: Option<&RecordBody>, after: Option<&RecordBody>) -> Vec<String> {
    let names = |body: Option<&RecordBody>| -> Vec<String> {
        let members = body.into_iter().flat_map(RecordBody::members);
        members.map(|(name, _)| name.to_owned()).collect()
    };
    let (Some(one), Some(other)) = (before, after) else {
        let mut all = names(before.or(after));
        all.extend((before.is_some() != after.is_some()).then(|| PRESENCE.to_owned()));
        return all;
    };
    let mut all = names(before);
    all.extend(names(after));
    all.sort_unstable();
    all.dedup();
    all.retain(|name| match (one.get(name), other.get(name)) {
        (Some(one), Some(other)) => one != other && !same_value(one, other),
        (one, other) => one.is_some() != other.is_some(),
    });
    all
}
