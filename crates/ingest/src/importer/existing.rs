//! What exists already where an import goes, for formats whose items are told apart only by that.

use contract::id::{ConnectionId, StreamName};
use contract::key::RecordKey;
use store::StoreError;
use store::catalog::StreamRef;
use store::records::{
    Direction, OrderBy, PagePosition, PageRequest, Records, SortValue, StoredRecord,
};

use super::Destination;

/// The records that exist already, including those of earlier inputs of the same import.
pub trait ExistingRecords {
    fn keys(&self, stream: &str) -> Result<Vec<RecordKey>, StoreError>;
    fn presence(&self, stream: &str, key: &RecordKey) -> Result<Presence, StoreError>;
    /// The body of a stored record.
    fn body(&self, stream: &str, key: &RecordKey) -> Result<Option<String>, StoreError>;
    /// Stored records whose keys begin with a text, a hundred at most.
    fn begun_with(&self, stream: &str, text: &str) -> Result<Vec<StoredRecord>, StoreError>;
    /// Whether records that the owner deleted are brought back.
    fn revives(&self) -> bool;
}

/// What is known of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    Live,
    DeletedByOwner,
    Absent,
}

const KEYS_AT_ONCE: usize = 1_000;

/// Records that begin alike, of which so many are looked at.
const BEGUN_ALIKE: usize = 100;

/// What a destination holds, as an import sees it.
pub(super) struct Seen<'i, 'a> {
    pub(super) destination: &'i Destination<'a>,
    pub(super) revives: bool,
}

impl ExistingRecords for Seen<'_, '_> {
    fn keys(&self, stream: &str) -> Result<Vec<RecordKey>, StoreError> {
        match self.destination {
            Destination::Store(store, connection) => stored_keys(*store, connection, stream),
            Destination::Preview(preview) => preview.keys(stream),
        }
    }

    fn presence(&self, stream: &str, key: &RecordKey) -> Result<Presence, StoreError> {
        match self.destination {
            Destination::Store(store, connection) => {
                stored_presence(*store, connection, stream, key)
            }
            Destination::Preview(preview) => preview.presence(stream, key),
        }
    }

    fn body(&self, stream: &str, key: &RecordKey) -> Result<Option<String>, StoreError> {
        let stored = self.destination.stored();
        let Some((store, stream)) =
            stored.and_then(|(store, connection)| Some((store, stream_of(connection, stream)?)))
        else {
            return Ok(None);
        };
        Ok(store.get(&stream, key)?.map(|record| record.body))
    }

    fn begun_with(&self, stream: &str, text: &str) -> Result<Vec<StoredRecord>, StoreError> {
        let Some((store, connection)) = self.destination.stored() else {
            return Ok(Vec::new());
        };
        let (Some(stream), Ok(before)) = (stream_of(connection, stream), RecordKey::single(text))
        else {
            return Ok(Vec::new());
        };
        let request = PageRequest {
            by: OrderBy::Key,
            direction: Direction::Ascending,
            after: Some(PagePosition {
                sort: SortValue::Missing,
                key: before,
            }),
            limit: BEGUN_ALIKE,
        };
        let mut records = store.page(&stream, &request)?.records;
        records.retain(|record| record.key.as_str().starts_with(text));
        Ok(records)
    }

    fn revives(&self) -> bool {
        self.revives
    }
}

pub(crate) fn stored_presence(
    store: &dyn Records,
    connection: &ConnectionId,
    stream: &str,
    key: &RecordKey,
) -> Result<Presence, StoreError> {
    let Some(stream) = stream_of(connection, stream) else {
        return Ok(Presence::Absent);
    };
    if store.get(&stream, key)?.is_some() {
        return Ok(Presence::Live);
    }
    Ok(if store.is_deleted_by_owner(&stream, key)? {
        Presence::DeletedByOwner
    } else {
        Presence::Absent
    })
}

fn stream_of(connection: &ConnectionId, stream: &str) -> Option<StreamRef> {
    let stream = StreamName::parse(stream).ok()?;
    let connection = connection.clone();
    Some(StreamRef { connection, stream })
}

pub(crate) fn stored_keys(
    store: &dyn Records,
    connection: &ConnectionId,
    stream: &str,
) -> Result<Vec<RecordKey>, StoreError> {
    let mut keys = Vec::new();
    let Some(stream) = stream_of(connection, stream) else {
        return Ok(keys);
    };
    let mut request = PageRequest::first(OrderBy::Key, Direction::Ascending, KEYS_AT_ONCE);
    loop {
        let page = store.page(&stream, &request)?;
        request.after = page.records.last().map(|record| record.position.clone());
        keys.extend(page.records.into_iter().map(|record| record.key));
        if page.is_last {
            return Ok(keys);
        }
    }
}
