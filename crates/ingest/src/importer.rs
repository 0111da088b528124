//! Imports any format into the store: items become batches, each batch is one durable write, each item is counted once.
//! Memory is bounded by one batch, whatever the size of the input.

mod ages;
mod batch;
mod existing;
mod prune;
mod waiting;

use std::cell::{Cell, RefCell};
use std::io;

use contract::declaration::Declaration;
use contract::id::{BlobId, ConnectionId, StreamName};
use contract::key::RecordKey;
use contract::time::Instant;
use store::StoreError;
use store::blobs::Blobs;
use store::catalog::StreamRef;
use store::records::{Applied, Change, ChangeOp, Records};

use crate::error::{ImportError, InputError};
use crate::preview::{Preview, Sample};
use crate::rejection::Rejection;
use crate::report::{BrokenFile, ImportReport, Reporting};
use ages::Ages;
pub(crate) use ages::is_older;
pub(crate) use batch::Batch;
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

    fn write(&mut self, batch: Vec<Change>) -> Result<Vec<Applied>, StoreError> {
        match self {
            Destination::Store(store, connection) => store.write(connection, batch),
            Destination::Preview(preview) => preview.apply(batch),
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
    /// How old the export is, where that matters.
    ages: Option<Ages<'a>>,
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
            ages: None,
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

    /// Also remembers what comes, to delete what does not.
    #[must_use]
    pub fn pruning(mut self, prunes: bool) -> Self {
        self.present = prunes.then(Present::default);
        self
    }

    /// Also looks whether an export is older than what is there, unless all is to become as it is in the export. Without this, what is
    /// imported last counts.
    #[must_use]
    pub fn comparing_ages(mut self, declaration: &'a Declaration, now: Instant) -> Self {
        self.ages = Ages::new(declaration, now).filter(|_| self.present.is_none());
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
        let (present, ages) = (&mut self.present, &mut self.ages);
        if let Some(ages) = ages {
            ages.begin_file(destination)?;
        }
        let mut write = |batch: Vec<Change>| {
            if let Some(present) = present {
                present.note(&batch);
            }
            // First, so that no record refers to what is not there.
            let kept = match destination {
                Destination::Store(store, connection) => {
                    let kept_out = (!revives).then_some(*store);
                    store_files(blobs, kept_out, connection, files.take())?
                }
                Destination::Preview(_) => files.take().len() as u64,
            };
            kept_files.set(kept_files.get() + kept);
            match ages {
                Some(ages) => ages.write(destination, batch, revives),
                None => destination.write(as_asked(batch, revives, &|_| false)),
            }
        };
        let mut batch = Batch::new(self.limits);
        loop {
            let item = importer.next_item();
            files.borrow_mut().extend(importer.take_files());
            let ended = !matches!(item, Ok(Some(_)));
            let failed = item.map(|item| item.into_iter().for_each(|item| batch.add(item)));
            if batch.is_full() || (ended && !batch.is_empty()) {
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

    /// Ends the import: writes what had to wait for its end, and deletes what did not come, where that was asked for.
    pub fn finish(&mut self, now: Instant) -> Result<(), StoreError> {
        let (destination, revives) = (&mut self.destination, self.revives);
        let waiting = self
            .ages
            .as_mut()
            .map(|ages| ages.take_waiting(destination));
        if let Some(waiting) = waiting.transpose()?.flatten() {
            let report = &mut self.report;
            waiting.give(self.limits, |batch| {
                let applied = destination.write(as_asked(batch, revives, &|_| false))?;
                let updated = applied.iter().filter(|one| **one == Applied::Updated);
                let updated = updated.count() as u64;
                report.updated += updated;
                report.kept_newer = report.kept_newer.saturating_sub(updated);
                Ok(())
            })?;
        }
        self.prune(now)
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

/// The batch as it is written: what is added replaces what is there, except in streams that are only added to, and brings back what the
/// owner deleted where that is asked for.
fn as_asked(
    mut batch: Vec<Change>,
    revives: bool,
    adds_only: &dyn Fn(&StreamName) -> bool,
) -> Vec<Change> {
    for change in &mut batch {
        change.op = match std::mem::replace(&mut change.op, ChangeOp::Delete) {
            ChangeOp::Add(body) if adds_only(&change.stream) => ChangeOp::Add(body),
            ChangeOp::Add(body) | ChangeOp::Upsert(body) if revives => ChangeOp::Revive(body),
            ChangeOp::Add(body) => ChangeOp::Upsert(body),
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
