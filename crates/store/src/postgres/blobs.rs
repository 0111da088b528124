//! Blobs: content-addressed files in a folder that all nodes share, with their bindings in the database.
//!
//! A file gets or loses its name only while the blob's row is locked, so nodes cannot cross each other: a binding never stands
//! without its bytes. What is not bound any more is first marked, and its bytes go before its row does.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use contract::id::BlobId;
use contract::key::RecordKey;

use super::PostgresStore;
use super::pool::Tx;
use crate::blobs::{ARRIVING, Blob, Blobs, Received, receive};
use crate::catalog::StreamRef;
use crate::index::engine::hex;
use crate::sqlite::blobs::{Verified, entries, name_of, remove};
use crate::sqlite::directory::{create_private, sync_folder};
use crate::{Result, StoreError};

/// How many blobs are removed in one look.
const AT_ONCE: i64 = 500;
/// After so long nobody is about to bind bytes that have no row.
const LEFT_AFTER: Duration = Duration::from_hours(24);

impl Blobs for PostgresStore {
    fn put_blob(
        &self,
        stream: &StreamRef,
        key: &RecordKey,
        mime_type: &str,
        bytes: &mut dyn Read,
    ) -> Result<Blob> {
        // Refused before anything is received, and checked again when it is bound.
        self.sources.current(&self.pool)?.stream(stream)?;
        let received = self.store_bytes(bytes)?;
        self.pool.transact(|tx| {
            let stream_id = self.lock_stream(tx, stream)?;
            let blob = self.lock_blob(tx, &received, mime_type)?;
            self.name(received)?;
            tx.execute(
                "INSERT INTO blob_bindings (owner_id, blob_id, stream_id, key) VALUES ($1, $2, $3, $4)
                 ON CONFLICT DO NOTHING",
                &[&self.owner, &blob.id.as_str(), &stream_id, &key.ordering_form()],
            )?;
            Ok(blob)
        })
    }

    fn blob(&self, stream: &StreamRef, id: &BlobId) -> Result<Option<(Blob, Vec<RecordKey>)>> {
        let stream_id = self.sources.current(&self.pool)?.stream(stream)?.id;
        let rows = self.pool.read(|tx| {
            tx.query(
                "SELECT key, size_bytes, mime_type FROM blob_bindings b
                 JOIN blobs ON blobs.owner_id = b.owner_id AND blobs.id = b.blob_id
                 WHERE b.owner_id = $1 AND b.blob_id = $2 AND b.stream_id = $3 ORDER BY key",
                &[&self.owner, &id.as_str(), &stream_id],
            )
        })?;
        let Some(first) = rows.first() else {
            return Ok(None);
        };
        let blob = Blob {
            id: id.clone(),
            size_bytes: first.get::<i64>(1)?.cast_unsigned(),
            mime_type: first.get(2)?,
        };
        let keys = rows
            .iter()
            .map(|row| Ok(RecordKey::from_ordering_form(row.get(0)?)))
            .collect::<Result<_>>()?;
        Ok(Some((blob, keys)))
    }

    fn open_blob(&self, id: &BlobId) -> Result<Box<dyn Read + Send>> {
        let (size_bytes, file) = self.open_unchecked(id)?;
        let path = self.blob_path(id);
        Ok(Box::new(Verified::new(file, &path, id, size_bytes)))
    }
}

impl PostgresStore {
    /// The folder of this owner's blobs.
    fn blob_folder(&self) -> PathBuf {
        self.options.blobs.join(hex(self.store_id))
    }

    /// Two levels of folders keep each of them small.
    fn blob_path(&self, id: &BlobId) -> PathBuf {
        let (folder, name) = id.hex().split_at(2);
        self.blob_folder().join(folder).join(name)
    }

    /// A blob's size and its bytes as they are, damaged or not.
    pub(super) fn open_unchecked(&self, id: &BlobId) -> Result<(u64, File)> {
        let path = self.blob_path(id);
        let file = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(StoreError::UnknownBlob(id.to_string()));
            }
            opened => opened.map_err(StoreError::at(&path))?,
        };
        let size_bytes = file.metadata().map_err(StoreError::at(&path))?.len();
        Ok((size_bytes, file))
    }

    /// Stores bytes that are not bound yet. What is never bound is swept.
    pub(super) fn store_bytes(&self, bytes: &mut dyn Read) -> Result<Received> {
        let received = receive(&self.blob_folder(), bytes)?;
        let file = received.file.as_file();
        file.sync_all()
            .map_err(StoreError::at(received.file.path()))?;
        Ok(received)
    }

    /// The id of a stream, which cannot be removed until the transaction ends.
    fn lock_stream(&self, tx: &Tx<'_>, stream: &StreamRef) -> Result<i64> {
        let found = tx.query_opt(
            "SELECT s.id FROM streams s JOIN connections c ON c.owner_id = s.owner_id AND c.id = s.connection_id
             WHERE s.owner_id = $1 AND s.connection_id = $2 AND s.name = $3 FOR SHARE OF c",
            &[&self.owner, &stream.connection.as_str(), &stream.stream.as_str()],
        )?;
        match found {
            Some(row) => row.get(0),
            None => Err(StoreError::UnknownConnection(stream.connection.clone())),
        }
    }

    /// Makes sure of the blob's row and locks it. The media type is the one it came with first.
    fn lock_blob(&self, tx: &Tx<'_>, received: &Received, mime_type: &str) -> Result<Blob> {
        let row = tx.query_one(
            "INSERT INTO blobs (owner_id, id, size_bytes, mime_type) VALUES ($1, $2, $3, $4)
             ON CONFLICT (owner_id, id) DO UPDATE SET state = 'kept', size_bytes = $3,
                 mime_type = CASE blobs.state WHEN 'kept' THEN blobs.mime_type ELSE $4 END RETURNING mime_type",
            &[
                &self.owner,
                &received.id.as_str(),
                &received.size_bytes.cast_signed(),
                &mime_type,
            ],
        )?;
        Ok(Blob {
            id: received.id.clone(),
            size_bytes: received.size_bytes,
            mime_type: row.get(0)?,
        })
    }

    /// Gives received bytes their name, unless a file has it that is whole. Only while the blob's row is locked.
    pub(super) fn name(&self, received: Received) -> Result<()> {
        let path = self.blob_path(&received.id);
        if let Ok(file) = File::open(&path)
            && file
                .metadata()
                .is_ok_and(|found| found.len() == received.size_bytes)
        {
            let mut bytes = Verified::new(file, &path, &received.id, received.size_bytes);
            if io::copy(&mut bytes, &mut io::sink()).is_ok() {
                return Ok(());
            }
        }
        let root = self.blob_folder();
        let folder = path.parent().unwrap_or(&root);
        create_private(folder)?;
        received
            .file
            .persist(&path)
            .map_err(|error| StoreError::io(&path, error.error))?;
        sync_folder(folder)?;
        sync_folder(&root)
    }

    /// Marks blobs that nothing refers to any more, and counts them.
    pub(super) fn forget_orphans(&self, tx: &Tx<'_>) -> Result<u64> {
        tx.execute(
            "UPDATE blobs SET state = 'deleting' WHERE owner_id = $1 AND state = 'kept' AND NOT EXISTS (
                 SELECT 1 FROM blob_bindings b WHERE b.owner_id = blobs.owner_id AND b.blob_id = blobs.id
             )",
            &[&self.owner],
        )
    }

    /// Removes the bytes and then the rows of blobs that are marked. One whose bytes came again meanwhile stays.
    pub(super) fn sweep_blobs(&self) -> Result<()> {
        self.mark_left_files()?;
        loop {
            let marked = self.pool.read(|tx| {
                let sql =
                    "SELECT id FROM blobs WHERE owner_id = $1 AND state = 'deleting' LIMIT $2";
                tx.query(sql, &[&self.owner, &AT_ONCE])
            })?;
            if marked.is_empty() {
                return Ok(());
            }
            for row in &marked {
                let id: BlobId = row.parse(0)?;
                self.pool.transact(|tx| self.sweep_blob(tx, &id))?;
            }
        }
    }

    /// Finds what a crash left: bytes without a name go, and those without a row get one that is marked, so that they go under
    /// its lock. Whatever is younger than a day may be about to be bound.
    fn mark_left_files(&self) -> Result<()> {
        let root = self.blob_folder();
        for folder in entries(&root)? {
            let start = name_of(&folder);
            if start.starts_with(ARRIVING) {
                if is_left(&folder) {
                    remove(&folder)?;
                }
                continue;
            }
            let files = if folder.is_dir() {
                entries(&folder)?
            } else {
                Vec::new()
            };
            let ids: Vec<String> = files
                .iter()
                .filter(|file| is_left(file))
                // A file whose name is not ours is left alone.
                .filter_map(|file| BlobId::from_hex(&format!("{start}{}", name_of(file))).ok())
                .map(|id| id.to_string())
                .collect();
            if !ids.is_empty() {
                self.pool.transact(|tx| {
                    tx.execute(
                        "INSERT INTO blobs (owner_id, id, size_bytes, mime_type, state)
                         SELECT $1, id, 0, '', 'deleting' FROM unnest($2::text[]) AS id ON CONFLICT DO NOTHING",
                        &[&self.owner, &ids],
                    )
                })?;
            }
        }
        Ok(())
    }

    fn sweep_blob(&self, tx: &Tx<'_>, id: &BlobId) -> Result<()> {
        let locked = tx.query(
            "SELECT 1 FROM blobs WHERE owner_id = $1 AND id = $2 AND state = 'deleting' FOR UPDATE",
            &[&self.owner, &id.as_str()],
        )?;
        if locked.is_empty() {
            return Ok(());
        }
        remove(&self.blob_path(id))?;
        tx.execute(
            "DELETE FROM blobs WHERE owner_id = $1 AND id = $2",
            &[&self.owner, &id.as_str()],
        )
        .map(drop)
    }
}

/// Whether a file has not been written for long, by the clock of this machine.
fn is_left(path: &Path) -> bool {
    let modified = path.metadata().and_then(|found| found.modified());
    let age = modified.ok().and_then(|modified| modified.elapsed().ok());
    age.is_some_and(|age| age >= LEFT_AFTER)
}
