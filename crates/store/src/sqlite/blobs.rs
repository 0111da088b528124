//! Blobs as content-addressed files, with their bindings in the database.
//!
//! A file may be there without a binding for a moment, but never a binding without a file. Bytes are received under a
//! name of their own; the transaction that binds them also names the file after its content, beside the folders of
//! settled ones, and once that holds it is put into its folder. Files only ever appear under their name, and only ever
//! disappear, while nobody else can write to the database. So what a crash leaves lies beside the folders, where the next
//! start finds it at a glance.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use contract::id::BlobId;
use contract::key::RecordKey;
use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};

use super::EmbeddedStore;
use super::directory::{BLOBS, create_private, sync_folder};
use crate::blobs::{ARRIVING, Blob, Blobs, Received, filled, receive};
use crate::catalog::StreamRef;
use crate::sqlite::tx_error::TxResult;
use crate::{Result, StoreError};

/// The prefix of a file that is complete and not in its folder yet; its hash follows.
const ARRIVED: &str = "arrived-";

impl Blobs for EmbeddedStore {
    fn put_blob(
        &self,
        stream: &StreamRef,
        key: &RecordKey,
        mime_type: &str,
        bytes: &mut dyn Read,
    ) -> Result<Blob> {
        // Refused before anything is received, and checked again when it is bound.
        self.sources().stream(stream)?;
        let received = receive(&self.directory.join(BLOBS), bytes)?;
        // The same bytes may lie in their folder already; then these need not last.
        let is_known = self.is_intact(&received.id, received.size_bytes);
        if !is_known {
            let file = received.file.as_file();
            file.sync_all()
                .map_err(StoreError::at(received.file.path()))?;
        }
        let (id, size_bytes) = (received.id.clone(), received.size_bytes);
        self.database.transact_then(
            |transaction| {
                let stream_id = self.sources().stream(stream)?.id;
                let mut blob = Blob {
                    id: id.clone(),
                    size_bytes,
                    mime_type: mime_type.to_owned(),
                };
                blob.mime_type = bind(transaction, &blob, stream_id, key)?;
                self.name(received, is_known)?;
                Ok(blob)
            },
            || {
                // It can be read where it is, and the next start tries again.
                let _ = self.settle(&id);
                Ok(())
            },
        )
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

    fn open_blob(&self, id: &BlobId) -> Result<Box<dyn Read + Send>> {
        let (path, file) = self.blob_file(id)?;
        let size_bytes = file.metadata().map_err(StoreError::at(&path))?.len();
        Ok(Box::new(Verified::new(file, &path, id, size_bytes)))
    }
}

/// Reads bytes and checks the hash that names them.
pub(crate) struct Verified<R> {
    bytes: R,
    path: PathBuf,
    id: BlobId,
    /// The hash of the bytes read so far.
    hasher: Sha256,
    left: u64,
}

impl<R: Read> Verified<R> {
    pub(crate) fn new(bytes: R, path: &Path, id: &BlobId, size_bytes: u64) -> Self {
        Self {
            bytes,
            path: path.to_owned(),
            id: id.clone(),
            hasher: Sha256::new(),
            left: size_bytes,
        }
    }
}

impl<R: Read> Read for Verified<R> {
    /// The last bytes are returned only if the whole hash is right.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.bytes.read(buffer)?;
        self.hasher.update(filled(buffer, read)?);
        self.left = self.left.saturating_sub(read as u64);
        let at_end = self.left == 0 || (read == 0 && !buffer.is_empty());
        let digest = || self.hasher.clone().finalize().into();
        if at_end && BlobId::from_sha256(digest()) != self.id {
            let damaged = StoreError::BlobDamaged {
                path: self.path.clone(),
            };
            return Err(io::Error::new(ErrorKind::InvalidData, damaged));
        }
        Ok(read)
    }
}

impl EmbeddedStore {
    pub(super) fn blob_file(&self, id: &BlobId) -> Result<(PathBuf, File)> {
        // It may be moved into its folder between the two attempts.
        for path in [self.settled(id), self.arrived(id), self.settled(id)] {
            match File::open(&path) {
                Ok(file) => return Ok((path, file)),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(StoreError::io(path, error)),
            }
        }
        Err(StoreError::UnknownBlob(id.to_string()))
    }

    /// Where a blob lies for good. Two levels of folders keep each of them small.
    pub(super) fn settled(&self, id: &BlobId) -> PathBuf {
        let (folder, name) = id.hex().split_at(2);
        self.directory.join(BLOBS).join(folder).join(name)
    }

    /// Where a blob lies until its binding holds.
    fn arrived(&self, id: &BlobId) -> PathBuf {
        let name = format!("{ARRIVED}{}", id.hex());
        self.directory.join(BLOBS).join(name)
    }

    /// Whether the file in a blob's folder has the bytes its name says. A damaged one is replaced when the right bytes come
    /// again.
    fn is_intact(&self, id: &BlobId, size_bytes: u64) -> bool {
        let path = self.settled(id);
        let Ok(file) = File::open(&path) else {
            return false;
        };
        let mut bytes = Verified::new(file, &path, id, size_bytes);
        is_whole(&path, size_bytes) && io::copy(&mut bytes, &mut io::sink()).is_ok()
    }

    /// Gives received bytes their name, durably, unless a file has it already. Only the one writer may call this.
    fn name(&self, received: Received, is_known: bool) -> Result<()> {
        if is_known && is_whole(&self.settled(&received.id), received.size_bytes) {
            return Ok(());
        }
        let path = self.arrived(&received.id);
        // A file of that name may have been removed since the bytes were received.
        let file = received.file;
        file.as_file().sync_all().map_err(StoreError::at(&path))?;
        file.persist(&path)
            .map_err(|error| StoreError::io(&path, error.error))?;
        sync_folder(&self.directory.join(BLOBS))
    }

    /// Puts a file with a name into its folder, if it is not there yet. Only the one writer may call this.
    fn settle(&self, id: &BlobId) -> Result<()> {
        let (from, to) = (self.arrived(id), self.settled(id));
        if !from.exists() {
            return Ok(());
        }
        let root = self.directory.join(BLOBS);
        let folder = to.parent().unwrap_or(&root);
        create_private(folder)?;
        fs::rename(&from, &to).map_err(StoreError::at(&to))?;
        sync_folder(folder)?;
        sync_folder(&root)
    }

    /// Moves or removes the files that a crash left beside the folders. No other process has the directory open.
    pub(super) fn settle_arrived(&self) -> Result<()> {
        let root = self.directory.join(BLOBS);
        for path in entries(&root)? {
            let name = name_of(&path);
            if name.starts_with(ARRIVING) {
                remove(&path)?;
            } else if let Some(Ok(id)) = name.strip_prefix(ARRIVED).map(BlobId::from_hex) {
                if self.database.read(|connection| is_bound(connection, &id))? {
                    self.settle(&id)?;
                } else {
                    remove(&path)?;
                }
            }
        }
        Ok(())
    }

    /// Removes every file that no record is bound to.
    pub(super) fn sweep_blobs(&self) -> Result<()> {
        let root = self.directory.join(BLOBS);
        self.database.transact(|transaction| {
            let mut swept = false;
            for path in entries(&root)? {
                let name = name_of(&path);
                if let Some(Ok(id)) = name.strip_prefix(ARRIVED).map(BlobId::from_hex) {
                    swept |= Self::sweep_file(transaction, &id, &path)?;
                } else if path.is_dir() {
                    Self::sweep_folder(transaction, &path, &name)?;
                }
            }
            if swept {
                sync_folder(&root)?;
            }
            Ok(())
        })
    }

    fn sweep_folder(connection: &Connection, folder: &Path, start: &str) -> TxResult<()> {
        let mut swept = false;
        for path in entries(folder)? {
            // A file whose name is not ours is left alone.
            if let Ok(id) = BlobId::from_hex(&format!("{start}{}", name_of(&path))) {
                swept |= Self::sweep_file(connection, &id, &path)?;
            }
        }
        if swept {
            sync_folder(folder)?;
        }
        Ok(())
    }

    /// Removes the file if no record is bound to the blob, and says whether it did.
    fn sweep_file(connection: &Connection, id: &BlobId, path: &Path) -> TxResult<bool> {
        let bound = is_bound(connection, id)?;
        if !bound {
            remove(path)?;
        }
        Ok(!bound)
    }
}

/// Notes the blob and the record that refers to it. Returns its media type, which is the one it came with first.
fn bind(
    connection: &Connection,
    blob: &Blob,
    stream_id: i64,
    key: &RecordKey,
) -> rusqlite::Result<String> {
    connection.execute(
        "INSERT OR IGNORE INTO blobs VALUES (?1, ?2, ?3)",
        params![blob.id.as_str(), blob.size_bytes, blob.mime_type],
    )?;
    connection.execute(
        "INSERT OR IGNORE INTO blob_bindings VALUES (?1, ?2, ?3)",
        params![blob.id.as_str(), stream_id, key.ordering_form()],
    )?;
    connection.query_row(
        "SELECT mime_type FROM blobs WHERE id = ?1",
        [blob.id.as_str()],
        |row| row.get(0),
    )
}

pub(super) fn is_bound(connection: &Connection, id: &BlobId) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM blob_bindings WHERE blob_id = ?1)")?
        .query_row([id.as_str()], |row| row.get(0))
}

/// Whether a file of that size is there.
fn is_whole(path: &Path, size_bytes: u64) -> bool {
    fs::metadata(path).is_ok_and(|found| found.len() == size_bytes)
}

/// The entries of a folder; empty if there is no such folder.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::io(folder, error)),
    };
    entries
        .map(|entry| Ok(entry.map_err(StoreError::at(folder))?.path()))
        .collect()
}

pub(crate) fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

pub(crate) fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(StoreError::io(path, error)),
        _ => Ok(()),
    }
}
