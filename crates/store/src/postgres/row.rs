//! Rows of records as PostgreSQL holds them.

use contract::key::RecordKey;

use super::pool::Row;
use super::sort::sort_value;
use crate::Result;
use crate::index::layout::StreamLayout;
use crate::index::sources::Sources;
use crate::record_digest::Content;
use crate::records::{PagePosition, SortValue, StoredRecord};

/// The columns that a [`StoredRecord`] is made of, of the table `records`.
pub(super) const STORED: &str = "key, emitted_at, data, sort, version,
    EXISTS (SELECT 1 FROM versions WHERE versions.stream_id = records.stream_id AND versions.row_id = records.row_id),
    stream_id, digest, row_id";

/// The cursor value of a stream's row.
pub(super) fn sort_of(number: Option<i64>, layout: &StreamLayout) -> SortValue {
    sort_value(number, layout.cursor.as_ref().map(|(_, kind)| *kind))
}

/// A record with the row and the stream it is in.
pub(super) struct Found {
    pub(super) row: u64,
    pub(super) stream: i64,
    pub(super) record: StoredRecord,
}

/// Reads the columns of [`STORED`]. One that is not what was written is given without content and said to be damaged.
/// `None` where its stream is not known any more.
pub(super) fn found(row: &Row, sources: &Sources) -> Result<Option<Found>> {
    let stream: i64 = row.get(6)?;
    let Some(entry) = sources.by_id(stream) else {
        return Ok(None);
    };
    let form: &str = row.get(0)?;
    let version = row.get::<i64>(4)?.cast_unsigned();
    let emitted_at: String = row.get(1)?;
    let body: String = row.get(2)?;
    let content = Content {
        stream,
        key: form,
        version,
        emitted_at: &emitted_at,
        data: Some(&body),
    };
    let is_damaged = content.digest() != row.get::<i64>(7)?;
    let key = RecordKey::from_ordering_form(form);
    Ok(Some(Found {
        row: row.get::<i64>(8)?.cast_unsigned(),
        stream,
        record: StoredRecord {
            emitted_at,
            body: if is_damaged { String::new() } else { body },
            is_damaged,
            version,
            revised: row.get(5)?,
            position: PagePosition {
                sort: sort_of(row.get(3)?, &entry.layout),
                key: key.clone(),
            },
            key,
        },
    }))
}
