//! Rows of records as PostgreSQL holds them.

use std::collections::HashSet;

use contract::key::RecordKey;

use super::pool::{Pool, Row};
use super::sort::sort_value;
use crate::Result;
use crate::index::layout::StreamLayout;
use crate::index::sources::Sources;
use crate::record_digest::Content;
use crate::records::{LARGE_BYTES, PAGE_BYTES, PagePosition, SortValue, StoredRecord};

/// The columns that a [`StoredRecord`] is made of, of the table `records`.
pub(super) const STORED: &str = "key, emitted_at, data, sort, version,
    EXISTS (SELECT 1 FROM versions WHERE versions.stream_id = records.stream_id AND versions.row_id = records.row_id),
    stream_id, digest, row_id";

/// The same for a few records, where planning the statement is most of the work. Its row is the version that created a record, so
/// this tells which were changed; whether they have earlier versions still is asked by [`confirm_revised`].
pub(super) const PLAIN: &str =
    "key, emitted_at, data, sort, version, version <> row_id, stream_id, digest, row_id";

/// [`PLAIN`] without content that is larger than fits when so many are read at a time.
pub(super) fn plain_columns(records: usize) -> String {
    let most = (2 * PAGE_BYTES / records.max(1)).min(LARGE_BYTES);
    PLAIN.replace(
        "data",
        &format!("CASE WHEN octet_length(data) <= {most} THEN data END"),
    )
}

/// The records of rows of [`plain_columns`]; `None` where content was left out.
pub(super) fn plain(rows: &[Row], pool: &Pool, sources: &Sources) -> Result<Option<Vec<Found>>> {
    let mut records = Vec::with_capacity(rows.len());
    for row in rows {
        if row.get::<Option<&str>>(2)?.is_none() {
            return Ok(None);
        }
        records.extend(found(row, sources)?);
    }
    confirm_revised(pool, &mut records)?;
    Ok(Some(records))
}

/// Asks of records that were changed whether they have earlier versions still.
pub(super) fn confirm_revised(pool: &Pool, records: &mut [Found]) -> Result<()> {
    let changed = records.iter().filter(|found| found.record.revised);
    let (streams, rows): (Vec<i64>, Vec<i64>) = changed
        .map(|found| (found.stream, found.row.cast_signed()))
        .unzip();
    if rows.is_empty() {
        return Ok(());
    }
    let sql = "SELECT DISTINCT row_id FROM versions WHERE stream_id = ANY($1) AND row_id = ANY($2)";
    let rows = pool.query(sql, &[&streams, &rows])?;
    let rows: HashSet<i64> = rows.iter().map(|row| row.get(0)).collect::<Result<_>>()?;
    for Found { row, record, .. } in records {
        record.revised = rows.contains(&row.cast_signed());
    }
    Ok(())
}

/// The cursor value of a stream's row.
pub(super) fn sort_of(number: Option<i64>, layout: &StreamLayout) -> SortValue {
    sort_value(number, layout.cursor.as_ref().map(|(_, kind)| *kind))
}

/// A record with the row and the stream it is in.
pub(super) struct Found {
    pub(super) row: u64,
    pub(super) stream: i64,
    /// How large its content is, also where that is left out because it is damaged.
    pub(super) bytes: usize,
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
        bytes: body.len(),
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
