//! Writing a batch: the owner is locked, what is there is read with one query, the changes are decided here, and a handful of
//! statements write them. Then the own index is updated from memory; other nodes replay.

mod statements;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use contract::id::ConnectionId;
use contract::json::RecordBody;
use contract::time::Instant;
use sha2::{Digest as _, Sha256};

use super::pool::Tx;
use super::sort::sort_bits;
use super::{Owner, PostgresStore};
use crate::Result;
use crate::index::engine::{NewContent, Staged};
use crate::index::sources::{BatchStreams, StreamEntry};
use crate::record_digest::Content;
use crate::records::{Applied, Change, ChangeOp, SortValue, replacing};

/// A record within its stream.
type Place = (i64, String);

/// The state of a record in the batch.
struct State {
    row: u64,
    version: u64,
    emitted_at: String,
    body: Option<String>,
    sort: Option<i64>,
    digest: i64,
    is_damaged: bool,
    is_new: bool,
    is_changed: bool,
}

/// What a record was, moved into history.
struct Past {
    stream: i64,
    row: u64,
    version: u64,
    next_version: u64,
    emitted_at: String,
    body: Option<String>,
    digest: i64,
}

struct Batch<'a> {
    streams: BatchStreams<'a>,
    version: u64,
    states: BTreeMap<Place, State>,
    past: Vec<Past>,
    staged: Vec<Staged>,
    totals: BTreeMap<i64, (i64, u64)>,
    redated: BTreeMap<(i64, u64), i64>,
    owner_deleted: HashSet<Place>,
    deleted_now: BTreeSet<Place>,
    revived_now: BTreeSet<Place>,
}

impl PostgresStore {
    pub(super) fn write_batch(
        &self,
        connection: &ConnectionId,
        batch: Vec<Change>,
    ) -> Result<Vec<Applied>> {
        // Until the own index has it: changes that come out of order would have to be replayed.
        let _turn = self.queue.turn(self.place())?;
        let (applied, before, written, mark) = self.transact_locked(|tx, owner| {
            let sources = self.sources.at(tx, self.place(), owner.catalog)?;
            let streams = BatchStreams::new(sources, connection)?;
            let mut writing = Batch::begin(streams, owner);
            writing.read(tx, self.owner, &batch)?;
            let of = self.mark_at(tx, owner.version)?;
            let mut applied = Vec::with_capacity(batch.len());
            for change in batch {
                applied.push(writing.apply(change)?);
            }
            let mark = if writing.write(tx, self.owner)? {
                Some(self.advance(tx, writing.version)?)
            } else {
                None
            };
            Ok((applied, (owner.version, of), writing, mark))
        })?;
        if let Some(mark) = mark {
            let changes = written.staged.iter().map(Staged::index_change);
            let mark = crate::index::engine::hex(mark);
            self.index
                .stage(before, (written.version, Some(mark)), changes);
        }
        Ok(applied)
    }
}

impl<'a> Batch<'a> {
    fn begin(streams: BatchStreams<'a>, owner: Owner) -> Self {
        Self {
            streams,
            version: owner.version,
            states: BTreeMap::new(),
            past: Vec::new(),
            staged: Vec::new(),
            totals: BTreeMap::new(),
            redated: BTreeMap::new(),
            owner_deleted: HashSet::new(),
            deleted_now: BTreeSet::new(),
            revived_now: BTreeSet::new(),
        }
    }

    /// Reads the records that the batch names, and which of them the owner deleted.
    fn read(&mut self, tx: &Tx<'_>, owner: i64, batch: &[Change]) -> Result<()> {
        let mut places: BTreeSet<Place> = BTreeSet::new();
        for change in batch {
            places.insert((
                self.streams.entry(&change.stream)?.id,
                change.key.ordering_form(),
            ));
        }
        let streams: Vec<i64> = places.iter().map(|(stream, _)| *stream).collect();
        let keys: Vec<&str> = places.iter().map(|(_, key)| key.as_str()).collect();
        let rows = tx.query(
            "SELECT records.stream_id, records.key, row_id, version, emitted_at, data, sort, digest
             FROM unnest($2, $3) AS wanted (stream_id, key) JOIN records
               ON records.owner_id = $1 AND records.stream_id = wanted.stream_id AND records.key = wanted.key",
            &[&owner, &streams, &keys],
        )?;
        for row in &rows {
            let (stream, key): (i64, String) = (row.get(0)?, row.get(1)?);
            let version = row.get::<i64>(3)?.cast_unsigned();
            let (emitted_at, body): (String, Option<String>) = (row.get(4)?, row.get(5)?);
            let digest = row.get(7)?;
            let content = Content {
                stream,
                key: &key,
                version,
                emitted_at: &emitted_at,
                data: body.as_deref(),
            };
            let is_damaged = content.digest() != digest;
            let state = State {
                row: row.get::<i64>(2)?.cast_unsigned(),
                version,
                emitted_at,
                body,
                sort: row.get(6)?,
                digest,
                is_damaged,
                is_new: false,
                is_changed: false,
            };
            self.states.insert((stream, key), state);
        }
        let digests: HashMap<Vec<u8>, &Place> = places
            .iter()
            .map(|place| (key_digest(&place.1), place))
            .collect();
        let wanted: Vec<Vec<u8>> = digests.keys().cloned().collect();
        let rows = tx.query(
            "SELECT stream_id, key_digest FROM deleted_by_owner
             WHERE owner_id = $1 AND stream_id = ANY($2) AND key_digest = ANY($3)",
            &[&owner, &streams, &wanted],
        )?;
        for row in &rows {
            let (stream, digest): (i64, &[u8]) = (row.get(0)?, row.get(1)?);
            if let Some((_, key)) = digests.get(digest) {
                self.owner_deleted.insert((stream, key.clone()));
            }
        }
        Ok(())
    }

    fn apply(&mut self, change: Change) -> Result<Applied> {
        let entry = self.streams.entry(&change.stream)?;
        let place = (entry.id, change.key.ordering_form());
        match change.op {
            ChangeOp::Delete => Ok(self.delete(&entry, place, change.emitted_at)),
            ChangeOp::DeleteByOwner => {
                self.revived_now.remove(&place);
                self.deleted_now.insert(place.clone());
                self.owner_deleted.insert(place.clone());
                Ok(self.delete(&entry, place, change.emitted_at))
            }
            ChangeOp::Revive(body) => {
                self.deleted_now.remove(&place);
                self.revived_now.insert(place.clone());
                self.owner_deleted.remove(&place);
                Ok(self.put(&entry, place, body, change.emitted_at))
            }
            ChangeOp::Upsert(_) if self.owner_deleted.contains(&place) => Ok(Applied::KeptDeleted),
            ChangeOp::Upsert(body) => Ok(self.put(&entry, place, body, change.emitted_at)),
        }
    }

    fn put(
        &mut self,
        entry: &Arc<StreamEntry>,
        place: Place,
        body: RecordBody,
        emitted_at: String,
    ) -> Applied {
        let applied = match self.states.get(&place) {
            None => Applied::Added,
            Some(state) => {
                let current = state.body.as_deref().filter(|_| !state.is_damaged);
                let is_there = state.body.is_some();
                match current {
                    None if is_there => Applied::Updated,
                    current => replacing(current, &body, entry.layout.append_only),
                }
            }
        };
        if !matches!(applied, Applied::Added | Applied::Updated) {
            return applied;
        }
        self.note(entry.id, i64::from(applied == Applied::Added));
        let sort = sort_bits(SortValue::of(&entry.layout, &body));
        let text = body.as_str().to_owned();
        let (row, known) = self.set(entry.id, place, emitted_at.clone(), Some((text, sort)));
        self.staged.push(Staged {
            row,
            entry: Arc::clone(entry),
            put: Some(NewContent { body, emitted_at }),
            known,
        });
        applied
    }

    fn delete(&mut self, entry: &Arc<StreamEntry>, place: Place, emitted_at: String) -> Applied {
        let state = self.states.get(&place);
        if state.is_none_or(|state| state.body.is_none()) {
            return Applied::AlreadyAbsent;
        }
        self.note(entry.id, -1);
        let (row, known) = self.set(entry.id, place, emitted_at, None);
        self.staged.push(Staged {
            row,
            entry: Arc::clone(entry),
            put: None,
            known,
        });
        Applied::Deleted
    }

    /// Counts a change, which gets the next version.
    fn note(&mut self, stream: i64, live: i64) {
        self.version += 1;
        let totals = self.totals.entry(stream).or_default();
        totals.0 += live;
        totals.1 = self.version;
    }

    /// Gives a record its state as of the version just counted, and moves what it was into history. Returns its row, and
    /// whether it was there before.
    fn set(
        &mut self,
        stream: i64,
        place: Place,
        emitted_at: String,
        content: Option<(String, Option<i64>)>,
    ) -> (u64, bool) {
        let version = self.version;
        let (body, sort) = content.map_or((None, None), |(body, sort)| (Some(body), sort));
        let digest = Content {
            stream,
            key: &place.1,
            version,
            emitted_at: &emitted_at,
            data: body.as_deref(),
        }
        .digest();
        let earlier = self.states.remove(&place);
        let known = earlier.is_some();
        let (row, is_new) = earlier
            .as_ref()
            .map_or((version, true), |state| (state.row, state.is_new));
        if let Some(state) = earlier {
            let is_live = body.is_some();
            self.note_earlier_date(stream, &state, &emitted_at, is_live);
            if !state.is_damaged {
                self.past.push(Past {
                    stream,
                    row,
                    version: state.version,
                    next_version: version,
                    emitted_at: state.emitted_at,
                    body: state.body,
                    digest: state.digest,
                });
            }
        }
        let state = State {
            row,
            version,
            emitted_at,
            body,
            sort,
            digest,
            is_damaged: false,
            is_new,
            is_changed: true,
        };
        self.states.insert(place, state);
        (row, known)
    }

    /// Notes a record whose date moved back: a search for the latest date by present dates would miss it.
    fn note_earlier_date(&mut self, stream: i64, state: &State, now: &str, is_live: bool) {
        let before = Instant::parse(&state.emitted_at);
        if let Some(Instant(before)) = before.filter(|before| Instant::parse(now) < Some(*before))
            && is_live
        {
            let latest = self.redated.entry((stream, state.row)).or_insert(before);
            *latest = before.max(*latest);
        }
    }
}

pub(super) fn key_digest(key: &str) -> Vec<u8> {
    Sha256::digest(key).to_vec()
}
