//! The bytes of an owner that all nodes share: blobs, and copies of the index.
//!
//! Each has a name with slashes in it. What gets a name is there whole, and is what was handed over.

mod bucket;
mod folder;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use self::bucket::Bucket;
use self::folder::Folder;
use super::waiting::Waiting;
use crate::Result;
use crate::blobs::Received;

/// After so long nobody is about to refer to bytes that nothing refers to.
const LEFT_AFTER: Duration = Duration::from_hours(24);

/// Where the nodes of a database keep bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlobPlace {
    /// A folder that every node sees.
    Folder(PathBuf),
    /// Object storage with the interface of S3: `s3://bucket/prefix`. Who may use it, and where it is, the environment says
    /// (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL`).
    Bucket(String),
}

impl BlobPlace {
    /// What begins with `s3://` is a bucket, and all else a folder.
    pub fn parse(text: &str) -> Self {
        if text.starts_with("s3://") {
            Self::Bucket(text.to_owned())
        } else {
            Self::Folder(PathBuf::from(text))
        }
    }
}

/// Bytes to be read, and how many.
pub(super) type Opened = (u64, Box<dyn Read + Send>);

/// A name, and whether its bytes have not been written for long, by the clock of whoever keeps them.
pub(super) struct Listed {
    pub(super) name: String,
    pub(super) is_left: bool,
}

pub(super) trait Objects: Send + Sync {
    /// Where something is, for people.
    fn place(&self, name: &str) -> PathBuf;

    /// Takes bytes that have no name yet, and their hash. What never gets a name is swept.
    fn receive(&self, bytes: &mut dyn Read) -> Result<Received>;

    /// Gives bytes a name, in place of those that have it.
    fn put(&self, name: &str, received: &Received) -> Result<()>;

    /// How many bytes have a name; `None` where there are none.
    fn size_of(&self, name: &str) -> Result<Option<u64>>;

    /// The bytes of a name as they are, damaged or not; `None` where there are none.
    fn open(&self, name: &str) -> Result<Option<Opened>>;

    /// It is no error when there are none.
    fn remove(&self, name: &str) -> Result<()>;

    /// Removes everything whose name begins so, up to a slash.
    fn remove_all(&self, prefix: &str) -> Result<()> {
        for listed in self.list(prefix)? {
            self.remove(&listed.name)?;
        }
        Ok(())
    }

    /// Everything whose name begins so, up to a slash.
    fn list(&self, prefix: &str) -> Result<Vec<Listed>>;

    /// Removes bytes that never got a name, left by a process that was killed.
    fn sweep(&self) -> Result<()> {
        Ok(())
    }
}

/// The bytes of one owner. What comes in lies in the node's own folder until it has a name in a bucket.
pub(super) fn open(
    place: &BlobPlace,
    owner: &str,
    own: &Path,
    waiting: &Arc<Waiting>,
) -> Result<Box<dyn Objects>> {
    Ok(match place {
        BlobPlace::Folder(folder) => Box::new(Folder {
            root: folder.join(owner),
        }),
        BlobPlace::Bucket(url) => Box::new(Bucket::open(url, owner, own, Arc::clone(waiting))?),
    })
}

fn is_old(modified: SystemTime) -> bool {
    modified.elapsed().is_ok_and(|age| age >= LEFT_AFTER)
}

#[cfg(test)]
mod tests;
