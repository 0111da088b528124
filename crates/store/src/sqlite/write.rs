//! Writing a batch: one transaction, then the index is updated from memory.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use contract::id::ConnectionId;
use contract::json::RecordBody;
use contract::time::Instant;
use rusqlite::{OptionalExtension, Transaction, params};

use super::deleted_by_owner;
use super::digest::readable;
use super::walk::sort_value;
use super::{EmbeddedStore, newest_version, set_newest_version};
use crate::disk_space;
use crate::index::engine::{NewContent, Staged};
use crate::index::sources::{BatchStreams, StreamEntry};
use crate::record_digest::Content;
use crate::records::{Applied, Change, ChangeOp, SortValue, replacing, stays};
use crate::{Result, StoreError};

impl EmbeddedStore {
    /// Applies a batch in order and makes it durable.
    pub(super) fn write_batch(
        &self,
        connection: &ConnectionId,
        batch: Vec<Change>,
    ) -> Result<Vec<Applied>> {
        disk_space::require(self.path(), room_for(&batch))?;
        let (applied, writing) = self.database.transact_bulk(|transaction| {
            // Checked inside the transaction: a concurrent change of the declaration waits, or has been seen.
            let streams = BatchStreams::new(self.sources(), connection)?;
            let before = newest_version(transaction)?;
            let mut writing = Writing::begin(streams, before);
            let mut applied = Vec::with_capacity(batch.len());
            for change in batch {
                let entry = writing.streams.entry(&change.stream)?;
                let outcome = writing.apply(transaction, &entry, change);
                applied.push(outcome?);
            }
            if !writing.finish(transaction)? {
                return Err(StoreError::UnknownConnection(connection.clone()).into());
            }
            Ok((applied, writing))
        })?;
        self.truth.acknowledge(writing.version);
        let changes = writing.staged.iter().map(Staged::index_change);
        self.index
            .stage((writing.before, None), (writing.version, None), changes);
        Ok(applied)
    }
}

/// How much disk space a batch may take: in the log, in the file, and in the index.
fn room_for(batch: &[Change]) -> u64 {
    let bytes = batch.iter().map(|change| match &change.op {
        ChangeOp::Upsert(body) | ChangeOp::Add(body) | ChangeOp::Revive(body) => {
            body.as_str().len() as u64
        }
        ChangeOp::Delete | ChangeOp::DeleteByOwner => 0,
    });
    bytes.sum::<u64>().saturating_mul(3)
}

struct Writing<'a> {
    streams: BatchStreams<'a>,
    before: u64,
    version: u64,
    /// Per stream: change in the number of live records, and the last version written.
    totals: HashMap<i64, (i64, u64)>,
    /// Per stream: whether the owner deleted any of its records. Most never do, and then no key is looked up.
    owner_deleted: HashMap<i64, bool>,
    staged: Vec<Staged>,
}

/// The row of a key as it is before a change.
struct Current {
    row: i64,
    version: u64,
    emitted_at: String,
    data: Option<String>,
    digest: Option<i64>,
    is_damaged: bool,
}

impl<'a> Writing<'a> {
    fn begin(streams: BatchStreams<'a>, before: u64) -> Self {
        Self {
            streams,
            before,
            version: before,
            totals: HashMap::new(),
            owner_deleted: HashMap::new(),
            staged: Vec::new(),
        }
    }

    fn apply(
        &mut self,
        transaction: &Transaction<'_>,
        entry: &Arc<StreamEntry>,
        change: Change,
    ) -> rusqlite::Result<Applied> {
        let key = change.key.ordering_form();
        match change.op {
            ChangeOp::Delete => self.delete(transaction, entry, &key, &change.emitted_at),
            ChangeOp::DeleteByOwner => {
                deleted_by_owner::add(transaction, entry.id, &key)?;
                self.owner_deleted.insert(entry.id, true);
                self.delete(transaction, entry, &key, &change.emitted_at)
            }
            ChangeOp::Revive(body) => {
                deleted_by_owner::remove(transaction, entry.id, &key)?;
                let emitted_at = change.emitted_at;
                self.put(transaction, entry, &key, NewContent { body, emitted_at })
            }
            ChangeOp::Upsert(_) | ChangeOp::Add(_)
                if self.is_deleted_by_owner(transaction, entry.id, &key)? =>
            {
                Ok(Applied::KeptDeleted)
            }
            ChangeOp::Add(body)
                if current(transaction, entry.id, &key)?.is_some_and(|current| {
                    !current.is_damaged && stays(current.data.as_deref(), &body)
                }) =>
            {
                Ok(Applied::LeftAsItIs)
            }
            ChangeOp::Upsert(body) | ChangeOp::Add(body) => {
                let emitted_at = change.emitted_at;
                self.put(transaction, entry, &key, NewContent { body, emitted_at })
            }
        }
    }

    fn is_deleted_by_owner(
        &mut self,
        transaction: &Transaction<'_>,
        stream: i64,
        key: &str,
    ) -> rusqlite::Result<bool> {
        let any = match self.owner_deleted.entry(stream) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => *unknown.insert(deleted_by_owner::any(transaction, stream)?),
        };
        Ok(any && deleted_by_owner::contains(transaction, stream, key)?)
    }

    fn put(
        &mut self,
        transaction: &Transaction<'_>,
        entry: &Arc<StreamEntry>,
        key: &str,
        content: NewContent,
    ) -> rusqlite::Result<Applied> {
        let NewContent { body, emitted_at } = &content;
        // Most writes are new keys: trying that first saves a look-up.
        let sort = sort_value(SortValue::of(&entry.layout, body));
        let inserted = transaction
            .prepare_cached(
                "INSERT INTO records (stream_id, key, version, sort, emitted_at, data, digest)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (stream_id, key) DO NOTHING",
            )?
            .execute(params![
                entry.id,
                key,
                self.version + 1,
                sort,
                emitted_at,
                body.as_str(),
                self.digest(entry, key, emitted_at, Some(body))
            ])?;
        if inserted == 1 {
            let row = transaction.last_insert_rowid();
            self.note(entry, 1);
            self.stage(row, entry, Some(content), false);
            return Ok(Applied::Added);
        }
        self.replace(transaction, entry, key, content)
    }

    fn replace(
        &mut self,
        transaction: &Transaction<'_>,
        entry: &Arc<StreamEntry>,
        key: &str,
        content: NewContent,
    ) -> rusqlite::Result<Applied> {
        let NewContent { body, emitted_at } = &content;
        let Some(current) = current(transaction, entry.id, key)? else {
            return Err(rusqlite::Error::QueryReturnedNoRows);
        };
        let applied = match &current.data {
            None => Applied::Added,
            // A damaged record is repaired by sending it again.
            Some(_) if current.is_damaged => Applied::Updated,
            Some(data) => replacing(Some(data), body, entry.layout.append_only),
        };
        if !matches!(applied, Applied::Added | Applied::Updated) {
            return Ok(applied);
        }
        self.keep_version(transaction, entry, &current)?;
        note_earlier_date(transaction, entry, &current, emitted_at)?;
        transaction
            .prepare_cached(
                "UPDATE records SET version = ?2, sort = ?3, emitted_at = ?4, data = ?5, digest = ?6 WHERE row_id = ?1",
            )?
            .execute(params![
                current.row,
                self.version + 1,
                sort_value(SortValue::of(&entry.layout, body)),
                emitted_at,
                body.as_str(),
                self.digest(entry, key, emitted_at, Some(body))
            ])?;
        self.note(entry, i64::from(applied == Applied::Added));
        self.stage(current.row, entry, Some(content), true);
        Ok(applied)
    }

    fn delete(
        &mut self,
        transaction: &Transaction<'_>,
        entry: &Arc<StreamEntry>,
        key: &str,
        emitted_at: &str,
    ) -> rusqlite::Result<Applied> {
        let Some(current) =
            current(transaction, entry.id, key)?.filter(|found| found.data.is_some())
        else {
            return Ok(Applied::AlreadyAbsent);
        };
        self.keep_version(transaction, entry, &current)?;
        transaction
            .prepare_cached(
                "UPDATE records SET version = ?2, sort = NULL, emitted_at = ?3, data = NULL, digest = ?4 WHERE row_id = ?1",
            )?
            .execute(params![
                current.row,
                self.version + 1,
                emitted_at,
                self.digest(entry, key, emitted_at, None)
            ])?;
        self.note(entry, -1);
        self.stage(current.row, entry, None, true);
        Ok(Applied::Deleted)
    }

    /// The digest of what the next version holds.
    fn digest(
        &self,
        entry: &StreamEntry,
        key: &str,
        emitted_at: &str,
        body: Option<&RecordBody>,
    ) -> i64 {
        let content = Content {
            stream: entry.id,
            key,
            version: self.version + 1,
            emitted_at,
            data: body.map(RecordBody::as_str),
        };
        content.digest()
    }

    /// Moves the content of the row into history. Damaged content is not kept as history.
    fn keep_version(
        &self,
        transaction: &Transaction<'_>,
        entry: &StreamEntry,
        current: &Current,
    ) -> rusqlite::Result<()> {
        if current.is_damaged {
            return Ok(());
        }
        transaction
            .prepare_cached(
                "INSERT INTO versions (row_id, stream_id, version, next_version, emitted_at, data, digest)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                current.row,
                entry.id,
                current.version,
                self.version + 1,
                current.emitted_at,
                current.data,
                current.digest
            ])
            .map(drop)
    }

    /// Counts a change that was written.
    fn note(&mut self, entry: &StreamEntry, live: i64) {
        self.version += 1;
        let totals = self.totals.entry(entry.id).or_default();
        totals.0 += live;
        totals.1 = self.version;
    }

    fn stage(&mut self, row: i64, entry: &Arc<StreamEntry>, put: Option<NewContent>, known: bool) {
        self.staged.push(Staged {
            row: row.cast_unsigned(),
            entry: Arc::clone(entry),
            put,
            known,
        });
    }

    /// Updates the totals. Returns whether all streams still exist: the connection may have been removed since the batch
    /// was prepared.
    fn finish(&self, transaction: &Transaction<'_>) -> rusqlite::Result<bool> {
        if self.version == self.before {
            return Ok(true);
        }
        for (stream, (live, version)) in &self.totals {
            let updated = transaction
                .prepare_cached(
                    "UPDATE streams SET live_records = live_records + ?2, last_version = ?3 WHERE id = ?1",
                )?
                .execute(params![stream, live, version])?;
            if updated == 0 {
                return Ok(false);
            }
        }
        set_newest_version(transaction, self.version)?;
        Ok(true)
    }
}

fn current(
    transaction: &Transaction<'_>,
    stream: i64,
    key: &str,
) -> rusqlite::Result<Option<Current>> {
    transaction
        .prepare_cached("SELECT row_id, version, emitted_at, data, digest FROM records WHERE stream_id = ?1 AND key = ?2")?
        .query_row(params![stream, key], |row| {
            let data: rusqlite::Result<Option<String>> = row.get(3);
            let is_text = data.is_ok() && row.get_ref(2)?.as_str().is_ok();
            let mut current = Current {
                row: row.get(0)?,
                version: row.get(1)?,
                emitted_at: readable(row, 2)?,
                data: data.or_else(|_| readable(row, 3).map(Some))?,
                digest: row.get(4)?,
                is_damaged: false,
            };
            let content = Content {
                stream,
                key,
                version: current.version,
                emitted_at: &current.emitted_at,
                data: current.data.as_deref(),
            };
            current.is_damaged = !is_text || !content.is_written_with(current.digest);
            Ok(current)
        })
        .optional()
}

/// Notes a record whose date moved back: a search for the latest date by present dates would miss it.
fn note_earlier_date(
    transaction: &Transaction<'_>,
    entry: &StreamEntry,
    current: &Current,
    emitted_at: &str,
) -> rusqlite::Result<()> {
    let before = Instant::parse(&current.emitted_at);
    let Some(Instant(before)) = before.filter(|before| Instant::parse(emitted_at) < Some(*before))
    else {
        return Ok(());
    };
    transaction
        .prepare_cached(
            "INSERT INTO redated (row_id, stream_id, latest) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET latest = max(latest, ?3)",
        )?
        .execute(params![current.row, entry.id, before])
        .map(drop)
}
