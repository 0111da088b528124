//! Reading records by key, by page and as a feed of changes.

use contract::id::ConnectionId;
use contract::key::RecordKey;
use contract::time::Instant;

use super::PostgresStore;
use super::pool::{Row, Tx};
use super::row::{PLAIN, STORED};
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
        let sql = format!(
            "SELECT {PLAIN} FROM records WHERE owner_id = $1 AND stream_id = $2 AND key = $3"
        );
        let rows = self
            .pool
            .query(&sql, &[&self.owner, &id, &key.ordering_form()])?;
        self.truth.intact_alone(&rows)
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
        self.pool.snapshot(|tx| {
            let sql = "SELECT last_version, purged_to FROM streams WHERE owner_id = $1 AND id = $2";
            let row = tx.query_one(sql, &[&self.owner, &id])?;
            let (last_version, purged_to): (i64, i64) = (row.get(0)?, row.get(1)?);
            // From the beginning there is no earlier state to compare with, so a purge does not matter.
            if request.since > 0 && request.since < purged_to.cast_unsigned() {
                return Err(StoreError::BookmarkExpired);
            }
            let until = request.until.unwrap_or(last_version.cast_unsigned());
            let (entries, has_more) = self.entries(tx, id, until, request)?;
            Ok(ChangesPage {
                entries,
                until,
                has_more,
            })
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

    /// As many entries as were asked for or as a page holds, and whether there are more.
    fn entries(
        &self,
        tx: &Tx<'_>,
        stream: i64,
        until: u64,
        request: &ChangesRequest,
    ) -> Result<(Vec<ChangeEntry>, bool)> {
        let sql = feed_sql(request.every_version);
        let after = request.after.max(request.since).cast_signed();
        let limit = i64::try_from(request.limit)
            .unwrap_or(i64::MAX)
            .saturating_add(1);
        let (until, since) = (until.cast_signed(), request.since.cast_signed());
        let rows = tx.query(
            &sql,
            &[&self.owner, &stream, &after, &until, &limit, &since],
        )?;
        let (mut entries, mut budget) = (Vec::new(), ByteBudget::default());
        for row in &rows {
            let current: Option<String> = row.get(4)?;
            let previous = previous(row)?;
            let bytes = [&current, &previous].into_iter().flatten();
            let bytes = bytes.map(String::len).sum();
            if entries.len() == request.limit || !budget.take(bytes) {
                return Ok((entries, true));
            }
            let is_damaged = !is_intact(row, current.as_deref(), 5)?;
            entries.push(ChangeEntry {
                version: row.get::<i64>(2)?.cast_unsigned(),
                key: RecordKey::from_ordering_form(row.get(1)?),
                emitted_at: row.get(3)?,
                current: current.filter(|_| !is_damaged),
                is_damaged,
                previous,
                revised: row.get(6)?,
            });
        }
        Ok((entries, false))
    }
}

/// One page of a feed, by owner, stream, the versions it goes on after and ends with, the limit, and the version it began with.
pub(super) fn feed_sql(every_version: bool) -> String {
    // A key's last version up to the horizon is the current row, or the superseded one that was current then. Each part has its
    // own limit, or all of its rows would be sorted for a page.
    let superseded = if every_version {
        ""
    } else {
        "AND versions.next_version > $4"
    };
    format!(
        "SELECT measured.stream_id, measured.key, measured.version, measured.emitted_at, measured.data, measured.digest,
             revised, measured.row_id, earlier.version, earlier.emitted_at, earlier.data, earlier.digest
         FROM (
             SELECT *, sum(coalesce(octet_length(data), 0)) OVER (ORDER BY version) - coalesce(octet_length(data), 0) AS before,
                 row_number() OVER (ORDER BY version) AS number
             FROM (
                 (SELECT stream_id, key, version, emitted_at, data, digest, row_id,
                     EXISTS (SELECT 1 FROM versions WHERE versions.stream_id = $2 AND versions.row_id = records.row_id) AS revised
                 FROM records WHERE owner_id = $1 AND stream_id = $2 AND version > $3 AND version <= $4
                 ORDER BY version LIMIT $5)
                 UNION ALL
                 (SELECT past.stream_id, named.key, past.version, past.emitted_at, past.data, past.digest, past.row_id, TRUE
                 FROM (
                     SELECT stream_id, version, emitted_at, data, digest, row_id FROM versions
                     WHERE versions.stream_id = $2 AND versions.version > $3 AND versions.version <= $4 {superseded}
                     ORDER BY versions.version LIMIT $5
                 ) AS past CROSS JOIN LATERAL (
                     SELECT key FROM records WHERE owner_id = $1 AND stream_id = $2 AND row_id = past.row_id OFFSET 0
                 ) AS named)
                 ORDER BY version LIMIT $5
             ) AS entries
         ) AS measured
         LEFT JOIN LATERAL (
             SELECT version, emitted_at, data, digest FROM versions
             WHERE $6 > 0 AND versions.stream_id = $2 AND versions.row_id = measured.row_id
               AND versions.version <= $6 AND versions.next_version > $6
         ) AS earlier ON TRUE
         WHERE before <= {PAGE_BYTES} OR number <= 2 ORDER BY measured.version"
    )
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
fn previous(row: &Row) -> Result<Option<String>> {
    let Some(version) = row.get::<Option<i64>>(8)? else {
        return Ok(None);
    };
    let data: Option<String> = row.get(10)?;
    let content = Content {
        stream: row.get(0)?,
        key: row.get(1)?,
        version: version.cast_unsigned(),
        emitted_at: row.get(9)?,
        data: data.as_deref(),
    };
    let is_intact = content.digest() == row.get::<i64>(11)?;
    Ok(data.filter(|_| is_intact))
}
