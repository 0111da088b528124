//! What the index needs of the records it is derived from: a small port, so that it can stand over any database.
//!
//! Rows and streams are named by numbers that a store gives once and never again. Reads take many rows at a time, since each
//! may be a round trip.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use contract::key::RecordKey;

use super::engine::Versions;
use super::sources::Sources;
use crate::Result;
use crate::records::{PagePosition, PageRequest, StoredPage, StoredRecord};

/// Tells one history from another that has the same version numbers: random, one for each transaction that wrote. A store
/// whose history cannot be rewritten has none.
pub(crate) type Mark = Option<String>;

/// A change as it is replayed.
pub(crate) struct Replayed {
    pub(crate) row: u64,
    pub(crate) stream: i64,
    pub(crate) emitted_at: String,
    /// The content; `None` where the record is gone.
    pub(crate) data: Option<String>,
}

/// One state of the records, to replay changes from.
pub(crate) trait TruthSnapshot {
    fn head(&self) -> Result<u64>;
    /// The mark of the transaction that a version is of.
    fn mark(&self, version: u64) -> Result<Mark>;
    /// Up to which version records may have been deleted without a trace. A store that lets nothing go before its only index has
    /// seen it has no such version.
    fn purged_to(&self) -> Result<u64> {
        Ok(0)
    }
    /// Streams that were erased with these versions.
    fn erased(&self, versions: Versions) -> Result<Vec<i64>>;
    /// Hands over the rows whose present state has one of these versions. Of each stream, in the order of versions. A damaged
    /// record has empty content: it stays in the index with nothing to be found by, so that all others can be.
    fn replay(
        &self,
        versions: Versions,
        each: &mut dyn FnMut(Replayed) -> Result<()>,
    ) -> Result<()>;
}

/// A record with its row and stream.
pub(crate) struct RowRecord {
    pub(crate) row: u64,
    pub(crate) stream: i64,
    pub(crate) record: StoredRecord,
}

/// A record whose content is wanted: by its row, and the version it has now.
pub(crate) struct ChangedRecord {
    pub(crate) row: u64,
    pub(crate) version: u64,
    /// The content; `None` where the record is gone or damaged.
    pub(crate) data: Option<String>,
}

/// A live record to be indexed again.
pub(crate) struct LiveRow {
    pub(crate) row: u64,
    pub(crate) emitted_at: String,
    /// What it is found by: nothing where it is damaged, so that all others can be.
    pub(crate) data: String,
}

/// Rows of a stream, both ends included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowRange {
    pub(crate) stream: i64,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

pub(crate) trait Truth: Send + Sync {
    /// Where the records are, for messages.
    fn place(&self) -> &Path;

    /// The sources as they were known last; a stable view for one operation.
    fn sources(&self) -> Arc<Sources>;

    /// The version of the last acknowledged change, by whomever, with its mark. Sources that changed until then are known
    /// afterwards.
    fn head(&self) -> Result<(u64, Mark)>;

    /// Runs something on one state of the records.
    fn on_snapshot(&self, run: &mut dyn FnMut(&dyn TruthSnapshot) -> Result<()>) -> Result<()>;

    /// How many records there are in all.
    fn live_records(&self) -> Result<u64>;

    /// How many records a stream has.
    fn live_in(&self, stream: i64) -> Result<u64>;

    /// The rows of these keys, of those that are there.
    fn rows_of(&self, stream: i64, keys: &[RecordKey]) -> Result<HashSet<u64>>;

    /// The stream and the key in ordering form of each of these rows; `None` where it was erased.
    fn names_of(&self, rows: &[u64]) -> Result<Vec<Option<(i64, String)>>>;

    /// The live records of these rows, which are of these streams, in this order, as far as a page holds them, and whether it
    /// holds all.
    fn records(&self, streams: &[i64], rows: &[u64]) -> Result<(Vec<RowRecord>, bool)>;

    /// Where these rows stand in a page.
    fn positions(&self, rows: &[u64]) -> Result<Vec<(PagePosition, u64)>>;

    /// A page of a whole stream.
    fn page(&self, stream: i64, request: &PageRequest) -> Result<StoredPage>;

    /// The record of a row of a stream as it is now. One that is damaged is refused.
    fn current(&self, stream: i64, row: u64) -> Result<Option<StoredRecord>>;

    /// Earlier forms of it, newest first.
    fn earlier(&self, stream: i64, row: u64, limit: usize) -> Result<Vec<StoredRecord>>;

    /// The content of a row at a version and now, where it was replaced since.
    fn then_and_now(&self, row: u64, version: u64) -> Result<Option<(String, String)>>;

    /// Hands over records in the order of a page, until the callback returns false. Damaged ones come without content.
    fn walk(
        &self,
        stream: i64,
        request: &PageRequest,
        each: &mut dyn FnMut(u64, StoredRecord) -> Result<bool>,
    ) -> Result<()>;

    /// The same without content.
    fn walk_rows(
        &self,
        stream: i64,
        request: &PageRequest,
        each: &mut dyn FnMut(u64) -> bool,
    ) -> Result<()>;

    /// The first and the last row of a stream's live records.
    fn row_range(&self, stream: i64) -> Result<Option<RowRange>>;

    /// How many live records these are.
    fn live_between(&self, range: RowRange) -> Result<u64>;

    /// The first live records of a range.
    fn live_rows(&self, range: RowRange, limit: usize) -> Result<Vec<LiveRow>>;

    /// The version of the last change of a stream.
    fn last_version(&self, stream: i64) -> Result<u64>;

    /// Records whose present version is later, in the order of versions, and the last version of the stream at that state.
    fn changed(&self, stream: i64, after: u64, limit: usize) -> Result<(u64, Vec<ChangedRecord>)>;

    /// The rows and versions of all those, without content.
    fn changed_rows(&self, stream: i64, after: u64) -> Result<Vec<(u64, u64)>>;

    /// How many live records have a later version.
    fn changed_live(&self, stream: i64, after: u64) -> Result<u64>;

    /// The live rows of those with these versions.
    fn live_versions(&self, rows: &[(u64, u64)]) -> Result<HashSet<u64>>;
}
