//! Backups: the same file that a data directory is backed up to, so it is restored like one. `pdpp move` brings what was restored
//! back into a database.

use std::io::Write;
use std::path::Path;

use contract::id::BlobId;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::PostgresStore;
use super::pool::{Row, Tx};
use super::sort::sort_value;
use crate::archive::Archive;
use crate::disclosure_log::Head;
use crate::index::sources::Sources;
use crate::sqlite::backup::{blobs_in, damaged_blob, new_database};
use crate::sqlite::database::failed;
use crate::sqlite::directory::{COLLECT, DATABASE, prepare_copy};
use crate::sqlite::grants::note_ends;
use crate::sqlite::inspect::unreadable;
use crate::sqlite::{set_newest_version, walk};
use crate::tables::{self, Kind, Table};
use crate::{Backup, Result, StoreError, stop};

impl Backup for PostgresStore {
    fn missing_blobs(&self) -> Result<Vec<BlobId>> {
        let rows = self.pool.read(|tx| {
            let sql = "SELECT id FROM blobs WHERE owner_id = $1 AND state = 'kept' ORDER BY id";
            tx.query(sql, &[&self.owner])
        })?;
        let mut missing = Vec::new();
        for row in &rows {
            let id: BlobId = row.parse(0)?;
            if self.open_unchecked(&id).is_err() {
                missing.push(id);
            }
        }
        Ok(missing)
    }

    fn backup_beside(
        &self,
        out: &mut dyn Write,
        missing: &[BlobId],
        folder: Option<&Path>,
    ) -> Result<Vec<String>> {
        // How large it will be is not known before it is there; a disk that becomes full breaks it off.
        let folder = prepare_copy(&self.options.data_dir, folder, 0)?;
        let path = folder.path().join(DATABASE);
        let copy = self.copy_into(&path)?;
        let mut damaged = unreadable(&copy).map_err(failed(&path))?;
        let ids = blobs_in(&copy).map_err(failed(&path))?;
        drop(copy);
        let mut archive = Archive::begin(out, &path, self.sealing_key())?;
        archive.append_collected(&self.options.data_dir.join(COLLECT))?;
        for id in ids.iter().filter(|id| !missing.contains(id)) {
            let (size_bytes, bytes) = match self.open_unchecked(id) {
                // One that was erased since is erased here too.
                Err(StoreError::UnknownBlob(_)) if !self.is_kept(id)? => continue,
                opened => opened?,
            };
            if !archive.append_blob(id, size_bytes, bytes)? {
                damaged.push(damaged_blob(id));
            }
        }
        archive.finish()?;
        Ok(damaged)
    }
}

impl PostgresStore {
    fn is_kept(&self, id: &BlobId) -> Result<bool> {
        let rows = self.pool.read(|tx| {
            let sql = "SELECT 1 FROM blobs WHERE owner_id = $1 AND id = $2 AND state = 'kept'";
            tx.query(sql, &[&self.owner, &id.as_str()])
        })?;
        Ok(!rows.is_empty())
    }

    /// Writes one state of everything this owner has into a database of a data directory.
    fn copy_into(&self, path: &Path) -> Result<Connection> {
        let mut connection = new_database(path)?;
        let copy = connection.transaction().map_err(failed(path))?;
        self.pool.snapshot(|tx| {
            let sql = "SELECT version, catalog FROM owners WHERE id = $1";
            let owner = tx.query_one(sql, &[&self.owner])?;
            let catalog = owner.get::<i64>(1)?.cast_unsigned();
            let sources = self.sources.at(tx, self.place(), catalog)?;
            for table in tables::all() {
                self.copy_table(tx, table, &sources, &mut |row| {
                    insert(&copy, table, row).map_err(failed(path))
                })?;
            }
            let ends = self.ends(tx, "")?;
            let version = owner.get::<i64>(0)?.cast_unsigned();
            let note = || -> rusqlite::Result<()> {
                copy.execute(
                    "INSERT INTO meta VALUES ('store_id', ?1)",
                    [self.store_id.as_slice()],
                )?;
                set_newest_version(&copy, version)?;
                note_ends(&copy, ends.last.unwrap_or(Head::EMPTY), ends.dropped)
            };
            note().map_err(failed(path))
        })?;
        copy.commit().map_err(failed(path))?;
        Ok(connection)
    }

    /// Hands over the rows of a table.
    fn copy_table(
        &self,
        tx: &Tx<'_>,
        table: &Table,
        sources: &Sources,
        each: &mut dyn FnMut(Vec<Value>) -> Result<()>,
    ) -> Result<()> {
        let kept = if table.postgres == "blobs" {
            "AND state = 'kept'"
        } else {
            ""
        };
        let sql = format!(
            "SELECT {} FROM {} WHERE owner_id = $1 {kept} ORDER BY {}",
            table.names(),
            table.postgres,
            table.order
        );
        tx.each(&sql, &[&self.owner], &mut |row| {
            stop::check()?;
            each(values(row, table, sources)?)?;
            Ok(true)
        })
        .map(drop)
    }
}

/// A row as the file has it.
fn values(row: &Row, table: &Table, sources: &Sources) -> Result<Vec<Value>> {
    let mut values = Vec::with_capacity(table.columns.len());
    for (at, (_, kind)) in table.columns.iter().enumerate() {
        values.push(match kind {
            Kind::Integer | Kind::Stream => row.get::<Option<i64>>(at)?.into(),
            Kind::Text => row.get::<Option<String>>(at)?.into(),
            Kind::Bytes => row.get::<Option<Vec<u8>>>(at)?.into(),
            Kind::Sort => {
                // The stream is the first column of a record.
                let entry = sources.by_id(row.get(0)?);
                let cursor = entry.and_then(|entry| entry.layout.cursor.as_ref());
                let cursor = cursor.map(|(_, kind)| *kind);
                walk::sort_value(sort_value(row.get(at)?, cursor))
            }
        });
    }
    Ok(values)
}

fn insert(copy: &Connection, table: &Table, row: Vec<Value>) -> rusqlite::Result<()> {
    let marks = vec!["?"; row.len()].join(", ");
    let sql = format!(
        "INSERT INTO {} ({}) VALUES ({marks})",
        table.sqlite,
        table.names()
    );
    copy.prepare_cached(&sql)?
        .execute(params_from_iter(row))
        .map(drop)
}
