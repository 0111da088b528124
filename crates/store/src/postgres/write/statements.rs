//! The statements that write what was decided: one or a few for each table, whatever the number of records.

use std::collections::BTreeSet;

use super::super::pool::{Param, Tx};
use super::{Place, State, Writing, key_digest};
use crate::Result;

const ADDED: &str = "INSERT INTO records (owner_id, stream_id, key, row_id, version, sort, digest, emitted_at, data)
     SELECT $1, * FROM unnest($2, $3, $4, $5, $6, $7, $8, $9)";
/// Each record is found by its key. Joined by an `UPDATE`, all records of the stream would be read for a large batch.
pub(in crate::postgres) const CHANGED: &str = "INSERT INTO records (owner_id, stream_id, key, row_id, version, sort, digest, emitted_at, data)
     SELECT $1, * FROM unnest($2, $3, $4, $5, $6, $7, $8, $9)
     ON CONFLICT (owner_id, stream_id, key) DO UPDATE SET version = excluded.version, sort = excluded.sort,
         digest = excluded.digest, emitted_at = excluded.emitted_at, data = excluded.data";

/// The server writes so many records while the next ones are sent.
const AT_ONCE: usize = 2_500;

/// Records by column, as one statement takes them.
struct Columns<'a> {
    streams: Vec<i64>,
    keys: Vec<&'a str>,
    rows: Vec<i64>,
    versions: Vec<i64>,
    sorts: Vec<Option<i64>>,
    digests: Vec<i64>,
    dates: Vec<&'a str>,
    bodies: Vec<Option<&'a str>>,
}

impl<'a> Columns<'a> {
    fn of(chosen: &[(&'a Place, &'a State)]) -> Self {
        let places = chosen.iter().map(|(place, _)| *place);
        let states = chosen.iter().map(|(_, state)| *state);
        let number = |number: u64| number.cast_signed();
        Self {
            streams: places.clone().map(|(stream, _)| *stream).collect(),
            keys: places.map(|(_, key)| key.as_str()).collect(),
            rows: states.clone().map(|state| number(state.row)).collect(),
            versions: states.clone().map(|state| number(state.version)).collect(),
            sorts: states.clone().map(|state| state.sort).collect(),
            digests: states.clone().map(|state| state.digest).collect(),
            dates: states
                .clone()
                .map(|state| state.emitted_at.as_str())
                .collect(),
            bodies: states.map(|state| state.body.as_deref()).collect(),
        }
    }

    fn params<'b>(&'b self, owner: &'b i64) -> [&'b dyn Param; 9] {
        [
            owner,
            &self.streams,
            &self.keys,
            &self.rows,
            &self.versions,
            &self.sorts,
            &self.digests,
            &self.dates,
            &self.bodies,
        ]
    }
}

impl Writing {
    /// Writes what was decided, and answers whether any record changed.
    pub(super) fn write(&self, tx: &Tx<'_>, owner: i64) -> Result<bool> {
        self.write_owner_deletions(tx, owner)?;
        if self.totals.is_empty() {
            return Ok(false);
        }
        self.write_states(tx, owner, true)?;
        self.write_states(tx, owner, false)?;
        self.write_past(tx, owner)?;
        self.write_dates(tx, owner)?;
        let (streams, totals): (Vec<i64>, Vec<(i64, u64)>) = self
            .totals
            .iter()
            .map(|(stream, total)| (*stream, *total))
            .unzip();
        let live: Vec<i64> = totals.iter().map(|(live, _)| *live).collect();
        let last: Vec<i64> = totals.iter().map(|(_, last)| last.cast_signed()).collect();
        let updated = tx.execute(
            "UPDATE streams SET live_records = live_records + changed.live, last_version = changed.last
             FROM unnest($2, $3, $4) AS changed (id, live, last) WHERE streams.owner_id = $1 AND streams.id = changed.id",
            &[&owner, &streams, &live, &last],
        )?;
        if updated != streams.len() as u64 {
            return Err(tx.missing_row());
        }
        Ok(true)
    }

    fn write_states(&self, tx: &Tx<'_>, owner: i64, new: bool) -> Result<()> {
        let chosen: Vec<(&Place, &State)> = self
            .states
            .iter()
            .filter(|(_, state)| state.is_changed && state.is_new == new)
            .collect();
        let sql = if new { ADDED } else { CHANGED };
        let pieces: Vec<Columns<'_>> = chosen.chunks(AT_ONCE).map(Columns::of).collect();
        let params: Vec<[&dyn Param; 9]> =
            pieces.iter().map(|piece| piece.params(&owner)).collect();
        tx.execute_each(sql, &params)
    }

    fn write_past(&self, tx: &Tx<'_>, owner: i64) -> Result<()> {
        if self.past.is_empty() {
            return Ok(());
        }
        let past = self.past.iter();
        let streams: Vec<i64> = past.clone().map(|past| past.stream).collect();
        let rows: Vec<i64> = past.clone().map(|past| past.row.cast_signed()).collect();
        let versions: Vec<i64> = past
            .clone()
            .map(|past| past.version.cast_signed())
            .collect();
        let next: Vec<i64> = past
            .clone()
            .map(|past| past.next_version.cast_signed())
            .collect();
        let digests: Vec<i64> = past.clone().map(|past| past.digest).collect();
        let dates: Vec<&str> = past.clone().map(|past| past.emitted_at.as_str()).collect();
        let bodies: Vec<Option<&str>> = past.map(|past| past.body.as_deref()).collect();
        tx.execute(
            "INSERT INTO versions (owner_id, stream_id, row_id, version, next_version, digest, emitted_at, data)
             SELECT $1, * FROM unnest($2, $3, $4, $5, $6, $7, $8)",
            &[
                &owner, &streams, &rows, &versions, &next, &digests, &dates, &bodies,
            ],
        )?;
        Ok(())
    }

    fn write_dates(&self, tx: &Tx<'_>, owner: i64) -> Result<()> {
        if self.redated.is_empty() {
            return Ok(());
        }
        let redated = self.redated.iter();
        let streams: Vec<i64> = redated.clone().map(|((stream, _), _)| *stream).collect();
        let rows: Vec<i64> = redated
            .clone()
            .map(|((_, row), _)| row.cast_signed())
            .collect();
        let latest: Vec<i64> = redated.map(|(_, latest)| *latest).collect();
        tx.execute(
            "INSERT INTO redated (owner_id, stream_id, row_id, latest) SELECT $1, * FROM unnest($2, $3, $4)
             ON CONFLICT (stream_id, row_id) DO UPDATE SET latest = greatest(redated.latest, excluded.latest)",
            &[&owner, &streams, &rows, &latest],
        )?;
        Ok(())
    }

    fn write_owner_deletions(&self, tx: &Tx<'_>, owner: i64) -> Result<()> {
        let parts = |places: &BTreeSet<Place>| -> (Vec<i64>, Vec<Vec<u8>>) {
            let places = places.iter();
            places
                .map(|(stream, key)| (*stream, key_digest(key)))
                .unzip()
        };
        if !self.deleted_now.is_empty() {
            let (streams, digests) = parts(&self.deleted_now);
            tx.execute(
                "INSERT INTO deleted_by_owner (owner_id, stream_id, key_digest) SELECT $1, * FROM unnest($2, $3)
                 ON CONFLICT DO NOTHING",
                &[&owner, &streams, &digests],
            )?;
        }
        if !self.revived_now.is_empty() {
            let (streams, digests) = parts(&self.revived_now);
            tx.execute(
                "DELETE FROM deleted_by_owner USING unnest($2, $3) AS revived (stream_id, key_digest)
                 WHERE owner_id = $1 AND deleted_by_owner.stream_id = revived.stream_id
                   AND deleted_by_owner.key_digest = revived.key_digest",
                &[&owner, &streams, &digests],
            )?;
        }
        Ok(())
    }
}
