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
const PLAIN: &str =
    "key, emitted_at, data, sort, version, version <> row_id, stream_id, digest, row_id";

/// [`PLAIN`] without content that is larger than fits when so many are read at a time.
pub(super) fn plain_columns(records: usize) -> String {
    let most = most_bytes(records);
    PLAIN.replace(
        "data",
        &format!("CASE WHEN octet_length(data) <= {most} THEN data END"),
    )
}

/// How large the content of a record may be where so many are read at a time.
pub(super) fn most_bytes(records: usize) -> usize {
    (2 * PAGE_BYTES / records.max(1)).min(LARGE_BYTES)
}

/// The records of rows of [`plain_columns`], or of `records_by_row`; `None` where content was left out.
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

/// A live record as it was read.
pub(super) struct Stored<'a> {
    stream: i64,
    key: &'a str,
    emitted_at: String,
    body: String,
    sort: Option<i64>,
    version: u64,
    revised: bool,
    digest: i64,
    row: u64,
}

impl<'a> Stored<'a> {
    /// The array of `record_by_key`. Its row is the version that created a record, so this tells whether it was changed.
    pub(super) fn of_array(
        stream: i64,
        key: &'a str,
        columns: Vec<Option<String>>,
    ) -> Option<Self> {
        let [emitted_at, body, sort, version, digest, row] = columns.try_into().ok()?;
        let number = |text: Option<String>| text?.parse::<i64>().ok();
        let (version, row) = (number(version)?, number(row)?);
        let sort = match sort {
            Some(sort) => Some(sort.parse().ok()?),
            None => None,
        };
        Some(Self {
            stream,
            key,
            emitted_at: emitted_at?,
            body: body?,
            sort,
            version: version.cast_unsigned(),
            revised: version != row,
            digest: number(digest)?,
            row: row.cast_unsigned(),
        })
    }

    /// One that is not what was written is given without content and said to be damaged. `None` where its stream is not known
    /// any more.
    pub(super) fn found(self, sources: &Sources) -> Option<Found> {
        let entry = sources.by_id(self.stream)?;
        let content = Content {
            stream: self.stream,
            key: self.key,
            version: self.version,
            emitted_at: &self.emitted_at,
            data: Some(&self.body),
        };
        let is_damaged = content.digest() != self.digest;
        let key = RecordKey::from_ordering_form(self.key);
        Some(Found {
            row: self.row,
            stream: self.stream,
            bytes: self.body.len(),
            record: StoredRecord {
                emitted_at: self.emitted_at,
                body: if is_damaged { String::new() } else { self.body },
                is_damaged,
                version: self.version,
                revised: self.revised,
                position: PagePosition {
                    sort: sort_of(self.sort, &entry.layout),
                    key: key.clone(),
                },
                key,
            },
        })
    }
}

/// Reads the columns of [`STORED`].
pub(super) fn found(row: &Row, sources: &Sources) -> Result<Option<Found>> {
    let stored = Stored {
        stream: row.get(6)?,
        key: row.get(0)?,
        emitted_at: row.get(1)?,
        body: row.get(2)?,
        sort: row.get(3)?,
        version: row.get::<i64>(4)?.cast_unsigned(),
        revised: row.get(5)?,
        digest: row.get(7)?,
        row: row.get::<i64>(8)?.cast_unsigned(),
    };
    Ok(stored.found(sources))
}
