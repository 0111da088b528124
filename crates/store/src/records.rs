//! Records: written in durable batches, read by key, by page, and as a feed of changes.

use contract::id::{ConnectionId, StreamName};
use contract::json::RecordBody;
use contract::key::RecordKey;
pub use contract::query::Order as Direction;
use contract::scalar::Scalar;
use contract::time::Instant;

use crate::Result;
use crate::catalog::StreamRef;
use crate::index::layout::StreamLayout;

#[derive(Debug, Clone)]
pub struct Change {
    pub stream: StreamName,
    pub key: RecordKey,
    /// When the source emitted it, kept as written.
    pub emitted_at: String,
    pub op: ChangeOp,
}

#[derive(Debug, Clone)]
pub enum ChangeOp {
    /// Adds the record or replaces its content.
    Upsert(RecordBody),
    /// Adds the record; one that is there with other content stays as it is.
    Add(RecordBody),
    /// The same as an upsert, also where the owner deleted the record before.
    Revive(RecordBody),
    /// Leaves a tombstone.
    Delete,
    /// The same, by the owner: later imports of the key are ignored until the record is revived.
    DeleteByOwner,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// The key was not there (or was deleted) and now is.
    Added,
    /// The content was replaced.
    Updated,
    /// The content was equal as JSON; nothing was written.
    Unchanged,
    /// The content is another, which was to stay; nothing was written.
    LeftAsItIs,
    /// The record is now a tombstone.
    Deleted,
    /// There was nothing to delete.
    AlreadyAbsent,
    /// The stream is append-only and the content differs; nothing was written.
    AppendOnlyConflict,
    /// The owner deleted the record; nothing was written.
    KeptDeleted,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StoredRecord {
    pub key: RecordKey,
    /// When the source emitted it, as written.
    pub emitted_at: String,
    /// Its JSON object, as written.
    pub body: String,
    /// Whether it is not what was written any more, found among others. Then there is no body; asked for by its key it is
    /// refused.
    pub is_damaged: bool,
    pub version: u64,
    /// Whether it has earlier versions, which [`Records::history`] returns.
    pub revised: bool,
    /// Its position in cursor order.
    pub position: PagePosition,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderBy {
    /// The declared cursor field, then the key; records without a cursor value last.
    Cursor,
    /// The key alone (where the cursor field may not be seen).
    Key,
}

/// A cursor value as the store compares it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SortValue {
    /// An integer or an instant in microseconds.
    Integer(i64),
    /// A number with a fraction.
    Real(f64),
    /// Null, absent or unreadable: sorts last in both directions.
    Missing,
}

impl SortValue {
    /// The value of the cursor field of a record.
    pub(crate) fn of(layout: &StreamLayout, body: &RecordBody) -> Self {
        let scalar = layout.cursor.as_ref().and_then(|(field, kind)| {
            let raw = body.get(field.as_str())?;
            Scalar::from_json(*kind, raw)
        });
        match scalar {
            Some(Scalar::Integer(value)) => Self::Integer(value),
            Some(Scalar::Instant(value)) => Self::Integer(value.0),
            Some(Scalar::Number(value)) => Self::Real(value),
            Some(Scalar::Boolean(_) | Scalar::Text(_)) | None => Self::Missing,
        }
    }
}

/// The position of one record in an order; a page continues strictly after it.
#[derive(Debug, Clone, PartialEq)]
pub struct PagePosition {
    pub sort: SortValue,
    /// The key, which decides between equal cursor values.
    pub key: RecordKey,
}

/// The bytes of content read at a time: a page, or a piece of a feed or history, ends before it has more, unless its first
/// entry alone has.
pub const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Content that is left out of a row until it is known to fit: a query reads each row as a whole.
pub(crate) const LARGE_BYTES: usize = 64 * 1024;

/// How many bytes may still be added to a page.
#[derive(Debug, Clone)]
pub struct ByteBudget {
    left: usize,
    is_empty: bool,
}

impl Default for ByteBudget {
    fn default() -> Self {
        Self::new(PAGE_BYTES)
    }
}

impl ByteBudget {
    pub fn new(bytes: usize) -> Self {
        Self {
            left: bytes,
            is_empty: true,
        }
    }

    /// Takes the bytes of an entry, if there are enough left. The first entry always fits.
    pub fn take(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.left || self.is_empty;
        if fits {
            self.left = self.left.saturating_sub(bytes);
            self.is_empty = false;
        }
        fits
    }
}

#[derive(Debug, Clone)]
pub struct PageRequest {
    pub by: OrderBy,
    pub direction: Direction,
    /// Where the previous page ended.
    pub after: Option<PagePosition>,
    pub limit: usize,
}

impl PageRequest {
    pub fn first(by: OrderBy, direction: Direction, limit: usize) -> Self {
        Self {
            by,
            direction,
            after: None,
            limit,
        }
    }
}

/// Records in order, as many as were asked for or as [`PAGE_BYTES`] hold.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredPage {
    pub records: Vec<StoredRecord>,
    /// Whether these are the last ones. If `false`, there may be more.
    pub is_last: bool,
}

/// A slice of the changes feed: what changed in `(since, until]`.
#[derive(Debug, Clone)]
pub struct ChangesRequest {
    /// The bookmark the reader already has; 0 for the beginning.
    pub since: u64,
    /// The horizon fixed by the first page; `None` asks for the newest.
    pub until: Option<u64>,
    /// Where the previous page of this session ended.
    pub after: u64,
    /// Whether to have an entry for each version. Otherwise each key has one, for its last version up to the horizon.
    pub every_version: bool,
    /// At most this many entries; a page that ends by its bytes has fewer.
    pub limit: usize,
}

impl ChangesRequest {
    /// The first page of what changed since a bookmark.
    pub fn since(since: u64, limit: usize) -> Self {
        Self {
            since,
            until: None,
            after: since,
            every_version: false,
            limit,
        }
    }
}

/// What a key was from one version on, and what it was at the bookmark.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeEntry {
    pub version: u64,
    pub key: RecordKey,
    pub emitted_at: String,
    /// The content from this version on, or `None` for a deletion.
    pub current: Option<String>,
    /// The content at the bookmark, or `None` where there was none.
    pub previous: Option<String>,
    /// Whether the key has other versions as well.
    pub revised: bool,
    /// Whether the content is not what was written any more, and left out.
    pub is_damaged: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    pub version: u64,
    /// When the source emitted it, as written.
    pub emitted_at: String,
    /// The content, or `None` for a deletion.
    pub body: Option<String>,
}

#[derive(Debug, Clone)]
pub struct ChangesPage {
    /// Entries by version, oldest first.
    pub entries: Vec<ChangeEntry>,
    /// The horizon of the session: the next bookmark.
    pub until: u64,
    pub has_more: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Purged {
    /// Tombstones whose content and key are gone.
    pub tombstones: u64,
    /// Blobs that no record refers to any more.
    pub blobs: u64,
}

/// What replacing this content does; without any, the record is added.
pub(crate) fn replacing(current: Option<&str>, body: &RecordBody, append_only: bool) -> Applied {
    match current {
        None => Applied::Added,
        Some(data) if contract::json::same_value(data, body.as_str()) => Applied::Unchanged,
        Some(_) if append_only => Applied::AppendOnlyConflict,
        Some(_) => Applied::Updated,
    }
}

/// Whether adding this leaves what is there as it is.
pub(crate) fn stays(current: Option<&str>, body: &RecordBody) -> bool {
    current.is_some_and(|data| !contract::json::same_value(data, body.as_str()))
}

pub trait Records {
    /// Applies a batch in order, in one transaction. When this returns, the batch is on disk and every later read sees it.
    fn write(&self, connection: &ConnectionId, batch: Vec<Change>) -> Result<Vec<Applied>>;
    fn get(&self, stream: &StreamRef, key: &RecordKey) -> Result<Option<StoredRecord>>;
    /// Whether the owner deleted the record of that key, and it was not revived since.
    fn is_deleted_by_owner(&self, stream: &StreamRef, key: &RecordKey) -> Result<bool>;
    fn page(&self, stream: &StreamRef, request: &PageRequest) -> Result<StoredPage>;
    fn changes(&self, stream: &StreamRef, request: &ChangesRequest) -> Result<ChangesPage>;
    /// The revisions of one key, from a version back, newest first: at most `limit` and [`PAGE_BYTES`]; empty where there
    /// are no more.
    fn history(
        &self,
        stream: &StreamRef,
        key: &RecordKey,
        upto: u64,
        limit: usize,
    ) -> Result<Vec<Revision>>;
    /// Live records that once had a later date than now, perhaps one after this moment, each with a moment that none of its
    /// dates is after; latest first.
    fn redated(
        &self,
        stream: &StreamRef,
        after: Option<Instant>,
        limit: usize,
    ) -> Result<Vec<(Instant, StoredRecord)>>;
    /// Erases what stands behind tombstones, in every stream.
    fn purge(&self) -> Result<Purged>;
}
