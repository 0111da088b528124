//! What changed since a bookmark, as far as it may be seen. A key counts once, with its state at the horizon beside the one
//! at the bookmark, both looked at through the row and the caller's conditions: so a record that left them is told like
//! one that was deleted, and a change of something hidden is told not at all.

use contract::error::{ErrorCode, ReadError};
use contract::json::{self, RecordBody};
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
use crate::failure::{Outcome, parse_stored};
use crate::project::in_envelope;
use crate::reader::{Answer, Bound, Session};
use crate::records::{Plan, page_of};

/// Part of what a token of the feed is bound to.
const ORDER: &str = "changes";

/// Entries read at a time; many of them may not be for this reader.
const CHUNK: usize = 256;

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
    let limit = usize::try_from(plan.query.limit.effective()).unwrap_or(usize::MAX);
    let stream = row.stream_ref();
    let mut shown = Shown::of(row);
    shown.fields(plan.shape.names(row));
    let mut data: Vec<Record> = Vec::new();
    let mut last_shown = since;
    let (horizon, has_more) = 'pages: loop {
        let page = session.store.changes(
            &stream,
            &ChangesRequest {
                since,
                until,
                after,
                limit: CHUNK,
            },
        )?;
        until = Some(page.until);
        for entry in &page.entries {
            after = entry.version;
            let Some(record) = told(session, plan, since, entry)? else {
                continue;
            };
            // Only now is it known that there is more; a page that promised more for hidden changes would tell of them.
            if data.len() == limit {
                break 'pages (page.until, true);
            }
            last_shown = entry.version;
            shown.record(row, &entry.key);
            data.push(record);
        }
        if !page.has_more {
            break (page.until, false);
        }
    };
    let bound = Bound::new(&plan.query.filters, ORDER);
    let tokens = session.row_tokens(row, &bound);
    let mut page = page_of(plan, data);
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

/// What a reader is told about one key: its new state, that it is gone, or nothing.
fn told(
    session: &Session,
    plan: &Plan<'_>,
    since: u64,
    entry: &ChangeEntry,
) -> Outcome<Option<Record>> {
    let row = &plan.row;
    if !row.admits_key(&entry.key) {
        return Ok(None);
    }
    let previous = visible(plan, &entry.key, entry.previous.as_ref())?;
    let current = visible(plan, &entry.key, entry.current.as_ref())?;
    let Some(current) = current else {
        if previous.is_none() {
            return Ok(None);
        }
        let gone_at = gone_at(session, plan, since, entry)?;
        let stream = row.stream().name.as_str();
        let tombstone = Record::tombstone(stream, entry.key.as_str(), gone_at);
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
        .record(row, &entry.key, &entry.emitted_at, &current)
        .map(Some)
}

/// When a record went out of sight. What happened to it after that was not for this reader, dates included.
fn gone_at(session: &Session, plan: &Plan<'_>, since: u64, entry: &ChangeEntry) -> Outcome<String> {
    let stream = plan.row.stream_ref();
    let revisions = session
        .store
        .history(&stream, &entry.key, (since, entry.version))?;
    let mut gone_at = None;
    for revision in revisions {
        if visible(plan, &entry.key, revision.body.as_ref())?.is_some() {
            gone_at = None;
        } else {
            gone_at.get_or_insert(revision.emitted_at);
        }
    }
    Ok(gone_at.unwrap_or_else(|| entry.emitted_at.clone()))
}

fn visible(plan: &Plan<'_>, key: &RecordKey, body: Option<&String>) -> Outcome<Option<RecordBody>> {
    let Some(body) = body else {
        return Ok(None);
    };
    let body = parse_stored(body.clone())?;
    let visible = plan.row.admits(key, &body) && plan.conditions.pass(&body);
    Ok(visible.then_some(body))
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
