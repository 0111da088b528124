//! Compares what is stored with its digests, counts and the hashes that name blobs.

use std::io;

use contract::id::BlobId;
use contract::key::RecordKey;
use contract::time::Instant;

use super::PostgresStore;
use crate::inspection::{Damage, Depth, Inspect, Inspection, Rollback, SharedTraces, TOLD};
use crate::record_digest::Content;
use crate::{Blobs as _, Result, StoreError};

/// Rows read at a time.
const CHUNK: i64 = 1_000;

impl Inspect for PostgresStore {
    /// A node notices rewritten history by itself, and derives its index anew.
    fn rolled_back(&self) -> Option<Rollback> {
        None
    }

    fn accept_rollback(&self) -> Result<Option<Rollback>> {
        Ok(None)
    }

    fn inspect(&self, depth: Depth) -> Result<Inspection> {
        let thorough = depth == Depth::Thorough;
        let counted = self.pool.query_one(
            "SELECT (SELECT coalesce(sum(live_records), 0)::bigint FROM streams WHERE owner_id = $1),
                    (SELECT count(*) FROM blobs WHERE owner_id = $1 AND state = 'kept'),
                    erasures_finished < erasures_begun,
                    (SELECT count(*) FROM blobs WHERE owner_id = $1 AND state = 'deleting'),
                    (SELECT count(*) FROM snapshots WHERE owner_id = $1 AND erased_to < erasures_begun),
                    (SELECT max(erased_at) FROM erased_from WHERE owner_id = $1)
             FROM owners WHERE id = $1",
            &[&self.owner],
        )?;
        let damaged_records = if thorough {
            self.damaged_records()?
        } else {
            Vec::new()
        };
        let damaged_blobs = if thorough {
            self.damaged_blobs()?
        } else {
            Vec::new()
        };
        let writable = self.transact_locked(|tx, _| {
            let sql = "UPDATE owners SET latest_at = latest_at WHERE id = $1";
            tx.execute(sql, &[&self.owner])
        });
        Ok(Inspection {
            records: counted.get::<i64>(0)?.cast_unsigned(),
            blobs: counted.get::<i64>(1)?.cast_unsigned(),
            damaged_index: if damaged_records.is_empty() {
                self.index.inspect(thorough)?
            } else {
                Vec::new()
            },
            damaged_records,
            damaged_blobs,
            traces_left: counted.get(2)?,
            traces_on: self.nodes_holding_erased()?,
            traces_in: SharedTraces {
                blobs: counted.get::<i64>(3)?.cast_unsigned(),
                copies: counted.get::<i64>(4)?.cast_unsigned(),
            },
            traces_in_tables: self.tables_holding_erased()?,
            erased_at: counted.get::<Option<i64>>(5)?.map(Instant),
            unwritable: writable.err().map(|error| error.to_string()),
            ..Inspection::default()
        })
    }
}

impl PostgresStore {
    /// The tables that were not written anew since something was erased from them.
    fn tables_holding_erased(&self) -> Result<Vec<String>> {
        let sql = "SELECT name FROM erased_from
             WHERE owner_id = $1 AND file = pg_relation_filenode(name::regclass)::bigint ORDER BY name";
        let rows = self.pool.query(sql, &[&self.owner])?;
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// Reads every record and compares it with its digest.
    fn damaged_records(&self) -> Result<Vec<Damage>> {
        let mut found = Vec::new();
        for entry in self.sources.last().streams() {
            let mut after = String::new();
            loop {
                let rows = self.pool.query(
                    "SELECT key, version, emitted_at, data, digest FROM records
                         WHERE owner_id = $1 AND stream_id = $2 AND key > $3 ORDER BY key LIMIT $4",
                    &[&self.owner, &entry.id, &after, &CHUNK],
                )?;
                for row in &rows {
                    let key: &str = row.get(0)?;
                    let content = Content {
                        stream: entry.id,
                        key,
                        version: row.get::<i64>(1)?.cast_unsigned(),
                        emitted_at: row.get(2)?,
                        data: row.get(3)?,
                    };
                    if !content.is_written_with(row.get(4)?) {
                        let (stream, key) = (&entry.stream, RecordKey::from_ordering_form(key));
                        found.push(Damage {
                            path: self.place().into(),
                            detail: format!(
                                "{}/{}:{key} is not what was written",
                                stream.connection, stream.stream
                            ),
                        });
                    }
                }
                if found.len() >= TOLD {
                    found.truncate(TOLD);
                    return Ok(found);
                }
                match rows.last() {
                    Some(last) => after = last.get(0)?,
                    None => break,
                }
            }
        }
        Ok(found)
    }

    /// Reads every blob and compares it with the hash that names it.
    fn damaged_blobs(&self) -> Result<Vec<Damage>> {
        let rows = self.pool.read(|tx| {
            let sql = "SELECT id FROM blobs WHERE owner_id = $1 AND state = 'kept' ORDER BY id";
            tx.query(sql, &[&self.owner])
        })?;
        let mut found = Vec::new();
        for row in &rows {
            let id: BlobId = row.parse(0)?;
            let read = self.open_blob(&id).and_then(|mut bytes| {
                let copied = io::copy(&mut bytes, &mut io::sink());
                copied.map_err(|error| StoreError::io(self.objects.place(""), error))
            });
            if let Err(error) = read {
                found.push(Damage {
                    path: self.objects.place(id.as_str()),
                    detail: error.to_string(),
                });
            }
            if found.len() >= TOLD {
                break;
            }
        }
        Ok(found)
    }
}
