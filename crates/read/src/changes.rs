//! What changed since a bookmark, as far as it may be seen. A key counts once, with its state at the horizon beside the one
//! at the bookmark, both looked at through the row and the caller's conditions: so a record that left them is told like
//! one that was deleted, and a change of something hidden is told not at all. Nor does it move what is told: a key has its
//! place and its date from the last change that was seen.

use std::collections::HashMap;

use contract::error::{ErrorCode, ReadError};
use contract::json;
use contract::key::RecordKey;
use contract::page::Page;
use contract::query::{ChangesSince, Count, ListOptions};
use contract::record::Record;
use contract::seal::CursorError;
use contract::wire::Nullable;
use store::records::{ChangeEntry, ChangesRequest};

use crate::conditions::refused;
use crate::cursor::ChangesPosition;
use crate::disclosure::Shown;
use crate::failure::Outcome;
use crate::project::in_envelope;
use crate::reader::{Answer, Bound, Session};
use crate::records::{Filling, Plan, page_of};
use crate::sight::{Seen, last_change, visible};

/// Part of what a token of the feed is bound to.
const ORDER: &str = "changes";

/// Entries read at a time; many of them may not be for this reader.
const CHUNK: usize = 256;

/// Keys whose place is remembered within one request.
const REMEMBERED_KEYS: usize = 4096;

/// The version at which a key is told, for keys that have several.
type Places = HashMap<RecordKey, Option<u64>>;

/// Starts a reading.
pub(crate) fn start(
    session: &Session,
    plan: &Plan<'_>,
    since: &ChangesSince,
) -> Answer<Page<Record>> {
    let bound = Bound::new(&plan.query.filters, ORDER);
    let tokens = session.row_tokens(&plan.row, &bound);
    let since = match since {
        ChangesSince::Beginning => 0,
        ChangesSince::Bookmark(token) => tokens.open_bookmark(token).map_err(invalid_bookmark)?,
        ChangesSince::Page(token) => return go_on(session, plan, tokens.open_changes(token)?),
    };
    read(session, plan, (since, None, since))
}

/// Goes on with a reading.
pub(crate) fn go_on(
    session: &Session,
    plan: &Plan<'_>,
    at: ChangesPosition,
) -> Answer<Page<Record>> {
    read(session, plan, (at.since, Some(at.until), at.after))
}

/// The position a list's cursor holds, if it is one of a reading of changes. Such a reading has no other options.
pub(crate) fn position_in(
    session: &Session,
    plan: &Plan<'_>,
    options: &ListOptions,
) -> Outcome<Option<ChangesPosition>> {
    let Some(cursor) = &options.cursor else {
        return Ok(None);
    };
    let bound = Bound::new(&plan.query.filters, ORDER);
    let opened = session.row_tokens(&plan.row, &bound).open_changes(cursor);
    let Ok(position) = opened else {
        return Ok(None);
    };
    if !options.expand.is_empty() {
        let message = "expand is not supported in a reading of changes";
        return Err(ReadError::new(ErrorCode::InvalidExpand, message)
            .with_param("expand")
            .into());
    }
    let unsupported = [
        ("sort", options.sort.is_some()),
        ("order", options.order.is_some()),
        ("count", options.count != Count::None),
        ("window", options.time_span),
    ];
    match unsupported.into_iter().find(|(_, given)| *given) {
        Some((param, _)) => {
            let message = format!("{param} is not supported in a reading of changes");
            Err(refused(param, message).into())
        }
        None => Ok(Some(position)),
    }
}

fn read(
    session: &Session,
    plan: &Plan<'_>,
    (since, mut until, mut after): (u64, Option<u64>, u64),
) -> Answer<Page<Record>> {
    let row = &plan.row;
    let stream = row.stream_ref();
    let mut shown = Shown::of(row);
    shown.fields(plan.shape.names(row));
    let mut filling = Filling::new(plan);
    let mut last_shown = since;
    let mut places = Places::new();
    // To the owner every version is a change, so that the last one of each key is the place to tell it.
    let every_version = !(row.is_owner() && plan.conditions.is_empty());
    let (horizon, has_more) = 'pages: loop {
        let page = session.store.changes(
            &stream,
            &ChangesRequest {
                since,
                until,
                after,
                every_version,
                limit: CHUNK,
            },
        )?;
        until = Some(page.until);
        for mut entry in page.entries {
            after = entry.version;
            let record = told(session, plan, (&mut entry, page.until), &mut places)?;
            let Some(record) = record else {
                continue;
            };
            // Only now is it known that there is more; a page that promised more for hidden changes would tell of them.
            if !filling.add(record) {
                break 'pages (page.until, true);
            }
            last_shown = entry.version;
            shown.record(row, &entry.key);
        }
        if !page.has_more {
            break (page.until, false);
        }
    };
    let bound = Bound::new(&plan.query.filters, ORDER);
    let tokens = session.row_tokens(row, &bound);
    let mut page = page_of(plan, filling.data);
    if has_more {
        page = page.continued(tokens.changes(ChangesPosition {
            since,
            until: horizon,
            after: last_shown,
        })?);
    }
    page.next_changes_since = Nullable::Value(tokens.bookmark(horizon)?);
    Ok((page, shown))
}

/// What a reader is told at one version of a key: its new state, that it is gone, or nothing.
fn told(
    session: &Session,
    plan: &Plan<'_>,
    (entry, until): (&mut ChangeEntry, u64),
    places: &mut Places,
) -> Outcome<Option<Record>> {
    let row = &plan.row;
    if !row.admits_key(&entry.key) {
        return Ok(None);
    }
    let Some(seen) = seen(session, plan, (entry, until), places)? else {
        return Ok(None);
    };
    let previous = entry.previous.take();
    let previous = visible(row, &plan.conditions, &entry.key, previous)?;
    let Some(current) = seen.body else {
        if previous.is_none() {
            return Ok(None);
        }
        let stream = row.stream().name.as_str();
        let tombstone = Record::tombstone(stream, entry.key.as_str(), seen.emitted_at);
        return Ok(Some(in_envelope(row, tombstone)));
    };
    if let Some(previous) = previous {
        let before = plan.shape.project(row, &previous);
        let now = plan.shape.project(row, &current);
        if json::same_value(&before, &now) {
            return Ok(None);
        }
    }
    plan.shape
        .record(row, &entry.key, &seen.emitted_at, current)
        .map(Some)
}

/// The last change up to the horizon that was seen of the entry's key, if the entry is that change.
fn seen(
    session: &Session,
    plan: &Plan<'_>,
    (entry, until): (&mut ChangeEntry, u64),
    places: &mut Places,
) -> Outcome<Option<Seen>> {
    let current = entry.current.take();
    if !entry.revised {
        let body = visible(&plan.row, &plan.conditions, &entry.key, current)?;
        return Ok(Some(Seen {
            version: entry.version,
            emitted_at: entry.emitted_at.clone(),
            body,
        }));
    }
    drop(current);
    if let Some(place) = places.get(&entry.key)
        && *place != Some(entry.version)
    {
        return Ok(None);
    }
    let seen = last_change(session, &plan.row, &plan.conditions, (&entry.key, until))?;
    if places.len() == REMEMBERED_KEYS {
        places.clear();
    }
    let place = seen.as_ref().map(|seen| seen.version);
    places.insert(entry.key.clone(), place);
    Ok(seen.filter(|_| place == Some(entry.version)))
}

fn invalid_bookmark(error: CursorError) -> ReadError {
    let problem = match error {
        CursorError::Malformed => "Malformed changes_since cursor",
        CursorError::Foreign => "The changes_since cursor does not belong to this request",
        CursorError::Payload => return ReadError::internal(),
    };
    let message = format!(
        "{problem}; pass `beginning` to bootstrap or the `next_changes_since` value returned by a prior read of this stream"
    );
    ReadError::new(ErrorCode::InvalidCursor, message).with_param("changes_since")
}
