//! The history of a stream: as a feed for readers, and as the source the index catches up from.

use contract::key::RecordKey;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::EmbeddedStore;
use super::database::changed;
use super::digest::{CHECKED, checked, readable};
use super::records::small_data;
use crate::catalog::StreamRef;
use crate::records::{ByteBudget, ChangeEntry, ChangesPage, ChangesRequest, LARGE_BYTES, Revision};
use crate::{Result, StoreError};

impl EmbeddedStore {
    pub(super) fn changes_page(
        &self,
        stream: &StreamRef,
        request: &ChangesRequest,
    ) -> Result<ChangesPage> {
        let id = self.sources().stream(stream)?.id;
        self.database.snapshot(|connection| {
            let (last_version, purged_to): (u64, u64) = connection
                .prepare_cached("SELECT last_version, purged_to FROM streams WHERE id = ?1")
                .and_then(|mut statement| {
                    statement.query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
                })?;
            // From the beginning there is no earlier state to compare with, so a purge does not matter.
            if request.since > 0 && request.since < purged_to {
                return Err(StoreError::BookmarkExpired.into());
            }
            let until = request.until.unwrap_or(last_version);
            let (entries, has_more) = entries(connection, id, until, request)?;
            Ok(ChangesPage {
                entries,
                until,
                has_more,
            })
        })
    }

    pub(super) fn revisions(
        &self,
        stream: &StreamRef,
        key: &RecordKey,
        upto: u64,
        limit: usize,
    ) -> Result<Vec<Revision>> {
        let id = self.sources().stream(stream)?.id;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let (current, superseded) = (content_of("records"), content_of("versions"));
        self.database.read(|connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {current} FROM records WHERE stream_id = ?1 AND key = ?2 AND version <= ?3
                 UNION ALL
                 SELECT {superseded} FROM versions JOIN records ON records.row_id = versions.row_id
                 WHERE versions.row_id = (SELECT row_id FROM records WHERE stream_id = ?1 AND key = ?2)
                   AND versions.version <= ?3
                 ORDER BY version DESC LIMIT ?4"
            ))?;
            let mut rows = statement.query(params![id, key.ordering_form(), upto, limit])?;
            let (mut revisions, mut budget) = (Vec::new(), ByteBudget::default());
            while let Some(row) = rows.next()? {
                let content = Content::from_row(row)?;
                if !budget.take(content.bytes) {
                    break;
                }
                revisions.push(Revision {
                    version: row.get(2)?,
                    emitted_at: row.get(3)?,
                    body: content.read(connection, row)?,
                });
            }
            Ok(revisions)
        })
    }
}

/// The columns of [`CHECKED`] of a table, without large content, then those that [`Content`] is made of.
fn content_of(table: &str) -> String {
    let small = small_data(table);
    format!(
        "{table}.stream_id, records.key, {table}.version AS version, {table}.emitted_at, {small}, {table}.digest,
         octet_length({table}.data), '{table}', {table}.rowid"
    )
}

/// The content of a row, read only when it fits the budget.
struct Content {
    bytes: usize,
    is_superseded: bool,
    row: i64,
}

impl Content {
    /// Reads the columns of [`content_of`].
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            bytes: row.get::<_, Option<usize>>(6)?.unwrap_or(0),
            is_superseded: row.get_ref(7)?.as_str()? == "versions",
            row: row.get(8)?,
        })
    }

    /// The content, from the row itself where it is small.
    fn read(self, connection: &Connection, row: &Row<'_>) -> rusqlite::Result<Option<String>> {
        if self.bytes <= LARGE_BYTES {
            return checked(row, 0);
        }
        let sql = if self.is_superseded {
            "SELECT versions.stream_id, records.key, versions.version, versions.emitted_at, versions.data, versions.digest
             FROM versions JOIN records ON records.row_id = versions.row_id WHERE versions.rowid = ?1"
                .to_owned()
        } else {
            format!("SELECT {CHECKED} FROM records WHERE row_id = ?1")
        };
        connection
            .prepare_cached(&sql)?
            .query_row([self.row], |row| checked(row, 0))
    }
}

/// As many entries as were asked for or as a page holds, and whether there are more.
fn entries(
    connection: &Connection,
    stream: i64,
    until: u64,
    request: &ChangesRequest,
) -> rusqlite::Result<(Vec<ChangeEntry>, bool)> {
    // A key's last version up to the horizon is the current row, or the superseded one that was current then.
    let superseded = if request.every_version {
        ""
    } else {
        "AND next_version > ?3"
    };
    let (current, past) = (content_of("records"), content_of("versions"));
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {current}, records.row_id,
                EXISTS (SELECT 1 FROM versions WHERE versions.row_id = records.row_id)
         FROM records WHERE stream_id = ?1 AND version > ?2 AND version <= ?3
         UNION ALL
         SELECT {past}, versions.row_id, TRUE
         FROM versions JOIN records ON records.row_id = versions.row_id
         WHERE versions.stream_id = ?1 AND versions.version > ?2 AND versions.version <= ?3 {superseded}
         ORDER BY version LIMIT ?4"
    ))?;
    let after = request.after.max(request.since);
    let limit = i64::try_from(request.limit)
        .unwrap_or(i64::MAX)
        .saturating_add(1);
    let mut rows = statement.query(params![stream, after, until, limit])?;
    let (mut entries, mut budget) = (Vec::new(), ByteBudget::default());
    while let Some(row) = rows.next()? {
        let content = Content::from_row(row)?;
        let previous = match state_at(connection, row, request.since) {
            // Told as if it were new: that it changed is true.
            Err(error) if changed(&error).is_some() => None,
            previous => previous?,
        };
        let bytes = content.bytes + previous.as_ref().map_or(0, String::len);
        if entries.len() == request.limit || !budget.take(bytes) {
            return Ok((entries, true));
        }
        let (current, is_damaged) = match content.read(connection, row) {
            Err(error) if changed(&error).is_some() => (None, true),
            current => (current?, false),
        };
        entries.push(ChangeEntry {
            version: row.get(2)?,
            key: RecordKey::from_ordering_form(&readable(row, 1)?),
            emitted_at: readable(row, 3)?,
            current,
            is_damaged,
            previous,
            revised: row.get(10)?,
        });
    }
    Ok((entries, false))
}

/// The content that the record of a row of [`content_of`] had at a bookmark, if it was live then.
fn state_at(
    connection: &Connection,
    row: &Row<'_>,
    since: u64,
) -> rusqlite::Result<Option<String>> {
    if since == 0 {
        return Ok(None);
    }
    let (stream, key) = (row.get_ref(0)?.as_i64()?, readable(row, 1)?);
    let row: i64 = row.get(9)?;
    connection
        .prepare_cached(
            "SELECT ?3, ?4, version, emitted_at, data, digest FROM versions
             WHERE row_id = ?1 AND version <= ?2 AND next_version > ?2",
        )?
        .query_row(params![row, since, stream, key], |row| checked(row, 0))
        .optional()
        .map(Option::flatten)
}
