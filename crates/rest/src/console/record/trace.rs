//! What has become of a record: how it changed, and which clients were shown it. For the owner alone.

use std::collections::BTreeSet;

use contract::handle::RecordHandle;
use contract::id::ClientId;
use contract::key::RecordKey;
use contract::wire::OrderedMap;
use serde_json::value::RawValue;
use store::catalog::StreamRef;
use store::grants::Disclosure;
use store::records::Revision;

use super::Subject;
use crate::console::format::{format_number, label, visible};
use crate::console::moment::Moment;
use crate::console::viewer::{Viewer, client};
use crate::owner::blocking;
use crate::owner::grants::flush_disclosures;
use crate::problem::Problem;
use crate::service::Service;

const REVISIONS: usize = 20;
/// A version that none is after; the store counts with a sign.
const NEWEST: u64 = i64::MAX.unsigned_abs();
/// How many of the last calls are looked through, and how many at once.
const CALLS: usize = 20_000;
const PAGE: usize = 1_000;
const READINGS: usize = 20;

#[derive(Default)]
pub(super) struct Trace {
    /// Whether it is known at all.
    pub(super) is_known: bool,
    pub(super) revisions: Vec<RevisionRow>,
    pub(super) readings: Vec<Reading>,
    /// How many calls were looked through; empty for all.
    pub(super) calls: String,
}

pub(super) struct RevisionRow {
    pub(super) at: Option<Moment>,
    pub(super) what: String,
}

pub(super) struct Reading {
    pub(super) at: Option<Moment>,
    client_id: ClientId,
    /// What it is called.
    pub(super) client: String,
    pub(super) grant: String,
    pub(super) operation: String,
    pub(super) fields: String,
}

pub(super) async fn read(viewer: &Viewer, subject: &Subject) -> Result<Trace, Problem> {
    if !viewer.is_owner() {
        return Ok(Trace::default());
    }
    let stream = StreamRef::new(&subject.connection, &subject.stream);
    let connection = viewer.service.store.connection(&subject.connection);
    let connector = connection.map(|connection| connection.connector);
    let declaration = connector.and_then(|connector| viewer.service.store.declaration(&connector));
    let declared = declaration
        .as_deref()
        .and_then(|one| one.stream(subject.stream.as_str()));
    let parts = declared.map_or(1, |declared| declared.primary_key.len());
    let key = RecordKey::from_wire(&subject.record.id, parts).ok();
    let id = subject.record.id.clone();
    blocking(viewer.service.clone(), move |service| {
        flush_disclosures(service);
        let revisions = key.map(|key| service.store.history(&stream, &key, NEWEST, REVISIONS + 1));
        let revisions = revisions.transpose();
        let revisions =
            revisions.map_err(|error| Problem::internal("a history could not be read", &error))?;
        let handle = RecordHandle::new(
            Some(stream.connection.as_str()),
            stream.stream.as_str(),
            &id,
        );
        let mut trace = Trace {
            is_known: true,
            revisions: rows(&revisions.unwrap_or_default()),
            ..Trace::default()
        };
        if let Ok(handle) = handle {
            let is_whole = read_log(service, &handle.to_string(), &mut trace.readings)?;
            let all = grants::list(&*service.store, service.now());
            let all = all.map_err(|error| Problem::internal("grants are not known", &error))?;
            for reading in &mut trace.readings {
                let known = all.iter().find(|one| one.client_id == reading.client_id);
                if let Some(known) = known {
                    reading.client = client(known);
                }
            }
            trace.calls = if is_whole {
                String::new()
            } else {
                format_number(u64::try_from(CALLS).unwrap_or_default())
            };
        }
        Ok(trace)
    })
    .await
}

/// The revisions, newest first, each with what differs from the one before it. One is no history.
fn rows(revisions: &[Revision]) -> Vec<RevisionRow> {
    let shown = revisions.iter().take(REVISIONS).enumerate();
    let rows: Vec<RevisionRow> = shown
        .map(|(at, revision)| RevisionRow {
            at: Moment::parse(&revision.emitted_at),
            what: difference(revision, revisions.get(at + 1)),
        })
        .collect();
    if rows.len() > 1 { rows } else { Vec::new() }
}

fn difference(revision: &Revision, before: Option<&Revision>) -> String {
    let Some(body) = &revision.body else {
        return "deleted".to_owned();
    };
    let Some(old) = before.and_then(|before| before.body.as_deref()) else {
        return match before {
            Some(_) => "came back".to_owned(),
            None => "the oldest that is kept".to_owned(),
        };
    };
    let read = |text: &str| serde_json::from_str::<OrderedMap<Box<RawValue>>>(text).ok();
    let (Some(new), Some(old)) = (read(body), read(old)) else {
        return "changed".to_owned();
    };
    let names: BTreeSet<&str> = new.iter().chain(old.iter()).map(|(name, _)| name).collect();
    let text = |members: &OrderedMap<Box<RawValue>>, name: &str| {
        members.get(name).map(|raw| raw.get().to_owned())
    };
    let changed = names
        .into_iter()
        .filter(|name| text(&new, name) != text(&old, name));
    let changed: Vec<&str> = changed.collect();
    format!("changed: {}", label(&changed.join(", ")))
}

/// Adds the last calls that gave the record to a client. Whether all of the log was looked through, as far as was needed.
fn read_log(service: &Service, handle: &str, readings: &mut Vec<Reading>) -> Result<bool, Problem> {
    let mut before = None;
    for _ in 0..CALLS / PAGE {
        let page = service.store.disclosures(None, before, PAGE);
        let page = page.map_err(|error| Problem::internal("the log could not be read", &error))?;
        let is_last = page.len() < PAGE;
        before = page.last().map(|call| call.sequence);
        let shown = page.into_iter().map(|call| call.disclosure);
        let shown = shown.filter(|call| call.records.iter().any(|one| one == handle));
        readings.extend(shown.take(READINGS - readings.len()).map(Reading::from));
        if is_last || readings.len() == READINGS {
            return Ok(true);
        }
    }
    Ok(false)
}

impl From<Disclosure> for Reading {
    fn from(call: Disclosure) -> Self {
        let grant = call.grant_ids.first();
        Self {
            at: Moment::new(call.at),
            client: label(call.client_id.as_str()),
            client_id: call.client_id,
            grant: grant.map(ToString::to_string).unwrap_or_default(),
            operation: label(&call.operation),
            fields: visible(&call.fields.join(", ")),
        }
    }
}
