//! What is kept, and for how long; and the time, which goes back on no node.

use contract::time::Instant;

use super::PostgresStore;
use crate::Result;
use crate::keeping::{CountedTime, Dropped, Grown, KeepRules, Keeping, Retention};

impl Keeping for PostgresStore {
    fn time(&self) -> CountedTime {
        self.clock.time()
    }

    fn reset_time(&self) -> Result<CountedTime> {
        let before = self.clock.reset()?;
        self.pool.transact(|tx| {
            let sql = "UPDATE owners SET latest_at = $2 WHERE id = $1";
            tx.execute(sql, &[&self.owner, &before.machine.0])
        })?;
        Ok(before)
    }

    fn grown(&self) -> Result<Grown> {
        let row = self.pool.query_one(
            "SELECT log.*, old.* FROM
             (SELECT count(*), coalesce(sum(octet_length(entry)), 0)::bigint FROM disclosures WHERE owner_id = $1) AS log,
             (SELECT count(*), coalesce(sum(octet_length(data)), 0)::bigint FROM versions WHERE owner_id = $1) AS old",
            &[&self.owner],
        )?;
        let count = |column| -> Result<u64> { Ok(row.get::<i64>(column)?.cast_unsigned()) };
        Ok(Grown {
            log_entries: count(0)?,
            log_bytes: count(1)?,
            versions: count(2)?,
            version_bytes: count(3)?,
        })
    }

    fn drop_old(&self, rules: KeepRules) -> Result<Dropped> {
        let now = self.now();
        let [log, versions] = [rules.log, rules.versions].map(|keep| Retention { keep, now });
        Ok(Dropped {
            log_entries: self.drop_log(log)?,
            versions: self.thin_versions(versions)?,
        })
    }
}

impl PostgresStore {
    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }
}
