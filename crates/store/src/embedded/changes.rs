//! The history of a stream: as a feed for readers, and as the source the index catches up from.

use std::path::Path;
use std::sync::Arc;

use contract::json::RecordBody;
use contract::key::RecordKey;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::digest::{CHECKED, checked, readable};
use super::index::{ChangeSource, IndexChange, Indexable, Versions};
use super::records::{LARGE_BYTES, small_data};
use super::sources::StreamEntry;
use super::sqlite::{changed, failed};
use super::{EmbeddedStore, directory, newest_version};
use crate::catalog::StreamRef;
use crate::records::{ByteBudget, ChangeEntry, ChangesPage, ChangesRequest, Revision};
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
                })
                .map_err(self.database.failed())?;
            // From the beginning there is no earlier state to compare with, so a purge does not matter.
            if request.since > 0 && request.since < purged_to {
                return Err(StoreError::BookmarkExpired);
            }
            let until = request.until.unwrap_or(last_version);
            let (entries, has_more) =
                entries(connection, id, until, request).map_err(self.database.failed())?;
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

/// Replays changes from one snapshot of the records.
pub(super) struct Replay<'a> {
    pub(super) connection: &'a Connection,
    pub(super) store: &'a EmbeddedStore,
}

impl ChangeSource for Replay<'_> {
    fn newest(&self) -> Result<u64> {
        newest_version(self.connection).map_err(failed(self.path()))
    }

    fn replay(
        &self,
        versions: Versions,
        known: bool,
        each: &mut dyn FnMut(IndexChange<'_>) -> Result<()>,
    ) -> Result<()> {
        let Versions { after, upto } = versions;
        for stream in self.erased(after, upto).map_err(failed(self.path()))? {
            each(IndexChange::Erase {
                stream: stream.cast_unsigned(),
            })?;
        }
        let changed = self.changed_since(after).map_err(failed(self.path()))?;
        // Loaded after the snapshot began, so every stream in it is known.
        let sources = self.store.sources();
        for stream in changed {
            if let Some(entry) = sources.by_id(stream) {
                self.replay_stream(entry, versions, known, each)?;
            }
        }
        Ok(())
    }
}

impl Replay<'_> {
    fn path(&self) -> &Path {
        self.store.path()
    }

    fn erased(&self, after: u64, upto: u64) -> rusqlite::Result<Vec<i64>> {
        self.connection
            .prepare_cached("SELECT stream_id FROM erasures WHERE version > ?1 AND version <= ?2")?
            .query_map([after, upto], |row| row.get(0))?
            .collect()
    }

    fn changed_since(&self, after: u64) -> rusqlite::Result<Vec<i64>> {
        self.connection
            .prepare_cached("SELECT id FROM streams WHERE last_version > ?1")?
            .query_map([after], |row| row.get(0))?
            .collect()
    }

    fn replay_stream(
        &self,
        entry: &Arc<StreamEntry>,
        versions: Versions,
        known: bool,
        each: &mut dyn FnMut(IndexChange<'_>) -> Result<()>,
    ) -> Result<()> {
        let failed = self.store.database.failed();
        let mut statement = self
            .connection
            .prepare_cached(&format!(
                "SELECT row_id, {CHECKED} FROM records
                 WHERE stream_id = ?1 AND version > ?2 AND version <= ?3 ORDER BY version"
            ))
            .map_err(&failed)?;
        let mut rows = statement
            .query(params![entry.id, versions.after, versions.upto])
            .map_err(&failed)?;
        while let Some(row) = rows.next().map_err(&failed)? {
            let number = row.get::<_, i64>(0).map_err(&failed)?.cast_unsigned();
            let emitted_at = readable(row, 4).map_err(&failed)?;
            let data = match checked(row, 1) {
                // It stays in the index with nothing to be found by, so that all others can be.
                Err(error) if changed(&error).is_some() => Some("{}".to_owned()),
                data => data.map_err(&failed)?,
            };
            let Some(data) = data else {
                each(IndexChange::Drop { row: number })?;
                continue;
            };
            let body = parse_stored(data, self.path())?;
            let record = Indexable {
                row: number,
                stream: entry.id.cast_unsigned(),
                emitted_at: &emitted_at,
                layout: &entry.layout,
                body: &body,
            };
            each(IndexChange::Put { record, known })?;
        }
        Ok(())
    }
}

pub(super) fn parse_stored(data: String, path: &Path) -> Result<RecordBody> {
    RecordBody::parse(data).map_err(|error| StoreError::Corrupt {
        path: path.join(directory::DATABASE),
        detail: format!("a stored record is not JSON any more ({})", error.message),
    })
}
