//! The digest that every record carries, in the table of records and in that of their versions, checked whenever it is read.
//!
//! The engine keeps no checksums: a bit that flips on the disk inside a text would be read as if it had been written. Rows of older formats have none until they are given one, some at every start.

use rusqlite::types::{Type, ValueRef};
use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::EmbeddedStore;
use crate::Result;
use crate::record_digest::Content;

/// How many rows get a digest in one transaction, and how often at a start.
const CHUNK: usize = 5_000;
const CHUNKS_AT_START: usize = 20;

/// The columns of a content with its digest, for [`checked`].
pub(super) const CHECKED: &str = "stream_id, key, version, emitted_at, data, digest";

#[derive(Debug, Clone, thiserror::Error)]
#[error("record '{key}' of stream number {stream} is not what was written")]
pub(super) struct Changed {
    pub(super) stream: i64,
    pub(super) key: String,
}

/// Reads the columns of [`CHECKED`] from this one on, without the digest.
fn content_from_row<'a>(row: &'a Row<'_>, first: usize) -> rusqlite::Result<Content<'a>> {
    let read = || -> rusqlite::Result<Content<'a>> {
        Ok(Content {
            stream: row.get(first)?,
            key: present(row, first + 1)?,
            version: row.get(first + 2)?,
            emitted_at: present(row, first + 3)?,
            data: text(row, first + 4)?,
        })
    };
    read().map_err(|_| damaged(row, first, first + 1))
}

/// Refuses a record that is not what was written.
pub(super) fn check(content: &Content<'_>, digest: Option<i64>) -> rusqlite::Result<()> {
    if content.is_written_with(digest) {
        return Ok(());
    }
    Err(Changed::error(content.stream, content.key.to_owned()))
}

impl Changed {
    fn error(stream: i64, key: String) -> rusqlite::Error {
        let changed = Box::new(Self { stream, key });
        rusqlite::Error::FromSqlConversionFailure(0, Type::Text, changed)
    }
}

/// The record of a row whose columns are not of the kinds that were written, by its stream and key as far as they can be read.
pub(super) fn damaged(row: &Row<'_>, stream: usize, key: usize) -> rusqlite::Error {
    let key = readable(row, key).unwrap_or_default();
    Changed::error(row.get(stream).unwrap_or_default(), key)
}

/// A text, also where it is none any more: good to name something, and never given as what was written.
pub(super) fn readable(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
        _ => String::new(),
    })
}

/// Reads the columns of [`CHECKED`] from this one on: what the record holds, if it is what was written.
pub(crate) fn checked(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<String>> {
    let content = content_from_row(row, first)?;
    check(&content, row.get(first + 5)?)?;
    Ok(content.data.map(str::to_owned))
}

/// Like [`checked`], for a row whose record is live: without content it is damaged.
pub(super) fn checked_live(row: &Row<'_>, first: usize) -> rusqlite::Result<String> {
    checked(row, first)?.ok_or_else(|| damaged(row, first, first + 1))
}

fn present<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<&'a str> {
    text(row, column)?.ok_or_else(|| missing(column))
}

/// Our columns have the types we gave them, so a missing value is damage.
fn missing(column: usize) -> rusqlite::Error {
    rusqlite::Error::InvalidColumnType(column, "text".to_owned(), Type::Null)
}

fn text<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<Option<&'a str>> {
    let value = row.get_ref(column)?;
    value.as_str_or_null().map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, value.data_type(), Box::new(error))
    })
}

impl EmbeddedStore {
    /// Gives rows of an older format their digests, a bounded number of them.
    pub(super) fn fill_digests(&self) -> Result<()> {
        for table in TABLES {
            for _ in 0..CHUNKS_AT_START {
                let fill = |transaction: &Transaction<'_>| Ok(fill(transaction, &table)?);
                if !self.database.transact(fill)? {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// A table whose rows have digests, and where it is kept up to which row they may have none.
struct Table {
    bookmark: &'static str,
    rows: &'static str,
    update: &'static str,
}

const TABLES: [Table; 2] = [
    Table {
        bookmark: "undigested_records",
        rows: "SELECT row_id, stream_id, key, version, emitted_at, data FROM records
               WHERE row_id <= ?1 AND digest IS NULL ORDER BY row_id DESC LIMIT ?2",
        update: "UPDATE records SET digest = ?2 WHERE row_id = ?1",
    },
    Table {
        bookmark: "undigested_versions",
        rows: "SELECT versions.rowid, versions.stream_id, records.key, versions.version, versions.emitted_at, versions.data
               FROM versions JOIN records ON records.row_id = versions.row_id
               WHERE versions.rowid <= ?1 AND versions.digest IS NULL ORDER BY versions.rowid DESC LIMIT ?2",
        update: "UPDATE versions SET digest = ?2 WHERE rowid = ?1",
    },
];

/// Gives some rows their digests. Returns whether there may be more.
fn fill(transaction: &Transaction<'_>, table: &Table) -> rusqlite::Result<bool> {
    let upto: Option<i64> = transaction
        .prepare_cached("SELECT value FROM meta WHERE name = ?1")?
        .query_row([table.bookmark], |row| row.get(0))
        .optional()?;
    let Some(upto) = upto else { return Ok(false) };
    // What is no text any more gets none, and is refused whenever it is read.
    let found: Vec<(i64, Option<i64>)> = transaction
        .prepare_cached(table.rows)?
        .query_map(params![upto, CHUNK], |row| {
            let content = content_from_row(row, 1);
            Ok((row.get(0)?, content.ok().map(|content| content.digest())))
        })?
        .collect::<rusqlite::Result<_>>()?;
    let mut update = transaction.prepare_cached(table.update)?;
    for (row, digest) in &found {
        update.execute(params![row, digest])?;
    }
    match found.last() {
        Some((row, _)) if found.len() == CHUNK => {
            transaction.execute(
                "UPDATE meta SET value = ?2 WHERE name = ?1",
                params![table.bookmark, row - 1],
            )?;
            Ok(true)
        }
        _ => {
            transaction.execute("DELETE FROM meta WHERE name = ?1", [table.bookmark])?;
            Ok(false)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::open;
    use super::*;

    #[test]
    fn rows_of_an_older_format_get_their_digests_at_the_next_start() {
        let folder = tempfile::tempdir().unwrap();
        let open = || open(folder.path());
        let older = |transaction: &Transaction<'_>| {
            for row in 1..=CHUNK + 3 {
                transaction.execute(
                    "INSERT INTO records (row_id, stream_id, key, version, emitted_at, data) VALUES (?1, 7, ?1, ?1, '', '{}')",
                    [row],
                )?;
                transaction.execute(
                    "INSERT INTO versions (row_id, stream_id, version, next_version, emitted_at, data) VALUES (?1, 7, ?1, 9, '', '[]')",
                    [row],
                )?;
            }
            transaction.execute_batch(
                "INSERT INTO meta SELECT 'undigested_records', max(row_id) FROM records;
                 INSERT INTO meta SELECT 'undigested_versions', max(rowid) FROM versions;",
            )
        };
        let store = open();
        store
            .database
            .transact(|transaction| Ok(older(transaction)?))
            .unwrap();
        drop(store);
        let store = open();
        for table in ["records", "versions"] {
            let sql = format!("SELECT count(*) FROM {table} WHERE digest IS NULL");
            let left: i64 = store
                .database
                .read(|connection| connection.query_row(&sql, [], |row| row.get(0)))
                .unwrap();
            assert_eq!(left, 0, "{table}");
        }
        let data: String = store
            .database
            .read(|connection| {
                let sql = format!("SELECT {CHECKED} FROM records WHERE row_id = 5000");
                connection.query_row(&sql, [], |row| Ok(checked(row, 0)?.unwrap_or_default()))
            })
            .unwrap();
        assert_eq!(data, "{}");
    }
}
