//! What an import did, in numbers, and which lines it refused.

use std::collections::BTreeMap;

use contract::id::StreamName;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use store::records::Applied;

use crate::importer::{ItemPosition, Tally};
use crate::rejection::{Rejection, RejectionCode};

/// How many rejections are kept; all are counted.
const KEPT_REJECTIONS: usize = 1_000;

/// What became of records that were derived from others: the occurrences of recurring events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OccurrenceReport {
    pub added: u64,
    /// Those whose content changed.
    pub updated: u64,
    /// Those that no longer take place.
    pub removed: u64,
    /// Those that were there already.
    pub unchanged: u64,
}

impl OccurrenceReport {
    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The outcome of an import. `read` is always `added + updated + unchanged + kept_newer + kept_deleted + rejected`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportReport {
    /// Lines or rows answered for: durable, or refused.
    pub read: u64,
    pub added: u64,
    /// Records whose content changed, or that were deleted.
    pub updated: u64,
    /// Records that were there already, and deletions of what was not.
    pub unchanged: u64,
    /// Records that were there as a later export has them, and stayed so.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub kept_newer: u64,
    /// Records that the owner deleted, and that therefore were not taken.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub kept_deleted: u64,
    pub rejected: u64,
    /// How many of them were taken, by stream: added, updated or there already.
    #[serde(default)]
    pub records: BTreeMap<String, u64>,
    /// Files that came with records, such as attachments, and are kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub blobs: u64,
    /// Records that were there and that the input does not have, where these were asked to be deleted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pruned: u64,
    /// Occurrences of recurring events, which count in none of the other numbers.
    #[serde(default, skip_serializing_if = "OccurrenceReport::is_empty")]
    pub occurrences: OccurrenceReport,
    /// The first thousand of them.
    pub rejections: Vec<RejectedLine>,
    /// Files that could not be read to their end, and were passed over from there on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<BrokenFile>,
    /// What had to be assumed about inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl ImportReport {
    /// Adds what another import did.
    pub fn add(&mut self, other: Self) {
        self.read += other.read;
        self.added += other.added;
        self.updated += other.updated;
        self.unchanged += other.unchanged;
        self.kept_newer += other.kept_newer;
        self.kept_deleted += other.kept_deleted;
        self.rejected += other.rejected;
        self.blobs += other.blobs;
        self.pruned += other.pruned;
        for (stream, records) in other.records {
            *self.records.entry(stream).or_default() += records;
        }
        self.occurrences.added += other.occurrences.added;
        self.occurrences.updated += other.occurrences.updated;
        self.occurrences.removed += other.occurrences.removed;
        self.occurrences.unchanged += other.occurrences.unchanged;
        self.rejections.extend(other.rejections);
        self.rejections.truncate(KEPT_REJECTIONS);
        self.broken.extend(other.broken);
        self.notes.extend(other.notes);
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenFile {
    pub file: String,
    /// What is wrong with it.
    pub message: String,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "this is how serde calls it"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedLine {
    /// The file, where several were imported.
    pub file: Option<String>,
    /// The line in the file, from 1; for a row of several lines the first.
    pub line: u64,
    pub code: RejectionCode,
    pub message: String,
    /// The field or column at fault, where there is one.
    pub field: Option<String>,
    /// What stands in it, as it is but cut, where that is the fault. Whoever shows it escapes it.
    pub value: Option<String>,
}

/// Counts into a report, naming the file where that is wanted.
pub(crate) struct Reporting<'a> {
    pub(crate) report: &'a mut ImportReport,
    pub(crate) file: Option<&'a str>,
}

impl Tally for Reporting<'_> {
    fn applied(&mut self, position: ItemPosition, applied: Applied) {
        if position.is_derived {
            let counts = &mut self.report.occurrences;
            match applied {
                Applied::Added => counts.added += 1,
                Applied::Updated => counts.updated += 1,
                Applied::Deleted => counts.removed += 1,
                _ => counts.unchanged += 1,
            }
            return;
        }
        self.report.read += 1;
        match applied {
            Applied::Added => self.report.added += 1,
            Applied::Updated | Applied::Deleted => self.report.updated += 1,
            Applied::LeftAsItIs => self.report.kept_newer += 1,
            Applied::KeptDeleted => self.report.kept_deleted += 1,
            // A conflict comes as a rejection and never as this.
            Applied::Unchanged | Applied::AlreadyAbsent | Applied::AppendOnlyConflict => {
                self.report.unchanged += 1;
            }
        }
    }

    fn kept_deleted(&mut self, position: ItemPosition) -> Option<Rejection> {
        self.applied(position, Applied::KeptDeleted);
        None
    }

    fn of_stream(&mut self, stream: &StreamName, records: u64) {
        if records > 0 {
            let known = self.report.records.entry(stream.to_string());
            *known.or_default() += records;
        }
    }

    fn rejected(&mut self, position: ItemPosition, rejection: Rejection) {
        self.report.read += 1;
        self.report.rejected += 1;
        if self.report.rejections.len() < KEPT_REJECTIONS {
            self.report.rejections.push(RejectedLine {
                file: self.file.map(str::to_owned),
                line: position.line,
                code: rejection.code,
                message: rejection.message,
                field: rejection.field,
                value: rejection.value,
            });
        }
    }
}
