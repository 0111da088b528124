//! Blobs: content-addressed files in a folder that all nodes share, with their bindings in the database.
//!
//! A file gets or loses its name only while the blob's row is locked, so nodes cannot cross each other: a binding never stands
//! without its bytes. What is not bound any more is first marked, and its bytes go before its row does.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write as _};
use std::path::PathBuf;

use contract::id::BlobId;
use contract::key::RecordKey;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use super::PostgresStore;
use super::pool::Tx;
use crate::blobs::{Blob, Blobs};
use crate::catalog::StreamRef;
use crate::sqlite::blobs::{Verified, filled};
use crate::sqlite::directory::{create_private, sync_folder};
use crate::{Result, StoreError};

/// The prefix of a file whose bytes are still being received.
const ARRIVING: &str = "arriving-";
/// How many blobs are removed in one look.
const AT_ONCE: i64 = 500;

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
        let received = self.receive(bytes)?;
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
        let path = self.blob_path(id);
        let file = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(StoreError::UnknownBlob(id.to_string()));
            }
            opened => opened.map_err(StoreError::at(&path))?,
        };
        let size_bytes = file.metadata().map_err(StoreError::at(&path))?.len();
        Ok(Box::new(Verified::new(file, &path, id, size_bytes)))
    }
}

/// Complete and durable bytes under a temporary name.
struct Received {
    file: NamedTempFile,
    id: BlobId,
    size_bytes: u64,
}

impl PostgresStore {
    /// The folder of this owner's blobs.
    fn blob_folder(&self) -> PathBuf {
        let name = self.store_id.iter().map(|byte| format!("{byte:02x}"));
        self.options.blobs.join(name.collect::<String>())
    }

    /// Two levels of folders keep each of them small.
    fn blob_path(&self, id: &BlobId) -> PathBuf {
        let (folder, name) = id.hex().split_at(2);
        self.blob_folder().join(folder).join(name)
    }

    fn receive(&self, bytes: &mut dyn Read) -> Result<Received> {
        let root = self.blob_folder();
        create_private(&root)?;
        let mut file = tempfile::Builder::new()
            .prefix(ARRIVING)
            .tempfile_in(&root)
            .map_err(StoreError::at(&root))?;
        let mut hasher = Sha256::new();
        let mut size_bytes = 0;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = match bytes.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(StoreError::io(&root, error)),
            };
            let chunk = filled(&buffer, read).map_err(StoreError::at(&root))?;
            hasher.update(chunk);
            file.write_all(chunk).map_err(StoreError::at(&root))?;
            size_bytes += read as u64;
        }
        file.as_file().sync_all().map_err(StoreError::at(&root))?;
        Ok(Received {
            file,
            id: BlobId::from_sha256(hasher.finalize().into()),
            size_bytes,
        })
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
             ON CONFLICT (owner_id, id) DO UPDATE SET state = 'kept' RETURNING mime_type",
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
    fn name(&self, received: Received) -> Result<()> {
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

    fn sweep_blob(&self, tx: &Tx<'_>, id: &BlobId) -> Result<()> {
        let locked = tx.query(
            "SELECT 1 FROM blobs WHERE owner_id = $1 AND id = $2 AND state = 'deleting' FOR UPDATE",
            &[&self.owner, &id.as_str()],
        )?;
        if locked.is_empty() {
            return Ok(());
        }
        let path = self.blob_path(id);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(StoreError::io(path, error));
            }
            _ => {}
        }
        tx.execute(
            "DELETE FROM blobs WHERE owner_id = $1 AND id = $2",
            &[&self.owner, &id.as_str()],
        )
        .map(drop)
    }
}
