//! Walking the live records of a stream in the order of a page, some at a time.
//!
//! The order is two index ranges at most: records with a cursor value, then those without, in both directions.

use super::pool::{Param, Pool, Row, Tx};
use super::row::{Found, STORED, found, plain, plain_columns};
use super::sort::sort_bits;
use crate::Result;
use crate::index::sources::Sources;
use crate::records::{Direction, OrderBy, PAGE_BYTES, PagePosition, PageRequest, SortValue};

/// One index range: its condition and order in SQL, after the owner and the stream.
struct Range {
    condition: &'static str,
    order: &'static str,
    sort: Option<i64>,
    key: Option<String>,
}

/// What is read of a record.
pub(super) enum Columns {
    /// All, without content that is large.
    Plain,
    /// All, as far as a page holds it.
    Whole,
    /// Its row and where it stands.
    Position,
}

pub(super) struct Walk<'a> {
    pub(super) owner: i64,
    pub(super) stream: i64,
    pub(super) request: &'a PageRequest,
}

impl Walk<'_> {
    /// The first records of the walk, at most so many and not many more than a page holds.
    pub(super) fn records(
        &self,
        pool: &Pool,
        limit: usize,
        sources: &Sources,
    ) -> Result<Vec<Found>> {
        let rows = self.some(pool, limit, &Columns::Plain)?;
        if let Some(records) = plain(&rows, pool, sources)? {
            return Ok(records);
        }
        let rows = self.some(pool, limit, &Columns::Whole)?;
        let records = rows.iter().map(|row| found(row, sources));
        records.filter_map(Result::transpose).collect()
    }

    /// The first rows of the walk, at most so many.
    pub(super) fn some(&self, pool: &Pool, limit: usize, columns: &Columns) -> Result<Vec<Row>> {
        let ranges = match self.request.by {
            OrderBy::Key => vec![by_key(self.request)],
            OrderBy::Cursor => by_cursor(self.request),
        };
        // One statement sees one moment without a transaction, and mostly the first range is enough.
        if let Some(first) = ranges.first() {
            let rows = pool.read(|tx| self.range(tx, first, limit, columns))?;
            if rows.len() >= limit || ranges.len() == 1 {
                return Ok(rows);
            }
        }
        pool.snapshot(|tx| {
            let mut rows = Vec::new();
            for range in &ranges {
                if rows.len() < limit {
                    rows.extend(self.range(tx, range, limit - rows.len(), columns)?);
                }
            }
            Ok(rows)
        })
    }

    fn range(
        &self,
        tx: &Tx<'_>,
        range: &Range,
        limit: usize,
        columns: &Columns,
    ) -> Result<Vec<Row>> {
        let Range {
            condition, order, ..
        } = range;
        let listed = match columns {
            Columns::Plain => plain_columns(limit),
            Columns::Whole => STORED.to_owned(),
            Columns::Position => "row_id, key, sort".to_owned(),
        };
        let inner = format!(
            "SELECT {listed} FROM records
             WHERE owner_id = $1 AND stream_id = $2 AND data IS NOT NULL {condition} ORDER BY {order} LIMIT $3"
        );
        let sql = match columns {
            // What comes after the page is full is not read, but for one more, which tells that there is more.
            Columns::Whole => format!(
                "SELECT * FROM (
                     SELECT *, sum(octet_length(data)) OVER (ROWS UNBOUNDED PRECEDING) - octet_length(data) AS before,
                         row_number() OVER () AS number
                     FROM ({inner}) AS walked
                 ) AS measured WHERE before <= {PAGE_BYTES} OR number <= 2"
            ),
            Columns::Plain | Columns::Position => inner,
        };
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut params: Vec<&dyn Param> = vec![&self.owner, &self.stream, &limit];
        if let Some(key) = &range.key {
            params.push(key);
        }
        if let Some(sort) = &range.sort {
            params.push(sort);
        }
        tx.query(&sql, &params)
    }
}

fn by_key(request: &PageRequest) -> Range {
    let key = request
        .after
        .as_ref()
        .map(|after| after.key.ordering_form());
    let (condition, order) = match (request.direction, &key) {
        (Direction::Ascending, None) => ("", "key"),
        (Direction::Ascending, Some(_)) => ("AND key > $4", "key"),
        (Direction::Descending, None) => ("", "key DESC"),
        (Direction::Descending, Some(_)) => ("AND key < $4", "key DESC"),
    };
    Range {
        condition,
        order,
        sort: None,
        key,
    }
}

fn by_cursor(request: &PageRequest) -> Vec<Range> {
    let without = |key: Option<String>| {
        let (condition, order) = match (request.direction, &key) {
            (Direction::Ascending, None) => ("AND sort IS NULL", "key"),
            (Direction::Ascending, Some(_)) => ("AND sort IS NULL AND key > $4", "key"),
            (Direction::Descending, None) => ("AND sort IS NULL", "key DESC"),
            (Direction::Descending, Some(_)) => ("AND sort IS NULL AND key < $4", "key DESC"),
        };
        Range {
            condition,
            order,
            sort: None,
            key,
        }
    };
    let after = match &request.after {
        Some(PagePosition {
            sort: SortValue::Missing,
            key,
        }) => return vec![without(Some(key.ordering_form()))],
        after => after.as_ref(),
    };
    let (condition, order) = match (request.direction, after) {
        (Direction::Ascending, None) => ("AND sort IS NOT NULL", "sort, key"),
        (Direction::Ascending, Some(_)) => ("AND (sort, key) > ($5, $4)", "sort, key"),
        (Direction::Descending, None) => ("AND sort IS NOT NULL", "sort DESC, key DESC"),
        (Direction::Descending, Some(_)) => ("AND (sort, key) < ($5, $4)", "sort DESC, key DESC"),
    };
    let with = Range {
        condition,
        order,
        sort: after.and_then(|after| sort_bits(after.sort)),
        key: after.map(|after| after.key.ordering_form()),
    };
    vec![with, without(None)]
}
