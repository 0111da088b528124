//! Deleting what a newer export no longer has, where the owner asks for it. Every key that an import brings is remembered as
//! a hash; what is stored in the same streams under other keys is then deleted.

use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use contract::id::StreamName;
use contract::key::RecordKey;
use contract::time::Instant;
use store::StoreError;
use store::records::{Applied, Change, ChangeOp};

use super::{Destination, Import, stored_keys};

/// Records deleted in one write.
const AT_ONCE: usize = 1_000;

/// The keys that an import brought.
#[derive(Default)]
pub(super) struct Present {
    keys: HashSet<u64>,
    streams: BTreeSet<StreamName>,
}

impl Present {
    pub(super) fn note(&mut self, batch: &[Change]) {
        for change in batch {
            if matches!(
                change.op,
                ChangeOp::Upsert(_) | ChangeOp::Add(_) | ChangeOp::Revive(_)
            ) {
                self.keys.insert(hash(&change.stream, &change.key));
                if !self.streams.contains(&change.stream) {
                    self.streams.insert(change.stream.clone());
                }
            }
        }
    }
}

fn hash(stream: &StreamName, key: &RecordKey) -> u64 {
    let mut hasher = DefaultHasher::new();
    (stream.as_str(), key.ordering_form()).hash(&mut hasher);
    hasher.finish()
}

impl Import<'_> {
    /// Deletes the records that were there and did not come, in the streams of which some came. An input that was not taken
    /// whole deletes nothing: what could not be read is not gone.
    pub(super) fn prune(&mut self, now: Instant) -> Result<(), StoreError> {
        let Some(present) = self.present.take() else {
            return Ok(());
        };
        if self.report.rejected > 0 || !self.report.broken.is_empty() {
            let why = "nothing was deleted, because not all of the input could be taken";
            self.report.notes.push(why.to_owned());
            return Ok(());
        }
        let Some((store, connection)) = self.destination.stored() else {
            return Ok(());
        };
        let is_dry = matches!(self.destination, Destination::Preview(_));
        for stream in &present.streams {
            let keys = stored_keys(store, connection, stream.as_str())?;
            let gone = keys.into_iter();
            let gone = gone.filter(|key| !present.keys.contains(&hash(stream, key)));
            let mut gone = gone.peekable();
            while gone.peek().is_some() {
                let batch: Vec<Change> = gone
                    .by_ref()
                    .take(AT_ONCE)
                    .map(|key| Change {
                        stream: stream.clone(),
                        key,
                        emitted_at: now.to_rfc3339_millis(),
                        op: ChangeOp::Delete,
                    })
                    .collect();
                self.report.pruned += if is_dry {
                    batch.len() as u64
                } else {
                    let applied = store.write(connection, batch)?;
                    let deleted = applied.iter().filter(|one| **one == Applied::Deleted);
                    deleted.count() as u64
                };
            }
        }
        Ok(())
    }
}
