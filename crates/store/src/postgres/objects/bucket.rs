//! Object storage with the interface of S3.
//!
//! What is put is read back and held against its hash before anything refers to it.

use std::fs::File;
use std::future::poll_fn;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::{Buf as _, Bytes};
use futures_core::Stream;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path as Key;
use object_store::{
    Error, MultipartUpload as _, ObjectMeta, ObjectStore as _, ObjectStoreExt as _, RetryConfig,
};

use super::{Listed, Objects, Opened, is_old};
use crate::blobs::{Received, receive};
use crate::postgres::failure::with_causes;
use crate::postgres::waiting::Waiting;
use crate::sqlite::blobs::Verified;
use crate::{Result, StoreError};

/// A request is made again a few times; then the caller is told.
const RETRIES: usize = 3;
const RETRIED_WITHIN: Duration = Duration::from_secs(10);
/// More than this is sent in parts of this size.
const PART: usize = 8 * 1024 * 1024;
/// Statuses that do not go away by trying again: the key, the name of the bucket.
const REFUSALS: [&str; 4] = [
    "status code: 400",
    "status code: 401",
    "status code: 403",
    "status code: 404",
];
/// Where bytes lie in the node's folder until they are sent.
const RECEIVED: &str = "received";

pub(super) struct Bucket {
    store: AmazonS3,
    /// The name of the bucket and the prefix, for people.
    url: String,
    /// What every name of this owner begins with.
    prefix: String,
    received: PathBuf,
    waiting: Arc<Waiting>,
}

impl Bucket {
    pub(super) fn open(url: &str, owner: &str, own: &Path, waiting: Arc<Waiting>) -> Result<Self> {
        Self::with(AmazonS3Builder::from_env(), url, owner, own, waiting)
    }

    /// Looks into the bucket once, so that a wrong name or key is told at the start.
    pub(super) fn with(
        settings: AmazonS3Builder,
        url: &str,
        owner: &str,
        own: &Path,
        waiting: Arc<Waiting>,
    ) -> Result<Self> {
        let refused = |detail: String| StoreError::BlobsRefused {
            place: url.to_owned(),
            detail,
        };
        let name = url.strip_prefix("s3://").unwrap_or_default();
        let (bucket, prefix) = name.split_once('/').unwrap_or((name, ""));
        let prefix = format!("{}/{owner}", prefix.trim_matches('/'));
        // It is the one that everything else here is encrypted with; a second attempt changes nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let retries = RetryConfig {
            max_retries: RETRIES,
            retry_timeout: RETRIED_WITHIN,
            ..RetryConfig::default()
        };
        let context = waiting.enter();
        let store = settings
            .with_bucket_name(bucket)
            .with_retry(retries)
            // Not everybody who has the interface of S3 has this part of it.
            .with_disable_bulk_delete(true)
            .build()
            .map_err(|error| refused(error.to_string()))?;
        drop(context);
        let received = own.join(RECEIVED);
        // What a process that was killed has left.
        let _ = std::fs::remove_dir_all(&received);
        let bucket = Self {
            store,
            url: url.to_owned(),
            prefix: prefix.trim_matches('/').to_owned(),
            received,
            waiting,
        };
        bucket.first()?;
        Ok(bucket)
    }

    fn key(&self, name: &str) -> Key {
        Key::from(format!("{}/{name}", self.prefix))
    }

    /// Whether anything is there.
    fn first(&self) -> Result<Option<ObjectMeta>> {
        let mut listed = self.store.list(Some(&self.key("")));
        let first = self
            .waiting
            .wait(poll_fn(|context| Pin::new(&mut listed).poll_next(context)));
        first.transpose().map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &Error) -> StoreError {
        let place = self.url.clone();
        let detail = words(error);
        match error {
            Error::PermissionDenied { .. }
            | Error::Unauthenticated { .. }
            | Error::NotFound { .. }
            | Error::InvalidPath { .. } => StoreError::BlobsRefused { place, detail },
            // Of a list that is refused, only its words tell.
            _ if REFUSALS.iter().any(|status| detail.contains(status)) => {
                StoreError::BlobsRefused { place, detail }
            }
            _ => StoreError::BlobsUnavailable { place, detail },
        }
    }

    async fn send(&self, key: &Key, mut file: File, size_bytes: u64) -> SendResult {
        if size_bytes <= PART as u64 {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            self.store.put(key, bytes.into()).await?;
            return Ok(());
        }
        let mut upload = self.store.put_multipart(key).await?;
        loop {
            let mut part = Vec::with_capacity(PART);
            let sent = match file.by_ref().take(PART as u64).read_to_end(&mut part) {
                Ok(0) => break,
                Ok(_) => upload.put_part(part.into()).await.map_err(SendError::from),
                Err(error) => Err(error.into()),
            };
            if sent.is_err() {
                // What is left of it is not seen, and costs.
                let _ = upload.abort().await;
                return sent;
            }
        }
        upload.complete().await?;
        Ok(())
    }
}

enum SendError {
    Read(io::Error),
    Store(Error),
}

type SendResult = std::result::Result<(), SendError>;

impl From<io::Error> for SendError {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

impl From<Error> for SendError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl Objects for Bucket {
    fn place(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("{}/{name}", self.url.trim_end_matches('/')))
    }

    fn receive(&self, bytes: &mut dyn Read) -> Result<Received> {
        receive(&self.received, bytes)
    }

    fn put(&self, name: &str, received: &Received) -> Result<()> {
        let (key, path) = (self.key(name), received.file.path());
        let file = File::open(path).map_err(StoreError::at(path))?;
        match self
            .waiting
            .wait(self.send(&key, file, received.size_bytes))
        {
            Ok(()) => {}
            Err(SendError::Read(error)) => return Err(StoreError::io(path, error)),
            Err(SendError::Store(error)) => return Err(self.failed(&error)),
        }
        let damaged = || StoreError::BlobDamaged {
            path: self.place(name),
        };
        let (size_bytes, bytes) = self.open(name)?.ok_or_else(damaged)?;
        let place = self.place(name);
        let mut bytes = Verified::new(bytes, &place, &received.id, size_bytes);
        match io::copy(&mut bytes, &mut io::sink()) {
            Ok(read) if read == received.size_bytes => Ok(()),
            _ => Err(damaged()),
        }
    }

    fn size_of(&self, name: &str) -> Result<Option<u64>> {
        match self.waiting.wait(self.store.head(&self.key(name))) {
            Ok(found) => Ok(Some(found.size)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn open(&self, name: &str) -> Result<Option<Opened>> {
        let key = self.key(name);
        match self.waiting.wait(self.store.get(&key)) {
            Ok(found) => {
                let size_bytes = found.meta.size;
                let bytes = Fetched {
                    stream: found.into_stream(),
                    chunk: Bytes::new(),
                    waiting: Arc::clone(&self.waiting),
                };
                Ok(Some((size_bytes, Box::new(bytes))))
            }
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn remove(&self, name: &str) -> Result<()> {
        let key = self.key(name);
        match self.waiting.wait(self.store.delete(&key)) {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        let mut listed = self.store.list(Some(&self.key(prefix)));
        let mut found = Vec::new();
        while let Some(one) = self
            .waiting
            .wait(poll_fn(|context| Pin::new(&mut listed).poll_next(context)))
        {
            let one = one.map_err(|error| self.failed(&error))?;
            let name = one.location.as_ref().strip_prefix(&self.prefix);
            if let Some(name) = name {
                found.push(Listed {
                    name: name.trim_start_matches('/').to_owned(),
                    is_left: is_old(SystemTime::from(one.last_modified)),
                });
            }
        }
        Ok(found)
    }
}

/// Bytes as they arrive.
struct Fetched<S> {
    stream: S,
    chunk: Bytes,
    waiting: Arc<Waiting>,
}

impl<S> Read for Fetched<S>
where
    S: Stream<Item = object_store::Result<Bytes>> + Unpin,
{
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() {
            let stream = &mut self.stream;
            let next = poll_fn(|context| Pin::new(&mut *stream).poll_next(context));
            match self.waiting.wait(next) {
                None => return Ok(0),
                Some(chunk) => self.chunk = chunk.map_err(io::Error::other)?,
            }
        }
        let length = buffer.len().min(self.chunk.len());
        if let Some(start) = buffer.get_mut(..length) {
            self.chunk.copy_to_slice(start);
        }
        Ok(length)
    }
}

/// The error with its causes, in one line.
fn words(error: &Error) -> String {
    with_causes(error).replace(char::is_control, " ")
}
