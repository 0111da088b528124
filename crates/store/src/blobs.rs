//! Blobs: bytes named by their own hash, referred to by records.

use std::io::Read;

use contract::id::BlobId;
use contract::key::RecordKey;

use crate::Result;
use crate::catalog::StreamRef;

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
