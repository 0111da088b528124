//! Writing a batch: the owner is locked, what is there is read with one query, the changes are decided here, and a handful of
//! statements write them. Then the own index is updated from memory; other nodes replay.

pub(super) mod statements;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use contract::id::ConnectionId;
use contract::json::RecordBody;
use contract::time::Instant;
use sha2::{Digest as _, Sha256};

use super::pool::Tx;
use super::queue::{Batch, Outcome};
use super::sort::sort_bits;
use super::{Owner, PostgresStore};
use crate::index::engine::{NewContent, Staged};
use crate::index::sources::{BatchStreams, Sources, StreamEntry};
use crate::record_digest::Content;
use crate::records::{Applied, Change, ChangeOp, SortValue, replacing, stays};
use crate::{Result, StoreError, stop};

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

/// What is decided of the batches that one transaction writes.
struct Writing {
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

/// A change with the place it goes to.
struct Placed {
    entry: Arc<StreamEntry>,
    place: Place,
    change: Change,
}

impl PostgresStore {
    pub(super) fn write_batch(&self, connection: &ConnectionId, changes: Vec<Change>) -> Outcome {
        let batch = Batch {
            connection: connection.clone(),
            changes,
        };
        // What is written together is wanted by others too.
        let write = |batches| stop::apart(|| self.write_together(batches));
        self.queue.run(self.place(), batch, write)
    }

    /// Writes batches in one transaction, or each in its own where that fails because of one of them.
    fn write_together(&self, batches: Vec<Batch>) -> Vec<Outcome> {
        let number = batches.len();
        let again = (number > 1).then(|| batches.clone());
        let error = match self.write_all(batches) {
            Ok(outcomes) => return outcomes,
            Err(error) => error,
        };
        if let Some(told) = of_database(&error) {
            let told = std::iter::repeat_with(|| of_database(&told).unwrap_or(StoreError::Stopped));
            return told.take(number).map(Err).collect();
        }
        let Some(again) = again else {
            return vec![Err(error)];
        };
        let alone = |batch| {
            let mut outcomes = self.write_all(vec![batch])?;
            outcomes.pop().unwrap_or(Err(StoreError::Stopped))
        };
        again.into_iter().map(alone).collect()
    }

    fn write_all(&self, batches: Vec<Batch>) -> Result<Vec<Outcome>> {
        let (outcomes, before, written, mark) = self.transact_locked(|tx, owner| {
            let sources = self.sources.at(tx, self.place(), owner.catalog)?;
            let placed: Vec<Result<Vec<Placed>>> = batches
                .into_iter()
                .map(|batch| placed(&sources, batch))
                .collect();
            let mut writing = Writing::begin(owner);
            let of = writing.read(tx, self.owner, &placed)?;
            let outcomes: Vec<Outcome> = placed
                .into_iter()
                .map(|batch| Ok(batch?.into_iter().map(|one| writing.apply(one)).collect()))
                .collect();
            let mark = if writing.write(tx, self.owner)? {
                Some(self.advance(tx, writing.version)?)
            } else {
                None
            };
            Ok((outcomes, (owner.version, of), writing, mark))
        })?;
        self.measure_first(written.totals.keys().copied());
        // Before the next batches are written: changes that come out of order would have to be replayed.
        if let Some(mark) = mark {
            let changes = written.staged.iter().map(Staged::index_change);
            let mark = crate::index::engine::hex(mark);
            self.index
                .stage(before, (written.version, Some(mark)), changes);
        }
        Ok(outcomes)
    }
}

/// The error once more, where it is of the database and not of what was to be written.
fn of_database(error: &StoreError) -> Option<StoreError> {
    match error {
        StoreError::Unavailable { place, detail } => Some(StoreError::Unavailable {
            place: place.clone(),
            detail: detail.clone(),
        }),
        StoreError::Contended { place, detail } => Some(StoreError::Contended {
            place: place.clone(),
            detail: detail.clone(),
        }),
        StoreError::DatabaseReadOnly { place } => Some(StoreError::DatabaseReadOnly {
            place: place.clone(),
        }),
        StoreError::DatabaseRefused { place, detail } => Some(StoreError::DatabaseRefused {
            place: place.clone(),
            detail: detail.clone(),
        }),
        _ => None,
    }
}

fn placed(sources: &Arc<Sources>, batch: Batch) -> Result<Vec<Placed>> {
    let mut streams = BatchStreams::new(Arc::clone(sources), &batch.connection)?;
    let place = |change: Change| {
        let entry = streams.entry(&change.stream)?;
        Ok(Placed {
            place: (entry.id, change.key.ordering_form()),
            entry,
            change,
        })
    };
    batch.changes.into_iter().map(place).collect()
}

impl Writing {
    fn begin(owner: Owner) -> Self {
        Self {
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

    /// Reads the records that the batches name, and which of them the owner deleted. Returns the mark of the last change.
    fn read(
        &mut self,
        tx: &Tx<'_>,
        owner: i64,
        batches: &[Result<Vec<Placed>>],
    ) -> Result<Option<String>> {
        let mut keys: BTreeMap<i64, BTreeSet<&str>> = BTreeMap::new();
        for Placed { place, .. } in batches.iter().flatten().flatten() {
            keys.entry(place.0).or_default().insert(&place.1);
        }
        let streams: Vec<i64> = keys.keys().copied().collect();
        let row = tx.query_one(
            "SELECT (SELECT encode(mark, 'hex') FROM marks WHERE owner_id = $1 AND version = $2),
                 EXISTS (SELECT 1 FROM deleted_by_owner WHERE stream_id = ANY($3))",
            &[&owner, &self.version.cast_signed(), &streams],
        )?;
        for (stream, keys) in &keys {
            let keys: Vec<&str> = keys.iter().copied().collect();
            self.read_states(tx, owner, *stream, &keys)?;
        }
        if row.get(1)? {
            self.read_owner_deleted(tx, owner, &keys)?;
        }
        row.get(0)
    }

    fn read_states(&mut self, tx: &Tx<'_>, owner: i64, stream: i64, keys: &[&str]) -> Result<()> {
        let sql = "SELECT * FROM records_by_key($1, $2, $3)";
        let rows = tx.query(sql, &[&owner, &stream, &keys])?;
        for row in &rows {
            let key: String = row.get(0)?;
            let version = row.get::<i64>(2)?.cast_unsigned();
            let (emitted_at, body): (String, Option<String>) = (row.get(3)?, row.get(4)?);
            let digest = row.get(6)?;
            let content = Content {
                stream,
                key: &key,
                version,
                emitted_at: &emitted_at,
                data: body.as_deref(),
            };
            let is_damaged = content.digest() != digest;
            let state = State {
                row: row.get::<i64>(1)?.cast_unsigned(),
                version,
                emitted_at,
                body,
                sort: row.get(5)?,
                digest,
                is_damaged,
                is_new: false,
                is_changed: false,
            };
            self.states.insert((stream, key), state);
        }
        Ok(())
    }

    fn read_owner_deleted(
        &mut self,
        tx: &Tx<'_>,
        owner: i64,
        keys: &BTreeMap<i64, BTreeSet<&str>>,
    ) -> Result<()> {
        for (stream, keys) in keys {
            let digests: HashMap<Vec<u8>, &str> =
                keys.iter().map(|key| (key_digest(key), *key)).collect();
            let wanted: Vec<&[u8]> = digests.keys().map(Vec::as_slice).collect();
            let rows = tx.query(
                "SELECT key_digest FROM deleted_by_owner
                 WHERE owner_id = $1 AND stream_id = $2 AND key_digest = ANY($3)",
                &[&owner, stream, &wanted],
            )?;
            for row in &rows {
                if let Some(key) = digests.get(row.get::<&[u8]>(0)?) {
                    self.owner_deleted.insert((*stream, (*key).to_owned()));
                }
            }
        }
        Ok(())
    }

    fn apply(&mut self, placed: Placed) -> Applied {
        let Placed {
            entry,
            place,
            change,
        } = placed;
        match change.op {
            ChangeOp::Delete => self.delete(&entry, place, change.emitted_at),
            ChangeOp::DeleteByOwner => {
                self.revived_now.remove(&place);
                self.deleted_now.insert(place.clone());
                self.owner_deleted.insert(place.clone());
                self.delete(&entry, place, change.emitted_at)
            }
            ChangeOp::Revive(body) => {
                self.deleted_now.remove(&place);
                self.revived_now.insert(place.clone());
                self.owner_deleted.remove(&place);
                self.put(&entry, place, body, change.emitted_at)
            }
            ChangeOp::Upsert(_) | ChangeOp::Add(_) if self.owner_deleted.contains(&place) => {
                Applied::KeptDeleted
            }
            ChangeOp::Add(body)
                if self.states.get(&place).is_some_and(|state| {
                    !state.is_damaged && stays(state.body.as_deref(), &body)
                }) =>
            {
                Applied::LeftAsItIs
            }
            ChangeOp::Upsert(body) | ChangeOp::Add(body) => {
                self.put(&entry, place, body, change.emitted_at)
            }
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

#[cfg(test)]
mod tests;
