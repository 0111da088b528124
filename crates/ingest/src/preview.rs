//! What a batch would do, told without writing: the store is read, and what earlier lines of the same run would have
//! changed is remembered. Per key that would change this takes a few bytes, however large the records are.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use contract::declaration::{Declaration, Semantics};
use contract::id::ConnectionId;
use store::StoreError;
use store::catalog::StreamRef;
use store::records::{Applied, Change, ChangeOp, Records};

use crate::fingerprint::fingerprint;

/// A dry run in progress.
pub(crate) struct Preview<'a> {
    pub(crate) store: &'a dyn Records,
    pub(crate) connection: &'a ConnectionId,
    pub(crate) declaration: &'a Declaration,
    /// By hash of stream and key: the fingerprint of the content the key would have, or nothing once deleted.
    changed: HashMap<u64, Option<u64>>,
}

impl<'a> Preview<'a> {
    pub(crate) fn new(
        store: &'a dyn Records,
        connection: &'a ConnectionId,
        declaration: &'a Declaration,
    ) -> Self {
        Self {
            store,
            connection,
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
        let stream = StreamRef {
            connection: self.connection.clone(),
            stream: change.stream,
        };
        let current = match self.changed.get(&id) {
            Some(changed) => *changed,
            None => self
                .store
                .get(&stream, &change.key)?
                .map(|record| fingerprint(&record.body)),
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
}
