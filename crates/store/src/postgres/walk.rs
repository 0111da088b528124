//! Walking the live records of a stream in the order of a page, some at a time.
//!
//! The order is two index ranges at most: records with a cursor value, then those without, in both directions.

use super::pool::{Param, Pool, Row, Tx};
use super::row::STORED;
use super::sort::sort_bits;
use crate::Result;
use crate::records::{Direction, OrderBy, PAGE_BYTES, PagePosition, PageRequest, SortValue};

/// One index range: its condition and order in SQL, after the owner and the stream.
struct Range {
    condition: &'static str,
    order: &'static str,
    sort: Option<i64>,
    key: Option<String>,
}

pub(super) struct Walk<'a> {
    pub(super) owner: i64,
    pub(super) stream: i64,
    pub(super) request: &'a PageRequest,
}

impl Walk<'_> {
    /// The first records of the walk, at most so many: full rows as far as a page holds them and one more, or only their
    /// numbers.
    pub(super) fn some(&self, pool: &Pool, limit: usize, whole: bool) -> Result<Vec<Row>> {
        let ranges = match self.request.by {
            OrderBy::Key => vec![by_key(self.request)],
            OrderBy::Cursor => by_cursor(self.request),
        };
        // One statement sees one moment without a transaction, and mostly the first range is enough.
        if let Some(first) = ranges.first() {
            let rows = pool.read(|tx| self.range(tx, first, limit, whole))?;
            if rows.len() >= limit || ranges.len() == 1 {
                return Ok(rows);
            }
        }
        pool.snapshot(|tx| {
            let mut rows = Vec::new();
            for range in &ranges {
                if rows.len() < limit {
                    rows.extend(self.range(tx, range, limit - rows.len(), whole)?);
                }
            }
            Ok(rows)
        })
    }

    fn range(&self, tx: &Tx<'_>, range: &Range, limit: usize, whole: bool) -> Result<Vec<Row>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let Range {
            condition, order, ..
        } = range;
        let columns = if whole { STORED } else { "row_id, key, sort" };
        let inner = format!(
            "SELECT {columns} FROM records
             WHERE owner_id = $1 AND stream_id = $2 AND data IS NOT NULL {condition} ORDER BY {order} LIMIT $3"
        );
        let sql = if whole {
            // What comes after the page is full is not read, but for one more, which tells that there is more.
            format!(
                "SELECT * FROM (
                     SELECT *, sum(octet_length(data)) OVER (ROWS UNBOUNDED PRECEDING) - octet_length(data) AS before,
                         row_number() OVER () AS number
                     FROM ({inner}) AS walked
                 ) AS measured WHERE before <= {PAGE_BYTES} OR number <= 2"
            )
        } else {
            inner
        };
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
