//! The records in PostgreSQL, as the index over them needs them.
//!
//! Other nodes write too, so the newest version is asked for, by every read, together with whether declarations changed.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use contract::key::RecordKey;

use super::pool::{Param, Pool, Row};
use super::replay::Snapshot;
use super::row::{Found, STORED, Stored, confirm_revised, sort_of};
use super::sources::KnownSources;
use super::together::Together;
use super::walk::{Columns, Walk};
use crate::index::sources::Sources;
use crate::index::truth::{
    ChangedRecord, LiveRow, Mark, RowRange, RowRecord, Truth, TruthSnapshot,
};
use crate::record_digest::Content;
use crate::records::{ByteBudget, PagePosition, PageRequest, StoredPage, StoredRecord};
use crate::{Result, StoreError, stop};

/// Records that a walk reads at a time.
const CHUNK: usize = 500;

pub(super) struct PostgresTruth {
    pub(super) pool: Arc<Pool>,
    pub(super) owner: i64,
    sources: Arc<KnownSources>,
    place: PathBuf,
    /// The newest version, the number of the catalog, and the mark.
    heads: Together<(u64, u64, Mark)>,
}

impl PostgresTruth {
    pub(super) fn new(pool: Arc<Pool>, owner: i64, sources: Arc<KnownSources>) -> Self {
        Self {
            place: PathBuf::from(pool.place()),
            pool,
            owner,
            sources,
            heads: Together::default(),
        }
    }

    pub(super) fn damaged(&self, stream: i64, key: &str) -> StoreError {
        let sources = self.sources();
        let stream = sources.by_id(stream).map_or_else(String::new, |entry| {
            format!("{}/{}:", entry.stream.connection, entry.stream.stream)
        });
        let key = RecordKey::from_ordering_form(key);
        StoreError::RecordDamaged {
            path: self.place.clone(),
            record: format!("{stream}{key}"),
        }
    }

    /// One record of a query for the columns of [`STORED`]. One that is damaged is refused.
    pub(super) fn intact(&self, row: Option<Row>) -> Result<Option<StoredRecord>> {
        let Some(row) = row else {
            return Ok(None);
        };
        let found = super::row::found(&row, &self.sources())?;
        found.map(|found| self.refuse_damaged(found)).transpose()
    }

    /// The same of one that was read with its row, and that may have earlier versions where it was changed.
    pub(super) fn intact_alone(&self, stored: Stored<'_>) -> Result<Option<StoredRecord>> {
        let mut found: Vec<Found> = stored.found(&self.sources()).into_iter().collect();
        confirm_revised(&self.pool, &mut found)?;
        found
            .pop()
            .map(|found| self.refuse_damaged(found))
            .transpose()
    }

    fn refuse_damaged(&self, found: Found) -> Result<StoredRecord> {
        if found.record.is_damaged {
            return Err(self.damaged(found.stream, &found.record.key.ordering_form()));
        }
        Ok(found.record)
    }

    fn walked<'a>(&self, stream: i64, request: &'a PageRequest) -> Walk<'a> {
        Walk {
            owner: self.owner,
            stream,
            request,
        }
    }

    fn count(&self, sql: &str, params: &[&dyn Param]) -> Result<u64> {
        let row = self.pool.query_one(sql, params)?;
        Ok(row.get::<i64>(0)?.cast_unsigned())
    }
}

pub(super) fn signed(rows: &[u64]) -> Vec<i64> {
    rows.iter().map(|row| row.cast_signed()).collect()
}

impl Truth for PostgresTruth {
    fn place(&self) -> &Path {
        &self.place
    }

    fn sources(&self) -> Arc<Sources> {
        self.sources.last()
    }

    fn head(&self) -> Result<(u64, Mark)> {
        let (version, catalog, mark) = self.heads.ask(|| {
            let (version, catalog, marked, mark) = self.pool.glance(|tx| {
                let sql = "SELECT version, catalog, marked, last_mark FROM owners WHERE id = $1";
                let row = tx.query_one(sql, &[&self.owner])?;
                let numbers: (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
                let mark = row.get::<Option<&[u8]>>(3)?.map(contract::id::hex);
                Ok((numbers.0, numbers.1, numbers.2, mark))
            })?;
            let mark = if marked == version {
                mark
            } else {
                let sql =
                    "SELECT encode(mark, 'hex') FROM marks WHERE owner_id = $1 AND version = $2";
                let row = self.pool.query_opt(sql, &[&self.owner, &version])?;
                row.map(|row| row.get(0)).transpose()?
            };
            Ok((version.cast_unsigned(), catalog.cast_unsigned(), mark))
        })?;
        self.sources.renew(&self.pool, catalog)?;
        Ok((version, mark))
    }

    fn on_snapshot(&self, run: &mut dyn FnMut(&dyn TruthSnapshot) -> Result<()>) -> Result<()> {
        self.pool.snapshot(|tx| {
            let sql = "SELECT version, catalog FROM owners WHERE id = $1";
            let row = tx.query_one(sql, &[&self.owner])?;
            let catalog = row.get::<i64>(1)?.cast_unsigned();
            self.sources.at(tx, self.pool.place(), catalog)?;
            run(&Snapshot {
                tx,
                owner: self.owner,
                head: row.get::<i64>(0)?.cast_unsigned(),
            })
        })
    }

    fn live_records(&self) -> Result<u64> {
        self.count(
            "SELECT coalesce(sum(live_records), 0)::bigint FROM streams WHERE owner_id = $1",
            &[&self.owner],
        )
    }

    fn live_in(&self, stream: i64) -> Result<u64> {
        self.count(
            "SELECT live_records FROM streams WHERE owner_id = $1 AND id = $2",
            &[&self.owner, &stream],
        )
    }

    fn rows_of(&self, stream: i64, keys: &[RecordKey]) -> Result<HashSet<u64>> {
        let keys: Vec<String> = keys.iter().map(RecordKey::ordering_form).collect();
        let sql = "SELECT row_id FROM records_by_key($1, $2, $3)";
        let rows = self.pool.query(sql, &[&self.owner, &stream, &keys])?;
        let row = |row: &Row| row.get::<i64>(0).map(i64::cast_unsigned);
        rows.iter().map(row).collect()
    }

    fn names_of(&self, rows: &[u64]) -> Result<Vec<Option<(i64, String)>>> {
        let sql =
            "SELECT row_id, stream_id, key FROM records WHERE owner_id = $1 AND row_id = ANY($2)";
        let found = self.pool.query(sql, &[&self.owner, &signed(rows)])?;
        let mut names = HashMap::with_capacity(found.len());
        for row in &found {
            names.insert(
                row.get::<i64>(0)?.cast_unsigned(),
                (row.get(1)?, row.get(2)?),
            );
        }
        Ok(rows.iter().map(|row| names.get(row).cloned()).collect())
    }

    fn records(&self, streams: &[i64], rows: &[u64]) -> Result<(Vec<RowRecord>, bool)> {
        let found = self.by_row(streams, rows)?;
        let (mut records, mut budget) = (Vec::with_capacity(found.len()), ByteBudget::default());
        for found in found {
            if !budget.take(found.bytes) {
                return Ok((records, false));
            }
            records.push(RowRecord {
                row: found.row,
                stream: found.stream,
                record: found.record,
            });
        }
        Ok((records, true))
    }

    fn positions(&self, rows: &[u64]) -> Result<Vec<(PagePosition, u64)>> {
        let sources = self.sources();
        let sql = "SELECT row_id, stream_id, key, sort FROM records WHERE owner_id = $1 AND row_id = ANY($2)";
        let found = self.pool.query(sql, &[&self.owner, &signed(rows)])?;
        let mut positions = Vec::with_capacity(found.len());
        for row in &found {
            let Some(entry) = sources.by_id(row.get(1)?) else {
                continue;
            };
            let position = PagePosition {
                sort: sort_of(row.get(3)?, &entry.layout),
                key: RecordKey::from_ordering_form(row.get(2)?),
            };
            positions.push((position, row.get::<i64>(0)?.cast_unsigned()));
        }
        Ok(positions)
    }

    fn page(&self, stream: i64, request: &PageRequest) -> Result<StoredPage> {
        let sources = self.sources();
        let (mut records, mut budget) = (Vec::new(), ByteBudget::default());
        let mut is_last = request.limit > 0;
        if is_last {
            let walk = self.walked(stream, request);
            for found in walk.records(&self.pool, request.limit, &sources)? {
                if !budget.take(found.bytes) {
                    is_last = false;
                    break;
                }
                records.push(found.record);
            }
            is_last = is_last && records.len() < request.limit;
        }
        Ok(StoredPage { records, is_last })
    }

    fn current(&self, stream: i64, row: u64) -> Result<Option<StoredRecord>> {
        let sql = format!(
            "SELECT {STORED} FROM records WHERE owner_id = $1 AND stream_id = $2 AND row_id = $3 AND data IS NOT NULL"
        );
        let row = self
            .pool
            .query_opt(&sql, &[&self.owner, &stream, &row.cast_signed()])?;
        self.intact(row)
    }

    fn earlier(&self, stream: i64, row: u64, limit: usize) -> Result<Vec<StoredRecord>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let sql = "SELECT key, versions.emitted_at, versions.data, NULL::bigint, versions.version, TRUE, versions.stream_id, versions.digest, row_id
             FROM versions JOIN records USING (owner_id, stream_id, row_id)
             WHERE owner_id = $1 AND stream_id = $2 AND row_id = $3 AND versions.data IS NOT NULL
             ORDER BY versions.version DESC LIMIT $4";
        let rows = self
            .pool
            .query(sql, &[&self.owner, &stream, &row.cast_signed(), &limit])?;
        let mut records = Vec::with_capacity(rows.len());
        for row in rows {
            records.extend(self.intact(Some(row))?);
        }
        Ok(records)
    }

    fn then_and_now(&self, row: u64, version: u64) -> Result<Option<(String, String)>> {
        let sql = "SELECT versions.data, records.data FROM records JOIN versions USING (owner_id, stream_id, row_id)
             WHERE owner_id = $1 AND row_id = $2 AND versions.version <= $3 AND versions.next_version > $3
               AND versions.data IS NOT NULL AND records.data IS NOT NULL";
        let row = self.pool.query_opt(
            sql,
            &[&self.owner, &row.cast_signed(), &version.cast_signed()],
        )?;
        row.map(|row| Ok((row.get(0)?, row.get(1)?))).transpose()
    }

    fn walk(
        &self,
        stream: i64,
        request: &PageRequest,
        each: &mut dyn FnMut(u64, StoredRecord) -> Result<bool>,
    ) -> Result<()> {
        let sources = self.sources();
        let mut request = request.clone();
        loop {
            let walk = self.walked(stream, &request);
            let mut last = None;
            for found in walk.records(&self.pool, CHUNK, &sources)? {
                last = Some(found.record.position.clone());
                if !each(found.row, found.record)? {
                    return Ok(());
                }
            }
            // A chunk that ends by its bytes is followed by another.
            let Some(last) = last else { return Ok(()) };
            stop::check()?;
            request.after = Some(last);
        }
    }

    fn walk_rows(
        &self,
        stream: i64,
        request: &PageRequest,
        each: &mut dyn FnMut(u64) -> bool,
    ) -> Result<()> {
        let sources = self.sources();
        let Some(entry) = sources.by_id(stream) else {
            return Ok(());
        };
        let mut request = request.clone();
        loop {
            let walk = self.walked(stream, &request);
            let rows = walk.some(&self.pool, CHUNK * 10, &Columns::Position)?;
            for row in &rows {
                if !each(row.get::<i64>(0)?.cast_unsigned()) {
                    return Ok(());
                }
            }
            let Some(last) = rows.last().filter(|_| rows.len() == CHUNK * 10) else {
                return Ok(());
            };
            request.after = Some(PagePosition {
                sort: sort_of(last.get(2)?, &entry.layout),
                key: RecordKey::from_ordering_form(last.get(1)?),
            });
        }
    }

    fn row_range(&self, stream: i64) -> Result<Option<RowRange>> {
        let sql = "SELECT min(row_id), max(row_id) FROM records WHERE owner_id = $1 AND stream_id = $2 AND data IS NOT NULL";
        let row = self.pool.query_one(sql, &[&self.owner, &stream])?;
        let (first, last): (Option<i64>, Option<i64>) = (row.get(0)?, row.get(1)?);
        Ok(first.zip(last).map(|(first, last)| RowRange {
            stream,
            first: first.cast_unsigned(),
            last: last.cast_unsigned(),
        }))
    }

    fn live_between(&self, range: RowRange) -> Result<u64> {
        self.count(
            "SELECT count(*) FROM records
             WHERE owner_id = $1 AND stream_id = $2 AND data IS NOT NULL AND row_id BETWEEN $3 AND $4",
            &[
                &self.owner,
                &range.stream,
                &range.first.cast_signed(),
                &range.last.cast_signed(),
            ],
        )
    }

    fn live_rows(&self, range: RowRange, limit: usize) -> Result<Vec<LiveRow>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let sql = "SELECT row_id, stream_id, key, version, emitted_at, data, digest FROM records
             WHERE owner_id = $1 AND stream_id = $2 AND row_id BETWEEN $3 AND $4 AND data IS NOT NULL
             ORDER BY row_id LIMIT $5";
        let rows = self.pool.read(|tx| {
            let (first, last) = (range.first.cast_signed(), range.last.cast_signed());
            tx.query(sql, &[&self.owner, &range.stream, &first, &last, &limit])
        })?;
        let live = |row: &Row| {
            Ok(LiveRow {
                row: row.get::<i64>(0)?.cast_unsigned(),
                emitted_at: row.get(4)?,
                data: checked(row)?.unwrap_or_else(|| "{}".to_owned()),
            })
        };
        rows.iter().map(live).collect()
    }

    fn last_version(&self, stream: i64) -> Result<u64> {
        self.count(
            "SELECT coalesce(max(last_version), 0) FROM streams WHERE owner_id = $1 AND id = $2",
            &[&self.owner, &stream],
        )
    }

    fn changed(&self, stream: i64, after: u64, limit: usize) -> Result<(u64, Vec<ChangedRecord>)> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let last =
            "SELECT coalesce(max(last_version), 0) FROM streams WHERE owner_id = $1 AND id = $2";
        let rows = "SELECT row_id, stream_id, key, version, emitted_at, data, digest FROM records
             WHERE owner_id = $1 AND stream_id = $2 AND version > $3 ORDER BY version LIMIT $4";
        self.pool.snapshot(|tx| {
            let last = tx.query_one(last, &[&self.owner, &stream])?;
            let last = last.get::<i64>(0)?.cast_unsigned();
            let found = tx.query(rows, &[&self.owner, &stream, &after.cast_signed(), &limit])?;
            let changed = |row: &Row| {
                Ok(ChangedRecord {
                    row: row.get::<i64>(0)?.cast_unsigned(),
                    version: row.get::<i64>(3)?.cast_unsigned(),
                    data: checked(row)?,
                })
            };
            Ok((last, found.iter().map(changed).collect::<Result<_>>()?))
        })
    }

    fn changed_rows(&self, stream: i64, after: u64) -> Result<Vec<(u64, u64)>> {
        let sql = "SELECT row_id, version FROM records WHERE owner_id = $1 AND stream_id = $2 AND version > $3";
        let rows = self
            .pool
            .query(sql, &[&self.owner, &stream, &after.cast_signed()])?;
        let changed = |row: &Row| {
            let (row, version): (i64, i64) = (row.get(0)?, row.get(1)?);
            Ok((row.cast_unsigned(), version.cast_unsigned()))
        };
        rows.iter().map(changed).collect()
    }

    fn changed_live(&self, stream: i64, after: u64) -> Result<u64> {
        self.count(
            "SELECT count(*) FROM records WHERE owner_id = $1 AND stream_id = $2 AND version > $3 AND data IS NOT NULL",
            &[&self.owner, &stream, &after.cast_signed()],
        )
    }

    fn live_versions(&self, rows: &[(u64, u64)]) -> Result<HashSet<u64>> {
        let (numbers, versions): (Vec<i64>, Vec<i64>) = rows
            .iter()
            .map(|(row, version)| (row.cast_signed(), version.cast_signed()))
            .unzip();
        let sql =
            "SELECT records.row_id FROM records JOIN unnest($2, $3) AS wanted (row_id, version)
             ON records.row_id = wanted.row_id AND records.version = wanted.version
             WHERE owner_id = $1 AND data IS NOT NULL";
        let found = self.pool.query(sql, &[&self.owner, &numbers, &versions])?;
        let row = |row: &Row| row.get::<i64>(0).map(i64::cast_unsigned);
        found.iter().map(row).collect()
    }
}

/// The content of a row of `row_id, stream_id, key, version, emitted_at, data, digest`: `None` where it is gone or damaged.
pub(super) fn checked(row: &Row) -> Result<Option<String>> {
    let Some(data) = row.get::<Option<&str>>(5)? else {
        return Ok(None);
    };
    let content = Content {
        stream: row.get(1)?,
        key: row.get(2)?,
        version: row.get::<i64>(3)?.cast_unsigned(),
        emitted_at: row.get(4)?,
        data: Some(data),
    };
    let is_intact = content.digest() == row.get::<i64>(6)?;
    Ok(is_intact.then(|| data.to_owned()))
}
