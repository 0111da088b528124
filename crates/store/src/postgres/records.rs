//! Reading records by key, by page and as a feed of changes.

use contract::id::ConnectionId;
use contract::key::RecordKey;
use contract::time::Instant;

use super::PostgresStore;
use super::pool::Row;
use super::row::{STORED, Stored};
use super::write::key_digest;
use crate::catalog::StreamRef;
use crate::index::truth::Truth as _;
use crate::record_digest::Content;
use crate::records::{
    Applied, ByteBudget, Change, ChangeEntry, ChangesPage, ChangesRequest, PAGE_BYTES, PageRequest,
    Purged, Records, Revision, StoredPage, StoredRecord,
};
use crate::{Result, StoreError};

impl Records for PostgresStore {
    fn write(&self, connection: &ConnectionId, batch: Vec<Change>) -> Result<Vec<Applied>> {
        self.write_batch(connection, batch)
    }

    fn get(&self, stream: &StreamRef, key: &RecordKey) -> Result<Option<StoredRecord>> {
        let id = self.stream_id(stream)?;
        let form = key.ordering_form();
        let sql = "SELECT record_by_key($1, $2, $3)";
        let row = self.pool.query_one(sql, &[&self.owner, &id, &form])?;
        let Some(columns) = row.get::<Option<Vec<Option<String>>>>(0)? else {
            return Ok(None);
        };
        let stored = Stored::of_array(id, &form, columns).ok_or_else(|| StoreError::Database {
            place: self.place().to_owned(),
            detail: "the function record_by_key answers something else".to_owned(),
        })?;
        self.truth.intact_alone(stored)
    }

    fn is_deleted_by_owner(&self, stream: &StreamRef, key: &RecordKey) -> Result<bool> {
        let id = self.stream_id(stream)?;
        let digest = key_digest(&key.ordering_form());
        let sql = "SELECT EXISTS (SELECT 1 FROM deleted_by_owner WHERE owner_id = $1 AND stream_id = $2 AND key_digest = $3)";
        let row = self.pool.query_one(sql, &[&self.owner, &id, &digest])?;
        row.get(0)
    }

    fn page(&self, stream: &StreamRef, request: &PageRequest) -> Result<StoredPage> {
        self.truth.page(self.stream_id(stream)?, request)
    }

    fn changes(&self, stream: &StreamRef, request: &ChangesRequest) -> Result<ChangesPage> {
        let id = self.stream_id(stream)?;
        // One statement sees one moment: what is purged meanwhile is there or said to be gone.
        let sql = "SELECT last_version, purged_to, page.* FROM streams LEFT JOIN LATERAL
             record_changes($1, $2, $3, coalesce($4, last_version), $5, $6, $7, $8) AS page ON TRUE
             WHERE owner_id = $1 AND id = $2";
        let after = request.after.max(request.since).cast_signed();
        let limit = i64::try_from(request.limit)
            .unwrap_or(i64::MAX)
            .saturating_add(1);
        let (until, since) = (request.until.map(u64::cast_signed), request.since);
        let bytes = i64::try_from(PAGE_BYTES).unwrap_or(i64::MAX);
        let rows = self.pool.read(|tx| {
            let rows = tx.query(
                sql,
                &[
                    &self.owner,
                    &id,
                    &after,
                    &until,
                    &limit,
                    &since.cast_signed(),
                    &request.every_version,
                    &bytes,
                ],
            )?;
            match rows.first() {
                Some(_) => Ok(rows),
                None => Err(tx.missing_row()),
            }
        })?;
        let (mut last_version, mut purged_to) = (0, 0);
        if let Some(first) = rows.first() {
            (last_version, purged_to) = (first.get::<i64>(0)?, first.get::<i64>(1)?);
        }
        // From the beginning there is no earlier state to compare with, so a purge does not matter.
        if since > 0 && since < purged_to.cast_unsigned() {
            return Err(StoreError::BookmarkExpired);
        }
        let (entries, has_more) = entries(id, &rows, request.limit)?;
        Ok(ChangesPage {
            entries,
            until: request.until.unwrap_or(last_version.cast_unsigned()),
            has_more,
        })
    }

    fn history(
        &self,
        stream: &StreamRef,
        key: &RecordKey,
        upto: u64,
        limit: usize,
    ) -> Result<Vec<Revision>> {
        let id = self.stream_id(stream)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let sql = format!(
            "SELECT * FROM (
                 SELECT *, sum(coalesce(octet_length(data), 0)) OVER (ORDER BY version DESC) - coalesce(octet_length(data), 0) AS before,
                     row_number() OVER (ORDER BY version DESC) AS number
                 FROM (
                     SELECT stream_id, key, version, emitted_at, data, digest FROM records
                     WHERE owner_id = $1 AND stream_id = $2 AND key = $3 AND version <= $4
                     UNION ALL
                     SELECT versions.stream_id, key, versions.version, versions.emitted_at, versions.data, versions.digest
                     FROM records JOIN versions ON versions.stream_id = records.stream_id AND versions.row_id = records.row_id
                     WHERE records.owner_id = $1 AND records.stream_id = $2 AND key = $3 AND versions.version <= $4
                     ORDER BY version DESC LIMIT $5
                 ) AS revisions
             ) AS measured WHERE before <= {PAGE_BYTES} OR number <= 2 ORDER BY version DESC"
        );
        let rows = self.pool.read(|tx| {
            let (form, upto) = (key.ordering_form(), upto.cast_signed());
            tx.query(&sql, &[&self.owner, &id, &form, &upto, &limit])
        })?;
        let (mut revisions, mut budget) = (Vec::new(), ByteBudget::default());
        for row in &rows {
            let body: Option<String> = row.get(4)?;
            if !budget.take(body.as_ref().map_or(0, String::len)) {
                break;
            }
            if !is_intact(row, body.as_deref(), 5)? {
                return Err(self.truth.damaged(id, &key.ordering_form()));
            }
            revisions.push(Revision {
                version: row.get::<i64>(2)?.cast_unsigned(),
                emitted_at: row.get(3)?,
                body,
            });
        }
        Ok(revisions)
    }

    fn redated(
        &self,
        stream: &StreamRef,
        after: Option<Instant>,
        limit: usize,
    ) -> Result<Vec<(Instant, StoredRecord)>> {
        let id = self.stream_id(stream)?;
        let after = after.map_or(i64::MIN, |Instant(after)| after);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let sql = format!(
            "SELECT {STORED}, latest FROM records JOIN (
                 SELECT row_id AS redated_row, latest FROM redated WHERE owner_id = $1 AND stream_id = $2 AND latest > $3
             ) AS dates ON redated_row = row_id
             WHERE owner_id = $1 AND stream_id = $2 AND data IS NOT NULL ORDER BY latest DESC, row_id DESC LIMIT $4"
        );
        let rows = self.pool.query(&sql, &[&self.owner, &id, &after, &limit])?;
        let sources = self.sources.last();
        let mut records = Vec::with_capacity(rows.len());
        for row in &rows {
            let found = super::row::found(row, &sources)?;
            // A damaged one has no date to tell.
            if let Some(found) = found.filter(|found| !found.record.is_damaged) {
                records.push((Instant(row.get(9)?), found.record));
            }
        }
        Ok(records)
    }

    fn purge(&self) -> Result<Purged> {
        self.purge_tombstones()
    }
}

impl PostgresStore {
    /// The number of a stream. What another node declared is known after one look.
    pub(super) fn stream_id(&self, stream: &StreamRef) -> Result<i64> {
        if let Ok(entry) = self.sources.last().stream(stream) {
            return Ok(entry.id);
        }
        self.truth.head()?;
        Ok(self.sources.last().stream(stream)?.id)
    }
}

/// As many entries as were asked for or as a page holds, and whether there are more. Where there is none, the row has nothing of it.
fn entries(stream: i64, rows: &[Row], limit: usize) -> Result<(Vec<ChangeEntry>, bool)> {
    let (mut entries, mut budget) = (Vec::new(), ByteBudget::default());
    for row in rows {
        let Some(key) = row.get::<Option<&str>>(2)? else {
            break;
        };
        let current: Option<String> = row.get(5)?;
        let previous = previous(stream, row)?;
        let bytes = [&current, &previous].into_iter().flatten();
        let bytes = bytes.map(String::len).sum();
        if entries.len() == limit || !budget.take(bytes) {
            return Ok((entries, true));
        }
        let (version, emitted_at): (i64, String) = (row.get(3)?, row.get(4)?);
        let content = Content {
            stream,
            key,
            version: version.cast_unsigned(),
            emitted_at: &emitted_at,
            data: current.as_deref(),
        };
        let is_damaged = content.digest() != row.get::<i64>(6)?;
        entries.push(ChangeEntry {
            version: version.cast_unsigned(),
            key: RecordKey::from_ordering_form(key),
            emitted_at,
            current: current.filter(|_| !is_damaged),
            is_damaged,
            previous,
            revised: row.get(7)?,
        });
    }
    Ok((entries, false))
}

/// Whether the content of a row is what was written: its first columns are stream, key, version and date.
fn is_intact(row: &Row, data: Option<&str>, digest: usize) -> Result<bool> {
    let content = Content {
        stream: row.get(0)?,
        key: row.get(1)?,
        version: row.get::<i64>(2)?.cast_unsigned(),
        emitted_at: row.get(3)?,
        data,
    };
    Ok(content.digest() == row.get::<i64>(digest)?)
}

/// The content at the bookmark. Where it is damaged the change is told as if it were new: that it changed is true.
fn previous(stream: i64, row: &Row) -> Result<Option<String>> {
    let Some(version) = row.get::<Option<i64>>(9)? else {
        return Ok(None);
    };
    let data: Option<String> = row.get(11)?;
    let content = Content {
        stream,
        key: row.get(2)?,
        version: version.cast_unsigned(),
        emitted_at: row.get(10)?,
        data: data.as_deref(),
    };
    let is_intact = content.digest() == row.get::<i64>(12)?;
    Ok(data.filter(|_| is_intact))
}
