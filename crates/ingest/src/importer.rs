//! Imports any format into the store: items become batches, each batch is one durable write, each item is counted once.
//! Memory is bounded by one batch, whatever the size of the input.

mod existing;
mod prune;

use std::cell::{Cell, RefCell};
use std::io;

use contract::declaration::Declaration;
use contract::id::{BlobId, ConnectionId, StreamName};
use contract::key::RecordKey;
use store::StoreError;
use store::blobs::Blobs;
use store::catalog::StreamRef;
use store::records::{Applied, Change, ChangeOp, Records};

use crate::error::{ImportError, InputError};
use crate::preview::{Preview, Sample};
use crate::rejection::{Rejection, RejectionCode};
use crate::report::{BrokenFile, ImportReport, Reporting};
use existing::Seen;
pub use existing::{ExistingRecords, Presence};
pub(crate) use existing::{stored_keys, stored_presence};
use prune::Present;

/// One input in one format, read item by item.
pub trait Importer {
    /// The next item, or nothing at the end. An error means the input cannot be read any further.
    fn next_item(&mut self) -> Result<Option<Item>, InputError>;

    /// Called before the first item: compares the input with the existing records, for formats that need them to tell what
    /// the items belong to.
    fn compare(&mut self, _held: &dyn ExistingRecords) -> Result<(), Stopped> {
        Ok(())
    }

    /// Called at the end: a note for the owner about what was assumed or left out. An empty one keeps the owner from being told that
    /// the input became no record.
    fn note(&self) -> Option<String> {
        None
    }

    /// The bytes that records of the items so far refer to and that were not taken yet.
    fn take_files(&mut self) -> Vec<File> {
        Vec::new()
    }
}

/// Bytes that a record refers to.
pub struct File {
    pub stream: StreamName,
    pub key: RecordKey,
    /// Their name: the hash of them.
    pub blob: BlobId,
    /// What they are, as the source says.
    pub media_type: String,
    pub bytes: Vec<u8>,
}

/// One line or row, accepted or refused.
pub struct Item {
    /// The line in the file, from 1.
    pub line: u64,
    pub bytes: usize,
    /// What it asks for, or why it cannot be.
    pub outcome: Result<Change, Rejection>,
    /// Whether it was derived from another item, as occurrences are from a recurring event. It is counted apart.
    pub is_derived: bool,
}

impl Item {
    pub fn new(line: u64, bytes: usize, outcome: Result<Change, Rejection>) -> Self {
        Self {
            line,
            bytes,
            outcome,
            is_derived: false,
        }
    }

    /// The same, derived from another.
    #[must_use]
    pub fn derived(mut self) -> Self {
        self.is_derived = true;
        self
    }
}

/// How much goes into one write: whichever limit is reached first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    /// Lines, the refused ones included.
    pub lines: usize,
    pub bytes: usize,
}

impl Default for BatchLimits {
    fn default() -> Self {
        Self {
            lines: 10_000,
            bytes: 16 * 1024 * 1024,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ItemPosition {
    /// Among the items of the input, from 0.
    pub(crate) index: u64,
    /// In the file, from 1.
    pub(crate) line: u64,
    /// Whether the item was derived from another.
    pub(crate) is_derived: bool,
}

/// Counts the results. Every item is counted exactly once, after its batch is durable.
pub(crate) trait Tally {
    /// The item was written, or nothing had to be.
    fn applied(&mut self, position: ItemPosition, applied: Applied);
    /// The owner deleted the record of the item, so it was not written; the rejection it counts as, if it does.
    fn kept_deleted(&mut self, position: ItemPosition) -> Option<Rejection>;
    fn rejected(&mut self, position: ItemPosition, rejection: Rejection);
    /// Of the items that were written, so many belong to a stream. Derived ones are not among them.
    fn of_stream(&mut self, _stream: &StreamName, _records: u64) {}
}

enum Destination<'a> {
    Store(&'a dyn Records, &'a ConnectionId),
    /// Nowhere; only what they would do is computed.
    Preview(Preview<'a>),
}

impl<'a> Destination<'a> {
    /// What is there already.
    fn stored(&self) -> Option<(&'a dyn Records, &'a ConnectionId)> {
        match self {
            Destination::Store(store, connection) => Some((*store, *connection)),
            Destination::Preview(preview) => preview.existing(),
        }
    }
}

/// An import of one or several inputs into one connection.
pub struct Import<'a> {
    destination: Destination<'a>,
    blobs: Option<&'a dyn Blobs>,
    limits: BatchLimits,
    /// Whether records that the owner deleted are brought back.
    revives: bool,
    /// What came, where what did not is to be deleted.
    present: Option<Present>,
    report: ImportReport,
}

impl<'a> Import<'a> {
    pub fn new(store: &'a dyn Records, connection: &'a ConnectionId, limits: BatchLimits) -> Self {
        Self::with_destination(Destination::Store(store, connection), limits)
    }

    /// One that only says what it would do. Without a connection it says so of a new one.
    pub fn dry(
        existing: Option<(&'a dyn Records, &'a ConnectionId)>,
        declaration: &'a Declaration,
        limits: BatchLimits,
    ) -> Self {
        let preview = Preview::new(existing, declaration);
        Self::with_destination(Destination::Preview(preview), limits)
    }

    fn with_destination(destination: Destination<'a>, limits: BatchLimits) -> Self {
        Self {
            destination,
            blobs: None,
            limits,
            revives: false,
            present: None,
            report: ImportReport::default(),
        }
    }

    /// Also stores the bytes that records refer to; without this they are dropped.
    #[must_use]
    pub fn with_blobs(mut self, blobs: &'a dyn Blobs) -> Self {
        self.blobs = Some(blobs);
        self
    }

    /// Also brings back records that the owner deleted; without this they stay deleted.
    #[must_use]
    pub fn reviving(mut self, revives: bool) -> Self {
        self.revives = revives;
        self
    }

    /// Also remembers what comes, for [`Import::prune`].
    #[must_use]
    pub fn pruning(mut self, prunes: bool) -> Self {
        self.present = prunes.then(Present::default);
        self
    }

    /// Imports one input. `file` is named in rejections; `acknowledged` hears after each durable batch what the report
    /// says by then.
    ///
    /// When the input fails, what was read before is written first. When the store fails, the report is true for what
    /// was acknowledged.
    pub fn run(
        &mut self,
        importer: &mut dyn Importer,
        file: Option<&str>,
        acknowledged: &mut dyn FnMut(&ImportReport),
    ) -> Result<(), Stopped> {
        importer.compare(&Seen {
            destination: &self.destination,
            revives: self.revives,
        })?;
        let before = self.report.read;
        let (destination, blobs) = (&mut self.destination, self.blobs);
        let revives = self.revives;
        let files = RefCell::new(Vec::new());
        let kept_files = Cell::new(0);
        let present = &mut self.present;
        let mut write = |batch: Vec<Change>| {
            if let Some(present) = present {
                present.note(&batch);
            }
            let batch = if revives { as_revivals(batch) } else { batch };
            match destination {
                Destination::Store(store, connection) => {
                    // First, so that no record refers to what is not there.
                    let kept_out = (!revives).then_some(*store);
                    let kept = store_files(blobs, kept_out, connection, files.take())?;
                    kept_files.set(kept_files.get() + kept);
                    store.write(connection, batch)
                }
                Destination::Preview(preview) => {
                    kept_files.set(kept_files.get() + files.take().len() as u64);
                    preview.apply(batch)
                }
            }
        };
        let mut batch = Batch::new(self.limits);
        loop {
            let item = importer.next_item();
            files.borrow_mut().extend(importer.take_files());
            let ended = !matches!(item, Ok(Some(_)));
            let failed = item.map(|item| item.into_iter().for_each(|item| batch.add(item)));
            if batch.is_full() || (ended && batch.lines > 0) {
                let report = &mut self.report;
                batch.flush(&mut write, &mut Reporting { report, file })?;
                self.report.blobs += kept_files.take();
                acknowledged(&self.report);
            }
            failed?;
            if ended {
                let note = importer.note().or_else(|| {
                    let nothing = self.report.read == before;
                    nothing.then(|| "the input holds no record, so nothing was imported".to_owned())
                });
                let note = note.filter(|note| !note.is_empty());
                self.report.notes.extend(note.map(|note| match file {
                    Some(file) => format!("{file}: {note}"),
                    None => note,
                }));
                return Ok(());
            }
        }
    }

    /// Notes that a file could not be read, and was passed over from there on.
    pub fn pass_over(&mut self, file: &str, message: &str) {
        self.report.broken.push(BrokenFile {
            file: file.to_owned(),
            message: message.to_owned(),
        });
    }

    pub fn report(&self) -> &ImportReport {
        &self.report
    }

    pub fn into_report(self) -> ImportReport {
        self.report
    }

    /// The report, and the first records that a dry run would add or change.
    pub fn into_report_and_samples(self) -> (ImportReport, Vec<Sample>) {
        let samples = match self.destination {
            Destination::Store(..) => Vec::new(),
            Destination::Preview(preview) => preview.into_samples(),
        };
        (self.report, samples)
    }
}

fn as_revivals(mut batch: Vec<Change>) -> Vec<Change> {
    for change in &mut batch {
        change.op = match std::mem::replace(&mut change.op, ChangeOp::Delete) {
            ChangeOp::Upsert(body) => ChangeOp::Revive(body),
            other => other,
        };
    }
    batch
}

/// Stores files that are not there yet, or are damaged or missing now, but none of a record that the owner deleted. Says how
/// many are there then.
fn store_files(
    blobs: Option<&dyn Blobs>,
    kept_out: Option<&dyn Records>,
    connection: &ConnectionId,
    files: Vec<File>,
) -> Result<u64, StoreError> {
    let Some(blobs) = blobs else {
        return Ok(0);
    };
    let mut kept = 0;
    for file in files {
        let stream = StreamRef::new(connection, &file.stream);
        if let Some(records) = kept_out
            && records.is_deleted_by_owner(&stream, &file.key)?
        {
            continue;
        }
        let bound = blobs.blob(&stream, &file.blob)?;
        let bound = bound.is_some_and(|(_, keys)| keys.contains(&file.key));
        if !bound || !is_whole(blobs, &file.blob) {
            let mut bytes = file.bytes.as_slice();
            blobs.put_blob(&stream, &file.key, &file.media_type, &mut bytes)?;
        }
        kept += 1;
    }
    Ok(kept)
}

/// Whether the bytes of a blob can be read to their end, which they can only if they are the right ones.
fn is_whole(blobs: &dyn Blobs, id: &BlobId) -> bool {
    let opened = blobs.open_blob(id);
    opened.is_ok_and(|mut bytes| io::copy(&mut bytes, &mut io::sink()).is_ok())
}

/// Why a run ended before its input did.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// The input cannot be read further.
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Stopped {
    pub fn named(self, name: &str) -> ImportError {
        match self {
            Self::Input(error) => error.named(name),
            Self::Store(error) => error.into(),
        }
    }
}

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
