//! What a batch would do, told without writing: the store is read, and what earlier lines of the same run would have
//! changed is remembered. Per key that would change this takes a few bytes, however large the records are.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use contract::declaration::{Declaration, Semantics};
use contract::id::{ConnectionId, StreamName};
use contract::key::RecordKey;
use store::StoreError;
use store::catalog::StreamRef;
use store::records::{Applied, Change, ChangeOp, Records};

use crate::fingerprint::fingerprint;

/// A dry run in progress.
pub(crate) struct Preview<'a> {
    /// What is there already, unless the connection is yet to be added.
    existing: Option<(&'a dyn Records, &'a ConnectionId)>,
    declaration: &'a Declaration,
    /// By hash of stream and key: the fingerprint of the content the key would have, or nothing once deleted.
    changed: HashMap<u64, Option<u64>>,
}

impl<'a> Preview<'a> {
    pub(crate) fn new(
        existing: Option<(&'a dyn Records, &'a ConnectionId)>,
        declaration: &'a Declaration,
    ) -> Self {
        Self {
            existing,
            declaration,
            changed: HashMap::new(),
        }
    }

    /// Says what writing the batch would answer.
    pub(crate) fn apply(&mut self, batch: Vec<Change>) -> Result<Vec<Applied>, StoreError> {
        batch
            .into_iter()
            .map(|change| self.outcome(change))
            .collect()
    }

    fn outcome(&mut self, change: Change) -> Result<Applied, StoreError> {
        let append_only = self
            .declaration
            .stream(change.stream.as_str())
            .is_some_and(|stream| stream.semantics == Semantics::AppendOnly);
        let mut hasher = DefaultHasher::new();
        (change.stream.as_str(), change.key.ordering_form()).hash(&mut hasher);
        let id = hasher.finish();
        let current = match self.changed.get(&id) {
            Some(changed) => *changed,
            None => self.stored(change.stream, &change.key)?,
        };
        let (applied, after) = match change.op {
            ChangeOp::Delete if current.is_none() => (Applied::AlreadyAbsent, None),
            ChangeOp::Delete => (Applied::Deleted, None),
            ChangeOp::Upsert(body) => {
                let after = Some(fingerprint(body.as_str()));
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
        Ok(applied)
    }

    /// The fingerprint of what is stored under a key.
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
