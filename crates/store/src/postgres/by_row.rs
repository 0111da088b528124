//! Records by their rows, which an index has named.

use std::collections::HashMap;

use super::pool::Param;
use super::row::{Found, STORED, found, plain, plain_columns};
use super::truth::{PostgresTruth, signed};
use crate::Result;
use crate::index::truth::Truth as _;
use crate::records::PAGE_BYTES;

impl PostgresTruth {
    /// The live records of these rows of some streams, in this order, and not many more than a page holds.
    pub(super) fn by_row(&self, streams: &[i64], rows: &[u64]) -> Result<Vec<Found>> {
        let (sources, rows) = (self.sources(), signed(rows));
        let stream: &dyn Param = match streams {
            [stream] => stream,
            _ => &streams,
        };
        let params: [&dyn Param; 3] = [&self.owner, stream, &rows];
        let plainly = by_row_sql(streams, &plain_columns(rows.len()));
        let plainly = self.pool.query(&plainly, &params)?;
        if let Some(mut records) = plain(&plainly, &self.pool, &sources)? {
            let places = rows.iter().enumerate().rev();
            let places: HashMap<i64, usize> = places.map(|(at, row)| (*row, at)).collect();
            records.sort_by_key(|found| places.get(&found.row.cast_signed()).copied());
            return Ok(records);
        }
        // What comes after the page is full is not read, but for one more, which tells that there is more.
        let found_rows = by_row_sql(streams, STORED);
        let sql = format!(
            "SELECT * FROM (
                 SELECT *, sum(octet_length(data)) OVER (ORDER BY wanted) - octet_length(data) AS before,
                     row_number() OVER (ORDER BY wanted) AS number
                 FROM (SELECT *, array_position($3, row_id) AS wanted FROM ({found_rows}) AS found) AS placed
             ) AS measured WHERE before <= {PAGE_BYTES} OR number <= 2 ORDER BY wanted"
        );
        let rows = self.pool.query(&sql, &params)?;
        let records = rows.iter().map(|row| found(row, &sources));
        records.filter_map(Result::transpose).collect()
    }
}

/// Columns of the live records of an owner in some rows, which are of one stream or several. Each row is looked up by itself: where
/// statistics do not know a stream yet, the planner takes it for small, and would read all of it for a list of rows. A single stream is
/// in one part of the table, as it knows before it looks at others.
pub(super) fn by_row_sql(streams: &[i64], columns: &str) -> String {
    let of = match streams {
        [_] => "= $2",
        _ => "= ANY($2)",
    };
    format!(
        "SELECT found.* FROM unnest($3) AS wanted (wanted_row) CROSS JOIN LATERAL (
             SELECT {columns} FROM records
             WHERE owner_id = $1 AND stream_id {of} AND row_id = wanted_row AND data IS NOT NULL OFFSET 0
         ) AS found"
    )
}
