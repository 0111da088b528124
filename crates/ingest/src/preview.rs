//! A dry run: what a batch would do, without writing. The store is read, and changes of earlier lines of the same run are
//! remembered, in a few bytes per key.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use contract::declaration::{Declaration, Semantics};
use contract::id::{ConnectionId, StreamName};
use contract::key::RecordKey;
use store::StoreError;
use store::catalog::StreamRef;
use store::records::{Applied, Change, ChangeOp, Records};

use crate::fingerprint::fingerprint;
use crate::importer::{Presence, stored_keys, stored_presence};

pub(crate) struct Preview<'a> {
    /// What is there already, unless the connection is yet to be added.
    existing: Option<(&'a dyn Records, &'a ConnectionId)>,
    declaration: &'a Declaration,
    /// By hash of stream and key: the fingerprint of the content the key would have, or nothing once deleted.
    changed: HashMap<u64, Option<u64>>,
    /// The first keys that would be new, by stream.
    added: HashMap<StreamName, Vec<RecordKey>>,
    samples: Vec<Sample>,
}

/// A record that would be new or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    pub stream: StreamName,
    /// The record, in JSON.
    pub body: String,
}

const KEPT_KEYS: usize = 10_000;
/// How many samples are kept, and how many of one stream.
const SAMPLES: usize = 6;
const SAMPLES_OF_STREAM: usize = 3;

impl<'a> Preview<'a> {
    pub(crate) fn new(
        existing: Option<(&'a dyn Records, &'a ConnectionId)>,
        declaration: &'a Declaration,
    ) -> Self {
        Self {
            existing,
            declaration,
            changed: HashMap::new(),
            added: HashMap::new(),
            samples: Vec::new(),
        }
    }

    /// The results that writing the batch would have.
    pub(crate) fn apply(&mut self, batch: Vec<Change>) -> Result<Vec<Applied>, StoreError> {
        batch
            .into_iter()
            .map(|change| self.outcome(change))
            .collect()
    }

    /// The first records that would be new or changed.
    pub(crate) fn into_samples(self) -> Vec<Sample> {
        self.samples
    }

    fn sample(&mut self, stream: &StreamName, body: &str) {
        let of_stream = self.samples.iter().filter(|one| one.stream == *stream);
        if self.samples.len() < SAMPLES && of_stream.count() < SAMPLES_OF_STREAM {
            self.samples.push(Sample {
                stream: stream.clone(),
                body: body.to_owned(),
            });
        }
    }

    pub(crate) fn keys(&self, stream: &str) -> Result<Vec<RecordKey>, StoreError> {
        let mut keys = match self.existing {
            Some((store, connection)) => stored_keys(store, connection, stream)?,
            None => Vec::new(),
        };
        let added = self
            .added
            .iter()
            .filter(|(name, _)| name.as_str() == stream);
        keys.extend(added.flat_map(|(_, keys)| keys.iter().cloned()));
        Ok(keys)
    }

    pub(crate) fn presence(&self, stream: &str, key: &RecordKey) -> Result<Presence, StoreError> {
        let changed = StreamName::parse(stream)
            .ok()
            .and_then(|stream| self.changed.get(&id_of(&stream, key)));
        match (changed, self.existing) {
            (Some(Some(_)), _) => Ok(Presence::Live),
            (Some(None), _) | (None, None) => Ok(Presence::Absent),
            (None, Some((store, connection))) => stored_presence(store, connection, stream, key),
        }
    }

    pub(crate) fn existing(&self) -> Option<(&'a dyn Records, &'a ConnectionId)> {
        self.existing
    }

    fn outcome(&mut self, change: Change) -> Result<Applied, StoreError> {
        let append_only = self
            .declaration
            .stream(change.stream.as_str())
            .is_some_and(|stream| stream.semantics == Semantics::AppendOnly);
        let id = id_of(&change.stream, &change.key);
        let known = self.changed.get(&id).copied();
        let adds_only = matches!(change.op, ChangeOp::Add(_));
        let is_kept_out = adds_only || matches!(change.op, ChangeOp::Upsert(_));
        if known.is_none() && is_kept_out && self.kept_out(&change)? {
            return Ok(Applied::KeptDeleted);
        }
        let current = match known {
            Some(changed) => changed,
            None => self.stored(change.stream.clone(), &change.key)?,
        };
        let (applied, after) = match change.op {
            ChangeOp::Delete | ChangeOp::DeleteByOwner if current.is_none() => {
                (Applied::AlreadyAbsent, None)
            }
            ChangeOp::Delete | ChangeOp::DeleteByOwner => (Applied::Deleted, None),
            ChangeOp::Upsert(body) | ChangeOp::Add(body) | ChangeOp::Revive(body) => {
                let after = Some(fingerprint(body.as_str()));
                if adds_only && current.is_some() && current != after {
                    return Ok(Applied::LeftAsItIs);
                }
                if current != after && !(current.is_some() && append_only) {
                    self.sample(&change.stream, body.as_str());
                }
                match current {
                    None => (Applied::Added, after),
                    Some(_) if current == after => (Applied::Unchanged, after),
                    Some(_) if append_only => (Applied::AppendOnlyConflict, current),
                    Some(_) => (Applied::Updated, after),
                }
            }
        };
        if current != after {
            self.changed.insert(id, after);
        }
        if applied == Applied::Added {
            let added = self.added.entry(change.stream).or_default();
            if added.len() < KEPT_KEYS {
                added.push(change.key);
            }
        }
        Ok(applied)
    }

    /// Whether the owner deleted the record.
    fn kept_out(&self, change: &Change) -> Result<bool, StoreError> {
        let Some((store, connection)) = self.existing else {
            return Ok(false);
        };
        let stream = StreamRef::new(connection, &change.stream);
        store.is_deleted_by_owner(&stream, &change.key)
    }

    fn stored(&self, stream: StreamName, key: &RecordKey) -> Result<Option<u64>, StoreError> {
        let Some((store, connection)) = self.existing else {
            return Ok(None);
        };
        let stream = StreamRef {
            connection: connection.clone(),
            stream,
        };
        let record = store.get(&stream, key)?;
        Ok(record.map(|record| fingerprint(&record.body)))
    }
}

fn id_of(stream: &StreamName, key: &RecordKey) -> u64 {
    let mut hasher = DefaultHasher::new();
    (stream.as_str(), key.ordering_form()).hash(&mut hasher);
    hasher.finish()
}
