//! The rows of the disclosure log. It is extended under the lock of its head row, so nodes take turns and the chain is one.

use contract::id::GrantId;

use super::PostgresStore;
use crate::disclosure_log::{Checking, Cut, Dropping, Entry, Head, LastUses, Logged};
use crate::grants::{ChainCheck, Disclosure, LoggedDisclosure, TokenUse};
use crate::keeping::{Keep, Retention};
use crate::postgres::pool::{Row, Tx};
use crate::{Result, StoreError};

/// How many entries are read at a time when the whole log is.
const AT_ONCE: i64 = 5_000;

/// The ends of the chain: the last entry, and the last one that was dropped from its beginning.
pub(in crate::postgres) struct Ends {
    pub(in crate::postgres) last: Option<Head>,
    pub(in crate::postgres) dropped: Head,
}

impl PostgresStore {
    pub(super) fn append_disclosures(
        &self,
        disclosures: &[Disclosure],
        uses: &[TokenUse],
    ) -> Result<()> {
        if disclosures.is_empty() && uses.is_empty() {
            return Ok(());
        }
        let entries = disclosures
            .iter()
            .map(serde_json::to_string)
            .collect::<serde_json::Result<Vec<String>>>()
            .map_err(|error| self.log_failed(format!("a disclosure cannot be written: {error}")))?;
        self.pool.transact(|tx| {
            if !entries.is_empty() {
                let head = self.lock_end(tx)?;
                self.put(tx, head, &entries, disclosures)?;
            }
            self.note_uses(tx, &LastUses::of(disclosures, uses))
        })
    }

    /// The head that the next entry continues. A damaged head is continued from what can be read of it: the break stays visible
    /// and nothing goes unlogged.
    pub(super) fn lock_end(&self, tx: &Tx<'_>) -> Result<Head> {
        let mut head = self.ends(tx, "FOR UPDATE")?.last.unwrap_or(Head::EMPTY);
        let sql = "SELECT coalesce(max(sequence), 0) FROM disclosures WHERE owner_id = $1";
        let last: i64 = tx.query_one(sql, &[&self.owner])?.get(0)?;
        head.sequence = head.sequence.max(last.cast_unsigned());
        Ok(head)
    }

    pub(in crate::postgres) fn ends(&self, tx: &Tx<'_>, lock: &str) -> Result<Ends> {
        let row = tx.query_one(
            &format!(
                "SELECT sequence, hash, dropped_sequence, dropped_hash FROM chains WHERE owner_id = $1 {lock}"
            ),
            &[&self.owner],
        )?;
        let head = |first: usize| -> Result<Option<Head>> {
            let (sequence, hash): (i64, &[u8]) = (row.get(first)?, row.get(first + 1)?);
            let hash = hash.try_into().ok();
            Ok(hash.map(|hash| Head {
                sequence: sequence.cast_unsigned(),
                hash,
            }))
        };
        Ok(Ends {
            last: head(0)?,
            dropped: head(2)?.unwrap_or(Head::EMPTY),
        })
    }

    /// Appends entries, lists them under their grants, and moves the end.
    fn put(
        &self,
        tx: &Tx<'_>,
        mut head: Head,
        entries: &[String],
        disclosures: &[Disclosure],
    ) -> Result<()> {
        let (mut sequences, mut hashes) = (Vec::new(), Vec::new());
        let (mut grants, mut listed) = (Vec::new(), Vec::new());
        for (at, entry) in entries.iter().enumerate() {
            head = head.extended(entry.as_bytes());
            let sequence = head.sequence.cast_signed();
            sequences.push(sequence);
            hashes.push(head.hash.to_vec());
            let named = disclosures.get(at).map(|disclosure| &disclosure.grant_ids);
            for grant in named.into_iter().flatten() {
                grants.push(grant.as_str());
                listed.push(sequence);
            }
        }
        tx.execute(
            "INSERT INTO disclosures (owner_id, sequence, entry, hash)
             SELECT $1, * FROM unnest($2::bigint[], $3::text[], $4::bytea[])",
            &[&self.owner, &sequences, &entries, &hashes],
        )?;
        tx.execute(
            "INSERT INTO disclosures_by_grant (owner_id, grant_id, sequence)
             SELECT $1, * FROM unnest($2::text[], $3::bigint[]) ON CONFLICT DO NOTHING",
            &[&self.owner, &grants, &listed],
        )?;
        tx.execute(
            "UPDATE chains SET sequence = $2, hash = $3 WHERE owner_id = $1",
            &[
                &self.owner,
                &head.sequence.cast_signed(),
                &head.hash.as_slice(),
            ],
        )
        .map(drop)
    }

    /// Moves `last_used_at` of tokens and grants forward, never back.
    fn note_uses(&self, tx: &Tx<'_>, latest: &LastUses<'_>) -> Result<()> {
        for (table, latest) in [("tokens", &latest.tokens), ("grants", &latest.grants)] {
            if latest.is_empty() {
                continue;
            }
            let ids: Vec<&str> = latest.keys().copied().collect();
            let times: Vec<i64> = latest.values().copied().collect();
            tx.execute(
                &format!(
                    "UPDATE {table} SET last_used_at = greatest(last_used_at, used.at)
                     FROM unnest($2::text[], $3::bigint[]) AS used (id, at)
                     WHERE owner_id = $1 AND {table}.id = used.id COLLATE \"C\""
                ),
                &[&self.owner, &ids, &times],
            )?;
        }
        Ok(())
    }

    pub(super) fn logged(
        &self,
        grant: Option<&GrantId>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<LoggedDisclosure>> {
        let before = before
            .and_then(|before| i64::try_from(before).ok())
            .unwrap_or(i64::MAX);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.pool.read(|tx| match grant {
            None => tx.query(
                "SELECT sequence, entry FROM disclosures WHERE owner_id = $1 AND sequence < $2
                 ORDER BY sequence DESC LIMIT $3",
                &[&self.owner, &before, &limit],
            ),
            Some(grant) => tx.query(
                "SELECT sequence, entry FROM disclosures_by_grant JOIN disclosures USING (owner_id, sequence)
                 WHERE owner_id = $1 AND sequence < $2 AND grant_id = $4 ORDER BY sequence DESC LIMIT $3",
                &[&self.owner, &before, &limit, &grant.as_str()],
            ),
        })?;
        let mut logged = Vec::new();
        for row in &rows {
            let (sequence, entry): (i64, &str) = (row.get(0)?, row.get(1)?);
            let entry = Entry::read(entry.as_bytes()).map_err(|error| {
                self.log_failed(format!(
                    "entry {sequence} of the disclosure log cannot be read ({error}); `pdpp grants verify` checks it"
                ))
            })?;
            if let Entry::Disclosure(disclosure) = entry {
                logged.push(LoggedDisclosure {
                    sequence: sequence.cast_unsigned(),
                    disclosure,
                });
            }
        }
        Ok(logged)
    }

    pub(super) fn check_chain(&self) -> Result<ChainCheck> {
        self.pool.snapshot(|tx| self.check_chain_in(tx))
    }

    pub(in crate::postgres) fn check_chain_in(&self, tx: &Tx<'_>) -> Result<ChainCheck> {
        let ends = self.ends(tx, "")?;
        let mut checking = Checking::from(ends.dropped);
        let mut after = i64::MIN;
        loop {
            // An entry's grants come with it, in the order in which they are looked up.
            let rows = tx.query(
                    "SELECT sequence, entry, hash, ARRAY(
                         SELECT grant_id FROM disclosures_by_grant g
                         WHERE g.owner_id = d.owner_id AND g.sequence = d.sequence ORDER BY grant_id
                     )
                     FROM disclosures d WHERE owner_id = $1 AND sequence > $2 ORDER BY sequence LIMIT $3",
                    &[&self.owner, &after, &AT_ONCE],
                )?;
            let Some(last) = rows.last() else { break };
            after = last.get(0)?;
            for row in &rows {
                let listed: Vec<&str> = row.get(3)?;
                let is_listed = |grants: &[&str]| -> Result<bool> {
                    Ok(grants.iter().all(|grant| listed.contains(grant)))
                };
                if let Some(broken) = checking.take(entry_of(row)?, is_listed)? {
                    return Ok(broken);
                }
            }
        }
        let sql = "SELECT count(*) FROM disclosures_by_grant WHERE owner_id = $1";
        let listed: i64 = tx.query_one(sql, &[&self.owner])?.get(0)?;
        Ok(checking.finish(ends.last, listed.cast_unsigned()))
    }

    /// Drops the beginning of the log, as far as the rule does not keep it, and records that at its end.
    pub(in crate::postgres) fn drop_log(&self, retention: Retention) -> Result<u64> {
        if retention.keep == Keep::All {
            return Ok(0);
        }
        self.pool.transact(|tx| {
            let end = self.lock_end(tx)?;
            let start = self.ends(tx, "")?.dropped;
            let dropping = self.droppable(tx, Dropping::from(start, end, retention))?;
            if dropping.dropped == 0 {
                return Ok(0);
            }
            let last = dropping.last;
            for table in ["disclosures", "disclosures_by_grant"] {
                tx.execute(
                    &format!("DELETE FROM {table} WHERE owner_id = $1 AND sequence <= $2"),
                    &[&self.owner, &last.sequence.cast_signed()],
                )?;
            }
            tx.execute(
                "UPDATE chains SET dropped_sequence = $2, dropped_hash = $3 WHERE owner_id = $1",
                &[
                    &self.owner,
                    &last.sequence.cast_signed(),
                    &last.hash.as_slice(),
                ],
            )?;
            let cut = serde_json::to_string(&Cut::after(last, retention.now))
                .map_err(|error| self.log_failed(error.to_string()))?;
            self.put(tx, end, &[cut], &[])?;
            Ok(dropping.dropped)
        })
    }

    fn droppable(&self, tx: &Tx<'_>, mut dropping: Dropping) -> Result<Dropping> {
        let mut after = i64::MIN;
        loop {
            let rows = tx.query(
                "SELECT sequence, entry, hash FROM disclosures WHERE owner_id = $1 AND sequence > $2
                 ORDER BY sequence LIMIT $3",
                &[&self.owner, &after, &AT_ONCE],
            )?;
            let Some(last) = rows.last() else {
                return Ok(dropping);
            };
            after = last.get(0)?;
            for row in &rows {
                let taken = dropping.take(entry_of(row)?).map_err(|sequence| {
                    self.log_failed(format!(
                        "the disclosure log is broken at entry {sequence}, so nothing was dropped from it; `pdpp grants verify` tells more"
                    ))
                })?;
                if !taken {
                    return Ok(dropping);
                }
            }
        }
    }

    fn log_failed(&self, detail: String) -> StoreError {
        StoreError::Database {
            place: self.place().to_owned(),
            detail,
        }
    }
}

fn entry_of(row: &Row) -> Result<Logged<'_>> {
    Ok(Logged {
        sequence: row.get(0)?,
        entry: row.get::<&str>(1)?.as_bytes(),
        hash: Some(row.get(2)?),
    })
}
