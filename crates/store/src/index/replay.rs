//! Changes as the index takes them, made from one state of the records.

use super::engine::{ChangeSource, IndexChange, Indexable, Versions};
use super::parse_stored;
use super::truth::{Mark, Truth, TruthSnapshot};
use crate::Result;

pub(super) struct Replay<'a> {
    pub(super) snapshot: &'a dyn TruthSnapshot,
    pub(super) truth: &'a dyn Truth,
}

impl ChangeSource for Replay<'_> {
    fn newest(&self) -> Result<u64> {
        self.snapshot.head()
    }

    fn mark(&self, version: u64) -> Result<Mark> {
        self.snapshot.mark(version)
    }

    fn purged_to(&self) -> Result<u64> {
        self.snapshot.purged_to()
    }

    fn replay(
        &self,
        versions: Versions,
        known: bool,
        each: &mut dyn FnMut(IndexChange<'_>) -> Result<()>,
    ) -> Result<()> {
        for stream in self.snapshot.erased(versions)? {
            each(IndexChange::Erase {
                stream: stream.cast_unsigned(),
            })?;
        }
        // Read after the snapshot began, so every stream in it is known.
        let sources = self.truth.sources();
        self.snapshot.replay(versions, &mut |change| {
            let row = change.row;
            let Some(entry) = sources.by_id(change.stream) else {
                return Ok(());
            };
            let Some(data) = change.data else {
                return each(IndexChange::Drop { row });
            };
            let record = Indexable {
                row,
                stream: change.stream.cast_unsigned(),
                emitted_at: &change.emitted_at,
                layout: &entry.layout,
                body: &parse_stored(data, self.truth.place())?,
            };
            each(IndexChange::Put { record, known })
        })
    }
}
