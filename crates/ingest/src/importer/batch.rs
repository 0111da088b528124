//! A batch: items that are written at once, and what answers for each of them.

use contract::id::StreamName;
use store::StoreError;
use store::records::{Applied, Change};

use super::{BatchLimits, Item, ItemPosition, Tally};
use crate::rejection::{Rejection, RejectionCode};

pub(crate) struct Batch {
    limits: BatchLimits,
    /// Items of this input in earlier batches.
    before: u64,
    lines: usize,
    bytes: usize,
    changes: Vec<Change>,
    positions: Vec<ItemPosition>,
    refused: Vec<(ItemPosition, Rejection)>,
    /// The streams of the changes, each once, with how many of them are for it.
    streams: Vec<(StreamName, u64)>,
    /// The stream of each change, by its place among them.
    stream_of: Vec<usize>,
}

impl Batch {
    pub(crate) fn new(limits: BatchLimits) -> Self {
        Self {
            limits,
            before: 0,
            lines: 0,
            bytes: 0,
            changes: Vec::new(),
            positions: Vec::new(),
            refused: Vec::new(),
            streams: Vec::new(),
            stream_of: Vec::new(),
        }
    }

    fn note_stream(&mut self, stream: &StreamName) {
        let known = self.streams.iter().position(|(known, _)| known == stream);
        self.stream_of.push(known.unwrap_or_else(|| {
            self.streams.push((stream.clone(), 0));
            self.streams.len() - 1
        }));
    }

    pub(crate) fn add(&mut self, item: Item) {
        let position = ItemPosition {
            index: self.before + self.lines as u64,
            line: item.line,
            is_derived: item.is_derived,
        };
        self.lines += 1;
        self.bytes += item.bytes;
        match item.outcome {
            Ok(change) => {
                self.note_stream(&change.stream);
                self.changes.push(change);
                self.positions.push(position);
            }
            Err(rejection) => self.refused.push((position, rejection)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines == 0
    }

    pub(crate) fn is_full(&self) -> bool {
        self.lines >= self.limits.lines.max(1) || self.bytes >= self.limits.bytes
    }

    /// Writes what was accepted and answers for every item, in the order of the input.
    pub(crate) fn flush(
        &mut self,
        write: &mut dyn FnMut(Vec<Change>) -> Result<Vec<Applied>, StoreError>,
        tally: &mut dyn Tally,
    ) -> Result<(), StoreError> {
        let changes = std::mem::take(&mut self.changes);
        let positions = std::mem::take(&mut self.positions);
        let mut refused = std::mem::take(&mut self.refused);
        let mut streams = std::mem::take(&mut self.streams);
        let stream_of = std::mem::take(&mut self.stream_of);
        if !changes.is_empty() {
            let applied = write(changes)?.into_iter().zip(positions);
            for ((applied, position), stream) in applied.zip(stream_of) {
                match applied {
                    Applied::AppendOnlyConflict => refused.push((position, conflict())),
                    Applied::KeptDeleted => {
                        let rejection = tally.kept_deleted(position);
                        refused.extend(rejection.map(|rejection| (position, rejection)));
                    }
                    applied => {
                        if let Some((_, records)) = streams.get_mut(stream) {
                            *records += u64::from(!position.is_derived);
                        }
                        tally.applied(position, applied);
                    }
                }
            }
        }
        for (stream, records) in streams {
            tally.of_stream(&stream, records);
        }
        refused.sort_by_key(|(position, _)| position.index);
        for (position, rejection) in refused {
            tally.rejected(position, rejection);
        }
        self.before += self.lines as u64;
        (self.lines, self.bytes) = (0, 0);
        Ok(())
    }
}

fn conflict() -> Rejection {
    Rejection::new(
        RejectionCode::AppendOnlyConflict,
        "the stream is append-only and already holds other content under this key",
    )
}
