//! The history of records as a row sees it. A version that changed only hidden fields does not exist for the row: it sets
//! no date, changes no order and is announced nowhere. Everything that says when a record changed gets it from here.

use contract::json::{self, RecordBody};
use contract::key::RecordKey;
use contract::time::Instant;
use store::StoreError;
use store::records::{ChangesRequest, Revision, StoredRecord};

use crate::conditions::Conditions;
use crate::enforce::Row;
use crate::failure::{Failure, Result, parse_stored};
use crate::project::{Shape, admitted};
use crate::reader::Session;
use crate::related;

const NEWEST: u64 = i64::MAX.cast_unsigned();

/// Revisions read at a time: the newest with the one before it, which nearly always differ, then more.
const FEW: usize = 2;
const MORE: usize = 64;

/// Records looked at to find out whether anything visible changed, or which visible change was the latest.
const LOOKS: usize = 4096;

/// A version that changed what the row sees of a record.
pub(crate) struct Seen {
    pub(crate) version: u64,
    pub(crate) emitted_at: String,
    /// The record since that version; `None` where it became invisible.
    pub(crate) body: Option<RecordBody>,
}

/// A record's content, where the row and the caller's conditions let it be seen.
pub(crate) fn visible(
    row: &Row,
    conditions: &Conditions,
    key: &RecordKey,
    body: Option<String>,
) -> Result<Option<RecordBody>> {
    let Some(body) = body else {
        return Ok(None);
    };
    let body = parse_stored(body)?;
    if !row.admits(key, &body) || !conditions.pass(&body) {
        return Ok(None);
    }
    Ok(Some(row.redacted(body)?))
}

/// The last version up to a horizon that changed what the row sees of a key; `None` where it never saw it.
pub(crate) fn last_change(
    session: &Session,
    row: &Row,
    conditions: &Conditions,
    key: &RecordKey,
    upto: u64,
) -> Result<Option<Seen>> {
    let stream = row.stream_ref();
    let seen = |revision: Revision| -> Result<(Seen, Option<String>)> {
        let body = visible(row, conditions, key, revision.body)?;
        let shown = body.as_ref().map(|body| Shape::Visible.project(row, body));
        let seen = Seen {
            version: revision.version,
            emitted_at: revision.emitted_at,
            body,
        };
        Ok((seen, shown))
    };
    let mut found: Option<(Seen, Option<String>)> = None;
    let (mut upto, mut limit) = (upto.min(NEWEST), FEW);
    loop {
        let revisions = session.store.history(&stream, key, upto, limit)?;
        let complete = revisions.is_empty();
        for revision in revisions {
            upto = revision.version.saturating_sub(1);
            let (earlier, shown) = seen(revision)?;
            match found {
                Some((later, now)) if !same(shown.as_deref(), now.as_deref()) => {
                    return Ok(Some(later));
                }
                _ => found = Some((earlier, shown)),
            }
        }
        if complete {
            // Before its first version a record did not exist.
            return Ok(found
                .filter(|(_, shown)| shown.is_some())
                .map(|(seen, _)| seen));
        }
        limit = MORE;
    }
}

fn same(one: Option<&str>, other: Option<&str>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => one == other || json::same_value(one, other),
        _ => false,
    }
}

/// When a record became what the row sees of it.
pub(crate) fn emitted_at(session: &Session, row: &Row, stored: &StoredRecord) -> Result<String> {
    if row.is_owner() || !stored.revised {
        return Ok(stored.emitted_at.clone());
    }
    let all = Conditions::default();
    let change = last_change(session, row, &all, &stored.key, stored.version)?;
    Ok(change.map_or_else(|| stored.emitted_at.clone(), |change| change.emitted_at))
}

/// How many records a row shows, and when the latest of them became what is shown. Both are `None` while the index is being
/// built: the schema must not wait for that.
pub(crate) fn extent(session: &Session, row: &Row) -> Result<(Option<u64>, Option<String>)> {
    let mut latest = Latest {
        session,
        row,
        found: None,
    };
    let (records, complete) = match latest.look_by_date() {
        Err(Failure::Store(StoreError::IndexBuilding { .. })) => return Ok((None, None)),
        looked => looked?,
    };
    let complete = complete && (row.is_owner() || latest.look_at_redated()?);
    // Where thousands of the latest changes were all hidden, no date is given: any date would depend on how many they were.
    let found = latest.found.filter(|_| complete);
    Ok((Some(records), found.map(|(_, shown)| shown)))
}

/// Looks for the latest visible date. Every record has a moment that none of its dates is after; records are visited in the
/// order of these moments until the next cannot be later than the date found.
struct Latest<'a> {
    session: &'a Session,
    row: &'a Row,
    found: Option<(Instant, String)>,
}

impl Latest<'_> {
    /// Goes by the current dates of records; nearly always the first decides. Returns how many there are, and whether
    /// enough of them were visited.
    fn look_by_date(&mut self) -> Result<(u64, bool)> {
        let scope = self.row.scope(Vec::new(), Vec::new());
        let (mut looked_at, mut records) = (0, 0);
        for wanted in [1, MORE, LOOKS] {
            let extent = self.session.store.extent(&scope, wanted)?;
            records = extent.records;
            for stored in extent.latest.iter().skip(looked_at) {
                self.look(stored)?;
                if self.moment() >= Instant::parse(&stored.emitted_at) {
                    return Ok((records, true));
                }
            }
            looked_at = extent.latest.len();
            if looked_at < wanted {
                return Ok((records, true));
            }
        }
        Ok((records, false))
    }

    /// Goes by earlier dates of records, where those were later. Returns whether enough of them were visited.
    fn look_at_redated(&mut self) -> Result<bool> {
        let stream = self.row.stream_ref();
        let redated = self.session.store.redated(&stream, self.moment(), LOOKS)?;
        for (latest, stored) in &redated {
            if self.moment() >= Some(*latest) {
                return Ok(true);
            }
            self.look(stored)?;
        }
        Ok(redated.len() < LOOKS)
    }

    fn look(&mut self, stored: &StoredRecord) -> Result<()> {
        if admitted(self.row, &stored.key, stored.body.clone())?.is_some() {
            let shown = unless_damaged(emitted_at(self.session, self.row, stored))?;
            let Some(shown) = shown else { return Ok(()) };
            let moment = Instant::parse(&shown);
            if moment > self.moment() {
                self.found = moment.map(|moment| (moment, shown));
            }
        }
        Ok(())
    }

    fn moment(&self) -> Option<Instant> {
        self.found.as_ref().map(|(moment, _)| *moment)
    }
}

/// Whether anything that one of the rows sees changed after a version.
///
/// For rows that are not limited to single records, only a bounded number of changed records is visited. If all of those
/// changes were hidden, the answer is no: a missing warning is better than one that reveals many hidden writes.
pub(crate) fn changed_since<'r>(
    session: &Session,
    rows: impl Iterator<Item = &'r Row>,
    since: u64,
) -> Result<bool> {
    let mut looks = LOOKS;
    for row in rows {
        let changed = match row.keys() {
            Some(keys) => key_changed(session, row, keys.iter(), since)?,
            None => stream_changed(session, row, since, &mut looks)?,
        };
        if changed || related::moved(session, row, since)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn key_changed<'k>(
    session: &Session,
    row: &Row,
    keys: impl Iterator<Item = &'k RecordKey>,
    since: u64,
) -> Result<bool> {
    let stream = row.stream_ref();
    for key in keys {
        let newest = session.store.history(&stream, key, NEWEST, 1);
        let newest = unless_damaged(newest.map_err(Failure::from))?.unwrap_or_default();
        if newest.iter().any(|revision| revision.version > since)
            && key_changed_by(session, row, key, NEWEST)?.is_some_and(|version| version > since)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The last version up to a horizon that changed what the row sees of a key, if that can be told.
fn key_changed_by(session: &Session, row: &Row, key: &RecordKey, upto: u64) -> Result<Option<u64>> {
    let change = last_change(session, row, &Conditions::default(), key, upto);
    let change = unless_damaged(change)?.flatten();
    Ok(change.map(|change| change.version))
}

/// `None` where a record is damaged: one date or warning less is better than no answer.
fn unless_damaged<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Err(Failure::Store(StoreError::RecordDamaged { .. })) => Ok(None),
        found => found.map(Some),
    }
}

fn stream_changed(session: &Session, row: &Row, since: u64, looks: &mut usize) -> Result<bool> {
    let stream = row.stream_ref();
    let mut request = ChangesRequest::since(since, MORE);
    while *looks > 0 {
        request.limit = MORE.min(*looks);
        let page = match session.store.changes(&stream, &request) {
            Ok(page) => page,
            // A purge erased the versions to compare with; the feed of changes reveals that there was a purge as well.
            Err(StoreError::BookmarkExpired) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        *looks -= page.entries.len().min(*looks);
        for entry in &page.entries {
            let changed = key_changed_by(session, row, &entry.key, entry.version)?;
            if changed.is_some_and(|version| version > since) {
                return Ok(true);
            }
            request.after = entry.version;
        }
        request.until = Some(page.until);
        if !page.has_more {
            break;
        }
    }
    Ok(false)
}
