//! Records by their rows, which an index has named.

use std::collections::HashMap;

use super::pool::Param;
use super::row::{Found, STORED, found, most_bytes, plain};
use super::truth::{PostgresTruth, signed};
use crate::Result;
use crate::index::truth::Truth as _;
use crate::records::PAGE_BYTES;

impl PostgresTruth {
    /// The live records of these rows of some streams, in this order, and not many more than a page holds.
    pub(super) fn by_row(&self, streams: &[i64], rows: &[u64]) -> Result<Vec<Found>> {
        let (sources, rows) = (self.sources(), signed(rows));
        let most = i64::try_from(most_bytes(rows.len())).unwrap_or(i64::MAX);
        let plainly = "SELECT * FROM records_by_row($1, $2, $3, $4)";
        let params: [&dyn Param; 4] = [&self.owner, &streams, &rows, &most];
        let plainly = self.pool.query(plainly, &params)?;
        if let Some(mut records) = plain(&plainly, &self.pool, &sources)? {
            let places = rows.iter().enumerate().rev();
            let places: HashMap<i64, usize> = places.map(|(at, row)| (*row, at)).collect();
            records.sort_by_key(|found| places.get(&found.row.cast_signed()).copied());
            return Ok(records);
        }
        // What comes after the page is full is not read, but for one more, which tells that there is more.
        let sql = format!(
            "SELECT * FROM (
                 SELECT *, sum(octet_length(data)) OVER (ORDER BY wanted) - octet_length(data) AS before,
                     row_number() OVER (ORDER BY wanted) AS number
                 FROM (
                     SELECT found.*, array_position($3, row_id) AS wanted FROM unnest($3) AS places (place) CROSS JOIN LATERAL (
                         SELECT {STORED} FROM records
                         WHERE owner_id = (SELECT $1) AND stream_id = ANY($2) AND row_id = place AND data IS NOT NULL OFFSET 0
                     ) AS found
                 ) AS placed
             ) AS measured WHERE before <= {PAGE_BYTES} OR number <= 2 ORDER BY wanted"
        );
        let rows = self.pool.query(&sql, &params[..3])?;
        let records = rows.iter().map(|row| found(row, &sources));
        records.filter_map(Result::transpose).collect()
    }
}
