//! Raw reads of the record table: by row, newest first page by page, and in the order of change.

use rusqlite::{Connection, Row, params};

use super::{RawReader, STREAM};
use crate::BenchError;

const BY_RID: &str = "SELECT rid, key, seq, sort, emitted_at, data FROM record WHERE rid = ?1";
const FIRST_PAGE: &str = "SELECT rid, key, seq, sort, emitted_at, data FROM record
    WHERE stream_id = ?1 ORDER BY sort DESC, key DESC LIMIT ?2";
const NEXT_PAGE: &str = "SELECT rid, key, seq, sort, emitted_at, data FROM record
    WHERE stream_id = ?1 AND (sort, key) < (?3, ?4) ORDER BY sort DESC, key DESC LIMIT ?2";
const CHANGES: &str = "SELECT rid, key, seq, sort, emitted_at, data FROM record
    WHERE stream_id = ?1 AND seq > ?3 ORDER BY seq LIMIT ?2";

#[derive(Debug, Clone)]
pub struct RawRecord {
    pub rid: i64,
    pub key: String,
    /// The number of its last change.
    pub seq: i64,
    pub sort: i64,
    pub emitted_at: String,
    pub data: String,
}

/// Where the next page starts.
#[derive(Debug, Clone)]
pub struct RawPosition {
    /// Order value of the last record seen.
    pub sort: i64,
    pub key: String,
}

impl RawReader {
    /// One page, newest first, after a position.
    pub fn page(
        &self,
        after: Option<&RawPosition>,
        limit: u32,
    ) -> Result<Vec<RawRecord>, BenchError> {
        let rows: Result<_, rusqlite::Error> = match after {
            None => self
                .records
                .prepare_cached(FIRST_PAGE)?
                .query_map(params![STREAM, limit], record)?
                .collect(),
            Some(after) => self
                .records
                .prepare_cached(NEXT_PAGE)?
                .query_map(params![STREAM, limit, after.sort, after.key], record)?
                .collect(),
        };
        Ok(rows?)
    }

    /// The position at which page `number` (from 1) starts: none for the first.
    pub fn position_of_page(
        &self,
        number: u64,
        limit: u32,
    ) -> Result<Option<RawPosition>, BenchError> {
        let mut position = None;
        for _ in 1..number {
            let page = self.page(position.as_ref(), limit)?;
            let Some(last) = page.into_iter().last() else {
                break;
            };
            position = Some(RawPosition {
                sort: last.sort,
                key: last.key,
            });
        }
        Ok(position)
    }

    /// What changed after a change number, oldest first.
    pub fn changes(&self, after: i64, limit: u32) -> Result<Vec<RawRecord>, BenchError> {
        let rows: Result<_, rusqlite::Error> = self
            .records
            .prepare_cached(CHANGES)?
            .query_map(params![STREAM, limit, after], record)?
            .collect();
        Ok(rows?)
    }
}

pub(super) fn by_rid(records: &Connection, rid: i64) -> Result<RawRecord, BenchError> {
    let mut statement = records.prepare_cached(BY_RID)?;
    Ok(statement.query_row([rid], record)?)
}

fn record(row: &Row<'_>) -> Result<RawRecord, rusqlite::Error> {
    Ok(RawRecord {
        rid: row.get(0)?,
        key: row.get(1)?,
        seq: row.get(2)?,
        sort: row.get(3)?,
        emitted_at: row.get(4)?,
        data: row.get(5)?,
    })
}
