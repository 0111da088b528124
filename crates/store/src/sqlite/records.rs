//! Reading records by key and by page.

use std::sync::LazyLock;

use contract::id::ConnectionId;
use contract::key::RecordKey;
use contract::time::Instant;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, MAIN_DB, OptionalExtension, Row};

use super::EmbeddedStore;
use super::database::changed;
use super::deleted_by_owner;
use super::digest::{check, damaged, readable};
use crate::Result;
use crate::catalog::StreamRef;
use crate::index::truth::Truth as _;
use crate::record_digest::Content;
use crate::records::{
    Applied, Change, ChangesPage, ChangesRequest, LARGE_BYTES, PagePosition, PageRequest, Purged,
    Records, Revision, SortValue, StoredPage, StoredRecord,
};

impl Records for EmbeddedStore {
    fn write(&self, connection: &ConnectionId, batch: Vec<Change>) -> Result<Vec<Applied>> {
        self.write_batch(connection, batch)
    }

    fn get(&self, stream: &StreamRef, key: &RecordKey) -> Result<Option<StoredRecord>> {
        let id = self.sources().stream(stream)?.id;
        self.database.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {} FROM records WHERE stream_id = ?1 AND key = ?2 AND data IS NOT NULL",
                    MEASURED.as_str()
                ))?
                .query_row((id, key.ordering_form()), |row| intact(connection, row))
                .optional()
        })
    }

    fn is_deleted_by_owner(&self, stream: &StreamRef, key: &RecordKey) -> Result<bool> {
        let id = self.sources().stream(stream)?.id;
        let form = key.ordering_form();
        self.database
            .read(|connection| deleted_by_owner::contains(connection, id, &form))
    }

    fn page(&self, stream: &StreamRef, request: &PageRequest) -> Result<StoredPage> {
        let id = self.sources().stream(stream)?.id;
        self.truth.page(id, request)
    }

    fn changes(&self, stream: &StreamRef, request: &ChangesRequest) -> Result<ChangesPage> {
        self.changes_page(stream, request)
    }

    fn history(
        &self,
        stream: &StreamRef,
        key: &RecordKey,
        upto: u64,
        limit: usize,
    ) -> Result<Vec<Revision>> {
        self.revisions(stream, key, upto, limit)
    }

    fn redated(
        &self,
        stream: &StreamRef,
        after: Option<Instant>,
        limit: usize,
    ) -> Result<Vec<(Instant, StoredRecord)>> {
        let id = self.sources().stream(stream)?.id;
        let after = after.map_or(i64::MIN, |Instant(after)| after);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.database.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {STORED}, latest FROM redated CROSS JOIN records USING (row_id, stream_id)
                     WHERE stream_id = ?1 AND latest > ?2 AND data IS NOT NULL
                     ORDER BY latest DESC LIMIT ?3"
                ))?
                .query_map((id, after, limit), |row| {
                    Ok((Instant(row.get(8)?), stored(row)?))
                })?
                // A damaged one has no date to tell.
                .filter(|found| found.as_ref().err().and_then(changed).is_none())
                .collect()
        })
    }

    fn purge(&self) -> Result<Purged> {
        self.purge_tombstones()
    }
}

pub(super) const STORED: &str = "key, emitted_at, data, sort, version,
    EXISTS (SELECT 1 FROM versions WHERE versions.row_id = records.row_id), stream_id, records.digest";

/// The columns of [`STORED`] without large content, then how many bytes that has, and the row.
pub(super) static MEASURED: LazyLock<String> = LazyLock::new(|| {
    let small = small_data("records");
    format!(
        "{}, octet_length(data), row_id",
        STORED.replacen("data", &small, 1)
    )
});

/// The column of [`MEASURED`] that holds the number of bytes.
pub(super) const BYTES: usize = 8;

/// Content of a table, unless it is large.
pub(super) fn small_data(table: &str) -> String {
    format!("CASE WHEN octet_length({table}.data) <= {LARGE_BYTES} THEN {table}.data END")
}

/// Reads the columns of [`MEASURED`], with the content. One among others that is not as it was written is given without
/// content and said to be damaged, so that it keeps nobody from the others.
pub(super) fn measured(connection: &Connection, row: &Row<'_>) -> rusqlite::Result<StoredRecord> {
    match intact(connection, row) {
        Err(error) if changed(&error).is_some() => {
            let key = RecordKey::from_ordering_form(&readable(row, 0)?);
            Ok(StoredRecord {
                emitted_at: readable(row, 1)?,
                body: String::new(),
                is_damaged: true,
                version: row.get(4).unwrap_or_default(),
                revised: row.get(5)?,
                position: PagePosition {
                    sort: sort_of(row.get_ref(3)?),
                    key: key.clone(),
                },
                key,
            })
        }
        read => read,
    }
}

/// The same; what is not as it was written is refused.
fn intact(connection: &Connection, row: &Row<'_>) -> rusqlite::Result<StoredRecord> {
    let bytes: usize = row.get(BYTES)?;
    if bytes <= LARGE_BYTES {
        return stored(row);
    }
    let content = large_content(connection, ("records", row.get(BYTES + 1)?), bytes)?;
    let content = String::from_utf8(content).map_err(|_| damaged(row, 6, 0))?;
    with_content(row, content)
}

/// Content of the `data` of a table, read piece by piece into the one text that is given on: a query would hold it a second
/// time.
pub(super) fn large_content(
    connection: &Connection,
    (table, row): (&str, i64),
    bytes: usize,
) -> rusqlite::Result<Vec<u8>> {
    let blob = connection.blob_open(MAIN_DB, table, "data", row, true)?;
    let mut content = vec![0; bytes];
    blob.read_at_exact(&mut content, 0)?;
    Ok(content)
}

/// Reads the columns of [`STORED`]; a record that is not what was written is refused.
pub(super) fn stored(row: &Row<'_>) -> rusqlite::Result<StoredRecord> {
    let content = row.get(2).map_err(|_| damaged(row, 6, 0))?;
    with_content(row, content)
}

fn with_content(row: &Row<'_>, body: String) -> rusqlite::Result<StoredRecord> {
    let read = || -> rusqlite::Result<(String, String, u64)> {
        Ok((row.get(0)?, row.get(1)?, row.get(4)?))
    };
    let (form, emitted_at, version) = read().map_err(|_| damaged(row, 6, 0))?;
    let content = Content {
        stream: row.get(6)?,
        key: &form,
        version,
        emitted_at: &emitted_at,
        data: Some(&body),
    };
    check(&content, row.get(7)?)?;
    let key = RecordKey::from_ordering_form(&form);
    let sort = sort_of(row.get_ref(3)?);
    Ok(StoredRecord {
        emitted_at,
        body,
        is_damaged: false,
        version,
        revised: row.get(5)?,
        position: PagePosition {
            sort,
            key: key.clone(),
        },
        key,
    })
}

/// A cursor value as the database holds it.
pub(super) fn sort_of(value: ValueRef<'_>) -> SortValue {
    match value {
        ValueRef::Integer(value) => SortValue::Integer(value),
        ValueRef::Real(value) => SortValue::Real(value),
        _ => SortValue::Missing,
    }
}
