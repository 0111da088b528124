//! The backup of a data directory: a copy of its database, and what lies beside that.

use std::io::Write;
use std::path::Path;

use contract::id::BlobId;
use rusqlite::{Connection, OpenFlags};

use super::EmbeddedStore;
use super::blobs::is_bound;
use super::database::{claim, connect, failed};
use super::directory::{COLLECT, DATABASE, create_private_file, prepare_copy};
use super::inspect::unreadable;
use super::{commit_mark, migrations};
use crate::archive::Archive;
use crate::{Backup, Result, StoreError};

impl Backup for EmbeddedStore {
    fn missing_blobs(&self) -> Result<Vec<BlobId>> {
        let ids = self.database.read(blobs_in)?;
        let is_missing = |id: &BlobId| self.blob_file(id).is_err();
        let missing: Vec<BlobId> = ids.into_iter().filter(is_missing).collect();
        // A blob that was erased since it was listed is not missing.
        self.database.read(|connection| {
            let mut missed = Vec::new();
            for id in missing {
                if is_bound(connection, &id)? {
                    missed.push(id);
                }
            }
            Ok(missed)
        })
    }

    fn backup_beside(
        &self,
        out: &mut dyn Write,
        missing: &[BlobId],
        folder: Option<&Path>,
    ) -> Result<Vec<String>> {
        let key = self.sealing_key()?;
        let folder = prepare_copy(self.path(), folder, self.room_to_copy()?)?;
        let copy = folder.path().join(DATABASE);
        // What waits is part of it, revocations above all; it may get into the database before the copy is made.
        let waiting = self.waiting();
        self.database.read(|connection| {
            connection.execute("VACUUM INTO ?1", [copy.to_string_lossy().as_ref()])
        })?;
        let mut connection = Connection::open(&copy).map_err(failed(&copy))?;
        self.settle_into(&mut connection, &waiting)?;
        commit_mark::uncount(&connection).map_err(failed(&copy))?;
        let mut damaged = unreadable(&connection).map_err(failed(&copy))?;
        drop(connection);
        let mut archive = Archive::begin(out, &copy, key)?;
        archive.append_collected(&self.directory.join(COLLECT))?;
        let mut ids = blobs_of(&copy).map_err(failed(&copy))?;
        ids.retain(|id| !missing.contains(id));
        for id in ids {
            // One that was erased since is erased here too.
            let (path, file) = match self.blob_file(&id) {
                Err(StoreError::UnknownBlob(_)) if !self.is_bound(&id)? => continue,
                opened => opened?,
            };
            let size_bytes = file.metadata().map_err(StoreError::at(&path))?.len();
            if !archive.append_blob(&id, size_bytes, file)? {
                damaged.push(damaged_blob(&id));
            }
        }
        archive.finish()?;
        Ok(damaged)
    }
}

impl EmbeddedStore {
    fn room_to_copy(&self) -> Result<u64> {
        self.database.read(|connection| {
            connection.query_row(
                "SELECT (page_count - freelist_count) * page_size
                 FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
                [],
                |row| row.get(0),
            )
        })
    }

    fn is_bound(&self, id: &BlobId) -> Result<bool> {
        self.database.read(|connection| is_bound(connection, id))
    }
}

/// Makes a database of the newest format, to be filled and put into its place later: until then it need not be durable.
pub(crate) fn new_database(path: &Path) -> Result<Connection> {
    create_private_file(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let mut connection = connect(path, flags, None).map_err(failed(path))?;
    claim(&connection, path)?;
    connection
        .execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")
        .map_err(failed(path))?;
    migrations::run(&mut connection, path)?;
    Ok(connection)
}

fn blobs_of(copy: &Path) -> rusqlite::Result<Vec<BlobId>> {
    blobs_in(&Connection::open_with_flags(
        copy,
        OpenFlags::SQLITE_OPEN_READ_ONLY,
    )?)
}

pub(crate) fn blobs_in(connection: &Connection) -> rusqlite::Result<Vec<BlobId>> {
    let mut statement = connection.prepare("SELECT id FROM blobs ORDER BY id")?;
    let ids = statement.query_map([], |row| row.get::<_, String>(0))?;
    ids.map(|id| {
        BlobId::parse(id?).map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(
                0,
                rusqlite::types::Type::Text,
                Box::new(error),
            )
        })
    })
    .collect()
}

/// How a blob is told that is saved although it is damaged.
pub(crate) fn damaged_blob(id: &BlobId) -> String {
    format!("blob {id}: its bytes are not those that were stored")
}
