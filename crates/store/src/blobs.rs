//! Blobs: bytes named by their own hash, referred to by records.

use std::io::{self, ErrorKind, Read, Write as _};
use std::path::Path;

use contract::id::BlobId;
use contract::key::RecordKey;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use crate::catalog::StreamRef;
use crate::sqlite::directory::create_private;
use crate::{Result, StoreError};

/// The prefix of a file whose bytes are still being received.
pub(crate) const ARRIVING: &str = "arriving-";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// Its name: the hash of its bytes.
    pub id: BlobId,
    pub size_bytes: u64,
    /// Its media type, as the source gave it.
    pub mime_type: String,
}

pub trait Blobs {
    /// Stores bytes and binds them to a record. Storing the same bytes again is a no-op.
    fn put_blob(
        &self,
        stream: &StreamRef,
        key: &RecordKey,
        mime_type: &str,
        bytes: &mut dyn Read,
    ) -> Result<Blob>;
    /// What is known of a blob that a record of the stream is bound to.
    fn blob(&self, stream: &StreamRef, id: &BlobId) -> Result<Option<(Blob, Vec<RecordKey>)>>;
    /// Opens the bytes. Their hash is checked while they are read: a reader that reaches the end has what was stored, or an
    /// error.
    fn open_blob(&self, id: &BlobId) -> Result<Box<dyn Read + Send>>;
}

/// Complete bytes under a temporary name. They are not durable yet.
pub(crate) struct Received {
    pub(crate) file: NamedTempFile,
    pub(crate) id: BlobId,
    pub(crate) size_bytes: u64,
}

/// Writes bytes into a temporary file of the folder and computes the hash that names them.
pub(crate) fn receive(folder: &Path, bytes: &mut dyn Read) -> Result<Received> {
    create_private(folder)?;
    let mut file = tempfile::Builder::new()
        .prefix(ARRIVING)
        .tempfile_in(folder)
        .map_err(StoreError::at(folder))?;
    let mut hasher = Sha256::new();
    let mut size_bytes = 0;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = match bytes.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(StoreError::io(folder, error)),
        };
        let chunk = filled(&buffer, read).map_err(StoreError::at(folder))?;
        hasher.update(chunk);
        file.write_all(chunk).map_err(StoreError::at(folder))?;
        size_bytes += read as u64;
    }
    Ok(Received {
        file,
        id: BlobId::from_sha256(hasher.finalize().into()),
        size_bytes,
    })
}

/// The part of a buffer that was read. A reader that claims more than there is room for is broken.
pub(crate) fn filled(buffer: &[u8], read: usize) -> io::Result<&[u8]> {
    let filled = buffer.get(..read);
    filled
        .ok_or_else(|| io::Error::other("a reader claims to have read more than its buffer holds"))
}
