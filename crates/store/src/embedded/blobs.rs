//! Blobs as content-addressed files, written atomically, with their bindings in the database.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;

use contract::id::BlobId;
use contract::key::RecordKey;
use rusqlite::{OptionalExtension, params};
use sha2::{Digest, Sha256};

use super::EmbeddedStore;
use super::directory::{BLOBS, create_private, sync_folder};
use crate::blobs::{Blob, Blobs};
use crate::catalog::StreamRef;
use crate::{Result, StoreError};

impl Blobs for EmbeddedStore {
    fn put_blob(
        &self,
        (stream, key): (&StreamRef, &RecordKey),
        mime_type: &str,
        bytes: &mut dyn Read,
    ) -> Result<Blob> {
        let stream_id = self.sources().stream(stream)?.id;
        let (id, size_bytes) = self.store_file(bytes)?;
        self.database.transact(|transaction| {
            let bind = || -> rusqlite::Result<String> {
                transaction.execute(
                    "INSERT OR IGNORE INTO blobs VALUES (?1, ?2, ?3)",
                    params![id.as_str(), size_bytes, mime_type],
                )?;
                transaction.execute(
                    "INSERT OR IGNORE INTO blob_bindings VALUES (?1, ?2, ?3)",
                    params![id.as_str(), stream_id, key.ordering_form()],
                )?;
                transaction.query_row(
                    "SELECT mime_type FROM blobs WHERE id = ?1",
                    [id.as_str()],
                    |row| row.get(0),
                )
            };
            let mime_type = bind().map_err(self.database.failed())?;
            Ok(Blob {
                id,
                size_bytes,
                mime_type,
            })
        })
    }

    fn blob(&self, stream: &StreamRef, id: &BlobId) -> Result<Option<(Blob, Vec<RecordKey>)>> {
        let stream_id = self.sources().stream(stream)?.id;
        self.database.read(|connection| {
            let keys: Vec<RecordKey> = connection
                .prepare_cached("SELECT key FROM blob_bindings WHERE blob_id = ?1 AND stream_id = ?2 ORDER BY key")?
                .query_map(params![id.as_str(), stream_id], |row| {
                    let form: String = row.get(0)?;
                    Ok(RecordKey::from_ordering_form(&form))
                })?
                .collect::<rusqlite::Result<_>>()?;
            if keys.is_empty() {
                return Ok(None);
            }
            let blob = connection
                .prepare_cached("SELECT size_bytes, mime_type FROM blobs WHERE id = ?1")?
                .query_row([id.as_str()], |row| {
                    Ok(Blob {
                        id: id.clone(),
                        size_bytes: row.get(0)?,
                        mime_type: row.get(1)?,
                    })
                })
                .optional()?;
            Ok(blob.map(|blob| (blob, keys)))
        })
    }

    fn open_blob(&self, id: &BlobId) -> Result<File> {
        let path = self.blob_path(id);
        match File::open(&path) {
            Ok(file) => Ok(file),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(StoreError::UnknownBlob(id.to_string()))
            }
            Err(error) => Err(StoreError::io(path, error)),
        }
    }
}

impl EmbeddedStore {
    /// Two levels of folders keep each of them small.
    fn blob_path(&self, id: &BlobId) -> PathBuf {
        let (folder, name) = id.hex().split_at(2);
        self.directory.join(BLOBS).join(folder).join(name)
    }

    /// Copies the bytes to their place; a crash leaves the whole file there or nothing.
    fn store_file(&self, bytes: &mut dyn Read) -> Result<(BlobId, u64)> {
        let root = self.directory.join(BLOBS);
        create_private(&root)?;
        let mut file = tempfile::NamedTempFile::new_in(&root).map_err(StoreError::at(&root))?;
        let mut hasher = Sha256::new();
        let mut size = 0;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = match bytes.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(StoreError::io(&root, error)),
            };
            let chunk = buffer.get(..read).unwrap_or_default();
            hasher.update(chunk);
            file.write_all(chunk).map_err(StoreError::at(&root))?;
            size += read as u64;
        }
        let id = BlobId::of_sha256(hasher.finalize().into());
        let path = self.blob_path(&id);
        if path.exists() {
            return Ok((id, size));
        }
        let folder = path.parent().unwrap_or(&root);
        create_private(folder)?;
        file.as_file().sync_all().map_err(StoreError::at(&path))?;
        file.persist(&path)
            .map_err(|error| StoreError::io(&path, error.error))?;
        sync_folder(folder)?;
        sync_folder(&root)?;
        Ok((id, size))
    }

    pub(super) fn remove_blob_file(&self, id: &BlobId) -> Result<()> {
        let path = self.blob_path(id);
        match fs::remove_file(&path) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(StoreError::io(path, error)),
        }
    }
}
