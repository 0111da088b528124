//! What changed since a bookmark, as far as the row may see it. Each key is reported once: its state at the horizon is
//! compared with its state at the bookmark, both seen through the row and the caller's conditions. A record that left them
//! is reported like a deleted one, and a change to hidden fields is not reported at all; it does not change the order or
//! the date of what is reported either, because both come from the last visible change of the key.

use std::collections::HashMap;

use contract::error::{ErrorCode, ReadError};
use contract::json;
use contract::key::RecordKey;
use contract::page::Page;
use contract::query::{ChangesSince, Count, ListOptions};
use contract::record::Record;
use contract::seal::CursorError;
use contract::wire::Nullable;
use store::StoreError;
use store::records::{ChangeEntry, ChangesRequest};

use crate::conditions::refused;
use crate::cursor::ChangesPosition;
use crate::disclosure::Shown;
use crate::failure::Result;
use crate::project::in_envelope;
use crate::reader::{Answer, Bound, Session};
use crate::records::{Filling, Plan, page_of};
use crate::related;
use crate::visible_history::{Seen, last_change, visible};

/// Part of what a token of the feed is bound to.
const ORDER: &str = "changes";

/// Entries read at a time; many of them may not be for this reader.
const CHUNK: usize = 256;

/// Keys whose last visible change is remembered within one request.
const REMEMBERED_KEYS: usize = 4096;

/// The version of the last visible change of a key, for keys that have several.
type LastChanges = HashMap<RecordKey, Option<u64>>;

/// The part of the feed that a request reads: changes after `after`, compared with the state at `since`.
#[derive(Clone, Copy)]
struct Span {
    since: u64,
    /// The last version that counts; the newest one where the feed is not continued.
    until: Option<u64>,
    after: u64,
}

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
    if since > 0 && related::moved(session, &plan.row, since)? {
        return Err(StoreError::BookmarkExpired.into());
    }
    let span = Span {
        since,
        until: None,
        after: since,
    };
    read(session, plan, span)
}

/// Goes on with a reading.
pub(crate) fn go_on(
    session: &Session,
    plan: &Plan<'_>,
    at: ChangesPosition,
) -> Answer<Page<Record>> {
    let span = Span {
        since: at.since,
        until: Some(at.until),
        after: at.after,
    };
    read(session, plan, span)
}

/// The position in a list's cursor, if the cursor continues a feed of changes. Such a feed takes no other options.
pub(crate) fn position_in(
    session: &Session,
    plan: &Plan<'_>,
    options: &ListOptions,
) -> Result<Option<ChangesPosition>> {
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

fn read(session: &Session, plan: &Plan<'_>, span: Span) -> Answer<Page<Record>> {
    let Span {
        since,
        mut until,
        mut after,
    } = span;
    let row = &plan.row;
    let stream = row.stream_ref();
    let mut shown = Shown::for_row(row);
    shown.fields(plan.shape.names(row));
    let mut filling = Filling::new(session, plan);
    let mut last_shown = since;
    let mut last_changes = LastChanges::new();
    // The owner sees every version, so the last version of each key is the one to report.
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
            if entry.is_damaged {
                shown.damaged.note(row, &entry.key);
                continue;
            }
            let record = reported(session, plan, &mut entry, page.until, &mut last_changes);
            let record = shown.damaged.pass_over(record, (row, &entry.key))?;
            let Some(record) = record.flatten() else {
                continue;
            };
            // `has_more` is only decided by a visible change: announcing more for hidden ones would reveal them.
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
    shown.damaged.warn(&mut page);
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

/// The entry of the feed for one version of a key: its new state, a tombstone, or `None` where nothing visible changed.
fn reported(
    session: &Session,
    plan: &Plan<'_>,
    entry: &mut ChangeEntry,
    until: u64,
    last_changes: &mut LastChanges,
) -> Result<Option<Record>> {
    let row = &plan.row;
    if !row.admits_key(&entry.key) {
        return Ok(None);
    }
    let Some(seen) = seen(session, plan, entry, until, last_changes)? else {
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

/// The last visible change of the entry's key up to the horizon, if the entry is that change.
fn seen(
    session: &Session,
    plan: &Plan<'_>,
    entry: &mut ChangeEntry,
    until: u64,
    last_changes: &mut LastChanges,
) -> Result<Option<Seen>> {
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
    if let Some(last) = last_changes.get(&entry.key)
        && *last != Some(entry.version)
    {
        return Ok(None);
    }
    let seen = last_change(session, &plan.row, &plan.conditions, &entry.key, until)?;
    if last_changes.len() == REMEMBERED_KEYS {
        last_changes.clear();
    }
    let last = seen.as_ref().map(|seen| seen.version);
    last_changes.insert(entry.key.clone(), last);
    Ok(seen.filter(|_| last == Some(entry.version)))
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
