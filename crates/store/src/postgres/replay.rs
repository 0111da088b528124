//! One state of the records, from which an index catches up.

use super::pool::{Param, Row, Tx};
use super::truth::checked;
use crate::Result;
use crate::index::engine::Versions;
use crate::index::truth::{Mark, Replayed, TruthSnapshot};

/// So many versions are read by one question.
const FEW: u64 = 16;

pub(super) struct Snapshot<'a> {
    pub(super) tx: &'a Tx<'a>,
    pub(super) owner: i64,
    pub(super) head: u64,
}

impl TruthSnapshot for Snapshot<'_> {
    fn head(&self) -> Result<u64> {
        Ok(self.head)
    }

    fn mark(&self, version: u64) -> Result<Mark> {
        let sql = "SELECT encode(mark, 'hex') FROM marks WHERE owner_id = $1 AND version >= $2 ORDER BY version LIMIT 1";
        let row = self
            .tx
            .query_opt(sql, &[&self.owner, &version.cast_signed()])?;
        row.map(|row| row.get(0)).transpose()
    }

    fn purged_to(&self) -> Result<u64> {
        let sql = "SELECT purged_to FROM owners WHERE id = $1";
        let row = self.tx.query_one(sql, &[&self.owner])?;
        Ok(row.get::<i64>(0)?.cast_unsigned())
    }

    fn erased(&self, versions: Versions) -> Result<Vec<i64>> {
        let sql =
            "SELECT stream_id FROM erasures WHERE owner_id = $1 AND version > $2 AND version <= $3";
        let (after, upto) = (versions.after.cast_signed(), versions.upto.cast_signed());
        let rows = self.tx.query(sql, &[&self.owner, &after, &upto])?;
        rows.iter().map(|row| row.get(0)).collect()
    }

    fn replay(
        &self,
        versions: Versions,
        each: &mut dyn FnMut(Replayed) -> Result<()>,
    ) -> Result<()> {
        let sql = "SELECT row_id, records.stream_id, key, version, emitted_at, data, digest
             FROM streams JOIN records ON records.owner_id = streams.owner_id AND records.stream_id = streams.id
             WHERE streams.owner_id = $1 AND streams.last_version > $2 AND version > $2 AND version <= $3
             ORDER BY records.stream_id, version";
        let (after, upto) = (versions.after.cast_signed(), versions.upto.cast_signed());
        let params: [&dyn Param; 3] = [&self.owner, &after, &upto];
        let mut replayed = |row: &Row| {
            let is_live = row.get::<Option<&str>>(5)?.is_some();
            each(Replayed {
                row: row.get::<i64>(0)?.cast_unsigned(),
                stream: row.get(1)?,
                emitted_at: row.get(4)?,
                data: match checked(row)? {
                    None if is_live => Some("{}".to_owned()),
                    data => data,
                },
            })?;
            Ok(true)
        };
        // A search after a write of another node waits for this.
        if versions.upto - versions.after <= FEW {
            let rows = self.tx.query(sql, &params)?;
            return rows.iter().try_for_each(|row| replayed(row).map(drop));
        }
        self.tx.each(sql, &params, &mut replayed).map(drop)
    }
}
